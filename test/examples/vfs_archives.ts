/**
 * Shows archives and sessions side by side: named snapshots, checkpoints of both under one id, and a dump that is resumed
 * on another kind of filesystem.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import { Checkpoint, Filesystem, InMemory, Section, Session, Slice, Snapshots } from "../../src/index.ts"
import { directory } from "./machine.ts"

const Turn = Schema.Struct({ said: Schema.String })
const Turns = Slice.make("Turns", Turn)

const beginSession = (id: string) => Session.make({ slices: [Turns], tags: { session_id: id } })

/** The filesystem is made once, by the first use, and the snapshots belong to the same filesystem. */
export const aSectionMakesItsFilesystemOnce = Effect.gen(function* () {
  let made = 0
  const section = yield* Section.FilesystemSection({
    key: "files",
    title: "Files",
    template: "",
    layer: Layer.unwrap(
      Effect.sync(() => {
        made++
        return InMemory.layer()
      })
    )
  })
  const before = made
  const snapshots = yield* section.snapshots
  const fs = yield* section.filesystem
  return {
    before,
    made,
    isTheSame: snapshots.filesystem === fs && (yield* section.filesystem) === fs && (yield* section.snapshots) === snapshots
  }
}).pipe(Effect.scoped)

/** Captures first the filesystem, then the session, turn by turn; then rolls each back by its name. */
export const turnsAreTakenAndRolledBack = Effect.gen(function* () {
  const session = yield* beginSession("turns")
  const section = yield* Section.VfsSection({ snapshotDirectory: join(yield* directory(), "snapshots") })
  const fs = yield* section.filesystem
  const snapshots = yield* section.snapshots
  for (const turn of [1, 2, 3]) {
    yield* fs.write("main.py", `print(${turn})`)
    yield* session.dispatch(Turns, { said: `turn ${turn}` })
    yield* snapshots.snapshot(`turn-${turn}`)
    yield* session.snapshot(`turn-${turn}`)
  }
  const shown: Array<string> = []
  for (const id of ["turn-1", "turn-3", "turn-2"]) {
    yield* session.rollback(id)
    yield* snapshots.rollback(id)
    shown.push(`${yield* fs.readString("main.py")} after ${(yield* session.all(Turns)).length}`)
  }
  return {
    shown,
    archives: (yield* snapshots.list).map(({ archivePath, snapshotId }) => [snapshotId, basename(archivePath)])
  }
}).pipe(Effect.scoped)

/** A checkpoint is one step: if any part fails, both stay unchanged. */
export const aCheckpointTakesBoth = Effect.gen(function* () {
  const session = yield* beginSession("both")
  const { checkpoint, fs } = yield* Effect.provide(
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      return { fs: yield* Filesystem.Filesystem, checkpoint: yield* Checkpoint.make({ session, snapshots }) }
    }),
    Layer.provideMerge(Snapshots.layer, InMemory.layer())
  )
  yield* fs.write("code.py", "v1")
  yield* session.dispatch(Turns, { said: "v1 is written" })
  yield* checkpoint.take("turn-5")

  yield* fs.write("code.py", "v2")
  yield* session.dispatch(Turns, { said: "v2 is written" })
  yield* checkpoint.rollback("turn-5")

  const transaction = checkpoint.transaction(
    Effect.gen(function* () {
      yield* fs.delete("code.py")
      yield* session.dispatch(Turns, { said: "it is gone" })
      return yield* Effect.fail("no" as const)
    })
  )
  return { failure: yield* Effect.flip(transaction), code: yield* fs.readString("code.py"), turns: yield* session.all(Turns) }
}).pipe(Effect.scoped)

/** Rolls back session and section separately, under one id. */
export const coordinatedSnapshots = Effect.gen(function* () {
  const session = yield* beginSession("coordinated")
  const section = yield* Section.VfsSection({ snapshotDirectory: join(yield* directory(), "snapshots") })
  const fs = yield* section.filesystem
  const snapshots = yield* section.snapshots
  yield* fs.write("code.py", "v1")
  yield* session.dispatch(Turns, { said: "something" })
  yield* snapshots.snapshot("checkpoint")
  yield* session.snapshot("checkpoint")

  yield* fs.write("code.py", "v2")
  yield* session.dispatch(Turns, { said: "something else" })

  yield* session.rollback("checkpoint")
  yield* snapshots.rollback("checkpoint")
  return { code: yield* fs.readString("code.py"), turns: yield* session.all(Turns) }
}).pipe(Effect.scoped)

/** Dumps a session, its child and the files of a section into a new directory. */
const dumped = Effect.fnUntraced(function* (target: string, tags: Readonly<Record<string, string>>) {
  const session = yield* Session.make({ slices: [Turns], tags })
  const child = yield* session.child({ slices: [Turns] })
  const section = yield* Section.VfsSection()
  yield* (yield* section.filesystem).write("src/main.py", "print('hello')")
  yield* (yield* section.filesystem).mkdir("empty")
  yield* session.dispatch(Turns, { said: "hello" })
  yield* child.dispatch(Turns, { said: "hello from below" })
  return { session, child, path: yield* Session.dumpSessionTree(session, target, { filesystem: section }) }
})

export const aDumpIsTwoFilesSideBySide = Effect.gen(function* () {
  const target = join(yield* directory(), "snapshots")
  const { child, path, session } = yield* dumped(target, { session_id: "abc123" })
  const lines = Fs.readFileSync(path!, "utf8").trim().split("\n")
  return {
    path: path === join(target, "abc123.jsonl"),
    names: Fs.readdirSync(target).sort(),
    ids: [session.id, child.id],
    sessions: lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }
}).pipe(Effect.scoped)

/** A dump without a name gets a new one. A file as the target stands for its directory. */
export const aDumpWithoutANameGetsOne = Effect.gen(function* () {
  const target = yield* directory({ "notes.txt": "" })
  const { path } = yield* dumped(join(target, "notes.txt"), {})
  return { names: Fs.readdirSync(target).sort(), name: basename(path!, ".jsonl") }
}).pipe(Effect.scoped)

export const nothingIsDumpedOfNothing = Effect.gen(function* () {
  const target = yield* directory()
  const section = yield* Section.VfsSection()
  yield* (yield* section.filesystem).write("src/main.py", "print('hello')")
  const path = yield* Session.dumpSessionTree(yield* beginSession("abc123"), join(target, "snapshots"), { filesystem: section })
  return { path, names: Fs.readdirSync(target) }
}).pipe(Effect.scoped)

/** Loads the session and finds the archive beside it, which can be restored into any kind of files. */
export const aDumpIsResumedAnywhere = Effect.gen(function* () {
  const { path } = yield* dumped(yield* directory(), { session_id: "abc123" })
  const { archive, session } = yield* Session.loadSessionTree(path!, { slices: [Turns] })
  const [child] = yield* session.children
  const sections = [
    yield* Section.VfsSection(),
    yield* Section.VfsToolsSection({ session }),
    yield* Section.WorkspaceSection(),
    yield* Section.WorkspaceSection({ root: yield* directory({ "in the way": "x" }) })
  ]
  const resumed = yield* Effect.forEach(
    sections,
    Effect.fnUntraced(function* (section) {
      const count = yield* (yield* section.snapshots).restore(archive!)
      const fs = yield* section.filesystem
      return {
        name: fs.name,
        count,
        there: (yield* fs.list()).map(({ path }) => path),
        main: yield* fs.readString("src/main.py")
      }
    })
  )
  return { archive: basename(archive!), turns: yield* session.all(Turns), below: yield* child!.all(Turns), resumed }
}).pipe(Effect.scoped)

/** Loads in one step, which leaves the files unchanged if the dump is damaged. */
export const aDamagedDumpChangesNothing = Effect.gen(function* () {
  const { path } = yield* dumped(yield* directory(), { session_id: "abc123" })
  const section = yield* Section.VfsSection()
  const fs = yield* section.filesystem
  yield* fs.write("before.txt", "still here")
  const [first] = Fs.readFileSync(path!, "utf8").split("\n")
  Fs.writeFileSync(path!, `${first}\n{"half of a line"`)
  const error = yield* Effect.flip(Session.loadSessionTree(path!, { slices: [Turns], into: section }))
  return { error, there: (yield* fs.list()).map(({ path }) => path) }
}).pipe(Effect.scoped)
