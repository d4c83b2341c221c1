/** The kernel fails each system call of an operation in turn, on a real disk. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Child, spawned } from "./child.ts"
import { fastDirectory, has, needs, picture, plantAt } from "./ground.ts"
import { extra } from "./large.ts"
import { changing, type Failure, type Operation, trees, writing } from "./operations.ts"
import type { Answer } from "./program.ts"
import { isOurs, type Site, tracer, type Tracer } from "./tracer.ts"
import { isSoak } from "../runs.ts"

type Tree = Record<string, string>

interface Bench extends Tracer {
  child: Child
  readonly root: string
}

const bench: Effect.Effect<Bench, never, Scope.Scope> = Effect.gen(function* () {
  const at = yield* fastDirectory
  const root = join(at, "root")
  Fs.mkdirSync(root)
  return { ...tracer(at), child: yield* spawned(), root }
})

/** Resets the tree and opens a new filesystem on it. Returns the files that the previous filesystem left open. */
const anew = ({ child, root }: Bench, durability: "none" | "full"): Effect.Effect<ReadonlyArray<string>> =>
  Effect.suspend(() => {
    for (const name of Fs.readdirSync(root)) Fs.rmSync(join(root, name), { recursive: true })
    plantAt(root)
    return Effect.map(child.ask({ open: root, options: { durability } }), ({ left }) => left ?? [])
  })

const isTemporary = (path: string): boolean => path.includes(".~fsa-")

const visible = (tree: Tree): Tree => Object.fromEntries(Object.entries(tree).filter(([path]) => !isTemporary(path)))

const isSame = (one: Tree, other: Tree): boolean =>
  Object.keys(one).length === Object.keys(other).length && Object.entries(other).every(([path, line]) => one[path] === line)

/** Tests whether a partial deletion of `d` changed nothing else. */
const isPart = (found: Tree, old: Tree): boolean =>
  Object.entries(found).every(([path, line]) => old[path] === line) &&
  Object.keys(old).every((path) => found[path] !== undefined || /^d(\/|$)/.test(path))

interface Point {
  readonly self: Operation
  readonly durability: "none" | "full"
  readonly site: Site
  readonly error: string
  readonly old: Tree
  readonly complete: Tree
}

const isAllowed = ({ complete, durability, error, old, self, site }: Point, failed: Failure | undefined, found: Tree) => {
  if (failed === undefined) {
    // A temporary file that cannot be removed stays hidden until the next cleanup.
    const isLeft =
      (site.call === "unlink" || site.call === "rmdir") && (isTemporary(site.text) || site.text.includes('.claim"'))
    return isSame(isLeft ? visible(found) : found, complete)
  }
  if (error === "EINTR") return false
  if (isSame(found, old)) return true
  // The change is done, but the disk did not confirm it.
  if (durability === "full" && isSame(found, complete)) return true
  // The change is done, but the file could not be read for its version. A stream learns the version only at the end.
  if (self.name === "appendExisting, a stream" && isSame(found, complete)) return true
  return self.name.startsWith("delete of a tree") && isPart(found, old)
}

const tags: Readonly<Record<string, ReadonlyArray<string>>> = { EIO: ["IoError"], EDQUOT: ["DiskFull"], EINTR: [] }

const isTold = ({ error }: Point, failed: Failure | undefined): boolean =>
  failed === undefined || (failed.isDeclared && tags[error]!.includes(failed._tag) && (failed.code ?? error) === error)

const takesSpace = /^(?:write|mkdir|link|symlink|rename)$/

/** Returns the errors to try at a call: EIO always, EDQUOT if the call takes space, EINTR if the call can wait. */
const errorsOf = ({ call, text }: Site): ReadonlyArray<string> => [
  "EIO",
  ...(takesSpace.test(call) || text.includes("O_CREAT") ? ["EDQUOT"] : []),
  ...(call === "write" || call === "fsync" ? ["EINTR"] : [])
]

/** Drops repeated calls on the same paths, except in the soak. */
const distinct = (sites: ReadonlyArray<Site>): ReadonlyArray<Site> => {
  if (isSoak) return sites
  const seen = new Set<string>()
  return sites.filter(({ call, text }) => {
    const names = text.match(/<[^>]*>|"[^"]*"|O_CREAT/g) ?? []
    const key = `${call} ${names.join(" ").replace(/\.~fsa-[\w-]+/g, ".~fsa")}`
    return !seen.has(key) && seen.add(key)
  })
}

let made: Bench
const scope = Scope.makeUnsafe()
const canTrace = needs("system calls that fail", () => has("strace"), "apt-get install strace")
if (canTrace) beforeAll(async () => void (made = await Effect.runPromise(Scope.provide(bench, scope))))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

interface Tried {
  readonly answer: Answer
  readonly found: Tree
  readonly left: ReadonlyArray<string>
}

/**
 * Runs one operation with one failing system call. Threads of Node make system calls of the same names, so strace may hit
 * another call or end the process. Such an attempt is repeated.
 */
const attempted = (
  self: Operation,
  durability: "none" | "full",
  site: Site,
  error: string,
  tries = 5
): Effect.Effect<Tried | undefined> =>
  Effect.gen(function* () {
    yield* anew(made, durability)
    const { answer, met } = yield* made.failing(site, error, made.child.ask({ run: self.name }))
    const found = picture(made.root)
    const left = yield* anew(made, durability)
    return met !== undefined && isOurs(met, made.root) ? { answer, found, left } : undefined
  }).pipe(
    Effect.catchDefect(() =>
      Effect.map(Scope.provide(spawned(), scope), (child) => {
        made.child = child
        return undefined
      })
    ),
    Effect.flatMap((tried) =>
      tried !== undefined || tries === 1 ? Effect.succeed(tried) : attempted(self, durability, site, error, tries - 1)
    )
  )

const sitesIn = (self: Operation, durability: "none" | "full") =>
  Effect.gen(function* () {
    yield* anew(made, durability)
    const old = picture(made.root)
    const run = Effect.map(made.child.ask({ run: self.name }), ({ failed }) => assert.isUndefined(failed))
    const sites = yield* made.sites(made.child.pid, made.root, run)
    const complete = picture(made.root)
    assert.isFalse(isSame(complete, old))
    return { complete, old, sites }
  })

interface Found {
  readonly wrong: ReadonlyArray<string>
  /** The calls that were not hit, if there are more than a busy machine can explain. */
  readonly unmet: ReadonlyArray<string>
}

const look = Effect.fnUntraced(function* (
  self: Operation,
  durability: "none" | "full",
  choose: (sites: ReadonlyArray<Site>) => ReadonlyArray<Site>
): Effect.fn.Return<Found> {
  const { complete, old, sites } = yield* sitesIn(self, durability)
  const chosen = choose(sites)
  assert.isNotEmpty(chosen)
  const wrong: Array<string> = []
  const unmet: Array<string> = []
  for (const site of chosen) {
    // The process may have been restarted, with other thread ids.
    const isMain = site.thread === sites[0]!.thread
    for (const error of errorsOf(site)) {
      const at = isMain ? { ...site, thread: made.child.pid } : site
      const tried = yield* attempted(self, durability, at, error)
      const what = `${error} ${site.call}${site.text}`
      if (tried === undefined) {
        unmet.push(`${what}: was not met, or was the end of the process`)
        continue
      }
      const { answer, found, left } = tried
      const point: Point = { self, durability, site, error, old, complete }
      if (!isTold(point, answer.failed)) wrong.push(`${what}: ${JSON.stringify(answer.failed)}`)
      if (answer.died !== undefined) wrong.push(`${what}: a defect, ${answer.died}`)
      else if (!isAllowed(point, answer.failed, found)) wrong.push(`${what}: ${JSON.stringify(found)}`)
      // When strace fails a `close`, the kernel never runs it, so one descriptor stays open.
      if (left.length > (site.call === "close" ? 1 : 0)) wrong.push(`${what}: open ${left.join()}`)
    }
  }
  // On a busy machine, calls of Node itself may hide some sites.
  return { wrong, unmet: unmet.length > 1 + chosen.length / 10 ? unmet : [] }
})

/** Repeats the search if calls of Node itself disturbed the count of the sites. */
const wrongs = (
  self: Operation,
  durability: "none" | "full",
  choose: (sites: ReadonlyArray<Site>) => ReadonlyArray<Site>,
  tries = 3
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.flatMap(look(self, durability, choose), ({ unmet, wrong }) =>
    wrong.length > 0 || unmet.length === 0 || tries === 1
      ? Effect.succeed([...wrong, ...unmet])
      : wrongs(self, durability, choose, tries - 1)
  )

const tried = [...writing, ...changing, ...trees, ...extra]

describe.runIf(canTrace)("a system call that fails in the kernel is reported and changes nothing, in each operation:", () => {
  for (const self of tried) {
    it.live(self.name, () => Effect.map(wrongs(self, "none", distinct), (wrong) => assert.deepStrictEqual(wrong, [])))
  }
})

const confirmed = new Set(["create with parents, bytes", "overwrite, a stream", "append, bytes", "move", "delete"])

const confirms = (sites: ReadonlyArray<Site>): ReadonlyArray<Site> =>
  sites.filter(
    ({ call, text }, i) => call === "fsync" || (call === "openat" && text.includes('/."')) || sites[i - 1]?.call === "fsync"
  )

describe.runIf(canTrace)("with durability full, an unconfirmed flush is reported and leaves the old or the new tree", () => {
  for (const self of [...writing, ...changing].filter(({ name }) => isSoak || confirmed.has(name))) {
    it.live(self.name, () => Effect.map(wrongs(self, "full", confirms), (wrong) => assert.deepStrictEqual(wrong, [])))
  }
})
