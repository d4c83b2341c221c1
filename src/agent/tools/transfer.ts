import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TransferResult } from "../../model/Entry.ts"
import type { FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Access, type Call, define, optional, type Refused, refused, touching } from "../definition.ts"
import { formatCount as plural, formatSize as size } from "../../model/words.ts"
import { withToolNames } from "../toolPath.ts"

const parameters = Schema.Struct({
  from: Schema.String.annotate({ description: "File or directory, relative to the root" }),
  to: Schema.String.annotate({
    description: "The complete new path, not a directory to put the source into. Missing directories are created"
  }),
  overwrite: optional(Schema.Boolean, "Replace an existing file, or an empty directory")
})

const value = Schema.Struct({ files: Schema.Int, directories: Schema.Int, bytes: Schema.Int })

type Params = typeof parameters.Type

const resolveBothPaths = ({ from, to }: Params, call: Call) =>
  Effect.all([call.path(from, { argument: "from" }), call.path(to, { argument: "to" })])

const touchesWith = (access: Access) => (params: Params, call: Call) =>
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

interface Transfer {
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
 * Fails with the error. If the destination is a directory, fails with a refusal instead, because the model may have meant to put
 * the source into this directory.
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
      `To put ${JSON.stringify(from)} into this directory, give ${JSON.stringify(inside)} as \`to\`.`
    )
  )
})

const makeTransferHandler = ({ pastVerb, forgetsSource, run }: Transfer) =>
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
    // Remember the source's version for the destination. If the source changed after it was read, the destination has another
    // version, and a change that requires the remembered version fails.
    memory.carry(from, to)
    if (forgetsSource) memory.forget(from)
    return { message: `${pastVerb} ${from} to ${to}: ${describeAmount(transferred)}`, value: transferred }
  })

export const copy = define({
  name: "copy",
  description: "Copy a file, or a directory with everything in it. Refuses an existing target unless overwrite is true.",
  parameters,
  value,
  does: "changes",
  idempotent: false,
  examples: [
    { from: "template", to: "packages/new" },
    { from: "a.txt", to: "b.txt", overwrite: true }
  ],
  touches: touchesWith("read"),
  handle: makeTransferHandler({
    pastVerb: "copied",
    forgetsSource: false,
    run: ({ filesystem }, from, to, overwrite) => filesystem.copy(from, to, { overwrite })
  })
})

export const move = define({
  name: "move",
  description: "Move or rename a file or directory. Refuses an existing target unless overwrite is true.",
  parameters,
  value,
  does: "changes",
  idempotent: false,
  examples: [
    { from: "src/old.ts", to: "src/new.ts" },
    { from: "draft.md", to: "docs/final.md", overwrite: true }
  ],
  touches: touchesWith("delete"),
  handle: makeTransferHandler({
    pastVerb: "moved",
    forgetsSource: true,
    run: ({ filesystem }, from, to, overwrite) => filesystem.move(from, to, { overwrite })
  })
})

export const mkdir = define({
  name: "mkdir",
  description: "Make a directory and its missing parents. An existing directory is not an error.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "Directory, relative to the root" })
  }),
  value: Schema.Struct({ path: Schema.String, created: Schema.Boolean }),
  does: "adds",
  idempotent: true,
  examples: [{ path: "src/components" }],
  touches: touching("write"),
  handle: Effect.fnUntraced(function* ({ path: raw }, { filesystem, path: parse }) {
    const path = yield* parse(raw)
    const created = yield* filesystem.mkdir(path, { existOk: false }).pipe(
      Effect.as(true),
      Effect.catchTag("AlreadyExists", () => Effect.as(filesystem.mkdir(path), false))
    )
    return {
      message: created ? `made the directory ${path}` : `the directory ${path} exists already`,
      value: { path, created }
    }
  })
})
