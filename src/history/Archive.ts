/**
 * Exports the whole tree of a filesystem as an archive, and imports archives.
 *
 * An import checks the whole archive before it changes any visible entry. An export skips or refuses every entry that an
 * import would reject. So an import with the same limits accepts every exported archive, unless the filesystem does not
 * support symlinks.
 *
 * A ZIP archive contains the tree below `files/` and ends with `manifest.json`, which has `version` "1", `created_at`,
 * `file_count` and `total_bytes`. With `layout: "plain"`, the tree is at the top level of the archive, without a manifest.
 * An import detects the layout by the content and also reads ZIP archives of other tools. Modes, symlinks and empty
 * directories are stored as other tools store them. The same tree at the same time gives the same bytes.
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
import { type FsPath, parent, root } from "../model/FsPath.ts"
import { Limits, type LimitsShape } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import { withReadAhead } from "../port/readAhead.ts"
import { ArchiveError } from "./errors.ts"
import type { Mismatch } from "./transaction.ts"
import { toInnerPath } from "./inside.ts"
import { isPermitted, replaceTree } from "./replace.ts"
import * as Tar from "./tar.ts"
import { findNode, countFiles, type DirectoryNode } from "./tree.ts"
import { maxArchiveFileBytes, type NameRules, refuse } from "./zip/names.ts"
import * as Outside from "./zip/hostFile.ts"
import { type Contents, type RestoreTarget, readAny } from "./zip/reader.ts"
import * as Spool from "./zip/spool.ts"
import { filesOf, type NonPortableHandling, type SkippedEntry, survey, type SurveyOptions } from "./zip/survey.ts"
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

/** A wrapper that distinguishes an error of the input from a fault of the filesystem. */
class InputError<E> {
  readonly error: E

  constructor(error: E) {
    this.error = error
  }
}

const toOperationError = (problem: Problem, operation: string): ArchiveError | FsError => {
  if (problem instanceof ArchiveError) return problem
  return problem._tag === "Mismatch"
    ? refuse("corrupt", "the content changed after it was checked", String(problem.path))
    : promote(problem, operation, ".")
}

const toOperationErrorOf =
  (operation: string) =>
  <E = never>(problem: Problem | InputError<E>): ArchiveError | FsError | E =>
    problem instanceof InputError ? problem.error : toOperationError(problem, operation)

const runAsCall = <A, E, R>(port: Backend, operation: string, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  port.calls === undefined ? self : port.calls.effect({ operation, path: "." }, self)

/**
 * The options of an export.
 *
 * @since 0.1.0
 */
export interface ExportOptions {
  /** Tests whether to skip a path with everything below it. @default nothing */
  readonly excludes?: ((path: FsPath) => boolean) | undefined
  /**
   * Globs of paths to skip with everything below them. A glob with `!` includes paths again. Later globs take precedence.
   * @default no globs
   */
  readonly exclude?: string | ReadonlyArray<string> | undefined
  /** True to fail with ArchiveError at an entry that every import would reject, instead of skipping it. @default false */
  readonly strict?: boolean | undefined
  /**
   * The function that receives each skipped entry, which an import would reject. All calls precede the first byte of the
   * archive.
   *
   * @default a warning in the log
   */
  readonly onSkipped?: ((entry: SkippedEntry) => void) | undefined
  /**
   * The position of the tree in the archive.
   *
   * `manifest`: below `files/`, next to a `manifest.json`. `plain`: at the top level, as other tools write it. A tar archive
   * is always plain. An import accepts both layouts.
   *
   * @default "manifest"
   */
  readonly layout?: "manifest" | "plain" | undefined
}

/** The options, also for archives that only a filesystem of the same kind can restore completely (`nonPortable: "keep"`). */
interface InternalExportOptions extends Omit<ExportOptions, "excludes"> {
  readonly excludes?: SurveyOptions["excludes"]
  readonly nonPortable?: NonPortableHandling | undefined
}

interface ArchiveInProgress {
  readonly bytes: Stream.Stream<Uint8Array, ArchiveError | Fault>
  /** Returns the number of files and symlinks, after all bytes were read. */
  readonly files: () => number
}

interface MakeOptions extends SurveyOptions {
  readonly layout?: Layout | undefined
  readonly report: (skipped: ReadonlyArray<SkippedEntry>) => Effect.Effect<void>
}

interface Format {
  readonly make: (port: Backend, options: MakeOptions, now: number) => Effect.Effect<ArchiveInProgress, ArchiveError | Fault>
  readonly read: <E, R>(
    bytes: Stream.Stream<Uint8Array, E, R>,
    rules: NameRules,
    defersContents: boolean
  ) => Effect.Effect<Contents, E | ArchiveError | Fault, R | Scope.Scope>
}

const zip: Format = {
  make: (port, options, now) =>
    Effect.flatMap(survey(port, options), ({ items, skipped }) => {
      const writer = new Writer(port, options.limits, now, options.layout)
      return Effect.as(options.report(skipped), { bytes: writer.bytes(items), files: () => writer.manifest.fileCount })
    }),
  read: (bytes, rules, defersContents) =>
    Effect.flatMap(Spool.spoolStream(bytes, maxArchiveFileBytes(rules.limits)), (source) =>
      readAny(source, rules, { defersContents })
    )
}

const tar: Format = {
  make: (port, options, now) =>
    Effect.flatMap(survey(port, { ...options, whyUnencodable: Tar.whyUnencodable }), ({ items, skipped }) => {
      let files = 0
      const bytes = Tar.bytes(withReadAhead(port, filesOf(items)), items, options.limits, now, (kind) => {
        if (kind !== "directory") files++
      })
      return Effect.as(options.report(skipped), { bytes, files: () => files })
    }),
  read: Tar.read
}

const maxReportedEntries = 5

const warning = (skipped: ReadonlyArray<SkippedEntry>): Effect.Effect<void> => {
  if (skipped.length === 0) return Effect.void
  const first = skipped.slice(0, maxReportedEntries).map(({ detail, path }) => `${JSON.stringify(path)}: ${detail}`)
  const more = skipped.length > maxReportedEntries ? `; and ${skipped.length - maxReportedEntries} more` : ""
  return Effect.logWarning(`fs-algebra: the archive omits these entries: ${first.join("; ")}${more}`)
}

const makeArchive = (
  format: Format,
  port: Backend,
  options: InternalExportOptions
): Effect.Effect<ArchiveInProgress, ArchiveError | Fault> =>
  Effect.flatMap(Effect.all([Limits, Clock.currentTimeMillis]), ([limits, now]) => {
    const { layout, nonPortable = options.strict === true ? "refuse" : "skip", onSkipped } = options
    const globs = compileExcludes(port, options.exclude, limits)
    if (typeof globs === "object") return Effect.fail(globs)
    const excludes = combineExcludes(options.excludes, globs)
    const report = (skipped: ReadonlyArray<SkippedEntry>) =>
      onSkipped === undefined ? warning(skipped) : Effect.sync(() => skipped.forEach((entry) => onSkipped(entry)))
    return format.make(port, { excludes, layout, limits, nonPortable, report }, now)
  })

const compileExcludes = (
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

const streamArchive = (
  format: Format,
  operation: string,
  { port }: Algebra,
  options: InternalExportOptions
): Stream.Stream<Uint8Array, ArchiveError | FsError> => {
  const archive = Effect.map(makeArchive(format, port, options), ({ bytes }) => bytes)
  const bytes = Stream.mapError(Stream.unwrap(archive), toOperationErrorOf(operation))
  return port.calls === undefined ? bytes : port.calls.stream({ operation, path: "." }, bytes)
}

const collectBytes = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Uint8Array, E, R> =>
  Effect.map(Stream.runCollect(bytes), (chunks) => new Uint8Array(Buffer.concat(chunks)))

/**
 * Exports the tree of a filesystem as a ZIP archive.
 *
 * The names are kept in memory, and the contents are read shortly before their bytes are requested. An entry that an import
 * would reject is skipped with everything in it, and reported to `onSkipped`:
 *
 * - a name that is not text or not a valid path
 * - the second of two names that differ only in case or normal form
 * - a symlink that leads out of the tree
 * - a FIFO, a socket or a device
 *
 * With `strict`, the export fails at such an entry with ArchiveError `name`, `duplicate`, `link` or `unsupported`. A tree
 * that exceeds `Limits.maxArchiveEntries` or `maxArchiveBytes` fails with `tooLarge`.
 *
 * @since 0.1.0
 */
export const exportZipOf = (fs: Algebra, options: ExportOptions = {}): Stream.Stream<Uint8Array, ArchiveError | FsError> =>
  streamArchive(zip, "exportZip", fs, options)

/**
 * Exports the tree as a tar archive, with names relative to the root. Otherwise behaves like `exportZipOf`.
 *
 * @since 0.1.0
 */
export const exportTarOf = (fs: Algebra, options: ExportOptions = {}): Stream.Stream<Uint8Array, ArchiveError | FsError> =>
  streamArchive(tar, "exportTar", fs, options)

/**
 * Exports the tree as a ZIP archive in one byte array.
 *
 * @since 0.1.0
 */
export const exportBytesOf = (fs: Algebra, options?: ExportOptions): Effect.Effect<Uint8Array, ArchiveError | FsError> =>
  collectBytes(exportZipOf(fs, options))

const excludeOnly = (path: FsPath | undefined): ((path: FsPath) => boolean) | undefined =>
  path === undefined ? undefined : (other) => other === path

const combineExcludes = (one: SurveyOptions["excludes"], other: SurveyOptions["excludes"]): SurveyOptions["excludes"] =>
  one === undefined || other === undefined
    ? (one ?? other)
    : (path, isDirectory) => one(path, isDirectory) || other(path, isDirectory)

/**
 * Writes the tree as a ZIP archive to a file on the host. Returns the number of files and symlinks in the archive.
 *
 * Creates missing parent directories. An existing file stays until the new archive is complete. If the archive file lies
 * inside the filesystem, the archive does not contain it. Host errors name the given `path`.
 *
 * @since 0.1.0
 */
export const exportArchiveOf = (
  { port }: Algebra,
  path: string,
  options: ExportOptions = {}
): Effect.Effect<number, ArchiveError | FsError> => writeArchive(port, path, options)

/**
 * Writes an archive that also includes entries that an import would reject. Only a filesystem of the same kind can restore
 * these entries.
 *
 * These entries are outside `files/`, so an import elsewhere reads only the other entries. FIFOs, sockets and devices are
 * skipped and reported.
 *
 * @internal
 */
export const keepArchiveOf = (
  { port }: Algebra,
  path: string,
  options: ExportOptions = {}
): Effect.Effect<number, ArchiveError | FsError> => writeArchive(port, path, { ...options, nonPortable: "keep" })

/**
 * Exports the archive of `keepArchiveOf` as a stream.
 *
 * @internal
 */
export const keepZipOf = (fs: Algebra, options: ExportOptions = {}): Stream.Stream<Uint8Array, ArchiveError | FsError> =>
  streamArchive(zip, "exportZip", fs, { ...options, nonPortable: "keep" })

/**
 * Exports the archive of `keepArchiveOf` as one byte array.
 *
 * @internal
 */
export const keepBytesOf = (fs: Algebra): Effect.Effect<Uint8Array, ArchiveError | FsError> => collectBytes(keepZipOf(fs))

const writeArchive = (
  port: Backend,
  path: string,
  options: InternalExportOptions
): Effect.Effect<number, ArchiveError | FsError> => {
  const operation = "exportArchive"
  const written = Effect.suspend(() => {
    let files = () => 0
    const bytes = (target: Outside.Target) =>
      Effect.map(
        makeArchive(zip, port, {
          ...options,
          excludes: combineExcludes(excludeOnly(toInnerPath(port, target.path)), options.excludes)
        }),
        (archive) => {
          files = archive.files
          return archive.bytes
        }
      )
    return Effect.map(
      Outside.write(
        path,
        (target) => Stream.mapError(Stream.unwrap(bytes(target)), toOperationErrorOf(operation)),
        (fault) => promote(fault, operation, path)
      ),
      () => files()
    )
  })
  return runAsCall(port, operation, written)
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

interface OpenedContents extends Contents {
  readonly file?: string | undefined
}

/**
 * Returns the path of the archive file in the tree, or `undefined` if an import removes or replaces the file. The file stays
 * if the new tree has its directory, and no entry at its path.
 */
const keptArchivePath = (tree: DirectoryNode, path: FsPath | undefined): FsPath | undefined =>
  path !== undefined && findNode(tree, parent(path))?.kind === "directory" && findNode(tree, path) === undefined
    ? path
    : undefined

/**
 * Tests whether the filesystem has no entry. If so, an import stages all files of the archive, so each content is checked when
 * it is staged, and unpacked only once.
 */
const isEmpty = (port: Backend): Effect.Effect<boolean> =>
  Effect.orElseSucceed(
    Effect.map(port.list(root), (children) => children.length === 0),
    () => false
  )

/** Checks the whole archive, and then makes the filesystem equal to its tree. Returns the number of files and symlinks. */
const importContents = <E, R>(
  port: Backend,
  operation: string,
  open: (
    rules: NameRules,
    defersContents: boolean
  ) => Effect.Effect<OpenedContents, InputError<E> | ArchiveError | Fault, R | Scope.Scope>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> => {
  const imported = Effect.gen(function* () {
    if (!isPermitted(port)) return yield* Effect.fail<Fault>({ _tag: "AccessDenied", why: "readOnly" })
    const limits = yield* Limits
    const { content, file, tree, unpack } = yield* open({ limits, policy: port.rules?.policy }, yield* isEmpty(port))
    if (port.links === undefined && hasLink(tree)) {
      return yield* Effect.fail(refuse("link", "the archive contains symlinks, which this filesystem does not support"))
    }
    const excludes = file === undefined ? undefined : excludeOnly(keptArchivePath(tree, toInnerPath(port, file)))
    yield* replaceTree<ArchiveError>(port, { after: tree, content, unpack, scan: { excludes } })
    return countFiles(tree).files
  })
  return runAsCall(port, operation, Effect.mapError(Effect.scoped(imported), toOperationErrorOf(operation)))
}

const importStream = <E, R>(
  format: Format,
  operation: string,
  { port }: Algebra,
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> =>
  importContents<E, R>(port, operation, (rules, defersContents) =>
    format.read(
      Stream.mapError(bytes, (error) => new InputError(error)),
      rules,
      defersContents
    )
  )

const importHostFile = (
  { port }: Algebra,
  opened: Effect.Effect<Outside.Opened, InputError<FsError>, Scope.Scope>,
  restoreTarget?: RestoreTarget
): Effect.Effect<number, ArchiveError | FsError> =>
  importContents(port, "importArchive", (rules, defersContents) =>
    Effect.flatMap(opened, ({ descriptor, file, size }) =>
      Effect.map(
        readAny(Spool.fromDescriptor(descriptor, size), rules, { defersContents, restoreTarget }),
        (contents): OpenedContents => ({
          ...contents,
          file
        })
      )
    )
  )

/**
 * Makes a filesystem equal to a ZIP archive. Returns the number of files and symlinks.
 *
 * The import checks all names and sizes first, and all contents before it changes any visible entry. After any failure
 * nothing has changed. If the archive has a manifest of this library, entries outside `files/` are checked and ignored. In
 * any other archive, all entries belong to the tree. Requires permission to write and to delete.
 *
 * @since 0.1.0
 */
export const importZipOf = <E, R>(
  fs: Algebra,
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> => importStream(zip, "importZip", fs, bytes)

/**
 * Makes a filesystem equal to a tar archive, with or without gzip. A hard link becomes a file with the same content.
 *
 * Otherwise behaves like `importZipOf`.
 *
 * @since 0.1.0
 */
export const importTarOf = <E, R>(
  fs: Algebra,
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Exclude<R, Scope.Scope>> => importStream(tar, "importTar", fs, bytes)

/**
 * Makes a filesystem equal to a ZIP archive in one byte array.
 *
 * @since 0.1.0
 */
export const importBytesOf = (fs: Algebra, bytes: Uint8Array): Effect.Effect<number, ArchiveError | FsError> =>
  importContents(fs.port, "importZip", (rules, defersContents) => readAny(Spool.fromBytes(bytes), rules, { defersContents }))

/**
 * Makes a filesystem equal to a ZIP archive in a file on the host.
 *
 * If the archive file lies inside the filesystem, the import keeps the file, provided that the new tree contains its
 * directory and no entry at its path. Host errors name the given `path`.
 *
 * @since 0.1.0
 */
export const importArchiveOf = (fs: Algebra, path: string): Effect.Effect<number, ArchiveError | FsError> =>
  importHostFile(
    fs,
    Effect.mapError(Outside.open(path), (fault) => new InputError(promote(fault, "importArchive", path)))
  )

const restoreTargetOf = ({ port }: Algebra): RestoreTarget => ({
  backend: port.info.name,
  caseSensitive: port.info.caseSensitive
})

/**
 * Restores an archive of `keepArchiveOf` from an open file, even if another file has replaced it on the disk.
 *
 * A filesystem of the same kind restores the entries that other imports reject. Other filesystems ignore these entries.
 *
 * @internal
 */
export const bringBackOpenedOf = (fs: Algebra, opened: Outside.Opened): Effect.Effect<number, ArchiveError | FsError> =>
  importHostFile(fs, Effect.succeed(opened), restoreTargetOf(fs))

/**
 * Restores an archive that `keepArchiveOf` made, from a file on the host.
 *
 * @internal
 */
export const bringBackArchiveOf = (fs: Algebra, path: string): Effect.Effect<number, ArchiveError | FsError> =>
  importHostFile(
    fs,
    Effect.mapError(Outside.open(path), (fault) => new InputError(promote(fault, "importArchive", path))),
    restoreTargetOf(fs)
  )

/**
 * Restores an archive of `keepArchiveOf` from one byte array.
 *
 * @internal
 */
export const bringBackBytesOf = (fs: Algebra, bytes: Uint8Array): Effect.Effect<number, ArchiveError | FsError> =>
  importContents(fs.port, "importZip", (rules, defersContents) =>
    readAny(Spool.fromBytes(bytes), rules, { defersContents, restoreTarget: restoreTargetOf(fs) })
  )

/**
 * Runs `exportZipOf` on the current filesystem.
 *
 * @category exporting
 * @since 0.1.0
 */
export const exportZip: Stream.Stream<Uint8Array, ArchiveError | FsError, Filesystem> = Stream.unwrap(
  Effect.map(Filesystem, (fs) => exportZipOf(fs))
)

/**
 * Runs `exportTarOf` on the current filesystem.
 *
 * @since 0.1.0
 */
export const exportTar: Stream.Stream<Uint8Array, ArchiveError | FsError, Filesystem> = Stream.unwrap(
  Effect.map(Filesystem, (fs) => exportTarOf(fs))
)

/**
 * Runs `exportBytesOf` on the current filesystem.
 *
 * @example
 * ```ts
 * const bytes = yield* Archive.exportBytes
 * yield* fs.delete("notes", { recursive: true })
 * yield* Archive.importBytes(bytes)
 * yield* fs.exists("notes/todo.md") // => true
 * ```
 * @category exporting
 * @since 0.1.0
 */
export const exportBytes: Effect.Effect<Uint8Array, ArchiveError | FsError, Filesystem> = Effect.flatMap(Filesystem, (fs) =>
  exportBytesOf(fs)
)

/**
 * Runs `exportArchiveOf` on the current filesystem.
 *
 * @since 0.1.0
 */
export const exportArchive = (
  path: string,
  options?: ExportOptions
): Effect.Effect<number, ArchiveError | FsError, Filesystem> =>
  Effect.flatMap(Filesystem, (fs) => exportArchiveOf(fs, path, options))

/**
 * Runs `importZipOf` on the current filesystem.
 *
 * @category importing
 * @since 0.1.0
 */
export const importZip = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Filesystem | Exclude<R, Scope.Scope>> =>
  Effect.flatMap(Filesystem, (fs) => importZipOf(fs, bytes))

/**
 * Runs `importTarOf` on the current filesystem.
 *
 * @since 0.1.0
 */
export const importTar = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, E | ArchiveError | FsError, Filesystem | Exclude<R, Scope.Scope>> =>
  Effect.flatMap(Filesystem, (fs) => importTarOf(fs, bytes))

/**
 * Runs `importBytesOf` on the current filesystem.
 *
 * @category importing
 * @since 0.1.0
 */
export const importBytes = (bytes: Uint8Array): Effect.Effect<number, ArchiveError | FsError, Filesystem> =>
  Effect.flatMap(Filesystem, (fs) => importBytesOf(fs, bytes))

/**
 * Runs `importArchiveOf` on the current filesystem.
 *
 * @since 0.1.0
 */
export const importArchive = (path: string): Effect.Effect<number, ArchiveError | FsError, Filesystem> =>
  Effect.flatMap(Filesystem, (fs) => importArchiveOf(fs, path))
