/**
 * The filesystems on which the table of escapes runs. Each has the same tree as its root and the same entries beside
 * the root. Tests inspect these entries without the code under test.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join as joinHost } from "node:path"
import * as InMemory from "../../../src/backends/InMemory.ts"
import * as PosixHost from "../../../src/backends/PosixHost.ts"
import { subdirectory } from "../../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import { complete, file, isDirectory, isFile, isLink, join, link, textOf, type Tree } from "./tree.ts"

export interface Seen {
  readonly what: string
  readonly mode: number
  readonly modifiedAt: number
  readonly rest: string
}

export type Snapshot = Readonly<Record<string, Seen>>

export interface Ground {
  readonly fs: Algebra
  readonly inside: () => Snapshot
  readonly outside: () => Snapshot
  readonly reset: () => void
  readonly tree: Tree
  /** A text that no error may show. */
  readonly hidden: string
}

export interface Kind {
  readonly name: string
  readonly isHost: boolean
  readonly symlinks?: "report" | "refuse"
  readonly make: (tree: Tree, outside: Tree) => Effect.Effect<Ground, never, Scope.Scope>
}

const fastest = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

export const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(joinHost(Fs.realpathSync(fastest), "fs-algebra-escapes-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** Returns every entry at `top` and below, read by `node:fs` without following links. */
export const seen = (top: string, skip?: string): Snapshot => {
  const out: Record<string, Seen> = {}
  const visit = (host: string, path: string): void => {
    const { ctimeNs, dev, ino, mode, mtimeNs, nlink } = Fs.lstatSync(host, { bigint: true })
    const type = Number(mode) & Fs.constants.S_IFMT
    const what =
      type === Fs.constants.S_IFDIR
        ? "/"
        : type === Fs.constants.S_IFLNK
          ? link(Fs.readlinkSync(host))
          : file(Fs.readFileSync(host, "utf8"))
    const rest = `${dev} ${ino} ${nlink} ${ctimeNs} ${mtimeNs} ${mode}`
    out[path] = { what, mode: Number(mode) & 0o777, modifiedAt: Number(mtimeNs / 1_000_000n), rest }
    if (what !== "/") return
    for (const name of Fs.readdirSync(host)) if (host !== top || name !== skip) visit(`${host}/${name}`, join(path, name))
  }
  visit(top, ".")
  return out
}

export const plant = (top: string, tree: Tree): void => {
  for (const [path, what] of Object.entries(complete(tree))) {
    const at = `${top}/${path}`
    if (isDirectory(what)) Fs.mkdirSync(at)
    else if (isLink(what)) Fs.symlinkSync(textOf(what), at)
    else Fs.writeFileSync(at, textOf(what))
  }
}

/** Returns the tree with words such as `$ROOT` in the texts of its links replaced. */
export const spelt = (tree: Tree, words: Readonly<Record<string, string>>): Tree =>
  Object.fromEntries(
    Object.entries(complete(tree)).map(([path, what]) => [
      path,
      isLink(what) ? what.replace(/\$[A-Z]+/g, (word) => words[word] ?? word) : what
    ])
  )

/** Builds a root on the disk, as a host or as a directory of a host above it. */
const onDisk = (name: string, open: (top: string) => Effect.Effect<Algebra, unknown, Scope.Scope>): Kind["make"] =>
  Effect.fnUntraced(function* (tree, outside) {
    const top = yield* directory
    const root = `${top}/root`
    Fs.mkdirSync(root)
    plant(top, outside)
    const descriptor = yield* Effect.acquireRelease(
      Effect.sync(() => Fs.openSync(`${top}/outside`, "r")),
      (descriptor) => Effect.sync(() => Fs.closeSync(descriptor))
    )
    const here = spelt(tree, { $ROOT: root, $OUT: `${top}/outside`, $FD: String(descriptor) })
    const reset = (): void => {
      for (const entry of Fs.readdirSync(root)) Fs.rmSync(`${root}/${entry}`, { recursive: true })
      Fs.chmodSync(root, 0o755)
      plant(root, here)
    }
    reset()
    const fs = yield* Effect.orDie(open(top))
    if (fs.name !== name) return yield* Effect.die(`${fs.name} is not ${name}`)
    return { fs, tree: here, hidden: top, reset, inside: () => seen(root), outside: () => seen(top, "root") }
  })

const posixHost = (options: Omit<PosixHost.PosixHostOptions, "root"> = {}): Kind["make"] =>
  onDisk("PosixHost", (top) => Effect.map(PosixHost.make({ root: `${top}/root`, ...options }), make))

export const inObjects = (tree: Tree): InMemory.Tree => {
  const out: Record<string, unknown> = {}
  for (const [path, what] of Object.entries(complete(tree))) {
    const names = path.split("/")
    let at = out
    for (const name of names.slice(0, -1)) at = at[name] as Record<string, unknown>
    at[names.at(-1)!] = isDirectory(what) ? {} : isFile(what) ? textOf(what) : { link: textOf(what) }
  }
  return out as InMemory.Tree
}

const textIn = (port: Backend, at: string, size: number): Effect.Effect<string, unknown> =>
  Effect.scoped(
    Effect.flatMap(port.open(at as FsPath), (handle) =>
      Effect.map(handle.read(0, size), (bytes) => Buffer.from(bytes).toString())
    )
  )

/** Returns every entry in memory, read by the primitives of the port, which follow no link. */
const seenIn = (port: Backend, top: string, skip?: string): Snapshot => {
  const out: Record<string, Seen> = {}
  const visit = Effect.fnUntraced(function* (at: string, path: string): Effect.fn.Return<void, unknown> {
    const stat = (yield* port.stat(at as FsPath))!
    const what =
      stat.kind === "directory"
        ? "/"
        : stat.kind === "symlink"
          ? link(yield* port.links!.read(at as FsPath))
          : file(yield* textIn(port, at, stat.sizeBytes))
    const modifiedAt = DateTime.toEpochMillis(stat.modifiedAt!)
    const createdAt = stat.createdAt === undefined ? "" : DateTime.toEpochMillis(stat.createdAt)
    out[path] = { what, mode: stat.mode!, modifiedAt, rest: `${createdAt} ${modifiedAt} ${stat.mode}` }
    if (stat.kind !== "directory") return
    for (const { name } of yield* port.list(at as FsPath)) {
      if (at !== top || name !== skip) yield* visit(join(at, name), join(path, name))
    }
  })
  Effect.runSync(visit(top, "."))
  return out
}

/** Builds a root in memory. A reset replaces the whole memory, and `fs` is always the newest one. */
const inMemory = (top: "." | "root"): Kind["make"] =>
  Effect.fnUntraced(function* (tree, outside) {
    const here = spelt(tree, { $ROOT: "/fs/root", $OUT: "/fs/outside", $FD: "7" })
    const all: Tree =
      top === "."
        ? here
        : {
            ...complete(outside),
            root: "/",
            ...Object.fromEntries(Object.entries(here).map(([path, what]) => [`root/${path}`, what]))
          }
    const content = inObjects(all)
    const made = Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: content })
      const fs = make(port)
      return { port, fs: top === "." ? fs : yield* subdirectory(top)(fs) }
    })
    let now = yield* Effect.orDie(made)
    return {
      get fs() {
        return now.fs
      },
      tree: here,
      hidden: "/fs/",
      reset: () => {
        now = Effect.runSync(Effect.orDie(made))
      },
      inside: () => seenIn(now.port, top),
      outside: () => (top === "." ? {} : seenIn(now.port, ".", "root"))
    }
  })

export const kinds: ReadonlyArray<Kind> = [
  { name: "PosixHost", isHost: true, make: posixHost() },
  {
    name: "a directory of a PosixHost",
    isHost: true,
    make: onDisk("PosixHost", (top) =>
      Effect.flatMap(PosixHost.make({ root: top }), (port) => subdirectory("root")(make(port)))
    )
  },
  { name: "InMemory", isHost: false, make: inMemory(".") },
  { name: "a directory of an InMemory", isHost: false, make: inMemory("root") },
  { name: "PosixHost that refuses links", isHost: true, symlinks: "refuse", make: posixHost({ symlinks: "refuse" }) },
  { name: "PosixHost that reports links", isHost: true, symlinks: "report", make: posixHost({ symlinks: "report" }) }
]
