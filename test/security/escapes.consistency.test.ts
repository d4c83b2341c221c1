/**
 * Without escapes the library is an ordinary filesystem. Each call runs on one tree through the library and on an equal
 * one through plain `node:fs`. Both must give the same result or an error of the same kind, and the same tree.
 */
import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { dirname } from "node:path"
import { faultOf } from "../../src/runtime/host.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { directory, plant, seen, spelt } from "./escapes/grounds.ts"
import type { Leads } from "./escapes/meaning.ts"
import { base, type Layout, layouts, type Row } from "./escapes/rows.ts"
import { complete, isLink as isLinkText, normal } from "./escapes/tree.ts"
import { isSoak } from "../runs.ts"

interface Pair {
  readonly name: string
  readonly ours: (fs: Algebra, path: string) => Effect.Effect<unknown, { readonly _tag: string }>
  readonly plain: (at: string, root: string) => unknown
  /** The tag that the documents require instead of the system's own error, by the row of the table. */
  readonly but?: (row: Row) => string | undefined
}

const text = "written\n"
const { O_APPEND, O_CREAT, O_EXCL, O_TRUNC, O_WRONLY } = Fs.constants

const writeWith =
  (flags: number) =>
  (at: string): void => {
    const descriptor = Fs.openSync(at, flags, 0o666)
    try {
      Fs.writeSync(descriptor, text)
    } finally {
      Fs.closeSync(descriptor)
    }
  }

const written = (
  name: string,
  mode: "create" | "overwrite" | "append" | "replace" | "appendExisting",
  flags: number,
  but?: Pair["but"]
): Pair => ({
  name,
  ours: (fs, path) => Effect.asVoid(fs.write(path, text, { mode, createParents: false })),
  plain: writeWith(O_WRONLY | flags),
  // An empty path is a mistake of the caller.
  but: (row) => (row.path === "" ? "InvalidPath" : but?.(row))
})

/** Returns NotFound for a read below a file, which the system reports as ENOTDIR. */
const below = (row: Row): string | undefined => (row.leads.is === "blocked" ? "NotFound" : undefined)

const belowItself = (row: Row): string | undefined => (row.link === undefined ? below(row) : undefined)
const isLink = (row: Row): boolean => row.link !== undefined
const leadsTo = (row: Row, ...kinds: ReadonlyArray<Leads["is"]>): boolean => kinds.includes(row.leads.is)

const pairs: ReadonlyArray<Pair> = [
  { name: "exists", ours: (fs, path) => fs.exists(path), plain: (at) => Fs.existsSync(at) },
  {
    name: "stat",
    ours: (fs, path) =>
      Effect.map(fs.stat(path), ({ isDirectory, isFile, mode, modifiedAt, sizeBytes }) => {
        const time = DateTime.toEpochMillis(modifiedAt!)
        return { isDirectory, isFile, mode, time, size: isDirectory ? 0 : sizeBytes }
      }),
    plain: (at) => {
      const stats = Fs.statSync(at)
      const isDirectory = stats.isDirectory()
      const time = Math.floor(stats.mtimeMs)
      return { isDirectory, isFile: stats.isFile(), mode: stats.mode & 0o777, time, size: isDirectory ? 0 : stats.size }
    },
    but: below
  },
  {
    name: "list",
    ours: (fs, path) => Effect.map(fs.list(path), (all) => all.map(({ kind, name }) => `${name} ${kind}`)),
    plain: (at) =>
      Fs.readdirSync(at, { withFileTypes: true })
        .map((entry) => `${entry.name} ${entry.isDirectory() ? "directory" : entry.isFile() ? "file" : "symlink"}`)
        .sort(),
    but: below
  },
  { name: "readString", ours: (fs, path) => fs.readString(path), plain: (at) => Fs.readFileSync(at, "utf8"), but: below },
  {
    name: "readBytes",
    ours: (fs, path) => Effect.map(fs.readBytes(path), ({ content }) => [...content]),
    plain: (at) => [...Fs.readFileSync(at)],
    but: below
  },
  {
    name: "readLink",
    ours: (fs, path) => fs.readLink(path),
    plain: (at) => Fs.readlinkSync(at),
    but: (row) => belowItself(row) ?? (leadsTo(row, "file", "directory") && !isLink(row) ? "InvalidArgument" : undefined)
  },
  // A directory is NotAFile in every mode, also in `create`, unless a link leads to it.
  written("write, create", "create", O_CREAT | O_EXCL, (row) =>
    leadsTo(row, "directory") && !isLink(row) ? "NotAFile" : undefined
  ),
  written("write, overwrite", "overwrite", O_CREAT | O_TRUNC),
  written("write, append", "append", O_CREAT | O_APPEND),
  written("write, replace", "replace", O_TRUNC),
  written("write, appendExisting", "appendExisting", O_APPEND),
  {
    name: "mkdir",
    ours: (fs, path) => fs.mkdir(path, { parents: false, existOk: false }),
    plain: (at) => Fs.mkdirSync(at)
  },
  {
    name: "symlink",
    ours: (fs, path) => fs.symlink(path, "source.txt"),
    plain: (at) => {
      try {
        Fs.mkdirSync(dirname(at), { recursive: true })
      } catch {
        // The following call reports the error.
      }
      Fs.symlinkSync("source.txt", at)
    }
  },
  {
    name: "delete",
    ours: (fs, path) => Effect.asVoid(fs.delete(path)),
    plain: (at, root) => {
      if (at === root) throw Object.assign(new Error("EACCES"), { code: "EACCES" })
      return Fs.lstatSync(at).isDirectory() ? Fs.rmdirSync(at) : Fs.unlinkSync(at)
    },
    but: belowItself
  },
  {
    name: "setAttributes",
    ours: (fs, path) => fs.setAttributes(path, { mode: 0o711, modifiedAt: DateTime.makeUnsafe(1_234_567_890_123) }),
    plain: (at) => {
      Fs.chmodSync(at, 0o711)
      Fs.utimesSync(at, Fs.statSync(at).atimeMs / 1000, 1_234_567_890.123)
    },
    but: below
  },
  {
    name: "copy",
    ours: (fs, path) => Effect.asVoid(fs.copy(path, "in/copy")),
    plain: (at, root) => {
      if (Fs.lstatSync(at).isSymbolicLink()) Fs.symlinkSync(Fs.readlinkSync(at), `${root}/in/copy`)
      else Fs.cpSync(at, `${root}/in/copy`, { recursive: true, verbatimSymlinks: true })
    },
    but: (row) =>
      belowItself(row) ?? (row.leads.is === "directory" && !isLink(row) && within(row) ? "InvalidArgument" : undefined)
  },
  {
    name: "move",
    ours: (fs, path) => Effect.asVoid(fs.move(path, "empty/moved")),
    plain: (at, root) => {
      if (at === root) throw Object.assign(new Error("EACCES"), { code: "EACCES" })
      Fs.renameSync(at, `${root}/empty/moved`)
    },
    but: (row) =>
      belowItself(row) ??
      (row.leads.is === "directory" && row.leads.at === "empty" && !isLink(row) ? "InvalidArgument" : undefined)
  }
]

const within = ({ leads }: Row): boolean => "at" in leads && (leads.at === "." || leads.at === "in")

const attempt = (run: () => unknown): unknown => {
  try {
    return { answers: run() }
  } catch (error) {
    return { fails: faultOf(error)._tag }
  }
}

/** Replaces the root in the text of a link, because each side has another root. */
const rootless = (outcome: unknown, root: string): unknown => {
  const text = (outcome as { readonly answers?: unknown }).answers
  return typeof text === "string" ? { answers: text.replace(root, "$ROOT") } : outcome
}

/** Returns the tree without times, which two calls in sequence cannot share. */
const left = (root: string): unknown =>
  Object.entries(seen(root))
    .map(([path, { mode, what }]) => [path, what.replace(root, "$ROOT"), what.startsWith(">") ? 0 : mode.toString(8)])
    .sort()

/** Tests whether the row is comparable. Too long names count only where the disk itself limits them. */
const isOrdinary = (layout: Layout, { leads }: Row): boolean =>
  leads.is !== "escape" && leads.is !== "invalid" && (leads.is !== "tooLong" || layout.isHostOnly === true)

/** Tests for a slash after a file's name in a link's text. The system requires a directory there; the library ignores it. */
const isSlashed = ({ links }: Layout): boolean => Object.values(links).some((text) => /[^/]\/\.?$/.test(text))

/** Runs every second case, alternating between rows; the soak runs all. */
const oneIn = isSoak ? 1 : 2

let turn = 0

const triedPairs = new Set<Pair>()

const runLayout = Effect.fnUntraced(function* (layout: Layout) {
  const top = yield* directory
  const tree = complete({ ...base, ...layout.links })
  const [mine, theirs] = [`${top}/mine`, `${top}/theirs`]
  const reset = (): void => {
    for (const root of [mine, theirs]) {
      Fs.rmSync(root, { recursive: true, force: true })
      Fs.mkdirSync(root)
      plant(root, spelt(tree, { $ROOT: root }))
      for (const [path, what] of Object.entries(tree).reverse()) {
        if (!isLinkText(what)) Fs.utimesSync(`${root}/${path}`, 1_000_000_000, 1_000_000_000)
      }
      Fs.utimesSync(root, 1_000_000_000, 1_000_000_000)
    }
  }
  const wrong: Array<string> = []
  for (const row of layout.rows.filter((row) => isOrdinary(layout, row))) {
    for (const pair of pairs) {
      if (turn++ % oneIn !== 0) continue
      triedPairs.add(pair)
      reset()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fs = make(yield* PosixHost.make({ root: mine }))
          const ours = yield* Effect.match(pair.ours(fs, row.path), {
            onSuccess: (answers): unknown => ({ answers }),
            onFailure: ({ _tag }): unknown => ({ fails: _tag })
          })
          const path = normal(row.path)!
          const plain = attempt(() => pair.plain(path === "." ? theirs : `${theirs}/${path}`, theirs))
          const otherwise = pair.but?.(row)
          const at = `${pair.name} ${JSON.stringify(row.path).slice(0, 120)}`
          try {
            assert.deepStrictEqual(
              rootless(ours, mine),
              otherwise === undefined ? rootless(plain, theirs) : { fails: otherwise },
              at
            )
            if (otherwise === undefined) assert.deepStrictEqual(left(mine), left(theirs), `${at}: the tree afterwards`)
          } catch (error) {
            wrong.push(`${String((error as Error).message)}, node:fs ${JSON.stringify(plain).slice(0, 200)}`)
          }
        })
      )
    }
  }
  if (wrong.length > 0) assert.fail(`${wrong.length} are wrong\n${wrong.slice(0, 40).join("\n")}`)
})

describe("calls that do not escape give the results of node:fs for", () => {
  for (const layout of layouts) {
    if (!layout.rows.some((row) => isOrdinary(layout, row)) || isSlashed(layout)) continue
    it.live(layout.claim, () => Effect.scoped(runLayout(layout)))
  }

  it("every operation of the table", () => assert.strictEqual(triedPairs.size, pairs.length))
})
