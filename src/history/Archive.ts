/**
 * The whole tree of any filesystem as one archive, and any filesystem out of one. An import looks at all of the archive before it touches
 * anything, and an export leaves out, or refuses, what an import would refuse; so what has been exported can be imported anywhere.
 *
 * A ZIP archive holds the tree under `files/`, and at its end `manifest.json` with `version` "1", `created_at`, `file_count` and
 * `total_bytes`; with `layout: "plain"` it holds the tree at its top level and nothing else. Both are read, told apart by what is in them,
 * and so are the ZIP archives of other tools. Modes, links and empty directories are carried as other tools carry them. The same tree and
 * clock give the same bytes.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Buffer } from "../runtime/buffer.ts"
import * as Matcher from "../engine/matcher.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import { type Fault, type FsError, promote } from "../model/FsError.ts"
import { type FsPath, parent } from "../model/FsPath.ts"
import { Limits, type LimitsShape } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import { ArchiveError } from "./errors.ts"
import type { Mismatch } from "./exchange.ts"
import { insideOf } from "./inside.ts"
import { isPermitted, replace } from "./replace.ts"
import * as Tar from "./tar.ts"
import { at, count, type DirectoryNode } from "./tree.ts"
import { largestArchive, type NameRules, refuse } from "./zip/names.ts"
import * as Outside from "./zip/outside.ts"
import { ahead } from "./zip/ahead.ts"
import { type Contents, type Home, readAny } from "./zip/reader.ts"
import * as Spool from "./zip/spool.ts"
import { type Odd, type SkippedEntry, survey, type SurveyOptions } from "./zip/survey.ts"
import { type Layout, Writer } from "./zip/writer.ts"

export {
  /** @since 0.1.0 */
  ArchiveError
} from "./errors.ts"
export type {
  /** @since 0.1.0 */
  SkippedEntry
} from "./zip/survey.ts"

type Problem = ArchiveError | Fault | Mismatch

/** What an archive, or its way in, fails with of its own, kept apart from the faults of the filesystem. */
class Foreign<E> {
  readonly error: E

  constructor(error: E) {
    this.error = error
  }
}

const failure = (problem: Problem, operation: string): ArchiveError | FsError => {
  if (problem instanceof ArchiveError) return problem
  return problem._tag === "Mismatch"
    ? refuse("corrupt", "its content is no longer what it was when it was checked", String(problem.path))
    : promote(problem, operation, ".")
}

const failureOf =
  (operation: string) =>
  <E = never>(problem: Problem | Foreign<E>): ArchiveError | FsError | E =>
    problem instanceof Foreign ? problem.error : failure(problem, operation)

const called = <A, E, R>(port: Backend, operation: string, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  port.calls === undefined ? self : port.calls.effect({ operation, path: "." }, self)

/**
 * Options of an export.
 *
 * @since 0.1.0
 */
export interface ExportOptions {
  /** What is left out, with all that is in it. @default nothing */
  readonly excludes?: ((path: FsPath) => boolean) | undefined
  /** Globs of what is left out, with all that is in it; `!` takes back, and later ones win. @default nothing */
  readonly exclude?: string | ReadonlyArray<string> | undefined
  /** Fail with ArchiveError where something has to be left out. @default false */
  readonly strict?: boolean | undefined
  /** Called for each entry that is left out because no import would take it, before the first byte. @default a warning in the log */
  readonly onSkipped?: ((entry: SkippedEntry) => void) | undefined
  /**
   * `manifest`: the tree below `files/`, beside a `manifest.json`. `plain`: the tree at the top level, as other tools write it. A tar
   * archive is always plain. Both can be imported.
   *
   * @default "manifest"
   */
  readonly layout?: "manifest" | "plain" | undefined
}

/** `odd`: "keep" for archives that only this filesystem reads back. */
interface Making extends Omit<ExportOptions, "excludes"> {
  readonly excludes?: SurveyOptions["excludes"]
  readonly odd?: Odd | undefined
}

/** An archive in the making. */
interface Exported {
  readonly bytes: Stream.Stream<Uint8Array, ArchiveError | Fault>
  /** Files and links in it, once it is made. */
  readonly files: () => number
}

interface MakeOptions extends SurveyOptions {
  readonly layout?: Layout | undefined
  /** Hears of what has been left out, before the first byte. */
  readonly report: (skipped: ReadonlyArray<SkippedEntry>) => Effect.Effect<void>
}

interface Format {
  readonly make: (port: Backend, options: MakeOptions, now: number) => Effect.Effect<Exported, ArchiveError | Fault>
  readonly read: <E, R>(
    bytes: Stream.Stream<Uint8Array, E, R>,
    rules: NameRules
  ) => Effect.Effect<Contents, E | ArchiveError | Fault, R | Scope.Scope>
}

const zip: Format = {
  make: (port, options, now) =>
    Effect.flatMap(survey(port, options), ({ items, skipped }) => {
      const writer = new Writer(ahead(port, items), options.limits, now, options.layout)
      return Effect.as(options.report(skipped), { bytes: writer.bytes(items), files: () => writer.manifest.fileCount })
    }),
  read: (bytes, rules) => Effect.flatMap(Spool.filled(bytes, largestArchive(rules.limits)), (source) => readAny(source, rules))
}

const tar: Format = {
  make: (port, options, now) =>
    Effect.flatMap(survey(port, { ...options, whyNot: Tar.whyUnfit }), ({ items, skipped }) => {
      let files = 0
      const bytes = Tar.bytes(ahead(port, items), items, options.limits, now, (kind) => {
        if (kind !== "directory") files++
      })
      return Effect.as(options.report(skipped), { bytes, files: () => files })
    }),
  read: Tar.read
}

/** Shown in a warning. */
const fewest = 5

const warning = (skipped: ReadonlyArray<SkippedEntry>): Effect.Effect<void> => {
  if (skipped.length === 0) return Effect.void
  const first = skipped.slice(0, fewest).map(({ detail, path }) => `${JSON.stringify(path)}: ${detail}`)
  const more = skipped.length > fewest ? `; and ${skipped.length - fewest} more` : ""
  return Effect.logWarning(`fs-algebra: left out of the archive: ${first.join("; ")}${more}`)
}

const exported = (format: Format, port: Backend, options: Making): Effect.Effect<Exported, ArchiveError | Fault> =>
  Effect.flatMap(Effect.all([Limits, Clock.currentTimeMillis]), ([limits, now]) => {
    const { layout, odd = options.strict === true ? "refuse" : "skip", onSkipped } = options
    const globs = globsOf(port, options.exclude, limits)
    if (typeof globs === "object") return Effect.fail(globs)
    const excludes = either(options.excludes, globs)
    const report = (skipped: ReadonlyArray<SkippedEntry>) =>
      onSkipped === undefined ? warning(skipped) : Effect.sync(() => skipped.forEach((entry) => onSkipped(entry)))
    return format.make(port, { excludes, layout, limits, odd, report }, now)
  })

const globsOf = (
  { info }: Backend,
  exclude: ExportOptions["exclude"],
  limits: LimitsShape
): SurveyOptions["excludes"] | Fault => {
  const patterns = exclude === undefined ? [] : typeof exclude === "string" ? [exclude] : exclude
  if (patterns.length === 0) return undefined
  const { caseSensitive } = info
  const matcher = Matcher.compile(patterns, { argument: "exclude", rules: true }, { caseSensitive, limits })
  return "_tag" in matcher ? matcher : (path, isDirectory) => Matcher.test(matcher, path, isDirectory)
}

const streamed = (
  format: Format,
  operation: string,
  { port }: Algebra,
  options: Making
): Stream.Stream<Uint8Array, ArchiveError | FsError> => {
  const archive = Effect.map(exported(format, port, options), ({ bytes }) => bytes)
  const bytes = Stream.mapError(Stream.unwrap(archive), failureOf(operation))
  return port.calls === undefined ? bytes : port.calls.stream({ operation, path: "." }, bytes)
}

const joined = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Uint8Array, E, R> =>
  Effect.map(Stream.runCollect(bytes), (chunks) => new Uint8Array(Buffer.concat(chunks)))

/**
 * The tree of a filesystem as a ZIP archive. Nothing of it is held but the names; files are read as the bytes are asked for, each as it is
 * at that moment. An entry that an import would refuse is left out and told (`onSkipped`), with everything in it: a name that is no text
 * or leads astray, the second of two names that differ in case or normal form alone, a link that leads out, a FIFO, socket or device. With
 * `strict` such an entry fails with ArchiveError `name`, `duplicate`, `link` or `unsupported`. More than `Limits.maxArchiveEntries` or
 * `maxArchiveBytes` is `tooLarge`.
 *
 * @since 0.1.0
 */
export const exportZipOf = (fs: Algebra, options: ExportOptions = {}): Stream.Stream<Uint8Array, ArchiveError | FsError> =>
  streamed(zip, "exportZip", fs, options)

/**
 * The same as a tar archive, names beginning at the root.
 *
 * @since 0.1.0
 */
export const exportTarOf = (fs: Algebra, options: ExportOptions = {}): Stream.Stream<Uint8Array, ArchiveError | FsError> =>
  streamed(tar, "exportTar", fs, options)

/**
 * The same ZIP archive as one array.
 *
 * @since 0.1.0
 */
export const exportBytesOf = (fs: Algebra, options?: ExportOptions): Effect.Effect<Uint8Array, ArchiveError | FsError> =>
  joined(exportZipOf(fs, options))

const only = (path: FsPath | undefined): ((path: FsPath) => boolean) | undefined =>
  path === undefined ? undefined : (other) => other === path

const either = (one: SurveyOptions["excludes"], other: SurveyOptions["excludes"]): SurveyOptions["excludes"] =>
  one === undefined || other === undefined
    ? (one ?? other)
    : (path, isDirectory) => one(path, isDirectory) || other(path, isDirectory)

/**
 * Writes the ZIP archive to a file of the machine and answers how many files and links are in it. Its directory is made; what was there
 * stays until the new archive is complete. An archive in the workspace itself is not in itself, nor is an earlier one in its place.
 * Failures out there bear `path` as given.
 *
 * @since 0.1.0
 */
export const exportArchiveOf = (
  { port }: Algebra,
  path: string,
  options: ExportOptions = {}
): Effect.Effect<number, ArchiveError | FsError> => writing(port, path, options)

/**
 * The same for an archive that only this filesystem reads back: entries that an import would refuse are in it too, word for word. Outside
 * `files/`, so that an import takes the rest. FIFOs, sockets and devices are left out and told.
 *
 * @internal
 */
export const keepArchiveOf = (
  { port }: Algebra,
  path: string,
  options: ExportOptions = {}
): Effect.Effect<number, ArchiveError | FsError> => writing(port, path, { ...options, odd: "keep" })

/**
 * The same as a stream.
 *
 * @internal
 */
export const keepZipOf = (fs: Algebra, options: ExportOptions = {}): Stream.Stream<Uint8Array, ArchiveError | FsError> =>
  streamed(zip, "exportZip", fs, { ...options, odd: "keep" })

/**
 * The same as one array.
 *
 * @internal
 */
export const keepBytesOf = (fs: Algebra): Effect.Effect<Uint8Array, ArchiveError | FsError> => joined(keepZipOf(fs))

const writing = (port: Backend, path: string, options: Making): Effect.Effect<number, ArchiveError | FsError> => {
  const operation = "exportArchive"
  const written = Effect.suspend(() => {
    let files = () => 0
    const bytes = (target: Outside.Target) =>
      Effect.map(
        exported(zip, port, { ...options, excludes: either(only(insideOf(port, target.path)), options.excludes) }),
        (archive) => {
          files = archive.files
          return archive.bytes
        }
      )
    return Effect.map(
      Outside.write(
        path,
        (target) => Stream.mapError(Stream.unwrap(bytes(target)), failureOf(operation)),
        (fault) => promote(fault, operation, path)
      ),
      () => files()
    )
  })
  return called(port, operation, written)
}

const hasLink = (top: DirectoryNode): boolean => {
  const pending = [top]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const node of next.entries.values()) {
      if (node.kind === "symlink") return true
      if (node.kind === "directory") pending.push(node)
    }
  }
  return false
}

interface Opened extends Contents {
  /** Of the machine, in which it is. */
  readonly file?: string | undefined
}

/** An archive that lies in the tree stays there where the tree that is to come has its directory, and nothing in its place. */
const besides = (tree: DirectoryNode, path: FsPath | undefined): FsPath | undefined =>
  path !== undefined && at(tree, parent(path))?.kind === "directory" && at(tree, path) === undefined ? path : undefined

/** Everything is checked before anything is changed; then the tree becomes the archive's. Answers how many files and links that has. */
const importing = <E, R>(
  port: Backend,
  operation: string,
  open: (rules: NameRules) => Effect.Effect<Opened, Foreign<E> | ArchiveError | Fault, R | Scope.Scope>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> => {
  const imported = Effect.gen(function* () {
    if (!isPermitted(port)) return yield* Effect.fail<Fault>({ _tag: "AccessDenied", why: "readOnly" })
    const limits = yield* Limits
    const { content, file, tree } = yield* open({ limits, policy: port.rules?.policy })
    if (port.links === undefined && hasLink(tree)) {
      return yield* Effect.fail(refuse("link", "it holds links, and this filesystem has none"))
    }
    const excludes = file === undefined ? undefined : only(besides(tree, insideOf(port, file)))
    yield* replace<ArchiveError>(port, { after: tree, content, scan: { excludes } })
    return count(tree).files
  })
  return called(port, operation, Effect.mapError(Effect.scoped(imported), failureOf(operation)))
}

const importingFrom = <E, R>(
  format: Format,
  operation: string,
  { port }: Algebra,
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> =>
  importing<E, R>(port, operation, (rules) =>
    format.read(
      Stream.mapError(bytes, (error) => new Foreign(error)),
      rules
    )
  )

const importingFile = (
  { port }: Algebra,
  opened: Effect.Effect<Outside.Opened, Foreign<FsError>, Scope.Scope>,
  home?: Home
): Effect.Effect<number, ArchiveError | FsError> =>
  importing(port, "importArchive", (rules) =>
    Effect.flatMap(opened, ({ descriptor, file, size }) =>
      Effect.map(readAny(Spool.ofDescriptor(descriptor, size), rules, home), (contents): Opened => ({ ...contents, file }))
    )
  )

/**
 * Makes a filesystem what a ZIP archive says: all names, sizes and contents are checked first, and on any failure nothing has changed.
 * Beside a manifest of ours, entries outside `files/` are checked and passed over; any other archive is the tree itself. Answers the number of files and links. Needs both write and delete.
 *
 * @since 0.1.0
 */
export const importZipOf = <E, R>(
  fs: Algebra,
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> => importingFrom(zip, "importZip", fs, bytes)

/**
 * The same from a tar archive, packed by gzip or not. Other names of one file are files with the same content.
 *
 * @since 0.1.0
 */
export const importTarOf = <E, R>(
  fs: Algebra,
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> => importingFrom(tar, "importTar", fs, bytes)

/**
 * The same from a ZIP archive that is one array.
 *
 * @since 0.1.0
 */
export const importBytesOf = (fs: Algebra, bytes: Uint8Array): Effect.Effect<number, ArchiveError | FsError> =>
  importing(fs.port, "importZip", (rules) => readAny(Spool.ofBytes(bytes), rules))

/**
 * The same from a file of the machine. One that lies in the workspace itself stays where it is, if its directory does. Failures out there
 * bear `path` as given.
 *
 * @since 0.1.0
 */
export const importArchiveOf = (fs: Algebra, path: string): Effect.Effect<number, ArchiveError | FsError> =>
  importingFile(
    fs,
    Effect.mapError(Outside.open(path), (fault) => new Foreign(promote(fault, "importArchive", path)))
  )

/** The filesystem as the home of archives that it has kept. */
const homeOf = ({ port }: Algebra): Home => ({ backend: port.info.name, caseSensitive: port.info.caseSensitive })

/**
 * Brings back an archive of `keepArchiveOf` from a file that is open already, whatever has its name by now. What was kept verbatim comes
 * back into a filesystem of the same kind, and is passed over by others.
 *
 * @internal
 */
export const bringBackOpenedOf = (fs: Algebra, opened: Outside.Opened): Effect.Effect<number, ArchiveError | FsError> =>
  importingFile(fs, Effect.succeed(opened), homeOf(fs))

/**
 * The same from a file of the machine.
 *
 * @internal
 */
export const bringBackArchiveOf = (fs: Algebra, path: string): Effect.Effect<number, ArchiveError | FsError> =>
  importingFile(
    fs,
    Effect.mapError(Outside.open(path), (fault) => new Foreign(promote(fault, "importArchive", path))),
    homeOf(fs)
  )

/**
 * The same from one array.
 *
 * @internal
 */
export const bringBackBytesOf = (fs: Algebra, bytes: Uint8Array): Effect.Effect<number, ArchiveError | FsError> =>
  importing(fs.port, "importZip", (rules) => readAny(Spool.ofBytes(bytes), rules, homeOf(fs)))

/**
 * `exportZipOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const exportZip: Stream.Stream<Uint8Array, ArchiveError | FsError, Filesystem> = Stream.unwrap(
  Effect.map(Filesystem, (fs) => exportZipOf(fs))
)

/**
 * `exportTarOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const exportTar: Stream.Stream<Uint8Array, ArchiveError | FsError, Filesystem> = Stream.unwrap(
  Effect.map(Filesystem, (fs) => exportTarOf(fs))
)

/**
 * `exportBytesOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const exportBytes: Effect.Effect<Uint8Array, ArchiveError | FsError, Filesystem> = Effect.flatMap(Filesystem, (fs) =>
  exportBytesOf(fs)
)

/**
 * `exportArchiveOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const exportArchive = (
  path: string,
  options?: ExportOptions
): Effect.Effect<number, ArchiveError | FsError, Filesystem> =>
  Effect.flatMap(Filesystem, (fs) => exportArchiveOf(fs, path, options))

/**
 * `importZipOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const importZip = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Filesystem | Exclude<R, Scope.Scope>> =>
  Effect.flatMap(Filesystem, (fs) => importZipOf(fs, bytes))

/**
 * `importTarOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const importTar = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Filesystem | Exclude<R, Scope.Scope>> =>
  Effect.flatMap(Filesystem, (fs) => importTarOf(fs, bytes))

/**
 * `importBytesOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const importBytes = (bytes: Uint8Array): Effect.Effect<number, ArchiveError | FsError, Filesystem> =>
  Effect.flatMap(Filesystem, (fs) => importBytesOf(fs, bytes))

/**
 * `importArchiveOf` the filesystem in force.
 *
 * @since 0.1.0
 */
export const importArchive = (path: string): Effect.Effect<number, ArchiveError | FsError, Filesystem> =>
  Effect.flatMap(Filesystem, (fs) => importArchiveOf(fs, path))
