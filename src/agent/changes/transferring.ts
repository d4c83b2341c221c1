import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TransferResult } from "../../model/Entry.ts"
import type { FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Access, type Call, type Refused, refused } from "../definition.ts"
import { plural, size } from "../text/words.ts"
import { withToolNames } from "./naming.ts"

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

const resolveBothPaths = ({ from, to }: Params, call: Call) =>
  Effect.all([call.path(from, { argument: "from" }), call.path(to, { argument: "to" })])

export const touchesWith = (access: Access) => (params: Params, call: Call) =>
  Effect.map(resolveBothPaths(params, call), ([from, to]) => [
    { access, path: from },
    { access: "write" as const, path: to }
  ])

const describeAmount = ({ bytes, directories, files }: TransferResult): string =>
  [
    ...(directories === 0 ? [] : [plural(directories, "directory", "directories")]),
    ...(files === 0 && directories > 0 ? [] : [plural(files, "file")]),
    size(bytes)
  ].join(", ")

export interface Transfer {
  readonly pastVerb: string
  readonly run: (
    call: Call,
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    overwrite: boolean
  ) => ReturnType<Call["filesystem"]["move"]>
  readonly forgetsSource: boolean
}

/**
 * Refuses if a directory is at the destination. The directory is neither replaced nor emptied: the file was perhaps meant to go
 * into it.
 */
const refuseDirectoryTarget = Effect.fnUntraced(function* (
  error: FsError,
  { filesystem }: Call,
  from: FsPath.FsPath,
  to: FsPath.FsPath
): Effect.fn.Return<never, FsError | Refused> {
  const isOccupied = error._tag === "AlreadyExists" || error._tag === "DirectoryNotEmpty" || error._tag === "NotAFile"
  const target = isOccupied ? yield* Effect.orElseSucceed(filesystem.stat(to), () => undefined) : undefined
  if (target?.isDirectory !== true) return yield* Effect.fail(error)
  const inside = FsPath.join(to, FsPath.name(from))
  return yield* Effect.fail(
    refused(
      `${JSON.stringify(to)} is a directory, and nothing was done.`,
      `To put ${JSON.stringify(from)} into it, give ${JSON.stringify(inside)} as to.`
    )
  )
})

export const makeTransferHandler = ({ pastVerb, forgetsSource, run }: Transfer) =>
  Effect.fnUntraced(function* (params: Params, call: Call) {
    const [from, to] = yield* resolveBothPaths(params, call)
    const transferred = yield* run(call, from, to, params.overwrite === true).pipe(
      Effect.catch((error) =>
        error._tag === "InvalidArgument"
          ? Effect.fail(withToolNames(error, call.tool))
          : refuseDirectoryTarget(error, call, from, to)
      )
    )
    const { memory } = call
    memory.forget(to)
    // If the source is not at the remembered version, neither is the copy, so the versions can be carried over.
    memory.carry(from, to)
    if (forgetsSource) memory.forget(from)
    return { message: `${pastVerb} ${from} to ${to}: ${describeAmount(transferred)}`, value: transferred }
  })
