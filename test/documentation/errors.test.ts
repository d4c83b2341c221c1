/** Checks that the guide to errors names every error, reason and exit code of the sources, and no others. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { exitCodes } from "../../src/cli/exit.ts"
import * as Errors from "../../src/model/FsError.ts"
import {
  Archive,
  BlobStore,
  Covenant,
  Daemon,
  Decorator,
  FileSystemEntry,
  Filesystem,
  HostMount,
  InMemory,
  Journal,
  Limits,
  Prompt,
  Replay,
  Section,
  Session,
  Checkpoint,
  Snapshots,
  SnapshotStore,
  Stores
} from "../../src/index.ts"
import { Faults } from "../../src/testing/index.ts"
import { inMemory } from "../scratch.ts"
import { codeIn, root, rowsOf, sectionsOf, textOf } from "./markdown.ts"

const guide = "src/guides/errors.md"
const sections = sectionsOf(guide)
const section = (title: string) => {
  const found = sections.find((one) => one.title === title)
  assert.isDefined(found, `there is no section ${title}`)
  return found!.text
}
/** Returns the names in the first cells of a section's tables. */
const named = (title: string): ReadonlyArray<string> => rowsOf(section(title)).flatMap(([first]) => codeIn(first!))

interface Declared {
  readonly file: string
  readonly tag: string
  /** The literals of `reason` or `why`. The reasons of arrays of problems are checked below. */
  readonly reasons: ReadonlyArray<string>
}

/** The errors found in the text of the sources, including those that no module exports. */
const declared: ReadonlyArray<Declared> = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .flatMap((file) => {
    const text = readFileSync(join(root, "src", file), "utf8")
    return [...text.matchAll(/class (\w+) extends (?:Schema|Data)\.Tagged(?:ErrorClass|Error)\b/g)].map(({ 1: tag, index }) => {
      const body = text.slice(index).split(/^(?:export )?(?:class|const|interface|type) /m)[1] ?? ""
      const literals = /\b(?:reason|why): Schema\.Literals\(\[([^\]]*)\]\)/.exec(body)?.[1] ?? ""
      return { file, tag: tag!, reasons: [...literals.matchAll(/"([^"]+)"/g)].map(([, word]) => word!) }
    })
  })

describe("the guide to errors", () => {
  it("is compared with all errors that the sources declare", () => {
    assert.isAbove(declared.length, 25)
    for (const tag of ["NotFound", "JournalError", "LawBroken"]) assert.include(declared.map((one) => one.tag).join(), tag)
  })

  const titles = new Set(sections.map(({ title }) => title))
  const everywhere = new Set(sections.flatMap(({ text }) => codeIn(text)))
  for (const { file, reasons, tag } of declared) {
    it(`has ${tag} of ${file}${reasons.length === 0 ? "" : ", and each of its reasons"}`, () => {
      const isOfFiles = file === "model/FsError.ts"
      if (isOfFiles) assert.include(named("FsError"), tag)
      else assert.isTrue(titles.has(tag) || everywhere.has(tag), tag)
      if (reasons.length > 0) assert.sameMembers([...named(tag)], [...reasons])
    })
  }

  it("has no error that does not exist", () => {
    const tags = new Set(declared.map(({ tag }) => tag))
    assert.sameMembers(
      [...named("FsError")],
      declared.filter(({ file }) => file === "model/FsError.ts").map(({ tag }) => tag)
    )
    for (const { title } of sections)
      if (/^\w+(?:Error|Conflicts)$/.test(title) && title !== "FsError") assert.isTrue(tags.has(title), title)
    for (const word of everywhere) if (/^[A-Z]\w*Error$/.test(word) && word !== "FsError") assert.isTrue(tags.has(word), word)
  })

  it("has each problem of a covenant, each kind of fault and each conflict of a merge", () => {
    assert.sameMembers([...named("CovenantError")], [...literalsOf("journal/routes.ts")])
    assert.sameMembers([...named("MergeConflicts")], [...literalsOf("history/mergeText.ts")])
    assert.sameMembers([...named("FileFault")], [...FileSystemEntry.FaultKind.literals])
  })

  it("has each exit code with its meaning and its errors", () => {
    const rows = new Map(rowsOf(section("Exit codes")).map(([code, ...more]) => [Number(code), more] as const))
    assert.sameMembers(
      [...rows.keys()],
      exitCodes.map(({ code }) => code)
    )
    for (const { code, meaning, tags } of exitCodes) {
      const [said, errors] = rows.get(code)!
      assert.strictEqual(said, meaning)
      assert.includeMembers([...codeIn(errors!)], [...tags])
      const others = codeIn(errors!).filter((tag) => tag in Errors && !tags.includes(tag as never))
      assert.deepStrictEqual(others, [], `exit code ${code}`)
    }
  })
})

const literalsOf = (file: string): ReadonlyArray<string> => {
  const text = readFileSync(join(root, "src", file), "utf8")
  const body = /\breason: Schema\.Literals\(\[([^\]]*)\]\)/.exec(text)![1]!
  return [...body.matchAll(/"([^"]+)"/g)].map(([, word]) => word!)
}

type Files = Filesystem.Algebra

/** Calls that fail, as a user could make them. */
const failing: Readonly<
  Record<string, (fs: Files) => Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>>
> = {
  NotFound: (fs) => fs.read("b.txt"),
  AlreadyExists: (fs) => fs.write("a.txt", "", { mode: "create" }),
  AccessDenied: (fs) => Decorator.readOnly(fs).write("a.txt", ""),
  InvalidPath: (fs) => fs.read("../x"),
  PathTooLong: (fs) => Effect.provideService(fs.write("a/b", ""), Limits.Limits, { ...Limits.standard, maxPathDepth: 1 }),
  NotADirectory: (fs) => fs.list("a.txt"),
  NotAFile: (fs) => fs.read("src"),
  DirectoryNotEmpty: (fs) => fs.delete("src"),
  DiskFull: (fs) => Effect.flatMap(Decorator.quota({ maxBytes: 1 })(fs), (small) => small.write("b.txt", "two")),
  Timeout: (fs) =>
    Faults.faulty([{ operation: "Stat", fault: { _tag: "Timeout", detail: "the server said nothing for 30 seconds" } }])(
      fs
    ).stat("a.txt"),
  IoError: (fs) =>
    Faults.faulty([{ operation: "Open", fault: { _tag: "IoError", code: "EIO", detail: "the disk failed" } }])(fs).read(
      "a.txt"
    ),
  NotText: (fs) => fs.read("a.png"),
  LimitExceeded: (fs) => Effect.provideService(fs.readBytes("a.png"), Limits.Limits, { ...Limits.standard, maxReadBytes: 1 }),
  InvalidArgument: (fs) => fs.edit("a.txt", { oldText: "three", newText: "" }),
  Conflict: (fs) => fs.write("b.txt", "", { ifMatch: "1".repeat(64) }),
  Unsupported: (fs) => {
    const { links: _, ...port } = fs.port
    return Filesystem.make(port).symlink("l", "a.txt")
  },
  Unavailable: (fs) =>
    Faults.faulty([{ operation: "Open", fault: { _tag: "Unavailable", detail: "the container has ended" } }])(fs).read("a.txt"),
  SnapshotError: (fs) =>
    Effect.flatMap(SnapshotStore.SnapshotStore, (store) => store.snapshot("../x")).pipe(
      Effect.provide(SnapshotStore.layer({ directory: join(mkdtempSync(join(inMemory(), "errors-")), "store") })),
      Effect.provideService(Filesystem.Filesystem, fs)
    ),
  SnapshotRestoreError: (fs) =>
    Effect.flatMap(Snapshots.Snapshots, (one) =>
      Effect.flatMap(one.snapshot(), (kept) => Effect.andThen(one.forget(kept), one.restore(kept)))
    ).pipe(Effect.provide(Snapshots.layer), Effect.provideService(Filesystem.Filesystem, fs)),
  ArchiveError: (fs) => Archive.importBytesOf(fs, Uint8Array.of(1, 2, 3)),
  MergeConflicts: (fs) =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      const fork = yield* snapshots.fork(yield* snapshots.snapshot())
      yield* fork.writeBytes("a.png", Uint8Array.of(0, 1))
      yield* fs.writeBytes("a.png", Uint8Array.of(0, 2))
      return yield* snapshots.merge(fork)
    }).pipe(Effect.provide(Snapshots.layer), Effect.provideService(Filesystem.Filesystem, fs)),
  SessionError: (fs) =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const snapshots = yield* Snapshots.Snapshots
      const both = yield* Checkpoint.make({ session, snapshots })
      return yield* both.rollback("before")
    }).pipe(Effect.provide(Snapshots.layer), Effect.provideService(Filesystem.Filesystem, fs)),
  MountError: () => {
    const directory = mkdtempSync(join(inMemory(), "errors-"))
    mkdirSync(join(directory, "project"))
    return HostMount.plan([{ hostPath: "/etc" }], { allowedRoots: [join(directory, "project")] })
  },
  PromptError: () => {
    const section = Section.MarkdownSection({ title: "Task", template: "Do it." })
    return Prompt.make({ ns: "agents/a", key: "b", sections: [section, section] })
  },
  JournalError: () =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = join(mkdtempSync(join(inMemory(), "errors-")), "a.journal")
        yield* Journal.makeFile(Journal.Entry, { path })
        return yield* Journal.makeFile(Journal.Entry, { path })
      })
    ),
  StoreError: () =>
    Effect.provide(
      BlobStore.BlobStore.use((blobs) => blobs.get("0".repeat(64))),
      Stores.layerMemory
    ),
  NotRecorded: (fs) =>
    Effect.gen(function* () {
      const journal = yield* Journal.Journal
      const recorded = yield* Journal.record({ previous: false })(fs)
      yield* recorded.write("a.txt", "two\n")
      return yield* Replay.undo(journal, fs, { to: 0 })
    }).pipe(Effect.provide(Journal.layerMemory)),
  DaemonError: () =>
    Effect.gen(function* () {
      const daemon = yield* Daemon.make({ name: "leaf", run: () => Effect.void })
      return yield* daemon.shutdown
    }).pipe(Effect.scoped, Effect.provide(Journal.layerMemory)),
  CovenantError: () =>
    Effect.gen(function* () {
      const journal = yield* Journal.makeMemory<FileSystemEntry.FileRead>()
      const branch = Covenant.branch({ name: "asking", journal, produces: [FileSystemEntry.FileRead], consumes: [] })
      return yield* Covenant.make({ branches: [branch], routes: [] })
    })
}

describe("the examples of the guide to errors", () => {
  const text = textOf(guide)
  for (const [tag, call] of Object.entries(failing)) {
    it.effect(`show the message of ${tag}`, () =>
      Effect.gen(function* () {
        const tree = { "a.txt": "one\n", "a.png": Uint8Array.of(0x89, 0x50, 0), src: { "main.ts": "" } }
        const fs = Filesystem.make(yield* InMemory.make({ tree }))
        const error = yield* Effect.flip(call(fs))
        assert.strictEqual(error._tag, tag)
        // Ids differ each time.
        const message = error.message.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, "…")
        assert.isTrue(text.includes(`\`${message}\``), message)
      })
    )
  }
  it("omit only errors that require a route or a server, or belong to the command line or the testing kit", () => {
    const without = declared.map(({ tag }) => tag).filter((tag) => !(tag in failing))
    assert.sameMembers(without, [
      "RouteError",
      "DebugError",
      "ListenError",
      "OutputFailed",
      "Quit",
      "Complaint",
      "LawBroken",
      "Disagreement"
    ])
  })
})
