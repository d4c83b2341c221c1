import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import * as FsError from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { list } from "../answer.ts"
import { Change, formatChange, formatPath } from "../changes.ts"
import { paintDiff } from "../diff.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle, type TextStyle, styleFor } from "../look.ts"
import { decoded, type Patch, patchOf, sideOf } from "../patch.ts"
import { parsePath } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { chooseSnapshot, latest, noSnapshots } from "../snapshotChoice.ts"
import { type Store, withExistingStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

const Difference = Schema.Struct({
  ...Change.fields,
  linesAdded: Schema.optionalKey(Schema.Int),
  linesRemoved: Schema.optionalKey(Schema.Int),
  binary: Schema.optionalKey(Schema.Boolean),
  diff: Schema.optionalKey(Schema.String)
})

interface Compared {
  readonly change: typeof Change.Type
  readonly patch: Patch
  /** True if only a directory changed, which git does not show. */
  readonly isDirectory: boolean
}

interface Comparison {
  readonly changes: ReadonlyArray<typeof Change.Type>
  readonly before: Backend
  readonly after: Backend
}

const isBelow = (path: string, base: FsPath.FsPath): boolean =>
  base === FsPath.root || path === base || path.startsWith(`${base}/`)

const compare = Effect.fnUntraced(function* (
  { withStoreProgress: showing, snapshots }: Store,
  from: FilesystemSnapshot,
  to: FilesystemSnapshot | undefined,
  paths: ReadonlyArray<FsPath.FsPath>
): Effect.fn.Return<Comparison, Effect.Error<ReturnType<typeof snapshots.diff>>, Filesystem | Screen> {
  const fs = yield* Filesystem
  const all = yield* snapshots.diff(from, to).pipe(showing("Comparing"))
  return {
    changes: paths.length === 0 ? all : all.filter(({ path }) => paths.some((base) => isBelow(path, base))),
    before: (yield* snapshots.view(from)).port,
    after: to === undefined ? fs.port : (yield* snapshots.view(to)).port
  }
})

const streamPatches = ({ after, before, changes }: Comparison) =>
  Stream.mapEffect(Stream.fromIterable(changes), (change) =>
    Effect.gen(function* () {
      const path = change.path as FsPath.FsPath
      const old = change._tag === "Added" ? undefined : yield* sideOf(before, path)
      const now = change._tag === "Removed" ? undefined : yield* sideOf(after, path)
      // Let other fibers run during a long comparison.
      yield* Effect.yieldNow
      const isDirectory = [old, now].every((side) => side === undefined || side.kind === "directory")
      return { change, patch: patchOf(path, old, now), isDirectory } satisfies Compared
    }).pipe(Effect.mapError((fault) => FsError.promote(fault, "diff", change.path)))
  )

const differenceOf = ({ change, isDirectory, patch }: Compared, isStat: boolean): typeof Difference.Type => ({
  ...change,
  ...(!isDirectory && {
    linesAdded: patch.linesAdded,
    linesRemoved: patch.linesRemoved,
    binary: patch.isBinary,
    ...(!isStat && { diff: decoded(patch.text) })
  })
})

const printPatches = Effect.fnUntraced(function* <E, R>(compared: Stream.Stream<Compared, E, R>) {
  const screen = yield* Screen
  const paint = styleFor(screen)
  yield* Stream.runForEach(compared, ({ patch: { text } }) =>
    text === ""
      ? Effect.void
      : screen.write(screen.isTerminal || screen.colors ? paintDiff(paint, decoded(text)) : Buffer.from(text, "latin1"))
  )
})

const maxPathColumns = 60
const maxBarColumns = 40

interface Row {
  readonly path: string
  readonly patch: Patch
}

const formatBar = (shown: TextStyle, { linesAdded, linesRemoved }: Patch, maxChangedLines: number): string => {
  const scale = maxChangedLines <= maxBarColumns ? 1 : maxBarColumns / maxChangedLines
  const signs = (sign: string, lines: number) => sign.repeat(lines === 0 ? 0 : Math.max(1, Math.round(lines * scale)))
  return shown.green(signs("+", linesAdded)) + shown.red(signs("-", linesRemoved))
}

const statTable = (shown: TextStyle, rows: ReadonlyArray<Row>): string => {
  if (rows.length === 0) return ""
  const total = ({ linesAdded, linesRemoved }: Patch): number => linesAdded + linesRemoved
  const maxChangedLines = rows.reduce((maxChangedLines, { patch }) => Math.max(maxChangedLines, total(patch)), 0)
  const width = Math.min(
    maxPathColumns,
    rows.reduce((width, { path }) => Math.max(width, path.length), 0)
  )
  const digits = rows.some(({ patch }) => patch.isBinary) ? 3 : `${maxChangedLines}`.length
  const lines = rows.map(({ patch, path }) =>
    patch.isBinary
      ? ` ${path.padEnd(width)} | Bin\n`
      : `${` ${path.padEnd(width)} | ${`${total(patch)}`.padStart(digits)} ${formatBar(shown, patch, maxChangedLines)}`.trimEnd()}\n`
  )
  const [added, removed] = rows.reduce(
    ([added, removed], { patch }) => [added + patch.linesAdded, removed + patch.linesRemoved],
    [0, 0]
  )
  const totals = [
    `${humanise.count(rows.length, "file")} changed`,
    ...(added > 0 ? [`${humanise.count(added, "insertion")}(+)`] : []),
    ...(removed > 0 ? [`${humanise.count(removed, "deletion")}(-)`] : [])
  ]
  return `${lines.join("")} ${totals.join(", ")}\n`
}

const printStat = Effect.fnUntraced(function* <E, R>(compared: Stream.Stream<Compared, E, R>) {
  const screen = yield* Screen
  const shown = styleFor(screen)
  const rows: Array<Row> = []
  yield* Stream.runForEach(compared, ({ change, isDirectory, patch }) =>
    Effect.sync(() => {
      if (!isDirectory) rows.push({ path: shown.name(formatPath(change.path)), patch: { ...patch, text: "" } })
    })
  )
  if (rows.length > 0) yield* screen.write(statTable(shown, rows))
})

/** Names changes of directories on standard error, because git's format cannot show them. */
const reportDirectories = Effect.fnUntraced(function* (directories: ReadonlyArray<string>) {
  if (directories.length === 0) return
  const screen = yield* Screen
  const { dim, name } = errorStyle(screen)
  const some = directories.slice(0, 3).map((path) => name(formatPath(path)))
  const rest = directories.length > some.length ? ", …" : ""
  const what = humanise.count(directories.length, "directory")
  yield* screen.warn(dim(`${what} added, removed or with another mode, which --names shows: ${some.join(", ")}${rest}`))
})

const print = Effect.fnUntraced(function* (
  comparison: Comparison,
  { names, stat }: { readonly names: boolean; readonly stat: boolean }
) {
  const { json } = yield* Settings
  if (names) {
    yield* list(Change, Stream.fromArray(comparison.changes), (look) => ({
      lines: (changes) => changes.map((change) => formatChange(look, change)).join("")
    }))
    return
  }
  const compared = streamPatches(comparison)
  if (json) {
    yield* list(
      Difference,
      Stream.map(compared, (one) => differenceOf(one, stat)),
      () => ({ lines: () => "" })
    )
    return
  }
  const directories: Array<string> = []
  const comparedWithDirectories = Stream.tap(compared, ({ change, isDirectory }) =>
    Effect.sync(() => {
      if (isDirectory) directories.push(change.path)
    })
  )
  yield* stat ? printStat(comparedWithDirectories) : printPatches(comparedWithDirectories)
  yield* reportDirectories(directories)
})

export const diff = subcommand(
  "diff",
  {
    formatSummary: "Show the changes since a snapshot",
    description: `Show the differences between a snapshot and the current files, or between two snapshots, in the format of git diff,
which git apply reads. Of binary files and files over 8 MiB it shows only that they differ; directories only with --names.
An ID is a unique beginning of an id, a tag that only one snapshot has, or latest; the command snapshots lists them.`,
    examples: [
      ["", "All changes since the newest snapshot"],
      ["3fa91c02 latest --stat", "The number of changed lines between two snapshots"],
      ["'before lunch' --path src --names", "The changed files of one directory"]
    ]
  },
  {
    from: Argument.String("from").pipe(Argument.withDescription("A snapshot (default: latest)"), Argument.withDefault(latest)),
    to: Argument.String("to").pipe(
      Argument.withDescription("Another snapshot (default: the current files)"),
      Argument.withDefault("")
    ),
    paths: flags.repeated("path", "PATH", "Only this path and below (may be repeated)").pipe(Flag.withAlias("p")),
    names: flags.toggle("names", "Only the names, with A for added, M for changed, D for removed"),
    stat: flags.toggle("stat", "Only the number of changed lines per file"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ from, names, paths: given, stat, store, to }) {
    const paths = yield* Effect.forEach(given, parsePath)
    yield* withExistingStore(
      store,
      Effect.fnUntraced(function* (open) {
        const first = yield* chooseSnapshot(open, from)
        const second = to === "" ? undefined : yield* chooseSnapshot(open, to)
        yield* print(yield* compare(open, first, second, paths), { names, stat })
      }),
      noSnapshots(store)
    )
  })
).pipe(
  Command.validate(({ names, stat }) =>
    names && stat ? new CliError.ValidationError({ message: "--names and --stat exclude each other" }) : Effect.void
  )
)
