import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { Details } from "../../history/Snapshots.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { writeDocument, list } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle, type TextStyle } from "../look.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { chooseSnapshot, noSnapshots, shortIds } from "../snapshotChoice.ts"
import { DescribedSnapshot, describeSnapshot } from "../snapshotDetails.ts"
import { storeDirectory, type Store, withExistingStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

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
  // Process them one by one and show each at once: counting the changes compares two trees.
  const details = Stream.mapEffect(Stream.fromIterable(newest), (snapshot) => snapshots.details(snapshot))
  if (json) return yield* list(DescribedSnapshot, Stream.map(details, describeSnapshot), () => ({ lines: () => "" }))
  yield* list(Schema.Any, details, (look) => ({
    lines: (items: ReadonlyArray<Details>) => items.map((item) => formatRow(look, short(item.snapshot), item)).join("")
  }))
  const { bytes } = yield* snapshots.stats
  const screen = yield* Screen
  const { dim, name } = errorStyle(screen)
  yield* screen.warn(dim(`${humanise.count(all.length, "snapshot")}, ${humanise.bytes(bytes)} in ${name(directory)}`))
  return all.length
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
    if (forgottenSnapshots.length > 0) yield* snapshots.collect.pipe(showing("Giving back their space"))
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

const reportNone = Effect.fnUntraced(function* (isStats: boolean, store: string | undefined) {
  const { json } = yield* Settings
  const screen = yield* Screen
  const directory = yield* storeDirectory(store)
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
    formatSummary: "List the snapshots, or forget some",
    description: `List the snapshots of this root, the newest first: id, time, changed files and lines since the previous snapshot,
the size of its files, the tool it was taken for, its tag. An ID is a unique beginning of an id, a tag that only one
snapshot has, or latest: the newest, not counting the safety snapshots of restore and import.`,
    examples: [
      ["", "All of them, and where they are kept"],
      ["-n 5 --json", "The newest five, as JSON"],
      ["--forget 3fa91c02 --forget 'before lunch'", "Two that are not needed any more"],
      ["--keep 20 --dry-run", "Show which would be forgotten if only the newest twenty stayed"]
    ]
  },
  {
    max: flags.natural("max", "N", "Only this many of the newest").pipe(Flag.withAlias("n")),
    forget: flags.repeated("forget", "ID", "Forget this one, for good (may be repeated)"),
    keep: flags.natural("keep", "N", "Forget all but this many of the newest, for good"),
    dryRun: flags.toggle("dry-run", "Show what would be forgotten, and forget nothing"),
    stats: flags.toggle("stats", "Only their number, their size and their store"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ max, stats: isStats, store, ...changes }) {
    const forgets = changes.forget.length > 0 || changes.keep !== undefined
    yield* withExistingStore(
      store,
      (open) => Effect.asVoid(forgets ? forget(open, changes) : isStats ? stats(open) : show(open, max)),
      changes.forget.length > 0 ? noSnapshots(store) : reportNone(isStats, store)
    )
  })
).pipe(
  Command.validate(({ dryRun, forget, keep, max, stats }) => {
    const forgets = forget.length > 0 || keep !== undefined
    if (forgets && (stats || max !== undefined)) {
      return new CliError.ValidationError({ message: "--forget and --keep cannot be combined with --max or --stats" })
    }
    return dryRun && !forgets ? new CliError.ValidationError({ message: "--dry-run needs --forget or --keep" }) : Effect.void
  })
)
