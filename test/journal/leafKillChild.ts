/** A process with a leaf over a directory and a client that makes requests, until it is killed. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { flushCompileCache } from "node:module"
import { createInterface } from "node:readline"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"

export interface Orders {
  readonly journal: string
  readonly root: string
  /** The number of this run, unique within a test. */
  readonly round: number
  readonly resume: "reads" | "all"
}

/** The number of files that all rounds write to. */
export const files = 4

/** Returns the text that each executed change writes once. Some texts are larger than an entry may hold. */
export const tokenOf = (id: string): string => `[${id}]${Number(id.split("-")[1]) % 5 === 0 ? "x".repeat(6_000) : ""}\n`

/** The text at the end of an edited file. */
export const end = "<end>"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const intentsOf = (round: number, n: number): ReadonlyArray<Entry.Efferent> => {
  const correlationId = `${round}-${n}`
  const k = n % files
  const content = bytes(tokenOf(correlationId))
  switch (n % 7) {
    case 0:
    case 1:
      return [new Entry.FileWrite({ correlationId, path: `log${k}`, content, createMode: "append" })]
    case 2: {
      const half = content.length >> 1
      return [
        new Entry.FileWriteChunk({
          correlationId,
          offset: 0,
          data: content.slice(0, half),
          isFinal: false,
          path: `log${k}`,
          createMode: "append"
        }),
        new Entry.FileWriteChunk({ correlationId, offset: half, data: content.slice(half), isFinal: true })
      ]
    }
    case 3:
      return [new Entry.FileWrite({ correlationId, path: `made/${correlationId}`, content, createMode: "create" })]
    case 4:
      return [
        new Entry.FileEdit({
          correlationId,
          path: `edited${k}`,
          edits: [{ oldText: end, newText: `${tokenOf(correlationId)}${end}` }]
        })
      ]
    case 5:
      // Moves the file of the request before the previous one.
      return [new Entry.FileMove({ correlationId, path: `made/${round}-${n - 2}`, to: `moved/${round}-${n - 2}` })]
    default:
      return [new Entry.FileDelete({ correlationId, path: `moved/${round}-${n - 3 - 7}` })]
  }
}

const work = ({ journal, resume, root, round }: Orders) => {
  const leaf = Layer.effectDiscard(
    Effect.flatMap(PosixHost.make({ root }), (port) =>
      Effect.flatMap(Leaf.make(Filesystem.make(port), { name: "leaf", extended: true, resume }), ({ start }) => start)
    )
  )
  return Effect.gen(function* () {
    const journal = yield* Journal.Journal
    for (let n = 0; ; n++) {
      const at = yield* journal.appendAll(intentsOf(round, n))
      // The client waits after every tenth request.
      if (n % 10 === 9) {
        const last = (entry: Journal.Entry): entry is Entry.Terminal =>
          Entry.isTerminal(entry) && entry.correlationId === `${round}-${n}`
        yield* journal.waitFor(at, last)
        process.stdout.write(".")
      }
    }
  }).pipe(Effect.provide(Layer.provideMerge(leaf, Journal.layerFile({ path: journal }))))
}

if (import.meta.main) {
  // The process ends with its parent.
  const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
  lines.once("line", (line) => {
    Effect.runPromise(Effect.orDie(work(JSON.parse(line) as Orders))).catch((error: unknown) => {
      process.stderr.write(String(error))
      process.exit(1)
    })
  })
  flushCompileCache()
  process.stdout.write("!")
}
