import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Sink from "effect/Sink"
import { NotFound } from "../../../src/model/FsError.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import { answer, call, given, hanging, type Mutant, option, outcome } from "./mutant.ts"

const sinks: ReadonlyArray<Mutant> = [
  ...["mode", "createParents", "ifMatch", "version"].map((key) => option("sink", key)),
  call(
    "a sink publishes each chunk on arrival",
    "sink",
    (_, self) => (path: string, options: any) =>
      Sink.unwrap(
        Effect.as(
          options?.mode === "append" || options?.mode === "appendExisting" ? Effect.void : self.write(path, "", options),
          Sink.mapEffect(
            Sink.forEach((chunk: Uint8Array) => self.writeBytes(path, chunk, { mode: "append" })),
            () =>
              Effect.map(self.stat(path), (stat) => ({
                path,
                bytesWritten: stat.sizeBytes,
                mode: options?.mode ?? "overwrite"
              }))
          ) as any
        )
      )
  ),
  call(
    "a sink publishes the bytes from before the failure of its stream",
    "sink",
    (_, self) => (path: string, options: any) =>
      Sink.unwrap(
        Effect.gen(function* () {
          const parts: Array<number> = []
          yield* Effect.addFinalizer(() => Effect.suspend(() => Effect.ignore(self.writeBytes(path, Uint8Array.from(parts)))))
          return Sink.mapEffect(
            Sink.forEach((chunk: Uint8Array) => Effect.sync(() => void parts.push(...chunk))),
            () => self.writeBytes(path, Uint8Array.from(parts), options)
          )
        })
      )
  ),
  call(
    "a sink of an empty stream makes no file",
    "sink",
    (_, self) => (path: string, options: any) =>
      Sink.unwrap(
        Effect.sync(() => {
          const parts: Array<number> = []
          return Sink.mapEffect(
            Sink.forEach((chunk: Uint8Array) => Effect.sync(() => void parts.push(...chunk))),
            () =>
              parts.length === 0
                ? Effect.succeed({ path, bytesWritten: 0 })
                : self.writeBytes(path, Uint8Array.from(parts), options)
          )
        })
      )
  ),
  hanging(
    call(
      "a sink locks the path while its stream runs",
      "sink",
      (_, self) => (path: string, options: any) =>
        Sink.unwrap(
          Effect.gen(function* () {
            const parts: Array<number> = []
            const release = yield* Deferred.make<void>()
            yield* Effect.forkScoped(self.port.locks!.exclusive([path as FsPath], Deferred.await(release)), {
              startImmediately: true
            })
            return Sink.mapEffect(
              Sink.forEach((chunk: Uint8Array) => Effect.sync(() => void parts.push(...chunk))),
              () => Effect.andThen(Deferred.succeed(release, undefined), self.writeBytes(path, Uint8Array.from(parts), options))
            )
          })
        )
    )
  )
]

const leaving: ReadonlyArray<Mutant> = (["write", "writeBytes", "edit", "delete", "mkdir", "copy", "move"] as const).map(
  (operation) =>
    outcome(`${operation} leaves a file when it fails or is interrupted`, operation, (result, self) =>
      Effect.onError(result, () => Effect.ignore(self.port.write<never, never>(".left" as FsPath, new Uint8Array(0), "create")))
    )
)

const existing = (error: any, path: string) => new NotFound({ operation: error.operation, path })

const writing: ReadonlyArray<Mutant> = [
  ...(["write", "writeBytes"] as const).flatMap((operation) => [
    ...["mode", "createParents", "ifMatch", "version"].map((key) => option(operation, key)),
    option(operation, "createParents", false),
    option(operation, "mode", "overwrite"),
    answer(`${operation} counts one byte too many`, operation, (result) => ({
      ...result,
      bytesWritten: result.bytesWritten + 1
    })),
    answer(`${operation} returns the mode replace`, operation, (result) => ({ ...result, mode: "replace" })),
    answer(`${operation} returns a version without the option version`, operation, (result) => ({ version: "0", ...result })),
    answer(`${operation} returns the path as it was given`, operation, (result, [path]) => ({ ...result, path })),
    call(
      `${operation} in a mode that needs a file makes the file`,
      operation,
      (original) =>
        (path: string, content: any, options: any = {}) =>
          original(path, content, {
            ...options,
            mode: options.mode === "replace" ? "overwrite" : options.mode === "appendExisting" ? "append" : options.mode
          })
    ),
    call(
      `${operation} in mode create overwrites`,
      operation,
      (original) =>
        (path: string, content: any, options: any = {}) =>
          original(path, content, { ...options, mode: options.mode === "create" ? "overwrite" : options.mode })
    ),
    outcome(`${operation} truncates before it is refused`, operation, (result, self) =>
      Effect.tapError(result, () => Effect.ignore(self.write("truncated", "")))
    ),
    outcome(`${operation} makes parents before it is refused`, operation, (result, self, [path]) =>
      Effect.tapError(result, () => Effect.ignore(self.mkdir(`${path}/..`)))
    )
  ]),
  given("text is written with a final line end", "write", ([path, text, ...rest]) => [
    path,
    text === "" || text.endsWith("\n") ? text : `${text}\n`,
    ...rest
  ]),
  given("text is normalised before it is written", "write", ([path, text, ...rest]) => [path, text.normalize("NFD"), ...rest]),
  given("text is written without carriage returns", "write", ([path, text, ...rest]) => [
    path,
    text.replaceAll("\r", ""),
    ...rest
  ]),
  given("text is written without its byte order mark", "write", ([path, text, ...rest]) => [
    path,
    text.replace("\ufeff", ""),
    ...rest
  ]),
  given("lone surrogates are written as U+FFFD", "write", ([path, text, ...rest]) => [path, text.toWellFormed(), ...rest]),
  given("bytes are written as text", "writeBytes", ([path, content, ...rest]) => [
    path,
    new TextEncoder().encode(new TextDecoder().decode(content)),
    ...rest
  ]),
  outcome("text is limited by its UTF-16 units", "write", (result, self, [, text]) =>
    text.length > [...text].length ? self.writeBytes("surrogates", new Uint8Array(1)) : result
  ),
  call(
    "an append reads the file and overwrites it",
    "write",
    (original, self) =>
      (path: string, text: string, options: any = {}) =>
        options.mode === "append"
          ? Effect.flatMap(
              Effect.orElseSucceed(self.readString(path), () => ""),
              (old) =>
                Effect.map(original(path, old + text, { ...options, mode: "overwrite" }), (result: any) => ({
                  ...result,
                  mode: "append"
                }))
            )
          : original(path, text, options)
  ),
  call("writes wait for different times before they begin", "write", (original) => (...args: ReadonlyArray<any>) => {
    const turns = String(args[1]).length % 7
    return Effect.andThen(
      Effect.forEach(Array.from({ length: 12 - turns }), () => Effect.yieldNow),
      original(...args)
    )
  }),
  outcome("the last write is lost", "write", (result, self, [path, text]) =>
    Effect.tap(result, () => (text === "x" ? Effect.ignore(self.delete(path)) : Effect.void))
  ),
  outcome("a write below a file is NotFound", "write", (result, _, [path]) =>
    Effect.catchTag(result, "NotADirectory" as never, (error: any) => Effect.fail(existing(error, path)))
  )
]

const editing: ReadonlyArray<Mutant> = [
  option("edit", "ifMatch"),
  option("edit", "version"),
  option("edit", "dryRun"),
  given("edit makes only the first of several edits", "edit", ([path, edits, ...rest]) => [
    path,
    Array.isArray(edits) ? edits[0] : edits,
    ...rest
  ]),
  call(
    "each edit matches the result of the edit before",
    "edit",
    (original) => (path: string, edits: any, options: any) =>
      Array.isArray(edits)
        ? Effect.map(
            Effect.forEach(edits, (edit) => original(path, edit, options)),
            (results: any) => ({ ...results.at(-1), replacements: results.length })
          )
        : original(path, edits, options)
  ),
  given("every edit replaces only the first match", "edit", ([path, edits, ...rest]) => [
    path,
    Array.isArray(edits) ? edits.map((edit) => ({ ...edit, match: "first" })) : { ...edits, match: "first" },
    ...rest
  ]),
  given("every edit replaces all matches", "edit", ([path, edits, ...rest]) => [
    path,
    Array.isArray(edits) ? edits.map((edit) => ({ ...edit, match: "all" })) : { ...edits, match: "all" },
    ...rest
  ]),
  given("an edit of all matches requires a unique match", "edit", ([path, edits, ...rest]) => [
    path,
    Array.isArray(edits) ? edits : { ...edits, match: "unique" },
    ...rest
  ]),
  outcome("edit gives all lines of the file the same line end", "edit", (result, self, [path]) =>
    Effect.tap(result, () =>
      Effect.ignore(Effect.flatMap(self.readString(path), (text) => self.write(path, text.replaceAll("\r\n", "\n"))))
    )
  ),
  outcome("edit adds a final line end", "edit", (result, self, [path]) =>
    Effect.tap(result, () => Effect.ignore(Effect.flatMap(self.readString(path), (text) => self.write(path, `${text}\n`))))
  ),
  outcome("edit drops the byte order mark", "edit", (result, self, [path]) =>
    Effect.tap(result, () =>
      Effect.ignore(Effect.flatMap(self.readString(path), (text) => self.write(path, text.replace("\ufeff", ""))))
    )
  ),
  outcome("edit knows only UTF-8", "edit", (result, self, [path]) =>
    Effect.flatMap(Effect.ignore(self.readString(path)), () => Effect.andThen(self.readString(path), result))
  ),
  outcome("edit of invalid text succeeds without a change", "edit", (result) =>
    Effect.catchTag(result, "NotText" as never, () => Effect.succeed({}))
  ),
  call(
    "edit reads and writes back without the lock of the path",
    "edit",
    (original, self) => (path: string, edits: any, options: any) =>
      Array.isArray(edits) || options !== undefined || edits.oldText === ""
        ? original(path, edits, options)
        : Effect.gen(function* () {
            const text = yield* self.readString(path)
            const dry: any = yield* original(path, edits, { dryRun: true })
            yield* Effect.yieldNow
            yield* self.write(
              path,
              text.replace(edits.oldText, () => edits.newText)
            )
            return dry
          })
  ),
  answer("an edit returns the number of edits instead of matches", "edit", (result, [, edits]) => ({
    ...result,
    replacements: Array.isArray(edits) ? edits.length : 7
  })),
  answer("an edit returns an empty diff", "edit", (result) => ({ ...result, diff: "" })),
  answer("a diff has no context", "edit", (result) => ({ ...result, diff: result.diff.replaceAll(/^ .*\n/gm, "") })),
  answer("an edit returns a wrong version", "edit", (result) => ({ ...result, version: "0" })),
  outcome("edit of a missing file makes the file", "edit", (result, self, [path]) =>
    Effect.tapError(result, () => Effect.ignore(self.write(path, "", { mode: "create" })))
  )
]

export const writingMutants: ReadonlyArray<Mutant> = [...sinks, ...leaving, ...writing, ...editing]
