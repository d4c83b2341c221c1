import { statSync } from "node:fs"
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type { ExportOptions, SkippedEntry } from "../../history/Archive.ts"
import { writeDocument } from "../answer.ts"
import * as archives from "../archives.ts"
import { usage } from "../exit.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle } from "../look.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { chooseSnapshot, noSnapshots } from "../snapshotChoice.ts"
import { withExistingStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

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
  yield* screen.warn(
    `${yellow("left out:")} ${humanise.whole(skipped.length)} of the entries, because import would refuse them`
  )
  for (const { detail, path } of skipped.slice(0, maxShownEntries)) yield* screen.warn(`  ${name(path)}: ${detail}`)
  if (skipped.length > maxShownEntries)
    yield* screen.warn(dim(`  and ${humanise.whole(skipped.length - maxShownEntries)} more; --json lists all`))
  yield* screen.warn(dim("--strict fails instead; --exclude GLOB leaves entries out silently"))
})

const loadArchive = Effect.promise(() => import("../../history/Archive.ts"))

const exportToOutput = Effect.fnUntraced(function* (fs: Algebra, format: archives.Format, options: ExportOptions) {
  const screen = yield* Screen
  const { json } = yield* Settings
  if (json) return yield* usage("--json and an archive cannot both be on standard output", "Name a file, or leave out --json.")
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

const exportToFile = Effect.fnUntraced(function* (fs: Algebra, file: string, format: archives.Format, options: FileOptions) {
  const { overwrite } = options
  const skipped: Array<SkippedEntry> = []
  const exportOptions = { ...options, onSkipped: (entry: SkippedEntry) => void skipped.push(entry) }
  const { json } = yield* Settings
  const archivePath = yield* archives.absolutePathOf(file)
  const kind = archives.kindOfHostPath(archivePath)
  if (kind === "directory") {
    return yield* archives.hostFileError("NotAFile", file, "is a directory", "Name a file, such as backup.zip in it.")
  }
  if (kind === "file" && !overwrite) {
    return yield* archives.hostFileError(
      "AlreadyExists",
      file,
      "exists already",
      "Use --overwrite to replace it, or choose another name."
    )
  }
  if (archives.kindOfHostPath(dirname(archivePath)) === undefined) {
    return yield* archives.hostFileError(
      "NotFound",
      file,
      "lies in a directory that does not exist",
      "Make that directory first, or choose another place; it is relative to the current directory and not to the root."
    )
  }
  const { exportArchiveOf, exportTarOf } = yield* loadArchive
  const { write } = yield* Effect.promise(() => import("../../history/zip/outside.ts"))
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
    formatSummary: "Write the whole tree into a ZIP or tar archive",
    description: `Write everything below the root into one archive: a ZIP, or a tar if the name ends in .tar. Permissions, empty
directories and links inside the tree are kept. Entries that import would refuse are left out and listed: links out of
the tree, FIFOs, second spellings of a name; with --strict the export fails instead. A ZIP holds the tree at its top
level; with --manifest below files/, beside a manifest.json. Both can be imported. FILE is relative to the current
directory, not to the root; - is standard output. The file appears only when it is complete.`,
    examples: [
      ["- > backup.zip", "The current tree"],
      ["lunch.tar --snapshot 'before lunch'", "The tree of a snapshot"],
      ["- | ssh host 'cat > backup.zip'", "Into a pipe"]
    ]
  },
  {
    file: archives.file("The archive to write, relative to the current directory; - for standard output"),
    snapshot: flags.text("snapshot", "ID", "Export this snapshot (default: the current tree)"),
    format: archives.format,
    manifest: flags.toggle("manifest", "Write a ZIP with a manifest.json, and the tree below files/"),
    strict: flags.toggle("strict", "Fail if an entry would be left out"),
    exclude: flags.exclude,
    overwrite: flags.toggle("overwrite", "Replace an existing file"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ exclude, file, format: given, manifest, overwrite, snapshot, store, strict }) {
    const fs = yield* Filesystem
    const format = yield* archives.formatOf(file, given)
    if (given === undefined && archives.isCompressed(file)) {
      return yield* usage(
        `"${file}" is the name of a compressed tar, but export does not compress`,
        "Name it .tar, or compress the output: fs-algebra export - --format tar | gzip > FILE."
      )
    }
    if (manifest && format === "tar") {
      return yield* usage("a tar archive has no manifest", "Name the file .zip, or leave out --manifest.")
    }
    const options = { exclude, layout: manifest ? "manifest" : "plain", overwrite, strict } as const
    const write = (from: Algebra) =>
      file === archives.standardStream ? exportToOutput(from, format, options) : exportToFile(from, file, format, options)
    if (snapshot === undefined) return yield* write(fs)
    yield* withExistingStore(
      store,
      (open) => Effect.flatMap(chooseSnapshot(open, snapshot), (chosen) => Effect.flatMap(open.snapshots.view(chosen), write)),
      noSnapshots(store)
    )
  })
)
