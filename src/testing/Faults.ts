/**
 * What can go wrong, on purpose: faults at chosen primitive calls, and a port that does everything its contract permits and hosts
 * rarely do. Both stand at the port, so nothing above can tell them from a real disk.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/bytes.ts"
import { type Algebra, make } from "../filesystem/Filesystem.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { around, type Backend, portable } from "../port/Backend.ts"
import type { Operation } from "../port/Operation.ts"

/**
 * The primitive operations, and `Read`: one read of an open handle.
 *
 * @since 0.1.0
 */
export type Step = Operation["_tag"] | "Read"

/**
 * What is to happen to primitive calls, and to which of them.
 *
 * @since 0.1.0
 */
export interface Planned {
  readonly operation: Step | ReadonlyArray<Step>
  /** Exactly this path, or one that the expression finds. @default any */
  readonly path?: string | RegExp | undefined
  /** Only this one of the calls that fit, counted from 1. @default every one */
  readonly nth?: number | undefined
  /** Instead of the work, or when it has been done. @default "before" */
  readonly when?: "before" | "after" | undefined
  /** `hang` never ends, and can be interrupted wherever it is; `die` is a defect. */
  readonly fault: Fault | "hang" | "die"
}

/**
 * A primitive call that was made, and what the plan did to it.
 *
 * @since 0.1.0
 */
export interface Happened {
  readonly operation: Step
  readonly path: string
  /** What the plan did to it; left out where it did nothing. */
  readonly fault?: Planned["fault"]
}

/**
 * A filesystem whose primitive calls fail, hang or come late as planned.
 *
 * @since 0.1.0
 */
export interface Faulty extends Algebra {
  /** Every primitive call so far, in order. */
  readonly happened: ReadonlyArray<Happened>
  /** Ends when a step has been reached that hangs. */
  readonly hung: Effect.Effect<void>
}

const matches = (planned: Planned, operation: Step, path: string): boolean =>
  (typeof planned.operation === "string" ? planned.operation === operation : planned.operation.includes(operation)) &&
  (planned.path === undefined || (typeof planned.path === "string" ? planned.path === path : planned.path.test(path)))

const raise = (fault: Planned["fault"], hanging: Deferred.Deferred<void>): Effect.Effect<never, Fault> =>
  fault === "hang"
    ? Effect.andThen(Deferred.succeed(hanging, undefined), Effect.interruptible(Effect.never))
    : fault === "die"
      ? Effect.die(new Error("planned"))
      : Effect.fail(fault)

/**
 * The filesystem with the faults of the plan, the first that fits counting. Accelerations are off, so that every step can be met.
 *
 * @since 0.1.0
 */
export const faulty =
  (
    plan: ReadonlyArray<Planned>,
    options?: {
      /** What makes a filesystem of a port. @default Filesystem.make */
      readonly derive?: ((port: Backend) => Algebra) | undefined
    }
  ) =>
  (self: Algebra): Faulty => {
    const derive = options?.derive ?? make
    const happened: Array<Happened> = []
    const hanging = Deferred.makeUnsafe<void>()
    const counts = plan.map(() => 0)
    const next = (operation: Step, path: string): Planned | undefined => {
      const found = plan.find((planned, i) => {
        if (!matches(planned, operation, path)) return false
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
        const raised = raise(planned.fault, hanging)
        return planned.when === "after" ? Effect.andThen(work, raised) : raised
      })
    const port = around(self.port, (operation, work) => run(operation._tag, operation.path, work))
    const open: Backend["open"] = (path) =>
      Effect.map(port.open(path), (handle) => ({
        stat: handle.stat,
        read: (offset, length) => run("Read", path, handle.read(offset, length))
      }))
    return { ...derive({ ...port, open }), happened, hung: Deferred.await(hanging) }
  }

const crossing: Fault = { _tag: "IoError", code: "EXDEV", detail: "the names are on two disks" }

/** One byte at a time, and an odd number once that has made its point. */
const stride = (offset: number): number => (offset < 512 ? 1 : 997)

const crumbs = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const out: Array<Uint8Array> = [new Uint8Array(0)]
  for (let at = 0; at < bytes.length; at += stride(at)) out.push(bytes.slice(at, at + stride(at)))
  return out
}

/**
 * Everything that the port permits and hosts rarely do: listings backwards and without sizes, short reads, writes that arrive in chunks
 * of one byte and none, no accelerations, no kept versions, a pause before each step, and directories that are disks of
 * their own, so that only copying moves between them.
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
        read: (offset, length) => Effect.andThen(Effect.yieldNow, read(offset, Math.min(length, stride(offset))))
      })),
    write: (path, bytes, mode, how) =>
      paused.write(
        path,
        isBytes(bytes)
          ? Stream.fromIterable(crumbs(bytes))
          : Stream.flatMap(bytes, (chunk) => Stream.fromIterable(crumbs(chunk))),
        mode,
        how
      ),
    rename: (from, to, options) =>
      isSame(FsPath.parent(from), FsPath.parent(to)) || from === FsPath.root
        ? paused.rename(from, to, options)
        : Effect.flatMap(Effect.all([inner.stat(from), inner.stat(FsPath.parent(to))]), ([source, parent]) =>
            source === undefined || parent?.kind !== "directory" ? paused.rename(from, to, options) : Effect.fail(crossing)
          )
  })
}

/**
 * A port that answers EXDEV to every rename that would otherwise succeed, as the port allows: what has to move something can only copy it.
 *
 * @since 0.1.0
 */
export const renameless = (self: Algebra): Algebra => {
  const port = portable(self.port)
  const succeeds = Effect.fnUntraced(function* (from: FsPath.FsPath, to: FsPath.FsPath, replace: boolean) {
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
      Effect.flatMap(succeeds(from, to, replace), (isRename) =>
        isRename ? Effect.fail(crossing) : port.rename(from, to, { replace })
      )
  })
}
