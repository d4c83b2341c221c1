/**
 * `export`: the whole tree, now or as a snapshot has it, in one archive that every system can unpack.
 */
import { statSync } from "node:fs"
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type { ExportOptions } from "../../history/Archive.ts"
import { document } from "../answer.ts"
import * as archives from "../archives.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { choose, noSnapshots } from "../snapshotChoice.ts"
import { withExistingStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

const Answer = Schema.Struct({
  file: Schema.String,
  format: Schema.Literals(["zip", "tar"]),
  /** Of the archive. */
  bytes: Schema.Int,
  files: Schema.optionalKey(Schema.Int)
})

const load = Effect.promise(() => import("../../history/Archive.ts"))

const toOutput = Effect.fnUntraced(function* (fs: Algebra, format: archives.Format, options: ExportOptions) {
  const screen = yield* Screen
  const { json } = yield* Settings
  if (json)
    return yield* archives.usage("--json and an archive cannot both be on standard output", "Name a file, or leave out --json.")
  if (screen.isTerminal)
    return yield* archives.usage("an archive is nothing for a terminal", "Name a file, or send it into a pipe.")
  const { exportTarOf, exportZipOf } = yield* load
  let written = 0
  const archive = format === "zip" ? exportZipOf(fs, options) : exportTarOf(fs, options)
  yield* Stream.runForEach(archive, (bytes) => {
    written += bytes.length
    return screen.write(bytes)
  }).pipe(withProgress("Exporting", () => humanise.bytes(written)))
})

interface FileOptions extends ExportOptions {
  readonly overwrite: boolean
}

const toFile = Effect.fnUntraced(function* (fs: Algebra, file: string, format: archives.Format, options: FileOptions) {
  const { overwrite } = options
  const place = yield* archives.placeOf(file)
  const kind = archives.kindAt(place)
  if (kind === "directory") {
    return yield* archives.outside("NotAFile", file, "is a directory", "Name a file, such as backup.zip in it.")
  }
  if (kind === "file" && !overwrite) {
    return yield* archives.outside(
      "AlreadyExists",
      file,
      "exists already",
      "Use --overwrite to replace it, or choose another name."
    )
  }
  if (archives.kindAt(dirname(place)) === undefined) {
    return yield* archives.outside(
      "NotFound",
      file,
      "lies in a directory that is not there",
      "Make that directory first, or choose another place; it is relative to the current directory and not to the root."
    )
  }
  const { exportArchiveOf, exportTarOf } = yield* load
  const { write } = yield* Effect.promise(() => import("../../history/zip/outside.ts"))
  const { promote } = yield* Effect.promise(() => import("../../model/FsError.ts"))
  const files = yield* (
    format === "zip"
      ? exportArchiveOf(fs, place, options)
      : Effect.as(
          write(
            place,
            () => exportTarOf(fs, options),
            (fault) => promote(fault, "export", file)
          ),
          undefined
        )
  ).pipe(withProgress(`Exporting to ${file}`))
  const answer = { file, format, bytes: statSync(place).size, ...(files !== undefined && { files }) }
  yield* document(Answer, answer, (look) => {
    const held = files === undefined ? "" : `, ${humanise.count(files, "file")}`
    return `Exported to ${look.name(file)}${held}, ${look.green(humanise.bytes(answer.bytes))}\n`
  })
})

export const exportCommand = subcommand(
  "export",
  {
    summary: "Write the whole tree into a ZIP or tar archive",
    description: `Write everything below the root into one archive: a ZIP, or a tar where the name ends in .tar. Permissions, empty
directories and links inside the tree go with it; a link that leads out of it is refused. A ZIP holds the tree at its top
level; with --manifest below files/, beside a manifest.json that counts it. Both can be imported. FILE is relative to the
current directory, not to the root; - is standard output. The file is there when all of it is written, and not before.`,
    examples: [
      ["- > backup.zip", "The tree as it is now; with a name instead of - it is written as one step"],
      ["lunch.tar --snapshot 'before lunch'", "A file, with the tree as a snapshot has it"],
      ["- | ssh host 'cat > backup.zip'", "Into a pipe"]
    ]
  },
  {
    file: archives.file("Where to write it, relative to the current directory; - for standard output"),
    snapshot: flags.text("snapshot", "ID", "The tree as this snapshot has it (default: as it is now)"),
    format: archives.format,
    manifest: flags.toggle("manifest", "Write a ZIP with a manifest.json, and the tree below files/"),
    overwrite: flags.toggle("overwrite", "Replace a file that is there"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ file, format: given, manifest, overwrite, snapshot, store }) {
    const fs = yield* Filesystem
    const format = yield* archives.formatOf(file, given)
    if (given === undefined && archives.isCompressed(file)) {
      return yield* archives.usage(
        `"${file}" is the name of a compressed tar, and what export writes is not compressed`,
        "Name it .tar, or have it compressed: fs-algebra export - --format tar | gzip > FILE."
      )
    }
    if (manifest && format === "tar") {
      return yield* archives.usage("a tar archive has no manifest", "Name the file .zip, or leave out --manifest.")
    }
    const options = { layout: manifest ? "manifest" : "plain", overwrite } as const
    const write = (from: Algebra) =>
      file === archives.standard ? toOutput(from, format, options) : toFile(from, file, format, options)
    if (snapshot === undefined) return yield* write(fs)
    yield* withExistingStore(
      store,
      (open) => Effect.flatMap(choose(open, snapshot), (chosen) => Effect.flatMap(open.snapshots.view(chosen), write)),
      noSnapshots(store)
    )
  })
)
