/**
 * Interrupts an operation at one point after another until it succeeds, and checks what remains each time. The points are
 *
 * - `step`: each step of each fiber, where the scheduler may run other fibers
 * - `before`, `microtask`, `immediate`, `after`: each primitive call of the port, from before it starts until after it ends
 * - `call`, `called`: each call of `node:fs`, before or after the system does its work
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Cause from "effect/Cause"
import { type Algebra, make as derive } from "../../src/filesystem/Filesystem.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import { around, type Backend, keyOf } from "../../src/port/Backend.ts"
import { directory, type Files } from "../../src/testing/Files.ts"
import { isSoak } from "../runs.ts"

export type Moment = "step" | "before" | "microtask" | "immediate" | "after" | "call" | "called"

/** The original functions of `node:fs`, whatever replaces them now. */
export const real = { ...fs }

/** Interrupts one fiber at the nth point. */
export class Trigger {
  readonly moment: Moment
  left: number
  victim: Fiber.Fiber<unknown, unknown> | undefined
  /** True if the point was reached while the operation ran. */
  hasFired = false

  constructor(moment: Moment, nth: number) {
    this.moment = moment
    this.left = nth
  }

  fire(): void {
    this.victim?.interruptUnsafe()
  }

  /** Counts a point and tests whether it is the chosen one. Counts only while an operation runs. */
  next(): boolean {
    if (this.victim === undefined || this.hasFired || --this.left !== 0) return false
    return (this.hasFired = true)
  }
}

/**
 * Returns the port with a trigger at each primitive call and read. It has no accelerations, so that no call bypasses the
 * trigger.
 */
const watched = (port: Backend, trigger: Trigger): Backend => {
  const advice = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      if (!trigger.next()) return effect
      switch (trigger.moment) {
        case "microtask":
          // Interrupt after the work is done and before the answer arrives.
          queueMicrotask(() => trigger.fire())
          return Effect.tap(effect, () => Effect.sleep(0))
        case "immediate":
          // Interrupt after the call is made and before its work begins.
          setImmediate(() => trigger.fire())
          return Effect.andThen(Effect.sleep(0), effect)
        case "after":
          return Effect.onExit(effect, () => Effect.sync(() => trigger.fire()))
        default:
          trigger.fire()
          return effect
      }
    })
  const self = around(port, (_, next) => advice(next))
  return {
    ...self,
    open: (path) =>
      Effect.map(self.open(path), (handle) => ({
        ...handle,
        read: (offset, length) => advice(handle.read(offset, length))
      }))
  }
}

const stepping = (trigger: Trigger): Scheduler.Scheduler => {
  const usual = new Scheduler.MixedScheduler()
  return {
    executionMode: usual.executionMode,
    makeDispatcher: () => usual.makeDispatcher(),
    shouldYield: (fiber) => {
      if (!trigger.next()) return usual.shouldYield(fiber)
      trigger.fire()
      return true
    }
  }
}

/** Tests whether an export of `node:fs` is a function to intercept. */
const isCall = (name: string): boolean =>
  /^[a-z]/.test(name) &&
  typeof (fs as any)[name] === "function" &&
  !/Stream$|^watchFile|^unwatchFile|^_|^openAsBlob|^glob/.test(name)

const names = Object.keys(fs).filter(isCall)

/** The trigger whose points are the calls of `node:fs`, while its operation runs. */
let callTrigger: Trigger | undefined

/** Returns the function with a point at each call. */
const intercepted = (name: string): unknown => {
  const original = (real as any)[name] as (...args: ReadonlyArray<unknown>) => unknown
  const replaced = (...args: ReadonlyArray<unknown>): unknown => {
    const trigger = callTrigger
    if (trigger === undefined || !trigger.next()) return original(...args)
    const done = args.at(-1)
    if (typeof done === "function" && !name.endsWith("Sync") && name !== "watch") {
      if (trigger.moment === "call") {
        const started = original(...args)
        trigger.fire()
        return started
      }
      return original(...args.slice(0, -1), (...results: ReadonlyArray<unknown>) => {
        trigger.fire()
        done(...results)
      })
    }
    if (trigger.moment === "call") trigger.fire()
    try {
      return original(...args)
    } finally {
      if (trigger.moment === "called") trigger.fire()
    }
  }
  return Object.assign(replaced, original)
}

let isIntercepting = false

/** Replaces the functions of `node:fs` once, because a replacement takes longer than most operations. */
const intercept = (): void => {
  if (isIntercepting) return
  isIntercepting = true
  for (const name of names) (fs as any)[name] = intercepted(name)
  syncBuiltinESMExports()
}

const calling = <A, E, R>(trigger: Trigger, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    intercept()
    callTrigger = trigger
    return Effect.ensuring(
      effect,
      Effect.sync(() => {
        callTrigger = undefined
      })
    )
  })

/** Fails with a defect after 20 seconds, to end a test that hangs. It does not measure speed. */
export const guard = <A, E>(what: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.timeoutOrElse(effect, { duration: "20 seconds", orElse: () => Effect.die(new Error(what)) })

/** Runs the operation to its end as the victim of the trigger. */
export const victimOf = <A, E>(trigger: Trigger, operation: Effect.Effect<A, E>): Effect.Effect<Exit.Exit<A, E>> => {
  const stepped =
    trigger.moment === "step" ? Effect.provideService(operation, Scheduler.Scheduler, stepping(trigger)) : operation
  const run = Effect.callback<Exit.Exit<A, E>>((resume) => {
    const fiber = Effect.runFork(
      Effect.withFiber((self) => {
        trigger.victim = self
        return stepped
      })
    )
    fiber.addObserver((exit) => {
      trigger.victim = undefined
      resume(Effect.succeed(exit))
    })
  })
  return trigger.moment === "call" || trigger.moment === "called" ? calling(trigger, run) : run
}

/** Returns the filesystem for the operation. Its port has the trigger if the moment is one of a primitive call. */
export const throughPort = (trigger: Trigger, port: Backend): Algebra =>
  derive(["before", "microtask", "immediate", "after"].includes(trigger.moment) ? watched(port, trigger) : port)

/** Each path with its kind or content. It includes hidden entries and follows no link. */
export type Picture = { readonly [path: string]: string }

export const temporary: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() =>
    real.mkdtempSync(join(real.realpathSync(real.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-stop-"))
  ),
  (path) => Effect.sync(() => real.rmSync(path, { recursive: true, force: true }))
)

/** Writes a tree as `plant` does, but with `node:fs` alone. */
export const plantOnDisk = (root: string, files: Files): void => {
  for (const [path, entry] of Object.entries(files)) {
    const at = join(root, path)
    real.mkdirSync(entry === directory ? at : dirname(at), { recursive: true })
    if (typeof entry === "string") real.writeFileSync(at, entry)
    else if (typeof entry === "object" && "link" in entry) real.symlinkSync(entry.link, at)
  }
}

export const onDisk = (top: string): Picture => {
  const out: Record<string, string> = {}
  const visit = (at: string, path: string): void => {
    for (const name of real.readdirSync(at).sort()) {
      const child = join(at, name)
      const stats = real.lstatSync(child)
      const key = path === "" ? name : `${path}/${name}`
      if (stats.isDirectory()) {
        out[key] = "directory"
        visit(child, key)
      } else if (stats.isSymbolicLink()) out[key] = `-> ${real.readlinkSync(child)}`
      else out[key] = `${(stats.mode & 0o777).toString(8)} ${real.readFileSync(child, "latin1")}`
    }
  }
  visit(top, "")
  return out
}

/** Reads the picture through the port, for filesystems that are not on a disk. */
export const throughIt = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Picture, unknown> {
  const out: Record<string, string> = {}
  const stack = [FsPath.root]
  while (stack.length > 0) {
    const here = stack.pop()!
    for (const child of yield* port.list(here)) {
      const path = FsPath.join(here, keyOf(child))
      if (child.kind === "directory") {
        out[path] = "directory"
        stack.push(path)
      } else if (child.kind === "symlink") out[path] = `-> ${yield* port.links!.read(path)}`
      else {
        const { mode } = (yield* port.stat(path))!
        const read = Effect.flatMap(port.open(path), ({ read, stat }) => read(0, stat.sizeBytes))
        let bytes = yield* Effect.scoped(read)
        for (let more = bytes; more.length > 0 && bytes.length < 1e6;) {
          more = yield* Effect.scoped(Effect.flatMap(port.open(path), ({ read }) => read(bytes.length, 1e6)))
          bytes = Buffer.concat([bytes, more])
        }
        out[path] = `${(mode ?? 0o644).toString(8)} ${Buffer.from(bytes).toString("latin1")}`
      }
    }
  }
  return out
})

/** Returns the open descriptors of this process that point into a directory, also if it was removed. */
export const descriptorsIn = (directory: string): ReadonlyArray<string> =>
  process.platform !== "linux"
    ? []
    : real.readdirSync("/proc/self/fd").flatMap((descriptor) => {
        try {
          const to = real.readlinkSync(`/proc/self/fd/${descriptor}`)
          return to === directory || to.startsWith(`${directory}/`) || to.startsWith(`${directory} `) ? [to] : []
        } catch {
          return []
        }
      })

/** Tests whether the effect succeeded or was interrupted, and did not fail otherwise. */
export const isClean = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)

/** A scope that the test closes itself, or that closes with the test. */
export const scopeUntilEnd: Effect.Effect<Scope.Closeable, never, Scope.Scope> = Effect.acquireRelease(Scope.make(), (scope) =>
  Scope.close(scope, Exit.void)
)

export interface Density {
  /** The number of points that are all tried. Later points are only sampled, except in the soak. */
  readonly dense: number
  /** The average distance between sampled points. */
  readonly apart: number
}

/**
 * Tries one point after another until `run` returns false, which means that the point was not reached. Returns the number of
 * points.
 */
export const everyPoint = <E, R>(
  run: (nth: number) => Effect.Effect<boolean, E, R>,
  { apart, dense }: Density
): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    let points = 0
    for (let nth = 1; ; nth += isSoak || nth < dense ? 1 : 1 + ((nth * 7) % (2 * apart))) {
      if (!(yield* run(nth))) return points
      points++
    }
  })
