import { readdirSync, rmSync } from "node:fs"
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { exportTarOf, importTarOf } from "../../history/Archive.ts"
import * as Replay from "../../journal/Replay.ts"
import { GlobMatch } from "../../model/Entry.ts"
import { Limits, unlimited } from "../../model/Limits.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { listLines, withProgress, writeDocument } from "../answer.ts"
import { type Complaint, hostPathError, usage } from "../exit.ts"
import * as humanise from "../humanise.ts"
import { Screen } from "../screen.ts"
import { HostOpener } from "../workspace.ts"
import { checkPosition, openForReading } from "./file.ts"

const Answer = Schema.Struct({ position: Schema.Int, into: Schema.String, files: Schema.Int })

const directoryError = (tag: "DirectoryNotEmpty" | "NotADirectory", directory: string, what: string): Complaint =>
  hostPathError(tag, "journal replay", directory, what, "Name a directory on the machine that is empty or does not exist yet.")

const cannotMakeError = (directory: string, error: unknown): Complaint =>
  hostPathError(
    "IoError",
    "journal replay",
    directory,
    `cannot be created or read (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
    "Check the permissions of that directory, then try again."
  )

const namesIn = (place: string): ReadonlyArray<string> | undefined => {
  try {
    return readdirSync(place)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw error
  }
}

/**
 * Creates the directory and its missing parents, or accepts an existing empty directory. Returns the outermost directory that
 * was created, or `undefined` if there is none.
 */
const makeEmptyDirectory = (directory: string, place: string): Effect.Effect<string | undefined, Complaint> =>
  Effect.suspend(() => {
    try {
      const names = namesIn(place)
      if (names === undefined) return Effect.succeed(makeDirectories(place))
      return names.length === 0
        ? Effect.succeed(undefined)
        : Effect.fail(directoryError("DirectoryNotEmpty", directory, "is not empty"))
    } catch (error) {
      const isFile = (error as NodeJS.ErrnoException).code === "ENOTDIR"
      return Effect.fail(
        isFile ? directoryError("NotADirectory", directory, "is not a directory") : cannotMakeError(directory, error)
      )
    }
  })

/** Writes the whole tree or nothing. A failure also removes the directories that were created. */
const writeTree = Effect.fnUntraced(function* (tree: Algebra, directory: string) {
  const screen = yield* Screen
  const open = yield* HostOpener
  const place = resolve(screen.directory, directory)
  let firstMadeDirectory: string | undefined
  const fillDirectory = Effect.gen(function* () {
    firstMadeDirectory = yield* makeEmptyDirectory(directory, place)
    const importTree = Effect.flatMap(Filesystem, (fs) => importTarOf(fs, exportTarOf(tree)))
    return yield* Effect.provide(importTree, open(place))
  })
  return yield* Effect.onError(fillDirectory, () =>
    Effect.sync(() => {
      if (firstMadeDirectory !== undefined) rmSync(firstMadeDirectory, { recursive: true, force: true })
    })
  ).pipe(Effect.provideService(Limits, unlimited))
})

export interface ReplayOptions {
  readonly file: string
  readonly to: number | undefined
  readonly into: string | undefined
}

export const replay = Effect.fnUntraced(function* ({ file, into, to }: ReplayOptions) {
  if (into?.trim() === "")
    return yield* usage("the name of the directory is blank", "Name a directory that is empty or does not exist yet.")
  const journal = yield* openForReading(file)
  const last = yield* checkPosition(journal, to ?? 0)
  const position = to ?? last
  const tree = yield* Replay.tree(journal, { until: position }).pipe(withProgress(`Reading ${file}`))
  if (into === undefined) {
    const found = tree.globStream("*", { kinds: ["file", "directory", "symlink", "other"], sizes: true })
    yield* listLines(GlobMatch, found, (look, { kind, path }) => `${look.entry(path, kind)}\n`).pipe(
      Effect.provideService(Limits, unlimited)
    )
    return
  }
  const files = yield* writeTree(tree, into).pipe(withProgress(`Writing ${into}`))
  yield* writeDocument(
    Answer,
    { position, into, files },
    (look) =>
      `Wrote the tree of position ${look.yellow(`${position}`)} to ${look.name(into)}, ${humanise.count(files, "file")}\n`
  )
}, Effect.scoped)
