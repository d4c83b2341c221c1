import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Fs } from "../../runtime/node.ts"
import * as Directory from "../content/directory.ts"
import { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import type { Verified } from "../Journal.ts"
import * as Codec from "./codec.ts"
import { openFile } from "./fileStore.ts"
import { type LocatedLine, scan, readStart } from "./scan.ts"

const isRef = (value: object): value is ContentRef =>
  "sha256" in value && typeof value.sha256 === "string" && "size" in value && typeof value.size === "number"

export const collectRefs = (value: unknown, refsByHash: Map<string, number>): void => {
  // Iterate instead of recursing, because a foreign entry may be nested deeper than the call stack allows.
  const pending = [value]
  for (let next = pending.pop(); pending.length > 0 || next !== undefined; next = pending.pop()) {
    if (typeof next !== "object" || next === null) continue
    if (isRef(next)) refsByHash.set(next.sha256, next.size)
    else for (const inner of Object.values(next)) pending.push(inner)
  }
}

const checkAll = (directory: string, refs: ReadonlyMap<string, number>): Effect.Effect<Verified["contents"], JournalError> =>
  Effect.gen(function* () {
    const contents = yield* Directory.make(directory, { fsync: false, removesLeftovers: false })
    let [missing, damaged] = [0, 0]
    for (const [sha256, size] of refs) {
      const isIntact = yield* Effect.as(Stream.runDrain(contents.stream({ sha256, size })), true).pipe(
        Effect.catch((error) => (error.reason === "corrupt" ? Effect.succeed(false) : Effect.fail(error)))
      )
      if (isIntact) continue
      if (Fs.existsSync(Directory.contentPath(directory, sha256))) damaged++
      else missing++
    }
    return { referenced: refs.size, missing, damaged }
  })

export const verify = <E, I>(
  schema: Schema.Codec<E, I>,
  path: string,
  directory: string
): Effect.Effect<Verified, JournalError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const descriptor = yield* openFile(path, Fs.constants.O_RDONLY)
      const { decode } = Codec.make(schema)
      const refs = new Map<string, number>()
      const visit = (group: ReadonlyArray<LocatedLine>): JournalError | undefined => {
        for (const { entry, position } of group) {
          const decoded = decode(entry, position)
          if (decoded instanceof JournalError) return decoded
          collectRefs(entry, refs)
        }
        return undefined
      }
      const from = yield* readStart(descriptor)
      if (from === undefined) {
        const torn = Fs.fstatSync(descriptor).size > 0
        return { entries: 0, chained: false, torn, contents: { referenced: 0, missing: 0, damaged: 0 } }
      }
      const { point, rest } = yield* scan(descriptor, from, visit)
      return {
        entries: point.position - from.position,
        ...(from.position === 0 ? {} : { after: from.position }),
        chained: point.chain !== undefined,
        ...(point.chain === undefined ? {} : { head: point.chain }),
        torn: rest > 0,
        contents: yield* checkAll(directory, refs)
      }
    })
  )
