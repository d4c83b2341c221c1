import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { Head, Operations } from "../../repository/HeadStore.ts"
import type { StoreError } from "../../repository/errors.ts"
import { equal, fails, holds } from "../expect.ts"
import { sharedLaw, type StoreLaw, storeLaw } from "./law.ts"

/** Returns a valid head. Heads with different sequences or authors differ. */
const headOf = (sequence: number, author = "ada", more: Partial<Head> = {}): Head => ({
  root: sequence.toString(16).padStart(64, "0"),
  sequence,
  author,
  message: `commit ${sequence}`,
  committedAt: DateTime.makeUnsafe(1_700_000_000_000 + (sequence % 1_000_000)),
  ...more
})

/** Returns a value that `equal` compares by each field. */
const plain = (head: Head | undefined) => head && { ...head, committedAt: DateTime.formatIso(head.committedAt) }

const expectHead = (heads: Operations, workspace: string, expected: Head | undefined) =>
  Effect.flatMap(heads.get(workspace), (found) =>
    equal(plain(found), plain(expected), `the head of ${JSON.stringify(workspace)}`)
  )

const expectSet = (heads: Operations, workspace: string, expected: Head | undefined, next: Head) =>
  Effect.flatMap(heads.compareAndSet(workspace, expected, next), (isSet) => holds(isSet, "compareAndSet returns true"))

const listed = (heads: Operations) => Effect.map(Stream.runCollect(heads.list), (names) => names.sort())

/** Valid names that a store may confuse, for example if it uses them as file names or ignores case. */
const unusualNames: ReadonlyArray<string> = [
  "a",
  "A",
  "a/b",
  "a//b",
  "/",
  "/a",
  "a/",
  ".",
  "..",
  "../../etc/passwd",
  "...",
  ".a",
  "a.",
  "a..",
  " ",
  " a",
  "a ",
  "CON",
  "nul.txt",
  "a%2Fb",
  "a%2fb",
  "%",
  '*?:<>|"\\',
  "a\\b",
  "'; DROP TABLE heads; --",
  "$1",
  "_",
  "-",
  "~",
  "=",
  "a=",
  ">",
  "*",
  "__proto__",
  "constructor",
  "é".normalize("NFC"),
  "é".normalize("NFD"),
  "ß",
  "ẞ",
  "SS",
  "İ",
  "ı",
  "K",
  "\u212a",
  "😀",
  "\u2028",
  "\u200b",
  "\ufeff",
  "\ufffd",
  "\uffff",
  "x".repeat(256),
  "X".repeat(256),
  `${"x".repeat(255)}y`,
  "ü".repeat(128),
  "😀".repeat(64)
]

const invalidNames: ReadonlyArray<string> = [
  "",
  "\u0000",
  "a\u0000",
  "a\nb",
  "\t",
  "\u007f",
  "\u0085",
  "\u009f",
  "\ud800",
  "a\udc00",
  "x".repeat(257),
  "ü".repeat(129),
  `${"😀".repeat(64)}x`
]

/** Stores the head with the next sequence, and retries while other callers are faster. Returns the stored head. */
const advance = (heads: Operations, workspace: string, author: string): Effect.Effect<Head, StoreError> =>
  Effect.gen(function* () {
    for (;;) {
      const before = yield* heads.get(workspace)
      const next = headOf((before?.sequence ?? 0) + 1, author)
      if (yield* heads.compareAndSet(workspace, before, next)) return next
    }
  })

/** Lets 32 callers replace one head at once. Exactly one must succeed, and its head must be stored. */
const race = (openings: ReadonlyArray<Operations>, workspace: string, expected: Head | undefined) =>
  Effect.gen(function* () {
    const racers = Array.from({ length: 32 }, (_, n) => headOf((expected?.sequence ?? 0) + 1, `racer ${n}`))
    const answers = yield* Effect.forEach(
      racers,
      (next, n) => openings[n % openings.length]!.compareAndSet(workspace, expected, next),
      { concurrency: "unbounded" }
    )
    const winners = racers.filter((_, n) => answers[n])
    yield* equal(winners.length, 1, "the number of callers that got true")
    for (const heads of openings) yield* expectHead(heads, workspace, winners[0])
    return winners[0]!
  })

/** Lets several callers advance one head at once, with retries. Checks that each sequence was stored exactly once. */
const raceToCount = (openings: ReadonlyArray<Operations>) =>
  Effect.gen(function* () {
    const stored = yield* Effect.forEach(
      Array.from({ length: 8 }, (_, n) => n),
      (n) => Effect.forEach(Array.from({ length: 5 }), () => advance(openings[n % openings.length]!, "counter", `writer ${n}`)),
      { concurrency: "unbounded" }
    )
    yield* equal(
      stored
        .flat()
        .map(({ sequence }) => sequence)
        .sort((a, b) => a - b),
      Array.from({ length: 40 }, (_, n) => n + 1)
    )
    yield* expectHead(
      openings[0]!,
      "counter",
      stored.flat().find(({ sequence }) => sequence === 40)
    )
  })

/** Forks a fiber that reads the changes up to the sequence `last`. Returns the fiber after its first head has arrived. */
const followUntil = (heads: Operations, workspace: string, last: number) =>
  Effect.gen(function* () {
    const started = yield* Latch.make(false)
    const fiber = yield* Effect.forkChild(
      heads.changes(workspace).pipe(
        Stream.tap(() => started.open),
        Stream.takeUntil(({ sequence }) => sequence === last),
        Stream.runCollect
      )
    )
    yield* Effect.raceFirst(started.await, Fiber.join(fiber))
    return fiber
  })

const expectIncreasing = (found: ReadonlyArray<Head>, first: number, last: number) =>
  Effect.gen(function* () {
    const sequences = found.map(({ sequence }) => sequence)
    yield* equal(sequences[0], first, "the first sequence")
    yield* equal(sequences.at(-1), last, "the last sequence")
    yield* holds(
      sequences.every((sequence, n) => n === 0 || sequence > sequences[n - 1]!),
      "increasing sequences",
      sequences
    )
  })

export const headLaws: ReadonlyArray<StoreLaw> = [
  storeLaw("an unknown workspace has no head", function* ({ heads }) {
    yield* expectHead(heads, "w", undefined)
    yield* equal(yield* listed(heads), [])
    yield* equal(yield* heads.compareAndSet("w", headOf(1), headOf(2)), false)
    yield* equal(yield* heads.delete("w", headOf(1)), false)
    yield* expectHead(heads, "w", undefined)
    yield* equal(yield* listed(heads), [])
  }),
  storeLaw("compareAndSet creates a workspace only once", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    yield* expectHead(heads, "w", headOf(1))
    yield* equal(yield* heads.compareAndSet("w", undefined, headOf(1, "bob")), false)
    yield* equal(yield* heads.compareAndSet("w", undefined, headOf(1)), false)
    yield* expectHead(heads, "w", headOf(1))
    yield* equal(yield* listed(heads), ["w"])
  }),
  storeLaw("compareAndSet replaces only the expected head, and compares each field", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    const others = [
      headOf(1, "bob"),
      headOf(1, "ada", { root: "f".repeat(64) }),
      headOf(1, "ada", { sequence: 2 }),
      headOf(1, "ada", { message: "" }),
      headOf(1, "ada", { committedAt: DateTime.makeUnsafe(0) })
    ]
    for (const other of others) {
      yield* equal(yield* heads.compareAndSet("w", other, headOf(2)), false)
      yield* expectHead(heads, "w", headOf(1))
    }
    yield* expectSet(heads, "w", headOf(1), headOf(2))
    yield* expectHead(heads, "w", headOf(2))
    yield* equal(yield* heads.compareAndSet("w", headOf(1), headOf(2, "bob")), false)
    yield* expectHead(heads, "w", headOf(2))
  }),
  storeLaw("compareAndSet accepts a head from get as the expected head", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    for (let sequence = 2; sequence < 20; sequence++) {
      yield* expectSet(heads, "w", yield* heads.get("w"), headOf(sequence))
    }
    yield* expectHead(heads, "w", headOf(19))
  }),
  storeLaw("exactly one of 32 concurrent callers with the same expected head gets true", function* ({ heads }) {
    const first = yield* race([heads], "w", undefined)
    yield* race([heads], "w", yield* race([heads], "w", first))
  }),
  storeLaw("concurrent callers that retry store every head exactly once", function* ({ heads }) {
    yield* raceToCount([heads])
  }),
  storeLaw("delete removes a workspace only if its head is the expected head", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    yield* expectSet(heads, "v", undefined, headOf(1))
    yield* equal(yield* heads.delete("w", headOf(1, "bob")), false)
    yield* equal(yield* heads.delete("w", headOf(2)), false)
    yield* expectHead(heads, "w", headOf(1))
    yield* equal(yield* heads.delete("w", headOf(1)), true)
    yield* expectHead(heads, "w", undefined)
    yield* expectHead(heads, "v", headOf(1))
    yield* equal(yield* listed(heads), ["v"])
    yield* equal(yield* heads.delete("w", headOf(1)), false)
    yield* equal(yield* heads.compareAndSet("w", headOf(1), headOf(2)), false)
    yield* expectSet(heads, "w", undefined, headOf(1, "bob"))
    yield* equal(yield* heads.delete("w", headOf(1)), false)
    yield* expectHead(heads, "w", headOf(1, "bob"))
  }),
  storeLaw("exactly one of several concurrent deletions and replacements succeeds", function* ({ heads }) {
    for (let n = 0; n < 8; n++) {
      yield* expectSet(heads, "w", undefined, headOf(1))
      const answers = yield* Effect.all(
        Array.from({ length: 6 }, (_, at) =>
          at % 2 === 0 ? heads.delete("w", headOf(1)) : heads.compareAndSet("w", headOf(1), headOf(2, `${at}`))
        ),
        { concurrency: "unbounded" }
      )
      yield* equal(answers.filter((answer) => answer).length, 1)
      const left = yield* heads.get("w")
      yield* equal(left?.author, answers.findIndex((answer) => answer) % 2 === 0 ? undefined : `${answers.indexOf(true)}`)
      if (left !== undefined) yield* equal(yield* heads.delete("w", left), true)
    }
  }),
  storeLaw("each field of a head is kept exactly", function* ({ heads }) {
    const texts = ["", " ", "é😀", "\u0000\u0001\n\r\t", "\"'\\${}%s?$1", "\ud800", "\u2028\ufeff", "x".repeat(20_000)]
    const all = [
      ...texts.map((text) => headOf(1, text, { message: text, root: text })),
      ...[1, 2 ** 31, Number.MAX_SAFE_INTEGER].map((sequence) => headOf(sequence)),
      ...[0, -1, 1, 999, 253_402_300_800_000, -62_167_219_200_001, 8.64e15].map((millis) =>
        headOf(1, "ada", { committedAt: DateTime.makeUnsafe(millis) })
      )
    ]
    for (const [n, head] of all.entries()) {
      yield* expectSet(heads, `w${n}`, undefined, head)
      yield* expectHead(heads, `w${n}`, head)
      yield* expectSet(heads, `w${n}`, head, headOf(2))
    }
  }),
  storeLaw("each valid name has its own head, and list returns the names", function* ({ heads }) {
    for (const [n, name] of unusualNames.entries()) yield* expectSet(heads, name, undefined, headOf(n + 1))
    for (const [n, name] of unusualNames.entries()) yield* expectHead(heads, name, headOf(n + 1))
    yield* equal(yield* listed(heads), [...unusualNames].sort())
    for (const [n, name] of unusualNames.entries()) yield* equal(yield* heads.delete(name, headOf(n + 1)), true, name)
    yield* equal(yield* listed(heads), [])
  }),
  storeLaw("every operation on an invalid name fails with invalid", function* ({ heads }) {
    for (const name of invalidNames) {
      yield* fails(heads.get(name), "StoreError", { reason: "invalid" })
      yield* fails(heads.compareAndSet(name, undefined, headOf(1)), "StoreError", { reason: "invalid" })
      yield* fails(heads.delete(name, headOf(1)), "StoreError", { reason: "invalid" })
      yield* fails(Stream.runHead(heads.changes(name)), "StoreError", { reason: "invalid" })
    }
    yield* equal(yield* listed(heads), [])
  }),
  storeLaw("compareAndSet with an invalid head fails with invalid and changes nothing", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    const invalid = [
      ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map((sequence) => headOf(1, "ada", { sequence })),
      headOf(2, "ada", { message: "x".repeat(65_536) }),
      headOf(2, "ü".repeat(40_000))
    ]
    for (const head of invalid) {
      yield* fails(heads.compareAndSet("w", headOf(1), head), "StoreError", { reason: "invalid" })
      yield* fails(heads.compareAndSet("v", undefined, head), "StoreError", { reason: "invalid" })
    }
    yield* expectHead(heads, "w", headOf(1))
    yield* equal(yield* listed(heads), ["w"])
  }),
  storeLaw("list returns each of many workspaces once", function* ({ count, heads }) {
    const names = Array.from({ length: Math.min(count, 1_200) }, (_, n) => `workspace ${n}`).sort()
    yield* Effect.forEach(names, (name) => expectSet(heads, name, undefined, headOf(1)), { concurrency: 16, discard: true })
    yield* equal(yield* listed(heads), names)
    yield* equal((yield* Stream.runCollect(Stream.take(heads.list, 3))).length, 3)
  }),
  storeLaw("changes returns the current head and then later heads, at least the last one", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    const fiber = yield* followUntil(heads, "w", 30)
    for (let sequence = 2; sequence <= 30; sequence++) {
      yield* expectSet(heads, "w", headOf(sequence - 1), headOf(sequence))
      yield* expectSet(heads, "other", sequence === 2 ? undefined : headOf(sequence - 1), headOf(sequence))
    }
    yield* expectIncreasing(yield* Fiber.join(fiber), 1, 30)
  }),
  storeLaw("changes never loses the last head, however slow the reader is", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    const gate = yield* Latch.make(false)
    const first = yield* Latch.make(false)
    const fiber = yield* Effect.forkChild(
      heads.changes("w").pipe(
        Stream.tap(() => Effect.andThen(first.open, gate.await)),
        Stream.takeUntil(({ sequence }) => sequence === 100),
        Stream.runCollect
      )
    )
    yield* Effect.raceFirst(first.await, Fiber.join(fiber))
    for (let sequence = 2; sequence <= 100; sequence++) yield* expectSet(heads, "w", headOf(sequence - 1), headOf(sequence))
    yield* gate.open
    yield* expectIncreasing(yield* Fiber.join(fiber), 1, 100)
  }),
  storeLaw("changes waits for a workspace that does not exist, and continues after its deletion", function* ({ heads }) {
    const fiber = yield* Effect.forkChild(Stream.runHead(heads.changes("w")), { startImmediately: true })
    yield* Effect.yieldNow
    yield* expectSet(heads, "w", undefined, headOf(1))
    const first = yield* Fiber.join(fiber)
    yield* equal(first._tag === "Some" ? first.value.sequence : 0, 1)
    const later = yield* followUntil(heads, "w", 7)
    yield* equal(yield* heads.delete("w", headOf(1)), true)
    yield* expectSet(heads, "w", undefined, headOf(7))
    const found = yield* Fiber.join(later)
    yield* equal(
      found.map(({ sequence }) => sequence),
      [1, 7]
    )
  }),
  storeLaw("many readers of changes each get the last head, and may stop at any time", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    for (let n = 0; n < 20; n++) yield* Stream.runHead(heads.changes("w"))
    const stopped = yield* followUntil(heads, "w", 5)
    const fibers = yield* Effect.forEach(Array.from({ length: 10 }), () => followUntil(heads, "w", 5))
    yield* Fiber.interrupt(stopped)
    for (let sequence = 2; sequence <= 5; sequence++) yield* expectSet(heads, "w", headOf(sequence - 1), headOf(sequence))
    for (const fiber of fibers) yield* expectIncreasing(yield* Fiber.join(fiber), 1, 5)
  }),
  storeLaw("an interrupted compareAndSet leaves the old head or the new head", function* ({ heads }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    for (let n = 0; n < 20; n++) {
      const before = (yield* heads.get("w"))!
      const next = headOf(before.sequence + 1, `interrupted ${n}`)
      const fiber = yield* Effect.forkChild(heads.compareAndSet("w", before, next), { startImmediately: true })
      for (let step = 0; step < n; step++) yield* n % 2 === 0 ? Effect.yieldNow : Effect.sleep("1 millis")
      yield* Fiber.interrupt(fiber)
      const after = yield* heads.get("w")
      yield* holds(after?.author === before.author || after?.author === next.author, "the old or the new head", plain(after))
      // The request of the interrupted call may still arrive, so this call may fail. If this call succeeds, its head must stay.
      if (yield* heads.compareAndSet("w", after, headOf(after!.sequence + 1))) {
        yield* expectHead(heads, "w", headOf(after!.sequence + 1))
      }
    }
  }),
  sharedLaw("reopened stores have all heads and see each other's changes", function* ({ heads, reopen }) {
    yield* expectSet(heads, "w", undefined, headOf(1))
    const other = (yield* reopen).heads
    yield* expectHead(other, "w", headOf(1))
    yield* expectSet(other, "w", headOf(1), headOf(2))
    yield* expectHead(heads, "w", headOf(2))
    yield* equal(yield* heads.compareAndSet("w", headOf(1), headOf(2, "bob")), false)
    const fiber = yield* followUntil(other, "w", 9)
    for (let sequence = 3; sequence <= 9; sequence++) yield* expectSet(heads, "w", headOf(sequence - 1), headOf(sequence))
    yield* expectIncreasing(yield* Fiber.join(fiber), 2, 9)
    yield* equal(yield* other.delete("w", headOf(9)), true)
    yield* equal(yield* listed(heads), [])
  }),
  sharedLaw("exactly one of 32 concurrent callers in two openings gets true", function* ({ heads, reopen }) {
    const openings = [heads, (yield* reopen).heads]
    const first = yield* race(openings, "w", undefined)
    yield* race(openings, "w", yield* race(openings, "w", first))
    yield* raceToCount(openings)
  })
]
