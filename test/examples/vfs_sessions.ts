/**
 * Files and sessions. A filesystem whose state is in the session is rolled back with it; the state of other filesystems
 * is captured on request. Sections give both the same seven tools.
 */
import { NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import {
  Adapter,
  Checkpoint,
  FileStore,
  Filesystem,
  InMemory,
  PosixHost,
  Prompt,
  Section,
  Session,
  Tool,
  ToolContext
} from "../../src/index.ts"
import { directory } from "./machine.ts"

const inSession = (session: Session.Operations) => Effect.map(InMemory.makeSession(session), Filesystem.make)

/** No extra step is needed: the tree is an item of the session. */
export const filesAreRolledBackWithTheirSession = Effect.gen(function* () {
  const session = yield* Session.make()
  const fs = yield* inSession(session)
  yield* fs.write("foo.txt", "original")
  const { snapshotId } = yield* session.snapshot()

  yield* fs.write("foo.txt", "modified")
  yield* fs.write("new.txt", "new")
  yield* session.rollback(snapshotId)
  return { foo: yield* fs.readString("foo.txt"), new: yield* Effect.flip(fs.read("new.txt")) }
}).pipe(Effect.scoped)

/** A backend over the loaded session finds the saved tree. */
export const filesAreSavedAndLoadedWithTheirSession = Effect.gen(function* () {
  const path = join(yield* directory(), "session.json")
  const before = yield* Session.make()
  yield* (yield* inSession(before)).write("src/main.py", "print('hello')")
  yield* before.save(path)

  const after = yield* Session.load(path, { slices: [InMemory.State] })
  const fs = yield* inSession(after)
  yield* fs.write("src/main.py", "print('bye')")
  return {
    loaded: after.id === before.id,
    now: yield* fs.readString("src/main.py"),
    before: yield* (yield* inSession(before)).readString("src/main.py")
  }
}).pipe(Effect.scoped)

const onHost = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>) {
  const root = yield* directory(files)
  return { root, fs: Filesystem.make(yield* PosixHost.make({ root })) }
})

/** The session does not hold a directory, so its tree is captured as an archive before the session is saved. */
export const filesElsewhereAreCarriedAlong = Effect.gen(function* () {
  const path = join(yield* directory(), "session.json")
  const here = yield* onHost({ "config.json": '{"debug":true}', "src/main.py": "print('hello')" })
  const session = yield* Session.make()
  yield* Checkpoint.captureExternal(session, here.fs)
  yield* session.save(path)

  const loaded = yield* Session.load(path, { slices: [Checkpoint.ExternalFsSnapshot] })
  const there = yield* onHost({ "in the way": "x" })
  return {
    wasThereAny: yield* Checkpoint.restoreExternal(loaded, there.fs),
    names: Fs.readdirSync(there.root, { recursive: true, encoding: "utf8" }).sort(),
    config: Fs.readFileSync(join(there.root, "config.json"), "utf8"),
    ofAnEmptySession: yield* Checkpoint.restoreExternal(yield* Session.make(), there.fs)
  }
}).pipe(Effect.scoped)

/** Makes an empty store of each kind. */
export const stores: Readonly<Record<string, Effect.Effect<FileStore.Operations, unknown, Scope.Scope>>> = {
  memory: Effect.gen(function* () {
    return FileStore.make(yield* inSession(yield* Session.make()))
  }),
  host: Effect.map(onHost({}), ({ fs }) => FileStore.make(fs))
}

export const whatIsWrittenIsRead = Effect.fnUntraced(function* (fs: FileStore.Operations) {
  const bytes = yield* fs.write("test.txt", "hello")
  return { bytes, read: yield* fs.read("test.txt") }
})

export const whatIsDeletedIsGone = Effect.fnUntraced(function* (fs: FileStore.Operations) {
  yield* fs.write("a/b.txt", "x")
  return { deleted: yield* fs.delete("a"), read: yield* Effect.flip(fs.read("a/b.txt")) }
})

export const whatIsSnapshotIsRestored = Effect.fnUntraced(function* (fs: FileStore.Operations) {
  yield* fs.write("file.txt", "original")
  const bytes = yield* fs.snapshot
  yield* fs.write("file.txt", "modified")
  const modified = (yield* fs.read("file.txt")).content
  yield* fs.restore(bytes)
  return { modified, restored: (yield* fs.read("file.txt")).content }
})

const adapter = Adapter.make("example")

/** All sections have one set of tools. A filesystem is made only at its first use. */
export const threeSections = Effect.gen(function* () {
  const session = yield* Session.make()
  const sections = [
    yield* Section.VfsSection({ session }),
    yield* Section.PodmanSection({ session, image: { rootfs: "/nowhere" } }),
    yield* Section.WorkspaceSection({ session, tools: "none" })
  ]
  return sections.map(({ key, title, tools }) => ({ key, title, tools: tools.map(({ name }) => name) }))
}).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

/** A program with its own tools finds the path of the directory in the prompt. */
export const aWorkspaceWithoutToolsOfOurs = Effect.gen(function* () {
  const project = yield* directory({ "docs/guide.md": "# Guide" })
  const section = yield* Section.WorkspaceSection({
    tools: "none",
    mounts: [{ hostPath: "docs" }],
    allowedRoots: [project]
  })
  const prompt = yield* Prompt.make({ ns: "agents/example", key: "native", sections: [section] })
  const { text } = yield* Prompt.render(prompt)
  const root = /^You work in the directory `(.*)`/m.exec(text)?.[1]
  return root === undefined ? text : Fs.readFileSync(join(root, "docs/guide.md"), "utf8")
}).pipe(Effect.scoped)

const namedBy = (name: string) =>
  Tool.make({
    name,
    description: "Read the name of the filesystem.",
    value: Schema.Struct({ name: Schema.String }),
    does: "reads",
    handle: Effect.fnUntraced(function* () {
      const { filesystem } = yield* ToolContext.ToolContext
      const text = yield* Option.getOrThrow(filesystem).readString("name")
      return { message: text, value: { name: text } }
    })
  })

/** The adapter finds the section of the tool, and gives the tool that section's filesystem. */
export const eachToolGetsTheFilesystemOfItsSection = Effect.gen(function* () {
  const withFile = (key: string) =>
    Section.FilesystemSection({
      key,
      title: key,
      template: "",
      layer: InMemory.layer({ tree: { name: key } }),
      tools: [namedBy(`name_${key}`)]
    })
  const prompt = yield* Prompt.make({
    ns: "agents/example",
    key: "two",
    sections: [yield* withFile("first"), yield* withFile("second")]
  })
  const { call } = yield* Adapter.run(adapter, prompt, { session: yield* Session.make() })
  return [(yield* call("name_first", {})).message, (yield* call("name_second", {})).message]
}).pipe(Effect.scoped)
