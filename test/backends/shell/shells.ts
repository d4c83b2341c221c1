/** Shells of this machine on local directories. They run the same scripts as in a container. */
import { NodeServices } from "@effect/platform-node"
import { afterAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { ChildProcess } from "effect/process"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { delimiter, isAbsolute, join } from "node:path"
import { bulkScript, program } from "../../../src/backends/container/shell/script.ts"
import type * as Session from "../../../src/backends/container/shell/session.ts"
import { makeSession } from "../../../src/backends/container/shell/session.ts"
import type { Fault } from "../../../src/model/FsError.ts"
import { inMemory } from "../../scratch.ts"

export interface Kind {
  readonly name: string
  readonly command: readonly [string, ...ReadonlyArray<string>]
  readonly path: string
  /** The reason why the shell cannot run; `undefined` when it can. */
  readonly lacks: string | undefined
}

const usual = "/usr/local/bin:/usr/bin:/bin"

const find = (program: string): string | undefined =>
  (process.env["PATH"] ?? usual)
    .split(delimiter)
    .filter(isAbsolute)
    .map((directory) => join(directory, program))
    .find((file) => Fs.existsSync(file))

const lacking = (program: string): string | undefined =>
  find(program) === undefined ? `${program} is not installed; apt-get install ${program}` : undefined

export const dash: Kind = { name: "dash", command: ["dash"], path: usual, lacks: lacking("dash") }
export const bash: Kind = { name: "bash", command: ["bash", "--norc", "--posix"], path: usual, lacks: lacking("bash") }

/** Busybox with only its own tools, through links that are removed after the tests. */
export const busybox: Kind = (() => {
  const program = find("busybox")
  const kind = { name: "busybox", command: ["sh"], lacks: lacking("busybox") } as const
  if (program === undefined) return { ...kind, path: "" }
  const directory = Fs.mkdtempSync(join(inMemory(), "busybox-"))
  for (const applet of execFileSync(program, ["--list"], { encoding: "utf8" }).trim().split("\n")) {
    if (applet !== "busybox") Fs.symlinkSync(program, join(directory, applet))
  }
  afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
  return { ...kind, path: directory }
})()

export const shells: ReadonlyArray<Kind> = [dash, busybox, bash]

/** Returns the reason for a skipped test, or throws where no test may be skipped. */
export const missing = ({ lacks, name }: Kind): string | undefined => {
  if (lacks !== undefined && process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(`${name}: ${lacks}`)
  return lacks
}

const spawned = (kind: Kind, script: string, prefix: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner
    const [command, ...args] = [...prefix, ...kind.command, "-c", script]
    return yield* spawner.spawn(
      ChildProcess.make(command!, args, {
        env: { PATH: kind.path },
        forceKillAfter: "1 second"
      })
    )
  }).pipe(
    Effect.mapError((error): Fault => ({ _tag: "Unavailable", detail: error.message })),
    Effect.provide(NodeServices.layer)
  )

export const start = (
  kind: Kind,
  options: { readonly functions?: string; readonly prefix?: ReadonlyArray<string> } = {}
): Effect.Effect<Session.Shell & { readonly pid: number }, Fault, Scope.Scope> =>
  spawned(kind, program(bulkScript, options.functions ?? ""), options.prefix ?? [])

export const shared = (kind: Kind): Session.Session => {
  const scope = Effect.runSync(Scope.make())
  const session = Effect.runSync(Scope.provide(makeSession(start(kind)), scope))
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return session
}

/** A fresh directory, removed with its scope. */
export const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(inMemory(), "shell-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)
