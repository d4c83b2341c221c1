/** A program for leaves over files that are on another machine. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import type * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { asked, chunk, id, list, many, read, remove, stat, write } from "./leafBench.ts"

type LeafLayer = Layer.Layer<never, unknown, Journal.Journal>

/** Runs an effect on a Branch, whose requests the leaf answers. */
export const through = <A, E>(leaf: LeafLayer, effect: Effect.Effect<A, E, Filesystem.Filesystem | Journal.Journal>) =>
  Effect.scoped(
    Effect.provide(
      effect,
      Layer.provideMerge(Branch.layer({ extended: true }), Layer.provideMerge(Layer.orDie(leaf), Journal.layerMemory))
    )
  )

/** Uses every operation through a Branch, and returns what the files contain afterwards. */
export const workThroughBranch = Effect.gen(function* () {
  const fs = yield* Filesystem.Filesystem
  yield* fs.write("docs/plan.md", "# Plan\nbuild\n")
  yield* fs.write("docs/plan.md", "test\n", { mode: "append" })
  const { version } = yield* fs.write("docs/ü notes.txt", "one\n", { version: true })
  yield* fs.edit("docs/ü notes.txt", { oldText: "one", newText: "two" }, { ifMatch: version })
  const stale = yield* Effect.flip(fs.write("docs/ü notes.txt", "three\n", { ifMatch: version }))
  assert.strictEqual(stale._tag, "Conflict")
  yield* fs.writeBytes("large.bin", many(3_000_000))
  assert.deepStrictEqual((yield* fs.readBytes("large.bin")).content, many(3_000_000))
  yield* fs.copy("docs", "copied/docs")
  yield* fs.move("copied/docs/plan.md", "moved.md")
  yield* fs.delete("copied", { recursive: true })
  assert.strictEqual((yield* Effect.flip(fs.delete("docs")))._tag, "DirectoryNotEmpty")
  assert.strictEqual((yield* Effect.flip(fs.readString("none")))._tag, "NotFound")
  assert.deepStrictEqual((yield* fs.grep("t(est|wo)")).matches.map(({ path }) => path).sort(), [
    "docs/plan.md",
    "docs/ü notes.txt",
    "moved.md"
  ])
  assert.deepStrictEqual((yield* fs.glob("**/*.md")).matches.map(({ path }) => path).sort(), ["docs/plan.md", "moved.md"])
  return {
    names: (yield* fs.list(".")).map(({ name }) => name).sort(),
    plan: yield* fs.readString("docs/plan.md"),
    moved: yield* fs.readString("moved.md"),
    notes: yield* fs.readString("docs/ü notes.txt")
  }
})

export const workDone = {
  names: ["docs", "large.bin", "moved.md"],
  plan: "# Plan\nbuild\ntest\n",
  moved: "# Plan\nbuild\ntest\n",
  notes: "two\n"
}

const faultOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)

/** Sends the plain requests of a journal, and returns the kinds of their answers. */
export const plainRequests = Effect.gen(function* () {
  const { ask, askAll, append, answer, content } = yield* asked
  const answers: Array<string> = []
  for (const request of [
    write("a/b.txt", "12345"),
    write("a/b.txt", "no", "create"),
    write("a/none.txt", "no", "replace"),
    write("a/b.txt", "67", "append"),
    read("a/b.txt"),
    stat("a/b.txt"),
    read("a"),
    read("none"),
    read("../b"),
    list("a"),
    list("a/b.txt"),
    remove("a"),
    remove("a", { recursive: true }),
    stat("a")
  ]) {
    answers.push(faultOf(yield* ask(request)))
  }
  const upload = id()
  yield* append(chunk(upload, 0, "first ", { path: "chunks.txt", createMode: "create" }))
  const written = yield* append(chunk(upload, 6, "second", { isFinal: true }))
  answers.push(faultOf(yield* answer(upload, written - 1)))
  yield* ask(write("large", many(10_000)))
  const parts = (yield* askAll(read("large"))).flatMap((entry) => (entry._tag === "FileContentChunk" ? [entry] : []))
  const joined = yield* Effect.forEach(parts, ({ data }) => content(data))
  assert.isAbove(parts.length, 1)
  assert.deepStrictEqual(Uint8Array.from(joined.flatMap((part) => [...part])), many(10_000))
  return answers
})

export const plainAnswers = [
  "FileWritten",
  "AlreadyExists",
  "NotFound",
  "FileWritten",
  "FileContent",
  "FileMetadata",
  "NotAFile",
  "NotFound",
  "InvalidPath",
  "FileListing",
  "NotADirectory",
  "DirectoryNotEmpty",
  "FileDeleted",
  "NotFound",
  "FileWritten"
]
