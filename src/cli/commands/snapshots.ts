import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import type { Details } from "../../history/Snapshots.ts"
import { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import * as FsError from "../../model/FsError.ts"
import type * as FsPath from "../../model/FsPath.ts"
import { listLines, writeDocument, writeRemark } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { Change, errorStyle, formatChangeCounts, formatSomeChanges, type TextStyle } from "../look.ts"
import { parsePath, toPathInRoot } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import {
  chooseSnapshot,
  latest,
  noSnapshots,
  shortIds,
  type Store,
  storeDirectory,
  withExistingStore,
  withStore
} from "../snapshotStore.ts"
import { refuseFlags, subcommand } from "../subcommand.ts"

const Count = Schema.optionalKey(Schema.Int)

const DescribedSnapshot = Schema.Struct({
  ...FilesystemSnapshot.fields,
  files: Schema.Int,
  bytes: Schema.Int,
  /** The number of FIFOs, sockets and devices, which snapshots cannot contain. */
  skipped: Count,
  filesChanged: Count,
  linesAdded: Count,
  linesRemoved: Count,
  tool: Schema.optionalKey(Schema.String),
  callId: Schema.optionalKey(Schema.String)
})

const describeSnapshot = ({ snapshot, ...details }: Details): typeof DescribedSnapshot.Type => {
  const known = Object.entries({ ...snapshot, ...details }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known) as unknown as typeof DescribedSnapshot.Type
}

const changed = ({ filesChanged, linesAdded, linesRemoved }: Details): ReadonlyArray<string> => [
  ...(filesChanged === undefined ? [] : [`${humanise.count(filesChanged, "file")} changed`]),
  ...(linesAdded === undefined || linesRemoved === undefined
    ? []
    : [`+${humanise.whole(linesAdded)} -${humanise.whole(linesRemoved)}`])
]

const formatNumbers = (details: Details): string => {
  const now = `${humanise.count(details.files, "file")}, ${humanise.bytes(details.bytes)}`
  const since = changed(details)
  return since.length === 0 ? now : `${now}; ${since.join(", ")}`
}

const maxTagCharacters = 1000

/** Reports the number of entries that a snapshot does not contain. A restore cannot bring these entries back. */
const reportSkipped = Effect.fnUntraced(function* (skipped: number) {
  const { yellow } = errorStyle(yield* Screen)
  yield* writeRemark(
    `${yellow("skipped:")} ${humanise.whole(skipped)} of the entries (FIFOs, sockets or devices), because snapshots cannot contain them`,
    {
      skipped
    }
  )
})

export const snapshot = subcommand(
  "snapshot",
  {
    summary: "Take a snapshot of the whole tree",
    description: `Take a snapshot of everything below the root, which restore brings back byte for byte: ignored files, empty directories,
links, permissions, repositories. Content that has not changed since the last snapshot takes no space again.
Snapshots are stored outside the root, in a git repository that your own git commands never see. The command snapshots
prints its path; --store DIR selects another repository.`,
    examples: [
      ["", "Before an experiment"],
      ["--tag 'works, tests pass'", "With a tag as its name"],
      ["--json | jq -r .snapshotId", "Print the whole id, for a program"]
    ]
  },
  {
    tag: flags.text("tag", "TEXT", "A name for the snapshot: one line of text"),
    anyRoot: flags.toggle("any-root", "Allow a snapshot even of a home directory or the whole machine")
  },
  Effect.fnUntraced(function* ({ tag, ...options }) {
    yield* withStore(
      options,
      Effect.fnUntraced(function* ({ withStoreProgress: showing, snapshots }) {
        const taken = yield* snapshots.snapshot({ tag }).pipe(showing("Taking a snapshot"))
        const details = yield* snapshots.details(taken).pipe(showing("Counting what has changed"))
        yield* writeDocument(
          DescribedSnapshot,
          describeSnapshot(details),
          (look) => `Took snapshot ${look.yellow(taken.snapshotId)}\n${look.dim(formatNumbers(details))}\n`
        )
        if (details.skipped !== undefined) yield* reportSkipped(details.skipped)
      })
    )
  })
).pipe(
  refuseFlags(({ tag }) =>
    tag !== undefined && (tag.length > maxTagCharacters || /[\0-\x1f\x7f]/.test(tag))
      ? "--tag is one line of at most 1,000 characters"
      : undefined
  )
)

const Forgotten = Schema.Struct({
  forgotten: Schema.Array(Schema.String),
  dryRun: Schema.Boolean
})

const Stats = Schema.Struct({ store: Schema.String, snapshots: Schema.Int, bytes: Schema.Int, objects: Schema.Int })

const formatRow = (look: TextStyle, id: string, details: Details): string => {
  const { bytes, filesChanged, linesAdded, linesRemoved, snapshot, tool } = details
  const count = (sign: string, value: number | undefined) => (value === undefined ? "" : `${sign}${humanise.whole(value)}`)
  const cells = [
    look.yellow(id),
    look.dim(humanise.time(snapshot.createdAt)),
    (filesChanged === undefined ? "?" : humanise.count(filesChanged, "file")).padStart(9),
    look.green(count("+", linesAdded).padStart(6)),
    look.red(count("-", linesRemoved).padStart(6)),
    humanise.bytes(bytes).padStart(8),
    [tool === undefined ? "" : look.cyan(look.name(tool)), look.name(snapshot.tag ?? "")]
      .filter((text) => text !== "")
      .join(" ")
  ]
  return `${cells.join("  ").trimEnd()}\n`
}

const show = Effect.fnUntraced(function* ({ directory, snapshots }: Store, max: number | undefined) {
  const all = yield* snapshots.list
  const { json } = yield* Settings
  const short = shortIds(all)
  const newest = all.toReversed().slice(0, max)
  // Process the snapshots one by one and show each immediately, because counting changes compares two trees and takes time.
  const details = Stream.mapEffect(Stream.fromIterable(newest), (snapshot) => snapshots.details(snapshot))
  if (json) return yield* listLines(DescribedSnapshot, Stream.map(details, describeSnapshot), () => "")
  yield* listLines(Schema.Any, details, (look, item: Details) => formatRow(look, short(item.snapshot), item))
  const { bytes } = yield* snapshots.stats
  const screen = yield* Screen
  const { dim, name } = errorStyle(screen)
  return yield* screen.warn(dim(`${humanise.count(all.length, "snapshot")}, ${humanise.bytes(bytes)} in ${name(directory)}`))
})

const snapshotsToForget = Effect.fnUntraced(function* (store: Store, names: ReadonlyArray<string>, keep: number | undefined) {
  const forgottenSnapshots = new Map<string, FilesystemSnapshot>()
  for (const name of names) {
    const snapshot = yield* chooseSnapshot(store, name)
    forgottenSnapshots.set(snapshot.snapshotId, snapshot)
  }
  if (keep !== undefined) {
    const all = yield* store.snapshots.list
    for (const snapshot of all.slice(0, Math.max(0, all.length - keep))) forgottenSnapshots.set(snapshot.snapshotId, snapshot)
  }
  return [...forgottenSnapshots.values()]
})

const forget = Effect.fnUntraced(function* (
  store: Store,
  {
    dryRun,
    forget,
    keep
  }: { readonly forget: ReadonlyArray<string>; readonly keep: number | undefined; readonly dryRun: boolean }
) {
  const { withStoreProgress: showing, snapshots } = store
  const short = shortIds(yield* snapshots.list)
  const forgottenSnapshots = yield* snapshotsToForget(store, forget, keep)
  if (!dryRun) {
    for (const snapshot of forgottenSnapshots) yield* snapshots.forget(snapshot)
    if (forgottenSnapshots.length > 0) yield* snapshots.collect.pipe(showing("Freeing disk space"))
  }
  const verb = dryRun ? "Would forget" : "Forgot"
  yield* writeDocument(Forgotten, { forgotten: forgottenSnapshots.map(({ snapshotId }) => snapshotId), dryRun }, (look) =>
    forgottenSnapshots.length === 0
      ? "There is no snapshot to forget\n"
      : forgottenSnapshots
          .map(
            (snapshot) =>
              `${verb} ${look.yellow(short(snapshot))}${snapshot.tag === undefined ? "" : ` ${look.name(snapshot.tag)}`}\n`
          )
          .join("")
  )
})

const stats = Effect.fnUntraced(function* ({ directory, snapshots }: Store) {
  const answer = { store: directory, ...(yield* snapshots.stats) }
  yield* writeDocument(
    Stats,
    answer,
    (look) =>
      `${humanise.count(answer.snapshots, "snapshot")}, ${humanise.count(answer.objects, "object")}, ${humanise.bytes(answer.bytes)}\n${look.name(directory)}\n`
  )
})

const reportNone = Effect.fnUntraced(function* (isStats: boolean) {
  const { json } = yield* Settings
  const screen = yield* Screen
  const directory = yield* storeDirectory
  if (isStats) {
    return yield* writeDocument(
      Stats,
      { store: directory, snapshots: 0, bytes: 0, objects: 0 },
      (look) => `0 snapshots, 0 objects, 0 B\n${look.name(directory)}\n`
    )
  }
  if (!json) yield* screen.warn(errorStyle(screen).dim("There is no snapshot of this root yet"))
})

export const snapshots = subcommand(
  "snapshots",
  {
    summary: "List the snapshots, or forget some",
    description: `List the snapshots of this root, the newest first: id, time, changed files and lines since the previous snapshot,
the size of the files, the tool that caused the snapshot, and the tag. ID is a unique prefix of an id, a tag that only
one snapshot has, or latest: the newest, not counting the safety snapshots of restore and import.`,
    examples: [
      ["", "All snapshots, and where they are stored"],
      ["-n 5 --json", "The newest five snapshots, as JSON"],
      ["--forget 3fa91c02 --forget 'before lunch'", "Forget two snapshots that are no longer needed"],
      ["--keep 20 --dry-run", "Show the snapshots that would be forgotten if the newest twenty stayed"]
    ]
  },
  {
    max: flags.natural("max", "N", "Show only the newest N snapshots").pipe(Flag.withAlias("n")),
    forget: flags.repeated("forget", "ID", "Forget this snapshot, for good (may be repeated)"),
    keep: flags.natural("keep", "N", "Forget all but the newest N snapshots, for good"),
    dryRun: flags.toggle("dry-run", "Show what would be forgotten, and forget nothing"),
    stats: flags.toggle("stats", "Print only the number of snapshots, their size and the path of the store")
  },
  Effect.fnUntraced(function* ({ max, stats: isStats, ...changes }) {
    const forgets = changes.forget.length > 0 || changes.keep !== undefined
    yield* withExistingStore(
      (open) => Effect.asVoid(forgets ? forget(open, changes) : isStats ? stats(open) : show(open, max)),
      changes.forget.length > 0 ? noSnapshots : reportNone(isStats)
    )
  })
).pipe(
  refuseFlags(({ dryRun, forget, keep, max, stats }) => {
    const forgets = forget.length > 0 || keep !== undefined
    if (forgets && (stats || max !== undefined)) {
      return "--forget and --keep cannot be combined with --max or --stats"
    }
    return dryRun && !forgets ? "--dry-run needs --forget or --keep" : undefined
  })
)

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

/** Returns a hint if the text is an existing path, because the user has probably omitted the snapshot id. */
const suggestPathHint = ({ line }: Store, text: string) =>
  Effect.gen(function* () {
    if (text === "") return undefined
    const fs = yield* Filesystem
    const path = yield* toPathInRoot(text)
    return (yield* fs.exists(path))
      ? `Give the snapshot before the path, for example: ${line("restore", latest, path)}`
      : undefined
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
          ? `The files are already as in snapshot ${look.yellow(short(from))}`
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
    summary: "Restore the tree, or a part of it, from a snapshot",
    description: `Restore everything below the root, or only the given paths and everything below them, to the state of a snapshot. Files
that were changed or removed since then come back, and files that were added are removed. Either everything changes or
nothing, even after a power failure. A snapshot is taken first, so that the restore can be undone; --no-safety skips it.
ID is a unique prefix of an id, a tag that only one snapshot has, or latest; the command snapshots lists the ids.`,
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
      Argument.withDescription("Only these paths and all paths below them (default: the whole tree)"),
      Argument.variadic()
    ),
    dryRun: flags.toggle("dry-run", "Show what would change, and change nothing"),
    safety: flags.negatable("safety", "Take a snapshot first; --no-safety skips it"),
    verify: flags.toggle("verify", "Compare all files with the snapshot afterwards")
  },
  Effect.fnUntraced(function* ({ id, ...options }) {
    yield* withExistingStore((open) => restoreAndReport(open, id, options), noSnapshots)
  })
)
