/**
 * Shows the virtual filesystem of a session and its four tools: its text in a prompt, its state in the session, rollback,
 * reset, and calls from other sessions.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Adapter, HostMount, InMemory, Filesystem, Prompt, Section, Session, ToolEvents, VfsState } from "../../src/index.ts"
import { directory } from "./machine.ts"

const adapter = Adapter.make("example")

/** Returns the paths that a session knows, with the number of writes to each. */
const versionsIn = (session: Session.Operations) =>
  Effect.map(session.latest(VfsState.VirtualFileSystem), (latest) =>
    Object.fromEntries(Option.getOrThrow(latest).files.map(({ path, version }) => [path.join("/"), version]))
  )

const known = (session: Session.Operations, path: string) =>
  Effect.map(session.latest(VfsState.VirtualFileSystem), (latest) =>
    Option.getOrThrow(latest).files.find((file) => file.path.join("/") === path)
  )

const rootOf = (session: Session.Operations) =>
  Effect.map(session.latest(VfsState.VirtualFileSystem), (latest) => Option.getOrThrow(latest).rootPath)

/** Starts a session with a section whose docs are mounted, and a run of its prompt. */
const begun = Effect.fnUntraced(function* (options: Section.VfsToolsOptions = {}) {
  const project = yield* directory({ "docs/guide.md": "# Guide\n", "docs/logo.png": "no text", "secret.txt": "not mounted" })
  const session = yield* Session.make({ slices: [ToolEvents.log] })
  const section = yield* Section.VfsToolsSection({
    session,
    mounts: [{ hostPath: "docs/", mountPath: ["docs"], include: ["*.md"] }],
    allowedRoots: [project],
    ...options
  })
  const prompt = yield* Prompt.make({
    ns: "agents/background",
    key: "workspace",
    name: "workspace-tools",
    sections: [
      Section.MarkdownSection({
        title: "Behaviour",
        template: "Use the virtual filesystem to stage edits before applying them to the host workspace."
      }),
      section
    ]
  })
  const run = yield* Adapter.run(adapter, prompt, { session })
  return { project, session, section, prompt, ...run }
})

export const aPromptIsRenderedAndTheSessionKnowsTheFiles = Effect.gen(function* () {
  const { rendered, session } = yield* begun()
  return {
    text: rendered.text,
    tools: rendered.tools.map(({ definition }) => definition.name),
    known: yield* versionsIn(session)
  }
}).pipe(Effect.scoped)

/** With a lazy start the session has no files and no directory until a tool is called. */
export const nothingIsKnownBeforeTheFirstCall = Effect.gen(function* () {
  const project = yield* directory({ "docs/guide.md": "# Guide\n" })
  const directories = yield* directory()
  const session = yield* Session.make()
  const state = yield* VfsState.make({
    session,
    mounts: [{ hostPath: "docs" }],
    allowedRoots: [project],
    start: "lazy",
    directory: directories
  })
  const before = { known: yield* session.latest(VfsState.VirtualFileSystem), made: Fs.readdirSync(directories) }
  const listed = (yield* state.filesystem.list("docs")).map(({ name }) => name)
  return { before, listed, known: yield* versionsIn(session) }
}).pipe(Effect.scoped)

export const withoutMountsItStartsEmpty = Effect.gen(function* () {
  const { call, rendered, session } = yield* begun({ mounts: [] })
  return {
    listed: (yield* call("list_directory", {})).value,
    known: yield* versionsIn(session),
    text: rendered.text
  }
}).pipe(Effect.scoped)

export const eachCallIsSeenInTheSession = Effect.gen(function* () {
  const { call, session } = yield* begun({ mounts: [] })
  const seen: Array<unknown> = []
  const after = Effect.fnUntraced(function* (tool: string, input: unknown) {
    const { success } = yield* call(tool, input)
    seen.push([success, yield* versionsIn(session)])
  })
  yield* after("write_file", { path: "log.txt", content: "one\n" })
  yield* after("write_file", { path: "log.txt", content: "again\n" })
  yield* after("write_file", { path: "log.txt", content: "two\n", mode: "append" })
  yield* after("write_file", { path: "src/b.txt", content: "b" })
  yield* after("write_file", { path: "src/a/c.txt", content: "c" })
  yield* after("write_file", { path: "log.txt", content: "three\n", mode: "overwrite" })
  yield* after("read_file", { path: "log.txt" })
  yield* after("delete_file", { path: "src" })
  return seen
}).pipe(Effect.scoped)

/** A file is created once and updated with each write; an append adds to its size. */
export const timesAndSizesAreKept = Effect.gen(function* () {
  const { call, session } = yield* begun({ mounts: [] })
  const facts: Array<VfsState.VfsFile> = []
  for (const [content, mode] of [
    ["one\n", "create"],
    ["zwö\n", "append"],
    ["3", "overwrite"]
  ] as const) {
    yield* call("write_file", { path: "log.txt", content, mode })
    facts.push((yield* known(session, "log.txt"))!)
  }
  const [made, , last] = facts
  return {
    sizes: facts.map(({ sizeBytes }) => sizeBytes),
    versions: facts.map(({ version }) => version),
    encodings: facts.map(({ encoding }) => encoding),
    isMadeOnce: facts.every(({ createdAt }) => DateTime.Equivalence(createdAt, made!.createdAt)),
    isOrdered: facts.every(
      ({ updatedAt }, i) => i === 0 || updatedAt.epochMilliseconds >= facts[i - 1]!.updatedAt.epochMilliseconds
    ),
    isInWholeMillis: Number.isInteger(last!.updatedAt.epochMilliseconds)
  }
}).pipe(Effect.scoped)

/** The state is a frozen value that later calls do not change. */
export const whatIsKnownIsAValue = Effect.gen(function* () {
  const { call, session } = yield* begun({ mounts: [] })
  yield* call("write_file", { path: "a.txt", content: "1" })
  const held = Option.getOrThrow(yield* session.latest(VfsState.VirtualFileSystem))
  const before = held.files.map(({ path }) => path.join("/"))
  yield* call("write_file", { path: "b.txt", content: "2" })
  return {
    before,
    held: held.files.map(({ path }) => path.join("/")),
    isFrozen: Object.isFrozen(held.files) && Object.isFrozen(held.files[0])
  }
}).pipe(Effect.scoped)

/** Programs can use the directory, and both sides see each other's changes. */
export const theDirectoryCanBeUsedDirectly = Effect.gen(function* () {
  const { call, session } = yield* begun()
  const root = yield* rootOf(session)
  yield* call("write_file", { path: "out/a.txt", content: "by the tools" })
  Fs.writeFileSync(join(root, "out/b.txt"), "by a program")
  return {
    ours: Fs.readFileSync(join(root, "out/a.txt"), "utf8"),
    theirs: ((yield* call("read_file", { path: "out/b.txt" })).value as { readonly content: string }).content,
    listed: (yield* call("list_directory", { path: "out" })).value
  }
}).pipe(Effect.scoped)

/** A snapshot is a copy, and a restore copies it again, any number of times. */
export const aSnapshotIsNeverWrittenThrough = Effect.gen(function* () {
  const { call, section, session } = yield* begun({ mounts: [] })
  const fs = yield* section.filesystem
  yield* call("write_file", { path: "a.txt", content: "saved" })
  yield* session.snapshot("saved")
  const roots = [yield* rootOf(session)]
  const seen: Array<string> = []
  for (const content of ["changed", "changed again"]) {
    yield* call("write_file", { path: "a.txt", content, mode: "append" })
    yield* session.rollback("saved")
    roots.push(yield* rootOf(session))
    seen.push(yield* fs.readString("a.txt"))
  }
  return { seen, directories: new Set(roots).size, left: roots.filter((root) => Fs.existsSync(root)).length }
}).pipe(Effect.scoped)

/** After a reset the next call makes a new directory with the current content of the mounts. */
export const aResetBeginsAnew = Effect.gen(function* () {
  const { call, project, session } = yield* begun()
  const before = yield* rootOf(session)
  yield* call("write_file", { path: "scratch.txt", content: "x" })
  yield* call("delete_file", { path: "docs" })
  Fs.writeFileSync(join(project, "docs/guide.md"), "# Guide, second edition\n")
  yield* session.reset
  const known = yield* session.latest(VfsState.VirtualFileSystem)
  const read = yield* call("read_file", { path: "docs/guide.md" })
  return {
    known,
    content: (read.value as { readonly content: string }).content,
    versions: yield* versionsIn(session),
    isAnother: (yield* rootOf(session)) !== before,
    isOldGone: !Fs.existsSync(before)
  }
}).pipe(Effect.scoped)

export const nothingIsLeftWhenTheSessionEnds = Effect.gen(function* () {
  const directories = yield* directory()
  const during = yield* Effect.scoped(
    Effect.gen(function* () {
      const session = yield* Session.make()
      const { filesystem } = yield* VfsState.make({ session, directory: directories })
      yield* filesystem.write("a.txt", "1")
      yield* session.snapshot("kept")
      return Fs.readdirSync(directories).length
    })
  )
  return { during: during > 0, after: Fs.readdirSync(directories) }
}).pipe(Effect.scoped)

/** Two sections of one session share one filesystem. */
export const aSecondSectionHasTheSameFiles = Effect.gen(function* () {
  const { call, session } = yield* begun()
  yield* call("write_file", { path: "shared.txt", content: "for both" })
  const second = yield* Section.VfsToolsSection({ session })
  return yield* (yield* second.filesystem).readString("shared.txt")
}).pipe(Effect.scoped)

/** A section belongs to its session: in a run of another session its tools refuse calls, without effect. */
export const anotherSessionIsRefused = Effect.gen(function* () {
  const { prompt, section } = yield* begun()
  const other = yield* Adapter.run(adapter, prompt, { session: yield* Session.make() })
  const result = yield* other.call("write_file", { path: "a.txt", content: "x" })
  return { result, isThere: yield* (yield* section.filesystem).exists("a.txt") }
}).pipe(Effect.scoped)

/** Normalises or refuses paths. A leading slash stands for the workspace, never for the machine. */
export const pathsAreNormalisedOrRefused = Effect.gen(function* () {
  const { call } = yield* begun({ mounts: [] })
  const written = Effect.fnUntraced(function* (path: string) {
    const { message, success, value } = yield* call("write_file", { path, content: "x" })
    return success ? (value as { readonly path: string }).path : message
  })
  return {
    normalised: yield* Effect.forEach(
      ["a//b.txt", "/absolute.txt", " spaced.txt ", `${"d/".repeat(15)}f`, "x".repeat(80)],
      written
    ),
    refused: yield* Effect.forEach(
      ["../up.txt", "a/../b.txt", "./a.txt", "naïve.txt", "a\u0000b", `${"d/".repeat(16)}f`, "x".repeat(81)],
      written
    )
  }
}).pipe(Effect.scoped)

const project = directory({
  "shared/a.md": "a of the project",
  "shared/b.md": "b of the project",
  "shared/c.txt": "no Markdown",
  "team/b.md": "b of the team",
  "team/draft.md": "not yet",
  "big/large.md": "x".repeat(100)
})

/** Mounts merge in order, later ones over earlier ones, with the same result each time. */
export const mountsMerge = Effect.gen(function* () {
  const allowedRoots = [yield* project]
  const mounts: ReadonlyArray<HostMount.HostMount> = [
    { hostPath: "shared", mountPath: "docs", include: ["*.md"] },
    { hostPath: "team", mountPath: "docs", exclude: ["draft.md"] }
  ]
  const merged = Effect.fnUntraced(function* (mounts: ReadonlyArray<HostMount.HostMount>) {
    const { filesystem } = yield* VfsState.make({ session: yield* Session.make(), mounts, allowedRoots })
    const names = (yield* filesystem.list("docs")).map(({ name }) => name)
    return { names, b: yield* filesystem.readString("docs/b.md") }
  })
  return [yield* merged(mounts), yield* merged(mounts), yield* merged(mounts.toReversed())]
}).pipe(Effect.scoped)

/** Refused mounts leave nothing. */
export const mountsAreRefused = Effect.gen(function* () {
  const allowed = yield* project
  const outside = yield* directory({ "key.pem": "secret" })
  const tried = Effect.fnUntraced(function* (
    mount: HostMount.HostMount,
    allowedRoots: ReadonlyArray<string> | undefined = [allowed]
  ) {
    const fs = Filesystem.make(yield* InMemory.make())
    const error = yield* Effect.flip(HostMount.hydrate(fs, [mount], { allowedRoots }))
    const { reason } = error as HostMount.MountError
    return [reason, (yield* fs.list()).length] as const
  })
  return {
    outside: yield* tried({ hostPath: outside }),
    upwards: yield* tried({ hostPath: `../${outside.split("/").at(-1)}` }),
    unlisted: yield* tried({ hostPath: allowed }, []),
    missing: yield* tried({ hostPath: "nowhere" }),
    overBudget: yield* tried({ hostPath: "big", maxBytes: 99 })
  }
}).pipe(Effect.scoped)

/** Calls are logged without content, and the log survives a rollback. */
export const callsAreTold = Effect.gen(function* () {
  const { call, session } = yield* begun({ mounts: [] })
  yield* session.snapshot("empty")
  yield* call("write_file", { path: "notes.txt", content: "täglich", mode: "create" }, { callId: "call-1" })
  yield* call("read_file", { path: "nowhere.txt" }, { callId: "call-2" })
  yield* session.rollback("empty")
  return yield* session.all(ToolEvents.log)
}).pipe(Effect.scoped)
