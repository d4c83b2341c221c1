import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import { isUtf8 } from "node:buffer"
import { countSigned, hunks as hunksBetween } from "../../engine/diff.ts"
import { wholeAt } from "../../engine/read.ts"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import type { Kind } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPathModule from "../../model/FsPath.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { runAtOnce } from "../../runtime/steps.ts"
import { listLines } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { Change, errorStyle, formatChange, formatPath, paintDiff, styleFor, type TextStyle } from "../look.ts"
import { parsePath } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { chooseSnapshot, latest, noSnapshots, type Store, withExistingStore } from "../snapshotStore.ts"
import { refuseFlags, subcommand } from "../subcommand.ts"

// Formats one change as a git patch. Content is a string with one character per byte, so that text in any encoding is preserved
// exactly. Only output for terminals and JSON is decoded.

const maxComparedBytes = 8 * 1024 * 1024

/** The number of bytes at the beginning of a file that git tests for binary content. */
const sniffedBytes = 8000

interface Side {
  readonly kind: Kind
  readonly mode?: number | undefined
  readonly sizeBytes: number
  readonly bytes?: Uint8Array | undefined
}

interface Patch {
  /** The patch, with one character per byte. The patch is empty for directories, which git does not track. */
  readonly text: string
  readonly linesAdded: number
  readonly linesRemoved: number
  readonly isBinary: boolean
}

const noBytes = new Uint8Array()

const bytesAt = (port: Backend, path: FsPath): Effect.Effect<Uint8Array | undefined, Fault> =>
  Effect.catchIf(
    Effect.map(wholeAt(port, path, maxComparedBytes), ({ bytes }) => bytes),
    (fault: Fault) => fault._tag === "LimitExceeded",
    () => Effect.succeed(undefined)
  )

const sideOf = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<Side | undefined, Fault> {
  const stat = yield* port.stat(path)
  if (stat === undefined) return undefined
  const { kind, mode, sizeBytes } = stat
  if (kind === "symlink") {
    const bytes = Buffer.from(port.links === undefined ? "" : yield* port.links.read(path))
    return { kind, bytes, sizeBytes: bytes.length }
  }
  return { kind, mode, sizeBytes, bytes: kind === "file" ? yield* bytesAt(port, path) : noBytes }
})

const rawPath = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? Buffer.from(name.slice(1), "hex") : Buffer.from(name)).toString("latin1"))
    .join("/")

const letters: Readonly<Record<string, string>> = { "\t": "t", "\n": "n", "\r": "r", '"': '"', "\\": "\\" }

const escaped = (character: string): string => `\\${letters[character] ?? character.charCodeAt(0).toString(8).padStart(3, "0")}`

const quoted = (rawName: string): string => {
  const special = isUtf8(Buffer.from(rawName, "latin1")) ? /[\0-\x1f"\\\x7f]/g : /[\0-\x1f"\\\x7f-\xff]/g
  return special.test(rawName) ? `"${rawName.replace(special, escaped)}"` : rawName
}

const isTooLarge = (side: Side): boolean => side.bytes === undefined

const isBinary = ({ bytes, kind }: Side): boolean => kind === "file" && bytes!.subarray(0, sniffedBytes).includes(0)

const modeOf = ({ kind, mode }: Side): string =>
  kind === "symlink" ? "120000" : `100${(mode ?? 0o644).toString(8).padStart(3, "0")}`

const formatModes = (before: Side | undefined, after: Side | undefined): string => {
  if (before === undefined) return `new file mode ${modeOf(after!)}\n`
  if (after === undefined) return `deleted file mode ${modeOf(before)}\n`
  const isSame = before.mode === undefined || after.mode === undefined || before.mode === after.mode
  return isSame ? "" : `old mode ${modeOf(before)}\nnew mode ${modeOf(after)}\n`
}

const latin1 = ({ bytes }: Side): string => Buffer.from(bytes!).toString("latin1")

const hunksOf = (before: string, after: string): string =>
  runAtOnce(hunksBetween(before, [{ start: 0, end: before.length, text: after }]))

const emptySide: Side = { kind: "file", sizeBytes: 0, bytes: noBytes }

const formatSameKind = (path: string, before: Side | undefined, after: Side | undefined): Patch => {
  const rawName = rawPath(path)
  const [a, b] = [quoted(`a/${rawName}`), quoted(`b/${rawName}`)]
  const headerLines = `diff --git ${a} ${b}\n${formatModes(before, after)}`
  const [from, to] = [before === undefined ? "/dev/null" : a, after === undefined ? "/dev/null" : b]
  const [old, now] = [before ?? emptySide, after ?? emptySide]
  const counted = { linesAdded: 0, linesRemoved: 0 }
  if (isTooLarge(old) || isTooLarge(now)) {
    const sizes = `${humanise.bytes(old.sizeBytes)} and ${humanise.bytes(now.sizeBytes)}`
    return {
      ...counted,
      isBinary: true,
      text: `${headerLines}Files ${from} and ${to} differ, too large to compare: ${sizes}\n`
    }
  }
  if (isBinary(old) || isBinary(now)) {
    const isSame = Buffer.compare(old.bytes!, now.bytes!) === 0
    return { ...counted, isBinary: true, text: isSame ? headerLines : `${headerLines}Binary files ${from} and ${to} differ\n` }
  }
  const hunks = hunksOf(latin1(old), latin1(now))
  // A tab must follow a name with a space, or `patch` would read the part after the space as a date.
  const tab = rawName.includes(" ") ? "\t" : ""
  const names = `--- ${from}${before === undefined ? "" : tab}\n+++ ${to}${after === undefined ? "" : tab}\n`
  return {
    text: hunks === "" ? headerLines : headerLines + names + hunks,
    linesAdded: runAtOnce(countSigned(hunks, "+")),
    linesRemoved: runAtOnce(countSigned(hunks, "-")),
    isBinary: false
  }
}

const emptyPatch: Patch = { text: "", linesAdded: 0, linesRemoved: 0, isBinary: false }

const isContent = (side: Side | undefined): side is Side => side !== undefined && side.kind !== "directory"

/** Formats a change. A change from one kind of entry to another becomes a deletion and an addition, as in git. */
const patchOf = (path: string, before: Side | undefined, after: Side | undefined): Patch => {
  const [old, now] = [isContent(before) ? before : undefined, isContent(after) ? after : undefined]
  if (old === undefined && now === undefined) return emptyPatch
  if (old === undefined || now === undefined || old.kind === now.kind) return formatSameKind(path, old, now)
  const [deletion, addition] = [formatSameKind(path, old, undefined), formatSameKind(path, undefined, now)]
  return {
    text: deletion.text + addition.text,
    linesAdded: addition.linesAdded,
    linesRemoved: deletion.linesRemoved,
    isBinary: deletion.isBinary || addition.isBinary
  }
}

const decoded = (text: string): string => Buffer.from(text, "latin1").toString("utf8")

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
  /** True if no side is a file or a link. git does not show such changes. */
  readonly isDirectory: boolean
}

interface Comparison {
  readonly changes: ReadonlyArray<typeof Change.Type>
  readonly before: Backend
  readonly after: Backend
}

const isBelow = (path: string, base: FsPathModule.FsPath): boolean =>
  base === FsPathModule.root || path === base || path.startsWith(`${base}/`)

const compare = Effect.fnUntraced(function* (
  { withStoreProgress: showing, snapshots }: Store,
  from: FilesystemSnapshot,
  to: FilesystemSnapshot | undefined,
  paths: ReadonlyArray<FsPathModule.FsPath>
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
      const path = change.path as FsPathModule.FsPath
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

/** Reports changed directories on standard error, because git's format cannot show them: their number, and the first three. */
const reportDirectories = Effect.fnUntraced(function* (directories: ReadonlyArray<string>) {
  if (directories.length === 0) return
  const screen = yield* Screen
  const { dim, name } = errorStyle(screen)
  const some = directories.slice(0, 3).map((path) => name(formatPath(path)))
  const rest = directories.length > some.length ? ", …" : ""
  const what = humanise.count(directories.length, "directory")
  yield* screen.warn(dim(`${what} added, removed or changed in mode (--names shows each): ${some.join(", ")}${rest}`))
})

const print = Effect.fnUntraced(function* (
  comparison: Comparison,
  { names, stat }: { readonly names: boolean; readonly stat: boolean }
) {
  const { json } = yield* Settings
  if (names) {
    yield* listLines(Change, Stream.fromArray(comparison.changes), formatChange)
    return
  }
  const compared = streamPatches(comparison)
  if (json) {
    const differences = Stream.map(compared, (one) => differenceOf(one, stat))
    yield* listLines(Difference, differences, () => "")
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
    summary: "Show the changes since a snapshot",
    description: `Show the differences between a snapshot and the current files, or between two snapshots, in the format of git diff,
which git apply reads. For binary files, and files over 8 MiB, it shows only that they differ. Directories are shown
only with --names.
ID is a unique prefix of an id, a tag that only one snapshot has, or latest; the command snapshots lists the ids.`,
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
    paths: flags.pathsBelow,
    names: flags.toggle("names", "Only the names, with A for added, M for changed, D for removed"),
    stat: flags.toggle("stat", "Only the number of changed lines per file")
  },
  Effect.fnUntraced(function* ({ from, names, paths: given, stat, to }) {
    const paths = yield* Effect.forEach(given, parsePath)
    yield* withExistingStore(
      Effect.fnUntraced(function* (open) {
        const first = yield* chooseSnapshot(open, from)
        const second = to === "" ? undefined : yield* chooseSnapshot(open, to)
        yield* print(yield* compare(open, first, second, paths), { names, stat })
      }),
      noSnapshots
    )
  })
).pipe(refuseFlags(({ names, stat }) => (names && stat ? "--names and --stat exclude each other" : undefined)))
