/**
 * Deliberate faults for tests: failures of chosen primitive calls, and ports with unusual behaviour that the contract permits.
 * All faults occur at the port, so the code above the port cannot distinguish them from faults of a real disk.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/realms.ts"
import { type Algebra, make } from "../filesystem/Filesystem.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { around, type Backend, portable } from "../port/Backend.ts"
import type { Operation } from "../port/Operation.ts"

/**
 * A primitive operation, a call of an optional capability, or `Read`, which is one read of an open handle.
 *
 * @since 0.1.0
 */
export type Step = Operation["_tag"] | "Read"

/**
 * A planned fault, and the primitive calls that fail with it.
 *
 * @since 0.1.0
 */
export interface Planned {
  readonly operation: Step | ReadonlyArray<Step>
  /** The exact path of the call, or a regular expression that the path must match. @default any */
  readonly path?: string | RegExp | undefined
  /**
   * The number, from 1, of the matching call that fails. Calls to which an earlier plan applies are not counted.
   * @default every matching call
   */
  readonly nth?: number | undefined
  /** `before`: the fault replaces the work of the call. `after`: the call does its work, then fails. @default "before" */
  readonly when?: "before" | "after" | undefined
  /** The fault. `hang` never ends, but can be interrupted; `die` is a defect. */
  readonly fault: Fault | "hang" | "die"
}

/**
 * A primitive call that was made, with its planned fault if it had one.
 *
 * @since 0.1.0
 */
export interface Happened {
  readonly operation: Step
  readonly path: string
  readonly fault?: Planned["fault"]
}

/**
 * A filesystem whose primitive calls fail or hang as planned.
 *
 * @since 0.1.0
 */
export interface Faulty extends Algebra {
  /** All primitive calls so far, in order. */
  readonly happened: ReadonlyArray<Happened>
  /** An effect that ends when a call hangs as planned. */
  readonly hung: Effect.Effect<void>
}

const isPlannedFor = (planned: Planned, operation: Step, path: string): boolean =>
  (typeof planned.operation === "string" ? planned.operation === operation : planned.operation.includes(operation)) &&
  (planned.path === undefined || (typeof planned.path === "string" ? planned.path === path : planned.path.test(path)))

const raiseFault = (fault: Planned["fault"], hangSignal: Deferred.Deferred<void>): Effect.Effect<never, Fault> =>
  fault === "hang"
    ? Effect.andThen(Deferred.succeed(hangSignal, undefined), Effect.interruptible(Effect.never))
    : fault === "die"
      ? Effect.die(new Error("the planned fault of this call is a defect"))
      : Effect.fail(fault)

/**
 * Returns the filesystem with the planned faults. If several plans match a call, the first plan applies. Accelerations are
 * off, so that every step can fail.
 *
 * @example
 * ```ts
 * const full = Faults.faulty([{ operation: "Write", path: "a.txt", fault: { _tag: "DiskFull" } }])(fs)
 * const error = yield* Effect.flip(full.write("a.txt", "one"))
 * error._tag // => "DiskFull"
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const faulty =
  (
    plan: ReadonlyArray<Planned>,
    options?: {
      /** The function that makes a filesystem from a port. @default Filesystem.make */
      readonly derive?: ((port: Backend) => Algebra) | undefined
    }
  ) =>
  (self: Algebra): Faulty => {
    const derive = options?.derive ?? make
    const happened: Array<Happened> = []
    const hangSignal = Deferred.makeUnsafe<void>()
    const counts = plan.map(() => 0)
    const next = (operation: Step, path: string): Planned | undefined => {
      const found = plan.find((planned, i) => {
        if (!isPlannedFor(planned, operation, path)) return false
        counts[i]!++
        return planned.nth === undefined || planned.nth === counts[i]
      })
      happened.push(found === undefined ? { operation, path } : { operation, path, fault: found.fault })
      return found
    }
    const run = <A, E, R>(operation: Step, path: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
      Effect.suspend((): Effect.Effect<A, E | Fault, R> => {
        const planned = next(operation, path)
        if (planned === undefined) return work
        const raised = raiseFault(planned.fault, hangSignal)
        return planned.when === "after" ? Effect.andThen(work, raised) : raised
      })
    const port = around(self.port, (operation, work) => run(operation._tag, operation.path, work))
    const open: Backend["open"] = (path) =>
      Effect.map(port.open(path), (handle) => ({
        stat: handle.stat,
        read: (offset, length) => run("Read", path, handle.read(offset, length))
      }))
    return { ...derive({ ...port, open }), happened, hung: Deferred.await(hangSignal) }
  }

const crossDeviceFault: Fault = {
  _tag: "IoError",
  code: "EXDEV",
  detail: "cross-device link: the two paths are on different disks"
}

/** Returns the size of the next chunk: one byte up to an offset of 512 bytes, and then 997 bytes, to keep tests fast. */
const nextChunkBytes = (offset: number): number => (offset < 512 ? 1 : 997)

const toSmallChunks = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const out: Array<Uint8Array> = [new Uint8Array(0)]
  for (let at = 0; at < bytes.length; at += nextChunkBytes(at)) out.push(bytes.slice(at, at + nextChunkBytes(at)))
  return out
}

/**
 * Returns a filesystem with unusual behaviour that the port's contract permits. Listings are reversed and have no sizes. Reads
 * may return fewer bytes than requested. Writes receive small chunks, some of them empty. There are no accelerations and no
 * stored versions. Each step yields to other fibers first. A rename to another directory that could succeed fails
 * with EXDEV, so that a move between directories must copy.
 *
 * @since 0.1.0
 */
export const adversarial = (self: Algebra): Algebra => {
  const inner = portable(self.port)
  const isSame = (one: FsPath.FsPath, other: FsPath.FsPath): boolean =>
    one === other || (!inner.info.caseSensitive && FsPath.fold(one) === FsPath.fold(other))
  const paused = around(inner, (_, work) => Effect.andThen(Effect.yieldNow, work))
  return make({
    ...paused,
    list: (path) => Effect.map(paused.list(path), (all) => all.map(({ sizeBytes: _, ...child }) => child).reverse()),
    open: (path) =>
      Effect.map(paused.open(path), ({ stat, read }) => ({
        stat,
        read: (offset, length) => Effect.andThen(Effect.yieldNow, read(offset, Math.min(length, nextChunkBytes(offset))))
      })),
    write: (path, bytes, mode, how) =>
      paused.write(
        path,
        isBytes(bytes)
          ? Stream.fromIterable(toSmallChunks(bytes))
          : Stream.flatMap(bytes, (chunk) => Stream.fromIterable(toSmallChunks(chunk))),
        mode,
        how
      ),
    rename: (from, to, options) =>
      isSame(FsPath.parent(from), FsPath.parent(to)) || from === FsPath.root
        ? paused.rename(from, to, options)
        : Effect.flatMap(Effect.all([inner.stat(from), inner.stat(FsPath.parent(to))]), ([source, parent]) =>
            source === undefined || parent?.kind !== "directory"
              ? paused.rename(from, to, options)
              : Effect.fail(crossDeviceFault)
          )
  })
}

/**
 * Returns a filesystem on which each rename that would succeed fails with EXDEV, as the port's contract permits. Every move must
 * therefore copy.
 *
 * @since 0.1.0
 */
export const renameless = (self: Algebra): Algebra => {
  const port = portable(self.port)
  const wouldSucceed = Effect.fnUntraced(function* (from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean) {
    const [source, target, parent] = yield* Effect.all([port.stat(from), port.stat(to), port.stat(FsPath.parent(to))])
    if (source === undefined || parent?.kind !== "directory" || FsPath.isWithin(from, to)) return false
    if (target === undefined || !replace) return target === undefined
    if (source.kind !== "directory" || target.kind !== "directory")
      return source.kind !== "directory" && target.kind !== "directory"
    return (yield* port.list(to)).length === 0
  })
  return make({
    ...port,
    rename: (from, to, { replace }) =>
      Effect.flatMap(wouldSucceed(from, to, replace), (isRename) =>
        isRename ? Effect.fail(crossDeviceFault) : port.rename(from, to, { replace })
      )
  })
}
