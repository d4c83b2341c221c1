/** Tests searches whose directories are reported by search processes. A stub takes the place of the processes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { codes, states } from "../../src/model/treeSearch.ts"
import { type Backend, portable } from "../../src/port/Backend.ts"
import { type DirectoryReading, type Explorer, inWalkOrder, type TreeReading, type Visit } from "../../src/port/explorer.ts"

const filesPerDirectory = 1000
const bytes = new TextEncoder().encode("needle")

/** Reports files without a match in every directory, and one match in the directory `d0300`. */
const reportOfMany = (path: string, others: number): TreeReading<Visit>["report"] => {
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
const stubbed = Effect.fnUntraced(function* (tree: InMemory.Tree, reportOf: typeof reportOfMany = reportOfMany) {
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

const smallTree: InMemory.Tree = Object.fromEntries(Object.entries(tree).slice(0, 300))

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

  it.live("yields after some ten thousand matches, also if each report has fewer", () =>
    Effect.gen(function* () {
      const matchesPerReport = 2048
      let unpacked = 0
      let most = 0
      /** Counts the matches whose line numbers are read. */
      const counting = (meta: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> =>
        new Proxy(meta, {
          get: (target, key) => {
            if (typeof key === "string" && Number(key) % 4 === 0) most = Math.max(most, ++unpacked)
            return Reflect.get(target, key) as unknown
          }
        })
      const { fs } = yield* stubbed(smallTree, (_, others) => ({
        ticket: 1,
        directories: Int32Array.from([states.decided, 1, 1, ...Array.from({ length: others * 3 }, () => 0)]),
        codes: Uint8Array.of(codes.isResult),
        names: "a.ts",
        matches: {
          files: Int32Array.of(matchesPerReport),
          meta: counting(Int32Array.from(Array.from({ length: matchesPerReport }, (_, i) => [i + 1, 0, 1, i + 1]).flat())),
          bytes: new Uint8Array(matchesPerReport).fill(97),
          isAscii: true,
          texts: undefined
        }
      }))
      const turn = (): void => {
        unpacked = 0
        immediate = setImmediate(turn)
      }
      let immediate = setImmediate(turn)
      const matches = yield* Effect.ensuring(
        Stream.runCount(fs.grepStream("a")),
        Effect.sync(() => clearImmediate(immediate))
      )
      assert.strictEqual(matches, 300 * matchesPerReport)
      assert.isBelow(most, 2 ** 16)
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

const maxJobs = 4
/** The number of directories in a directory, by level. A directory of the last level has one file. */
const widths = [64, 16, 100]

const namesAt = (level: number): ReadonlyArray<string> => Array.from({ length: widths[level]! }, (_, i) => `d${1000 + i}`)

/** Reports a job in the tree of `widths`. */
const reportSubtrees = (paths: ReadonlyArray<string>, budget: number): NonNullable<TreeReading<Visit>["report"]> => {
  const directories: Array<number> = []
  const entryCodes: Array<number> = []
  const names: Array<string> = []
  let left = budget
  const visit = (level: number): void => {
    const isVisited = left-- > 0
    const entries = !isVisited ? [] : level === widths.length ? ["file"] : namesAt(level)
    directories.push(isVisited ? states.decided : states.left, entries.length, 0)
    names.push(...entries)
    for (const _ of entries) entryCodes.push(level === widths.length ? codes.isResult : codes.isEntered | 1)
    if (isVisited && level < widths.length) for (const _ of entries) visit(level + 1)
  }
  for (const path of paths) visit(path.split("/").length)
  return {
    ticket: 1,
    directories: Int32Array.from(directories),
    codes: Uint8Array.from(entryCodes),
    names: names.join("/"),
    matches: undefined
  }
}

describe("a walk by several search processes", () => {
  it.effect("keeps only the entries of directories near the current one, also while the processes are fast", () =>
    Effect.gen(function* () {
      const top = Object.fromEntries(namesAt(0).map((name): [string, InMemory.Tree] => [name, {}]))
      const port = portable((yield* Effect.provide(Filesystem.Filesystem, InMemory.layer({ tree: top }))).port)
      let reported = 0
      const explore: Backend["explore"] = <V extends Visit>(pathOf: (visit: V) => string) =>
        Effect.sync((): Explorer<V> => {
          const local: Array<V> = []
          const done: Array<DirectoryReading<V>> = []
          const sent: Array<TreeReading<V>> = []
          const readings: Array<TreeReading<V>> = []
          return {
            availableReads: () => (local.length === 0 ? 1 : 0),
            read: (visits) => void local.push(...visits),
            take: () => done.splice(0),
            waitForReading: Effect.suspend(() => {
              const visit = local.pop()
              if (visit === undefined) {
                const reading = sent.shift()!
                reported += reading.report!.names.split("/").filter((name) => name === "file").length
                readings.push(reading)
                return Effect.void
              }
              return Effect.match(port.list(pathOf(visit) as never), {
                onSuccess: (children) => void done.push({ visit, children: inWalkOrder(children, true) }),
                onFailure: (children) => void done.push({ visit, children })
              })
            }),
            keepOpen: () => {},
            release: () => {},
            trees: {
              isWarm: () => true,
              begin: () => true,
              room: () => maxJobs - sent.length,
              send: (visits, paths, budget) => void sent.push({ visits, report: reportSubtrees(paths, budget) }),
              take: () => readings.splice(0)
            }
          }
        })
      const fs = Filesystem.make({ ...port, explore })
      let [emitted, mostKept] = [0, 0]
      const all = Stream.filter(fs.walk(""), ({ isFile }) => isFile)
      yield* Stream.runForEachArray(all, (entries) =>
        Effect.sync(() => {
          emitted += entries.length
          mostKept = Math.max(mostKept, reported - emitted)
        })
      )
      assert.strictEqual(emitted, reported)
      assert.isBelow(mostKept, 20_000)
    })
  )
})
