import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TransferResult } from "../../model/Entry.ts"
import type { FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Access, type Call, type Refused, refused } from "../definition.ts"
import { plural, size } from "../text/words.ts"
import { renamed } from "./naming.ts"

export const parameters = Schema.Struct({
  from: Schema.String.annotate({ description: "File or directory, relative to the root" }),
  to: Schema.String.annotate({
    description: "The whole new path, not a directory to put it in. Missing directories are made"
  }),
  overwrite: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Let a file replace a file, or a directory an empty one"
    })
  )
})

export const value = Schema.Struct({ files: Schema.Int, directories: Schema.Int, bytes: Schema.Int })

type Params = typeof parameters.Type

const both = ({ from, to }: Params, call: Call) =>
  Effect.all([call.path(from, { argument: "from" }), call.path(to, { argument: "to" })])

export const touching = (access: Access) => (params: Params, call: Call) =>
  Effect.map(both(params, call), ([from, to]) => [
    { access, path: from },
    { access: "write" as const, path: to }
  ])

const amount = ({ bytes, directories, files }: TransferResult): string =>
  [
    ...(directories === 0 ? [] : [plural(directories, "directory", "directories")]),
    ...(files === 0 && directories > 0 ? [] : [plural(files, "file")]),
    size(bytes)
  ].join(", ")

export interface Way {
  readonly done: string
  readonly run: (
    call: Call,
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    overwrite: boolean
  ) => ReturnType<Call["filesystem"]["move"]>
  readonly forgets: boolean
}

/**
 * Refuses if a directory is at the destination. The directory is neither replaced nor emptied: the file was perhaps meant to go
 * into it.
 */
const ontoDirectory = Effect.fnUntraced(function* (
  error: FsError,
  { filesystem }: Call,
  from: FsPath.FsPath,
  to: FsPath.FsPath
): Effect.fn.Return<never, FsError | Refused> {
  const inTheWay = error._tag === "AlreadyExists" || error._tag === "DirectoryNotEmpty" || error._tag === "NotAFile"
  const target = inTheWay ? yield* Effect.orElseSucceed(filesystem.stat(to), () => undefined) : undefined
  if (target?.isDirectory !== true) return yield* Effect.fail(error)
  const inside = FsPath.join(to, FsPath.name(from))
  return yield* Effect.fail(
    refused(
      `${JSON.stringify(to)} is a directory, and nothing was done.`,
      `To put ${JSON.stringify(from)} into it, give ${JSON.stringify(inside)} as to.`
    )
  )
})

export const transferring = ({ done, forgets, run }: Way) =>
  Effect.fnUntraced(function* (params: Params, call: Call) {
    const [from, to] = yield* both(params, call)
    const transferred = yield* run(call, from, to, params.overwrite === true).pipe(
      Effect.catch((error) =>
        error._tag === "InvalidArgument" ? Effect.fail(renamed(error, call.tool)) : ontoDirectory(error, call, from, to)
      )
    )
    const { memory } = call
    memory.forget(to)
    // If the source is not at the remembered version, neither is the copy, so the versions can be carried over.
    memory.carry(from, to)
    if (forgets) memory.forget(from)
    return { message: `${done} ${from} to ${to}: ${amount(transferred)}`, value: transferred }
  })
