/** The changes of a filesystem as data, each with the states before and after the change. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"

const old = "old\n".repeat(100_000)
const fresh = "new\n".repeat(150_000)
const fileNames = Array.from({ length: 40 }, (_, index) => `${index}.txt`)

export interface Case {
  readonly prepare: (fs: Algebra) => Effect.Effect<unknown, unknown>
  readonly change: (fs: Algebra) => Effect.Effect<unknown, unknown>
  /** Returns the state, which must be one of `before` and `after`. */
  readonly state: (fs: Algebra) => Effect.Effect<unknown, unknown>
  readonly before: unknown
  readonly after: unknown
  /** True if other states between both are permitted, as for the removal of a tree. */
  readonly isGradual?: boolean
}

const text = (path: string) => (fs: Algebra) => Effect.orElseSucceed(fs.readString(path), () => "absent")
const exists = (path: string) => (fs: Algebra) => fs.exists(path)
const putOld = (path: string) => (fs: Algebra) => fs.write(path, old)
const nothing = () => Effect.void
const namesIn = (path: string) => (fs: Algebra) =>
  Effect.orElseSucceed(
    Effect.map(fs.list(path), (entries) => entries.length),
    () => 0
  )
const putTree = (path: string) => (fs: Algebra) =>
  Effect.forEach(fileNames, (name) => fs.write(`${path}/${name}`, name), { concurrency: 8, discard: true })

const bytes = new TextEncoder().encode(fresh)
const chunks = Array.from({ length: 6 }, (_, index) =>
  bytes.subarray((index * bytes.length) / 6, ((index + 1) * bytes.length) / 6)
)

export const cases: Readonly<Record<string, Case>> = {
  create: {
    prepare: nothing,
    change: (fs) => fs.write("c.txt", fresh, { mode: "create" }),
    state: text("c.txt"),
    before: "absent",
    after: fresh
  },
  replace: {
    prepare: putOld("r.txt"),
    change: (fs) => fs.write("r.txt", fresh),
    state: text("r.txt"),
    before: old,
    after: fresh
  },
  small: {
    prepare: (fs) => fs.write("s.txt", "old"),
    change: (fs) => fs.write("s.txt", "new"),
    state: text("s.txt"),
    before: "old",
    after: "new"
  },
  append: {
    prepare: putOld("a.txt"),
    change: (fs) => fs.write("a.txt", fresh, { mode: "append" }),
    state: text("a.txt"),
    before: old,
    after: old + fresh
  },
  edit: {
    prepare: (fs) => fs.write("e.txt", `first\n${old}`),
    change: (fs) => fs.edit("e.txt", { oldText: "first", newText: "second" }),
    state: text("e.txt"),
    before: `first\n${old}`,
    after: `second\n${old}`
  },
  sink: {
    prepare: putOld("k.txt"),
    change: (fs) => Stream.run(Stream.fromIterable(chunks), fs.sink("k.txt")),
    state: text("k.txt"),
    before: old,
    after: fresh
  },
  delete: { prepare: putOld("d.txt"), change: (fs) => fs.delete("d.txt"), state: text("d.txt"), before: old, after: "absent" },
  deleteTree: {
    prepare: putTree("tree"),
    change: (fs) => fs.delete("tree", { recursive: true }),
    state: namesIn("tree"),
    before: fileNames.length,
    after: 0,
    isGradual: true
  },
  mkdir: { prepare: nothing, change: (fs) => fs.mkdir("m/n/o"), state: exists("m/n/o"), before: false, after: true },
  copy: {
    prepare: putOld("from.txt"),
    change: (fs) => fs.copy("from.txt", "to.txt"),
    state: text("to.txt"),
    before: "absent",
    after: old
  },
  copyTree: {
    prepare: putTree("source"),
    change: (fs) => fs.copy("source", "target"),
    state: namesIn("target"),
    before: 0,
    after: fileNames.length,
    isGradual: true
  },
  move: {
    prepare: putOld("here.txt"),
    change: (fs) => fs.move("here.txt", "there.txt"),
    state: (fs) => Effect.all([fs.exists("here.txt"), fs.exists("there.txt")]),
    before: [true, false],
    after: [false, true]
  },
  moveTree: {
    prepare: putTree("home"),
    change: (fs) => fs.move("home", "away"),
    state: (fs) => Effect.all([namesIn("home")(fs), namesIn("away")(fs)]),
    before: [fileNames.length, 0],
    after: [0, fileNames.length]
  },
  symlink: {
    prepare: nothing,
    change: (fs) => fs.symlink("link", "r.txt"),
    state: (fs) => Effect.orElseSucceed(fs.readLink("link"), () => "absent"),
    before: "absent",
    after: "r.txt"
  },
  setAttributes: {
    prepare: (fs) => Effect.andThen(fs.write("mode.txt", ""), fs.setAttributes("mode.txt", { mode: 0o600 })),
    change: (fs) => fs.setAttributes("mode.txt", { mode: 0o640 }),
    state: (fs) => Effect.map(fs.stat("mode.txt"), ({ mode }) => mode! & 0o777),
    before: 0o600,
    after: 0o640
  }
}
