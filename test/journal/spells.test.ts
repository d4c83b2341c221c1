import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as Fs from "node:fs"
import { join } from "node:path"
import { DaemonError } from "../../src/journal/lifecycle.ts"
import { JournalError } from "../../src/journal/errors.ts"
import {
  FaultKind,
  FileContent,
  FileDeleted,
  FileFault,
  type FileSystemEntry,
  FileWritten,
  isEfferent
} from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Spells from "../../src/journal/Spells.ts"
import { Timeout } from "../../src/model/FsError.ts"
import { directory, entries, journals, kinds, until, whole } from "./spelling.ts"

const invocation = (correlationId: string, spell: Spells.SpellName, parameters: Schema.Json) =>
  new Spells.SpellInvocation({ correlationId, spell, parameters })

const reading = (correlationId: string, path = "a.txt") => invocation(correlationId, "read_file", { path })

const bytes = (text: string) => new TextEncoder().encode(text)

const content = (correlationId: string, text: string) =>
  new FileContent({ correlationId, content: bytes(text), totalSize: bytes(text).length, isPartial: false })

/** The requests to leaves, in order. */
const asked = Effect.flatMap(Journal.Journal, (journal) => Effect.map(entries(journal), (all) => all.filter(isEfferent)))

/** Waits for the request to a leaf that follows the first `after` requests. */
const nextAsked = (after = 0) =>
  Effect.flatMap(Journal.Journal, (journal) =>
    Effect.map(
      Stream.runCollect(
        Stream.take(
          Stream.filter(
            Stream.map(journal.tail(), ({ entry }) => entry),
            isEfferent
          ),
          after + 1
        )
      ),
      (all) => all[after]!
    )
  )

const reply = (entry: FileSystemEntry) => Effect.flatMap(Journal.Journal, (journal) => journal.append(entry))

const spellsOf = Effect.flatMap(Spells.SpellJournal, entries)

const answersOf = Effect.map(spellsOf, (all) => all.filter(({ _tag }) => _tag !== "SpellInvocation"))

/** Waits until `count` spells are answered. */
const answered = (count: number) =>
  Effect.flatMap(Spells.SpellJournal, (journal) =>
    Stream.runDrain(
      Stream.take(
        Stream.filter(journal.tail(), ({ entry }) => entry._tag !== "SpellInvocation"),
        count
      )
    )
  )

/** Runs an effect with a covenant of its own. */
const keeping = <A, E, R>(self: Effect.Effect<A, E, R>, options?: Spells.Options) =>
  Effect.provide(self, Layer.fresh(Spells.layer(options)))

describe("the entries of spells", () => {
  const codec = Schema.toCodecJson(Spells.SpellEntry)
  it.effect.prop("survive JSON", [Arbitrary.schema(Spells.SpellEntry)], ([entry]) =>
    Effect.sync(() => {
      const text = JSON.stringify(Schema.encodeSync(codec)(entry))
      const back = Schema.decodeUnknownSync(codec)(JSON.parse(text))
      assert.strictEqual(back._tag, entry._tag)
      assert.strictEqual(JSON.stringify(Schema.encodeSync(codec)(back)), text)
      assert.strictEqual(back.correlationId, entry.correlationId)
    })
  )

  it("have a JSON schema for their parameters and results", () => {
    for (const { parameters, result } of Object.values(Spells.definitions)) {
      for (const schema of [parameters, result]) {
        assert.doesNotThrow(() => Schema.toJsonSchemaDocument(schema as Schema.Codec<unknown>))
      }
    }
  })
})

describe("a spell", () => {
  const spells: ReadonlyArray<readonly [Spells.SpellName, Schema.Json]> = [
    ["read_file", { path: "a" }],
    ["write_file", { path: "a", content: "x" }],
    ["list_directory", { path: "a" }],
    ["delete_file", { path: "a" }],
    ["edit_file", { path: "a", old_string: "x", new_string: "y" }]
  ]
  const cases = spells.flatMap(([spell, parameters]) =>
    FaultKind.literals
      .filter((kind) => spell !== "list_directory" || kind !== "NotFound")
      .map((kind) => [spell, kind, parameters] as const)
  )
  it.effect.each(cases)("named %s fails with the fault %s if its leaf does", ([spell, faultKind, parameters]) =>
    Effect.gen(function* () {
      const casting = yield* Effect.forkChild(Spells.cast(invocation("id", spell, parameters)))
      const { correlationId } = yield* nextAsked()
      yield* reply(new FileFault({ correlationId, faultKind, path: "a", message: "as the leaf says" }))
      assert.deepStrictEqual(
        yield* Fiber.join(casting),
        new Spells.SpellFault({ correlationId: "id", spell, faultKind, path: "a", message: "as the leaf says" })
      )
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("fails if the answer of the leaf is of the wrong kind", () =>
    Effect.gen(function* () {
      const casting = yield* Effect.forkChild(Spells.cast(reading("id")))
      const { correlationId } = yield* nextAsked()
      yield* reply(new FileDeleted({ correlationId, path: "a.txt", deletedCount: 1 }))
      assert.deepInclude(yield* Fiber.join(casting), { _tag: "SpellFault", faultKind: "IoError" })
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("fails if its content is lost, after which the covenant continues", () =>
    Effect.gen(function* () {
      const casting = yield* Effect.forkChild(Spells.cast(reading("1")))
      const first = yield* nextAsked()
      yield* reply(
        new FileContent({
          correlationId: first.correlationId,
          content: { sha256: "0".repeat(64), size: 5 },
          totalSize: 5,
          isPartial: false
        })
      )
      assert.deepInclude(yield* Fiber.join(casting), { _tag: "SpellFault", faultKind: "IoError" })
      const again = yield* Effect.forkChild(Spells.cast(reading("2")))
      yield* reply(content((yield* nextAsked(1)).correlationId, "there"))
      assert.deepInclude(yield* Fiber.join(again), { _tag: "SpellResult", correlationId: "2" })
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("with a used id is not executed again, and gets the first answer", () =>
    Effect.gen(function* () {
      const both = yield* Effect.forEach(["a.txt", "a.txt"], (path) => Effect.forkChild(Spells.cast(reading("id", path))))
      const { correlationId } = yield* nextAsked()
      const journal = yield* Spells.SpellJournal
      yield* journal.append(reading("id", "b.txt"))
      yield* Spells.cast(new Spells.SpellInvocation({ correlationId: "other", spell: "none", parameters: null }))
      yield* reply(content(correlationId, "text"))
      const [one, two] = yield* Effect.forEach(both, Fiber.join)
      assert.deepStrictEqual(one, two)
      // A different spell with the same id gets the first answer too.
      assert.deepStrictEqual(yield* Spells.cast(invocation("id", "delete_file", { path: "a.txt" })), one)
      yield* journal.append(reading("id"))
      yield* Spells.cast(new Spells.SpellInvocation({ correlationId: "last", spell: "none", parameters: null }))
      assert.strictEqual((yield* asked).length, 1)
      assert.strictEqual((yield* answersOf).length, 3)
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("without an answer fails with Timeout, and a later call gets the late answer", () =>
    Effect.gen(function* () {
      const casting = yield* Effect.forkChild(Effect.flip(Spells.cast(reading("id"))))
      const { correlationId } = yield* nextAsked()
      yield* TestClock.adjust("119 seconds")
      assert.isUndefined(casting.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(casting)
      assert.instanceOf(error, Timeout)
      assert.deepInclude(error, { operation: "read_file", path: "a.txt" })
      yield* reply(content(correlationId, "late"))
      assert.deepInclude(yield* Spells.cast(reading("id")), { _tag: "SpellResult", spell: "read_file" })
      assert.strictEqual((yield* asked).length, 1)
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("is executed even if its caller is interrupted", () =>
    Effect.gen(function* () {
      const casting = yield* Effect.forkChild(Spells.cast(reading("id")))
      const { correlationId } = yield* nextAsked()
      yield* Fiber.interrupt(casting)
      yield* reply(content(correlationId, "text"))
      yield* answered(1)
      assert.strictEqual((yield* answersOf).length, 1)
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("does not change if a caller changes the parameters or a returned result", () =>
    Effect.gen(function* () {
      const parameters = { path: "a.txt" }
      const casting = yield* Effect.forkChild(Spells.cast(invocation("id", "read_file", parameters)))
      const { correlationId } = yield* nextAsked()
      parameters.path = "b.txt"
      yield* reply(content(correlationId, "text"))
      const answer = yield* Fiber.join(casting)
      assert.strictEqual(answer._tag, "SpellResult")
      if (answer._tag === "SpellResult") Reflect.set(answer.result as object, "content", "spoilt")
      const again = yield* Spells.cast(reading("id"))
      assert.deepInclude(again._tag === "SpellResult" ? (again.result as object) : {}, { path: "a.txt", content: "text" })
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("of a client without a covenant is answered by the covenant of another client", () =>
    Effect.gen(function* () {
      const caller = Context.get(yield* Layer.build(Layer.fresh(Spells.layerCaller())), Spells.Spells)
      const casting = yield* Effect.forkChild(caller.cast(reading("id")))
      yield* reply(content((yield* nextAsked()).correlationId, "text"))
      assert.deepInclude(yield* Fiber.join(casting), { _tag: "SpellResult", correlationId: "id" })
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )

  it.effect("ignores answers to another journal of spells, even answers to later positions", () =>
    Effect.gen(function* () {
      for (const position of [1, 99]) yield* reply(content(`spells/${position}/ask/id`, "stale"))
      const spells = yield* Spells.SpellJournal
      yield* spells.appendAll([reading("another"), reading("id")])
      const casting = yield* Effect.forkChild(keeping(Spells.cast(reading("id"))))
      yield* reply(content((yield* nextAsked(1)).correlationId, "text"))
      const answer = yield* Fiber.join(casting)
      assert.deepInclude(answer._tag === "SpellResult" ? (answer.result as object) : {}, { content: "text" })
    }).pipe(Effect.provide(journals))
  )

  it.effect("is ignored by a covenant with another name, whose requests have other ids", () =>
    Effect.gen(function* () {
      const other = yield* Journal.makeMemory<Spells.SpellEntry>()
      const others = Layer.fresh(Spells.layer({ name: "others" })).pipe(
        Layer.provide(Layer.succeed(Spells.SpellJournal, other))
      )
      yield* Layer.build(others)
      const casting = yield* Effect.forkChild(Spells.cast(reading("id")))
      yield* other.append(reading("id", "b.txt"))
      const [one, two] = [yield* nextAsked(), yield* nextAsked(1)]
      assert.notStrictEqual(one.correlationId, two.correlationId)
      for (const entry of [one, two]) yield* reply(content(entry.correlationId, "path" in entry ? entry.path! : ""))
      const answer = yield* Fiber.join(casting)
      assert.deepInclude(answer._tag === "SpellResult" ? (answer.result as object) : {}, { content: "a.txt" })
      yield* until(other, ({ _tag }) => _tag === "SpellResult")
      assert.strictEqual((yield* answersOf).length, 1)
    }).pipe(Effect.provide(Layer.provideMerge(Spells.layer(), journals)))
  )
})

describe("a failing covenant of spells", () => {
  it.effect("fails all waiting and later spells", () =>
    Effect.gen(function* () {
      const journal = yield* Spells.SpellJournal
      const full: typeof journal = {
        ...journal,
        appendAll: () => Effect.fail(new JournalError({ operation: "append", reason: "io", detail: "no space" }))
      }
      const layer = Layer.fresh(Spells.layer()).pipe(Layer.provide(Layer.succeed(Spells.SpellJournal, full)))
      const spells = Context.get(yield* Layer.build(layer), Spells.Spells)
      const casting = yield* Effect.forkChild(Effect.flip(spells.cast(reading("id"))))
      yield* reply(content((yield* nextAsked()).correlationId, "text"))
      for (const error of [yield* Fiber.join(casting), yield* Effect.flip(spells.cast(reading("other")))]) {
        assert.instanceOf(error, DaemonError)
        assert.include(error.message, "spells/tell")
        assert.include(error.message, "no space")
      }
      const said = (yield* entries(yield* Journal.Journal)).filter(
        (entry) => entry._tag === "DaemonChanged" && entry.failure !== undefined
      )
      assert.strictEqual(said.length, 1)
    }).pipe(Effect.provide(journals))
  )
})

describe("a restarted covenant of spells", () => {
  it.effect("sends the requests of spells that arrived while it was stopped", () =>
    Effect.gen(function* () {
      yield* (yield* Spells.SpellJournal).append(reading("id"))
      yield* keeping(
        Effect.andThen(
          Effect.flatMap(nextAsked(), (entry) => reply(content(entry.correlationId, "text"))),
          answered(1)
        )
      )
      assert.deepInclude((yield* answersOf)[0], { _tag: "SpellResult", correlationId: "id" })
    }).pipe(Effect.provide(journals))
  )

  it.effect("does not repeat a request, and delivers an answer that arrived meanwhile", () =>
    Effect.gen(function* () {
      yield* (yield* Spells.SpellJournal).append(reading("id"))
      const { correlationId } = yield* keeping(nextAsked())
      yield* reply(content(correlationId, "text"))
      yield* keeping(answered(1))
      yield* keeping(Spells.cast(new Spells.SpellInvocation({ correlationId: "last", spell: "none", parameters: null })))
      assert.strictEqual((yield* asked).length, 1)
      assert.deepStrictEqual(
        (yield* answersOf).map(({ correlationId }) => correlationId),
        ["id", "last"]
      )
    }).pipe(Effect.provide(journals))
  )

  it.effect("continues an edit between any two of its steps", () =>
    Effect.gen(function* () {
      const edit = { path: "a.txt", old_string: "one", new_string: "1" }
      yield* (yield* Spells.SpellJournal).append(invocation("id", "edit_file", edit))
      const read = yield* keeping(nextAsked())
      assert.strictEqual(read._tag, "FileRead")
      yield* reply(content(read.correlationId, "one\ntwo\n"))
      const write = yield* keeping(nextAsked(1))
      const again = yield* keeping(nextAsked(1))
      assert.deepStrictEqual(again, write)
      assert.deepInclude(write, { _tag: "FileWrite", path: "a.txt", content: bytes("1\ntwo\n"), createMode: "replace" })
      yield* reply(new FileWritten({ correlationId: write.correlationId, path: "a.txt", bytesWritten: 6 }))
      yield* keeping(answered(1))
      yield* keeping(Spells.cast(new Spells.SpellInvocation({ correlationId: "last", spell: "none", parameters: null })))
      assert.deepStrictEqual(
        (yield* asked).map(({ _tag }) => _tag),
        ["FileRead", "FileWrite"]
      )
      const [result] = yield* answersOf
      assert.deepInclude(result?._tag === "SpellResult" ? (result.result as object) : {}, {
        path: "a.txt",
        replacements: 1,
        bytes_written: 6
      })
    }).pipe(Effect.provide(journals))
  )

  it.effect("over journals in files answers from these journals, and executes nothing again", () =>
    Effect.gen(function* () {
      const place = directory()
      const root = join(place, "root")
      Fs.mkdirSync(root)
      const append = invocation("id", "write_file", { path: "log", content: ".", mode: "append" })
      const session = <A, E>(body: Effect.Effect<A, E, Spells.Spells>) => {
        const files = Layer.merge(
          Journal.layerFile({ path: join(place, "files") }),
          Layer.effect(Spells.SpellJournal, Journal.makeFile(Spells.SpellEntry, { path: join(place, "spells") }))
        )
        const running = Layer.merge(Spells.layer(), Leaf.posixFS({ rootPath: root }))
        return Effect.scoped(Effect.provide(body, Layer.fresh(Layer.provideMerge(running, files))))
      }
      const first = yield* session(Spells.cast(append))
      const second = yield* session(Spells.cast(append))
      assert.deepStrictEqual(second, first)
      assert.strictEqual(Fs.readFileSync(join(root, "log"), "utf8"), ".")
      yield* session(Spells.call("write_file", { path: "log", content: "!", mode: "append" }))
      assert.strictEqual(Fs.readFileSync(join(root, "log"), "utf8"), ".!")
    })
  )

  it.effect.each(kinds)("over $name executes each of many spells once, even if it is stopped at any point", (kind) =>
    Effect.gen(function* () {
      const journal = yield* Spells.SpellJournal
      yield* journal.appendAll(
        Array.from({ length: 60 }, (_, index) =>
          index % 2 === 0
            ? invocation(`${index}`, "write_file", { path: "log", content: `${index};`, mode: "append" })
            : invocation(`${index}`, "edit_file", { path: "count", old_string: "!", new_string: "!!" })
        )
      )
      for (const count of [1, 7, 20, 33, 59]) yield* keeping(answered(count), { extended: kind.extended })
      const log = yield* keeping(
        Effect.andThen(
          answered(60),
          Effect.map(Spells.call("read_file", { path: "log" }), ({ content }) => content)
        ),
        { extended: kind.extended }
      )
      const numbers = Array.from({ length: 30 }, (_, index) => `${2 * index};`)
      assert.sameMembers(log.split(/(?<=;)/), numbers)
      const answers = (yield* answersOf).slice(0, 60)
      assert.sameMembers(
        answers.map(({ correlationId }) => correlationId),
        Array.from({ length: 60 }, (_, index) => `${index}`)
      )
      const ids = (yield* asked).map(({ correlationId }) => correlationId)
      assert.strictEqual(new Set(ids).size, ids.length)
    }).pipe(Effect.provide(Layer.provideMerge(kind.leaf({ log: "", count: "!" }), journals)))
  )
})

describe("a call of a spell in a program", () => {
  it.effect("has the result type of the named spell", () =>
    Effect.gen(function* () {
      const { files } = yield* Spells.call("list_directory", {})
      assert.deepStrictEqual(files, ["a.txt"])
      const fault = yield* Effect.flip(Spells.call("read_file", { path: "b.txt" }))
      assert.deepInclude(fault, { _tag: "SpellFault", faultKind: "NotFound" })
    }).pipe(Effect.provide(whole(kinds[0]!, { "a.txt": "" })))
  )
})
