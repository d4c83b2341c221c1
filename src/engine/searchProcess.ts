/**
 * The program of a search process. The process walks directories, matches their names against the patterns, and searches their
 * files.
 *
 * Each directory that the process reads is its working directory, so a name without a slash cannot lead outside. The
 * process enters a directory with `chdir`, and then asks the system for the path of the working directory. If a component
 * of the path was replaced by a link, the system returns a different path, and the process reads nothing.
 *
 * The process leaves an unusual directory to its parent process. A directory is unusual if it cannot be read, is missing
 * or large, or has names that are not plain text. An error in a directory also makes it unusual.
 */
import { acrossLines } from "../runtime/acrossLines.ts"
import { frameOf } from "../runtime/frames.ts"
import { code as kernelCode, makePlain, makeSimd } from "../runtime/kernel.ts"
import { makeLineFinder } from "../runtime/lineFinder.ts"
import { buffer, Fs, v8, workerThreads } from "../runtime/node.ts"
import { scan } from "../runtime/scan.ts"
import { runAtOnce } from "../runtime/units.ts"
import { makeSearcher, type Search } from "../runtime/searcher.ts"
import {
  codes,
  type IgnoreFile,
  type Order,
  progressTicket,
  states,
  type TreePlace,
  type TreeReport,
  type TreeSearch
} from "../model/treeSearch.ts"
import type { PackedMatches } from "../model/search.ts"
import { compare } from "../model/unicode.ts"
import * as Ignore from "./ignore.ts"
import * as Matcher from "./matcher.ts"

const { deserialize } = v8()
const { isAscii, isUtf8 } = buffer()

// Standard input and output carry frames. All calls are synchronous.

const pause = new Int32Array(new SharedArrayBuffer(4))

const retry = (call: () => number): number => {
  for (;;) {
    try {
      return call()
    } catch (error) {
      if ((error as { readonly code?: string }).code !== "EAGAIN") throw error
      Atomics.wait(pause, 0, 0, 1)
    }
  }
}

/** Fills the buffer from standard input, or ends the process if the parent has ended. */
const receive = (bytes: Buffer): Buffer => {
  for (let at = 0; at < bytes.length;) {
    const read = retry(() => Fs.readSync(0, bytes, at, bytes.length - at, null))
    if (read === 0) process.exit(0)
    at += read
  }
  return bytes
}

const send = (value: unknown): void => {
  const frame = frameOf(value)
  for (let at = 0; at < frame.length;) at += retry(() => Fs.writeSync(1, frame, at, frame.length - at))
}

const progressMillis = 100
const progressReport: Partial<TreeReport> = { ticket: progressTicket }

const searcher = makeSearcher({
  fs: Fs,
  isAscii,
  isUtf8,
  kernel: makeSimd(kernelCode) ?? makePlain(),
  scan,
  acrossLines,
  makeLineFinder,
  now: () => performance.now()
})

interface State {
  readonly depth: number
  readonly include: Matcher.State | undefined
  readonly exclude: Matcher.State | undefined
  readonly ignore: Ignore.Rules | undefined
}

const limits = { maxPatternLength: Number.POSITIVE_INFINITY } as Parameters<typeof Matcher.compile>[2]["limits"]

const compile = (patterns: ReadonlyArray<string>, options: Omit<Matcher.CompileOptions, "argument">): Matcher.Matcher =>
  // The patterns are valid, because the parent has compiled them already.
  Matcher.compile(patterns, { ...options, argument: "pattern" }, { limits, caseSensitive: true }) as Matcher.Matcher

const levelOf = ({ bytes, names }: IgnoreFile): ReadonlyArray<Ignore.Level> => {
  const file = runAtOnce(Ignore.parseSteps(bytes, true))
  let rules: Ignore.Rules = {
    git: [{ file, positions: file.rows.start, depth: 0 }],
    own: [],
    ignoresEverything: false,
    caseSensitive: true
  }
  for (const name of names) rules = Ignore.below(rules, name)
  return rules.git
}

const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants

/** Reads an ignore file of the working directory. As in git, a file that cannot be read has no rules. */
const readIgnoreFile = (name: string, refuseHardlinks: boolean, depth: number): ReadonlyArray<Ignore.Level> => {
  try {
    const descriptor = Fs.openSync(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    try {
      const stats = Fs.fstatSync(descriptor)
      if (!stats.isFile() || stats.size > Ignore.maxFileBytes || (refuseHardlinks && stats.nlink > 1)) return []
      const file = runAtOnce(Ignore.parseSteps(Fs.readFileSync(descriptor), true))
      return file.rows.start.length === 0 ? [] : [{ file, positions: file.rows.start, depth }]
    } finally {
      Fs.closeSync(descriptor)
    }
  } catch {
    return []
  }
}

/** The maximum number of entries of a directory. Larger directories are left to the parent process. */
const maxEntries = 4096
/** The maximum number of directories whose states are kept for later jobs. */
const maxStates = 8192
/**
 * Matches control characters, the replacement character for invalid bytes, and names of temporary files. In the matched
 * text, slashes separate the names.
 */
const unusualNames = /[\x01-\x1f\x7f\ufffd]|(?:^|\/)\.~/
const surrogates = /[\ud800-\udfff]/
/** The numbers of matches and of milliseconds after which a job ends. */
const maxMatchCount = 4096
const maxJobMillis = 12

interface Listing {
  readonly names: ReadonlyArray<string>
  readonly kinds: Uint8Array
}

/** Returns the entries of the working directory in walk order, or `undefined` if a name is unusual or there are too many. */
const list = (): Listing | undefined => {
  const entries = Fs.readdirSync(".", { withFileTypes: true })
  if (entries.length > maxEntries) return undefined
  /** The kinds of the entries that are neither files nor directories. */
  let others: Map<string, number> | undefined
  // A slash after the name of a directory sorts it as the walk does. No name contains a slash.
  const names: Array<string> = []
  for (const entry of entries) {
    const { name } = entry
    if (entry.isFile()) names.push(name)
    else if (entry.isDirectory()) names.push(`${name}/`)
    else {
      names.push(name)
      others = (others ?? new Map()).set(name, entry.isSymbolicLink() ? 2 : 3)
    }
  }
  const joined = names.join("/")
  if (unusualNames.test(joined)) return undefined
  if (surrogates.test(joined)) names.sort(compare)
  else names.sort()
  const kinds = new Uint8Array(names.length)
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!
    if (name.endsWith("/")) {
      kinds[i] = 1
      names[i] = name.slice(0, -1)
    } else if (others !== undefined) kinds[i] = others.get(name) ?? 0
  }
  return { names, kinds }
}

const kindNames = ["file", "directory", "symlink", "other"] as const

interface Entries {
  readonly codes: Array<number>
  readonly names: Array<string>
}

/**
 * Replaces each series of files without a match by one entry with their count, because most files of a large search have
 * no match. The entries from `start` on contain the files of the search from `file` on.
 */
const countFilesWithoutMatch = (out: Entries, start: number, search: Search, file: number): void => {
  let end = start
  let count = 0
  const addCount = (): void => {
    if (count === 0) return
    out.codes[end] = codes.isCount
    out.names[end++] = `${count}`
    count = 0
  }
  for (let i = start; i < out.codes.length; i++) {
    const code = out.codes[i]!
    const name = out.names[i]!
    if (code === codes.isResult && search.isWithoutMatch(file++)) {
      count++
      continue
    }
    addCount()
    out.codes[end] = code
    out.names[end++] = name
  }
  addCount()
  out.codes.length = out.names.length = end
}

/** Leaves out the files without a match, which `countFilesWithoutMatch` counts. */
const onlyFound = (matches: PackedMatches): PackedMatches => {
  const { files } = matches
  let count = 0
  for (let i = 0; i < files.length; i++) if (files[i] !== 0) files[count++] = files[i]!
  return { ...matches, files: files.subarray(0, count) }
}

class RunningSearch {
  readonly #tree: TreeSearch
  readonly #refuseHardlinks: boolean
  readonly #include: Matcher.Matcher | undefined
  readonly #exclude: Matcher.Matcher | undefined
  readonly #wanted: ReadonlyArray<boolean>
  readonly #prefix: string
  readonly #start: State
  /** The states of directories that a job did not visit, without the rules of their own ignore files. */
  readonly #left = new Map<string, State>()
  /** The states of parent directories, computed from their paths, with the rules of their own ignore files. */
  readonly #above = new Map<string, State>()

  constructor(tree: TreeSearch, refuseHardlinks: boolean) {
    const { basePath, exclude, ignore, include, kinds } = tree
    this.#tree = tree
    this.#refuseHardlinks = refuseHardlinks
    this.#include = include && compile(include.patterns, { dialect: include.dialect })
    this.#exclude = exclude && compile(exclude, { rules: true })
    this.#wanted = kindNames.map((kind) => kinds.includes(kind))
    this.#prefix = basePath === "." ? "" : `${basePath}/`
    this.#start = {
      depth: 1,
      include: this.#include?.start,
      exclude: this.#exclude?.start,
      ignore: ignore && {
        git: ignore.git.flatMap(levelOf),
        own: ignore.own.flatMap(levelOf),
        ignoresEverything: ignore.ignoresEverything,
        caseSensitive: true
      }
    }
  }

  visit({ budget, directories, place, ticket }: Order & { readonly _tag: "Visit" }): TreeReport {
    const top = place.path === "/" ? "" : place.path
    const records: Array<number> = []
    const out: Entries = { codes: [], names: [] }
    const files: Array<string> = []
    const { query } = this.#tree
    const search = query && searcher.begin(query, { files, refuseHardlinks: this.#refuseHardlinks })
    const pending: Array<{ readonly path: string; readonly state: State | undefined }> = directories
      .split("\n")
      .reverse()
      .map((path) => ({ path, state: undefined }))
    const end = performance.now() + maxJobMillis
    const isThere = isSame(place)
    for (let next = pending.pop(), left = budget; next !== undefined; next = pending.pop()) {
      if (!isThere || left <= 0 || (search !== undefined && search.matches() > maxMatchCount) || performance.now() > end) {
        records.push(isThere ? states.left : states.unusual, 0, 0)
        if (next.state !== undefined) this.#keep(next.path, next.state)
        continue
      }
      const before = { items: out.codes.length, files: files.length, found: search?.found() ?? 0 }
      const below = this.#visitOne(top, next.path, next.state, out, files, search)
      const searched = search === undefined ? 0 : search.done() - before.files
      const found = search === undefined ? 0 : search.found() - before.found
      if (below === undefined) {
        out.codes.length = before.items
        out.names.length = before.items
        files.length = before.files + searched
        records.push(states.unusual, 0, found)
        continue
      }
      if (search !== undefined) countFilesWithoutMatch(out, before.items, search, before.files)
      left -= 1 + (below.entries >> 3) + searched
      records.push(states.decided, out.codes.length - before.items, found)
      for (let i = below.directories.length - 1; i >= 0; i--) pending.push(below.directories[i]!)
    }
    return {
      ticket,
      directories: new Int32Array(records),
      codes: new Uint8Array(out.codes),
      names: out.names.join("/"),
      matches: search && onlyFound(search.answer())
    }
  }

  #visitOne(
    top: string,
    path: string,
    known: State | undefined,
    out: Entries,
    files: Array<string>,
    search: Search | undefined
  ):
    | { readonly entries: number; readonly directories: ReadonlyArray<{ readonly path: string; readonly state: State }> }
    | undefined {
    try {
      const reached = known ?? this.#left.get(path) ?? this.#stateBefore(top, path)
      this.#left.delete(path)
      if (reached === undefined || !enter(top, path)) return undefined
      const listing = list()
      if (listing === undefined) return undefined
      const state = this.#withIgnoreFiles(reached, (name) => listing.names.includes(name))
      const directories = this.#decide(listing, path, state, out, files)
      if (search !== undefined) {
        const gone = search.gone()
        while (search.done() < files.length) {
          if (performance.now() > nextProgress) reportProgress()
          if (!search.next()) return undefined
        }
        if (search.gone() > gone) return undefined
      }
      return { entries: listing.names.length, directories }
    } catch {
      return undefined
    }
  }

  #decide(
    { kinds, names }: Listing,
    path: string,
    state: State,
    out: Entries,
    files: Array<string>
  ): ReadonlyArray<{ readonly path: string; readonly state: State }> {
    const include = this.#include
    const exclude = this.#exclude
    const searches = this.#tree.query !== undefined
    const directories: Array<{ readonly path: string; readonly state: State }> = []
    for (let i = 0; i < names.length; i++) {
      const name = names[i]!
      const kind = kinds[i]!
      const isDirectory = kind === 1
      let code: number = kind
      if (
        (exclude !== undefined && exclude.matches(state.exclude!, name, isDirectory)) ||
        (state.ignore !== undefined && Ignore.ignores(state.ignore, name, isDirectory))
      ) {
        code |= codes.isIgnored
      } else {
        if (this.#wanted[kind] && (include === undefined || include.matches(state.include!, name, isDirectory))) {
          code |= codes.isResult
          if (searches && kind === 0) files.push(name)
        }
        if (isDirectory) {
          const below = this.#below(state, path, name)
          if (below !== undefined) {
            code |= codes.isEntered
            directories.push(below)
          }
        }
      }
      // Report every directory, because the walk later checks whether a directory was moved.
      if (code === kind && !isDirectory) continue
      out.codes.push(code)
      out.names.push(name)
    }
    return directories
  }

  #below(state: State, path: string, name: string): { readonly path: string; readonly state: State } | undefined {
    const { from, maxDepth } = this.#tree
    if (state.depth >= maxDepth) return undefined
    const include = this.#include?.below(state.include!, name)
    if (this.#include !== undefined && include === undefined) return undefined
    const whole = path === "" ? name : `${path}/${name}`
    if (from !== undefined) {
      const key = `${this.#prefix}${whole}/`
      if (compare(key, from) < 0 && !from.startsWith(key)) return undefined
    }
    const exclude = state.exclude && this.#exclude!.below(state.exclude, name)
    const ignore = state.ignore && Ignore.below(state.ignore, name)
    return { path: whole, state: { depth: state.depth + 1, include, exclude, ignore } }
  }

  #withIgnoreFiles(state: State, has: (name: string) => boolean): State {
    const { ignore } = state
    if (ignore === undefined || ignore.ignoresEverything) return state
    const git = has(".gitignore") ? readIgnoreFile(".gitignore", this.#refuseHardlinks, 0) : []
    const own = has(".ignore") ? readIgnoreFile(".ignore", this.#refuseHardlinks, 0) : []
    return git.length + own.length === 0
      ? state
      : { ...state, ignore: { ...ignore, git: ignore.git.concat(git), own: ignore.own.concat(own) } }
  }

  #keep(path: string, state: State): void {
    if (this.#left.size >= maxStates) this.#left.clear()
    this.#left.set(path, state)
  }

  /** Returns the state of a directory without its own ignore files, or `undefined` if a directory above it has changed. */
  #stateBefore(top: string, path: string): State | undefined {
    if (path === "") return this.#start
    const slash = path.lastIndexOf("/")
    const above = path.slice(0, Math.max(slash, 0))
    let state = this.#above.get(above)
    if (state === undefined) {
      const before = this.#stateBefore(top, above)
      if (before === undefined || (before.ignore !== undefined && !enter(top, above))) return undefined
      state = this.#withIgnoreFiles(before, () => true)
      if (this.#above.size >= maxStates) this.#above.clear()
      this.#above.set(above, state)
    }
    return this.#below(state, above, path.slice(slash + 1))?.state
  }
}

/** The path of the working directory relative to the base, or `undefined` if it is outside the base. */
let here: string | undefined

/**
 * Returns a short relative path to a child or a sibling of the working directory, and `undefined` for other directories. The
 * system takes longer for a path with more components.
 */
const shortPathTo = (path: string): string | undefined => {
  if (here === undefined || path === "") return undefined
  const slash = path.lastIndexOf("/")
  const above = path.slice(0, Math.max(slash, 0))
  if (above === here) return path.slice(slash + 1)
  if (here !== "" && above === here.slice(0, Math.max(here.lastIndexOf("/"), 0))) return `../${path.slice(slash + 1)}`
  return undefined
}

/** Makes a directory the working directory. Returns false if the working directory then has a different path. */
const enter = (top: string, path: string): boolean => {
  const directory = path === "" ? top || "/" : `${top}/${path}`
  const target = shortPathTo(path) ?? directory
  here = undefined
  process.chdir(target)
  if (process.cwd() !== directory) return false
  here = path
  return true
}

/** Tests whether the path still leads to the directory that the parent process has opened. */
const isSame = ({ device, inode, path }: TreePlace): boolean => {
  try {
    const stats = Fs.lstatSync(path)
    return stats.dev === device && stats.ino === inode
  } catch {
    return false
  }
}

let nextProgress = 0
const reportProgress = (): void => {
  nextProgress = performance.now() + progressMillis
  send(progressReport)
}

/**
 * Ends this process when the parent has ended, even while a regular expression backtracks without end. Only the parent
 * has the other end of descriptor 3.
 */
const watchParent = (): void => {
  const watch = `require("node:fs").readSync(3, new Uint8Array(1)); process.kill(process.pid, "SIGKILL")`
  new (workerThreads().Worker)(watch, { eval: true, execArgv: [], env: {} }).on("error", () => {})
}
let isWatching = false

const all = new Map<number, RunningSearch>()

const serve = (): never => {
  reportProgress()
  const head = Buffer.alloc(4)
  for (;;) {
    receive(head)
    const order = deserialize(receive(Buffer.allocUnsafe(head.readUInt32LE()))) as Order
    if (order._tag === "Begin") {
      all.set(order.search, new RunningSearch(order.tree, order.refuseHardlinks))
      const budget = order.tree.query?.patternBudgetMillis ?? Number.POSITIVE_INFINITY
      if (!isWatching && budget !== Number.POSITIVE_INFINITY) watchParent()
      isWatching ||= budget !== Number.POSITIVE_INFINITY
    } else if (order._tag === "End") all.delete(order.search)
    else {
      nextProgress = performance.now() + progressMillis
      const report = all.get(order.search)!.visit(order)
      // Leave the directory, because a working directory prevents the unmounting of its disk.
      process.chdir("/")
      here = undefined
      send(report)
    }
  }
}

serve()
