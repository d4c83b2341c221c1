/**
 * Collects garbage in a store: removes unreachable objects, and merges packs if there are too many.
 *
 * The garbage collection replaces a few packs at a time, so only these packs are on the disk twice. A file is deleted only
 * after its replacement is on the disk, so a crash loses no object.
 *
 * An object may be in use before a reference reaches it. So objects are removed only if no process has a `holder` lock of
 * the store (see turns.ts), and no reference was added after the reachable objects were marked. New holders wait during the
 * removal.
 */
import * as Effect from "effect/Effect"
import { syncDirectoryNow } from "../../runtime/host.ts"
import { Fs, join, randomBytes } from "../../runtime/node.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { isId } from "./objects.ts"
import { failureOf, type Running } from "./process.ts"
import * as Packs from "./packIndex.ts"
import type { Pack } from "./packIndex.ts"
import { attempt, forgottenFile, type Store } from "./store.ts"
import * as Turns from "./turns.ts"

export interface Options {
  /** The largest number of packs that are not merged. @default 50 */
  readonly maxPacks?: number | undefined
  /** The largest unreachable part of a pack that is tolerated, from 0 to 1. @default 0.3 */
  readonly maxWaste?: number | undefined
}

interface CollectResult {
  /**
   * The result. `busy`: another garbage collection is running, so this call did nothing. `held`: unreachable objects may
   * remain, because the store was held or a reference was added.
   */
  readonly outcome: "done" | "busy" | "held"
  readonly freedBytes: number
}

const defaults = { maxPacks: 50, maxWaste: 0.3 }

const [forgottenThreshold, looseRefThreshold] = [16, 200] as const

/**
 * The limit, in bytes, on the packs that one job rewrites. A merge of too many packs may rewrite a quarter of all bytes, if
 * that is more. A job always takes one pack, even a larger one.
 */
const minBatchBytes = 64 * 2 ** 20

/** The age in milliseconds after which an unchanged temporary file, lock or incomplete pack is a leftover. */
const leftoverAgeMillis = 3_600_000

const lstatIfPresent = (path: string): Fs.Stats | undefined => Fs.lstatSync(path, { throwIfNoEntry: false })

const removeQuietly = (path: string): void => Fs.rmSync(path, { force: true, recursive: true })

const workDirectory = (directory: string): string => join(directory, "packing")

const countLooseRefs = (directory: string): number => {
  const path = join(directory, "refs", "snapshots")
  return lstatIfPresent(path) === undefined ? 0 : Fs.readdirSync(path).length
}

const countForgotten = (directory: string): number => lstatIfPresent(forgottenFile(directory))?.size ?? 0

/** Tests whether a garbage collection is worthwhile. Only lists two directories and reads the size of a file. */
export const needsCollecting = (store: Store, options: Options = {}): Effect.Effect<boolean, StoreFault> =>
  attempt(
    store.directory,
    () =>
      Packs.listPacks(store.packDirectory).length > (options.maxPacks ?? defaults.maxPacks) ||
      countForgotten(store.directory) >= forgottenThreshold ||
      countLooseRefs(store.directory) > looseRefThreshold
  )

interface CollectionRun {
  readonly store: Store
  readonly ownLock: Turns.StoreLock
  readonly tips: ReadonlySet<string>
  readonly canPrune: boolean
  readonly maxPacks: number
  readonly maxWaste: number
}

/** Tests whether a path is old enough to be a leftover. `now` must come from the disk's clock. */
const isOld = (path: string, now: number): boolean => {
  const stats = lstatIfPresent(path)
  return stats !== undefined && now - stats.mtimeMs > leftoverAgeMillis
}

const filesBelow = (directory: string): ReadonlyArray<string> =>
  Fs.readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

const isLeftover = (packDirectory: string, name: string, now: number, isHeld: boolean): boolean => {
  const path = join(packDirectory, name)
  // Without a holder of the store, no pack writer of this library is running, so its files are leftovers.
  if (/^tmp_(?:pack|idx)_[0-9a-f]{16}/.test(name) && !isHeld) return true
  if (/^(?:tmp_|\.tmp-)/.test(name)) return isOld(path, now)
  const [, stem, ending] = /^(pack-[0-9a-z]+)\.(idx|pack|rev|bitmap|mtimes)$/.exec(name) ?? []
  if (stem === undefined) return false
  // An index without its pack is a leftover, because writers publish the pack first. Keep a recent pack without an index,
  // because its writer may still add the index.
  if (ending === "idx") return lstatIfPresent(join(packDirectory, `${stem}.pack`)) === undefined
  return lstatIfPresent(join(packDirectory, `${stem}.idx`)) === undefined && isOld(path, now)
}

const removeLeftovers = ({ directory, packDirectory }: Store, ownLock: Turns.StoreLock, isHeld: boolean): void => {
  removeQuietly(workDirectory(directory))
  const now = lstatIfPresent(ownLock.path)?.mtimeMs ?? 0
  for (const name of Fs.readdirSync(packDirectory)) {
    if (isLeftover(packDirectory, name, now, isHeld)) removeQuietly(join(packDirectory, name))
  }
  const locks = [...filesBelow(join(directory, "refs")), join(directory, "packed-refs.lock")]
  for (const path of locks) if (path.endsWith(".lock") && isOld(path, now)) removeQuietly(path)
  for (const name of Fs.readdirSync(directory)) {
    if (/^tmp_[0-9a-f]{18}$/.test(name) && isOld(join(directory, name), now)) removeQuietly(join(directory, name))
  }
}

/**
 * Removes leftovers while new holders wait, because the temporary pack of a new holder looks like a leftover. Returns whether
 * the store is held.
 */
const removeLeftoversExclusively = (store: Store, self: Turns.StoreLock): Effect.Effect<boolean, StoreFault> =>
  Effect.acquireUseRelease(
    attempt(store.directory, () => Turns.acquire(store.directory, "remover")),
    () =>
      attempt(store.directory, () => {
        const isHeld = Turns.isHeldByOther(store.directory, "holder", self)
        removeLeftovers(store, self, isHeld)
        return isHeld
      }),
    (ownLock) => Effect.sync(() => Turns.release(ownLock))
  )

const tipsOf = ({ git }: Store): Effect.Effect<ReadonlySet<string>, StoreFault> =>
  Effect.map(
    git.run(["for-each-ref", "--format=%(objectname)"]),
    ({ stdout }) => new Set(stdout.toString().split("\n").filter(isId))
  )

const lineSplitter = (visit: (line: Buffer) => void): ((bytes: Buffer) => void) => {
  let rest: Buffer | undefined
  return (bytes) => {
    const all = rest === undefined ? bytes : Buffer.concat([rest, bytes])
    let from = 0
    for (let at = all.indexOf(10); at !== -1; at = all.indexOf(10, from)) {
      visit(all.subarray(from, at))
      from = at + 1
    }
    rest = from === all.length ? undefined : all.subarray(from)
  }
}

const reachableArguments = ["rev-list", "--objects", "--stdin"]

const tipLines = (tips: ReadonlySet<string>): string => [...tips].join("\n")

const idIn = (line: Buffer): Buffer => Buffer.from(line.toString("latin1", 0, 40), "hex")

/** Marks all reachable objects. Fails if an object is missing, because the objects that it refers to are then unknown. */
const markAll = ({ store, tips }: CollectionRun, packs: ReadonlyArray<Pack>): Effect.Effect<void, StoreFault> =>
  tips.size === 0
    ? Effect.void
    : Effect.asVoid(
        store.git.run(reachableArguments, {
          input: tipLines(tips),
          onOutput: lineSplitter((line) => Packs.markReachable(packs, idIn(line)))
        })
      )

interface Job {
  readonly packs: ReadonlyArray<Pack>
  readonly isPruning: boolean
  readonly isUnreachable: boolean
}

const makeChooser = ({ packs }: Job, all: ReadonlyArray<Pack>) => {
  const others = all.filter((pack) => !packs.includes(pack))
  const isChosen = packs.map(({ count }) => new Uint8Array(count))
  let count = 0
  const choose = (id: Buffer): boolean => {
    if (others.some(({ find }) => find(id) !== -1)) return false
    for (const [i, { find }] of packs.entries()) {
      const at = find(id)
      if (at === -1) continue
      if (isChosen[i]![at] === 1) return false
      isChosen[i]![at] = 1
      count++
      return true
    }
    return false
  }
  return { choose, count: () => count }
}

type Chooser = ReturnType<typeof makeChooser>

/**
 * Yields the input of `git pack-objects`.
 *
 * Reachable objects come first, beginning with the newest. The input includes paths, because git uses paths to find similar
 * objects. Unreachable objects follow if the job keeps them.
 */
async function* listObjects(job: Job, { choose }: Chooser, lines: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chosen: Array<Buffer> = []
  const take = lineSplitter((line) => {
    if (choose(idIn(line))) chosen.push(Buffer.from(line), Buffer.from("\n"))
  })
  for await (const bytes of lines) {
    take(bytes)
    if (chosen.length > 0) yield Buffer.concat(chosen)
    chosen = []
  }
  if (job.isPruning) return
  for (const pack of job.packs) {
    for (let at = 0; at < pack.count; at++) {
      const id = pack.id(at)
      if (choose(Buffer.from(id, "hex"))) yield Buffer.from(`${id}\n`)
    }
  }
}

/** Yields the output of a process. Fails if the process failed, because the output may then be incomplete. */
async function* outputOf({ child, end }: Running): AsyncGenerator<Buffer> {
  yield* child.stdout
  if ((await end).code !== 0) throw new Error("git failed before it had listed all objects")
}

async function* noLines(): AsyncGenerator<Buffer> {}

const failWithReason = (running: Running | undefined, fault: StoreFault): Effect.Effect<never, StoreFault> =>
  running === undefined || (running.child.exitCode ?? 0) === 0
    ? Effect.fail(fault)
    : Effect.flatMap(
        Effect.promise(() => running.end),
        (end) => Effect.fail(failureOf("rev-list", end))
      )

const pack = (
  store: Store,
  place: string,
  list: string | AsyncIterable<Uint8Array>
): Effect.Effect<Pack | undefined, StoreFault> =>
  Effect.gen(function* () {
    const inside = join(place, "pack")
    yield* attempt(store.directory, () => Fs.mkdirSync(inside, { recursive: true, mode: 0o700 }))
    const args = ["pack-objects", "--quiet", "--delta-base-offset", "--non-empty", join(inside, "pack")]
    yield* store.git.run(args, { input: list, objects: place })
    const [made] = yield* Packs.read(inside)
    return made
  })

/** Packs the objects that the job keeps. Fails if git packed a different number of objects. */
const packKeptObjects = (
  work: CollectionRun,
  job: Job,
  all: ReadonlyArray<Pack>,
  place: string
): Effect.Effect<Pack | undefined, StoreFault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { store, tips } = work
      const running = tips.size === 0 ? undefined : yield* store.git.start(reachableArguments)
      running?.child.stdin.end(tipLines(tips))
      const chosen = makeChooser(job, all)
      const list = listObjects(job, chosen, running === undefined ? noLines() : outputOf(running))
      const made = yield* Effect.catch(pack(store, place, list), (fault) => failWithReason(running, fault))
      if ((made?.count ?? 0) === chosen.count()) return made
      return yield* Effect.fail(storeFault("io", `git packed ${made?.count ?? 0} objects instead of ${chosen.count()}`))
    })
  )

/** Moves the files of a pack into the store. The index is moved last, because git finds a pack by its index. */
const publishPack = (packDirectory: string, from: string): void => {
  const files = Fs.readdirSync(from).sort((a, b) => Number(a.endsWith(".idx")) - Number(b.endsWith(".idx")))
  for (const file of files) Fs.renameSync(join(from, file), join(packDirectory, file))
  syncDirectoryNow(packDirectory)
}

/** Removes a pack. The index is removed first, because git ignores a pack that has no index. */
const removePack = (packDirectory: string, { name }: Pack): void => {
  for (const ending of ["idx", "pack", "rev", "bitmap", "mtimes"]) {
    Fs.rmSync(join(packDirectory, `${name}.${ending}`), { force: true })
  }
}

/**
 * Calls `run` while new holders wait. Returns false and does not call `run` if the store is held, or if a reference was
 * added after `tips` was read.
 */
const runWithoutHolders = (
  { store, tips, ownLock: self }: CollectionRun,
  run: () => void
): Effect.Effect<boolean, StoreFault> =>
  Effect.acquireUseRelease(
    attempt(store.directory, () => Turns.acquire(store.directory, "remover")),
    () =>
      Effect.gen(function* () {
        if (yield* attempt(store.directory, () => Turns.isHeldByOther(store.directory, "holder", self))) return false
        for (const tip of yield* tipsOf(store)) if (!tips.has(tip)) return false
        yield* attempt(store.directory, run)
        return true
      }),
    (ownLock) =>
      Effect.andThen(
        Effect.sync(() => Turns.release(ownLock)),
        store.reader.restart
      )
  )

const runJob = (
  work: CollectionRun,
  job: Job,
  all: ReadonlyArray<Pack>
): Effect.Effect<ReadonlyArray<Pack> | undefined, StoreFault> =>
  Effect.gen(function* () {
    const { packDirectory } = work.store
    const place = join(workDirectory(work.store.directory), randomBytes(6).toString("hex"))
    const made = job.isUnreachable ? undefined : yield* packKeptObjects(work, job, all, place)
    const swapPacks = (): void => {
      if (made !== undefined) publishPack(packDirectory, join(place, "pack"))
      for (const old of job.packs) if (old.name !== made?.name) removePack(packDirectory, old)
    }
    const isDone = yield* Effect.uninterruptible(
      job.isPruning ? runWithoutHolders(work, swapPacks) : Effect.as(attempt(work.store.directory, swapPacks), true)
    )
    if (!isDone) return undefined
    if (job.isPruning) made?.reachableFlags.fill(1)
    const remaining = all.filter((pack) => !job.packs.includes(pack) && pack.name !== made?.name)
    return made === undefined ? remaining : bySize([...remaining, made])
  }).pipe(
    Effect.ensuring(Effect.ignore(attempt(work.store.directory, () => removeQuietly(workDirectory(work.store.directory)))))
  )

const bySize = (packs: ReadonlyArray<Pack>): ReadonlyArray<Pack> => packs.toSorted((a, b) => b.bytes - a.bytes)

/**
 * Returns the smallest packs, in order of size, up to the last pack that is less than twice as large as all smaller packs
 * together.
 *
 * As a result, each object is rewritten only a few times.
 */
const packsToMerge = (packs: ReadonlyArray<Pack>): ReadonlyArray<Pack> => {
  const sorted = packs.toReversed()
  let sum = 0
  let end = 0
  for (const [i, { bytes }] of sorted.entries()) {
    if (bytes < 2 * sum) end = i + 1
    sum += bytes
  }
  return sorted.slice(0, end)
}

const batchOf = (packs: ReadonlyArray<Pack>, maxBytes: number): ReadonlyArray<Pack> => {
  let size = 0
  const end = packs.findIndex(({ bytes }, i) => (size += bytes) > maxBytes && i > 0)
  return end === -1 ? packs : packs.slice(0, end)
}

const bytesIn = (packs: ReadonlyArray<Pack>): number => packs.reduce((sum, { bytes }) => sum + bytes, 0)

/**
 * Returns the next job, or `undefined` if nothing is left to do.
 *
 * The first job removes packs without reachable objects, because this needs no disk space. An object in two packs is marked in
 * only one of them, so a later job could make the other pack necessary.
 */
const nextJob = (work: CollectionRun, packs: ReadonlyArray<Pack>, canPrune: boolean): Job | undefined => {
  const dead = canPrune ? packs.filter(({ reachableFlags: isLive }) => !isLive.includes(1)) : []
  if (dead.length > 0) return { packs: dead, isPruning: true, isUnreachable: true }
  if (packs.length > work.maxPacks) {
    const excessPacks = packs.slice(Math.max(0, work.maxPacks - 1)).toReversed()
    const crowdedPacks = packsToMerge(packs)
    const batch = batchOf(
      crowdedPacks.length > excessPacks.length ? crowdedPacks : excessPacks,
      Math.max(minBatchBytes, bytesIn(packs) / 4)
    )
    if (batch.length > 1) return { packs: batch, isPruning: canPrune, isUnreachable: false }
  }
  if (!canPrune) return undefined
  const wasteful = packs.filter((pack) => pack.unreachableShare() > work.maxWaste).toReversed()
  return wasteful.length === 0 ? undefined : { packs: batchOf(wasteful, minBatchBytes), isPruning: true, isUnreachable: false }
}

/** Packs loose objects, which only git commands of users create. */
const packLoose = ({ store }: CollectionRun): Effect.Effect<void, StoreFault> =>
  Effect.gen(function* () {
    const objects = join(store.directory, "objects")
    const ids = yield* attempt(store.directory, () =>
      Fs.readdirSync(objects)
        .filter((name) => /^[0-9a-f]{2}$/.test(name))
        .flatMap((name) => Fs.readdirSync(join(objects, name)).map((rest) => name + rest))
        .filter(isId)
    )
    if (ids.length === 0) return
    const place = join(workDirectory(store.directory), "loose")
    yield* pack(store, place, `${ids.join("\n")}\n`)
    yield* attempt(store.directory, () => publishPack(store.packDirectory, join(place, "pack")))
    yield* store.git.run(["prune-packed", "--quiet"])
  })

const runCollection = (work: CollectionRun): Effect.Effect<CollectResult, StoreFault> =>
  Effect.gen(function* () {
    const { canPrune: isAllowed, store } = work
    const { directory, git, packDirectory } = store
    if ((yield* attempt(store.directory, () => countLooseRefs(directory))) > looseRefThreshold)
      yield* git.run(["pack-refs", "--all", "--prune"])
    yield* packLoose(work)
    const countedRemovals = yield* attempt(store.directory, () => countForgotten(directory))
    let packs = yield* Packs.read(packDirectory)
    const before = bytesIn(packs)
    let canPrune = isAllowed
    if (canPrune) yield* markAll(work, packs)
    for (let job = nextJob(work, packs, canPrune); job !== undefined; job = nextJob(work, packs, canPrune)) {
      const remaining: ReadonlyArray<Pack> | undefined = yield* runJob(work, job, packs)
      if (remaining === undefined) canPrune = false
      else packs = remaining
    }
    if (canPrune) yield* attempt(store.directory, () => subtractCounted(directory, countedRemovals))
    return { outcome: canPrune ? "done" : "held", freedBytes: before - bytesIn(packs) }
  })

/** Subtracts the counted removals of snapshots from the counter file. Later removals count for the next garbage collection. */
const subtractCounted = (directory: string, countedRemovals: number): void => {
  const path = forgottenFile(directory)
  const now = countForgotten(directory)
  if (now <= countedRemovals) Fs.rmSync(path, { force: true })
  else Fs.truncateSync(path, now - countedRemovals)
}

/**
 * Collects garbage in the store. An interruption leaves the store intact.
 *
 * If the store is not held, fails with "corrupt" if an object that a snapshot needs is missing. Unreachable objects then stay.
 */
export const collect = (store: Store, options: Options = {}): Effect.Effect<CollectResult, StoreFault> =>
  Effect.acquireUseRelease(
    attempt(store.directory, () => Turns.acquire(store.directory, "collector")),
    (ownLock) =>
      Effect.gen(function* () {
        if (yield* attempt(store.directory, () => Turns.isHeldByOther(store.directory, "collector", ownLock))) {
          return { outcome: "busy", freedBytes: 0 } as const
        }
        const isHeld = yield* removeLeftoversExclusively(store, ownLock)
        const tips = yield* tipsOf(store)
        return yield* runCollection({
          store,
          ownLock,
          tips,
          canPrune: !isHeld,
          maxPacks: options.maxPacks ?? defaults.maxPacks,
          maxWaste: options.maxWaste ?? defaults.maxWaste
        })
      }),
    (ownLock) =>
      Effect.andThen(
        Effect.sync(() => Turns.release(ownLock)),
        store.reader.restart
      )
  )
