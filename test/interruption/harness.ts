/**
 * Interrupts an operation at one point after another until it runs to its end, and looks each time at what is left. The points are
 *
 * - `step`: each step of each fiber of the operation, where a busy scheduler may let others run and one of them interrupt
 * - `before`, `microtask`, `immediate`, `after`: at each primitive call of the port; as it starts, while it runs, when it has ended
 * - `call`, `called`: at each call of `node:fs`, from inside of it, before or after the system has done its work
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
import { make as derive, type Algebra } from "../../src/filesystem/Filesystem.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import { around, type Backend, keyOf } from "../../src/port/Backend.ts"
import { directory, type Files } from "../../src/testing/Files.ts"

export type Moment = "step" | "before" | "microtask" | "immediate" | "after" | "call" | "called"

/** As they were, whatever stands in their place now. */
export const real = { ...fs }

export const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

/** Who is to be interrupted, and when. */
export class Trigger {
  readonly moment: Moment
  left: number
  victim: Fiber.Fiber<unknown, unknown> | undefined
  /** It was reached while the operation ran. */
  hasFired = false

  constructor(moment: Moment, nth: number) {
    this.moment = moment
    this.left = nth
  }

  fire(): void {
    this.victim?.interruptUnsafe()
  }

  /** Whether this is the one. Counts only while somebody is there to be interrupted. */
  next(): boolean {
    if (this.victim === undefined || this.hasFired || --this.left !== 0) return false
    return (this.hasFired = true)
  }
}

/** The same port, in which the trigger counts primitive calls and reads. Without accelerations, so that nothing goes past it. */
const watched = (port: Backend, trigger: Trigger): Backend => {
  const advice = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      if (!trigger.next()) return effect
      switch (trigger.moment) {
        case "microtask":
          // What has been done, but not yet answered.
          queueMicrotask(() => trigger.fire())
          return Effect.tap(effect, () => Effect.sleep(0))
        case "immediate":
          // What has been asked, but not yet begun.
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

/** Asks at each step of each fiber. */
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

/** Not of the system, or of streams that stay as they are. */
const isCall = (name: string): boolean =>
  /^[a-z]/.test(name) &&
  typeof (fs as any)[name] === "function" &&
  !/Stream$|^watchFile|^unwatchFile|^_|^openAsBlob|^glob/.test(name)

const names = Object.keys(fs).filter(isCall)

/** In place of all of `node:fs` that the host may call, while the effect runs. */
const calling = <A, E, R>(trigger: Trigger, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const put = (name: string, value: unknown): void => void ((fs as any)[name] = value)
    for (const name of names) {
      const original = (real as any)[name] as (...args: ReadonlyArray<unknown>) => unknown
      const replaced = (...args: ReadonlyArray<unknown>): unknown => {
        if (!trigger.next()) return original(...args)
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
      put(name, Object.assign(replaced, original))
    }
    syncBuiltinESMExports()
    return Effect.ensuring(
      effect,
      Effect.sync(() => {
        for (const name of names) put(name, (real as any)[name])
        syncBuiltinESMExports()
      })
    )
  })

/** Against what never ends; it measures nothing. */
export const guard = <A, E>(what: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.timeoutOrElse(effect, { duration: "20 seconds", orElse: () => Effect.die(new Error(what)) })

/** Runs it to its end, however that comes, with the trigger pointed at it. */
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

/** The filesystem as the operation meets it, over a port on which the trigger sits where it can see primitives. */
export const throughPort = (trigger: Trigger, port: Backend): Algebra =>
  derive(["before", "microtask", "immediate", "after"].includes(trigger.moment) ? watched(port, trigger) : port)

/** Each path with what is there: nothing hidden, nothing followed. */
export type Picture = { readonly [path: string]: string }

/** A directory of the machine, on a disk in memory where there is one. */
export const temporary: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() =>
    real.mkdtempSync(join(real.realpathSync(real.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-stop-"))
  ),
  (path) => Effect.sync(() => real.rmSync(path, { recursive: true, force: true }))
)

/** A tree as `plant` takes it, put there without any of our own code. */
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

/** The same through the port, for what is not on a disk. */
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

/** The open descriptors of this process that lead into a directory, or did. */
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

/** Whether it ended, or was interrupted; anything else is a fault of its own. */
export const isClean = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)

/** To be closed by hand, and in any case when the test is over. */
export const scopeUntilEnd: Effect.Effect<Scope.Closeable, never, Scope.Scope> = Effect.acquireRelease(Scope.make(), (scope) =>
  Scope.close(scope, Exit.void)
)

export interface Density {
  /** Up to this point every one is tried; beyond it, except in the soak, only some. */
  readonly dense: number
  /** How far those lie apart, about. */
  readonly apart: number
}

/** Tries one point after another, for as long as `run` answers that it was reached. Answers how many there were. */
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
