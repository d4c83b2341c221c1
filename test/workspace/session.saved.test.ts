import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import { join } from "node:path"
import { FilesystemSnapshot } from "../../src/history/Snapshots.ts"
import * as Slice from "../../src/model/Slice.ts"
import * as Session from "../../src/workspace/Session.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { onDisk as picture, Trigger, victimOf } from "../interruption/harness.ts"
import { isSoak } from "../runs.ts"

const Notes = Slice.make("Notes", Schema.String)
const Log = Slice.make("Log", Schema.Struct({ n: Schema.Int, text: Schema.String }), { policy: "log" })
const Plan = Slice.make("Plan", Schema.String, { initial: ["think"], reduce: Slice.replaceLatest })
const slices = [Notes, Log, Plan]

/** The content of a file in the documented format. */
const example = {
  schemaVersion: 1,
  sessionId: "mine",
  createdAt: "1970-01-01T01:00:00.000Z",
  tags: { session_id: "abc" },
  slices: [
    { name: "Log", policy: "log", items: [{ n: 1, text: "a\nb" }] },
    { name: "Notes", policy: "state", items: ["one", "two"] }
  ]
}

const ground = Effect.map(fastDirectory, (top) => ({ top, path: join(top, "session.json") }))

const loading = (path: string, text: string | Uint8Array) =>
  Effect.suspend(() => {
    Fs.writeFileSync(path, text)
    return Session.load(path, { slices })
  })

const refused = (path: string, text: string | Uint8Array) => Effect.flip(loading(path, text))

describe("a saved session", () => {
  it.effect("is JSON in the documented format, without other files beside it", () =>
    Effect.gen(function* () {
      const { path, top } = yield* ground
      yield* TestClock.adjust("1 hour")
      const session = yield* Session.make({ id: "mine", tags: { session_id: "abc" } })
      yield* session.install(Slice.make("Empty", Schema.String))
      yield* session.dispatch(Log, { n: 1, text: "a\nb" })
      yield* session.set(Notes, "one", "two")
      yield* session.save(path)
      const text = Fs.readFileSync(path, "utf8")
      assert.deepStrictEqual(JSON.parse(text), example)
      assert.strictEqual(text.indexOf("\n"), text.length - 1)
      const child = yield* session.child({ id: "child" })
      yield* child.save(join(top, "deep/er/child.json"))
      assert.deepStrictEqual(JSON.parse(Fs.readFileSync(join(top, "deep/er/child.json"), "utf8")), {
        schemaVersion: 1,
        sessionId: "child",
        parentId: "mine",
        createdAt: "1970-01-01T01:00:00.000Z",
        tags: {},
        slices: []
      })
      assert.deepStrictEqual(Fs.readdirSync(top, { recursive: true }).sort(), [
        "deep",
        "deep/er",
        "deep/er/child.json",
        "session.json"
      ])
    })
  )

  it.effect("may be written by any program in the documented format", () =>
    Effect.gen(function* () {
      const { path } = yield* ground
      const session = yield* loading(path, JSON.stringify({ ...example, comment: "unknown here" }, undefined, 2))
      assert.deepStrictEqual(
        [session.id, session.tags, session.createdAt.epochMilliseconds, session.parent],
        ["mine", { session_id: "abc" }, 3_600_000, undefined]
      )
      assert.deepStrictEqual(yield* session.all(Notes), ["one", "two"])
      assert.deepStrictEqual(yield* session.all(Log), [{ n: 1, text: "a\nb" }])
      assert.deepStrictEqual(yield* session.all(Plan), ["think"])
      assert.deepStrictEqual(yield* session.snapshots, [])
      yield* session.reset
      assert.deepStrictEqual(yield* session.all(Notes), [])
    })
  )

  it.effect("distinguishes an emptied slice from a slice with its initial items", () =>
    Effect.gen(function* () {
      const { path } = yield* ground
      const session = yield* Session.make({ slices })
      yield* session.set(Plan)
      yield* session.save(path)
      const emptied = yield* Session.load(path, { slices })
      assert.deepStrictEqual(yield* emptied.all(Plan), [])
    })
  )

  it.effect("may contain filesystem snapshots as items", () =>
    Effect.gen(function* () {
      const { path } = yield* ground
      const Taken = Slice.make("FilesystemSnapshot", FilesystemSnapshot)
      const session = yield* Session.make({ slices: [Taken] })
      const snapshot = new FilesystemSnapshot({
        snapshotId: "s",
        createdAt: session.createdAt,
        commitRef: "mem-1",
        rootPath: "/",
        tag: "pre"
      })
      yield* session.dispatch(Taken, snapshot)
      yield* session.save(path)
      const [back] = yield* (yield* Session.load(path, { slices: [Taken] })).all(Taken)
      assert.deepStrictEqual(back, snapshot)
      assert.instanceOf(back, FilesystemSnapshot)
    })
  )

  const Anything = Schema.Struct({
    bytes: Schema.Uint8Array,
    at: Schema.optionalKey(Schema.DateTimeUtc),
    big: Schema.BigInt,
    number: Schema.Number,
    text: Schema.NullOr(Schema.String),
    map: Schema.Record(Schema.String, Schema.Array(Schema.Boolean)),
    option: Schema.Option(Schema.String)
  })
  const Things = Slice.make("Things", Anything)
  const Words = Slice.make("Words and 🦊", Schema.String, { policy: "log" })
  const Defaults = Slice.make("Defaults", Schema.Int, { initial: [1, 2] })
  /**
   * Replaces the characters in property names that JSON escapes. Node 24 reads a name with such a character as "\\" if it has
   * already read an object with that name (nodejs/node#63785, an open bug of V8). Values may contain any character.
   */
  const named = <A>(record: Readonly<Record<string, A>>): Readonly<Record<string, A>> =>
    // oxlint-disable-next-line no-control-regex
    Object.fromEntries(
      Object.entries(record).map(([name, value]) => [name.replaceAll(/[\u0000-\u001f"\\\ud800-\udfff]/g, "_"), value])
    )

  it.effect.prop(
    "is equal to the original after it is loaded",
    {
      things: Schema.Array(Anything),
      words: Schema.Array(Schema.String),
      defaults: Schema.UndefinedOr(Schema.Array(Schema.Int)),
      tags: Schema.Record(Schema.String, Schema.String)
    },
    ({ defaults, things, words, ...drawn }) =>
      Effect.gen(function* () {
        const { path } = yield* ground
        const tags = named(drawn.tags)
        // JSON has no negative zero.
        const plain = (number: number): number => (number === 0 ? 0 : number)
        const known = things.map((thing) => ({ ...thing, number: plain(thing.number), map: named(thing.map) }))
        const numbers = defaults?.map(plain)
        const session = yield* Session.make({ slices: [Things], tags })
        yield* session.set(Things, ...known)
        yield* session.set(Words, ...words)
        if (numbers !== undefined) yield* session.set(Defaults, ...numbers)
        yield* session.save(path)
        const back = yield* Session.load(path, { slices: [Defaults, Words, Things] })
        assert.deepStrictEqual([back.id, back.tags, back.createdAt], [session.id, session.tags, session.createdAt])
        assert.deepStrictEqual(yield* back.all(Things), known)
        assert.deepStrictEqual(yield* back.all(Words), words)
        assert.deepStrictEqual(yield* back.all(Defaults), numbers ?? [1, 2])
        yield* back.save(`${path}.again`)
        const again = yield* Session.load(`${path}.again`, { slices: [Defaults, Words, Things] })
        assert.deepStrictEqual(yield* again.all(Things), known)
      }).pipe(Effect.scoped),
    { arbitrary: { runs: isSoak ? 5000 : 60 } }
  )
})

describe("a file is refused as a saved session", () => {
  const corrupt: ReadonlyArray<readonly [what: string, text: string | Uint8Array, says?: RegExp]> = [
    ["empty", ""],
    ["not JSON", "hello"],
    ["truncated", JSON.stringify(example).slice(0, -5)],
    ["two JSON texts", `${JSON.stringify(example)}\n${JSON.stringify(example)}`],
    ["NUL bytes", Buffer.alloc(1000)],
    ["not UTF-8", Buffer.concat([Buffer.from('{"schemaVersion":1,"x":"'), Buffer.from([0xff]), Buffer.from('"}')])],
    ["null", "null"],
    ["an array", "[]"],
    ["without a version", JSON.stringify({ ...example, schemaVersion: undefined })],
    ["of version 0", JSON.stringify({ ...example, schemaVersion: 0 })],
    ["of a version in text", JSON.stringify({ ...example, schemaVersion: "2" })],
    ["without slices", JSON.stringify({ ...example, slices: undefined })],
    ["with an invalid time", JSON.stringify({ ...example, createdAt: "yesterday" }), /createdAt/],
    ["with tags that are not strings", JSON.stringify({ ...example, tags: { a: 1 } }), /tags.*a/],
    ["with an id that leads out of the directory", JSON.stringify({ ...example, sessionId: "../x" }), /"\.\.\/x"/],
    ["with a parent whose id leads out of the directory", JSON.stringify({ ...example, parentId: ".." }), /"\.\."/],
    [
      "with an item that violates its schema",
      JSON.stringify({
        ...example,
        slices: [
          {
            name: "Log",
            policy: "log",
            items: [
              { n: 1, text: "x" },
              { n: 1.5, text: "x" }
            ]
          }
        ]
      }),
      /"Log".*\[1\]\["n"\]/
    ],
    ["with a slice twice", JSON.stringify({ ...example, slices: [example.slices[0], example.slices[0]] }), /"Log".*twice/],
    ["with an invalid policy", JSON.stringify({ ...example, slices: [{ ...example.slices[0], policy: "both" }] })],
    ["nested beyond the limit", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`],
    [
      "with items that are nested beyond the limit",
      JSON.stringify({ ...example, slices: [] }).replace('"slices":[]', `"slices":${"[".repeat(200_000)}${"]".repeat(200_000)}`)
    ]
  ]
  for (const [what, text, says] of corrupt) {
    it.effect(`as corrupt: ${what}`, () =>
      Effect.gen(function* () {
        const { path } = yield* ground
        const error = yield* refused(path, text)
        assert.deepStrictEqual([error._tag, error.reason, error.operation], ["SessionError", "corrupt", "Session.load"])
        if (says !== undefined) assert.match(error.message, says)
        assert.isBelow(error.message.length, 700)
      })
    )
  }

  it.effect("as corrupt: with items that are nested more deeply than the limit for their schema", () =>
    Effect.gen(function* () {
      interface Tree {
        readonly children: ReadonlyArray<Tree>
      }
      const Tree: Schema.Codec<Tree> = Schema.Struct({ children: Schema.Array(Schema.suspend(() => Tree)) })
      const Trees = Slice.make("Trees", Tree)
      const { path } = yield* ground
      const [depth, open, close] = [100_000, '{"children":[', "]}"]
      const item = `${open.repeat(depth)}${close.repeat(depth)}`
      Fs.writeFileSync(
        path,
        JSON.stringify({ ...example, slices: [{ name: "Trees", policy: "state", items: [0] }] }).replace("[0]", `[${item}]`)
      )
      const error = yield* Effect.flip(Session.load(path, { slices: [Trees] }))
      assert.strictEqual(error.reason, "corrupt")
    })
  )

  it.effect("with unknown slices, which the error names, or with a newer version, which is checked first", () =>
    Effect.gen(function* () {
      const { path } = yield* ground
      const strange = { ...example, slices: [...example.slices, { name: "Strange", policy: "state", items: [1] }] }
      const error = yield* refused(path, JSON.stringify(strange))
      assert.strictEqual(error.reason, "unknownSlice")
      assert.include(error.message, '"Strange"')
      assert.notInclude(error.message, "Notes")
      const newer = yield* refused(path, JSON.stringify({ schemaVersion: 2, everything: "else" }))
      assert.strictEqual(newer.reason, "version")
      assert.match(newer.message, /2.*1/)
    })
  )

  it.effect("when two of the given slices have the same name", () =>
    Effect.gen(function* () {
      const { path } = yield* ground
      Fs.writeFileSync(path, JSON.stringify(example))
      const error = yield* Effect.flip(Session.load(path, { slices: [Notes, Slice.make("Notes", Schema.Int), Log] }))
      assert.strictEqual(error.reason, "duplicateSlice")
    })
  )

  it.effect("when it is missing, a directory, or larger than the limit", () =>
    Effect.gen(function* () {
      const { path, top } = yield* ground
      for (const other of [path, top, join(top, "no/where"), "a\0b"]) {
        const error = yield* Effect.flip(Session.load(other, { slices }))
        assert.strictEqual(error.reason, "io", other)
      }
      Fs.writeFileSync(path, "")
      Fs.truncateSync(path, 300 * 1024 * 1024)
      assert.strictEqual((yield* Effect.flip(Session.load(path, { slices }))).reason, "corrupt")
    })
  )
})

describe("saving a session", () => {
  it.effect("fails for an item that violates its schema, and keeps the old file", () =>
    Effect.gen(function* () {
      const { path, top } = yield* ground
      const session = yield* Session.make({ slices })
      yield* session.set(Notes, "old")
      yield* session.save(path)
      const before = Fs.readFileSync(path, "utf8")
      yield* session.set(Notes, "fine", 7 as unknown as string)
      const error = yield* Effect.flip(session.save(path))
      assert.strictEqual(error.reason, "corrupt")
      assert.match(error.message, /"Notes".*\[1\]/)
      const Odd = Slice.make("Odd", Schema.Unknown)
      yield* session.set(Notes, "fine")
      yield* session.set(Odd, () => 1)
      assert.strictEqual((yield* Effect.flip(session.save(path))).reason, "corrupt")
      assert.strictEqual(Fs.readFileSync(path, "utf8"), before)
      assert.deepStrictEqual(Fs.readdirSync(top), ["session.json"])
    })
  )

  it.effect("fails for an impossible path, and creates nothing", () =>
    Effect.gen(function* () {
      const { path, top } = yield* ground
      const session = yield* Session.make()
      Fs.writeFileSync(path, "a file")
      for (const other of [top, join(path, "below"), join(top, "x".repeat(300)), "a\0b"]) {
        const error = yield* Effect.flip(session.save(other))
        assert.strictEqual(error.reason, "io", other)
      }
      assert.deepStrictEqual(Fs.readdirSync(top), ["session.json"])
    })
  )

  it.live("that is interrupted at any step leaves the old file or the new file", () =>
    Effect.gen(function* () {
      const outcomes = new Set<string>()
      for (const moment of ["step", "call", "called"] as const) {
        const every = moment === "step" && !isSoak ? 7 : 1
        for (let nth = 1, fired = true; fired; nth += every) {
          fired = yield* Effect.scoped(
            Effect.gen(function* () {
              const { path, top } = yield* ground
              const session = yield* Session.make({ slices })
              yield* session.set(Notes, "old")
              yield* session.save(path)
              yield* session.set(Notes, "new")
              const trigger = new Trigger(moment, nth)
              const exit = yield* victimOf(trigger, session.save(path))
              const notes = yield* (yield* Session.load(path, { slices })).all(Notes)
              assert.include(["old", "new"], notes[0])
              if (Exit.isSuccess(exit)) assert.strictEqual(notes[0], "new")
              outcomes.add(notes[0]!)
              assert.deepStrictEqual(Object.keys(picture(top)), ["session.json"])
              return trigger.hasFired
            })
          )
        }
      }
      assert.strictEqual(outcomes.size, 2)
    })
  )
})
