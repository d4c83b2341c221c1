import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import * as FsError from "../../model/FsError.ts"
import type * as FsPath from "../../model/FsPath.ts"
import { writeDocument } from "../answer.ts"
import { Change, formatChangeCounts, formatSomeChanges } from "../changes.ts"
import * as flags from "../flags.ts"
import { errorStyle } from "../look.ts"
import { toPathInRoot, parsePath } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { chooseSnapshot, latest, noSnapshots, shortIds } from "../snapshotChoice.ts"
import { type Store, withExistingStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

const Answer = Schema.Struct({
  snapshot: FilesystemSnapshot,
  safety: Schema.optionalKey(FilesystemSnapshot),
  dryRun: Schema.Boolean,
  changes: Schema.Array(Change)
})

interface Options {
  readonly paths: ReadonlyArray<string>
  readonly dryRun: boolean
  readonly safety: boolean
  readonly verify: boolean
}

/** Refuses a path that exists neither now nor in the snapshot, because it is probably mistyped. */
const checkPathsExist = Effect.fnUntraced(function* (
  { snapshots }: Store,
  from: FilesystemSnapshot,
  paths: ReadonlyArray<FsPath.FsPath>
) {
  if (paths.length === 0) return
  const fs = yield* Filesystem
  const view = yield* snapshots.view(from)
  const stat = (port: typeof fs.port, path: FsPath.FsPath) =>
    Effect.mapError(port.stat(path), (fault) => FsError.promote(fault, "restore", path))
  for (const path of paths) {
    if ((yield* stat(view.port, path)) === undefined && (yield* stat(fs.port, path)) === undefined) {
      return yield* Effect.fail(new FsError.NotFound({ operation: "restore", path }))
    }
  }
})

/** Returns a hint if the text is an existing path: the user probably left out the snapshot id. */
const suggestPathHint = ({ line }: Store, text: string) =>
  Effect.gen(function* () {
    if (text === "") return undefined
    const fs = yield* Filesystem
    const path = yield* toPathInRoot(text)
    return (yield* fs.exists(path)) ? `The id comes first; of the newest one: ${line("restore", latest, path)}` : undefined
  }).pipe(Effect.orElseSucceed(() => undefined))

const restoreAndReport = Effect.fnUntraced(function* (store: Store, id: string, options: Options) {
  const screen = yield* Screen
  const { json } = yield* Settings
  const { dryRun } = options
  // Check all paths before a snapshot is taken or a file is changed.
  const paths = yield* Effect.forEach(options.paths, parsePath)
  const from = yield* chooseSnapshot(store, id, suggestPathHint(store, id))
  yield* checkPathsExist(store, from, paths)
  const { changes, safety } = yield* store.snapshots
    .restore(from, { ...options, paths: paths.length > 0 ? paths : undefined })
    .pipe(store.withStoreProgress(dryRun ? "Comparing" : "Restoring"))
  const short = shortIds(yield* store.snapshots.list)
  yield* writeDocument(
    Answer,
    { snapshot: from, ...(safety && { safety }), dryRun, changes },
    (look) =>
      `${formatSomeChanges(look, changes, dryRun)}${
        changes.length === 0
          ? `It is already as in snapshot ${look.yellow(short(from))}`
          : `${dryRun ? "Would restore" : "Restored"} ${look.yellow(short(from))}, ${formatChangeCounts(changes)}`
      }\n`
  )
  if (json || changes.length === 0) return
  const { dim } = errorStyle(screen)
  if (dryRun) yield* screen.warn(dim("nothing has changed"))
  else if (safety !== undefined) {
    const undoCommand = store.line("restore", short(safety), ...options.paths)
    yield* screen.warn(dim(`the previous files are kept as ${short(safety)}; undo this with ${undoCommand}`))
  } else yield* screen.warn(dim("the previous files are not kept"))
})

export const restore = subcommand(
  "restore",
  {
    formatSummary: "Restore the tree, or a part of it, from a snapshot",
    description: `Restore everything below the root, or only the given paths and below, to the state of a snapshot: files that were
changed or removed since come back, files that were added are removed. All of it changes or nothing, even on a power
failure. A snapshot is taken first, so that the restore can be undone; --no-safety skips the snapshot.
An ID is a unique beginning of an id, a tag that only one snapshot has, or latest; the command snapshots lists them.`,
    examples: [
      ["--dry-run", "The changes that the newest snapshot would make"],
      ["", "Everything as in the newest snapshot"],
      ["3fa91c02 src README.md", "One directory and one file as in another snapshot"]
    ]
  },
  {
    id: Argument.String("id").pipe(
      Argument.withDescription("The snapshot to restore (default: latest)"),
      Argument.withDefault(latest)
    ),
    paths: Argument.Path("path").pipe(
      Argument.withDescription("Only these paths and below (default: the whole tree)"),
      Argument.variadic()
    ),
    dryRun: flags.toggle("dry-run", "Show what would change, and change nothing"),
    safety: flags.negatable("safety", "Take a snapshot first; --no-safety skips it"),
    verify: flags.toggle("verify", "Compare all files with the snapshot afterwards"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ id, store, ...options }) {
    yield* withExistingStore(store, (open) => restoreAndReport(open, id, options), noSnapshots(store))
  })
)
