/** The operations to interrupt, the tree before each operation, and the tree after it. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import { directory, type Files, link } from "../../src/testing/Files.ts"
import type { Picture } from "./harness.ts"

/** A content so large that it is written in the thread pool. */
export const large = "0123456789abcdef".repeat(4200)

export const before: Files = {
  a: "old",
  big: large,
  "d/f": "one",
  "d/e/g": "two",
  "d/e/h": large,
  "d/empty": directory,
  p: directory,
  l: link("a"),
  "x.txt": "needle\nhay\nneedle\n"
}

const file = (content: string): string => `644 ${content}`

export const old: Picture = {
  a: file("old"),
  big: file(large),
  d: "directory",
  "d/e": "directory",
  "d/e/g": file("two"),
  "d/e/h": file(large),
  "d/empty": "directory",
  "d/f": file("one"),
  l: "-> a",
  p: "directory",
  "x.txt": file("needle\nhay\nneedle\n")
}

export interface Case {
  readonly name: string
  readonly run: (fs: Algebra) => Effect.Effect<unknown, unknown>
  /** The entries that the operation changes. A path that is `undefined` is removed. */
  readonly makes: { readonly [path: string]: string | undefined }
  /**
   * `whole`: the tree is the old one or the new one. `parts`: an operation on a tree may be partly done, but each file is
   * complete and none is lost.
   */
  readonly leaves: "whole" | "parts"
  /** True if the operation needs links or attributes. */
  readonly isHostly?: boolean
}

export const after = ({ makes }: Case): Picture => {
  const out: Record<string, string> = { ...old }
  for (const [path, what] of Object.entries(makes)) {
    if (what === undefined) delete out[path]
    else out[path] = what
  }
  return out
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const versionOfOld = createHash("sha256").update("old").digest("hex")

/** Returns a stream of three pieces with a pause before each. */
const pieces = (text: string): Stream.Stream<Uint8Array> =>
  Stream.rechunk(
    Stream.fromIterable([0, 1, 2].map((i) => utf8(text).slice((i * text.length) / 3, ((i + 1) * text.length) / 3))),
    1
  ).pipe(Stream.tap(() => Effect.yieldNow))

const whole = (name: string, run: Case["run"], makes: Case["makes"], isHostly = false): Case => ({
  name,
  run,
  makes,
  leaves: "whole",
  isHostly
})

const reading = (name: string, run: Case["run"]): Case => whole(name, run, {})

const third = large.slice(0, 66_000)

const deeper = { n: "directory", "n/m": "directory" }

const moved = {
  d: undefined,
  "d/e": undefined,
  "d/e/g": undefined,
  "d/e/h": undefined,
  "d/empty": undefined,
  "d/f": undefined
}

const there = {
  n: "directory",
  "n/d": "directory",
  "n/d/e": "directory",
  "n/d/e/g": file("two"),
  "n/d/e/h": file(large),
  "n/d/empty": "directory",
  "n/d/f": file("one")
}

export const changing: ReadonlyArray<Case> = [
  whole("write", (fs) => fs.write("a", "new"), { a: file("new") }),
  whole("write, with its version", (fs) => fs.write("a", "new", { version: true }), { a: file("new") }),
  whole("write of a large text", (fs) => fs.write("a", large), { a: file(large) }),
  whole("write through a link", (fs) => fs.write("l", "new"), { a: file("new") }),
  whole("write, create, with parents", (fs) => fs.write("n/m/c", "new", { mode: "create" }), {
    ...deeper,
    "n/m/c": file("new")
  }),
  whole("write, replace", (fs) => fs.write("a", "new", { mode: "replace" }), { a: file("new") }),
  whole("write, append", (fs) => fs.write("a", "new", { mode: "append" }), { a: file("oldnew") }),
  whole("write, append to a missing file", (fs) => fs.write("n/m/c", "new", { mode: "append" }), {
    ...deeper,
    "n/m/c": file("new")
  }),
  whole("write, append, with its version", (fs) => fs.write("a", "new", { mode: "append", version: true }), {
    a: file("oldnew")
  }),
  whole("write, append of a large text", (fs) => fs.write("a", large, { mode: "append" }), { a: file(`old${large}`) }),
  whole("write, appendExisting", (fs) => fs.write("a", "new", { mode: "appendExisting" }), { a: file("oldnew") }),
  whole("write, ifMatch", (fs) => fs.write("a", "new", { ifMatch: versionOfOld }), { a: file("new") }),
  whole("write, ifMatch null", (fs) => fs.write("n/m/c", "new", { ifMatch: null }), { ...deeper, "n/m/c": file("new") }),
  whole("sink", (fs) => Stream.run(pieces(third), fs.sink("a")), { a: file(third) }),
  whole("sink, create, with parents", (fs) => Stream.run(pieces(third), fs.sink("n/m/c", { mode: "create" })), {
    ...deeper,
    "n/m/c": file(third)
  }),
  whole("sink, append, with its version", (fs) => Stream.run(pieces(third), fs.sink("a", { mode: "append", version: true })), {
    a: file(`old${third}`)
  }),
  whole("sink, ifMatch", (fs) => Stream.run(pieces("new"), fs.sink("a", { ifMatch: versionOfOld })), { a: file("new") }),
  whole("a file streamed onto itself", (fs) => Stream.run(fs.stream("big"), fs.sink("big")), {}),
  whole("edit", (fs) => fs.edit("a", { oldText: "old", newText: "new" }), { a: file("new") }),
  whole(
    "edit, ifMatch",
    (fs) =>
      fs.edit(
        "a",
        [
          { oldText: "o", newText: "O" },
          { oldText: "d", newText: "D" }
        ],
        { ifMatch: versionOfOld }
      ),
    {
      a: file("OlD")
    }
  ),
  whole("delete", (fs) => fs.delete("a"), { a: undefined }),
  whole("delete, ifMatch", (fs) => fs.delete("a", { ifMatch: versionOfOld }), { a: undefined }),
  whole("delete of a link", (fs) => fs.delete("l"), { l: undefined }),
  whole("delete of an empty directory", (fs) => fs.delete("p"), { p: undefined }),
  whole("mkdir, with parents", (fs) => fs.mkdir("n/m/k"), { ...deeper, "n/m/k": "directory" }),
  whole("copy of a file", (fs) => fs.copy("a", "n/m/c"), { ...deeper, "n/m/c": file("old") }),
  whole("copy of a large file over another", (fs) => fs.copy("big", "a", { overwrite: true }), { a: file(large) }),
  whole("copy of a link", (fs) => fs.copy("l", "m"), { m: "-> a" }, true),
  whole("copy of a link over a file", (fs) => fs.copy("l", "x.txt", { overwrite: true }), { "x.txt": "-> a" }, true),
  whole("move of a file", (fs) => fs.move("a", "n/m/c"), { ...deeper, a: undefined, "n/m/c": file("old") }),
  whole("move of a file over another", (fs) => fs.move("a", "x.txt", { overwrite: true }), {
    a: undefined,
    "x.txt": file("old")
  }),
  whole("move of a tree", (fs) => fs.move("d", "n/d"), { ...moved, ...there }),
  whole("symlink, with parents", (fs) => fs.symlink("n/m/k", "../../a"), { ...deeper, "n/m/k": "-> ../../a" }, true),
  whole("setAttributes", (fs) => fs.setAttributes("a", { mode: 0o600 }), { a: "600 old" }, true),
  { name: "copy of a tree", run: (fs) => fs.copy("d", "n/d"), makes: there, leaves: "parts" },
  { name: "delete of a tree", run: (fs) => fs.delete("d", { recursive: true }), makes: moved, leaves: "parts" }
]

/** Watches a directory until the watch reports a change. */
const watching = (fs: Algebra): Effect.Effect<unknown, unknown> =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* Effect.forkScoped(
        Effect.andThen(Effect.sleep(3), Effect.forever(Effect.andThen(fs.write("p/w", "1"), Effect.sleep(3))))
      )
      yield* Stream.runHead(Stream.filter(fs.watch("p"), ({ path }) => path === "p/w"))
    })
  )

export const readings: ReadonlyArray<Case> = [
  reading("exists, stat, list", (fs) => Effect.all([fs.exists("d/e"), fs.stat("l"), fs.list("d")])),
  reading("lstat, realPath", (fs) => Effect.all([fs.lstat("l"), fs.realPath("l")])),
  reading("read", (fs) => fs.read("big", { version: true })),
  reading("readString", (fs) => fs.readString("big")),
  reading("readBytes", (fs) => fs.readBytes("big", { offset: 5, limit: 66_000, version: true })),
  reading("version", (fs) => fs.version("d/e/h")),
  reading("stream", (fs) => Stream.runForEach(fs.stream("big", { chunkSize: 20_000 }), () => Effect.yieldNow)),
  reading("the first chunks of a stream", (fs) => Stream.runDrain(Stream.take(fs.stream("big", { chunkSize: 1000 }), 2))),
  reading("lines", (fs) => Stream.runDrain(fs.lines("x.txt"))),
  reading("walk", (fs) => Stream.runDrain(fs.walk(".", { sizes: true, gitignore: true }))),
  reading("glob", (fs) => fs.glob("**/*", { sizes: true, gitignore: true })),
  reading("grep", (fs) => fs.grep("needle")),
  reading("grepStream", (fs) => Stream.runDrain(fs.grepStream("needle", { context: 1 }))),
  reading("readLink", (fs) => fs.readLink("l")),
  reading("edit, dry run", (fs) => fs.edit("a", { oldText: "old", newText: "new" }, { dryRun: true }))
]

/** A search in a worker. It is not in the list above because all searches of a program share the workers. */
export const searching: Case = reading("grep in a worker", (fs) => fs.grep("(n|e)+dle"))

export const watchingCase: Case = { name: "watch", run: watching, makes: { "p/w": file("1") }, leaves: "whole" }

/** Tests whether each path is as before or as after the operation, and no content is lost. */
export const isInParts = (self: Case, found: Picture, also: Picture = {}): boolean => {
  const past: Picture = { ...old, ...also }
  const now: Picture = { ...after(self), ...also }
  const known = Object.entries(found).every(([path, what]) => past[path] === what || now[path] === what)
  if (self.name.startsWith("delete")) return known && Object.keys(now).every((path) => found[path] === now[path])
  const held = new Set(Object.values(found))
  return known && Object.entries(past).every(([, what]) => held.has(what))
}

export const isSame = (self: Picture, that: Picture): boolean =>
  Object.keys(self).length === Object.keys(that).length && Object.entries(self).every(([path, what]) => that[path] === what)
