/**
 * Shows the filesystem that tools reach through their context: how a handler gets the filesystem, which section owns it, how
 * a prompt finds it, and how it is rolled back with its session.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import {
  Adapter,
  Checkpoint,
  Filesystem,
  InMemory,
  Policy,
  PosixHost,
  Prompt,
  Section,
  Session,
  Slice,
  Snapshots,
  Tool,
  ToolContext
} from "../../src/index.ts"
import { directory } from "./machine.ts"

/**
 * Finds the filesystem in its context, and turns expected failures into messages for the model. The tool declares no
 * paths, so it is called even without files.
 */
export const readPage = Tool.make({
  name: "read_page",
  description: "Read some lines of a text file.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file." }),
    offset: Schema.optionalKey(Schema.Int.annotate({ description: "The first line, counted from 0." })),
    limit: Schema.optionalKey(Schema.Int.annotate({ description: "How many lines." }))
  }),
  value: Schema.Struct({ content: Schema.String, path: Schema.String, truncated: Schema.Boolean }),
  does: "reads",
  examples: [{ path: "README.md", offset: 10, limit: 5 }],
  handle: Effect.fnUntraced(function* ({ limit, offset, path }) {
    const { filesystem } = yield* ToolContext.ToolContext
    if (Option.isNone(filesystem)) {
      return yield* Effect.fail(Tool.refused("There are no files in this context.", "Answer without them."))
    }
    const page = yield* filesystem.value.read(path, { offset, limit }).pipe(
      Effect.catchTags({
        NotFound: () => Effect.fail(Tool.refused(`File not found: ${path}.`, "List the directory to see its entries.")),
        AccessDenied: ({ message }) => Effect.fail(Tool.refused(`${message}.`, "Leave it alone."))
      })
    )
    const { content, totalLines, truncated } = page
    return { message: `Read ${page.path}, which has ${totalLines} lines.`, value: { content, path: page.path, truncated } }
  })
})

/** Returns a tool that reports the filesystem of its context. */
const whereAmI = (name: string) =>
  Tool.make({
    name,
    description: "Tell in which filesystem this is.",
    value: Schema.Struct({ place: Schema.String }),
    does: "reads",
    needsFilesystem: false,
    handle: Effect.fnUntraced(function* () {
      const { filesystem } = yield* ToolContext.ToolContext
      const place = Option.isNone(filesystem) ? "nowhere" : yield* filesystem.value.readString("name")
      return { message: `This is ${place}.`, value: { place } }
    })
  })

const adapter = Adapter.make("example")

const promptOf = (...sections: ReadonlyArray<Section.Section>) =>
  Prompt.make({ ns: "agents/example", key: "example", sections })

/** Calls one tool of a prompt in a new session. */
const calling = Effect.fnUntraced(function* (sections: ReadonlyArray<Section.Section>, tool: string, input: unknown) {
  const run = yield* Adapter.run(adapter, yield* promptOf(...sections), { session: yield* Session.make() })
  return yield* run.call(tool, input)
}, Effect.scoped)

const filesOf = (tree: InMemory.Tree) => Effect.map(InMemory.make({ tree }), Filesystem.make)

/** Makes a section. Any object of this shape is a section, and a section with a filesystem is a workspace. */
const sectionOf = (key: string, fields: Partial<Section.Section>): Section.Section => ({
  key,
  title: `The ${key}`,
  template: "",
  tools: [],
  children: [],
  acceptsOverrides: false,
  ...fields
})

const lines = "1\n2\n3\n4\n5\n"

export const aHandlerReadsAPage = Effect.gen(function* () {
  const files = yield* filesOf({ "numbers.txt": lines })
  const section = sectionOf("files", { tools: [readPage], filesystem: Effect.succeed(files) })
  return {
    page: yield* calling([section], "read_page", { path: "numbers.txt", offset: 1, limit: 2 }),
    missing: yield* calling([section], "read_page", { path: "letters.txt" })
  }
})

/**
 * A policy forbids reading a file. The policy applies to the handler's filesystem, and the handler passes the refusal
 * on.
 */
export const aHandlerIsDenied = Effect.gen(function* () {
  const files = yield* filesOf({ "public.txt": "all", "secret.txt": "mine" })
  const section = sectionOf("files", { tools: [readPage], filesystem: Effect.succeed(files) })
  return {
    open: yield* calling([section], "read_page", { path: "public.txt" }),
    denied: yield* calling([section], "read_page", { path: "secret.txt" })
  }
}).pipe(Effect.provide(Policy.access({ deny: { read: "secret.txt" } })))

export const aHandlerHasNoFiles = calling([sectionOf("text", { tools: [readPage] })], "read_page", { path: "numbers.txt" })

/** A tool can require files. Without files it is refused before it does anything. */
export const aToolNeedsFiles = Effect.suspend(() => {
  let runs = 0
  const counted = Tool.make({
    name: "count",
    description: "Count how often this was run.",
    value: Schema.Struct({}),
    needsFilesystem: true,
    handle: () => Effect.sync(() => ({ message: `${++runs}`, value: {} }))
  })
  return Effect.map(calling([sectionOf("text", { tools: [counted] })], "count", {}), (result) => ({ result, runs }))
})

export const theContextIsFrozen = Effect.gen(function* () {
  const prompt = yield* promptOf(sectionOf("text", {}))
  const context = ToolContext.make({ prompt, adapter, session: yield* Session.make() })
  const { budgetTracker, deadline, filesystem, renderedPrompt } = context
  return { isFrozen: Object.isFrozen(context), leftOut: [renderedPrompt, deadline, budgetTracker, filesystem] }
})

/** An adapter gives tools the prompt's filesystem, which is the same object as the section's. */
export const theAdapterPassesTheFilesystemOn = Effect.gen(function* () {
  const section = yield* Section.VfsSection()
  const prompt = yield* promptOf(sectionOf("text", {}), section)
  const run = yield* Adapter.run(adapter, prompt, { session: yield* Session.make() })
  const own = yield* section.filesystem
  return {
    prompts: Option.getOrUndefined(yield* Prompt.filesystem(prompt)) === own,
    contexts: Option.getOrUndefined(run.context.filesystem) === own,
    isRendered: Option.isSome(run.context.renderedPrompt),
    adapter: run.context.adapter === adapter,
    prompt: run.context.prompt === prompt
  }
}).pipe(Effect.scoped)

/** A custom section over any layer, made at first use with its mounts, and kept. */
export const aSectionOfOnesOwn = Effect.gen(function* () {
  const project = yield* directory({ "src/main.py": "print('hello')", "src/data.bin": "x", "secret.txt": "no" })
  const section = yield* Section.FilesystemSection({
    key: "files",
    title: "Files",
    template: "Some files.",
    layer: InMemory.layer(),
    mounts: [{ hostPath: "src/", include: ["*.py"] }],
    allowedRoots: [project],
    tools: [readPage]
  })
  const fs = yield* section.filesystem
  return {
    found: (yield* fs.glob("**")).matches.map(({ path }) => path),
    read: yield* calling([section], "read_page", { path: "src/main.py" })
  }
}).pipe(Effect.scoped)

/** Each section precedes its children, and the first one with a filesystem is the workspace. */
export const thePromptFindsTheWorkspace = Effect.gen(function* () {
  const named = Effect.fnUntraced(function* (name: string) {
    const files = yield* filesOf({ name })
    return sectionOf(name, { filesystem: Effect.succeed(files), tools: [whereAmI(`in_${name}`)] })
  })
  const child = yield* named("child")
  const later = yield* named("later")
  const parent = sectionOf("parent", { children: [sectionOf("text", {}), child], tools: [whereAmI("in_parent")] })
  const sections = [sectionOf("instructions", {}), parent, later]
  const prompt = yield* promptOf(...sections)
  const answered = (tool: string) => Effect.map(calling(sections, tool, {}), ({ message }) => message)
  return {
    workspace: Option.map(Prompt.workspace(prompt), ({ key }) => key),
    none: yield* Prompt.filesystem(yield* promptOf(sectionOf("instructions", {}))),
    // A tool gets the filesystem of its own section, or else that of the prompt.
    ofItsSection: yield* answered("in_later"),
    ofThePrompt: yield* answered("in_parent")
  }
})

const Note = Slice.make("Note", Schema.String)

const snapshotsOf = (fs: Filesystem.Algebra) =>
  Effect.map(Layer.build(Snapshots.layer.pipe(Layer.provide(Layer.succeed(Filesystem.Filesystem, fs)))), (built) =>
    Context.get(built, Snapshots.Snapshots)
  )

/** A directory on disk, with snapshots in a git store outside of it. */
const workspace = Effect.gen(function* () {
  const fs = Filesystem.make(yield* PosixHost.make({ root: yield* directory() }))
  return { fs, snapshots: yield* snapshotsOf(fs) }
})

/** A snapshot is a value. `FilesystemSnapshots` is an ordinary slice of snapshots. */
export const snapshotsAreKeptInASession = Effect.gen(function* () {
  const { fs, snapshots } = yield* workspace
  const session = yield* Session.make({ slices: [Checkpoint.FilesystemSnapshots] })
  for (const text of ["first", "before-refactor"]) {
    yield* fs.write("code.py", text)
    yield* session.dispatch(Checkpoint.FilesystemSnapshots, yield* snapshots.snapshot({ tag: text }))
  }
  yield* fs.write("code.py", "broken")

  // The value survives being saved as text.
  const path = join(yield* directory(), "session.json")
  yield* session.save(path)
  const loaded = yield* Session.load(path, { slices: [Checkpoint.FilesystemSnapshots] })
  const kept = yield* loaded.all(Checkpoint.FilesystemSnapshots)
  yield* snapshots.restore(kept.at(-1)!)
  return { tags: kept.map(({ tag }) => tag), code: yield* fs.readString("code.py") }
}).pipe(Effect.scoped)

/** Rolls back to the newest filesystem snapshot in the session's snapshot, and then the session. */
export const bothAreRolledBack = Effect.gen(function* () {
  const { fs, snapshots } = yield* workspace
  const session = yield* Session.make({ slices: [Checkpoint.FilesystemSnapshots, Note] })
  yield* fs.write("code.py", "good")
  yield* session.dispatch(Note, "works")
  yield* session.dispatch(Checkpoint.FilesystemSnapshots, yield* snapshots.snapshot())
  const good = yield* session.snapshot()

  yield* fs.write("code.py", "bad")
  yield* fs.write("more.py", "worse")
  yield* session.dispatch(Note, "broken")
  yield* session.dispatch(Checkpoint.FilesystemSnapshots, yield* snapshots.snapshot())

  yield* Checkpoint.rollbackTo(session, good, snapshots)
  return {
    files: (yield* fs.list()).map(({ name }) => name),
    code: yield* fs.readString("code.py"),
    notes: yield* session.all(Note),
    recorded: (yield* session.all(Checkpoint.FilesystemSnapshots)).length
  }
}).pipe(Effect.scoped)

/** If the filesystem cannot be restored, the session stays unchanged too. */
export const neitherIsRolledBack = Effect.gen(function* () {
  const { fs, snapshots } = yield* workspace
  const session = yield* Session.make({ slices: [Checkpoint.FilesystemSnapshots, Note] })
  const taken = yield* snapshots.snapshot()
  yield* session.dispatch(Checkpoint.FilesystemSnapshots, taken)
  const before = yield* session.snapshot()
  yield* fs.write("code.py", "new")
  yield* session.dispatch(Note, "new")
  yield* snapshots.forget(taken)

  const error = yield* Effect.flip(Checkpoint.rollbackTo(session, before, snapshots))
  return { error, code: yield* fs.readString("code.py"), notes: yield* session.all(Note) }
}).pipe(Effect.scoped)

export const aPromptWithFiles = Effect.gen(function* () {
  const project = yield* directory({
    "src/main.py": "print('hello')",
    "src/notes.txt": "no Python",
    "docs/guide.md": "# Guide",
    "docs/logo.png": "no Markdown",
    "secret.txt": "not mounted"
  })
  const files = yield* Section.VfsToolsSection({
    mounts: [
      { hostPath: "src/", include: ["*.py"] },
      { hostPath: "docs/", include: ["*.md"] }
    ],
    allowedRoots: [project]
  })
  const template = yield* Prompt.template({
    ns: "agents/coder",
    key: "edit-files",
    sections: [
      Section.MarkdownSection({ title: "Instructions", key: "instructions", template: "Edit files as requested." }),
      files
    ]
  })
  const prompt = yield* Prompt.make(template)

  // The filesystem exists before anything is rendered, so it can be filled and inspected.
  const fs = Option.getOrThrow(yield* Prompt.filesystem(prompt))
  yield* fs.write("scratch/notes.txt", "Working notes...")

  const run = yield* Adapter.run(adapter, prompt, { session: yield* Session.make() })
  return {
    isTheSections: fs === (yield* files.filesystem),
    there: (yield* fs.glob("**")).matches.map(({ path }) => path),
    mounted: yield* run.call("read_file", { path: "src/main.py" }),
    prepared: yield* run.call("read_file", { path: "scratch/notes.txt" })
  }
}).pipe(Effect.scoped)
