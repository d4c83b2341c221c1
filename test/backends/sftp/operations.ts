/** Every operation as data, on a tree that the tests plant and read without the library. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import { directory } from "../../conformance/filesystems.ts"
import { openPiped } from "./servers.ts"

export type Tree = Readonly<Record<string, string>>

/** Reads the tree without the library: contents, link targets, and the mode and time of `mode.txt`. */
export const treeOf = (root: string): Tree => {
  const out: Record<string, string> = {}
  for (const name of Fs.readdirSync(root, { recursive: true, encoding: "utf8" }).sort()) {
    const stats = Fs.lstatSync(join(root, name))
    out[name] = stats.isDirectory()
      ? "/"
      : stats.isSymbolicLink()
        ? `-> ${Fs.readlinkSync(join(root, name))}`
        : Fs.readFileSync(join(root, name), "latin1")
    if (name === "mode.txt") out[name] += ` ${(stats.mode & 0o777).toString(8)} ${stats.mtimeMs}`
  }
  return out
}

export const plantTree = (root: string): void => {
  Fs.mkdirSync(join(root, "d/empty"), { recursive: true })
  Fs.writeFileSync(join(root, "d/a.txt"), "old\n")
  Fs.writeFileSync(join(root, "b.txt"), "other\n")
  Fs.writeFileSync(join(root, "mode.txt"), "m", { mode: 0o640 })
  Fs.utimesSync(join(root, "mode.txt"), 1_000_000_000, 1_000_000_000)
}

export const large = "0123456789abcdef".repeat(20_000)

export interface Case {
  readonly name: string
  readonly run: (fs: Algebra) => Effect.Effect<unknown, unknown>
  /** True if the call succeeds no matter which of its packets is lost. */
  readonly isSafe: boolean
}

export const cases: ReadonlyArray<Case> = [
  { name: "stat", run: (fs) => fs.stat("d/a.txt"), isSafe: true },
  { name: "list", run: (fs) => fs.list("d"), isSafe: true },
  { name: "readString", run: (fs) => fs.readString("d/a.txt"), isSafe: true },
  { name: "write in mode create", run: (fs) => fs.write("d/new.txt", "new\n", { mode: "create" }), isSafe: true },
  { name: "write in mode replace", run: (fs) => fs.write("d/a.txt", "new\n"), isSafe: true },
  { name: "write of a large file", run: (fs) => fs.write("d/a.txt", large), isSafe: true },
  { name: "edit", run: (fs) => fs.edit("d/a.txt", { oldText: "old", newText: "new" }), isSafe: true },
  { name: "append", run: (fs) => fs.write("d/a.txt", "more\n", { mode: "append" }), isSafe: false },
  { name: "append to a missing file", run: (fs) => fs.write("d/new.txt", "first\n", { mode: "append" }), isSafe: true },
  { name: "append of a large text", run: (fs) => fs.write("d/a.txt", large, { mode: "append" }), isSafe: true },
  {
    name: "sink",
    run: (fs) => Stream.run(Stream.make(new TextEncoder().encode("from a stream\n")), fs.sink("d/a.txt")),
    isSafe: false
  },
  { name: "mkdir", run: (fs) => fs.mkdir("d/made"), isSafe: false },
  { name: "delete of a file", run: (fs) => fs.delete("b.txt"), isSafe: false },
  { name: "delete of a directory", run: (fs) => fs.delete("d/empty"), isSafe: false },
  { name: "move", run: (fs) => fs.move("b.txt", "d/moved.txt"), isSafe: false },
  { name: "move over a file", run: (fs) => fs.move("b.txt", "d/a.txt", { overwrite: true }), isSafe: false },
  { name: "symlink", run: (fs) => fs.symlink("link", "d/a.txt"), isSafe: false },
  {
    name: "setAttributes",
    run: (fs) => fs.setAttributes("mode.txt", { mode: 0o600, modifiedAt: DateTime.makeUnsafe(1_200_000_000_000) }),
    isSafe: false
  }
]

export const oldTree = Effect.map(directory, (root) => {
  plantTree(root)
  return treeOf(root)
})

export const newTree = ({ run }: Case) =>
  Effect.gen(function* () {
    const root = yield* directory
    plantTree(root)
    const fs = make(yield* openPiped(root))
    yield* run(fs)
    // The server answers in order, so it has removed the temporary file before it answers this call.
    yield* fs.exists("b.txt")
    return treeOf(root)
  })

export const hidden = (tree: Tree): ReadonlyArray<string> => Object.keys(tree).filter((name) => name.includes(".~fsa-"))
