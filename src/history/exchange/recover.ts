/**
 * What a process that was killed has left is thrown away where nobody could have seen anything of it yet, and else finished, as far
 * as the places still are as that process found them: what has been changed since is somebody's later work, and stays.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import { wholeAt } from "../../engine/read.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { isMarked } from "./inspect.ts"
import * as Journal from "./journal.ts"
import { abandoned, inUse, ownerOf, type Region } from "./places.ts"
import { type ModeChange, type Move, opened } from "./plan.ts"
import * as Staging from "./staging.ts"
import { type Crossing, open, putAside, putInPlace, setMode, slotOf } from "./swap.ts"

const first: Region = { path: FsPath.root, isFlat: false }

/** Milliseconds without a change, after which a process of which nothing can be told is taken for dead. */
const staleAfter = 60 * 60 * 1000

/** A journal is read whole. */
const largest = 1024 * 1024 * 1024

const unreadable = "ECORRUPT"

const corrupt = (path: FsPath.FsPath): Fault =>
  located(
    {
      _tag: "IoError",
      code: unreadable,
      detail: "the journal of an unfinished restore cannot be read; what belongs to it is kept beside it"
    },
    path
  )

/** What `recover` fails with when a journal cannot be read, and nothing worse has happened. */
export const isUnreadable = (fault: Fault): boolean => fault._tag === "IoError" && fault["code"] === unreadable

const time = (stat: FileStat | undefined): number => stat?.modifiedAt?.epochMilliseconds ?? 0

const isStale = Effect.fnUntraced(function* (port: Backend, staging: FsPath.FsPath): Effect.fn.Return<boolean, Fault> {
  let last = time(yield* port.stat(staging))
  for (const child of yield* port.list(staging)) {
    last = Math.max(last, time(yield* port.stat(FsPath.join(staging, keyOf(child)))))
  }
  return (yield* Clock.currentTimeMillis) - last > staleAfter
})

/** Whether nobody is at work under this name any more. */
export const isLeft = (port: Backend, token: string, owner: string): Effect.Effect<boolean, Fault> =>
  Effect.suspend(() => {
    if (inUse.has(token)) return Effect.succeed(false)
    if (abandoned.has(token)) return Effect.succeed(true)
    const isDead = Identity.isDead(owner)
    return isDead === undefined ? isStale(port, FsPath.join(FsPath.root, token)) : Effect.succeed(isDead)
  })

/** Whether anything in a directory has been changed since the journal was written; what lies in the future has not. */
const isTouched = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  since: number
): Effect.fn.Return<boolean, Fault> {
  const now = yield* Clock.currentTimeMillis
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stat = yield* locate(path, port.stat(path))
    const changed = time(stat)
    if (changed > since && changed <= now) return true
    if (stat?.kind !== "directory") continue
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPath.join(path, keyOf(child)))
  }
  return false
})

interface Unfinished {
  readonly port: Backend
  readonly journal: Journal.Journal
  readonly token: string
  /** It was being taken back when it ended. */
  readonly isBack: boolean
  /** When the journal was written. */
  readonly since: number
}

/** What has its name but not yet its mode. */
const shut = (port: Backend, { path, shuts }: Move, there: FileStat | undefined): Effect.Effect<void, Fault> =>
  shuts !== undefined && there?.kind === "directory" && there.mode === opened(shuts) ? setMode(port, path, shuts) : Effect.void

const finishStep = Effect.fnUntraced(function* (self: Unfinished, move: Move): Effect.fn.Return<void, Fault | Crossing> {
  const { isBack, journal, port, since, token } = self
  const { keeps, next, path, was } = move
  const [staged, aside] = [slotOf(journal, token, move, "new"), slotOf(journal, token, move, "old")]
  const there = yield* locate(path, port.stat(path))
  const comes = next !== undefined && (yield* port.stat(staged)) !== undefined
  if (next !== undefined && !comes) return yield* shut(port, move, there)
  const isAside = was !== undefined && (yield* port.stat(aside)) !== undefined
  const isVacant = there === undefined && (was === undefined || (isAside && (!keeps || isBack)))
  if (isVacant) return yield* comes ? putInPlace(port, move, staged) : Effect.void
  if (was === undefined || there === undefined || (isAside && !keeps) || !isMarked(there, was)) return
  if (!keeps) {
    if (was.kind === "directory" && (yield* isTouched(port, path, since))) return
    yield* putAside(port, move, aside)
  }
  if (comes) yield* putInPlace(port, move, staged)
})

const finishMode = Effect.fnUntraced(function* (port: Backend, change: ModeChange): Effect.fn.Return<void, Fault> {
  const { becomes, kind, path, was } = change
  const there = yield* locate(path, port.stat(path))
  if (there?.kind === kind && (there.mode === was || there.mode === opened(was))) yield* setMode(port, path, becomes)
})

const finish = Effect.fnUntraced(function* (self: Unfinished): Effect.fn.Return<void, Fault> {
  const { journal, port } = self
  yield* open(port, {
    ...journal,
    modes: yield* Effect.filter(journal.modes, ({ path, was }) =>
      Effect.map(locate(path, port.stat(path)), (stat) => stat?.mode === was)
    )
  })
  for (const step of journal.steps) {
    yield* Effect.mapError(finishStep(self, step), (failed) => (failed._tag === "Crossing" ? failed.fault : failed))
  }
  for (let i = journal.modes.length - 1; i >= 0; i--) yield* finishMode(port, journal.modes[i]!)
})

/** What is no file, or too large, is no journal either. */
const journalAt = Effect.fnUntraced(function* (port: Backend, path: FsPath.FsPath) {
  const { bytes, stat } = yield* Effect.mapError(wholeAt(port, path, largest), (fault) =>
    fault._tag === "NotAFile" || fault._tag === "LimitExceeded" ? corrupt(path) : located(fault, path)
  )
  const journal = Journal.decode(bytes)
  return journal === undefined ? yield* Effect.fail(corrupt(path)) : { journal, since: time(stat) }
})

const recoverOne = Effect.fnUntraced(function* (
  port: Backend,
  token: string
): Effect.fn.Return<"discarded" | "finished", Fault> {
  const staging = FsPath.join(FsPath.root, token)
  const found = new Set((yield* locate(staging, port.list(staging))).map(({ name }) => name))
  const { back, done, forward } = Journal.names
  const doneAt = FsPath.join(staging, done)
  if (!found.has(forward) && !found.has(back)) {
    const { journal } = found.has(done) ? yield* journalAt(port, doneAt) : { journal: undefined }
    yield* Staging.remove(port, journal?.regions ?? [first], token)
    return "discarded"
  }
  const isBack = found.has(back)
  const at = FsPath.join(staging, isBack ? back : forward)
  const { journal, since } = yield* journalAt(port, at)
  yield* Effect.provideService(finish({ port, journal, token, isBack, since }), TakingBack, true)
  yield* locate(at, port.rename(at, doneAt, { replace: true }))
  yield* Staging.remove(port, journal.regions, token)
  return "finished"
})

/**
 * Finishes or throws away what exchanges of dead processes have left in the tree; `none` where there was nothing. The caller holds
 * the root. What belongs to a live process is left alone, and so is, with an IoError that says where, what cannot be read.
 */
export const recover = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<"none" | "discarded" | "finished", Fault> {
  let outcome: "none" | "discarded" | "finished" = "none"
  let failed: Fault | undefined
  for (const { kind, name } of yield* port.list(FsPath.root)) {
    const owner = ownerOf(name)
    if (owner === undefined || kind !== "directory" || !(yield* isLeft(port, name, owner))) continue
    const one = yield* Effect.result(recoverOne(port, name))
    if (one._tag === "Failure") {
      if (failed === undefined || isUnreadable(failed)) failed = one.failure
    } else {
      abandoned.delete(name)
      if (outcome !== "finished") outcome = one.success
    }
  }
  return failed === undefined ? outcome : yield* Effect.fail(failed)
})
