/** The kernel refuses one system call of an operation, each in its turn: "fails at every possible point", on a real disk. */
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

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"

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

/** The tree of old, and a filesystem that has not seen it yet. Answers what the one before has left open. */
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

/** What is left of a tree that has gone in part is as it was, and all the rest too. */
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
    // What it could not take away stays hidden, and is swept.
    const isLeft =
      (site.call === "unlink" || site.call === "rmdir") && (isTemporary(site.text) || site.text.includes('.claim"'))
    return isSame(isLeft ? visible(found) : found, complete)
  }
  if (error === "EINTR") return false
  if (isSame(found, old)) return true
  // It is done, and the disk did not confirm it.
  if (durability === "full" && isSame(found, complete)) return true
  // It is done, and what stands in the file now could not be read for its version, which no stream can know before.
  if (self.name === "append to what must be there, a stream" && isSame(found, complete)) return true
  return self.name.startsWith("delete of a tree") && isPart(found, old)
}

const tags: Readonly<Record<string, ReadonlyArray<string>>> = { EIO: ["IoError"], EDQUOT: ["DiskFull"], EINTR: [] }

const isTold = ({ error }: Point, failed: Failure | undefined): boolean =>
  failed === undefined || (failed.isDeclared && tags[error]!.includes(failed._tag) && (failed.code ?? error) === error)

const takesSpace = /^(?:write|mkdir|link|symlink|rename)$/

/** EIO everywhere; a quota where something is made; a signal where the call is one that waits. */
const errorsOf = ({ call, text }: Site): ReadonlyArray<string> => [
  "EIO",
  ...(takesSpace.test(call) || text.includes("O_CREAT") ? ["EDQUOT"] : []),
  ...(call === "write" || call === "fsync" ? ["EINTR"] : [])
]

/** A call that looks again at what has been looked at before is left to the soak. */
const distinct = (sites: ReadonlyArray<Site>): ReadonlyArray<Site> => {
  if (soak) return sites
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
 * One call, in the way of which something stands once. Node's threads wake one another by system calls of the same names, so that
 * on a busy machine another call may be met, which can be the end of the process; then it is tried again.
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
  /** What could not be met, where that is more than a busy machine explains. */
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
    // The process may have begun anew, with other threads.
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
      // A close that strace refuses is one that the kernel has never seen.
      if (left.length > (site.call === "close" ? 1 : 0)) wrong.push(`${what}: open ${left.join()}`)
    }
  }
  // A busy machine may hide one of them behind calls of Node's own.
  return { wrong, unmet: unmet.length > 1 + chosen.length / 10 ? unmet : [] }
})

/** Where a call of Node's own was among those that were counted, they are counted anew. */
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

describe.runIf(canTrace)("of each operation, each system call that the kernel refuses is told, and changes nothing", () => {
  for (const self of tried) {
    it.live(self.name, () => Effect.map(wrongs(self, "none", distinct), (wrong) => assert.deepStrictEqual(wrong, [])))
  }
})

const confirmed = new Set(["create with parents, bytes", "overwrite, a stream", "append, bytes", "move", "delete"])

const confirms = (sites: ReadonlyArray<Site>): ReadonlyArray<Site> =>
  sites.filter(
    ({ call, text }, i) => call === "fsync" || (call === "openat" && text.includes('/."')) || sites[i - 1]?.call === "fsync"
  )

describe.runIf(canTrace)(
  "what the disk does not confirm (durability full) is told, and the tree is the old one or the new one",
  () => {
    for (const self of [...writing, ...changing].filter(({ name }) => soak || confirmed.has(name))) {
      it.live(self.name, () => Effect.map(wrongs(self, "full", confirms), (wrong) => assert.deepStrictEqual(wrong, [])))
    }
  }
)
