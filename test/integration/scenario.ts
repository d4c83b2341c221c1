/**
 * The work of an agent from an empty workspace to a dump, and its continuation in a workspace of another kind. The
 * program is the same for every kind of workspace.
 */
import { assert } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import * as ToolEvents from "../../src/agent/ToolEvents.ts"
import { State } from "../../src/backends/InMemory.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import * as Slice from "../../src/model/Slice.ts"
import { capture, picture, type Files, type Picture } from "../../src/testing/Files.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import { VirtualFileSystem } from "../../src/workspace/VfsState.ts"
import { inMemory } from "../scratch.ts"
import type { Asked, Kind } from "./workspaces.ts"

/** The notes of an agent beside its files. */
const Notes = Slice.make("Notes", Schema.String)

/** The slices that any of the dumps can hold. */
const slices = [Notes, ToolEvents.log, Checkpoint.FilesystemSnapshots, State, VirtualFileSystem]

const note = Tool.make({
  name: "note",
  description: "Remember something.",
  parameters: Schema.Struct({ text: Schema.String }),
  value: Schema.Struct({}),
  does: "adds",
  needsFilesystem: false,
  examples: [{ text: "something" }],
  handle: Effect.fnUntraced(function* ({ text }) {
    const { session } = yield* ToolContext
    yield* Effect.orDie(session.dispatch(Notes, text))
    return { message: "It is noted.", value: {} }
  })
})

/** A tool that fails after it has changed the files and the session. */
const breaking = Tool.make({
  name: "break",
  description: "Leave something half done.",
  value: Schema.Struct({}),
  handle: (_, { filesystem }) =>
    Effect.gen(function* () {
      const { session } = yield* ToolContext
      yield* filesystem.write("notes/half.md", "half")
      yield* filesystem.delete("docs", { recursive: true })
      yield* Effect.orDie(session.dispatch(Notes, "half"))
      return yield* Effect.fail(Tool.refused("It broke.", "Do something else."))
    })
})

const pictureOf = (section: Section.Workspace) =>
  Effect.flatMap(section.filesystem, ({ port }) => Effect.orDie(capture(port) as Effect.Effect<Picture>))

/** Runs a prompt over the section in the session, with a checkpoint around each change. */
const working = Effect.fnUntraced(function* ({ kit }: Kind, section: Section.Workspace, session: Session.Operations) {
  const snapshots = Context.getUnsafe(yield* section.services, Snapshots)
  const checkpoint = yield* Checkpoint.make({ session, snapshots })
  const prompt = yield* Prompt.make({
    ns: "agents/test",
    key: "scenario",
    sections: [Section.MarkdownSection({ title: "Notes", template: "Note what matters.", tools: [note, breaking] }), section]
  })
  const run = yield* Adapter.run(Adapter.make("scenario"), prompt, { session, checkpoint })
  const call = ({ input, tool }: Asked) => run.call(tool, input)
  const done = (asked: Asked) =>
    Effect.map(call(asked), ({ message, success, value }) => {
      assert.isTrue(success, `${asked.tool} ${JSON.stringify(asked.input)}: ${message}`)
      return value as Readonly<Record<string, unknown>>
    })
  return {
    checkpoint,
    snapshots,
    call,
    done,
    list: (path: string) => Effect.map(done(kit.list(path)), kit.names),
    read: (path: string) =>
      Effect.map(done(kit.read(path)), (value) => ({ path, text: kit.text(value), version: kit.version(value) }))
  }
})

/** Returns the last item with the files in a snapshot of the session, and the number of filesystem snapshots in its slice. */
const moments = Effect.fnUntraced(function* ({ isInSession }: Kind, session: Session.Operations) {
  const snapshot = yield* session.snapshot("now")
  const files = isInSession ? [...snapshot.items(State), ...snapshot.items(VirtualFileSystem)] : []
  yield* session.forget("now")
  return { files: files.at(-1), taken: snapshot.items(Checkpoint.FilesystemSnapshots).length }
})

/** The files at the time of the dump. */
const files: Files = { "docs/guide.md": "# Guide\n\n1. Look.\n", "notes/plan.md": "1. look\n2. write\n" }
const noted = ["begun", "planned"]

export interface Dumped {
  readonly path: string
  readonly sessionId: string
  readonly calls: number
}

/** Runs the first half of the work, up to the dump. */
export const begin = Effect.fnUntraced(function* (kind: Kind) {
  const { kit } = kind
  const place = Fs.mkdtempSync(join(inMemory(), "scenario-"))
  Fs.mkdirSync(join(place, "project/docs"), { recursive: true })
  Fs.writeFileSync(join(place, "project/docs/guide.md"), files["docs/guide.md"] as string)
  Fs.writeFileSync(join(place, "project/docs/logo.png"), "not mounted")

  const session = yield* Session.make({ slices: [Notes, ToolEvents.log], tags: { session_id: "dumped" } })
  const mounts = [{ hostPath: "docs/", include: ["*.md"] }]
  const section = yield* kind.open({ session, mounts, allowedRoots: [join(place, "project")] })
  const { call, checkpoint, done, list, read } = yield* working(kind, section, session)
  let calls = 0
  /** Counts calls, which a rollback must keep in the log. */
  const counted = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.tap(effect, () => Effect.map(session.all(ToolEvents.log), (log) => assert.lengthOf(log, ++calls)))

  // The workspace holds only the mounted files.
  assert.deepStrictEqual(yield* pictureOf(section), picture({ "docs/guide.md": files["docs/guide.md"]! }))
  assert.deepStrictEqual(yield* counted(list("")), ["docs"])
  assert.deepStrictEqual(yield* counted(list("docs")), ["guide.md"])
  assert.strictEqual((yield* counted(read("docs/guide.md"))).text, "# Guide\n\n1. Look.")

  // Each change adds a state to the session.
  const changes = [
    kit.create("notes/plan.md", "1. look\n"),
    kit.append("notes/plan.md", "2. right\n"),
    kit.create("scratch.txt", "x"),
    kit.remove("scratch.txt")
  ]
  for (const asked of changes) {
    const before = yield* moments(kind, session)
    yield* counted(done(asked))
    const after = yield* moments(kind, session)
    assert.strictEqual(after.taken, before.taken + 1)
    if (kind.isInSession) assert.notStrictEqual(after.files, before.files)
  }
  yield* counted(done({ tool: "note", input: { text: "begun" } }))

  // An edit needs the version that was read; an older one is refused.
  const plan = yield* counted(read("notes/plan.md"))
  assert.strictEqual(plan.text, "1. look\n2. right")
  yield* counted(done(kit.change(plan, "right", "write")))
  const stale = yield* counted(call(kit.change(plan, "look", "wait")))
  assert.deepStrictEqual([stale.success, /changed/.test(stale.message)], [false, true])
  yield* counted(done({ tool: "note", input: { text: "planned" } }))
  assert.deepStrictEqual(yield* pictureOf(section), picture(files))

  // A tool that fails midway changes neither the files nor the session.
  const broken = yield* counted(call({ tool: "break", input: {} }))
  assert.deepStrictEqual([broken.success, broken.message], [false, "It broke. Do something else."])
  assert.deepStrictEqual(yield* pictureOf(section), picture(files))
  assert.deepStrictEqual(yield* session.all(Notes), noted)

  // A whole turn is rolled back.
  yield* checkpoint.take("turn-1")
  yield* counted(done(kit.remove("docs")))
  yield* counted(done(kit.create("astray/deep/file.txt", "x")))
  yield* counted(done({ tool: "note", input: { text: "astray" } }))
  assert.deepStrictEqual(yield* counted(list("")), ["astray", "notes"])
  yield* checkpoint.rollback("turn-1")
  assert.deepStrictEqual(yield* pictureOf(section), picture(files))
  assert.deepStrictEqual(yield* session.all(Notes), noted)
  assert.deepStrictEqual(yield* counted(list("docs")), ["guide.md"])

  const path = yield* Session.dumpSessionTree(session, join(place, "dumps"), { filesystem: section })
  assert.strictEqual(path, join(place, "dumps/dumped.jsonl"))
  return { path: path!, sessionId: session.id, calls } satisfies Dumped
}, Effect.scoped)

/**
 * Runs the second half on another workspace. Files of a session are made for that session and then filled. Other files
 * are filled in the same step that loads the session.
 */
export const resume = Effect.fnUntraced(function* (kind: Kind, there: Section.Workspace | undefined, dumped: Dumped) {
  const { kit } = kind
  const { archive, session } = yield* Session.loadSessionTree(dumped.path, { slices, into: there })
  const section = there ?? (yield* kind.open({ session }))
  if (there === undefined) assert.strictEqual(yield* (yield* section.snapshots).restore(archive!), 2)

  assert.strictEqual(session.id, dumped.sessionId)
  assert.deepStrictEqual(yield* pictureOf(section), picture(files))
  assert.deepStrictEqual(yield* session.all(Notes), noted)
  assert.lengthOf(yield* session.all(ToolEvents.log), dumped.calls)

  const { checkpoint, done, list, read, snapshots } = yield* working(kind, section, session)
  // The filesystem snapshots in the session belong to another workspace, so a rollback to them is refused.
  const elsewhere = yield* Effect.flip(Checkpoint.rollbackTo(session, yield* session.snapshot(), snapshots))
  assert.include(["incompatible", "unknown"], elsewhere.reason)
  assert.deepStrictEqual(yield* pictureOf(section), picture(files))

  assert.deepStrictEqual(yield* list(""), ["docs", "notes"])
  yield* done(kit.change(yield* read("notes/plan.md"), "look", "looked"))
  yield* checkpoint.take("resumed")
  yield* done(kit.remove("notes"))
  yield* checkpoint.rollback("resumed")
  yield* done(kit.append("notes/plan.md", "3. done\n"))
  yield* done(kit.remove("docs"))
  yield* done({ tool: "note", input: { text: "resumed" } })

  assert.deepStrictEqual(yield* pictureOf(section), picture({ "notes/plan.md": "1. looked\n2. write\n3. done\n" }))
  assert.deepStrictEqual(yield* session.all(Notes), [...noted, "resumed"])
  assert.lengthOf(yield* session.all(ToolEvents.log), dumped.calls + 7)
}, Effect.scoped)
