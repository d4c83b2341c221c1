/**
 * Exports the tree to an archive, and imports an archive. An import replaces the whole tree, so by default a snapshot is taken
 * first.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { createReadStream, statSync } from "node:fs"
import { dirname } from "node:path"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type { ExportOptions, SkippedEntry } from "../../history/Archive.ts"
import type { ArchiveError, SnapshotError } from "../../history/errors.ts"
import { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { type FsError, IoError } from "../../model/FsError.ts"
import { complaintOf } from "../advice.ts"
import { withProgress, writeDocument } from "../answer.ts"
import { Complaint, hostPathError, usage } from "../exit.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { commandLine, errorStyle, printableName } from "../look.ts"
import { hostPathOf, kindOfHostPath } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import {
  chooseSnapshot,
  noSnapshots,
  safetyTag,
  shortIds,
  type StoreOptions,
  withExistingStore,
  withStore
} from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

type Format = "zip" | "tar"

const standardStream = "-"

const file = (description: string): Argument.Argument<string> =>
  Argument.Path("file").pipe(Argument.withDescription(description))

const format: Flag.Flag<Format | undefined> = Flag.Literals("format", ["zip", "tar"]).pipe(
  Flag.withDescription("The format (default: from the file extension; zip for -)"),
  Flag.withMetavar("FORMAT"),
  Flag.withDefault(undefined)
)

const formatOf = (file: string, givenFormat: Format | undefined): Effect.Effect<Format, Complaint> => {
  if (givenFormat !== undefined) return Effect.succeed(givenFormat)
  if (file === standardStream || /\.zip$/i.test(file)) return Effect.succeed("zip")
  if (/\.tar$/i.test(file) || isCompressed(file)) return Effect.succeed("tar")
  return Effect.fail(usage(`"${file}" ends neither in .zip nor in .tar`, "Give its format: --format zip or --format tar."))
}

/** Tests whether a name is that of a compressed tar, which import reads but export does not write. */
const isCompressed = (file: string): boolean => /\.(tgz|tar\.gz)$/i.test(file)

const archiveError = (tag: "NotFound" | "AlreadyExists" | "NotAFile", file: string, what: string, hint: string): Complaint =>
  hostPathError(tag, "archive", file, what, hint)

const Answer = Schema.Struct({
  file: Schema.String,
  format: Schema.Literals(["zip", "tar"]),
  bytes: Schema.Int,
  files: Schema.optionalKey(Schema.Int),
  skipped: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String, detail: Schema.String }))
})

const maxShownEntries = 20

const reportSkipped = Effect.fnUntraced(function* (skipped: ReadonlyArray<SkippedEntry>) {
  if (skipped.length === 0) return
  const screen = yield* Screen
  const { dim, name, yellow } = errorStyle(screen)
  yield* screen.warn(`${yellow("left out:")} ${humanise.whole(skipped.length)} of the entries, which import would refuse`)
  for (const { detail, path } of skipped.slice(0, maxShownEntries)) yield* screen.warn(`  ${name(path)}: ${detail}`)
  if (skipped.length > maxShownEntries)
    yield* screen.warn(dim(`  and ${humanise.whole(skipped.length - maxShownEntries)} more; --json lists all`))
  yield* screen.warn(dim("--strict fails instead; --exclude GLOB leaves entries out silently"))
})

const loadArchive = Effect.promise(() => import("../../history/Archive.ts"))

const exportToOutput = Effect.fnUntraced(function* (fs: Algebra, format: Format, options: ExportOptions) {
  const screen = yield* Screen
  const { json } = yield* Settings
  if (json) return yield* usage("--json and the archive cannot both go to standard output", "Name a file, or leave out --json.")
  if (screen.isTerminal)
    return yield* usage("an archive cannot be printed on a terminal", "Name a file, or send it into a pipe.")
  const { exportTarOf, exportZipOf } = yield* loadArchive
  let written = 0
  const skipped: Array<SkippedEntry> = []
  const exportOptions = { ...options, onSkipped: (entry: SkippedEntry) => void skipped.push(entry) }
  const archive = format === "zip" ? exportZipOf(fs, exportOptions) : exportTarOf(fs, exportOptions)
  yield* Stream.runForEach(archive, (bytes) => {
    written += bytes.length
    return screen.write(bytes)
  }).pipe(withProgress("Exporting", () => humanise.bytes(written)))
  yield* reportSkipped(skipped)
})

interface FileOptions extends ExportOptions {
  readonly overwrite: boolean
}

const exportToFile = Effect.fnUntraced(function* (fs: Algebra, file: string, format: Format, options: FileOptions) {
  const { overwrite } = options
  const skipped: Array<SkippedEntry> = []
  const exportOptions = { ...options, onSkipped: (entry: SkippedEntry) => void skipped.push(entry) }
  const { json } = yield* Settings
  const archivePath = yield* hostPathOf(file)
  const kind = kindOfHostPath(archivePath)
  if (kind === "directory") {
    return yield* archiveError("NotAFile", file, "is a directory", "Name a file in this directory, such as backup.zip.")
  }
  if (kind !== undefined && !overwrite) {
    return yield* archiveError(
      "AlreadyExists",
      file,
      "exists already",
      "Use --overwrite to replace the existing file, or choose another name."
    )
  }
  if (kindOfHostPath(dirname(archivePath)) === undefined) {
    return yield* archiveError(
      "NotFound",
      file,
      "lies in a directory that does not exist",
      "Create the directory first, or choose another directory; the path is relative to the current directory and not to the root."
    )
  }
  const { exportArchiveOf, exportTarOf } = yield* loadArchive
  const { write } = yield* Effect.promise(() => import("../../history/zip/hostFile.ts"))
  const { promote } = yield* Effect.promise(() => import("../../model/FsError.ts"))
  const files = yield* (
    format === "zip"
      ? exportArchiveOf(fs, archivePath, exportOptions)
      : Effect.as(
          write(
            archivePath,
            () => exportTarOf(fs, exportOptions),
            (fault) => promote(fault, "export", file)
          ),
          undefined
        )
  ).pipe(withProgress(`Exporting to ${file}`))
  const answer = { file, format, bytes: statSync(archivePath).size, ...(files !== undefined && { files }), skipped }
  yield* writeDocument(Answer, answer, (look) => {
    const fileCountText = files === undefined ? "" : `, ${humanise.count(files, "file")}`
    return `Exported to ${look.name(file)}${fileCountText}, ${look.green(humanise.bytes(answer.bytes))}\n`
  })
  if (!json) yield* reportSkipped(skipped)
})

export const exportCommand = subcommand(
  "export",
  {
    summary: "Write the whole tree into a ZIP or tar archive",
    description: `Write everything below the root into one archive: a ZIP, or a tar if the name ends in .tar. The archive keeps permissions,
empty directories and links inside the tree. Entries that import would refuse are left out and listed: links out of the
tree, FIFOs, and names that are equal on some systems. With --strict the export fails instead. A ZIP contains the tree
at its top level or, with --manifest, below files/ and with a manifest.json; import reads both. FILE is relative to
the current directory, not to the root; - is standard output. The file appears only when it is complete.`,
    examples: [
      ["- > backup.zip", "The current tree"],
      ["lunch.tar --snapshot 'before lunch'", "The tree of a snapshot"],
      ["- | ssh host 'cat > backup.zip'", "The archive of the current tree, stored on another machine"]
    ]
  },
  {
    file: file("The archive to write, relative to the current directory; - for standard output"),
    snapshot: flags.text("snapshot", "ID", "Export this snapshot (default: the current tree)"),
    format: format,
    manifest: flags.toggle("manifest", "Write a ZIP with a manifest.json, and the tree below files/"),
    strict: flags.toggle("strict", "Fail if an entry would be left out"),
    exclude: flags.exclude,
    overwrite: flags.toggle("overwrite", "Replace an existing file")
  },
  Effect.fnUntraced(function* ({ exclude, file, format: given, manifest, overwrite, snapshot, strict }) {
    const fs = yield* Filesystem
    const format = yield* formatOf(file, given)
    if (given === undefined && isCompressed(file)) {
      return yield* usage(
        `"${file}" is the name of a compressed tar, but export does not compress`,
        "Name the file .tar, or compress the output: fs-algebra export - --format tar | gzip > FILE."
      )
    }
    if (manifest && format === "tar") {
      return yield* usage("a tar archive cannot have a manifest", "Name the file .zip, or leave out --manifest.")
    }
    const options = { exclude, layout: manifest ? "manifest" : "plain", overwrite, strict } as const
    const write = (from: Algebra) =>
      file === standardStream ? exportToOutput(from, format, options) : exportToFile(from, file, format, options)
    if (snapshot === undefined) return yield* write(fs)
    yield* withExistingStore(
      (open) => Effect.flatMap(chooseSnapshot(open, snapshot), (chosen) => Effect.flatMap(open.snapshots.view(chosen), write)),
      noSnapshots
    )
  })
)

const ImportAnswer = Schema.Struct({
  file: Schema.String,
  format: Schema.Literals(["zip", "tar"]),
  files: Schema.Int,
  safety: Schema.optionalKey(FilesystemSnapshot)
})

const streamHostFile = (file: string, place: string) =>
  Stream.fromAsyncIterable<Uint8Array, IoError>(
    createReadStream(place),
    (error) => new IoError({ operation: "import", path: file, detail: String(error) })
  )

const checkFile = Effect.fnUntraced(function* (file: string) {
  const { isInteractive } = yield* Screen
  if (file === standardStream) {
    if (isInteractive)
      return yield* usage("an archive cannot be read from a terminal", "Name a file, or redirect an archive into the command.")
    return
  }
  const kind = kindOfHostPath(yield* hostPathOf(file))
  if (kind === undefined) {
    const hint = "Name a file on the machine, relative to the current directory and not to the root."
    return yield* archiveError("NotFound", file, "does not exist", hint)
  }
  if (kind === "directory") {
    const hint = "Name an archive; to work on a directory, use --root."
    return yield* archiveError("NotAFile", file, "is a directory", hint)
  }
})

const replaceTree = Effect.fnUntraced(function* (fs: Algebra, file: string, format: Format) {
  const screen = yield* Screen
  const place = yield* hostPathOf(file)
  const { importArchiveOf, importTarOf, importZipOf } = yield* Effect.promise(() => import("../../history/Archive.ts"))
  if (file !== standardStream && format === "zip") return yield* importArchiveOf(fs, place)
  const bytes = file === standardStream ? screen.input : streamHostFile(file, place)
  return yield* format === "zip" ? importZipOf(fs, bytes) : importTarOf(fs, bytes)
})

/** Fails because the snapshot before the import failed. The hint names the flag that imports without a snapshot. */
const failSnapshot = (error: SnapshotError | Complaint) =>
  Effect.gen(function* () {
    const { command, root } = yield* Settings
    const { program } = yield* Screen
    const complaint = error._tag === "Complaint" ? error : complaintOf(error, command, commandLine(program, root))
    const { code, hint, message } = complaint
    const hintText = `The snapshot before the import failed, so nothing has changed. ${hint} Or import without a snapshot: --no-safety.`
    return yield* new Complaint({ error: complaint.error, message, hint: hintText, code })
  })

const importWithSnapshot = <R>(options: StoreOptions, file: string, body: Effect.Effect<number, ArchiveError | FsError, R>) =>
  withStore(
    options,
    Effect.fnUntraced(function* ({ line, withStoreProgress: showing, snapshots }) {
      const tag = safetyTag("importing", printableName(file).slice(0, 200).toWellFormed())
      const safety = yield* snapshots.snapshot({ tag }).pipe(showing("Taking a snapshot of the current files"))
      const short = shortIds(yield* snapshots.list)(safety)
      // A failed import has changed nothing, so remove its snapshot.
      const files = yield* Effect.tapError(body, () => Effect.ignore(snapshots.forget(safety)))
      return { files, safety, remark: `the previous files are kept as ${short}; undo this with ${line("restore", short)}` }
    })
  ).pipe(Effect.catchTag(["SnapshotError", "Complaint"], failSnapshot))

export const importCommand = subcommand(
  "import",
  {
    summary: "Replace the whole tree by the content of an archive",
    description: `Replace everything below the root by the content of a ZIP or tar archive. Files that are not in the archive are removed.
The whole archive is checked first. If it is damaged, or has a name or a link that leads out, nothing changes. A
snapshot is taken first, so that the import can be undone; --no-safety skips the snapshot. FILE is relative to
the current directory, not to the root; - is standard input. With --backend memory only a copy is changed.`,
    examples: [
      ["backup.zip", "The tree as it was exported"],
      ["backup.zip --backend memory", "Check that the archive can be imported; nothing on disk changes"],
      ["- --format tar --root new < project.tar.gz", "From a pipe, into another directory"]
    ]
  },
  {
    file: file("The archive, relative to the current directory; - for standard input"),
    format: format,
    safety: flags.negatable("safety", "Take a snapshot first; --no-safety skips it"),
    anyRoot: flags.toggle("any-root", "Allow a snapshot even of a home directory or the whole machine")
  },
  Effect.fnUntraced(function* ({ file, format: given, safety: isSafe, ...options }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { backend, json } = yield* Settings
    const format = yield* formatOf(file, given)
    yield* checkFile(file)
    const body = replaceTree(fs, file, format).pipe(withProgress(`Importing ${file}`))
    const result = isSafe && backend !== "memory" ? yield* importWithSnapshot(options, file, body) : { files: yield* body }
    const safety = "safety" in result ? result.safety : undefined
    yield* writeDocument(
      ImportAnswer,
      { file, format, files: result.files, ...(safety && { safety }) },
      (look) => `Imported ${look.name(file)}, ${humanise.count(result.files, "file")}\n`
    )
    if (!json && "remark" in result) yield* screen.warn(errorStyle(screen).dim(result.remark))
  })
)
