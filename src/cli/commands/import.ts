/** Replaces the whole tree by an archive. A slip could destroy much, so the current tree is first kept as a snapshot. */
import { createReadStream } from "node:fs"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type { ArchiveError, SnapshotError } from "../../history/errors.ts"
import { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { type FsError, IoError } from "../../model/FsError.ts"
import { writeDocument } from "../answer.ts"
import * as archives from "../archives.ts"
import { Complaint, usage } from "../exit.ts"
import * as flags from "../flags.ts"
import { complaintOf } from "../historyAdvice.ts"
import * as humanise from "../humanise.ts"
import { errorStyle } from "../look.ts"
import { printableName } from "../printable.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { commandLine } from "../shell.ts"
import { safetyTag, shortIds } from "../snapshotChoice.ts"
import { type StoreOptions, withStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

const Answer = Schema.Struct({
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
  if (file === archives.standardStream) {
    if (isInteractive)
      return yield* usage("an archive cannot be typed on a terminal", "Name a file, or send one into the command.")
    return
  }
  const kind = archives.kindOfHostPath(yield* archives.absolutePathOf(file))
  if (kind === undefined) {
    const hint = "Name a file of the machine, relative to the current directory and not to the root."
    return yield* archives.hostFileError("NotFound", file, "is not there", hint)
  }
  if (kind === "directory") {
    const hint = "Name an archive; to work on a directory, use --root."
    return yield* archives.hostFileError("NotAFile", file, "is a directory", hint)
  }
})

const replaceTree = Effect.fnUntraced(function* (fs: Algebra, file: string, format: archives.Format) {
  const screen = yield* Screen
  const place = yield* archives.absolutePathOf(file)
  const { importArchiveOf, importTarOf, importZipOf } = yield* Effect.promise(() => import("../../history/Archive.ts"))
  if (file !== archives.standardStream && format === "zip") return yield* importArchiveOf(fs, place)
  const bytes = file === archives.standardStream ? screen.input : streamHostFile(file, place)
  return yield* format === "zip" ? importZipOf(fs, bytes) : importTarOf(fs, bytes)
})

/** Fails before anything is imported, and names the flag to import without a snapshot. */
const failSnapshot = (error: SnapshotError | Complaint) =>
  Effect.gen(function* () {
    const { command, root } = yield* Settings
    const { program } = yield* Screen
    const complaint = error._tag === "Complaint" ? error : complaintOf(error, command, commandLine(program, root))
    const { code, hint, message } = complaint
    const hintText = `The safety snapshot failed, so nothing has changed. ${hint} Or import without one: --no-safety.`
    return yield* new Complaint({ error: complaint.error, message, hint: hintText, code })
  })

const importWithSnapshot = <R>(options: StoreOptions, file: string, body: Effect.Effect<number, ArchiveError | FsError, R>) =>
  withStore(
    options,
    Effect.fnUntraced(function* ({ line, withStoreProgress: showing, snapshots }) {
      const tag = safetyTag("importing", printableName(file).slice(0, 200).toWellFormed())
      const safety = yield* snapshots.snapshot({ tag }).pipe(showing("Taking a snapshot of the current files"))
      const short = shortIds(yield* snapshots.list)(safety)
      // A failed import has changed nothing, so its snapshot is not needed.
      const files = yield* Effect.tapError(body, () => Effect.ignore(snapshots.forget(safety)))
      return { files, safety, remark: `the previous files are kept as ${short}; undo this with ${line("restore", short)}` }
    })
  ).pipe(Effect.catchTag(["SnapshotError", "Complaint"], failSnapshot))

export const importCommand = subcommand(
  "import",
  {
    formatSummary: "Replace the whole tree by the content of an archive",
    description: `Replace everything below the root by the content of a ZIP or tar archive; files that the archive lacks are removed.
The whole archive is checked first: if it is damaged, or has a name or a link that leads out, nothing changes. A
snapshot is taken first, so that the import can be undone; --no-safety skips the snapshot. FILE is relative to
the current directory, not to the root; - is standard input. With --backend memory only a copy is changed.`,
    examples: [
      ["backup.zip", "The tree as it was exported"],
      ["backup.zip --backend memory", "Check that it can be imported; nothing on disk changes"],
      ["- --format tar --root new < project.tar.gz", "From a pipe, into another directory"]
    ]
  },
  {
    file: archives.file("The archive, relative to the current directory; - for standard input"),
    format: archives.format,
    safety: flags.negatable("safety", "Take a snapshot first; --no-safety skips it"),
    anyRoot: flags.toggle("any-root", "Allow a snapshot even of a home directory or the whole machine"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ file, format: given, safety: isSafe, ...options }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { backend, json } = yield* Settings
    const format = yield* archives.formatOf(file, given)
    yield* checkFile(file)
    const body = replaceTree(fs, file, format).pipe(withProgress(`Importing ${file}`))
    const kept = isSafe && backend !== "memory" ? yield* importWithSnapshot(options, file, body) : { files: yield* body }
    const safety = "safety" in kept ? kept.safety : undefined
    yield* writeDocument(
      Answer,
      { file, format, files: kept.files, ...(safety && { safety }) },
      (look) => `Imported ${look.name(file)}, ${humanise.count(kept.files, "file")}\n`
    )
    if (!json && "remark" in kept) yield* screen.warn(errorStyle(screen).dim(kept.remark))
  })
)
