import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Algebra, make } from "../../filesystem/Filesystem.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, join, root, segments } from "../../model/FsPath.ts"
import { type Backend, follow, type NewEntry, portable, type Seen } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"
import { expectSameSides, expectTree, lawForms, onBothSides, plantFiles } from "../chapter.ts"
import { equal } from "../expect.ts"
import { directory, type Files, link } from "../Files.ts"
import type { Law } from "../Law.ts"
import { toBytes, collect, encodeUtf8 } from "../operations.ts"

const accelerated = lawForms("acceleration", "accelerations")
const linking = lawForms("acceleration", "accelerations", "links")
const making = lawForms("acceleration", "accelerations", "links", "write")
const deleting = lawForms("acceleration", "accelerations", "write", "delete")

const files: Files = {
  "text.txt": "one\ntwo hit\r\nthree",
  "mark.txt": toBytes(0xef, 0xbb, 0xbf, ...encodeUtf8("hit")),
  "binary.bin": toBytes(0, 1, 2, 255),
  empty: "",
  large: "0123456789hit\n".repeat(20_000),
  "d/e/f.ts": "hit\nhit",
  "d/e-f.ts": "hit",
  "d/.hidden": "hit",
  "d/none": directory,
  ".gitignore": "*.bin\n/d/e/\n"
}

type Outcome = Effect.Effect<unknown, { readonly _tag: string }>

/** Returns the result, or the failure without the system's own error, which contains descriptors. */
const outcome = (call: Outcome): Effect.Effect<unknown> =>
  Effect.match(call, { onSuccess: (value) => value, onFailure: (error) => ({ failed: { ...error, cause: undefined } }) })

const paths = ["text.txt", "mark.txt", "binary.bin", "empty", "large", "d", ".", "missing", "empty/x", "d/e/f.ts"]

const readCalls: ReadonlyArray<readonly [what: string, call: (fs: Algebra, path: string) => Outcome]> = [
  ["stat", (fs, path) => fs.stat(path)],
  ["list", (fs, path) => fs.list(path)],
  ["read", (fs, path) => fs.read(path, { version: true })],
  ["read of a page", (fs, path) => fs.read(path, { offset: 1, limit: 1 })],
  ["readString", (fs, path) => fs.readString(path)],
  ["readBytes", (fs, path) => fs.readBytes(path, { version: true })],
  ["readBytes of a part", (fs, path) => fs.readBytes(path, { offset: 2, limit: 3 })],
  ["version", (fs, path) => fs.version(path)],
  ["lines", (fs, path) => collect(fs.lines(path))],
  ["stream", (fs, path) => collect(fs.stream(path))]
]

const searchCalls: ReadonlyArray<readonly [what: string, call: (fs: Algebra) => Outcome]> = [
  ["walk", (fs) => collect(fs.walk(".", { sizes: true }))],
  ["walk with ignore files", (fs) => collect(fs.walk(".", { gitignore: true, exclude: "e" }))],
  ["glob", (fs) => fs.glob("**", { sizes: true, kinds: ["file", "directory"] })],
  ["glob with ignore files", (fs) => fs.glob("*", { gitignore: true })],
  ["glob of a page", (fs) => fs.glob("**", { maxMatches: 3 })],
  ["grep", (fs) => fs.grep("h(i)t", { context: 1 })],
  ["grep with ignore files", (fs) => fs.grep("hit", { gitignore: true })],
  ["grep of a page", (fs) => fs.grep("hit", { maxMatches: 2 })],
  ["grep of a control character", (fs) => fs.grep("\\x01")],
  ["grep of small files", (fs) => fs.grep("hit", { maxFileSize: 100 })]
]

/** Looks up each component of a path on its own. Ends at a missing entry, or after an entry that is not a directory. */
const lookUpEach = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<ReadonlyArray<Seen>, Fault> {
  const seen: Array<Seen> = []
  let at = root
  for (const name of ["", ...segments(path)]) {
    if (name !== "") at = join(at, name)
    const stat = yield* port.stat(at)
    if (stat === undefined) break
    seen.push(stat.kind === "symlink" ? { stat, target: yield* follow(port.links!, at) } : { stat })
    if (stat.kind !== "directory") break
  }
  return seen
})

const withoutAccelerations = (fs: Algebra): Algebra => make(portable(fs.port))

/** The entries to create. Some entries cannot be created. */
const entries: ReadonlyArray<readonly [path: string, bytes?: Uint8Array | undefined, mode?: number]> = [
  ["new"],
  ["new/deep", undefined, 0o700],
  ["new/text", encodeUtf8("a%s\\n'\"$(x)`x`\r\n\n")],
  ["new/every byte", toBytes(...Array.from({ length: 256 }, (_, byte) => byte))],
  ["new/option", encodeUtf8("-n")],
  ["new/empty", new Uint8Array(0)],
  ["new/run", encodeUtf8("run"), 0o755],
  ["new/own", encodeUtf8("own"), 0o600],
  ["new/all", encodeUtf8("all"), 0o666],
  ["new/shared", undefined, 0o777],
  ["new/fixed", encodeUtf8("fixed"), 0o444],
  ["new/large", encodeUtf8("0123456789".repeat(8_000))],
  ["new/it's $1; #", encodeUtf8("odd")],
  ["new/deep/below", encodeUtf8("below")],
  ["new/text/below", encodeUtf8("none")],
  ["d/e/in", encodeUtf8("in")],
  ["d"],
  ["d", encodeUtf8("a file")],
  ["text.txt", encodeUtf8("other")],
  ["text.txt"],
  ["text.txt/below", encodeUtf8("none")],
  ["nowhere/file", encodeUtf8("none")],
  ["nowhere/directory"]
]

const createEntry = Effect.fnUntraced(function* (
  port: Backend,
  { bytes, mode, path }: NewEntry
): Effect.fn.Return<void, Fault> {
  yield* bytes === undefined ? port.makeDirectory(path) : port.write<never, never>(path, bytes, "create")
  if (mode !== undefined) yield* port.attributes!.set(path, { mode })
})

const makingMany = (port: Backend) => {
  const perform = performing(port, "MakeMany")
  return (
    perform &&
    ((entries: ReadonlyArray<NewEntry>) =>
      Effect.map(
        perform({ _tag: "MakeMany", entries }),
        Option.getOrElse(() => entries.map(() => false))
      ))
  )
}

export const accelerationLaws: ReadonlyArray<Law> = [
  accelerated("port: accelerations", { a: "1234" }).law(
    "the accelerated read returns the file, or no result for a file above its limit",
    function* (fs) {
      const perform = performing(fs.port, "Read")
      if (perform === undefined) return
      const path = "a" as FsPath
      const read = (maxBytes: number) => Effect.map(perform({ _tag: "Read", path, maxBytes }), Option.getOrUndefined)
      yield* equal<unknown>(yield* read(3), undefined)
      const whole = yield* read(4)
      if (whole === undefined) return
      yield* equal(whole.bytes, encodeUtf8("1234"))
      yield* equal(whole.stat.sizeBytes, 4)
      if (whole.isLent === true) return
      whole.bytes.fill(0)
      yield* equal((yield* read(4))?.bytes, encodeUtf8("1234"))
    }
  ),
  accelerated("port: accelerations", files).law("the accelerated stat returns the same as the port", function* (fs) {
    const perform = performing(fs.port, "Stat")
    if (perform === undefined) return
    for (const path of paths.map((path) => path as FsPath)) {
      const stat = yield* perform({ _tag: "Stat", path })
      if (Option.isSome(stat)) yield* equal<unknown>(stat.value, yield* fs.port.stat(path), path)
    }
  }),
  accelerated("port: accelerations", files).law(
    "the accelerated read of many files returns the results of single reads, or no result",
    function* (fs) {
      const perform = performing(fs.port, "ReadMany")
      if (perform === undefined) return
      const readMany = (paths: ReadonlyArray<FsPath>) =>
        Effect.map(perform({ _tag: "ReadMany", paths, maxBytes: 1000 }), Option.getOrUndefined)
      const all = paths.map((path) => path as FsPath)
      const wholes = yield* readMany(all)
      if (wholes === undefined) return
      yield* equal(wholes.length, all.length)
      for (const [index, whole] of wholes.entries()) {
        const path = all[index]!
        if (whole === undefined) continue
        yield* equal(whole.bytes, (yield* withoutAccelerations(fs).readBytes(path)).content, path)
        yield* equal<unknown>(whole.stat, yield* fs.port.stat(path), path)
      }
      yield* equal<unknown>((yield* readMany(["large" as FsPath]))?.[0], undefined)
    }
  ),
  linking("port: accelerations", { ...files, "d/link": link("../d/e"), lone: link("none") }).law(
    "the accelerated lookup of a path returns the results of single lookups",
    function* (fs) {
      const perform = performing(fs.port, "Look")
      if (perform === undefined) return
      for (const name of [...paths, "d/none/x/y", "d/link", "d/link/f.ts", "lone", "lone/x"]) {
        const path = name as FsPath
        const seen = yield* perform({ _tag: "Look", path })
        if (Option.isSome(seen)) yield* equal(seen.value, yield* lookUpEach(fs.port, path), name)
      }
    }
  ),
  ...readCalls.map(([what, call]) =>
    accelerated("architecture: accelerations", files).law(
      `${what} has the same result with and without accelerations`,
      function* (fs) {
        for (const path of paths) {
          yield* equal(
            yield* outcome(call(fs, path)),
            yield* outcome(call(withoutAccelerations(fs), path)),
            `${what} of ${path}`
          )
        }
      }
    )
  ),
  ...searchCalls.map(([what, call]) =>
    accelerated("architecture: accelerations", files).law(
      `${what} returns the same matches with and without accelerations`,
      function* (fs) {
        yield* equal(yield* outcome(call(fs)), yield* outcome(call(withoutAccelerations(fs))))
      }
    )
  ),
  deleting("port: accelerations", onBothSides({ "text.txt": "text", "d/e/f.ts": "hit" })).law(
    "the accelerated creation of many entries has the result of single creations, or no result",
    function* (fs) {
      const { attributes } = fs.port
      const makeMany = makingMany(fs.port)
      if (makeMany === undefined) return
      const all = (base: string): ReadonlyArray<NewEntry> =>
        entries.map(([path, bytes, mode]) => ({
          path: join(base as FsPath, path),
          bytes,
          mode: attributes === undefined ? undefined : mode
        }))
      const fast = all("fast")
      const slow = all("slow")
      const made = yield* makeMany(fast)
      yield* equal(made.length, fast.length)
      for (const [index, entry] of fast.entries()) {
        const one = yield* outcome(createEntry(fs.port, slow[index]!))
        yield* equal(made[index] === true ? undefined : yield* outcome(createEntry(fs.port, entry)), one, entry.path)
        const [stat, other] = [yield* fs.port.stat(entry.path), yield* fs.port.stat(slow[index]!.path)]
        yield* equal([stat?.kind, stat?.sizeBytes, stat?.mode], [other?.kind, other?.sizeBytes, other?.mode], entry.path)
      }
      yield* equal(
        yield* makeMany(fast),
        fast.map(() => false)
      )
      yield* expectSameSides(fs)
    }
  ),
  making("port: accelerations").law("the accelerated creation of many entries follows no link", function* (fs) {
    const links: Files = { "d/e/f.ts": "hit", away: link("d"), lone: link("missing") }
    yield* plantFiles(fs, links)
    const makeMany = makingMany(fs.port)
    if (makeMany === undefined) return
    const entries = ["away", "away/in", "away/e/in", "lone", "lone/in"].flatMap((path): ReadonlyArray<NewEntry> => [
      { path: path as FsPath, bytes: encodeUtf8("in") },
      { path: path as FsPath }
    ])
    yield* equal(
      yield* makeMany(entries),
      entries.map(() => false)
    )
    yield* expectTree(fs, links)
  }),
  deleting("architecture: accelerations", onBothSides(files)).law(
    "deleting a tree has the same result with and without accelerations",
    function* (fs) {
      const options = { recursive: true }
      for (const path of ["d", "empty"]) {
        const fast = yield* fs.delete(`fast/${path}`, options)
        yield* equal(fast, yield* withoutAccelerations(fs).delete(`slow/${path}`, options))
        yield* expectSameSides(fs)
      }
    }
  ),
  deleting("architecture: accelerations").law("an accelerated read returns the last write", function* (fs) {
    const slow = withoutAccelerations(fs)
    for (const content of ["first", "second, longer", "", "third"]) {
      yield* slow.write("a", content)
      yield* equal(yield* fs.readString("a"), content)
      yield* fs.write("a", "!", { mode: "append" })
      yield* equal(yield* slow.readString("a"), `${content}!`)
      yield* fs.copy("a", "b", { overwrite: true })
      yield* equal(yield* slow.readString("b"), `${content}!`)
      yield* slow.delete("a")
      yield* equal(yield* fs.exists("a"), false)
    }
  }),
  deleting("architecture: accelerations").law(
    "copies and moves have the same result with and without accelerations",
    function* (fs) {
      const slow = withoutAccelerations(fs)
      yield* plantFiles(fs, onBothSides(files))
      yield* equal(yield* fs.copy("fast/d", "fast/new/d"), yield* slow.copy("slow/d", "slow/new/d"))
      yield* expectSameSides(fs)
      yield* equal(yield* fs.move("fast/d", "fast/moved"), yield* slow.move("slow/d", "slow/moved"))
      yield* expectSameSides(fs)
      yield* equal(
        yield* fs.copy("fast/large", "fast/text.txt", { overwrite: true }),
        yield* slow.copy("slow/large", "slow/text.txt", { overwrite: true })
      )
      yield* expectSameSides(fs)
    }
  )
]
