/**
 * What is attacked and what is looked at: a root, a tree outside of it that nothing may touch, and the directories that stand, now
 * one and now the other, at the path that is attacked. The tests hold those by descriptors and look at them through `/proc/self/fd`,
 * so that no swap can mislead the judge.
 */
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Attack } from "./attackers.ts"

/** What the contents of a directory are made of. `s` is the secret. */
export type Mark = "x" | "y" | "s"

/** How many attempts may run at once: each has names of its own. */
export const slots = 3

const extra: Record<Mark, number> = { x: 0, y: 100, s: 300 }

export const fileText = (mark: Mark): string => mark.repeat(1000 + extra[mark])
/** Larger than what the port reads in one piece, so that it goes through the thread pool. */
export const largeText = (mark: Mark): string => mark.repeat(100_000 + extra[mark])
export const linkText = (mark: Mark): string => `${mark}-target`

/** Stands only outside: whoever sees it was there. */
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

/** A tree of three files and two directories more, which a recursive call has to go through. */
export const makeTree = (at: string, mark: Mark): void => {
  Fs.mkdirSync(join(at, "deep", "er"), { recursive: true })
  for (const leaf of ["leaf", "deep/leaf", "deep/er/leaf"]) Fs.writeFileSync(join(at, leaf), fileText(mark))
}

/** Everything that a call which removes, moves or replaces would find if it were led astray. */
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

/** For holding a link itself. Node does not name it. */
const O_PATH = 0o10000000

/** What is written to or listed; the names in a directory are watched by the directory. */
const often = /(?:out|bystander|r|sub|tree-\d|\/(?:file|old-\d))$/

const everything = (directory: string): Array<string> => [
  directory,
  ...Fs.readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name))
]

/** Without times, which are compared apart. */
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
 * A tree that nothing may touch, nor read unless it is `isReadable`. The time of a change cannot be turned back, and the system notes it for whatever is written, renamed,
 * removed, linked or made there; the time of the last access shows what was read. So comparing times misses nothing.
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
    // The system notes an access only where the last one is older than the last change.
    for (const path of paths) Fs.lutimesSync(path, 0, 0)
    held = paths.map((path) => {
      const isLink = Fs.lstatSync(path).isSymbolicLink()
      const descriptor = Fs.openSync(path, isLink ? O_PATH | Fs.constants.O_NOFOLLOW : Fs.constants.O_RDONLY)
      return { path, descriptor, before: times(descriptor, isReadable), isOften: often.test(path) }
    })
  }
  rebuild()

  return {
    /** The first thing that is not as it was. Not all are looked at after every call, since nothing that was touched gets untouched. */
    touched: (all: boolean): string | undefined => {
      for (const { before, descriptor, isOften, path } of held) {
        if (!all && !isOften) continue
        const now = times(descriptor, isReadable)
        if (now !== before) return `${path} was touched: ${before}; now ${now}`
      }
      return undefined
    },
    /** Byte for byte. Reads everything, so it has to be rebuilt before it is used again. */
    differs: (): string | undefined => {
      const found = contents(directory)
      return found === expected ? undefined : `${directory} differs:\n${found.slice(0, 2000)}`
    },
    rebuild,
    release
  }
}

export type Untouchable = ReturnType<typeof untouchable>

/** A directory that may stand at the attacked path, wherever it is now. */
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
  /** Stands inside, and is never swapped: what is done to it was meant for another. */
  readonly bystander: Untouchable
  /** The path that operations go through, from the root. */
  readonly at: string
  /** Empty where new directories are made all the time. */
  readonly places: ReadonlyArray<Place>
  readonly attack: Attack
  readonly release: () => void
}

export interface Scene {
  readonly name: string
  /** Paths go through a directory `r` below the attacked name. */
  readonly isNested?: boolean
  /** Given the top, makes what stands inside, and says what is attacked. */
  readonly build: (top: string) => { readonly at: string; readonly places: ReadonlyArray<Place>; readonly attack: Attack }
}

/** `top/root`, `top/out` and what the scene adds. */
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

/** Made, filled, and held. */
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

/** Those in which what is attacked is a directory on the way. */
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
  name: "a directory is removed, is a link, is made anew",
  build: (top) => {
    const at = join(top, "root", "d")
    Fs.mkdirSync(at)
    Fs.mkdirSync(join(top, "root", "grave"))
    return { at: "d", places: [], attack: ["recreate", at, join(top, "out"), join(top, "root", "grave")] }
  }
}

/** Those in which what is attacked is the last name of the path, and operations may take it away. */
export const flipped: Scene = {
  name: "a file is a link to a file outside, and a file again",
  build: (top) => {
    const [file, spare] = [join(top, "root", "f"), join(top, "root", "spare")]
    Fs.writeFileSync(spare, fileText("x"))
    Fs.linkSync(spare, file)
    return { at: "f", places: [], attack: ["flip", file, join(top, "out", "file"), spare] }
  }
}

/** `at` holds what is swapped; a call that goes through all of it meets the link on its way down. */
export const branch: Scene = {
  name: "a directory inside the tree that a call works on and a link to the outside change places",
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
  // From here on there is nothing to exchange with, until the last step.
  if (isThere(link)) Fs.renameSync(link, parked)
  for (const path of [parked, outer]) Fs.rmSync(path, { recursive: true, force: true })
  Fs.mkdirSync(outer)
  Fs.writeFileSync(join(outer, "a"), fileText("x"))
  makeTree(swapped, "x")
  Fs.writeFileSync(join(outer, "leaf"), fileText("x"))
  Fs.symlinkSync(out, link)
}

const isWhole = (root: string): boolean =>
  ["outer/a", "outer/leaf", "outer/d", "swap"].every((name) => isThere(join(root, name))) &&
  ["outer/d", "swap"].some((name) => isThere(join(root, name, "deep/er/leaf")))

/** Puts back what operations have taken away. An attacker in three steps may come in between; then once more. */
export const growBranch = (root: string, out: string): void => {
  for (let left = 1000; !isWhole(root); left--) {
    try {
      plant(root, out)
    } catch (error) {
      if (left === 0) throw error
    }
  }
}
