/**
 * Searches the contents of files.
 *
 * An expression that is known to be fast runs on this thread. Any other expression runs in a worker thread with a time
 * budget, so no pattern blocks the program.
 *
 * If the backend can search the files of a walk, this module searches only the first files.
 */
import { ioError } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { GrepMatch } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Query, SkipReason } from "../model/search.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import { performing } from "../port/Request.ts"
import type { DirectoryFiles, Explorer as Explorer_, Searched } from "../port/explorer.ts"
import { type ContentSearchResult, type Matched, Matching, type Searchable } from "../runtime/matching.ts"
import * as Eager from "./eager.ts"
import { runInOrder } from "./inOrder.ts"
import type { Base, GrepPlan } from "./grep.ts"
import type { Why } from "./options.ts"
import type * as Pattern from "./pattern.ts"
import * as Read from "./read.ts"
import { SkippedEntry } from "./skips.ts"
import * as Text from "./text.ts"
import * as Explorer from "./walk.ts"
import * as Missing from "./missing.ts"
import type { Answers, Directory } from "./walkDirectory.ts"
import { Walker } from "./walker.ts"

export interface Outcome {
  readonly path: FsPath.FsPath
  readonly found: ReadonlyArray<GrepMatch> | Why | "gone"
  readonly key?: string | undefined
  readonly text?: string | undefined
  /**
   * The number of successive files without a match that this outcome stands for.
   * @default 1
   */
  readonly fileCount?: number
}

interface Located {
  readonly path: FsPath.FsPath
}

class Loaded {
  readonly file: Located
  readonly bytes: Uint8Array

  constructor(file: Located, bytes: Uint8Array) {
    this.file = file
    this.bytes = bytes
  }
}

const binaryCheckBytes = 8192

const hasNul = (bytes: Uint8Array): boolean => bytes.subarray(0, binaryCheckBytes).includes(0)

const maxFileBytes = ({ limits, maxFileSize }: GrepPlan): number =>
  Math.min(maxFileSize, limits.maxReadBytes, Text.maxStringLength)

const resolvedPathOf = (base: Base, path: FsPath.FsPath): FsPath.FsPath =>
  FsPath.below(base.at, FsPath.relative(base.path, path))

/**
 * Reads a file, or only its first bytes if these show that the file is binary. Returns "large" for a file above
 * `maxImmediateBytes`; the caller reads such a file later.
 */
const bytesOf = (
  port: Backend,
  at: FsPath.FsPath,
  self: GrepPlan,
  maxImmediateBytes: number
): Effect.Effect<Uint8Array | SkipReason | "large", Fault> => {
  const limit = maxFileBytes(self)
  const opened = Effect.scoped(
    Effect.flatMap(port.open(at), (handle): Effect.Effect<Uint8Array | SkipReason | "large", Fault> => {
      const size = handle.stat.sizeBytes
      if (size > limit) return Effect.succeed("tooLarge")
      return Effect.flatMap(
        Read.range(handle, 0, Math.min(size, binaryCheckBytes)),
        (head): Effect.Effect<Uint8Array | SkipReason | "large", Fault> =>
          head.length === size || hasNul(head)
            ? Effect.succeed(head)
            : size > maxImmediateBytes
              ? Effect.succeed("large")
              : Read.range(handle, 0, size)
      )
    })
  )
  const perform = performing(port, "Read")
  return perform === undefined
    ? opened
    : Eager.flatMap(perform({ _tag: "Read", path: at, maxBytes: Math.min(limit, maxImmediateBytes) }), (whole) =>
        Option.isNone(whole) ? opened : Effect.succeed(whole.value.bytes)
      )
}

const smallFileBytes = 256 * 1024

const load = (
  port: Backend,
  base: Base,
  self: GrepPlan,
  file: Located,
  maxImmediateBytes: number
): Effect.Effect<Loaded | Outcome | "large", Fault> => {
  const { path } = file
  const at = resolvedPathOf(base, path)
  return Eager.catch(
    Eager.map(bytesOf(port, at, self, maxImmediateBytes), (bytes): Loaded | Outcome | "large" => {
      if (bytes === "large") return bytes
      return typeof bytes === "string" ? { path, found: bytes } : new Loaded(file, bytes)
    }),
    (fault) =>
      fault._tag === "Unavailable"
        ? Effect.fail(fault)
        : Effect.succeed<Outcome>({ path, found: fault._tag === "NotFound" ? "gone" : "unreadable" })
  )
}

const maxInlineSteps = 4_000_000

/**
 * The number of steps up to which `costOf` takes the bound for a file's total length as its cost. Above this number, the cost
 * is the sum over the lines.
 */
const maxRoughSteps = 2 ** 16

const costOf = ({ literal, steps }: Pattern.Pattern, bytes: Uint8Array, limit: number): number => {
  if (literal !== undefined) return bytes.length
  // All lines together take no more steps than one line of their total length.
  const bound = steps(bytes.length)
  if (bound <= maxRoughSteps) return bound
  let cost = 0
  for (let at = 0; cost <= limit;) {
    const lf = bytes.indexOf(10, at)
    cost += steps((lf === -1 ? bytes.length : lf) - at)
    if (lf === -1) break
    at = lf + 1
  }
  return cost
}

const timeout = (self: GrepPlan, path: string): Fault =>
  located(
    {
      _tag: "Timeout",
      detail: `the pattern exceeded its time budget of ${self.limits.patternBudget} ms on this file`
    },
    path
  )

const failure = (detail: string, path: string): Fault => located(ioError(`the search failed: ${detail}`), path)

const firstLine = (self: GrepPlan, path: string): number => (self.after?.path === path ? self.after.lineNumber + 1 : 1)

interface SearchTask {
  readonly port: Backend
  readonly base: Base
  readonly plan: GrepPlan
  readonly query: Query
  /** True after an expensive file was found. The search then no longer looks for cheap files. */
  hasExpensiveFile: boolean
  /** The time of the last yield to other fibers, in milliseconds of `performance.now`. */
  resumedAt: number
}

const sliceMillis = 4

/** Yields to other fibers if this search has run for `sliceMillis`. All fibers of a search share this time. */
const yieldIfDue = (self: SearchTask): Effect.Effect<void> => {
  const { resumedAt } = self
  if (performance.now() - resumedAt < sliceMillis) return Effect.void
  return Effect.flatMap(Effect.yieldNow, () => {
    if (self.resumedAt === resumedAt) self.resumedAt = performance.now()
    return yieldIfDue(self)
  })
}

/** The maximum number of matches per file for which this thread searches files above `smallFileBytes`. */
const maxInlineMatches = 2 ** 14

const countInlineFiles = ({ hasExpensiveFile, plan, query }: SearchTask, files: ReadonlyArray<Loaded>): number => {
  if (hasExpensiveFile) return 0
  const maxBytes = query.maxMatches > maxInlineMatches ? smallFileBytes : maxInlineSteps
  let left = maxInlineSteps
  for (let count = 0; count < files.length; count++) {
    const { bytes } = files[count]!
    left -= costOf(plan.pattern, bytes, left)
    if (left < 0 || bytes.length > maxBytes) return count
  }
  return files.length
}

/** The maximum numbers of files and bytes that are copied for a worker at a time. */
const maxWorkerFiles = 128
const maxWorkerBytes = 2 ** 24

const countWorkerFiles = (files: ReadonlyArray<Loaded>): number => {
  let bytes = 0
  for (let count = 0; count < files.length && count < maxWorkerFiles; count++) {
    bytes += files[count]!.bytes.length
    if (count > 0 && bytes > maxWorkerBytes) return count
  }
  return Math.min(files.length, maxWorkerFiles)
}

interface PartialResult<A> {
  readonly done: ReadonlyArray<A>
  readonly fault: Fault
}

const isPartial = <A>(answer: ReadonlyArray<A> | PartialResult<A>): answer is PartialResult<A> => "fault" in answer

const recoverBatch = <A>(
  { plan }: SearchTask,
  path: FsPath.FsPath,
  answer: Exclude<ContentSearchResult, ReadonlyArray<unknown>>,
  before: Effect.Effect<ReadonlyArray<A> | PartialResult<A>, Fault>
): Effect.Effect<PartialResult<A>, Fault> => {
  const fault = answer._tag === "Overrun" ? timeout(plan, path) : failure(answer.detail, path)
  if (answer.index === 0) return Effect.succeed({ done: [], fault })
  return Effect.map(before, (done) => (isPartial(done) ? done : { done, fault }))
}

const searchInWorkers = (
  self: SearchTask,
  files: ReadonlyArray<Loaded>,
  some: Searchable
): Effect.Effect<ReadonlyArray<Matched> | PartialResult<Matched>, Fault> =>
  Effect.withFiber((fiber) =>
    Effect.flatMap(
      fiber.getRef(Matching).searchInWorkers(self.query, some),
      (answer): Effect.Effect<ReadonlyArray<Matched> | PartialResult<Matched>, Fault> => {
        if (!("_tag" in answer)) return Effect.succeed(answer)
        const before = files.slice(0, answer.index)
        return recoverBatch(
          self,
          some.pathOf(answer.index),
          answer,
          Effect.suspend(() => searchInWorkers(self, before, searchableOf(before, some.from)))
        )
      }
    )
  )

const searchableOf = (files: ReadonlyArray<Loaded>, from: number): Searchable => ({
  contents: files.map(({ bytes }) => bytes),
  from,
  pathOf: (index) => files[index]!.file.path
})

const matchFiles = Effect.fnUntraced(function* (
  self: SearchTask,
  files: ReadonlyArray<Loaded>
): Effect.fn.Return<ReadonlyArray<Matched> | PartialResult<Matched>, Fault> {
  const { plan, query } = self
  const out: Array<Matched> = []
  while (out.length < files.length) {
    yield* yieldIfDue(self)
    const left = out.length === 0 ? files : files.slice(out.length)
    // Only the first file of a search can continue from a line, and it forms a batch of its own.
    const from = plan.after === undefined ? 1 : firstLine(plan, left[0]!.file.path)
    const count = countInlineFiles(self, left)
    if (count === 0 && plan.pattern.literal === undefined) self.hasExpensiveFile = true
    const some = left.slice(0, count === 0 ? countWorkerFiles(left) : count)
    const searchable = searchableOf(some, from)
    if (count === 0) {
      const answer = yield* searchInWorkers(self, some, searchable)
      if (isPartial(answer)) return { done: [...out, ...answer.done], fault: answer.fault }
      for (const matched of answer) out.push(matched)
    } else {
      const { searchInline } = yield* Matching
      for (const matched of searchInline(query, searchable)) out.push(matched)
    }
  }
  return out
})

type BatchOutcomes = ReadonlyArray<Outcome> | PartialResult<Outcome>

const matchAll = (self: SearchTask, files: ReadonlyArray<Loaded | Outcome>): Effect.Effect<BatchOutcomes, Fault> => {
  const loaded = files.filter((file) => file instanceof Loaded)
  return Effect.map(matchFiles(self, loaded), (all): BatchOutcomes => {
    const done = isPartial(all) ? all.done : all
    let next = 0
    const out: Array<Outcome> = []
    for (const file of files) {
      if (!(file instanceof Loaded)) out.push(file)
      else if (next < done.length) out.push(outcomeOf(file.file, done[next++]!))
      else break
    }
    return isPartial(all) ? { done: out, fault: all.fault } : out
  })
}

const concurrentReads = 8

const loadAll = (
  { base, plan, port }: SearchTask,
  files: ReadonlyArray<{ readonly path: FsPath.FsPath } | Outcome>
): Effect.Effect<ReadonlyArray<Loaded | Outcome | "large">, Fault> => {
  const one = (file: Located) => load(port, base, plan, file, smallFileBytes)
  const alone = () => Eager.forEach(files, (file) => (isSettled(file) ? Effect.succeed(file) : one(file)), concurrentReads)
  const perform = performing(port, "ReadMany")
  if (perform === undefined || files.length === 1) return alone()
  const paths = files.flatMap((file) => (isSettled(file) ? [] : [resolvedPathOf(base, file.path)]))
  return Effect.flatMap(
    perform({ _tag: "ReadMany", paths, maxBytes: Math.min(maxFileBytes(plan), smallFileBytes) }),
    (answer) => {
      if (Option.isNone(answer)) return alone()
      const wholes = answer.value
      let next = 0
      return Eager.forEach(
        files,
        (file) => {
          if (isSettled(file)) return Effect.succeed(file)
          const whole = wholes[next++]
          return whole === undefined ? one(file) : Effect.succeed(new Loaded(file, whole.bytes))
        },
        concurrentReads
      )
    }
  )
}

const whole = ({ base, plan, port }: SearchTask, file: Located): Effect.Effect<ReadonlyArray<Loaded | Outcome>, Fault> =>
  Effect.map(load(port, base, plan, file, Number.POSITIVE_INFINITY), (file) => (file === "large" ? [] : [file]))

/**
 * Loads small files ahead and searches them together. Loads each large file alone, and releases it before it loads the
 * next file.
 */
const searched = Effect.fnUntraced(function* (
  self: SearchTask,
  files: ReadonlyArray<{ readonly path: FsPath.FsPath } | Outcome>,
  search?: NonNullable<Explorer_<Directory>["search"]>
): Effect.fn.Return<BatchOutcomes, Fault> {
  const loaded = yield* loadAll(self, files)
  const out: Array<Outcome> = []
  for (let at = 0; at < loaded.length;) {
    const isLarge = loaded[at] === "large"
    const next = isLarge ? at + 1 : loaded.indexOf("large", at)
    const end = next === -1 ? loaded.length : next
    const file = files[at]!
    const answer =
      isLarge && search !== undefined && file instanceof Candidate
        ? yield* searchInBackend(search, self, [file])
        : yield* matchAll(self, isLarge ? yield* whole(self, file) : loaded.slice(at, end).filter((file) => file !== "large"))
    if (isPartial(answer)) return { done: [...out, ...answer.done], fault: answer.fault }
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

/** The outcome of a file that a search process has searched. */
class ProcessedFile implements Outcome {
  readonly path: FsPath.FsPath
  found: ReadonlyArray<GrepMatch> | SkipReason = []
  text: string | undefined
  unpack: (() => Effect.Effect<void>) | undefined

  constructor(path: FsPath.FsPath) {
    this.path = path
  }
}

/** Unpacks the matches of the files that search processes have searched. */
const unpackMatches = (self: SearchTask, batch: Batch): Effect.Effect<void> => {
  let unpacking: Effect.Effect<void> = Effect.void
  let last: (() => Effect.Effect<void>) | undefined
  for (const file of batch) {
    const unpack = file instanceof ProcessedFile ? file.unpack : undefined
    if (unpack === undefined || unpack === last) continue
    last = unpack
    unpacking = Eager.flatMap(unpacking, () => Eager.flatMap(yieldIfDue(self), unpack))
  }
  return unpacking
}

const candidates: Answers<Candidate | Outcome> = {
  ofChild: (directory, child) => new Candidate(directory, child),
  // A search process has searched the files that it listed. So this entry is not a file, and counts as unreadable.
  ofEntry: (path) => ({ path, found: "unreadable" })
}

const skippedOutcome = ({ key, path, why }: SkippedEntry): Outcome => ({ path, found: why, key })

class FoundFile implements Outcome {
  readonly #file: Located
  readonly found: ReadonlyArray<GrepMatch> | SkipReason
  readonly text: string | undefined

  constructor(file: Located, { found, text }: Searched) {
    this.#file = file
    this.found = found
    this.text = text
  }

  get path(): FsPath.FsPath {
    return this.#file.path
  }
}

type Batch = ReadonlyArray<Candidate | Outcome>

const noMatches: Outcome = { path: FsPath.root, found: [] }

const outcomeOf = (file: Located, searched: Searched): Outcome =>
  searched.found.length === 0 ? noMatches : new FoundFile(file, searched)

/**
 * The number of files that this thread searches before the backend takes over. Starting a worker thread takes longer than
 * searching these files.
 */
const earlyFiles = 64
/** The number of files that this thread searches while the search processes start. */
const earlyFilesBesideProcesses = 1024
const firstBatch = 32
const maxBackendBatch = 384
/** The maximum number of small files in a batch. The whole batch is in memory. */
const maxBatch = 64
/** The maximum number of files in a batch for a backend that reads many files in one call. */
const maxBulkBatch = 128
const concurrentBackendBatches = 8
const concurrentBatches = 3

const fileCountOf = (batch: Batch): number =>
  batch.reduce((sum, file) => sum + (isSettled(file) ? (file.fileCount ?? 1) : 1), 0)

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
  /** The number of files that `files` stands for. */
  let waiting = 0
  let isFirst = true
  let end: Effect.Effect<undefined, Fault> | undefined
  const take = (): Batch => {
    const count = isFirst && files[0]!.path === after?.path ? 1 : size
    isFirst = false
    size = Math.min(size * 2, largest)
    const batch = files.slice(0, count)
    files = files.slice(count)
    waiting -= fileCountOf(batch)
    return batch
  }
  const more: Effect.Effect<Batch | undefined, Fault> = Effect.suspend(() => {
    if (waiting >= size || (end !== undefined && files.length > 0)) return Effect.succeed(take())
    if (end !== undefined) return end
    return Effect.flatMap(Effect.result(next), (some) => {
      if (Result.isFailure(some)) end = Effect.fail(some.failure)
      else if (some.success === undefined) end = Effect.succeed(undefined)
      else {
        files = files.concat(some.success)
        waiting += fileCountOf(some.success)
      }
      return more
    })
  })
  return more
}

const filesOf = (batch: Batch): Array<DirectoryFiles<Directory>> => {
  const out: Array<{ readonly visit: Directory; readonly children: Array<Child> }> = []
  for (const file of batch) {
    if (isSettled(file) || file.child.kind !== "file") continue
    const { child, directory } = file
    const last = out[out.length - 1]
    if (last?.visit === directory) last.children.push(child)
    else out.push({ visit: directory, children: [child] })
  }
  return out
}

const unreadable: Searched = { found: "unreadable" }

const isFile = (file: Candidate | Outcome): file is Candidate => !isSettled(file) && file.child.kind === "file"

const searchInBackend = (
  search: NonNullable<Explorer_<Directory>["search"]>,
  self: SearchTask,
  batch: Batch
): Effect.Effect<BatchOutcomes, Fault> => {
  const files = batch.filter(isFile)
  const from = files.length === 0 ? 1 : firstLine(self.plan, files[0]!.path)
  const found = search(self.query, filesOf(batch), from, (file) => files[file]!.path)
  return Effect.flatMap(found, (answer): Effect.Effect<BatchOutcomes, Fault> => {
    if ("_tag" in answer) {
      const failedFile = files[answer.index]!
      const before = Effect.suspend(() => searchInBackend(search, self, batch.slice(0, batch.indexOf(failedFile))))
      return recoverBatch(self, failedFile.path, answer, before)
    }
    let next = 0
    return Effect.succeed(
      batch.map((file) => {
        if (isSettled(file)) return file
        const searched = isFile(file) ? answer[next++]! : unreadable
        return outcomeOf(file, searched)
      })
    )
  })
}

/** Searches file contents that the backend provides without a copy. */
const searchLent = (
  lend: NonNullable<Explorer_<Directory>["lend"]>,
  self: SearchTask,
  batch: Batch
): Effect.Effect<BatchOutcomes, Fault> =>
  Effect.flatMap(lend(filesOf(batch)), (contents) => {
    let next = 0
    const loaded = batch.map((file): Loaded | Outcome => {
      if (isSettled(file)) return file
      const content = isFile(file) ? contents[next++]! : "unreadable"
      if (typeof content === "string") return new FoundFile(file, { found: content })
      return content.length > self.query.maxBytes ? new FoundFile(file, { found: "tooLarge" }) : new Loaded(file, content)
    })
    return matchAll(self, loaded)
  })

const queryOf = (self: GrepPlan, limit: number): Query => ({
  pattern: self.question,
  needles: self.needles,
  maxMatches: limit,
  maxBytes: maxFileBytes(self),
  includesText: self.before + self.contextAfter > 0,
  patternBudgetMillis: self.question.literal === undefined ? self.limits.patternBudget : Number.POSITIVE_INFINITY
})

const emitUntilFault = (all: Stream.Stream<BatchOutcomes, Fault>): Stream.Stream<ReadonlyArray<Outcome>, Fault> =>
  Stream.flatMap(all, (answer) =>
    isPartial(answer) ? Stream.concat(Stream.succeed(answer.done), Stream.fail(answer.fault)) : Stream.succeed(answer)
  )

const untilFault = (
  next: Effect.Effect<BatchOutcomes | undefined, Fault>
): Effect.Effect<ReadonlyArray<Outcome> | undefined, Fault> => {
  let failed: Effect.Effect<never, Fault> | undefined
  return Effect.suspend(
    () =>
      failed ??
      Effect.map(next, (answer) => {
        if (answer === undefined || !isPartial(answer)) return answer
        failed = Effect.fail(answer.fault)
        return answer.done
      })
  )
}

/** Streams the outcomes in order, including skipped entries, with at most `limit` matching lines per file. */
export const outcomes = (
  port: Backend,
  base: Base,
  self: GrepPlan,
  limit: number
): Stream.Stream<ReadonlyArray<Outcome>, Fault> => {
  const query = queryOf(self, limit)
  const task: SearchTask = {
    port,
    base,
    plan: self,
    query,
    hasExpensiveFile: false,
    resumedAt: performance.now()
  }
  if (base.kind !== "directory")
    return emitUntilFault(Stream.fromEffect(Missing.searchSingle(base, port.stat(base.at), searched(task, [base]))))
  // A search process does not know the line at which a search continues in its first file.
  const walkPlan = self.after === undefined ? self.walk : { ...self.walk, isPortable: false }
  const fold = Explorer.foldOf(port)
  const first = self.after && fold(self.after.path)
  return Stream.unwrap(
    Effect.flatMap(Explorer.make(port, true), (explorer) => {
      const { lend, search } = explorer
      const holds = search !== undefined
      const walker = new Walker<Candidate | Outcome>(port, explorer, walkPlan, base, candidates, holds, {
        query: task.query,
        makeFile: (path) => new ProcessedFile(path),
        makeWithoutMatch: (fileCount) => ({ ...noMatches, fileCount })
      })
      const done = (file: Candidate | Outcome): void => {
        if (holds && !isSettled(file)) walker.releaseFiles(file.directory, 1)
      }
      const isWanted = (file: Candidate | Outcome | SkippedEntry): boolean => {
        if (first === undefined || file instanceof SkippedEntry || FsPath.compare(fold(file.path), first) >= 0) return true
        done(file)
        return false
      }
      const next = Effect.map(walker.next, (files) =>
        files?.filter(isWanted).map((file) => (file instanceof SkippedEntry ? skippedOutcome(file) : file))
      )
      const searchAgain = (files: ReadonlyArray<Candidate>): Effect.Effect<BatchOutcomes, Fault> =>
        search !== undefined
          ? // The backend may still hold the listed directory, even if its path now names another one.
            searchInBackend(search, task, files)
          : lend !== undefined
            ? searchLent(lend, task, files)
            : searched(task, files)
      let seen = 0
      const run = (batch: Batch): Effect.Effect<BatchOutcomes, Fault> => {
        if (batch.every(isSettled)) return Effect.succeed(batch as ReadonlyArray<Outcome>)
        const isEarly = seen < (explorer.trees === undefined ? earlyFiles : earlyFilesBesideProcesses)
        seen += batch.length
        const answer =
          search !== undefined && !isEarly
            ? searchInBackend(search, task, batch)
            : lend !== undefined
              ? searchLent(lend, task, batch)
              : searched(task, batch, search)
        const seeking: Missing.MissingFileSearch<Candidate, Outcome> = {
          search: searchAgain,
          determineFate: ({ child, directory }) => walker.became(directory, keyOf(child), "file"),
          fileAt: (index) => batch[index] as Candidate
        }
        const settled = Effect.flatMap(answer, (answer) => Missing.retryMissing(seeking, answer))
        return holds ? Effect.tap(settled, () => Effect.sync(() => batch.forEach(done))) : settled
      }
      const largest =
        holds || lend !== undefined ? maxBackendBatch : performing(port, "ReadMany") === undefined ? maxBatch : maxBulkBatch
      // Unpack one batch after another, because the matches of many batches would need much memory.
      const unpackedBatches = Effect.flatMap(batches(self, next, largest), (batch) =>
        batch === undefined ? Effect.succeed(batch) : Eager.map(unpackMatches(task, batch), () => batch)
      )
      const answers = runInOrder(unpackedBatches, run, holds ? concurrentBackendBatches : concurrentBatches)
      return Effect.map(answers, (answers) => Explorer.streamBatches(Effect.map(untilFault(answers), (done) => done && [done])))
    })
  )
}
