/**
 * The data of the panel tests: two dumps of one project, and a journal with answers, a fault and an unanswered request.
 * The second dump has changes and the calls that made them.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as ToolEvents from "../../../src/agent/ToolEvents.ts"
import * as InMemory from "../../../src/backends/InMemory.ts"
import * as Server from "../../../src/debug/Server.ts"
import { make as derive } from "../../../src/filesystem/Filesystem.ts"
import * as Entry from "../../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../../src/journal/Journal.ts"
import * as Slice from "../../../src/model/Slice.ts"
import * as Session from "../../../src/workspace/Session.ts"
import { inMemory } from "../../scratch.ts"

export const Plan = Slice.make("Plan", Schema.Struct({ step: Schema.Int, text: Schema.String }), { policy: "log" })
export const Mood = Slice.make("Mood", Schema.Struct({ mood: Schema.String }))

/** Returns lines that contain their number. */
export const lines = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `export const value${index + 1} = ${index + 1}`)

const joined = (all: ReadonlyArray<string>): string => `${all.join("\n")}\n`

/** The lines with line 20 changed, without line 40, and with a new line after line 60. */
const changed = lines(80)
  .with(19, "export const value20 = 2000")
  .toSpliced(60, 0, "export const between = 60.5")
  .filter((line) => !line.startsWith("export const value40 "))

export const red = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
  "base64"
)
export const blue = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg==",
  "base64"
)

const moved = "export const moved = true\n// so long that it can be known again by what it says, wherever it goes\n"

export type Files = Readonly<Record<string, string | Uint8Array>>

export const before: Files = {
  "README.md": "# Same\n",
  "assets/dot.png": red,
  "data/blob.bin": Uint8Array.of(0, 1, 2, 255),
  "endings.txt": "one\ntwo\n",
  "src/gone.ts": "export const gone = 1\nexport const too = 2\n",
  "src/here.ts": moved,
  "src/values.ts": joined(lines(80))
}

export const after: Files = {
  "README.md": "# Same\n",
  "assets/dot.png": blue,
  "data/blob.bin": Uint8Array.of(0, 1, 2, 254, 255),
  "endings.txt": "one\r\ntwo\r\n",
  "src/new.ts": "export const a = 1\nexport const b = 2\nexport const c = 3\n",
  "src/there.ts": moved,
  "src/values.ts": joined(changed)
}

const begun = Date.UTC(2026, 0, 2, 3, 4, 5)

/** The number of calls, and the indexes of the calls that fail or read. All other calls write `src/values.ts` successfully. */
export const calls = 60
export const failing = [7, 23, 41]
export const reading = [3, 33]

export const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
/** A text with a character that reverses the reading direction. */
export const turned = "\u202egnp.exe"

const invoked = (index: number) =>
  ToolEvents.ToolInvoked.make({
    tool: index === 50 ? evil : reading.includes(index) ? "read_file" : "write_file",
    callId: `call-${index}`,
    params:
      index === 50 ? { [evil]: evil, path: turned } : { path: "src/values.ts", number: index, isLast: index === calls - 1 },
    success: !failing.includes(index),
    message:
      index === 50 ? evil : failing.includes(index) ? `Conflict: number ${index} came too late` : `Wrote number ${index}`,
    path: index === 50 ? turned : "src/values.ts",
    mode: "overwrite",
    sizeBytes: 1000 + index,
    durationMillis: index + 0.5,
    at: DateTime.makeUnsafe(begun + index * 1000)
  })

const filesystemOf = Effect.fnUntraced(function* (files: Files) {
  const filesystem = derive(yield* InMemory.make())
  for (const [path, content] of Object.entries(files))
    yield* typeof content === "string" ? filesystem.write(path, content) : filesystem.writeBytes(path, content)
  return filesystem
})

/** Writes entries from position 1 on: an answered write, a failing one, an unanswered request, and many more. */
const journalled = Effect.fnUntraced(function* (path: string) {
  const journal = yield* Journal.makeFile(Journal.Entry, { path })
  const write = (id: string, path: string, text: string) =>
    Entry.FileWrite.make({ correlationId: id, path, content: Buffer.from(text), createMode: "overwrite" })
  yield* journal.append(write("first", "src/values.ts", "export const fromTheJournal = 1\n"))
  yield* journal.append(Entry.FileWritten.make({ correlationId: "first", path: "src/values.ts", bytesWritten: 32 }))
  yield* journal.append(write("second", "locked.ts", evil))
  yield* journal.append(
    Entry.FileFault.make({ correlationId: "second", path: "locked.ts", faultKind: "AccessDenied", message: "it is locked" })
  )
  yield* journal.append(write("third", "alone.ts", "x"))
  for (let index = 0; index < 300; index++) {
    yield* journal.append(Entry.FileStat.make({ correlationId: `stat-${index}`, path: `many/${index}.ts` }))
    yield* journal.append(Entry.FileMetadata.make({ correlationId: `stat-${index}`, size: index, isDirectory: false }))
  }
  return journal
})

export interface Shown {
  readonly url: string
  readonly journal: Journal.Scrivener<Journal.Entry>
  readonly close: () => Promise<void>
}

const dumped = Effect.fnUntraced(function* (directory: string) {
  const first = yield* Session.make({ slices: [Plan], tags: { session_id: "a-before" } })
  yield* first.dispatch(Plan, { step: 1, text: "begin" })
  const earlier = yield* Session.dumpSessionTree(first, directory, { filesystem: yield* filesystemOf(before) })
  // The newest dump is shown, and the clock of the disk may be too coarse to order the two.
  const past = new Date(Date.now() - 60_000)
  Fs.utimesSync(earlier!, past, past)

  const session = yield* Session.make({
    id: "main",
    slices: [Plan, Mood, ToolEvents.log],
    tags: { session_id: "b-after", [evil]: evil }
  })
  for (let index = 0; index < calls; index++) yield* session.publish(invoked(index))
  for (let step = 1; step <= 120; step++) yield* session.dispatch(Plan, { step, text: `Step ${step}` })
  yield* session.set(Mood, { mood: "early" }, { mood: "late" })
  const child = yield* session.child({ id: "helper", slices: [Plan], tags: { role: "reviewer" } })
  yield* child.dispatch(Plan, { step: 1, text: evil })
  yield* Session.dumpSessionTree(session, directory, { filesystem: yield* filesystemOf(after) })
})

/** Serves the data until the result is closed. */
export const show = async (what: "dumps" | "bare" = "dumps"): Promise<Shown> => {
  const scope = Scope.makeUnsafe()
  const directory = Fs.mkdtempSync(join(inMemory(), "panels-"))
  const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => Effect.runPromise(Scope.provide(effect, scope))
  const journal = await run(journalled(join(directory, "journal")))
  const source =
    what === "bare"
      ? { filesystem: await run(filesystemOf({ "a.txt": "a" })), title: "bare" }
      : { dump: join(directory, "dumps") }
  if (what === "dumps") await run(dumped(join(directory, "dumps")))
  const { url } = await run(Server.serve({ source, ...(what === "dumps" && { journal }) }))
  return { url, journal, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}
