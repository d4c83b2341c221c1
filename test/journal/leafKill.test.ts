import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { DaemonChanged } from "../../src/journal/entries/status.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { clean, start } from "../durability/children.ts"
import { asked, freshDirectory, stat } from "./leafBench.ts"
import { end, files, type Orders, tokenOf } from "./leafKillChild.ts"

afterAll(clean)

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"

interface Story {
  readonly entries: ReadonlyArray<Journal.Entry>
  readonly root: string
}

/**
 * Runs `kills` leaves, each killed at work and followed by another leaf. The last leaf answers the remaining requests.
 */
const killing = async (kills: number, resume: "reads" | "all"): Promise<Story> => {
  const directory = freshDirectory()
  const [root, journal, cache] = ["root", "journal.ndjson", "cache"].map((name) => join(directory, name)) as [
    string,
    string,
    string
  ]
  Fs.mkdirSync(root)
  for (let k = 0; k < files; k++) Fs.writeFileSync(join(root, `edited${k}`), end)
  for (let round = 0; round < kills; round++) {
    const child = start("../journal/leafKillChild.ts", cache)
    child.say({ journal, root, round, resume } satisfies Orders)
    await child.dots(1 + ((round * 7) % 5))
    // The kill comes at some moment of the next work.
    const until = performance.now() + ((round * 13) % 17) / 4
    while (performance.now() < until);
    child.process.kill("SIGKILL")
    const { errors, signal } = await child.ended
    assert.strictEqual(signal, "SIGKILL", errors)
  }
  const last = Layer.effectDiscard(
    Effect.flatMap(PosixHost.make({ root }), (port) =>
      Effect.flatMap(Leaf.make(Filesystem.make(port), { name: "leaf", extended: true, resume }), ({ start }) => start)
    )
  )
  const entries = await Effect.runPromise(
    Effect.gen(function* () {
      const { all, ask, told } = yield* asked
      yield* ask(stat("/"))
      const before = yield* all
      // Writes without a last part are answered too.
      yield* told([...new Set(before.filter(Entry.isEfferent).map(({ correlationId }) => correlationId))])
      return yield* all
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.provideMerge(last, Journal.layerFile({ path: journal }))),
      Effect.timeout("60 seconds")
    )
  )
  return { entries, root }
}

const inFile = (root: string, path: string): string | undefined => {
  const at = join(root, path)
  return Fs.existsSync(at) ? Fs.readFileSync(at, "utf8") : undefined
}

const times = (text: string, token: string): number => text.split(token).length - 1

/** Returns complaints about untrue answers, and counts how leaves answered for their predecessors. */
const examine = ({ entries, root }: Story, resume: "reads" | "all") => {
  const complaints: Array<string> = []
  const answers = new Map<string, Array<Entry.Terminal>>()
  const intents = new Map<string, Entry.Efferent>()
  const started = new Map<string, string>()
  const answeredBy = new Map<string, string>()
  let running = ""
  for (const entry of entries) {
    if (entry instanceof DaemonChanged) running = entry.instance
    else if (Entry.isEfferent(entry)) {
      if (!intents.has(entry.correlationId)) intents.set(entry.correlationId, entry)
    } else if (entry._tag === "FileStarted") started.set(entry.correlationId, entry.instance)
    else if (Entry.isTerminal(entry)) {
      answers.set(entry.correlationId, [...(answers.get(entry.correlationId) ?? []), entry])
      answeredBy.set(entry.correlationId, running)
    }
  }
  const told = { made: 0, notMade: 0, unclear: 0, notBegun: 0 }
  const logs = Array.from({ length: files }, (_, k) => inFile(root, `log${k}`) ?? "")
  const edited = Array.from({ length: files }, (_, k) => inFile(root, `edited${k}`) ?? "")
  const place = logs.map(() => -1)
  for (const [id, intent] of intents) {
    const [answer, ...more] = answers.get(id) ?? []
    if (answer === undefined || more.length > 0) {
      complaints.push(`${intent._tag} ${id} has ${more.length + (answer === undefined ? 0 : 1)} answers`)
      continue
    }
    const isFault = answer._tag === "FileFault"
    const message = isFault ? answer.message : ""
    const isUnclear = message.includes("neither the old state nor the new state")
    const isRefused = message.includes("not executed")
    if (isUnclear) told.unclear++
    else if (message.includes("was not carried out")) told.notMade++
    else if (isRefused) told.notBegun++
    else if (started.has(id) && started.get(id) !== answeredBy.get(id)) told.made++
    if (resume === "all" && isRefused && !isUnclear) complaints.push(`${id} was refused: ${message}`)
    const token = tokenOf(id)
    const path = intent.path ?? ""
    const text = path.startsWith("log") ? logs[Number(path.slice(3))] : edited[Number(path.slice(6))]
    if ((path.startsWith("log") || path.startsWith("edited")) && text !== undefined) {
      const count = times(text, token)
      if (isUnclear ? count > 1 : count !== (isFault ? 0 : 1)) {
        complaints.push(`${intent._tag} ${id}, ${answer._tag} ${message}, is there ${count} times`)
      }
      if (path.startsWith("log") && count === 1) {
        const k = Number(path.slice(3))
        const at = text.indexOf(token)
        if (at < place[k]!) complaints.push(`${id} is not where its turn was`)
        place[k] = at
      }
    }
    if (intent._tag === "FileWrite" && intent.createMode === "create") {
      const moved = intents.get(`${id.split("-")[0]}-${Number(id.split("-")[1]) + 2}`)
      const mover = moved === undefined ? undefined : answers.get(moved.correlationId)?.[0]
      if (isUnclear || mover?._tag === "FileMoved") continue
      const found = inFile(root, path)
      if (found !== (isFault ? undefined : token)) complaints.push(`${id}, ${answer._tag} ${message}, left ${String(found)}`)
    }
    if (intent._tag === "FileMove" && !isUnclear) {
      const there = inFile(root, path) !== undefined
      if (!isFault && there) complaints.push(`${id} was moved and stayed`)
    }
    if (intent._tag === "FileDelete" && !isUnclear && !isFault && inFile(root, path) !== undefined) {
      complaints.push(`${id} was deleted and stayed`)
    }
  }
  return { complaints, told, count: intents.size }
}

describe("a leaf that is killed and replaced repeatedly", () => {
  for (const [resume, kills] of [
    ["reads", soak ? 150 : 3],
    ["all", soak ? 150 : 3]
  ] as const) {
    it(`gives every request exactly one true answer (resume: ${resume})`, async () => {
      const story = await killing(kills, resume)
      const { complaints, count, told } = examine(story, resume)
      if (soak) console.log(`${count} intents, ${kills} kills: ${JSON.stringify(told)}`)
      assert.deepStrictEqual(complaints, [])
      assert.isAbove(count, kills * 10)
    }, 1_800_000)
  }

  it("is checked by a function that detects missing, repeated and untrue answers", async () => {
    const root = freshDirectory()
    const write = (id: string) =>
      new Entry.FileWrite({ correlationId: id, path: "log0", content: new Uint8Array(0), createMode: "append" })
    const written = (id: string) => new Entry.FileWritten({ correlationId: id, path: "log0", bytesWritten: 1 })
    const refused = (id: string) =>
      new Entry.FileFault({ correlationId: id, faultKind: "IoError", path: "log0", message: "not executed" })
    const wrong = (text: string, ...entries: ReadonlyArray<Journal.Entry>): number => {
      Fs.writeFileSync(join(root, "log0"), text)
      return examine({ entries, root }, "reads").complaints.length
    }
    const [one, two] = [tokenOf("0-1"), tokenOf("0-2")]
    assert.strictEqual(wrong(one, write("0-1"), written("0-1")), 0)
    assert.strictEqual(wrong("", write("0-1"), refused("0-1")), 0)
    assert.strictEqual(wrong(one, write("0-1")), 1)
    assert.strictEqual(wrong(one, write("0-1"), written("0-1"), written("0-1")), 1)
    assert.strictEqual(wrong("", write("0-1"), written("0-1")), 1)
    assert.strictEqual(wrong(one + one, write("0-1"), written("0-1")), 1)
    assert.strictEqual(wrong(one, write("0-1"), refused("0-1")), 1)
    assert.strictEqual(wrong(two + one, write("0-1"), written("0-1"), write("0-2"), written("0-2")), 1)
  })
})
