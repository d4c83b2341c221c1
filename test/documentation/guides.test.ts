/**
 * Compiles every program of the README and the guides as a reader would. Runs exported programs by the table `runs`, and
 * tests by vitest. The table `notRun` lists the other programs.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { busyboxRoot, describePodman } from "../backends/container/podman.ts"
import { describeSftp, type Sshd, sshd } from "../backends/sftp/servers.ts"
import {
  Filesystem,
  type FilesystemToolkit,
  type FsError,
  type HostMount,
  InMemory,
  Overlay,
  Sandbox,
  type Snapshots
} from "../../src/index.ts"
import { Faults } from "../../src/testing/index.ts"
import { onDisk } from "../scratch.ts"
import { documents, fencesOf, root } from "./markdown.ts"
import { makeProgramDirectory } from "./programs.ts"
import { recipes } from "./recipes.ts"

type Service = Filesystem.Filesystem

/** Documents whose programs another test compiles and runs. */
const elsewhere: ReadonlySet<string> = new Set(["src/guides/adapters.md", "src/guides/backend.md"])

const directory = makeProgramDirectory(".readme")

interface Program {
  readonly name: string
  readonly file: string
  readonly isSuite: boolean
  readonly exports: ReadonlyArray<string>
}

const programs: ReadonlyArray<Program> = documents
  .filter((document) => !elsewhere.has(document))
  .flatMap((document) => fencesOf(document))
  .filter(({ language }) => language === "ts")
  .map(({ body, document, line }) => {
    const isSuite = /\b(?:suite\(|storeSuite\(|it\.\w)/.test(body)
    const name = `${document.replace(/^.*\/|\.md$/g, "").replace(/\.md$/, "")}-${line}`
    return {
      name: `${document}:${line}`,
      file: directory.write(`${name}${isSuite ? ".test" : ""}.ts`, body),
      isSuite,
      exports: [...body.matchAll(/^export const (\w+)/gm)].map(([, one]) => one!)
    }
  })

const load = async <Module>(name: string): Promise<Module> => {
  const found = programs.filter(({ exports }) => exports.includes(name))
  assert.strictEqual(found.length, 1, `programs that export ${name}`)
  return (await import(pathToFileURL(found[0]!.file).href)) as Module
}

const scratch = () => mkdtempSync(join(onDisk(), "guide-"))

const within = <A, E>(program: Effect.Effect<A, E, Service>, tree: InMemory.Tree = {}) =>
  Effect.runPromise(Effect.provide(program, InMemory.layer({ tree })))

type Tool = { readonly success: boolean; readonly message: string }

type FromRoot<A> = (root: string) => Effect.Effect<A, unknown>

/** The runs by exported name; a program with several exports needs one run. */
const runs: Readonly<Record<string, () => Promise<void>>> = {
  // README
  main: async () => {
    const { main } = await load<{ main: FromRoot<ReadonlyArray<string>> }>("main")
    const workspace = scratch()
    assert.deepStrictEqual(await Effect.runPromise(main(workspace)), ["notes/todo.md:1: - [x] try fs-algebra"])
    assert.strictEqual(readFileSync(join(workspace, "notes/todo.md"), "utf8"), "- [x] try fs-algebra\n")
  },
  readFile: async () => {
    const { readFile } = await load<{ readFile: (parameters: { path: string }) => Effect.Effect<Tool, never, Service> }>(
      "readFile"
    )
    const run = (path: string) => within(readFile({ path }), { "a.txt": "hello\n" })
    assert.deepStrictEqual(await run("a.txt"), { success: true, message: "hello" })
    assert.deepStrictEqual(await run("b.txt"), { success: false, message: "b.txt does not exist; list the directory first" })
    assert.isFalse((await run("../up.txt")).success)
  },
  draft: async () => {
    const { draft } = await load<{ draft: (root: string) => Layer.Layer<Service> }>("draft")
    const workspace = scratch()
    writeFileSync(join(workspace, "a.txt"), "as it was")
    const program = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      yield* fs.write("a.txt", "changed")
      yield* fs.write("b.txt", "new")
      return [yield* fs.readString("a.txt"), yield* fs.exists("b.txt")]
    })
    assert.deepStrictEqual(await Effect.runPromise(Effect.provide(program, draft(workspace))), ["changed", true])
    assert.strictEqual(readFileSync(join(workspace, "a.txt"), "utf8"), "as it was")
    assert.isFalse(existsSync(join(workspace, "b.txt")))
    const committed = Effect.andThen(program, Effect.flatMap(Filesystem.Filesystem, Overlay.commit))
    await Effect.runPromise(Effect.provide(committed, draft(workspace)))
    assert.strictEqual(readFileSync(join(workspace, "a.txt"), "utf8"), "changed")
    assert.strictEqual(readFileSync(join(workspace, "b.txt"), "utf8"), "new")
  },
  careful: () => past("careful", "history"),
  // combinators
  encrypted: async () => {
    const { encrypted } = await load<{ encrypted: (key: Uint8Array) => (self: Filesystem.Algebra) => Filesystem.Algebra }>(
      "encrypted"
    )
    const texts = Effect.gen(function* () {
      const store = yield* Filesystem.Filesystem
      const fs = encrypted(new Uint8Array(32))(store)
      yield* fs.write("a.txt", "a secret")
      yield* fs.edit("a.txt", { oldText: "a", newText: "one" })
      yield* fs.write("a.txt", " more", { mode: "append" })
      yield* fs.copy("a.txt", "b.txt")
      const { sizeBytes } = yield* fs.stat("b.txt")
      const stored = Buffer.from((yield* store.readBytes("b.txt")).content)
      const wrongKey = yield* Effect.flip(encrypted(new Uint8Array(32).fill(1))(store).readString("a.txt"))
      return [yield* fs.readString("b.txt"), sizeBytes, stored.length, stored.includes("secret"), wrongKey._tag]
    })
    assert.deepStrictEqual(await within(texts), ["one secret more", 15, 43, false, "IoError"])
  },
  // repository
  forkAndCompare: async () => {
    type Found = { readonly changes: ReadonlyArray<string>; readonly root: string }
    const { forkAndCompare } = await load<{ forkAndCompare: Effect.Effect<Found, unknown> }>("forkAndCompare")
    assert.deepStrictEqual(await Effect.runPromise(forkAndCompare), {
      changes: ["Added notes/done.md", "Modified notes/todo.md"],
      root: "experiment"
    })
  },
  // agents
  beside: async () => {
    type Services = Filesystem.Filesystem | Sandbox.Sandbox
    type Beside = (root: string, program: ReadonlyArray<string>) => Layer.Layer<Services, unknown>
    const { beside } = await load<{ beside: Beside }>("beside")
    const program = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const sandbox = yield* Sandbox.Sandbox
      yield* fs.write("d/in.txt", "from here\n")
      const script = "cat in.txt; cat >out.txt; echo $GREETING >&2; exit 3"
      const ran = yield* sandbox.exec(["sh", "-c", script], { cwd: "d", stdin: "typed", env: { GREETING: "hi" } })
      assert.deepInclude(ran, { exitCode: 3, stdout: "from here\n", stderr: "hi\n", timedOut: false, truncated: false })
      assert.strictEqual(yield* fs.readString("d/out.txt"), "typed")
      const late = yield* sandbox.exec(["sleep", "100"], { timeout: "1 second" })
      assert.deepInclude(late, { exitCode: 124, timedOut: true })
      assert.isTrue((yield* sandbox.exec(["head", "-c", "100000", "/dev/zero"])).truncated)
      assert.strictEqual((yield* sandbox.eval("console.log(6 * 7)")).stdout, "42\n")
      assert.strictEqual((yield* Effect.flip(sandbox.exec(["ls"], { cwd: "../up" })))._tag, "InvalidPath")
    })
    await Effect.runPromise(Effect.provide(program, beside(scratch(), ["env", "SANDBOX=1"])))
    const missing = Effect.flatMap(Sandbox.Sandbox, ({ exec }) => Effect.flip(exec(["ls"])))
    const error = await Effect.runPromise(Effect.provide(missing, beside(scratch(), ["no-such-program"])))
    assert.strictEqual(error._tag, "Unavailable")
  },
  // remote
  serveFiles: async () => {
    const { remoteTodos, serveFiles } = await load<{
      serveFiles: (address: string, token: string) => Effect.Effect<string, unknown, Service | Scope.Scope>
      remoteTodos: (url: string, token: string) => ReturnType<Filesystem.Algebra["grep"]>
    }>("serveFiles")
    const search = Effect.flatMap(serveFiles("127.0.0.1:0", "secret"), (address) => remoteTodos(`http://${address}`, "secret"))
    const { matches } = await within(Effect.scoped(search), { "a.md": "TODO: tea\n" })
    assert.deepStrictEqual(
      matches.map(({ lineContent }) => lineContent),
      ["TODO: tea"]
    )
  },
  // getting-started
  firstGrep: async () => {
    const { firstGrep } = await load<{ firstGrep: FromRoot<ReadonlyArray<string>> }>("firstGrep")
    assert.deepStrictEqual(await Effect.runPromise(firstGrep(scratch())), ["notes/todo.md:1: - [ ] try fs-algebra"])
  },
  tick: async () => {
    const { tick } = await load<{ tick: (path: string) => Effect.Effect<string, unknown, Service> }>("tick")
    const both = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const said = [yield* tick("todo.md"), yield* tick("todo.md")]
      // Another writer comes between the read and the edit.
      yield* fs.write("todo.md", "- [ ] three\n")
      const raced = {
        ...fs,
        edit: (...args: Parameters<typeof fs.edit>) => Effect.andThen(fs.write("todo.md", "theirs\n"), fs.edit(...args))
      }
      const beaten = yield* Effect.provideService(tick("todo.md"), Filesystem.Filesystem, raced)
      return { said, beaten, text: yield* fs.readString("todo.md") }
    })
    assert.deepStrictEqual(await within(both, { "todo.md": "- [ ] one\n- [x] two\n" }), {
      said: ["done: one", "all done"],
      beaten: "somebody was faster; try again",
      text: "theirs\n"
    })
    const long = `${"- [x] done\n".repeat(2500)}- [ ] last\n`
    assert.strictEqual(await within(tick("todo.md"), { "todo.md": long }), "done: last")
  },
  rehearse: async () => {
    const { rehearse } = await load<{
      rehearse: (
        work: Effect.Effect<void, unknown, Service>,
        accept: (changes: ReadonlyArray<string>) => boolean
      ) => Effect.Effect<ReadonlyArray<string>, unknown, Service>
    }>("rehearse")
    const work = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      yield* fs.write("a.txt", "changed")
      yield* fs.write("b.txt", "new")
      yield* fs.delete("c.txt")
    })
    const after = (isAccepted: boolean) =>
      within(
        Effect.gen(function* () {
          const fs = yield* Filesystem.Filesystem
          const changes = yield* rehearse(work, () => isAccepted)
          return [changes, yield* fs.readString("a.txt"), yield* fs.exists("b.txt"), yield* fs.exists("c.txt")]
        }),
        { "a.txt": "as it was", "c.txt": "" }
      )
    const changes = ["Modified a.txt", "Added b.txt", "Removed c.txt"]
    assert.deepStrictEqual(await after(false), [changes, "as it was", false, true])
    assert.deepStrictEqual(await after(true), [changes, "changed", true, false])
  },
  orEmpty: async () => {
    const { orEmpty } = await load<{ orEmpty: (path: string) => Effect.Effect<string, unknown, Service> }>("orEmpty")
    const all = Effect.forEach(["a.txt", "b.txt", "c.png"], orEmpty)
    const tree = { "a.txt": "text", "c.png": Uint8Array.of(0x61, 0xff) }
    assert.deepStrictEqual(await within(all, tree), ["text", "", "(binary from byte 1 on)"])
  },
  onDisk: async () => {
    const { onDisk } = await load<{
      onDisk: (root: string, gitDir: string) => Effect.Effect<ReadonlyArray<{ name: string }>, unknown>
    }>("onDisk")
    const entries = await Effect.runPromise(onDisk(scratch(), join(scratch(), "git")))
    assert.deepStrictEqual(
      entries.map(({ name }) => name),
      ["a.txt", "b.txt"]
    )
  },
  // configuration
  configured: async () => {
    const { configured } = await load<{ configured: Effect.Effect<{ readonly content: string }, unknown> }>("configured")
    assert.strictEqual((await Effect.runPromise(configured)).content, "one")
  },
  // errors
  titleOf: async () => {
    const { titleOf } = await load<{ titleOf: (path: string) => Effect.Effect<string, never, Service> }>("titleOf")
    const busy: FsError.Fault = { _tag: "AccessDenied", why: "busy" }
    const said = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const locked = Faults.faulty([{ operation: "Open", fault: busy }])(fs)
      return [
        yield* titleOf("a.md"),
        yield* titleOf("b.md"),
        yield* titleOf("src"),
        yield* Effect.provideService(titleOf("a.md"), Filesystem.Filesystem, locked)
      ]
    })
    assert.deepStrictEqual(await within(said, { "a.md": "# A\nb\n", src: {} }), [
      "# A",
      "(no such file)",
      'read "src": it is not a regular file',
      "(in use)"
    ])
  },
  // security
  strict: async () => {
    const { strict } = await load<{ strict: (root: string) => Layer.Layer<Service, { readonly _tag: string }> }>("strict")
    const workspace = scratch()
    const built = await Effect.runPromise(Effect.exit(Effect.scoped(Layer.build(strict(workspace)))))
    // The layer is built where the tests run with /proc, and must be refused elsewhere.
    assert.strictEqual(built._tag === "Success", existsSync("/proc/self/fd"))
  },
  copied: async () => {
    const { copied, preview } = await load<{
      preview: FromRoot<ReadonlyArray<HostMount.Preview>>
      copied: (
        project: string
      ) => Effect.Effect<{ readonly matches: ReadonlyArray<{ readonly path: string }> }, unknown, Service>
    }>("copied")
    const project = scratch()
    mkdirSync(join(project, "docs/drafts"), { recursive: true })
    for (const name of ["a.md", "b.txt", "drafts/c.md"]) writeFileSync(join(project, "docs", name), "text")
    const [planned] = await Effect.runPromise(preview(project))
    assert.deepStrictEqual(planned!.entries, ["docs/a.md"])
    assert.deepStrictEqual(
      (await within(copied(project))).matches.map(({ path }) => path),
      ["reference/a.md", "reference/drafts/c.md"]
    )
  },
  // snapshots
  carefully: () => past("carefully", "inGit"),
  joined: async () => {
    const { joined } = await load<{ joined: Effect.Effect<unknown, unknown> }>("joined")
    assert.deepStrictEqual(await Effect.runPromise(joined), { conflicts: [], text: "eins\ntwo\ndrei\n" })
  },
  moved: async () => {
    const { moved } = await load<{ moved: Effect.Effect<ReadonlyArray<string>, unknown, Service> }>("moved")
    assert.deepStrictEqual(await within(moved, { "a.txt": "one", src: { "b.ts": "two" } }), ["a.txt", "src/b.ts"])
  },
  // agents
  handlers: async () => {
    const { handlers, toolkit } = await load<{
      readonly toolkit: typeof FilesystemToolkit.toolkit
      readonly handlers: (root: string) => typeof FilesystemToolkit.layerContextual
    }>("handlers")
    const workspace = scratch()
    writeFileSync(join(workspace, "a.txt"), "one\n")
    writeFileSync(join(workspace, ".env"), "SECRET=1\n")
    const edit = { path: "a.txt", old_string: "one", new_string: "two" }
    const [unread, read, edited, searched] = await Effect.runPromise(
      calls(toolkit, [
        ["edit_file", edit],
        ["read_file", { path: "a.txt" }],
        ["edit_file", edit],
        ["grep", { pattern: "SECRET", include_ignored: true }]
      ]).pipe(Effect.provide(handlers(workspace)))
    )
    assert.deepStrictEqual([unread!.success, read!.success, edited!.success], [false, true, true])
    assert.include(unread!.message, "read_file")
    assert.include(searched!.message, "0 matches")
    assert.strictEqual(readFileSync(join(workspace, "a.txt"), "utf8"), "two\n")
  },
  supervised: async () => {
    const { supervised } = await load<{
      readonly supervised: (ask: (what: string) => Effect.Effect<boolean>) => typeof FilesystemToolkit.layerContextual
    }>("supervised")
    const { toolkit } = await load<{ readonly toolkit: typeof FilesystemToolkit.toolkit }>("handlers")
    const asked: Array<string> = []
    const ask = (what: string) => Effect.sync(() => asked.push(what) > 1)
    const [first, second, listed] = await Effect.runPromise(
      calls(toolkit, [
        ["write_file", { path: "a.txt", content: "one" }],
        ["write_file", { path: "a.txt", content: "one" }],
        ["ls", {}]
      ]).pipe(Effect.provide(supervised(ask)))
    )
    assert.deepStrictEqual([first!.success, second!.success, listed!.success], [false, true, true])
    assert.include(first!.message, "not approved")
    assert.deepStrictEqual(asked, ["write_file", "write_file"])
  },
  countWords: async () => {
    const { countWords } = await load<{
      readonly countWords: {
        readonly name: string
        readonly handle: (
          parameters: { path: string; longer_than?: number },
          call: never
        ) => Effect.Effect<unknown, unknown, Service>
      }
    }>("countWords")
    assert.strictEqual(countWords.name, "count_words")
    const call = { path: (path: string) => Effect.succeed(path.replace(/^\//, "")) } as never
    const tree = { "a.txt": " one two\nthree " }
    const counted = await within(countWords.handle({ path: "/a.txt" }, call), tree)
    assert.deepStrictEqual(counted, { message: "a.txt has 3 words.", value: { words: 3 } })
    const longer = await within(countWords.handle({ path: "a.txt", longer_than: 3 }, call), tree)
    assert.deepStrictEqual(longer, { message: "a.txt has 1 words.", value: { words: 1 } })
  },
  forecast: async () => {
    const { forecast } = await load<{
      readonly forecast: Effect.Effect<ReadonlyArray<{ readonly result: { readonly message: string } }>, unknown>
    }>("forecast")
    assert.deepStrictEqual(
      (await Effect.runPromise(forecast)).map(({ result }) => result.message),
      ["It is sunny."]
    )
  },
  review: async () => {
    const { review } = await load<{
      readonly review: FromRoot<{
        readonly dump: string | undefined
        readonly said: ReadonlyArray<string>
        readonly state: Option.Option<{
          readonly files: ReadonlyArray<{ readonly version: number; readonly sizeBytes: number }>
        }>
      }>
    }>("review")
    const project = scratch()
    mkdirSync(join(project, "docs"))
    writeFileSync(join(project, "docs/guide.md"), "A guide that is far too long.\n")
    writeFileSync(join(project, "docs/logo.svg"), "<svg/>")
    const { dump, said, state } = await Effect.runPromise(review(project))
    assert.include(said[0], "A guide that is far too long.")
    assert.match(said[1]!, /^Wrote docs\/guide\.md/)
    assert.deepStrictEqual(
      Option.map(state, ({ files }) => files.map(({ sizeBytes, version }) => ({ sizeBytes, version }))),
      Option.some([{ sizeBytes: 30, version: 1 }])
    )
    assert.strictEqual(readFileSync(join(project, "docs/guide.md"), "utf8"), "A guide that is far too long.\n")
    assert.strictEqual(dump, join(project, "review.jsonl"))
    const zipped = execFileSync("unzip", ["-p", join(project, "review.fs.zip"), "files/docs/guide.md"], { encoding: "utf8" })
    assert.strictEqual(zipped, "Short.\n")
  },
  // debug
  summary: async () => {
    const { summary } = await load<{ summary: (path: string) => Effect.Effect<unknown, unknown> }>("summary")
    const { review } = await load<{ readonly review: FromRoot<unknown> }>("review")
    const project = scratch()
    mkdirSync(join(project, "docs"))
    writeFileSync(join(project, "docs/guide.md"), "A guide that is far too long.\n")
    await Effect.runPromise(review(project))
    assert.deepStrictEqual(await Effect.runPromise(summary(project)), {
      sessions: 1,
      tools: ["read_file: done", "write_file: done"],
      files: ["docs/guide.md (7)"],
      readme: undefined
    })
  },
  watched: async () => {
    const { watched } = await load<{ readonly watched: Effect.Effect<string, unknown, Service | Scope.Scope> }>("watched")
    const asked = Effect.gen(function* () {
      const url = yield* watched
      return yield* Effect.promise(async () => (await fetch(new URL("api/filesystem/tree", url))).json() as Promise<unknown>)
    })
    assert.deepStrictEqual(await within(Effect.scoped(asked), { "a.txt": "one" }), [{ path: "a.txt", size_bytes: 3 }])
  },
  // journal
  recorded: async () => {
    const { recorded } = await load<{ recorded: (root: string, file: string) => Effect.Effect<unknown, unknown> }>("recorded")
    const [workspace, file] = [scratch(), join(scratch(), "journal.ndjson")]
    assert.deepStrictEqual(await Effect.runPromise(recorded(workspace, file)), {
      plan: "1. try it\n",
      was: "1. try it\n",
      drift: []
    })
    assert.deepStrictEqual(readdirSync(workspace, { recursive: true }).sort(), ["notes", join("notes", "plan.md")])
    const lines = readFileSync(file, "utf8").trimEnd().split("\n")
    assert.isAbove(lines.length, 6)
    assert.isTrue(lines.every((line) => typeof JSON.parse(line) === "object"))
  },
  apart: async () => {
    type Found = { readonly matches: ReadonlyArray<{ readonly path: string; readonly lineContent: string }> }
    const { apart } = await load<{ apart: FromRoot<Found> }>("apart")
    const workspace = scratch()
    const { matches } = await Effect.runPromise(apart(workspace))
    assert.deepStrictEqual(
      matches.map(({ lineContent, path }) => [path, lineContent]),
      [["hello.txt", "from the other end"]]
    )
    assert.strictEqual(readFileSync(join(workspace, "hello.txt"), "utf8"), "from the other end\n")
  },
  sold: async () => {
    const { sold } = await load<{ sold: Effect.Effect<ReadonlyArray<string>, unknown> }>("sold")
    assert.deepStrictEqual(await Effect.runPromise(sold), ["Order 1", "Bill 1/parcel/bill"])
  },
  spelled: async () => {
    type Fault = { readonly faultKind: string }
    const { spelled } = await load<{
      spelled: FromRoot<{ answer: Fault; content: string; missing: Fault; replacements: number }>
    }>("spelled")
    const workspace = scratch()
    const { answer, content, missing, replacements } = await Effect.runPromise(spelled(workspace))
    assert.deepStrictEqual([content, replacements], ["two\n", 1])
    assert.deepStrictEqual([missing.faultKind, answer.faultKind], ["NotFound", "UnknownSpell"])
    assert.strictEqual(readFileSync(join(workspace, "notes.md"), "utf8"), "two\n")
  },
  // sessions
  editor: async () => {
    const { editor } = await load<{ editor: Effect.Effect<unknown, unknown> }>("editor")
    assert.deepStrictEqual(await Effect.runPromise(editor), {
      succeeded: [false, true, true, false],
      todo: "- [x] write the guide\n"
    })
  },
  resumed: async () => {
    const { resumed, started } = await load<{
      started: FromRoot<string | undefined>
      resumed: (dump: string) => Effect.Effect<unknown, unknown>
    }>("resumed")
    const directory = scratch()
    const dump = await Effect.runPromise(started(directory))
    assert.strictEqual(dump, join(directory, "report.jsonl"))
    assert.deepStrictEqual(readdirSync(directory).sort(), ["report.fs.zip", "report.jsonl"])
    const expected = { calls: 2, files: ["report.md"], report: "# Report\nDone.\n" }
    assert.deepStrictEqual(await Effect.runPromise(resumed(dump!)), expected)
  },
  // combinators
  mounted: async () => {
    const { mounted } = await load<{ mounted: Effect.Effect<unknown, unknown, Service> }>("mounted")
    assert.deepStrictEqual(await within(mounted, { "a.md": "the same rule\n" }), {
      found: ["a.md", "vendor/library/guide.md"],
      notes: "a rule\n",
      why: ["readOnly", "root"]
    })
  },
  guarded: async () => {
    const { guarded } = await load<{
      guarded: (path: string, work: Effect.Effect<void, unknown, Service>) => Effect.Effect<void, unknown, Service>
    }>("guarded")
    const write = (content: string) => Effect.flatMap(Filesystem.Filesystem, (fs) => fs.write("a.txt", content))
    const both = Effect.gen(function* () {
      const project = yield* Filesystem.Filesystem
      yield* guarded("a.txt", write("two"))
      const others = Effect.provideService(write("of others"), Filesystem.Filesystem, project)
      const refused = yield* Effect.flip(guarded("a.txt", Effect.andThen(write("three"), others)))
      return [(refused as FsError.FsError)._tag, yield* project.readString("a.txt")]
    })
    assert.deepStrictEqual(await within(both, { "a.txt": "one" }), ["Conflict", "of others"])
  },
  team: async () => {
    const { team } = await load<{ team: Effect.Effect<unknown, unknown> }>("team")
    assert.deepStrictEqual(await Effect.runPromise(team), {
      refused: [[], [], ["list.md: content"]],
      list: "pears\nbread\nmilk\ncoffee\n"
    })
  },
  audited: async () => {
    const { audited } = await load<{
      audited: (
        tell: (operation: { readonly _tag: string; readonly path: string }) => Effect.Effect<void>
      ) => (self: Filesystem.Algebra) => Filesystem.Algebra
    }>("audited")
    const told: Array<string> = []
    const audit = audited(({ _tag, path }) => Effect.sync(() => void told.push(`${_tag} ${path}`)))
    const calls = Effect.gen(function* () {
      const fs = audit(yield* Filesystem.Filesystem)
      yield* fs.write("d/a.txt", "new")
      yield* Effect.flip(fs.write("d", "refused"))
      yield* fs.readString("d/a.txt")
      yield* fs.delete("d", { recursive: true })
    })
    await within(calls)
    assert.deepStrictEqual(told, ["MakeDirectory d", "Write d/a.txt", "Remove d/a.txt", "Remove d"])
  },
  metered: async () => {
    const { metered } = await load<{
      metered: (self: Filesystem.Algebra) => { readonly fs: Filesystem.Algebra; readonly total: object }
    }>("metered")
    const calls = Effect.gen(function* () {
      const { fs, total } = metered(yield* Filesystem.Filesystem)
      yield* fs.write("a.txt", "new")
      yield* Stream.run(fs.stream("a.txt"), fs.sink("b.txt"))
      yield* fs.readString("a.txt")
      return total
    })
    assert.deepStrictEqual(await within(calls), { read: 6, written: 6 })
  },
  // stores
  repeated: async () => {
    const { repeated } = await load<{ repeated: Effect.Effect<string, unknown> }>("repeated")
    assert.strictEqual(
      await Effect.runPromise(repeated),
      createHash("sha256")
        .update(Uint8Array.of(1, 2, 3))
        .digest("hex")
    )
  },
  // recipes
  ...recipes(load, scratch)
}

/** Programs that are compiled but not run, with the reason. */
const notRun: Readonly<Record<string, string>> = {
  correctReport: "needs a store of buckets: test/backends/bucket runs the same calls on two",
  publishNote: "needs an SSH server: it is run below where there is one",
  journalInBucket: "needs a store of buckets: test/repository/stores/bucket.test.ts runs the laws of contents on one",
  onPostgres: "needs a server of Postgres: test/repository/stores runs the laws on one",
  serveWorkspaces: "needs Postgres: test/repository/workspaces.processes.test.ts runs three such runners",
  noted: "needs a runner: test/repository/workspaces.processes.test.ts runs such clients",
  copyRelease: "needs git repositories at these paths: test/repository/git.test.ts runs such calls on others",
  runAgents: "needs agents: test/examples/hundred_agents.test.ts runs the same program",
  stored: "needs a directory of the system: test/repository/stores runs the laws in others",
  inContainer: "needs an engine of containers: it is run below where there is one",
  serve: "needs a cluster of NATS servers by these names; test/journal runs the same on one server"
}

const calls = (
  toolkit: typeof FilesystemToolkit.toolkit,
  all: ReadonlyArray<readonly [name: "edit_file" | "grep" | "ls" | "read_file" | "write_file", parameters: object]>
) =>
  Effect.gen(function* () {
    const kit = yield* toolkit
    return yield* Effect.forEach(all, ([name, parameters]) =>
      Effect.map(
        Effect.flatMap(kit.handle(name, parameters as never), Stream.runLast),
        (last) => Option.getOrThrow(last).result as Tool
      )
    )
  })

const past = async (program: string, layer: string): Promise<void> => {
  type Past = Readonly<Record<string, unknown>>
  const module = await load<Past>(program)
  const work = module[program] as Effect.Effect<unknown, unknown, Service | Snapshots.Snapshots>
  const past = module[layer] as (root: string, gitDir: string) => Layer.Layer<Service | Snapshots.Snapshots, unknown>
  const [workspace, store] = [scratch(), join(scratch(), "git")]
  writeFileSync(join(workspace, "a.txt"), "as it was")
  const done = await Effect.runPromise(Effect.provide(work, past(workspace, store)))
  assert.deepStrictEqual(done, { changes: ["Added notes", "Added notes/todo.md"], before: false })
  assert.deepStrictEqual(readdirSync(workspace), ["a.txt"])
  const log = execFileSync("git", ["--git-dir", store, "log", "--all", "--stat"], { encoding: "utf8" })
  assert.include(log, "before the refactoring")
}

describe("the programs of the README and the guides", () => {
  it("compile in a project of a reader", () => {
    assert.strictEqual(directory.compile(), "")
  })

  it("pass if they are tests", () => {
    const config = join(directory.path, "vitest.config.ts")
    writeFileSync(
      config,
      `export default { root: ${JSON.stringify(directory.path)}, test: { include: ["*.test.ts"], testTimeout: 300_000, maxWorkers: 1 } }\n`
    )
    const child = spawnSync("npx", ["vitest", "run", "--config", config], { cwd: root, encoding: "utf8", timeout: 300_000 })
    assert.strictEqual(child.status, 0, child.stdout + child.stderr)
  })

  it("are all run, or are listed with the reason why not", () => {
    assert.isAbove(programs.length, 25)
    const known = new Set([...Object.keys(runs), ...Object.keys(notRun)])
    for (const { exports, isSuite, name } of programs) {
      assert.isTrue(isSuite || exports.some((one) => known.has(one)), name)
    }
    const exported = new Set(programs.flatMap(({ exports }) => exports))
    assert.deepStrictEqual(
      [...known].filter((one) => !exported.has(one)),
      []
    )
  })

  for (const [name, run] of Object.entries(runs)) it(`return the documented result in ${name}`, run)

  describeSftp("with sshd", () => {
    it("publishNote writes and edits a file on the server", async () => {
      type Publish = (server: Sshd["login"], key: string, root: string) => Effect.Effect<string, unknown>
      const { publishNote } = await load<{ publishNote: Publish }>("publishNote")
      const { login } = await sshd()
      const root = scratch()
      const note = await Effect.runPromise(publishNote(login, Redacted.value(login.privateKey!), root))
      assert.strictEqual(note, "# Final\n")
      assert.strictEqual(readFileSync(join(root, "note.md"), "utf8"), "# Final\n")
    })
  })

  describePodman("with podman", () => {
    it("inContainer runs its command on the files of the container", async () => {
      type InContainer = { readonly inContainer: (image: { readonly rootfs: string }) => Effect.Effect<string, unknown> }
      const { inContainer } = await load<InContainer>("inContainer")
      assert.strictEqual(await Effect.runPromise(inContainer({ rootfs: busyboxRoot() })), "made by 65534\n")
    })
  })
})
