/**
 * The ground of an attack: a root, a tree outside that no call may touch, and the directories that take turns at the attacked
 * path. The tests open these directories, and read them through `/proc/self/fd`, so that no swap misleads the checks.
 */
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Attack } from "./attackers.ts"

export type Mark = "x" | "y" | "s"

/** The number of attempts that may run at the same time, each with its own names. */
export const slots = 3

const extra: Record<Mark, number> = { x: 0, y: 100, s: 300 }

export const fileText = (mark: Mark): string => mark.repeat(1000 + extra[mark])
/** Returns a text larger than one read of the port, so that the thread pool reads it. */
export const largeText = (mark: Mark): string => mark.repeat(100_000 + extra[mark])
export const linkText = (mark: Mark): string => `${mark}-target`

/** A name that exists only outside. A call whose result contains this name has read the outside. */
export const secretName = "secret"

export const names = (mark: Mark): ReadonlyArray<string> =>
  ["file", "large", "ln", `mark-${mark}`, "sub", ...(mark === "s" ? [secretName] : [])].sort()

const fill = (directory: string, mark: Mark): void => {
  Fs.writeFileSync(join(directory, "file"), fileText(mark))
  Fs.writeFileSync(join(directory, "large"), largeText(mark))
  Fs.writeFileSync(join(directory, `mark-${mark}`), mark)
  Fs.symlinkSync(linkText(mark), join(directory, "ln"))
  Fs.mkdirSync(join(directory, "sub"))
  Fs.writeFileSync(join(directory, "sub", "file"), fileText(mark))
}

export const makeTree = (at: string, mark: Mark): void => {
  Fs.mkdirSync(join(at, "deep", "er"), { recursive: true })
  for (const leaf of ["leaf", "deep/leaf", "deep/er/leaf"]) Fs.writeFileSync(join(at, leaf), fileText(mark))
}

/** Creates every entry that a misled call would remove, move or replace. */
const bait = (directory: string): void => {
  Fs.writeFileSync(join(directory, secretName), fileText("s"))
  for (let slot = 0; slot < slots; slot++) {
    for (const name of ["victim", "moving", "old"]) Fs.writeFileSync(join(directory, `${name}-${slot}`), fileText("s"))
    Fs.mkdirSync(join(directory, `hollow-${slot}`))
    makeTree(join(directory, `tree-${slot}`), "s")
  }
}

interface Held {
  readonly path: string
  readonly descriptor: number
  readonly before: string
  readonly isOften: boolean
}

/** The flag to hold a link itself, which Node does not name. */
const O_PATH = 0o10000000

/** Matches the entries that calls would write to or list. A change of other names shows in their directory. */
const often = /(?:out|bystander|r|sub|tree-\d|\/(?:file|old-\d))$/

const everything = (directory: string): Array<string> => [
  directory,
  ...Fs.readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name))
]

/** Returns all entries without their times, which are compared separately. */
const contents = (directory: string): string =>
  everything(directory)
    .sort()
    .map((path) => {
      const stats = Fs.lstatSync(path)
      const text = stats.isFile() ? Fs.readFileSync(path, "latin1") : stats.isSymbolicLink() ? Fs.readlinkSync(path) : ""
      return `${path} ${stats.mode} ${stats.nlink} ${stats.size} ${text}`
    })
    .join("\n")

const times = (descriptor: number, isReadable: boolean): string => {
  const { atimeNs, ctimeNs } = Fs.fstatSync(descriptor, { bigint: true })
  return isReadable ? `changed ${ctimeNs}` : `changed ${ctimeNs}, read ${atimeNs}`
}

/**
 * Removes a tree that an attacker may still change. `rmSync` fails if an entry becomes a link, or a directory gets a new
 * entry, after it was read. The removal is then repeated.
 */
export const removeAttacked = (path: string): void => {
  for (let left = 1000; ; left--) {
    try {
      return Fs.rmSync(path, { recursive: true, force: true })
    } catch (error) {
      const { code } = error as { readonly code?: string }
      if (left === 0 || (code !== "ENOTDIR" && code !== "ENOTEMPTY" && code !== "ENOENT")) throw error
    }
  }
}

/**
 * Builds a tree that no call may change, nor read unless it is `isReadable`. The change time cannot be set back, and the system
 * updates it for every write, rename, removal, link or creation. The access time shows every read. Comparing both misses
 * nothing.
 */
export const untouchable = (directory: string, build: (directory: string) => void, isReadable = false) => {
  let held: ReadonlyArray<Held> = []
  let expected = ""

  const release = (): void => {
    for (const { descriptor } of held) Fs.closeSync(descriptor)
    held = []
  }
  const rebuild = (): void => {
    release()
    Fs.rmSync(directory, { recursive: true, force: true })
    Fs.mkdirSync(directory)
    build(directory)
    expected = contents(directory)
    const paths = everything(directory)
    // The system notes an access only when the last access is older than the last change.
    for (const path of paths) Fs.lutimesSync(path, 0, 0)
    held = paths.map((path) => {
      const isLink = Fs.lstatSync(path).isSymbolicLink()
      const descriptor = Fs.openSync(path, isLink ? O_PATH | Fs.constants.O_NOFOLLOW : Fs.constants.O_RDONLY)
      return { path, descriptor, before: times(descriptor, isReadable), isOften: often.test(path) }
    })
  }
  rebuild()

  return {
    /**
     * Returns the first entry whose times changed. Only some are compared after every call, because a change never disappears.
     */
    touched: (all: boolean): string | undefined => {
      for (const { before, descriptor, isOften, path } of held) {
        if (!all && !isOften) continue
        const now = times(descriptor, isReadable)
        if (now !== before) return `${path} was touched: ${before}; now ${now}`
      }
      return undefined
    },
    /** Compares byte by byte. This reads every entry, so the tree must be rebuilt before its next use. */
    differs: (): string | undefined => {
      const found = contents(directory)
      return found === expected ? undefined : `${directory} differs:\n${found.slice(0, 2000)}`
    },
    rebuild,
    release
  }
}

export type Untouchable = ReturnType<typeof untouchable>

/** A directory that can be at the attacked path. Its descriptor finds the directory after any move. */
export interface Place {
  readonly mark: Mark
  readonly at: (name: string) => string
  readonly release: () => void
}

const hold = (path: string, mark: Mark): Place => {
  const descriptor = Fs.openSync(path, O_PATH | Fs.constants.O_DIRECTORY)
  return {
    mark,
    at: (name) => `/proc/self/fd/${descriptor}/${name}`,
    release: () => Fs.closeSync(descriptor)
  }
}

export interface Ground {
  readonly root: string
  readonly outside: Untouchable
  /** A directory inside the root that is never swapped. If it changes, a call acted on the wrong directory. */
  readonly bystander: Untouchable
  readonly at: string
  /** The places, or none where the attacker makes new directories all the time. */
  readonly places: ReadonlyArray<Place>
  readonly attack: Attack
  readonly release: () => void
}

export interface Scene {
  readonly name: string
  /** True if paths go through a directory `r` below the attacked name. */
  readonly isNested?: boolean
  /** Builds the entries inside the root and returns what the attacker swaps. */
  readonly build: (top: string) => { readonly at: string; readonly places: ReadonlyArray<Place>; readonly attack: Attack }
}

export const prepare = (top: string, { build, isNested = false }: Scene): Ground => {
  const root = join(top, "root")
  Fs.mkdirSync(root, { recursive: true })
  const outside = untouchable(join(top, "out"), (directory) => {
    fill(directory, "s")
    bait(directory)
    if (!isNested) return
    Fs.mkdirSync(join(directory, "r"))
    fill(join(directory, "r"), "s")
    bait(join(directory, "r"))
  })
  const bystander = untouchable(join(root, "bystander"), (directory) => fill(directory, "y"), true)
  const built = build(top)
  return {
    root,
    outside,
    bystander,
    ...built,
    release: () => {
      for (const each of [outside, bystander, ...built.places]) each.release()
    }
  }
}

export const inside = (path: string, mark: Mark): Place => {
  Fs.mkdirSync(path, { recursive: true })
  fill(path, mark)
  return hold(path, mark)
}

const exchanged = (name: string, at: string, link: string, target: (top: string) => string): Scene => ({
  name,
  isNested: at.endsWith("/r"),
  build: (top) => {
    const place = inside(join(top, "root", at), "x")
    const swapped = join(top, "root", at.replace(/\/r$/, ""))
    Fs.symlinkSync(target(top), join(top, "root", link))
    return { at, places: [place], attack: ["exchange", swapped, join(top, "root", link)] }
  }
})

const bounced = (name: string, away: string): Scene => ({
  name,
  build: (top) => {
    Fs.mkdirSync(join(top, away), { recursive: true })
    const place = inside(join(top, "root", "d"), "x")
    return { at: "d", places: [place], attack: ["bounce", join(top, "root", "d"), join(top, away, "d")] }
  }
})

/** The scenes in which a directory within the path is attacked. */
export const onTheWay: ReadonlyArray<Scene> = [
  exchanged("a directory and an absolute link to the outside change places", "d", "link", (top) => join(top, "out")),
  exchanged("a directory three deep and a relative link change places", "p/q/d/r", "p/q/link", () => "../../../out"),
  {
    name: "two directories change places",
    build: (top) => {
      const [a, b] = [join(top, "root", "a"), join(top, "root", "b")]
      return { at: "a", places: [inside(a, "x"), inside(b, "y")], attack: ["exchange", a, b] }
    }
  },
  bounced("a directory is moved away and back", "root/gone"),
  bounced("a directory is moved out of the root and back", "limbo")
]

export const recreated: Scene = {
  name: "a directory is removed, becomes a link, and is created again",
  build: (top) => {
    const at = join(top, "root", "d")
    Fs.mkdirSync(at)
    Fs.mkdirSync(join(top, "root", "grave"))
    return { at: "d", places: [], attack: ["recreate", at, join(top, "out"), join(top, "root", "grave")] }
  }
}

/** The scene in which the last name of the path is attacked, and operations may remove it. */
export const flipped: Scene = {
  name: "a file becomes a link to a file outside, and a file again",
  build: (top) => {
    const [file, spare] = [join(top, "root", "f"), join(top, "root", "spare")]
    Fs.writeFileSync(spare, fileText("x"))
    Fs.linkSync(spare, file)
    return { at: "f", places: [], attack: ["flip", file, join(top, "out", "file"), spare] }
  }
}

/** The scene in which a directory below `at` is swapped, so that a recursive call meets the link. */
export const branch: Scene = {
  name: "a directory in the tree of a call and a link to the outside change places",
  build: (top) => {
    const root = join(top, "root")
    growBranch(root, join(top, "out"))
    return { at: "outer", places: [], attack: ["exchange", join(root, "outer", "d"), join(root, "swap")] }
  }
}

const isThere = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined

const plant = (root: string, out: string): void => {
  const [outer, swapped, link, parked] = ["outer", "outer/d", "swap", "parked"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string
  ]
  if (isThere(link)) Fs.renameSync(link, parked)
  for (const path of [parked, outer]) removeAttacked(path)
  Fs.mkdirSync(outer)
  Fs.writeFileSync(join(outer, "a"), fileText("x"))
  makeTree(swapped, "x")
  Fs.writeFileSync(join(outer, "leaf"), fileText("x"))
  Fs.symlinkSync(out, link)
}

const isWhole = (root: string): boolean =>
  ["outer/a", "outer/leaf", "outer/d", "swap"].every((name) => isThere(join(root, name))) &&
  ["outer/d", "swap"].some((name) => isThere(join(root, name, "deep/er/leaf")))

/** Restores the entries that operations removed. An attacker in three steps may interfere; then it tries again. */
export const growBranch = (root: string, out: string): void => {
  for (let left = 1000; !isWhole(root); left--) {
    try {
      plant(root, out)
    } catch (error) {
      if (left === 0) throw error
    }
  }
}
