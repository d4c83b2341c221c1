/** Sessions with filesystems, summaries of their whole state, and faults at any step of a call. */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make as makeFilesystem } from "../../src/filesystem/Filesystem.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { SnapshotError, SnapshotRestoreError } from "../../src/history/errors.ts"
import { layer as snapshotsLayer, type Operations as SnapshotOperations, Snapshots } from "../../src/history/Snapshots.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { SessionError } from "../../src/model/sessionError.ts"
import { make as makeSlice } from "../../src/model/Slice.ts"
import { around, type Backend } from "../../src/port/Backend.ts"
import type { History } from "../../src/port/history.ts"
import { capture } from "../../src/testing/Files.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { fastDirectory } from "../backends/posixHost.ts"

/** The fault at a step. "after" means that the step has succeeded before it fails. */
export type Way = "fails" | "fails after" | "dies" | "hangs" | "hangs after"

export interface Stepper {
  /** The number of steps since the fault was armed. */
  readonly count: () => number
  readonly arm: (plan?: { readonly nth: number; readonly way: Way }) => Deferred.Deferred<void>
  /** Runs the work as one step. `afters` are the faults that can occur once the work is done. */
  readonly step: <A, E, R, E2>(
    work: Effect.Effect<A, E, R>,
    error: () => E2,
    afters?: ReadonlyArray<Way>
  ) => Effect.Effect<A, E | E2, R>
}

export const makeStepper = (): Stepper => {
  let plan: { readonly nth: number; readonly way: Way } | undefined
  let count = 0
  let hung = Deferred.makeUnsafe<void>()
  const hanging = Effect.suspend(() =>
    Effect.andThen(Deferred.succeed(hung, undefined), Effect.interruptible(Effect.never))
  ) as Effect.Effect<never>
  return {
    count: () => count,
    arm: (next) => {
      plan = next
      count = 0
      return (hung = Deferred.makeUnsafe())
    },
    step: (work, error, afters = []) =>
      Effect.suspend(() => {
        if (++count !== plan?.nth) return work
        switch (plan.way) {
          case "fails after":
            return afters.includes("fails after") ? Effect.andThen(work, Effect.fail(error())) : Effect.fail(error())
          case "hangs after":
            return afters.includes("hangs after") ? Effect.andThen(work, hanging) : hanging
          case "fails":
            return Effect.fail(error())
          case "dies":
            return Effect.die(new Error("planned"))
          case "hangs":
            return hanging
        }
      })
  }
}

const broken = (): Fault => ({ _tag: "IoError", code: "EIO", detail: "planned" })

const steppedHistory = (history: History | undefined, { step }: Stepper): History | undefined =>
  history?._tag === "Memory"
    ? {
        ...history,
        capture: step(history.capture, broken as never, ["hangs after"]),
        restore: (captured, paths) => step(history.restore(captured, paths), broken, ["hangs after"])
      }
    : history && { _tag: "Directory", root: history.root, listStamped: (path) => step(history.listStamped(path), broken) }

/** Makes each primitive of the port, and each of its history operations, a step. */
const steppedPort = (self: Backend, stepper: Stepper): Backend => {
  const { step } = stepper
  const port = around(self, (_, work) => step(work, broken, ["fails after", "hangs after"]))
  return {
    ...port,
    history: steppedHistory(self.history, stepper),
    open: (path) =>
      Effect.map(port.open(path), (handle) => ({
        ...handle,
        read: (offset: number, length: number) => step(handle.read(offset, length), broken)
      }))
  }
}

const notTaken = () => new SnapshotError({ operation: "snapshot", reason: "io", detail: "planned" })
const notRestored = () => new SnapshotRestoreError({ snapshotId: "", reason: "io", detail: "planned" })

const steppedSnapshots = (self: SnapshotOperations, { step }: Stepper): SnapshotOperations => ({
  ...self,
  snapshot: (options) => step(self.snapshot(options), notTaken, ["hangs after"]),
  restore: (snapshot, options) => step(self.restore(snapshot, options), notRestored, ["hangs after"]),
  forget: (snapshot) => step(self.forget(snapshot), notTaken)
})

export const Note = makeSlice("Note", Schema.String)
export const Log = makeSlice("Log", Schema.String, { policy: "log" })

const outside = () => new SessionError({ operation: "participant", reason: "outside", detail: "planned" })

/** A participant: a number outside of the slices, which snapshots capture. */
export interface Box {
  value: number
  /** The number of prepared changes that are neither committed nor discarded. */
  open: number
  kept: number
}

const boxIn = (name: string, session: Session.Operations, { step }: Stepper) =>
  Effect.gen(function* () {
    const box: Box = { value: 0, open: 0, kept: 0 }
    yield* session.addParticipant({
      name,
      capture: step(
        Effect.sync(() => {
          const { value } = box
          box.kept++
          const prepared = Effect.sync(() => {
            box.open++
            return {
              commit: Effect.sync(() => {
                box.open--
                box.value = value
              }),
              discard: Effect.sync(() => void box.open--)
            }
          })
          return { prepare: step(prepared, outside), release: Effect.sync(() => void box.kept--) }
        }),
        outside
      )
    })
    return box
  })

export interface Ground {
  readonly stepper: Stepper
  /** The filesystem without faults. */
  readonly fs: Algebra
  readonly plainSnapshots: SnapshotOperations
  readonly session: Session.Operations
  readonly snapshots: SnapshotOperations
  readonly checkpoint: Checkpoint.Operations
  readonly boxes: ReadonlyArray<Box>
}

type Make = (session: Session.Operations) => Effect.Effect<Algebra, unknown, Scope.Scope>

export const kinds: Readonly<Record<"memory" | "layerSession" | "vfsState" | "host" | "overlay", Make>> = {
  memory: () => Effect.map(InMemory.make(), makeFilesystem),
  layerSession: (session) => Effect.map(InMemory.makeSession(session), makeFilesystem),
  vfsState: (session) =>
    Effect.flatMap(fastDirectory, (directory) =>
      Effect.map(VfsState.make({ session, directory, policy: "standard" }), ({ filesystem }) => filesystem)
    ),
  host: () =>
    Effect.flatMap(fastDirectory, (root) =>
      Effect.map(PosixHost.make({ root: `${root}/root`, createRoot: true }), makeFilesystem)
    ),
  overlay: () =>
    Effect.gen(function* () {
      const lower = makeFilesystem(yield* InMemory.make({ tree: { lower: { a: "1", b: "2" }, "a.txt": "lower" } }))
      return overlay(makeFilesystem(yield* InMemory.make()))(lower)
    })
}

const snapshotsOf = (fs: Algebra) =>
  Effect.map(Effect.provideService(Layer.build(snapshotsLayer), Filesystem, fs), (context) => Context.get(context, Snapshots))

export const ground = (make: Make): Effect.Effect<Ground, never, Scope.Scope> =>
  Effect.gen(function* () {
    const stepper = makeStepper()
    const session = yield* Session.make({ slices: [Note, Log] })
    const boxes = [yield* boxIn("one", session, stepper), yield* boxIn("two", session, stepper)]
    const fs = yield* make(session)
    const plainSnapshots = yield* snapshotsOf(makeFilesystem(steppedPort(fs.port, stepper)))
    const snapshots = steppedSnapshots(plainSnapshots, stepper)
    const checkpoint = yield* Checkpoint.make({ session, snapshots })
    return { stepper, fs, plainSnapshots, session, snapshots, checkpoint, boxes }
  }).pipe(Effect.orDie)

/** The state that a rollback restores. */
export interface Picture {
  readonly tree: Readonly<Record<string, string>>
  readonly slices: Readonly<Record<string, unknown>>
  readonly boxes: ReadonlyArray<number>
}

const itemsOf = Effect.fnUntraced(function* <A, E>(
  session: Session.Operations,
  slice: Parameters<typeof session.all<A, E>>[0]
) {
  const items = yield* session.all(slice)
  return Schema.encodeSync(Schema.toCodecJson(Schema.Array(slice.schema)))(items) as unknown
})

export const picture = ({ boxes, fs, session }: Pick<Ground, "fs" | "session" | "boxes">): Effect.Effect<Picture> =>
  Effect.gen(function* () {
    const tree: Record<string, string> = {}
    for (const [path, what] of Object.entries({ ".": "directory", ...(yield* capture(fs.port)) })) {
      const mode = what.startsWith("link") ? "" : ` ${((yield* fs.port.stat(path as FsPath))!.mode ?? 0).toString(8)}`
      tree[path] = what + mode
    }
    const slices = {
      note: yield* itemsOf(session, Note),
      taken: yield* itemsOf(session, Checkpoint.FilesystemSnapshots),
      state: yield* itemsOf(session, InMemory.State),
      // The directory of the files is a new one after each rollback, so its path is left out.
      files: (yield* session.all(VfsState.VirtualFileSystem)).map(({ files }) => files)
    }
    return { tree, slices, boxes: boxes.map(({ value }) => value) }
  }).pipe(Effect.orDie)

/** The records of all snapshots taken. */
export interface SnapshotRecords {
  readonly checkpoints: ReadonlyArray<Checkpoint.Taken>
  readonly session: ReadonlyArray<Session.SessionSnapshot>
  readonly filesystem: ReadonlyArray<string>
  readonly logs: unknown
  /** For each participant, the number of prepared changes and of kept snapshots. */
  readonly open: ReadonlyArray<number>
  readonly kept: ReadonlyArray<number>
}

export const snapshotRecords = ({ boxes, checkpoint, plainSnapshots, session }: Ground): Effect.Effect<SnapshotRecords> =>
  Effect.gen(function* () {
    return {
      checkpoints: yield* checkpoint.list,
      session: yield* session.snapshots,
      filesystem: (yield* plainSnapshots.list).map(({ snapshotId }) => snapshotId),
      logs: yield* session.all(Log),
      open: boxes.map(({ open }) => open),
      kept: boxes.map(({ kept }) => kept)
    }
  }).pipe(Effect.orDie)

let changes = 0

/** Resets tree and slices to the state of the first checkpoint. */
export const begin = ({ boxes, fs, session }: Ground) =>
  Effect.gen(function* () {
    yield* Effect.ignore(fs.delete("lower", { recursive: true }))
    yield* fs.write("a.txt", "1", { mode: "overwrite" })
    yield* fs.writeBytes("dir/bytes", new Uint8Array([0, 255, 13, 10]))
    yield* fs.write("dir/sub/deep", "2")
    yield* fs.write("run.sh", "#!/bin/sh\r\n")
    yield* fs.setAttributes("run.sh", { mode: 0o755 })
    yield* fs.port.links === undefined ? fs.write("link", "none here") : fs.symlink("link", "a.txt")
    yield* fs.mkdir("empty")
    yield* session.set(Note, "first", "second")
    boxes.forEach((box, i) => (box.value = i + 1))
  }).pipe(Effect.orDie)

/** Changes tree and slices after the first checkpoint. */
export const change = ({ boxes, fs, session }: Ground) =>
  Effect.gen(function* () {
    const mark = `${++changes}`
    yield* fs.write("a.txt", `changed ${mark}`, { mode: "overwrite" })
    yield* fs.delete("dir", { recursive: true })
    yield* fs.write("dir", "a file now")
    yield* fs.setAttributes("run.sh", { mode: 0o600 })
    yield* fs.delete("link")
    yield* fs.write("link", "no link")
    yield* fs.delete("empty")
    yield* fs.write("new/deep/er", mark)
    yield* session.set(Note, mark)
    yield* session.dispatch(Log, mark)
    for (const box of boxes) box.value += 10
  }).pipe(Effect.orDie)

/** Runs the effect with the planned fault, and interrupts it when it hangs. */
export const under = <A, E>(
  { stepper }: Ground,
  plan: { readonly nth: number; readonly way: Way } | undefined,
  effect: Effect.Effect<A, E>
): Effect.Effect<{ readonly exit: Exit.Exit<A, E>; readonly steps: number }> =>
  Effect.gen(function* () {
    const hung = stepper.arm(plan)
    const fiber = yield* Effect.forkChild(effect)
    const isHanging = Effect.as(Deferred.await(hung), true)
    if (yield* Effect.race(isHanging, Effect.as(Fiber.await(fiber), false))) yield* Fiber.interrupt(fiber)
    const exit = yield* Fiber.await(fiber)
    const steps = stepper.count()
    stepper.arm()
    return { exit, steps }
  })
