/** Starts `fs-algebra serve` and other commands as processes. */
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { commandLine } from "../bundled.ts"

const bin = commandLine()

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

export interface Where {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
}

const start = (args: ReadonlyArray<string>, { cwd, env = {} }: Where) => {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd,
    env: { PATH: process.env["PATH"], HOME: join(cwd, ".home"), TMPDIR: tmpdir(), NO_COLOR: "1", ...env }
  })
  const text = { out: "", err: "" }
  child.stdout.setEncoding("utf8").on("data", (more: string) => void (text.out += more))
  child.stderr.setEncoding("utf8").on("data", (more: string) => void (text.err += more))
  child.stdin.on("error", () => {})
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal, ...text }))
  })
  return { child, ended, text }
}

/** Runs a command to its end. */
export const run = (args: ReadonlyArray<string>, where: Where): Effect.Effect<Ended> =>
  Effect.promise(() => {
    const { child, ended } = start(args, where)
    child.stdin.end(where.input ?? "")
    return ended
  })

export interface Served {
  readonly url: string
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

/** Starts a server, and returns when it has printed its URL. The scope kills the server. */
export const serve = (args: ReadonlyArray<string>, where: Where) =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<Served> => {
      const { child, ended, text } = start(["serve", ...args, "--json"], where)
      const url = await new Promise<string>((resolve, reject) => {
        child.stdout.on("data", () => {
          if (text.out.includes("\n")) resolve((JSON.parse(text.out) as { readonly url: string }).url)
        })
        void ended.then(({ code, err }) => reject(new Error(`the server ended with code ${code}: ${err}`)))
      })
      return { url, child, ended }
    }),
    ({ child, ended }) =>
      Effect.promise(async () => {
        child.kill("SIGKILL")
        await ended
      })
  )

/** A private directory with files. The scope removes it. */
export const directory = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = mkdtempSync(join(tmpdir(), "fs-algebra-serve-"))
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), text)
      }
      return root
    }),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )
