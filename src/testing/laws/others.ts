/** What a disk may hold that nobody writes through a filesystem: FIFOs and devices, names that are no paths, files of writes that died. */
import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { arrange, chapter, leaves } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { directory } from "../Files.ts"
import { abilities, Bench, type Law } from "../Law.ts"
import { changingCalls, collect, paths, possible, readingCalls, utf8 } from "../operations.ts"

const other = chapter({ kind: "ability", needs: ["others", "write", "delete"] })
const unaddressable = chapter({ kind: "ability", needs: ["unaddressable names", "write", "delete"] })
const temporary = chapter({ kind: "service", needs: ["write"] })
const sweeping = chapter({ kind: "service", needs: ["write", "delete"] })

const opening = new Set([
  "read",
  "readString",
  "readBytes",
  "version",
  "stream",
  "lines",
  "write",
  "writeBytes",
  "sink",
  "edit"
])

const leftover = ".~fsa-0000.tmp"

const leave = (fs: Algebra, path: string) => Effect.asVoid(fs.port.write<never, never>(path as FsPath, utf8("half"), "create"))

export const otherLaws: ReadonlyArray<Law> = [
  other.law(
    "a FIFO or device is NotAFile at once, in every call that would open it",
    "behaviours: regressions",
    function* (fs) {
      const { makeOther } = yield* Bench
      yield* makeOther!("pipe")
      const calls = possible([...readingCalls, ...changingCalls], abilities(fs, yield* Bench))
      for (const call of calls.filter(({ operation }) => opening.has(operation))) yield* fails(call.run(fs, "pipe"), "NotAFile")
      yield* fails(fs.copy("pipe", "copy"), "NotAFile", { path: "pipe" })
      yield* fails(fs.write("pipe", "x", { mode: "create" }), ["NotAFile", "AlreadyExists"])
      yield* equal(yield* fs.exists("copy"), false)
    }
  ),
  other.law("a FIFO or device can be listed, moved and deleted", "semantics: -", function* (fs) {
    const { makeOther } = yield* Bench
    yield* makeOther!("pipe")
    yield* has((yield* fs.list())[0]!, { name: "pipe", kind: "other", isFile: false, isDirectory: false })
    yield* has(yield* fs.stat("pipe"), { kind: "other", isFile: false })
    yield* fs.move("pipe", "d/moved")
    yield* has(yield* fs.stat("d/moved"), { kind: "other" })
    yield* equal(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
    yield* leaves(fs, {})
  }),
  other.law("a search counts a FIFO or device as unreadable", "semantics: -", function* (fs) {
    const { makeOther } = yield* Bench
    yield* makeOther!("pipe")
    yield* arrange(fs, { a: "hit" })
    const result = yield* fs.grep("hit")
    yield* equal(paths(result.matches), ["a"])
    yield* has(result.skipped, { unreadable: 1, unreadablePaths: ["pipe" as never] })
  }),

  unaddressable.law("a name that no path can express is listed, escaped", "C-05", function* (fs) {
    const { makeUnaddressable } = yield* Bench
    yield* makeUnaddressable!
    yield* arrange(fs, { a: "hit" })
    const strange = (yield* fs.list()).filter(({ addressable }) => !addressable)
    yield* equal(strange.length, 1)
    yield* holds(!/[\0-\x1f\x7f]/.test(strange[0]!.name), "a name without control characters", strange[0]!.name)
  }),
  unaddressable.law("a name that no path can express is left out of searches, and counted", "C-05", function* (fs) {
    const { makeUnaddressable } = yield* Bench
    yield* makeUnaddressable!
    yield* arrange(fs, { a: "hit" })
    const result = yield* fs.glob("*")
    yield* equal(paths(result.matches), ["a"])
    yield* has(result.skipped, { unreadable: 1 })
    yield* has((yield* fs.grep("hit")).skipped, { unreadable: 1 })
  }),
  unaddressable.law("a recursive delete removes names that no path can express", "C-05", function* (fs) {
    const { makeUnaddressable } = yield* Bench
    yield* makeUnaddressable!
    const [strange] = yield* fs.port.list("." as FsPath)
    yield* fs.mkdir("d")
    yield* fs.port.rename((strange?.key ?? "") as FsPath, `d/${strange?.key ?? ""}` as FsPath, { replace: false })
    yield* equal(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
    yield* leaves(fs, {})
  }),

  temporary.law("the file of a write in progress is never shown", "behaviours: regressions", function* (fs) {
    yield* arrange(fs, { "d/a": "hit" })
    yield* leave(fs, `d/${leftover}`)
    yield* equal(
      (yield* fs.list("d")).map(({ name }) => name),
      ["a"]
    )
    yield* equal(paths(yield* collect(fs.walk())), ["d", "d/a"])
    yield* equal(paths((yield* fs.glob("**")).matches), ["d/a"])
    yield* equal(paths((yield* fs.grep("a|hit")).matches), ["d/a"])
    yield* equal(yield* fs.exists(`d/${leftover}`), false)
  }),
  temporary.law("the file of a write in progress is not copied", "C-49", function* (fs) {
    yield* arrange(fs, { "d/a": "x" })
    yield* leave(fs, `d/${leftover}`)
    yield* equal(yield* fs.copy("d", "e"), { files: 1, directories: 1, bytes: 1 })
    yield* leaves(fs, { "d/a": "x", [`d/${leftover}`]: "half", "e/a": "x" })
  }),
  sweeping.law("a directory that shows nothing is empty", "C-15, C-49", function* (fs) {
    yield* arrange(fs, { d: directory, "e/b": "y" })
    yield* leave(fs, `d/${leftover}`)
    yield* equal(yield* fs.delete("d"), { deleted: 1, directories: 1 })
    yield* leave(fs, `e/${leftover}`)
    yield* equal(yield* fs.delete("e", { recursive: true }), { deleted: 1, directories: 1 })
    yield* leaves(fs, {})
  })
]
