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
import { document, list } from "../answer.ts"
import { Complaint, exitCodeOf, systemFailed, usage } from "../exit.ts"
import * as humanise from "../humanise.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { Host } from "../workspace.ts"
import { reading } from "./file.ts"
import { checked } from "./positions.ts"

const Answer = Schema.Struct({ position: Schema.Int, into: Schema.String, files: Schema.Int })

const outside = (tag: "DirectoryNotEmpty" | "NotADirectory", directory: string, what: string): Complaint =>
  new Complaint({
    error: { _tag: tag, operation: "journal replay", path: directory },
    message: `"${directory}" ${what}`,
    hint: "Name a directory of the machine that is empty or does not exist yet.",
    code: exitCodeOf(tag)
  })

const unmade = (directory: string, error: unknown): Complaint =>
  new Complaint({
    error: { _tag: "IoError", operation: "journal replay", path: directory },
    message: `"${directory}" cannot be made or read, ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
    hint: "Check the permissions of that directory, then try again.",
    code: systemFailed
  })

const namesIn = (place: string): ReadonlyArray<string> | undefined => {
  try {
    return readdirSync(place)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw error
  }
}

/** Makes the directory. Returns the first directory that was created, or `undefined` if it existed. */
const prepare = (directory: string, place: string): Effect.Effect<string | undefined, Complaint> =>
  Effect.suspend(() => {
    try {
      const names = namesIn(place)
      if (names === undefined) return Effect.succeed(makeDirectories(place))
      return names.length === 0
        ? Effect.succeed(undefined)
        : Effect.fail(outside("DirectoryNotEmpty", directory, "is not empty"))
    } catch (error) {
      const isFile = (error as NodeJS.ErrnoException).code === "ENOTDIR"
      return Effect.fail(isFile ? outside("NotADirectory", directory, "is not a directory") : unmade(directory, error))
    }
  })

/** Writes the whole tree or nothing: a failure removes the directories that were made. */
const write = Effect.fnUntraced(function* (tree: Algebra, directory: string) {
  const screen = yield* Screen
  const open = yield* Host
  const place = resolve(screen.directory, directory)
  let made: string | undefined
  const filling = Effect.gen(function* () {
    made = yield* prepare(directory, place)
    const fill = Effect.flatMap(Filesystem, (fs) => importTarOf(fs, exportTarOf(tree)))
    return yield* Effect.provide(fill, open(place))
  })
  return yield* Effect.onError(filling, () =>
    Effect.sync(() => {
      if (made !== undefined) rmSync(made, { recursive: true, force: true })
    })
  ).pipe(Effect.provideService(Limits, unlimited))
})

export interface ReplayOptions {
  readonly to: number | undefined
  readonly into: string | undefined
}

export const replay = Effect.fnUntraced(function* (file: string, { into, to }: ReplayOptions) {
  if (into?.trim() === "")
    return yield* usage("the name of the directory is blank", "Name one that is empty or does not exist yet.")
  const journal = yield* reading(file)
  const last = yield* checked(journal, to ?? 0)
  const position = to ?? last
  const tree = yield* Replay.tree(journal, { until: position }).pipe(withProgress(`Reading ${file}`))
  if (into === undefined) {
    const found = tree.globStream("*", { kinds: ["file", "directory", "symlink", "other"], sizes: true })
    yield* list(GlobMatch, found, (look) => ({
      lines: (entries) => entries.map(({ kind, path }) => `${look.entry(path, kind)}\n`).join("")
    })).pipe(Effect.provideService(Limits, unlimited))
    return
  }
  const files = yield* write(tree, into).pipe(withProgress(`Writing ${into}`))
  yield* document(
    Answer,
    { position, into, files },
    (look) =>
      `Wrote the tree of position ${look.yellow(`${position}`)} to ${look.name(into)}, ${humanise.count(files, "file")}\n`
  )
}, Effect.scoped)
