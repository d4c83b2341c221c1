/**
 * Searches the contents of files.
 *
 * Cheap expressions run on this thread. Others run in a worker with a time budget, so the program stays responsive for
 * every pattern.
 *
 * If the backend can search the files of a walk itself, it searches all but the first few.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { GrepMatch } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Found, Query, Unsearched } from "../model/search.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import type { Explorer as Explorer_, Files, Searched } from "../port/explorer.ts"
import { performing } from "../port/Request.ts"
import { type Answer, type Matched, Matching } from "../runtime/matching.ts"
import * as Eager from "./eager.ts"
import * as Explorer from "./explorer.ts"
import { inOrder } from "./inOrder.ts"
import type { Base, GrepPlan } from "./grep.ts"
import type * as Pattern from "./pattern.ts"
import type { Why } from "./options.ts"
import * as Read from "./read.ts"
import * as Text from "./text.ts"
import * as Walk from "./walk.ts"
import * as Missing from "./missing.ts"
import { Passed } from "./passed.ts"
import { type Directory, Walker } from "./walker.ts"

export interface Outcome {
  readonly path: FsPath.FsPath
  readonly found: ReadonlyArray<Found> | Why | "gone"
  readonly isComplete?: boolean
  readonly key?: string | undefined
  readonly text?: string | undefined
}

class Loaded {
  readonly path: FsPath.FsPath
  readonly bytes: Uint8Array

  constructor(path: FsPath.FsPath, bytes: Uint8Array) {
    this.path = path
    this.bytes = bytes
  }
}

const sniffed = 8192

const hasNul = (bytes: Uint8Array): boolean => bytes.subarray(0, sniffed).includes(0)

const mostBytes = ({ limits, maxFileSize }: GrepPlan): number =>
  Math.min(maxFileSize, limits.maxReadBytes, Text.maxStringLength)

const placeOf = (base: Base, path: FsPath.FsPath): FsPath.FsPath => FsPath.below(base.at, FsPath.relative(base.path, path))

/** Reads a file unless its first bytes show that it is binary. Returns "large" above `now` bytes, for a later read. */
const bytesOf = (
  port: Backend,
  at: FsPath.FsPath,
  self: GrepPlan,
  now: number
): Effect.Effect<Uint8Array | Unsearched | "large", Fault> => {
  const most = mostBytes(self)
  const opened = Effect.scoped(
    Effect.flatMap(port.open(at), (handle): Effect.Effect<Uint8Array | Unsearched | "large", Fault> => {
      const size = handle.stat.sizeBytes
      if (size > most) return Effect.succeed("tooLarge")
      return Effect.flatMap(
        Read.range(handle, 0, Math.min(size, sniffed)),
        (head): Effect.Effect<Uint8Array | Unsearched | "large", Fault> =>
          head.length === size || hasNul(head)
            ? Effect.succeed(head)
            : size > now
              ? Effect.succeed("large")
              : Read.range(handle, 0, size)
      )
    })
  )
  const perform = performing(port, "Read")
  return perform === undefined
    ? opened
    : Eager.flatMap(perform({ _tag: "Read", path: at, maxBytes: Math.min(most, now) }), (whole) =>
        Option.isNone(whole) ? opened : Effect.succeed(whole.value.bytes)
      )
}

const smallFile = 256 * 1024

const load = (
  port: Backend,
  base: Base,
  self: GrepPlan,
  path: FsPath.FsPath,
  now: number
): Effect.Effect<Loaded | Outcome | "large", Fault> => {
  const at = placeOf(base, path)
  return Eager.catch(
    Eager.map(bytesOf(port, at, self, now), (bytes): Loaded | Outcome | "large" => {
      if (bytes === "large") return bytes
      return typeof bytes === "string" ? { path, found: bytes } : new Loaded(path, bytes)
    }),
    (fault) =>
      fault._tag === "Unavailable"
        ? Effect.fail(fault)
        : Effect.succeed<Outcome>({ path, found: fault._tag === "NotFound" ? "gone" : "unreadable" })
  )
}

const fewSteps = 4_000_000

const costOf = ({ literal, steps }: Pattern.Pattern, bytes: Uint8Array, most: number): number => {
  if (literal !== undefined) return bytes.length
  let cost = 0
  for (let at = 0; cost <= most;) {
    const lf = bytes.indexOf(10, at)
    cost += steps((lf === -1 ? bytes.length : lf) - at)
    if (lf === -1) break
    at = lf + 1
  }
  return cost
}

const timeout = (self: GrepPlan, path: string): Fault =>
  located({ _tag: "Timeout", detail: `the pattern worked on this file for more than ${self.limits.patternBudget} ms` }, path)

const failure = (detail: string, path: string): Fault =>
  located({ _tag: "IoError", detail: `the search failed: ${detail}` }, path)

const firstLine = (self: GrepPlan, path: string): number => (self.after?.path === path ? self.after.lineNumber + 1 : 1)

interface Search {
  readonly port: Backend
  readonly base: Base
  readonly plan: GrepPlan
  readonly query: Query
  /** Set once an expensive file was found. From then on, no time is spent on finding cheap files. */
  isHard: boolean
}

const quick = ({ isHard, plan }: Search, files: ReadonlyArray<Loaded>): number => {
  if (isHard) return 0
  let left = fewSteps
  for (let count = 0; count < files.length; count++) {
    left -= costOf(plan.pattern, files[count]!.bytes, left)
    if (left < 0) return count
  }
  return files.length
}

interface Broken<A> {
  readonly done: ReadonlyArray<A>
  readonly fault: Fault
}

const isBroken = <A>(answer: ReadonlyArray<A> | Broken<A>): answer is Broken<A> => "fault" in answer

const broken = <A>(
  { plan }: Search,
  path: FsPath.FsPath,
  answer: Exclude<Answer, ReadonlyArray<unknown>>,
  before: Effect.Effect<ReadonlyArray<A> | Broken<A>, Fault>
): Effect.Effect<Broken<A>, Fault> => {
  const fault = answer._tag === "Overrun" ? timeout(plan, path) : failure(answer.detail, path)
  if (answer.index === 0) return Effect.succeed({ done: [], fault })
  return Effect.map(before, (done) => (isBroken(done) ? done : { done, fault }))
}

const away = (
  self: Search,
  files: ReadonlyArray<Loaded>,
  from: number
): Effect.Effect<ReadonlyArray<Matched> | Broken<Matched>, Fault> =>
  Effect.withFiber((fiber) => {
    const contents = files.map(({ bytes }) => bytes)
    return Effect.flatMap(
      fiber.getRef(Matching).away(self.query, contents, from),
      (answer): Effect.Effect<ReadonlyArray<Matched> | Broken<Matched>, Fault> => {
        if (!("_tag" in answer)) return Effect.succeed(answer)
        const before = Effect.suspend(() => away(self, files.slice(0, answer.index), from))
        return broken(self, files[answer.index]!.path, answer, before)
      }
    )
  })

const match = Effect.fnUntraced(function* (
  self: Search,
  files: ReadonlyArray<Loaded>
): Effect.fn.Return<ReadonlyArray<Matched> | Broken<Matched>, Fault> {
  const { plan, query } = self
  const out: Array<Matched> = []
  for (let left = files; left.length > 0;) {
    // Only the first file of a search can continue from a line, and it forms a batch of its own.
    const from = firstLine(plan, left[0]!.path)
    const count = quick(self, left)
    const isAway = count === 0 && (plan.pattern.literal === undefined || left[0]!.bytes.length > smallFile)
    if (isAway && plan.pattern.literal === undefined) self.isHard = true
    const some = left.slice(0, self.isHard ? left.length : Math.max(count, 1))
    if (isAway) {
      const answer = yield* away(self, some, from)
      if (isBroken(answer)) return { done: [...out, ...answer.done], fault: answer.fault }
      out.push(...answer)
    } else {
      const { here } = yield* Matching
      const contents = some.map(({ bytes }) => bytes)
      out.push(...here(query, contents, from))
    }
    left = left.slice(some.length)
    if (left.length > 0) yield* Effect.yieldNow
  }
  return out
})

type Answered = ReadonlyArray<Outcome> | Broken<Outcome>

const matchAll = (self: Search, files: ReadonlyArray<Loaded | Outcome>): Effect.Effect<Answered, Fault> => {
  const loaded = files.filter((file) => file instanceof Loaded)
  return Effect.map(match(self, loaded), (all): Answered => {
    const done = isBroken(all) ? all.done : all
    let next = 0
    const out: Array<Outcome> = []
    for (const file of files) {
      if (!(file instanceof Loaded)) out.push(file)
      else if (next < done.length) out.push({ path: file.path, ...done[next++]! })
      else break
    }
    return isBroken(all) ? { done: out, fault: all.fault } : out
  })
}

const readsAhead = 8

const loadAll = (
  { base, plan, port }: Search,
  files: ReadonlyArray<{ readonly path: FsPath.FsPath } | Outcome>
): Effect.Effect<ReadonlyArray<Loaded | Outcome | "large">, Fault> => {
  const one = (path: FsPath.FsPath) => load(port, base, plan, path, smallFile)
  const alone = () => Eager.forEach(files, (file) => (isSettled(file) ? Effect.succeed(file) : one(file.path)), readsAhead)
  const perform = performing(port, "ReadMany")
  if (perform === undefined || files.length === 1) return alone()
  const paths = files.flatMap((file) => (isSettled(file) ? [] : [placeOf(base, file.path)]))
  return Effect.flatMap(perform({ _tag: "ReadMany", paths, maxBytes: Math.min(mostBytes(plan), smallFile) }), (answer) => {
    if (Option.isNone(answer)) return alone()
    const wholes = answer.value
    let next = 0
    return Eager.forEach(
      files,
      (file) => {
        if (isSettled(file)) return Effect.succeed(file)
        const whole = wholes[next++]
        return whole === undefined ? one(file.path) : Effect.succeed(new Loaded(file.path, whole.bytes))
      },
      readsAhead
    )
  })
}

const whole = ({ base, plan, port }: Search, path: FsPath.FsPath): Effect.Effect<ReadonlyArray<Loaded | Outcome>, Fault> =>
  Effect.map(load(port, base, plan, path, Number.POSITIVE_INFINITY), (file) => (file === "large" ? [] : [file]))

/** Loads small files ahead and searches them together. Loads each large file alone and releases it before the next. */
const searched = Effect.fnUntraced(function* (
  self: Search,
  files: ReadonlyArray<{ readonly path: FsPath.FsPath } | Outcome>,
  search?: NonNullable<Explorer_<Directory>["search"]>
): Effect.fn.Return<Answered, Fault> {
  const loaded = yield* loadAll(self, files)
  const out: Array<Outcome> = []
  for (let at = 0; at < loaded.length;) {
    const isLarge = loaded[at] === "large"
    const next = isLarge ? at + 1 : loaded.indexOf("large", at)
    const end = next === -1 ? loaded.length : next
    const file = files[at]!
    const answer =
      isLarge && search !== undefined && file instanceof Candidate
        ? yield* there(search, self, [file])
        : yield* matchAll(
            self,
            isLarge ? yield* whole(self, file.path) : loaded.slice(at, end).filter((file) => file !== "large")
          )
    if (isBroken(answer)) return { done: [...out, ...answer.done], fault: answer.fault }
    out.push(...answer)
    at = end
  }
  return out
})

const isSettled = (file: object): file is Outcome => "found" in file

class Candidate {
  readonly directory: Directory
  readonly child: Child

  constructor(directory: Directory, child: Child) {
    this.directory = directory
    this.child = child
  }

  get path(): FsPath.FsPath {
    return FsPath.join(this.directory.path, this.child.name)
  }
}

const candidate = (directory: Directory, child: Child): Candidate => new Candidate(directory, child)

const passed = ({ key, path, why }: Passed): Outcome => ({ path, found: why, key })

class Placed implements Outcome {
  readonly #file: Candidate
  readonly found: ReadonlyArray<GrepMatch> | Unsearched
  readonly text: string | undefined
  readonly isComplete = true

  constructor(file: Candidate, { found, text }: Searched) {
    this.#file = file
    this.found = found
    this.text = text
  }

  get path(): FsPath.FsPath {
    return this.#file.path
  }
}

type Batch = ReadonlyArray<Candidate | Outcome>

const nothing: Outcome = { path: FsPath.root, found: [] }

/** Files searched before the backend's own search starts, which end before a worker has started. */
const few = 64
const firstBatch = 32
const largestThere = 384
/**
 * The largest batch of small files, all in memory at once. It is larger if the backend reads many files in one call.
 */
const largestHere = 64
const largestAtOnce = 128
const atOnce = 8
const fewAtOnce = 3

/**
 * Groups files into batches.
 *
 * Batches grow, so that the first result arrives soon and later batches cost little each. The file in which a search
 * continues is alone in its batch, because it starts at a later line.
 */
const batches = (
  { after }: GrepPlan,
  next: Effect.Effect<Batch | undefined, Fault>,
  largest: number
): Effect.Effect<Batch | undefined, Fault> => {
  let size = firstBatch
  let files: Array<Candidate | Outcome> = []
  let isFirst = true
  let end: Effect.Effect<undefined, Fault> | undefined
  const take = (): Batch => {
    const count = isFirst && files[0]!.path === after?.path ? 1 : size
    isFirst = false
    size = Math.min(size * 2, largest)
    const batch = files.slice(0, count)
    files = files.slice(count)
    return batch
  }
  const more: Effect.Effect<Batch | undefined, Fault> = Effect.suspend(() => {
    if (files.length >= size || (end !== undefined && files.length > 0)) return Effect.succeed(take())
    if (end !== undefined) return end
    return Effect.flatMap(Effect.result(next), (some) => {
      if (Result.isFailure(some)) end = Effect.fail(some.failure)
      else if (some.success === undefined) end = Effect.succeed(undefined)
      else files = files.concat(some.success)
      return more
    })
  })
  return more
}

const filesOf = (batch: Batch): Array<Files<Directory>> => {
  const out: Array<{ readonly visit: Directory; readonly segments: Array<string> }> = []
  for (const file of batch) {
    if (isSettled(file) || file.child.kind !== "file") continue
    const { child, directory } = file
    const last = out[out.length - 1]
    if (last?.visit === directory) last.segments.push(keyOf(child))
    else out.push({ visit: directory, segments: [keyOf(child)] })
  }
  return out
}

const unreadable: Searched = { found: "unreadable" }

const isFile = (file: Candidate | Outcome): file is Candidate => !isSettled(file) && file.child.kind === "file"

const there = (
  search: NonNullable<Explorer_<Directory>["search"]>,
  self: Search,
  batch: Batch
): Effect.Effect<Answered, Fault> => {
  const files = batch.filter(isFile)
  const from = files.length === 0 ? 1 : firstLine(self.plan, files[0]!.path)
  const found = search(self.query, filesOf(batch), from, (file) => files[file]!.path)
  return Effect.flatMap(found, (answer): Effect.Effect<Answered, Fault> => {
    if ("_tag" in answer) {
      const victim = files[answer.index]!
      const before = Effect.suspend(() => there(search, self, batch.slice(0, batch.indexOf(victim))))
      return broken(self, victim.path, answer, before)
    }
    let next = 0
    return Effect.succeed(
      batch.map((file) => {
        if (isSettled(file)) return file
        const searched = isFile(file) ? answer[next++]! : unreadable
        return searched.found.length === 0 ? nothing : new Placed(file, searched)
      })
    )
  })
}

const queryOf = (self: GrepPlan, most: number): Query => ({
  question: self.question,
  needles: self.needles,
  most,
  maxBytes: mostBytes(self),
  withText: self.before + self.behind > 0,
  budget: self.question.literal === undefined ? self.limits.patternBudget : Number.POSITIVE_INFINITY
})

const upToFault = (all: Stream.Stream<Answered, Fault>): Stream.Stream<ReadonlyArray<Outcome>, Fault> =>
  Stream.flatMap(all, (answer) =>
    isBroken(answer) ? Stream.concat(Stream.succeed(answer.done), Stream.fail(answer.fault)) : Stream.succeed(answer)
  )

/** Streams the outcomes in order, including skipped entries, with at most `most` matching lines per file. */
export const outcomes = (
  port: Backend,
  base: Base,
  self: GrepPlan,
  most: number
): Stream.Stream<ReadonlyArray<Outcome>, Fault> => {
  const task: Search = { port, base, plan: self, query: queryOf(self, most), isHard: false }
  if (base.kind !== "directory")
    return upToFault(Stream.fromEffect(Missing.single(base, port.stat(base.at), searched(task, [base]))))
  const fold = Walk.foldOf(port)
  const first = self.after && fold(self.after.path)
  return Stream.unwrap(
    Effect.flatMap(Explorer.make(port, true), (explorer) => {
      const { search } = explorer
      const walker = new Walker(port, explorer, self.walk, base, candidate, search !== undefined)
      const done = (file: Candidate | Outcome): void => {
        if (!isSettled(file)) walker.done(file.directory, 1)
      }
      const isWanted = (file: Candidate | Passed): boolean => {
        if (file instanceof Passed || first === undefined || FsPath.compare(fold(file.path), first) >= 0) return true
        done(file)
        return false
      }
      const next = Effect.map(walker.next, (files) =>
        files?.filter(isWanted).map((file) => (file instanceof Passed ? passed(file) : file))
      )
      let seen = 0
      const run = (batch: Batch): Effect.Effect<Answered, Fault> => {
        const isEarly = seen < few
        seen += batch.length
        const answer = search === undefined || isEarly ? searched(task, batch, search) : there(search, task, batch)
        const seeking: Missing.Seeking<Candidate, Outcome> = {
          // The backend may still hold the listed directory, even if its path now names another one.
          search: (files) => (search === undefined ? searched(task, files) : there(search, task, files)),
          became: ({ child, directory }) => walker.became(directory, keyOf(child), "file"),
          fileAt: (index) => batch[index] as Candidate
        }
        return Effect.tap(
          Effect.flatMap(answer, (answer) => Missing.settled(seeking, answer)),
          () => Effect.sync(() => batch.forEach(done))
        )
      }
      const largest = performing(port, "ReadMany") === undefined ? largestHere : largestAtOnce
      const some = batches(self, next, search === undefined ? largest : largestThere)
      const answers = inOrder(some, run, search === undefined ? fewAtOnce : atOnce)
      return Effect.map(answers, (answers) => upToFault(Walk.pulled(Effect.map(answers, (answer) => answer && [answer]))))
    })
  )
}
