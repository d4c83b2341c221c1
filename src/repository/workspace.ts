/**
 * The commits of one workspace: reads its head, groups changes into commits, and rebases them if another writer was faster.
 *
 * A commit stores its nodes first, and then replaces the head by compare-and-set. So readers see the old tree or the new one.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { accessDenied, type Fault, invalidArgument, ioError, unavailable } from "../model/Fault.ts"
import { Buffer } from "../runtime/buffer.ts"
import { randomBytes } from "../runtime/node.ts"
import { filesystemClosed } from "../backends/faults.ts"
import { missingWorkspace, StoreError } from "./errors.ts"
import * as Answers from "./format/answers.ts"
import * as Contents from "./format/contents.ts"
import { type Answer, type DirectoryEntry, maxRecent, noAnswers, type Root } from "./format/nodes.ts"
import type { Objects } from "./format/objects.ts"
import type { Head, Operations as Heads } from "./HeadStore.ts"
import { type Change, conflict, type Draft, type Guard, lookup, type Problem, toFault, violation } from "./drafts.ts"
import { areUnrelated, type Commit, isSameHead, lineageOf, pastOf, type Won } from "./past.ts"

/**
 * The time after which staged content is stored again before a commit refers to it, in milliseconds. The grace period of
 * `collect` must be longer.
 */
export const refreshAfter = 60 * 60 * 1000

export interface Workspace {
  readonly objects: Objects
  /** Returns the newest commit that is known, or the draft of the current transaction. */
  readonly draft: Effect.Effect<Draft, Fault>
  /** Notes that the result of the current transaction depends on an entry. Outside a transaction, does nothing. */
  readonly observe: (guard: Guard) => Effect.Effect<void>
  /** Returns the newest known commit, or `undefined` inside a transaction and after the workspace was made again. */
  readonly peek: (fiber: Fiber.Fiber<unknown, unknown>) => Draft | undefined
  /** Commits a change, or adds it to the current transaction. Returns when the head refers to the change. */
  readonly submit: <A>(change: Change<A>) => Effect.Effect<A, Fault>
  /**
   * Runs an effect. Commits its changes and the answer to the call in one commit. If this or another runner has already
   * answered the call, returns that answer. May run the effect several times, each time with a newer draft.
   */
  readonly once: <A, E, R, E2>(
    call: Call<A>,
    effect: Effect.Effect<A, E, R>,
    mapFault: (fault: Fault) => E2
  ) => Effect.Effect<A, E | E2, R>
  /**
   * Runs an effect whose changes of this workspace become one commit. Other workspaces are outside of the transaction. An inner
   * transaction that fails discards only its own changes.
   */
  readonly transaction: <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    mapFault: (fault: Fault) => E2
  ) => Effect.Effect<A, E | E2, R>
  /** Returns the id of the history, or `undefined` if unknown. The id changes if the workspace is deleted and made again. */
  readonly lineage: () => string | undefined
  /** Tests whether it is known that the workspace was deleted and made again. All reads and changes then fail. */
  readonly isReplaced: () => boolean
  /** Reads the head, and returns the newest commit, also in a transaction. */
  readonly refresh: Effect.Effect<Draft, Fault>
  /** Reads the head. Returns whether the workspace exists, was deleted, or was deleted and made again. */
  readonly state: Effect.Effect<"present" | "deleted" | "replaced", StoreError>
}

/** A call that may arrive several times. */
export interface Call<A> {
  /** The first 16 bytes of the SHA-256 of the call's id, in hexadecimal. `request` is the same for the request. */
  readonly id: string
  readonly request: string
  /** The time when the caller first sent the call, in milliseconds since 1970. */
  readonly sentAt: number
  readonly encode: (answer: A) => string
  readonly decode: (text: string) => Effect.Effect<A, Fault>
}

// Transactions

interface Transaction {
  workspace: object | undefined
  base: Commit | undefined
  draft: Draft | undefined
  readonly changes: Array<Change<unknown>>
  readonly guards: Map<string, Guard>
  commit: Effect.Effect<void, Fault> | undefined
  startedAt: number
  isOver: boolean
  /** True if the transaction belongs to one workspace from its beginning, and does not affect other workspaces. */
  readonly isBound: boolean
  readonly outer: Transaction | undefined
}

const CurrentTransaction: Context.Reference<Transaction | undefined> = Context.Reference<Transaction | undefined>(
  "fs-algebra/repository/Transaction",
  { defaultValue: () => undefined }
)

const otherWorkspace = ioError("a transaction is for one workspace; use the other workspace outside the transaction")
const collected = unavailable(
  "garbage collection deleted content of this transaction, because the transaction took longer than the grace period; " +
    "run the transaction again"
)
const transactionOver = ioError("the transaction of this fiber has ended; let a transaction wait for all fibers that it starts")

/** Runs an effect whose changes of a workspace become one commit. An inner transaction becomes part of the outer one. */
export const transaction = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  mapFault: (fault: Fault) => E2
): Effect.Effect<A, E | E2, R> =>
  Effect.flatMap(CurrentTransaction, (outer): Effect.Effect<A, E | E2, R> => {
    if (outer !== undefined && !outer.isOver && !outer.isBound) return effect
    return Effect.suspend(() => runIn(newTransaction(false, outer), effect, mapFault))
  })

const note = (to: Transaction | undefined, guard: Guard): void => void to?.guards.set(`${guard.aspect} ${guard.path}`, guard)

const newTransaction = (isBound: boolean, outer: Transaction | undefined): Transaction => ({
  workspace: undefined,
  base: undefined,
  draft: undefined,
  changes: [],
  guards: new Map(),
  commit: undefined,
  startedAt: 0,
  isOver: false,
  isBound,
  outer
})

const runIn = <A, E, R, E2>(
  current: Transaction,
  effect: Effect.Effect<A, E, R>,
  mapFault: (fault: Fault) => E2
): Effect.Effect<A, E | E2, R> => {
  return Effect.tap(inside(current, effect), () => Effect.mapError(current.commit ?? Effect.void, mapFault))
}

/** Runs an effect whose changes are added to a transaction. */
const inside = <A, E, R>(current: Transaction, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.ensuring(
    Effect.provideService(effect, CurrentTransaction, current),
    Effect.sync(() => void (current.isOver = true))
  )

interface Violated {
  readonly _tag: "Violated"
  readonly fault: Fault
}

type Committed = Violated | { readonly _tag: "Made" } | { readonly _tag: "Known"; readonly answer: Answer }

const made: Committed = { _tag: "Made" }

const forgotten = unavailable(
  "the change was sent so long ago that the workspace may have forgotten its answer; read the file to see the result"
)
const tooLong = unavailable("the change was made, but its answer was too long to be kept; read the file to see the result")
const otherRequest: Fault = invalidArgument("id", "another change has this id; use a new id for each change")

// The committer

export interface Settings {
  readonly workspace: string
  readonly author: string
  readonly durability: "each" | "batched"
  /** True to fail with `missing` if the workspace does not exist. @default false, which creates the workspace */
  readonly mustExist?: boolean | undefined
}

interface Pending {
  readonly change: Change<unknown>
  readonly answer: Deferred.Deferred<unknown, Fault>
  isAbandoned: boolean
}

/** The result of replacing a head: whether this commit was made, and the newest commit. */
interface Replacement {
  readonly won: boolean
  readonly newest: Commit
}

const maxBatch = 1000
const maxAttempts = 100
/** The maximum number of attempts to learn the result of a compare-and-set whose answer was lost. */
const maxInquiries = 6

const pauseAfter = (attempt: number): Effect.Effect<void> =>
  Effect.flatMap(Random.nextBetween(1, 10 * 2 ** Math.min(attempt, 5)), (millis) => Effect.sleep(millis))

const deleted = (workspace: string): StoreError =>
  new StoreError({ reason: "unavailable", detail: `the workspace ${JSON.stringify(workspace)} was deleted` })

const madeAgain = (workspace: string): StoreError =>
  new StoreError({
    reason: "unavailable",
    detail: `the workspace ${JSON.stringify(workspace)} was deleted and made again; open it again to use the new one`
  })

const newId = (): string => randomBytes(16).toString("hex")

const isDone = <A, E>(effect: Effect.Effect<A, E>): effect is Exit.Exit<A, never> & Exit.Success<A> =>
  Exit.isExit(effect) && Exit.isSuccess(effect)

const emptyDirectory = (now: number): DirectoryEntry => ({
  kind: "directory",
  name: "",
  mode: 0o755,
  createdAt: now,
  modifiedAt: now,
  tree: undefined
})

const retryUnavailable = <A>(effect: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> => {
  const attempt = (count: number): Effect.Effect<A, StoreError> =>
    Effect.catch(effect, (error) =>
      error.reason === "unavailable" && count < maxInquiries
        ? Effect.andThen(pauseAfter(count), attempt(count + 1))
        : Effect.fail(error)
    )
  return attempt(1)
}

export const make = (
  objects: Objects,
  heads: Heads,
  { author, durability, mustExist = false, workspace }: Settings
): Effect.Effect<Workspace, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const load = (head: Head): Effect.Effect<Commit, StoreError> =>
      Effect.map(objects.root(head.root), (root) => ({ head, root }))

    const getHead = Effect.flatMap(heads.get(workspace), (head) =>
      head === undefined ? Effect.fail(deleted(workspace)) : Effect.succeed(head)
    )

    /** The error of all operations after the workspace was deleted and made again. */
    let replaced: StoreError | undefined

    const failReplaced = Effect.suspend(() => Effect.fail((replaced ??= madeAgain(workspace))))

    /**
     * Replaces the head of `base`. If the answer is lost, reads the head: the ids of recent commits in the root node tell
     * whether the commit `id` was made, even if other commits followed. Returns the newest commit.
     */
    const replaceHead = (base: Commit | undefined, next: Commit, id: string): Effect.Effect<Replacement, StoreError> => {
      const inquire = (wasLost: boolean): Effect.Effect<Replacement | undefined, StoreError> =>
        Effect.gen(function* () {
          const head = yield* retryUnavailable(heads.get(workspace))
          if (isSameHead(head, next.head)) return { won: true, newest: next }
          if (isSameHead(head, base?.head)) return undefined
          if (head === undefined) return yield* Effect.fail(deleted(workspace))
          const newest = yield* retryUnavailable(load(head))
          if (newest.root.recent.includes(id)) return { won: true, newest }
          if (base !== undefined && areUnrelated(newest, base)) return yield* failReplaced
          if (wasLost && head.sequence - next.head.sequence >= maxRecent) {
            const detail = `the head of ${JSON.stringify(workspace)} does not show whether the commit was made; read the files again`
            return yield* Effect.fail(new StoreError({ reason: "unavailable", detail }))
          }
          return { won: false, newest }
        })
      const attempt = (count: number): Effect.Effect<Replacement, StoreError> =>
        Effect.gen(function* () {
          const answer = yield* Effect.result(heads.compareAndSet(workspace, base?.head, next.head))
          if (Result.isSuccess(answer) && answer.success) return { won: true, newest: next }
          if (Result.isFailure(answer) && answer.failure.reason !== "unavailable") return yield* Effect.fail(answer.failure)
          const found = yield* inquire(count > 1 || Result.isFailure(answer))
          if (found !== undefined) return found
          // The head is still the old one. A repetition is safe, because it names the same two heads.
          if (count >= maxInquiries) {
            return yield* Effect.fail(
              Result.isFailure(answer)
                ? answer.failure
                : new StoreError({
                    reason: "unavailable",
                    detail: "the store of heads refuses to replace the head, although it has not changed; check the store"
                  })
            )
          }
          yield* pauseAfter(count)
          return yield* attempt(count + 1)
        })
      return attempt(1)
    }

    /** The last commit that this layer has made. */
    let won: Won | undefined

    const makeCommit = (
      base: Commit | undefined,
      draft: Draft,
      message: string,
      id: string
    ): Effect.Effect<Commit, StoreError> =>
      Effect.gen(function* () {
        // Commits do not reach this number, so the head is forged.
        if (base?.head.sequence === Number.MAX_SAFE_INTEGER) {
          const detail = `the head of ${JSON.stringify(workspace)} has the last number that a commit can have; restore the head from a backup`
          return yield* Effect.fail(new StoreError({ reason: "corrupt", detail }))
        }
        const committedAt = yield* DateTime.now
        const [files, snapshots] = yield* objects.store([draft.files.tree, draft.snapshots.tree])
        const kept = base?.root.answers ?? noAnswers
        const { fresh = [] } = draft
        const past = pastOf(base, won)
        const root: Root = {
          kind: "root",
          files: { ...draft.files, tree: files },
          snapshots: { ...draft.snapshots, tree: snapshots },
          recent: [id, ...(base?.root.recent ?? [])].slice(0, maxRecent),
          past,
          answers: fresh.length === 0 ? kept : yield* Answers.add(objects, kept, fresh, DateTime.toEpochMillis(committedAt))
        }
        const { hash } = yield* objects.putNode(root)
        return { root, head: { root: hash, sequence: past.sequence, author, message, committedAt } }
      })

    const create = Effect.gen(function* () {
      const now = emptyDirectory(yield* Clock.currentTimeMillis)
      const id = newId()
      const first = yield* makeCommit(undefined, { files: now, snapshots: now }, "create the workspace", id)
      const { newest, won: isMade } = yield* replaceHead(undefined, first, id)
      if (isMade) won = { commit: first, id }
      return newest
    })

    const existing = yield* heads.get(workspace)
    if (existing === undefined && mustExist) return yield* Effect.fail(missingWorkspace(workspace))
    let known: Commit = existing === undefined ? yield* create : yield* load(existing)

    /**
     * Notes a commit whose head was read or written, and returns the newest commit. Ignores older heads, because a head may be
     * outdated when it arrives. A lower number, or a commit of another history, is believed if a second read confirms it.
     */
    const advance = (head: Head, loaded?: Commit): Effect.Effect<Commit, StoreError> =>
      Effect.suspend(() => {
        if (replaced !== undefined) return Effect.fail(replaced)
        const before = known
        if (isSameHead(head, before.head)) return Effect.succeed(before)
        const commit = loaded === undefined ? load(head) : Effect.succeed(loaded)
        return head.sequence > before.head.sequence
          ? Effect.flatMap(commit, (commit) => {
              if (areUnrelated(commit, known)) return confirm(head, Effect.succeed(commit))
              return Effect.succeed(commit.head.sequence > known.head.sequence ? (known = commit) : known)
            })
          : confirm(head, commit)
      })

    /** Reads the head again after a commit that does not follow the known commit, and notes the commit of the second read. */
    const confirm = (head: Head, commit: Effect.Effect<Commit, StoreError>): Effect.Effect<Commit, StoreError> =>
      Effect.suspend(() => {
        const before = known
        return Effect.flatMap(getHead, (present) => {
          if (isSameHead(present, before.head) || known !== before) return advance(present)
          return Effect.flatMap(isSameHead(present, head) ? commit : load(present), (commit) => {
            if (known !== before) return advance(commit.head, commit)
            return areUnrelated(commit, before) ? failReplaced : Effect.succeed((known = commit))
          })
        })
      })

    const refresh: Effect.Effect<Commit, StoreError> = Effect.flatMap(getHead, (head) => advance(head))

    type Outcome = Exit.Exit<unknown, Fault>

    /** Commits changes. Returns the answer of each change. */
    const commitAll = (changes: ReadonlyArray<Change<unknown>>): Effect.Effect<ReadonlyArray<Outcome>, StoreError> =>
      Effect.gen(function* () {
        const answers: Array<Outcome | undefined> = changes.map(() => undefined)
        const rejected = new Set<number>()
        let base = yield* refresh
        for (let attempt = 1; ; attempt++) {
          const present: Draft = base.root
          let draft = present
          const messages: Array<string> = []
          for (const [i, change] of changes.entries()) {
            if (rejected.has(i)) continue
            const ran = change.run(draft)
            const exit = isDone(ran) ? ran : yield* Effect.exit(Effect.mapError(ran, toFault))
            answers[i] = Exit.map(exit, ({ value }) => value)
            if (Exit.isFailure(exit) || exit.value.draft === draft) continue
            draft = exit.value.draft
            messages.push(change.message)
          }
          if (draft === present) return answers as ReadonlyArray<Outcome>
          const id = newId()
          const message = messages.length === 1 ? messages[0]! : `${messages.length} changes`
          const next = yield* makeCommit(base, draft, message.slice(0, 1000), id)
          const { newest, won: isMade } = yield* replaceHead(base, next, id)
          if (isMade) won = { commit: next, id }
          // The commit has succeeded even if the store fails now.
          yield* Effect.ignore(advance(newest.head, newest))
          if (isMade) return answers as ReadonlyArray<Outcome>
          if (attempt === maxAttempts) {
            const detail = `other writers changed the workspace first, ${maxAttempts} times; try again`
            return yield* Effect.fail(new StoreError({ reason: "unavailable", detail }))
          }
          if (attempt > 2) yield* pauseAfter(attempt - 2)
          for (const [i, change] of changes.entries()) {
            if (rejected.has(i)) continue
            const fault = yield* violation(objects, change.guards, base.root, newest.root)
            if (fault === undefined) continue
            answers[i] = Exit.fail(fault)
            rejected.add(i)
          }
          base = newest
        }
      })

    const queue = yield* Queue.unbounded<Pending>()
    const unanswered = new Set<Pending>()
    let isClosed = false

    const answer = (pending: Pending, exit: Outcome): void => {
      unanswered.delete(pending)
      Deferred.doneUnsafe(pending.answer, exit)
    }

    const work = Effect.gen(function* () {
      const taken = durability === "each" ? [yield* Queue.take(queue)] : yield* Queue.takeBetween(queue, 1, maxBatch)
      const batch = taken.filter((pending) => {
        if (pending.isAbandoned) unanswered.delete(pending)
        return !pending.isAbandoned
      })
      if (batch.length === 0) return
      const exit = yield* Effect.exit(Effect.mapError(commitAll(batch.map(({ change }) => change)), toFault))
      batch.forEach((pending, i) =>
        answer(pending, Exit.isSuccess(exit) ? exit.value[i]! : Exit.failCause(exit.cause as Cause.Cause<Fault>))
      )
    })

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        for (const pending of unanswered) answer(pending, Exit.fail(filesystemClosed))
      })
    )
    yield* Effect.forkScoped(Effect.forever(work))

    /** Follows the commits of other writers. If the store fails, readers keep the newest known commit. */
    const follow = Stream.runForEach(heads.changes(workspace), (head) => advance(head))
    yield* Effect.forkScoped(
      Effect.ignore(Effect.retry(follow, { schedule: Schedule.spaced("1 second"), while: () => replaced === undefined }))
    )

    const enqueue = <A>(change: Change<A>): Effect.Effect<A, Fault> =>
      Effect.suspend(() => {
        if (isClosed) return Effect.fail(filesystemClosed)
        const pending: Pending = { change, answer: Deferred.makeUnsafe(), isAbandoned: false }
        unanswered.add(pending)
        Queue.offerUnsafe(queue, pending)
        return Effect.onInterrupt(Deferred.await(pending.answer), () => Effect.sync(() => (pending.isAbandoned = true)))
      }) as Effect.Effect<A, Fault>

    const identity = {}

    /** Returns the running transaction of this workspace among the nested transactions of a fiber, if there is one. */
    const own = (current: Transaction | undefined): Transaction | undefined => {
      for (let at = current; at !== undefined; at = at.outer) if (at.workspace === identity && !at.isOver) return at
      return undefined
    }

    const begin = (current: Transaction): Effect.Effect<Transaction, Fault> =>
      Effect.flatMap(Clock.currentTimeMillis, (startedAt) =>
        Effect.map(Effect.mapError(refresh, toFault), (base) => {
          if (current.workspace === undefined) {
            Object.assign(current, {
              workspace: identity,
              base,
              draft: base.root,
              startedAt,
              commit: commitTransaction(current)
            })
          }
          return current
        })
      )

    /** Returns or begins this fiber's transaction, if any. Fails if the transaction is over or belongs to another workspace. */
    const joined: Effect.Effect<Transaction | undefined, Fault> = Effect.flatMap(CurrentTransaction, (current) => {
      const found = own(current)
      if (found !== undefined) return Effect.succeed(found)
      for (let at = current; at !== undefined; at = at.outer) {
        if (at.isBound) continue
        if (at.isOver) return Effect.fail(transactionOver)
        return at.workspace === undefined ? begin(at) : Effect.fail(otherWorkspace)
      }
      return Effect.succeed(undefined)
    })

    /** Runs an inner transaction. If it fails, removes its changes from the outer transaction. */
    const runWithin = <A, E, R>(current: Transaction, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        const { draft } = current
        const { length } = current.changes
        return Effect.onError(effect, () =>
          Effect.sync(() => {
            current.draft = draft
            current.changes.length = length
          })
        )
      })

    const commitTransaction = (current: Transaction): Effect.Effect<void, Fault> =>
      Effect.flatMap(commitWith(current, undefined, 0), (outcome) =>
        outcome._tag === "Violated" ? Effect.fail(outcome.fault) : Effect.void
      )

    /**
     * Commits the changes of a transaction, and the answer to a call. If a commit has the answer already, changes nothing and
     * returns the answer.
     */
    const commitWith = (current: Transaction, given: Answer | undefined, sentAt: number): Effect.Effect<Committed, Fault> =>
      Effect.suspend(() => {
        const { base, changes, draft, guards, startedAt } = current
        if (changes.length === 0) return Effect.succeed(made)
        const apply = (present: Draft, isLong: boolean): Effect.Effect<Draft | Violated, Problem> =>
          Effect.gen(function* () {
            if (!isLong && present.files === base!.root.files && present.snapshots === base!.root.snapshots) {
              return { ...present, files: draft!.files, snapshots: draft!.snapshots }
            }
            const fault = yield* violation(objects, guards.values(), base!.root, present)
            if (fault !== undefined) return { _tag: "Violated", fault }
            let next = present
            for (const change of changes) {
              const result = yield* Effect.result(Effect.map(change.run(next), ({ draft }) => draft))
              if (Result.isSuccess(result)) next = result.success
              else {
                const path = change.touched?.[0]?.path
                if (result.failure instanceof StoreError || path === undefined) return yield* Effect.fail(result.failure)
                // The change fails because of another writer's commit.
                const before = yield* lookup(objects, base!.root, path)
                return { _tag: "Violated", fault: conflict(path, before, yield* lookup(objects, next, path)) }
              }
            }
            return next
          })
        const enqueued = (isLong: boolean) =>
          enqueue<Committed>({
            message: changes.length === 1 ? changes[0]!.message : `a transaction of ${changes.length} changes`,
            // `apply` checks the guards against the commit that the transaction has read.
            guards: [],
            run: (present) =>
              Effect.gen(function* () {
                if (given !== undefined) {
                  const known = yield* answerIn(present, given, sentAt)
                  if (known !== undefined) return { draft: present, value: { _tag: "Known", answer: known } }
                }
                const next = yield* apply(present, isLong)
                if ("_tag" in next) return { draft: present, value: next }
                const draft = given === undefined ? next : { ...next, fresh: [given, ...(next.fresh ?? [])] }
                return { draft, value: made }
              })
          })
        return Effect.flatMap(Clock.currentTimeMillis, (now) => {
          if (now - startedAt < refreshAfter) return enqueued(false)
          // `collect` may delete, or may have deleted, what the transaction has stored. So all nodes are made again, and the
          // content is stored again. If content is missing, the transaction fails.
          const contents = changes.flatMap(({ contents }) => contents ?? [])
          return Effect.andThen(
            Effect.mapError(
              Effect.forEach(contents, (content) => Contents.refresh(objects, content), { discard: true }),
              (error) => (error.reason === "missing" ? collected : toFault(error))
            ),
            enqueued(true)
          )
        })
      })

    /** Returns the answer that a draft has for a call. Fails if the answer may have been forgotten, or belongs to another call. */
    const answerIn = (
      { answers = noAnswers, fresh = [] }: Draft,
      { id, request }: Pick<Answer, "id" | "request">,
      sentAt: number
    ): Effect.Effect<Answer | undefined, Problem> =>
      Effect.flatMap(Answers.find(objects, answers, fresh, id), (found): Effect.Effect<Answer | undefined, Problem> => {
        const mayBeForgotten = answers.forgottenUntil > 0 && sentAt <= answers.forgottenUntil
        if (found === undefined) return mayBeForgotten ? Effect.fail(forgotten) : Effect.succeed(undefined)
        return found.request === request ? Effect.succeed(found) : Effect.fail(otherRequest)
      })

    const retryLock = Semaphore.makeUnsafe(1)

    const once = <A, E, R, E2>(
      call: Call<A>,
      effect: Effect.Effect<A, E, R>,
      mapFault: (fault: Fault) => E2
    ): Effect.Effect<A, E | E2, R> => {
      const orFault = <A>(self: Effect.Effect<A, Problem>): Effect.Effect<A, E2> =>
        Effect.mapError(self, (problem) => mapFault(toFault(problem)))
      const repeat = ({ text }: Answer): Effect.Effect<A, E2> =>
        orFault(text === undefined ? Effect.fail(tooLong) : call.decode(text))
      const attempt: Effect.Effect<Result.Result<A, Fault>, E | E2, R> = Effect.gen(function* () {
        const current = yield* orFault(begin(newTransaction(true, undefined)))
        const known = yield* orFault(answerIn(current.draft!, call, call.sentAt))
        if (known !== undefined) return Result.succeed(yield* repeat(known))
        const value = yield* inside(current, effect)
        const text = current.changes.length === 0 ? "" : call.encode(value)
        const given: Answer = {
          id: call.id,
          request: call.request,
          at: Math.max(0, Math.trunc(yield* Clock.currentTimeMillis)),
          text: Buffer.byteLength(text) <= Answers.maxTextBytes ? text : undefined
        }
        const outcome = yield* orFault(commitWith(current, given, call.sentAt))
        switch (outcome._tag) {
          case "Made":
            return Result.succeed(value)
          case "Known":
            return Result.succeed(yield* repeat(outcome.answer))
          case "Violated":
            return Result.fail(outcome.fault)
        }
      })
      /** Repeats the call under a lock. So calls that compete for the same files run one after another, and end. */
      const retry = (left: number): Effect.Effect<A, E | E2, R> =>
        Effect.flatMap(attempt, (result): Effect.Effect<A, E | E2, R> => {
          if (Result.isSuccess(result)) return Effect.succeed(result.success)
          return left === 0 ? Effect.fail(mapFault(result.failure)) : retry(left - 1)
        })
      return Effect.flatMap(attempt, (result) =>
        Result.isSuccess(result) ? Effect.succeed(result.success) : retryLock.withPermit(retry(maxAttempts))
      )
    }

    return {
      objects,
      peek: (fiber) => (replaced === undefined && fiber.getRef(CurrentTransaction) === undefined ? known.root : undefined),
      once,
      draft: Effect.flatMap(joined, (current) => {
        if (current !== undefined) return Effect.succeed(current.draft!)
        return replaced === undefined ? Effect.succeed(known.root) : Effect.fail(toFault(replaced))
      }),
      lineage: () => lineageOf(known),
      isReplaced: () => replaced !== undefined,
      refresh: Effect.map(Effect.mapError(refresh, toFault), ({ root }) => root),
      state: Effect.flatMap(heads.get(workspace), (head) =>
        head === undefined
          ? Effect.succeed("deleted" as const)
          : Effect.matchEffect(advance(head), {
              onSuccess: () => Effect.succeed("present" as const),
              onFailure: (error) => (error === replaced ? Effect.succeed("replaced" as const) : Effect.fail(error))
            })
      ),
      observe: (guard) => Effect.map(CurrentTransaction, (current) => note(own(current), guard)),
      transaction: (effect, mapFault) =>
        Effect.flatMap(Effect.mapError(joined, mapFault), (current) =>
          current !== undefined
            ? runWithin(current, effect)
            : Effect.flatMap(CurrentTransaction, (outer) =>
                Effect.flatMap(Effect.mapError(begin(newTransaction(true, outer)), mapFault), (current) =>
                  runIn(current, effect, mapFault)
                )
              )
        ),
      submit: <A>(change: Change<A>) =>
        Effect.flatMap(joined, (current): Effect.Effect<A, Fault> => {
          if (current === undefined) return replaced === undefined ? enqueue(change) : Effect.fail(toFault(replaced))
          const apply = (before: Draft): Effect.Effect<A, Fault> =>
            Effect.flatMap(Effect.mapError(change.run(before), toFault), ({ draft, value }) =>
              // Another fiber of the transaction may have changed the draft while nodes were loaded.
              current.draft !== before
                ? Effect.suspend(() => apply(current.draft!))
                : Effect.sync(() => {
                    current.draft = draft
                    if (draft !== before) current.changes.push(change)
                    return value
                  })
            )
          return Effect.suspend(() => {
            for (const guard of change.touched ?? change.guards) note(current, guard)
            return apply(current.draft!)
          })
        })
    }
  })

/** The fault of a change whose entry has changed since the caller read it. The caller then reads it again. */
export const overtaken: Fault = accessDenied("busy", "other writers keep changing the file")
