/** Sandboxes for tests: one that gives prepared answers and records its calls, and one that runs real programs. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { type ExecError, type ExecOptions, type ExecResult, Sandbox } from "../../src/filesystem/Sandbox.ts"
import { NotFound } from "../../src/model/FsError.ts"

export interface Asked {
  readonly command?: ReadonlyArray<string>
  readonly code?: string
  readonly options: (ExecOptions & { readonly language?: string | undefined }) | undefined
}

const quiet: ExecResult = {
  exitCode: 0,
  stdout: "",
  stderr: "",
  stdoutBytes: new Uint8Array(),
  durationMillis: 7,
  timedOut: false,
  truncated: false
}

export const canned = (
  answer: Partial<ExecResult> | Effect.Effect<never, ExecError> = {}
): { readonly layer: Layer.Layer<Sandbox>; readonly asked: Array<Asked> } => {
  const asked: Array<Asked> = []
  const reply = (one: Asked) =>
    Effect.suspend(() => {
      asked.push(one)
      return Effect.isEffect(answer) ? answer : Effect.succeed({ ...quiet, ...answer })
    })
  const layer = Layer.succeed(Sandbox, {
    exec: (command, options) => reply({ command, options }),
    eval: (code, options) => reply({ code, options })
  })
  return { layer, asked }
}

const run = (root: string, [program, ...args]: ReadonlyArray<string>, options: ExecOptions = {}) =>
  Effect.suspend((): Effect.Effect<ExecResult, ExecError> => {
    const cwd = join(root, options.cwd ?? ".")
    if (!existsSync(cwd)) return Effect.fail(new NotFound({ operation: "exec", path: options.cwd ?? "." }))
    const timeout = Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "30 seconds"))
    const { error, status, stderr, stdout } = spawnSync(program!, args, {
      cwd,
      timeout,
      input: typeof options.stdin === "string" ? options.stdin : undefined,
      env: { PATH: process.env["PATH"], ...options.env }
    })
    const timedOut = error !== undefined && "code" in error && error.code === "ETIMEDOUT"
    return Effect.succeed({
      ...quiet,
      exitCode: timedOut ? 124 : (status ?? 127),
      stdout: stdout?.toString() ?? "",
      stderr: stderr?.toString() ?? "",
      stdoutBytes: stdout ?? new Uint8Array(),
      timedOut
    })
  })

/** Builds a sandbox that runs programs of this machine in a directory, without confining them. */
export const real = (root: string): Layer.Layer<Sandbox> =>
  Layer.succeed(Sandbox, {
    exec: (command, options) => run(root, command, options),
    eval: (code, options) => run(root, [process.execPath, "-e", code], options)
  })
