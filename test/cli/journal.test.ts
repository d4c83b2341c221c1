import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Files } from "../../src/testing/Files.ts"
import { picture } from "../faults/ground.ts"
import { hasGit, kept, type Kept } from "./kept.ts"
import { done } from "./terminal.ts"

const files: Files = { "a.txt": "one\ntwo\n", "src/main.ts": "main\n" }

const work = ["--journal", "work"]

/** Writes, edits, moves and removes files, each with a command of its own. */
const worked = Effect.fnUntraced(function* (here: Kept) {
  for (const args of [
    ["write", "docs/new.txt", "--text", "new text\n"],
    ["edit", "a.txt", "--old", "two", "--new", "2"],
    ["mv", "src", "lib"],
    ["rm", "docs/new.txt"],
    ["write", "large.bin", "--text", "x".repeat(5000)]
  ]) {
    done(yield* here.run([...args, ...work]))
  }
})

interface Shown {
  readonly position: number
  readonly at: number
  readonly entry: { readonly _tag: string; readonly correlationId: string; readonly path?: string; readonly content?: unknown }
}

const shown = (here: Kept, ...args: ReadonlyArray<string>) =>
  Effect.map(here.json(["journal", "show", "work", ...args]), (all) => all as ReadonlyArray<Shown>)

/** Returns the kind and the path of each entry. */
const said = (all: ReadonlyArray<Shown>) => all.map(({ entry }) => `${entry._tag} ${entry.path ?? ""}`.trim())

interface Changed {
  readonly position: number
  readonly kind: string
  readonly path: string
  readonly to?: string
  readonly outcome: string
}

const changes = (here: Kept, ...args: ReadonlyArray<string>) =>
  Effect.map(here.json(["journal", "show", "work", "--changes", ...args]), (all) => all as ReadonlyArray<Changed>)

const doneChanges = (all: ReadonlyArray<Changed>) =>
  all.filter(({ outcome }) => outcome === "done").map(({ kind, path, to }) => [kind, path, ...(to === undefined ? [] : [to])])

const last = (here: Kept) => Effect.map(shown(here), (all) => all.at(-1)!.position)

describe("--journal", () => {
  it.live("records the changes of each command in one file, and records nothing else", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      done(yield* here.run(["tree", ...work]))
      done(yield* here.run(["cat", "a.txt", ...work]))
      assert.deepStrictEqual(doneChanges(yield* changes(here)), [
        ["FileMakeDirectory", "docs"],
        ["FileWrite", "docs/new.txt"],
        ["FileWrite", "a.txt"],
        ["FileMove", "src", "lib"],
        ["FileDelete", "docs/new.txt"],
        ["FileWrite", "large.bin"]
      ])
      const positions = (yield* shown(here)).map(({ position }) => position)
      assert.deepStrictEqual(
        positions,
        positions.map((_, index) => index + 1)
      )
      assert.deepStrictEqual(Fs.readdirSync(here.top).sort(), ["root", "work", "work.contents"])
    })
  )

  it.live("records a failed operation as a fault", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const ran = yield* here.run(["write", "a.txt/below", "--text", "x", ...work])
      assert.strictEqual(ran.code, 7)
      const faults = yield* here.json(["journal", "show", "work", "--kind", "fault"])
      assert.isAbove(faults.length, 0)
      assert.deepStrictEqual(doneChanges(yield* changes(here)), [])
    })
  )

  it.live("records the changes of a copy in memory", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      done(yield* here.run(["rm", "a.txt", "--backend", "memory", ...work]))
      assert.deepStrictEqual(doneChanges(yield* changes(here)), [["FileDelete", "a.txt"]])
      assert.isTrue(Fs.existsSync(join(here.root, "a.txt")))
    })
  )

  it.live.each([
    ["inside the root", ["write", "b", "--text", "x", "--journal", "root/work"], 2, "inside the root"],
    ["in the root, reached through a link", ["write", "b", "--text", "x", "--journal", "link/work"], 2, "inside the root"],
    ["at a dangling link into the root", ["write", "b", "--text", "x", "--journal", "dangling"], 2, "inside the root"],
    ["at a chain of dangling links into the root", ["write", "b", "--text", "x", "--journal", "far"], 2, "inside the root"],
    ["whose contents would lie in the root", ["write", "b", "--text", "x", "--journal", "split"], 2, "inside the root"],
    [
      "behind a link that leads out of the root",
      ["write", "b", "--text", "x", "--journal", "root/back/work"],
      2,
      "inside the root"
    ],
    ["that is a directory", ["write", "b", "--text", "x", "--journal", "root"], 7, "is not a file"],
    ["that is blank", ["write", "b", "--text", "x", "--journal", " "], 2, "blank"],
    ["of another format", ["write", "b", "--text", "x", "--journal", "notes"], 7, "is not a journal"],
    ["for exec", ["exec", "--image", "x", ...work, "--", "true"], 2, "cannot be combined with exec"],
    ["for the tour", ["tour", ...work], 2, "cannot be combined with tour"],
    ["for journal show", ["journal", "show", "work", ...work], 2, "cannot be combined with journal show"],
    ["for journal undo", ["journal", "undo", "work", "--to", "0", ...work], 2, "cannot be combined with journal undo"]
  ] as const)("with a journal %s is refused, and the command does nothing", ([, args, code, text]) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      Fs.symlinkSync(here.root, join(here.top, "link"))
      Fs.symlinkSync("root/new.journal", join(here.top, "dangling"))
      Fs.symlinkSync("dangling", join(here.top, "far"))
      Fs.symlinkSync("root/contents", join(here.top, "split.contents"))
      Fs.symlinkSync("..", join(here.root, "back"))
      Fs.writeFileSync(join(here.top, "notes"), "some notes\n")
      const before = picture(here.top)
      const ran = yield* here.run(args)
      assert.strictEqual(ran.code, code, ran.err)
      assert.include(ran.err, text)
      assert.strictEqual(ran.out, "")
      assert.deepStrictEqual(picture(here.top), before)
    })
  )

  it.live("refuses a journal that another process is writing, although journal show can read it", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const { Entry, makeFile } = yield* Effect.promise(() => import("../../src/journal/Journal.ts"))
      yield* makeFile(Entry, { path: join(here.top, "work") })
      const ran = yield* here.run(["write", "b.txt", "--text", "x", ...work])
      assert.strictEqual(ran.code, 5, ran.err)
      assert.isFalse(Fs.existsSync(join(here.root, "b.txt")))
      assert.isAbove((yield* shown(here)).length, 0)
    })
  )

  it.live.runIf(hasGit)("records a restore, which undo can then revert", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      done(yield* here.run(["snapshot", ...work]))
      const before = picture(here.root)
      done(yield* here.run(["rm", "-r", "src", ...work]))
      done(yield* here.run(["write", "b.txt", "--text", "b", ...work]))
      const changed = picture(here.root)
      const position = yield* last(here)
      done(yield* here.run(["restore", ...work]))
      assert.deepStrictEqual(picture(here.root), before)
      done(yield* here.run(["journal", "undo", "work", "--to", `${position}`]))
      assert.deepStrictEqual(picture(here.root), changed)
    })
  )

  it.live.runIf(hasGit)("does not permit a snapshot store inside of the root", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const ran = yield* here.run(["snapshot", "--store", "root/store", ...work])
      assert.strictEqual(ran.code, 2)
      assert.include(ran.err, "inside the root")
      const taken = yield* here.json(["snapshot", ...work])
      assert.deepStrictEqual(
        (yield* here.json(["snapshots"])).map((each) => (each as { snapshotId: string }).snapshotId),
        taken.map((each) => (each as { snapshotId: string }).snapshotId)
      )
    })
  )
})

describe("journal show", () => {
  it.live("prints position, time, kind, path and id of each entry on one line", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const out = done(yield* here.run(["journal", "show", "work"]))
      const all = yield* shown(here)
      const lines = out.trimEnd().split("\n")
      assert.strictEqual(lines.length, all.length)
      for (const [index, line] of lines.entries()) {
        const { at, entry, position } = all[index]!
        assert.match(line, new RegExp(`^ +${position} {2}\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3} {2}${entry._tag} `))
        assert.include(line, new Date(at).toISOString().slice(11, 23))
        assert.include(line, entry.path ?? "")
        assert.isTrue(line.endsWith(entry.correlationId))
      }
    })
  )

  it.live("filters by path, kind, id and position, and shows each result with its request", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      assert.deepStrictEqual(said(yield* shown(here, "--path", "a.txt")), ["FileWrite a.txt", "FileWritten a.txt"])
      assert.deepStrictEqual(said(yield* shown(here, "--path", "lib")), ["FileMove src", "FileMoved src"])
      assert.deepStrictEqual(said(yield* shown(here, "--path", "docs", "--kind", "delete,FileDeleted")), [
        "FileDelete docs/new.txt",
        "FileDeleted docs/new.txt"
      ])
      const [move] = yield* shown(here, "--kind", "MOVE")
      assert.deepStrictEqual(said(yield* shown(here, "--correlation", move!.entry.correlationId)), [
        "FileMove src",
        "FileMoved src"
      ])
      const { position } = move!
      const window = ["--after", `${position - 1}`, "--before", `${position + 2}`]
      assert.deepStrictEqual(said(yield* shown(here, ...window)), ["FileMove src", "FileMoved src"])
      assert.deepStrictEqual(said(yield* shown(here, "--after", `${position}`, "--path", "lib")), ["FileMoved src"])
      assert.deepStrictEqual(yield* shown(here, "--path", "none"), [])
    })
  )

  it.live("finds a result without a path by the path of its request, even if the request is out of the range", () =>
    Effect.gen(function* () {
      const here = yield* kept({})
      const { Entry, makeFile } = yield* Effect.promise(() => import("../../src/journal/Journal.ts"))
      const { FileContent, FileRead } = yield* Effect.promise(() => import("../../src/journal/FileSystemEntry.ts"))
      const read = (id: string, path: string) => new FileRead({ correlationId: id, path })
      const content = (id: string) =>
        new FileContent({ correlationId: id, content: new Uint8Array(), totalSize: 0, isPartial: false })
      yield* Effect.scoped(
        Effect.flatMap(makeFile(Entry, { path: join(here.top, "work") }), ({ appendAll }) =>
          appendAll([read("1", "a"), read("2", "b"), content("2"), content("1")])
        )
      )
      const found = yield* shown(here, "--path", "a", "--after", "1")
      assert.deepStrictEqual(
        found.map(({ entry, position }) => [position, entry.correlationId]),
        [[4, "1"]]
      )
    })
  )

  it.live("limits the output with -n and reverses its order with --reverse, also with a filter", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const all = yield* shown(here)
      assert.deepStrictEqual(yield* shown(here, "-n", "3"), all.slice(0, 3))
      assert.deepStrictEqual(yield* shown(here, "--reverse"), all.toReversed())
      assert.deepStrictEqual(yield* shown(here, "--reverse", "-n", "3"), all.toReversed().slice(0, 3))
      assert.deepStrictEqual(yield* shown(here, "-n", "0"), [])
      const docs = yield* shown(here, "--path", "docs")
      assert.deepStrictEqual(yield* shown(here, "--path", "docs", "--reverse", "-n", "2"), docs.toReversed().slice(0, 2))
      const changed = yield* changes(here)
      assert.deepStrictEqual(yield* changes(here, "--reverse", "-n", "2"), changed.toReversed().slice(0, 2))
    })
  )

  it.live("prints whole contents only with --contents, and otherwise their sizes", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const args = ["journal", "show", "work", "--kind", "write"]
      const plain = done(yield* here.run(args))
      assert.notInclude(plain, "new text")
      assert.include(plain, "4.9 KiB")
      const whole = done(yield* here.run([...args, "--contents"]))
      assert.include(whole, "\n        new text\n")
      assert.include(whole, "x".repeat(5000))
      const large = ["--kind", "write", "--path", "large.bin"]
      const [inline] = yield* shown(here, ...large, "--contents")
      assert.isTrue(inline!.entry.content === Buffer.from("x".repeat(5000)).toString("base64"))
      const [reference] = yield* shown(here, ...large)
      assert.deepInclude(reference!.entry.content as object, { size: 5000 })
    })
  )

  it.live("prints each change and its outcome with --changes", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const out = done(yield* here.run(["journal", "show", "work", "--changes", "--kind", "move,delete,write"]))
      assert.match(out, / write {3}docs\/new\.txt {2}9 B/)
      assert.match(out, / move {4}src -> lib/)
      assert.match(out, / delete {2}docs\/new\.txt\n/)
    })
  )

  it.live("prints removed and replaced contents with --contents", () =>
    Effect.gen(function* () {
      const here = yield* kept({ "gone/small.txt": "small\n", "gone/large.bin": "x".repeat(5000), "over.txt": "replaced\n" })
      done(yield* here.run(["rm", "-r", "gone", ...work]))
      done(yield* here.run(["write", "new.txt", "--text", "new\n", ...work]))
      done(yield* here.run(["mv", "new.txt", "over.txt", "--overwrite", ...work]))
      const out = done(yield* here.run(["journal", "show", "work", "--contents", "--kind", "deleted,moved"]))
      assert.include(out, "\n        small\n")
      assert.include(out, "x".repeat(5000))
      assert.include(out, "\n        replaced\n")
      assert.include(out, "gone/small.txt")
      const [deleted] = yield* shown(here, "--contents", "--kind", "deleted")
      const { removed } = deleted!.entry as { readonly removed?: ReadonlyArray<{ path: string; content?: unknown }> }
      const large = removed!.find(({ path }) => path === "gone/large.bin")
      assert.isTrue(large!.content === Buffer.from("x".repeat(5000)).toString("base64"))
    })
  )

  it.live("prints an entry whose field has the name of a content field but a different type", () =>
    Effect.gen(function* () {
      const here = yield* kept({})
      const { Entry, makeFile } = yield* Effect.promise(() => import("../../src/journal/Journal.ts"))
      const { FileAttributesSet } = yield* Effect.promise(() => import("../../src/journal/FileSystemEntry.ts"))
      const entry = new FileAttributesSet({ correlationId: "id", path: "a.txt", previous: { mode: 0o644 } })
      yield* Effect.scoped(
        Effect.flatMap(makeFile(Entry, { path: join(here.top, "work") }), (journal) => journal.append(entry))
      )
      assert.include(done(yield* here.run(["journal", "show", "work", "--contents"])), "FileAttributesSet  a.txt")
      const [all] = yield* shown(here, "--contents")
      assert.deepStrictEqual((all!.entry as { readonly previous?: unknown }).previous, { mode: 0o644 })
    })
  )

  it.live("escapes control characters for a terminal", () =>
    Effect.gen(function* () {
      const here = yield* kept({})
      done(yield* here.run(["write", "a\u0085b", "--text", "\u001b[31mred\n", ...work]))
      const out = done(yield* here.run(["journal", "show", "work", "--contents"], { isTerminal: true }))
      assert.notMatch(out, /[\u0080-\u009f\u001b]/)
      assert.include(out, String.raw`a\x85b`)
    })
  )
})

describe("the help of journal", () => {
  const shell = kept({ "README.md": "text" })
  it.live.each(["show", "tail", "drift", "verify", "replay", "undo", "compact"])(
    "of %s has examples, and all of them are valid usage",
    (name) =>
      Effect.gen(function* () {
        const here = yield* shell
        const text = done(yield* here.run(["journal", name, "--help"]))
        assert.match(text, /^DESCRIPTION\n {2}[A-Z]/m)
        for (const line of text.split("\n")) assert.isAtMost(line.length, 130, line)
        const examples = text
          .slice(text.indexOf("EXAMPLES"))
          .split("\n")
          .filter((line) => line.startsWith(`  fs-algebra journal ${name} `))
        assert.isAbove(examples.length, 0)
        for (const example of examples) {
          // The current directory is the default root, so the journal must be outside of the current directory.
          assert.match(example, / \.\.\/work\.journal/)
          const words = example
            .replace(/ \| .*$/, "")
            .trim()
            .split(" ")
            .slice(1)
          const ran = yield* here.run(words)
          assert.strictEqual(ran.code, 3, `${example}\n${ran.err}`)
        }
      })
  )
})

describe("journal verify", () => {
  const verify = (here: Kept, ...args: ReadonlyArray<string>) => here.run(["journal", "verify", "work", ...args])

  it.live("confirms an undamaged journal", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      assert.match(done(yield* verify(here)), /^work is sound: \d+ entries, 1 content\nchained, with the head [0-9a-f]{64}\n/)
      const [answer] = yield* here.json(["journal", "verify", "work"])
      assert.deepInclude(answer as object, { file: "work", chained: true, torn: false, entries: yield* last(here) })
    })
  )

  it.live("detects tampering in a chained journal, and accepts an unchained journal", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const path = join(here.top, "work")
      const before = Fs.readFileSync(path, "utf8")
      Fs.writeFileSync(path, before.replace("docs/new.txt", "docs/old.txt"))
      assert.notStrictEqual(Fs.readFileSync(path, "utf8"), before)
      assert.deepStrictEqual((yield* verify(here)).code, 1)
      const { Entry, makeFile } = yield* Effect.promise(() => import("../../src/journal/Journal.ts"))
      yield* Effect.scoped(makeFile(Entry, { path: join(here.top, "plain") }))
      done(yield* here.run(["write", "b.txt", "--text", "b", "--journal", "plain"]))
      assert.match(
        done(yield* here.run(["journal", "verify", "plain"])),
        /^plain is sound: 2 entries, 0 contents\nwithout a hash chain/
      )
    })
  )

  it.live("reports damage as every command does: the name of the journal, the error once, and a remedy", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const path = join(here.top, "work")
      Fs.writeFileSync(join(here.top, "later"), '{"format":"fs-algebra/journal","v":99,"chained":false}\n')
      for (const args of [
        ["journal", "show", "later"],
        ["write", "b.txt", "--text", "b", "--journal", "later"]
      ]) {
        const { err } = yield* here.run(args)
        assert.include(
          err,
          'error: journal "later": the journal was written by a later version of fs-algebra; upgrade fs-algebra to read it\n'
        )
      }
      const lines = Fs.readFileSync(path, "utf8").split("\n")
      Fs.rmSync(join(here.top, "work.contents"), { recursive: true })
      const ran = yield* here.run(["journal", "show", "work", "--contents"])
      assert.match(ran.err, /^error: journal "work": the content [0-9a-f]{64} is missing\nhint: {2}.*work\.contents/)
      Fs.writeFileSync(path, lines.map((line, index) => (index === 3 ? "{}" : line)).join("\n"))
      for (const args of [
        ["journal", "show", "work"],
        ["journal", "verify", "work"]
      ]) {
        const { err } = yield* here.run(args)
        assert.strictEqual(err.split("\n")[0]!.split("entry 3").length, 2, err)
      }
    })
  )

  it.live("names the first corrupt entry, exits with code 1, and suggests how to keep the earlier entries", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const path = join(here.top, "work")
      const lines = Fs.readFileSync(path, "utf8").split("\n")
      Fs.writeFileSync(path, lines.map((line, index) => (index === 3 ? line.replace('"pos":3', '"pos":4') : line)).join("\n"))
      const ran = yield* verify(here)
      assert.deepStrictEqual([ran.code, ran.out], [1, ""])
      assert.include(ran.err, "entry 3 ")
      const { err } = yield* verify(here, "--json")
      assert.deepInclude((JSON.parse(err) as { error: object }).error, { reason: "corrupt", position: 3 })
      // Apply the hint.
      assert.include(ran.err, "head -n 3")
      Fs.writeFileSync(path, lines.slice(0, 3).join("\n") + "\n")
      assert.match(done(yield* verify(here)), /^work is sound: 2 entries/)
    })
  )

  it.live("reports missing and damaged contents, and exits with code 1", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const contents = join(here.top, "work.contents")
      const file = Fs.readdirSync(contents, { recursive: true, encoding: "utf8" })
        .map((name) => join(contents, name))
        .find((name) => Fs.statSync(name).size === 5000)
      Fs.chmodSync(file!, 0o600)
      Fs.writeFileSync(file!, "y".repeat(5000))
      const damaged = yield* verify(here)
      assert.strictEqual(damaged.code, 1)
      assert.include(damaged.err, "0 missing, 1 damaged")
      Fs.rmSync(file!)
      const missing = yield* verify(here)
      assert.strictEqual(missing.code, 1)
      assert.include(missing.err, "1 missing, 0 damaged")
    })
  )
})

describe("journal compact", () => {
  it.live("removes the oldest entries and keeps the positions of the others, so that verify and undo still work", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const position = yield* last(here)
      const out = done(yield* here.run(["journal", "compact", "work", "--before", "5"]))
      assert.include(out, "Removed 4 entries")
      assert.include(out, "begins at position 5")
      assert.strictEqual((yield* shown(here))[0]!.position, 5)
      assert.include(done(yield* here.run(["journal", "verify", "work"])), "entries up to 4 were removed")
      const ran = yield* here.run(["journal", "undo", "work", "--to", "2"])
      assert.strictEqual(ran.code, 3, ran.err)
      assert.include(ran.err, "compacted")
      const beyond = yield* here.run(["journal", "undo", "work", "--to", "999"])
      assert.include(beyond.err, `no position 999: the last position of the journal is ${position}\n`)
      done(yield* here.run(["journal", "undo", "work", "--to", "4"]))
      assert.isAbove(yield* last(here), position)
    })
  )

  it.live.each(["0", "soon", "-3", "1e3", ""])("refuses --before %s and changes nothing", (before) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const text = Fs.readFileSync(join(here.top, "work"), "utf8")
      assert.strictEqual((yield* here.run(["journal", "compact", "work", `--before=${before}`])).code, 2)
      assert.strictEqual(Fs.readFileSync(join(here.top, "work"), "utf8"), text)
    })
  )
})

describe("journal replay, undo and drift:", () => {
  it.live("replay lists the tree at a position with --list", () =>
    Effect.gen(function* () {
      const here = yield* kept({ "a.txt": "one\ntwo\n" })
      done(yield* here.run(["write", "src/main.ts", "--text", "main\n", ...work]))
      yield* worked(here)
      const list = (...args: ReadonlyArray<string>) =>
        Effect.map(here.run(["journal", "replay", "work", "--list", ...args]), done)
      assert.strictEqual(yield* list(), "a.txt\ndocs/\nlarge.bin\nlib/\nlib/main.ts\n")
      const [move] = yield* shown(here, "--kind", "move")
      assert.strictEqual(yield* list("--to", `${move!.position}`), "a.txt\ndocs/\ndocs/new.txt\nsrc/\nsrc/main.ts\n")
    })
  )

  it.live("undo restores the earlier tree, and a second undo can revert the first", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      const before = picture(here.root)
      yield* worked(here)
      const after = picture(here.root)
      const position = yield* last(here)
      const dry = yield* here.run(["journal", "undo", "work", "--to", "0", "--dry-run"])
      assert.match(done(dry), /^M\ta\.txt$/m)
      assert.strictEqual(dry.err, "nothing has changed\n")
      assert.deepStrictEqual(picture(here.root), after)
      assert.strictEqual(yield* last(here), position)
      const ran = yield* here.run(["journal", "undo", "work", "--to", "0"])
      assert.match(done(ran), /Undid the changes after position 0/)
      assert.include(ran.err, `journal undo work --to ${position} --root root`)
      assert.deepStrictEqual(picture(here.root), before)
      done(yield* here.run(["journal", "undo", "work", "--to", `${position}`]))
      assert.deepStrictEqual(picture(here.root), after)
      const again = yield* here.run(["journal", "undo", "work", "--to", `${position}`])
      assert.match(done(again), /^The files are already as at position \d+\n$/)
    })
  )

  it.live("undo records the files that it restored, without temporary names", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const position = yield* last(here)
      done(yield* here.run(["journal", "undo", "work", "--to", "0"]))
      const out = done(yield* here.run(["journal", "show", "work", "--changes"]))
      assert.notInclude(out, ".~fsa")
      assert.deepStrictEqual(doneChanges(yield* changes(here, "--after", `${position}`)).sort(), [
        ["FileDelete", "docs"],
        ["FileDelete", "large.bin"],
        ["FileDelete", "lib"],
        ["FileMakeDirectory", "src"],
        ["FileWrite", "a.txt"],
        ["FileWrite", "src/main.ts"]
      ])
    })
  )

  it.live("drift reports files that other programs have changed, and with --all also the files that they have added", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      assert.strictEqual(done(yield* here.run(["journal", "drift", "work"])), "")
      Fs.writeFileSync(join(here.root, "a.txt"), "other\n")
      Fs.writeFileSync(join(here.root, "docs", "planted.txt"), "new\n")
      const found = yield* here.json(["journal", "drift", "work"])
      assert.deepStrictEqual(
        found.map((one) => (one as { readonly path: string }).path),
        ["a.txt"]
      )
      const out = done(yield* here.run(["journal", "drift", "work", "--all"]))
      assert.match(out, /^docs\/planted\.txt: added, file of 4 B, version [0-9a-f]{12}$/m)
      assert.match(out, /^a\.txt: changed, was file of 6 B, version [0-9a-f]{12}, is file of 6 B, version [0-9a-f]{12}$/m)
      const some = yield* here.json(["journal", "drift", "work", "--all", "--path", "docs"])
      assert.strictEqual(some.length, 1)
    })
  )

  it.live("drift reports whether each path was added, removed or never recorded", () =>
    Effect.gen(function* () {
      const here = yield* kept({ "b.txt": "b\n" })
      done(yield* here.run(["write", "docs/a.txt", "--text", "a", ...work]))
      done(yield* here.run(["mkdir", "made", ...work]))
      Fs.rmdirSync(join(here.root, "made"))
      Fs.writeFileSync(Buffer.concat([Buffer.from(`${here.root}/docs/caf`), Buffer.from([0xe9])]), "")
      assert.strictEqual(done(yield* here.run(["journal", "drift", "work"])), "made: removed, was directory\n")
      const lines = done(yield* here.run(["journal", "drift", "work", "--all"])).split("\n")
      assert.match(
        lines.find((line) => line.startsWith("b.txt"))!,
        /^b\.txt: not in the journal, file of 2 B, version /
      )
      assert.match(
        lines.find((line) => line.startsWith("docs"))!,
        /^docs\/\\x63\\x61\\x66\\xe9: added, file of 0 B, version /
      )
    })
  )

  it.live("undo restores only the given paths", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      const [answer] = yield* here.json(["journal", "undo", "work", "--to", "0", "--path", "a.txt"])
      assert.deepStrictEqual(answer, { position: 0, dryRun: false, changes: [{ _tag: "Modified", path: "a.txt" }] })
      assert.strictEqual(Fs.readFileSync(join(here.root, "a.txt"), "utf8"), "one\ntwo\n")
      assert.isTrue(Fs.existsSync(join(here.root, "lib")))
    })
  )

  it.live("undo is refused if paths differ from the journal, names all these paths, and changes nothing", () =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      yield* worked(here)
      Fs.writeFileSync(join(here.root, "a.txt"), "mine\n")
      Fs.rmSync(join(here.root, "large.bin"))
      Fs.writeFileSync(join(here.root, "unrelated"), "mine\n")
      const before = picture(here.root)
      for (const dryRun of [[], ["--dry-run"]]) {
        const ran = yield* here.run(["journal", "undo", "work", "--to", "0", ...dryRun])
        assert.strictEqual(ran.code, 6)
        assert.include(ran.err, "a.txt, large.bin\n")
        assert.notInclude(ran.err, "unrelated")
        assert.deepStrictEqual(picture(here.root), before)
      }
      const [write] = yield* shown(here, "--path", "large.bin")
      const later = yield* here.run(["journal", "undo", "work", "--to", `${write!.position - 1}`])
      assert.include(later.err, "changed without the journal: large.bin\n")
      const { err } = yield* here.run(["journal", "undo", "work", "--to", "0", "--json"])
      assert.deepInclude((JSON.parse(err) as { error: object }).error, { _tag: "Conflict", paths: ["a.txt", "large.bin"] })
    })
  )

  it.live.each([
    ["a missing journal", ["show", "none"], 3, "does not exist"],
    ["a directory", ["show", "root"], 7, "is not a file"],
    ["a file that is not a journal", ["show", "notes"], 7, "is not a journal"],
    ["a journal of a later version", ["show", "later"], 7, "later version"],
    [
      "an unknown kind of entry",
      ["show", "work", "--kind", "write,spell"],
      2,
      '"spell" is not a kind of entry\nhint:  --kind takes these, separated by commas: FileRead,'
    ],
    ["a path above the root", ["show", "work", "--path", "../x"], 2, "climbs above the root"],
    ["a position below 0", ["show", "work", "--after", "-1"], 2, "below 0"],
    ["--contents together with --changes", ["show", "work", "--changes", "--contents"], 2, "--contents"],
    ["an option of other commands", ["show", "work", "--mount", "root"], 2, "--mount"],
    ["a missing position", ["replay", "work", "--list", "--to", "999"], 2, "no position 999"],
    ["a tail from a missing position", ["tail", "work", "--after", "999"], 2, "no position 999"],
    ["a replay without --list and --into", ["replay", "work"], 2, "--into"],
    ["a blank --into", ["replay", "work", "--into", " "], 2, "blank"],
    ["a replay with both --list and --into", ["replay", "work", "--list", "--into", "x"], 2, "--into"],
    ["a directory for --into that is not empty", ["replay", "work", "--into", "root"], 7, "is not empty"],
    ["a file as --into", ["replay", "work", "--into", "notes"], 7, "is not a directory"],
    ["an undo without --to", ["undo", "work"], 2, "--to"],
    ["an undo to a missing position", ["undo", "work", "--to", "999"], 2, "no position 999"],
    ["an undo of a missing journal", ["undo", "none", "--to", "0"], 3, "does not exist"],
    ["an undo with --backend memory", ["undo", "work", "--to", "0", "--backend", "memory"], 2, "--backend memory"],
    ["a missing subcommand", [], 2, ""]
  ] as const)("a journal command fails with a message for %s", ([, args, code, text]) =>
    Effect.gen(function* () {
      const here = yield* kept(files)
      done(yield* here.run(["write", "b.txt", "--text", "b", ...work]))
      Fs.writeFileSync(join(here.top, "notes"), "some notes\n")
      Fs.writeFileSync(join(here.top, "later"), '{"format":"fs-algebra/journal","v":99,"chained":false}\n')
      const before = picture(here.top)
      const ran = yield* here.run(["journal", ...args])
      assert.strictEqual(ran.code, code, ran.err)
      assert.include(ran.err, text)
      assert.deepStrictEqual(picture(here.top), before)
    })
  )
})
