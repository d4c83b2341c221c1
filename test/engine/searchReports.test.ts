/** Tests searches whose directories are reported by search processes. A stub takes the place of the processes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { codes, states } from "../../src/model/treeSearch.ts"
import { type Backend, portable } from "../../src/port/Backend.ts"
import { type Explorer, inWalkOrder, type TreeReading, type Visit } from "../../src/port/explorer.ts"

const filesPerDirectory = 1000
const bytes = new TextEncoder().encode("needle")

/** Reports files without a match in every directory, and one match in the directory `d0300`. */
const reportOf = (path: string, others: number): TreeReading<Visit>["report"] => {
  const hasMatch = path === "d0300"
  return {
    ticket: 1,
    directories: Int32Array.from([
      states.decided,
      hasMatch ? 2 : 1,
      hasMatch ? 1 : 0,
      ...Array.from({ length: others * 3 }, () => 0)
    ]),
    codes: Uint8Array.from(hasMatch ? [codes.isResult, codes.isCount] : [codes.isCount]),
    names: hasMatch ? `a.ts/${filesPerDirectory}` : `${filesPerDirectory}`,
    matches: {
      files: Int32Array.from(hasMatch ? [1] : []),
      meta: Int32Array.from(hasMatch ? [1, 0, bytes.length, bytes.length] : []),
      bytes: hasMatch ? bytes.slice() : new Uint8Array(0),
      isAscii: true,
      texts: undefined
    }
  }
}

/** Returns a filesystem with a stub that decides one directory per job, and a list of the decided directories. */
const stubbed = Effect.fnUntraced(function* (tree: InMemory.Tree) {
  const port = portable((yield* Effect.provide(Filesystem.Filesystem, InMemory.layer({ tree }))).port)
  const decided: Array<string> = []
  const explore: Backend["explore"] = <V extends Visit>(pathOf: (visit: V) => string) =>
    Effect.sync((): Explorer<V> => {
      let local: Array<V> = []
      let done: ReturnType<Explorer<V>["take"]> = []
      let sent: TreeReading<V> | undefined
      let readings: Array<TreeReading<V>> = []
      return {
        availableReads: () => (local.length === 0 ? 1 : 0),
        read: (visits) => void local.push(...visits),
        take: () => {
          const taken = done
          done = []
          return taken
        },
        waitForReading: Effect.suspend(() => {
          const visit = local.pop()
          if (visit === undefined) {
            if (sent !== undefined) readings.push(sent)
            sent = undefined
            return Effect.void
          }
          return Effect.match(port.list(pathOf(visit) as never), {
            onSuccess: (children) => void (done = [...done, { visit, children: inWalkOrder(children, true) }]),
            onFailure: (children) => void (done = [...done, { visit, children }])
          })
        }),
        keepOpen: () => {},
        release: () => {},
        lend: () => Effect.succeed([]),
        trees: {
          isWarm: () => true,
          begin: () => true,
          room: () => (sent === undefined ? 1 : 0),
          send: (visits, paths) => {
            decided.push(paths[0]!)
            sent = { visits, report: reportOf(paths[0]!, visits.length - 1) }
          },
          take: () => {
            const taken = readings
            readings = []
            return taken
          }
        }
      }
    })
  return { fs: Filesystem.make({ ...port, explore }), decided }
})

const tree: InMemory.Tree = Object.fromEntries(
  Array.from({ length: 1000 }, (_, i): [string, InMemory.Tree] => [`d${String(i).padStart(4, "0")}`, {}])
)

describe("a search with reports of search processes", () => {
  it.effect("counts the files without a match, of which a report contains only the number", () =>
    Effect.gen(function* () {
      const { decided, fs } = yield* stubbed(tree)
      const { filesMatched, filesSearched, matches } = yield* fs.grep("needle")
      assert.deepStrictEqual(
        matches.map(({ path }) => path as string),
        ["d0300/a.ts"]
      )
      assert.strictEqual(filesMatched, 1)
      assert.strictEqual(filesSearched, decided.length * filesPerDirectory + 1)
    })
  )

  it.effect("emits a match before the processes have searched the whole tree", () =>
    Effect.gen(function* () {
      const { decided, fs } = yield* stubbed(tree)
      const found = yield* Stream.runCollect(Stream.take(fs.grepStream("needle"), 1))
      assert.strictEqual(found.length, 1)
      assert.isBelow(decided.length, 400)
    })
  )
})
