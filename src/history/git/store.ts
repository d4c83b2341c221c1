/**
 * A store of snapshots: a bare git repository that belongs to one user and is outside every workspace.
 *
 * An attacker may have prepared the directory, so `open` checks it. A file that could redirect git, or make git run
 * a program, must be absent or have exactly the content that this module writes.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { dirname, Fs, join, randomBytes, resolve } from "../../runtime/node.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { writeFile } from "../../runtime/atomicFile.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { type Commit, decodeCommit } from "./codec.ts"
import { isId } from "./objects.ts"
import * as Process from "./process.ts"
import * as Reader from "./reader.ts"
import { pause } from "../../runtime/processLock.ts"
import * as Turns from "./turns.ts"
import { codeOf } from "../../model/realms.ts"

export interface Store {
  readonly directory: string
  readonly packDirectory: string
  readonly git: Process.Git
  readonly reader: Reader.Reader
  readonly snapshots: Snapshots
  readonly stats: Effect.Effect<Stats, StoreFault>
  /** Reads a commit that this library wrote. Fails with "corrupt" for any other object. */
  readonly commit: (id: string) => Effect.Effect<Commit, StoreFault>
  /**
   * Runs the effect while no process removes objects from the store, not even unreachable objects.
   *
   * Code that relies on existing objects, or reads a whole tree, must look up the objects inside the effect.
   */
  readonly withoutRemoval: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StoreFault, R>
}

export interface Snapshots {
  /** Creates a reference. Fails with "refused" if the id exists, and with "corrupt" if the commit is not in the store. */
  readonly put: (id: string, commit: string) => Effect.Effect<void, StoreFault>
  readonly get: (id: string) => Effect.Effect<string | undefined, StoreFault>
  /** The snapshots whose commits are intact, sorted by creation time and then by id. */
  readonly list: Effect.Effect<ReadonlyArray<Entry>, StoreFault>
  /** The snapshots whose commit is missing or has a format that this library does not write. The contents are not checked. */
  readonly damaged: Effect.Effect<ReadonlyArray<Damaged>, StoreFault>
  /** Removes a reference and returns whether it existed. The objects of the snapshot stay until the next garbage collection. */
  readonly remove: (id: string) => Effect.Effect<boolean, StoreFault>
}

export interface Entry {
  /** The id of the snapshot: a UUID in lower case. */
  readonly id: string
  readonly commit: string
  readonly message: string
}

export interface Damaged {
  readonly id: string
  readonly detail: string
}

export interface Stats {
  /** The disk space of the whole store in bytes, including directories. */
  readonly bytes: number
  /** The number of packed and loose objects. An object in two packs counts twice. */
  readonly objects: number
  readonly snapshots: number
  readonly packs: number
}

export type Options = Pick<Process.Options, "avoid">

const headText = "ref: refs/heads/snapshots\n"

const description = "Snapshots of fs-algebra: each is a commit in refs/snapshots. Look with git log, ls-tree, diff and show.\n"

/**
 * The config file, which is written once. A later version of this library may write another text, but must accept this text.
 */
const configText = `; A store of snapshots, made by fs-algebra. It is not used any more when anything in this file is changed.
[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logallrefupdates = false
	hookspath = /dev/null
[gc]
	auto = 0
	pruneexpire = never
[maintenance]
	auto = false
`

const directories = ["objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/snapshots", "turns"]

/** The files that a store must not contain, because they configure git, add foreign objects, or hide or replace objects. */
const forbiddenFiles = [
  "commondir",
  "config.worktree",
  "shallow",
  "info/grafts",
  "objects/info/alternates",
  "objects/info/http-alternates",
  "refs/replace"
]

const refused = (directory: string, why: string): StoreFault =>
  storeFault("refused", `${directory} cannot be used as a store: ${why}`)

const isStoreFault = (value: unknown): value is StoreFault =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "StoreFault"

const fromSystemError = (directory: string, error: unknown): StoreFault => {
  const code = codeOf(error) ?? String(error)
  if (code === "ENOSPC" || code === "EDQUOT") return storeFault("io", `the disk of the store ${directory} is full`)
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    return storeFault("unavailable", `this user may not use the store ${directory} (${code})`)
  }
  if (code === "ENOENT" || code === "ENOTDIR") return storeFault("unavailable", `the store ${directory} no longer exists`)
  return storeFault("io", `the store ${directory} failed: ${error instanceof Error ? error.message : code}`)
}

export const attempt = <A>(directory: string, run: () => A): Effect.Effect<A, StoreFault> =>
  Effect.try({ try: run, catch: (error) => (isStoreFault(error) ? error : fromSystemError(directory, error)) })

const lstatIfPresent = (path: string): Fs.Stats | undefined => Fs.lstatSync(path, { throwIfNoEntry: false })

/** Creates a directory for this user only, regardless of the umask. Keeps an existing directory. */
const makeDirectory = (path: string): void => {
  try {
    Fs.mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
    return
  }
  Fs.chmodSync(path, 0o700)
}

const writeText = (directory: string, name: string, text: string): void => {
  const draft = join(directory, `tmp_${randomBytes(9).toString("hex")}`)
  writeFile(join(directory, name), text, { draft, durability: "file" })
}

/**
 * Writes the files of a new store. The config is last, because `open` completes a directory without a config, and checks a
 * directory with a config.
 */
const initialize = (directory: string): void => {
  for (const name of directories) makeDirectory(join(directory, name))
  writeText(directory, "description", description)
  writeText(directory, "HEAD", headText)
  writeText(directory, "config", configText)
}

const unfinishedNames = new Set(["objects", "refs", "turns", "description", "HEAD"])

const isUnfinished = (directory: string): boolean =>
  Fs.readdirSync(directory).every((name) => unfinishedNames.has(name) || /^tmp_[0-9a-f]{18}$/.test(name))

const checkOwner = (directory: string, path: string, isEmpty: boolean): void => {
  const stats = lstatIfPresent(path)
  if (stats === undefined || !stats.isDirectory()) throw refused(directory, `${path} is not a directory`)
  const user = process.geteuid?.()
  if (user !== undefined && stats.uid !== user) throw refused(directory, `${path} belongs to another user (${stats.uid})`)
  if ((stats.mode & 0o022) !== 0 && !isEmpty) {
    throw refused(directory, `other users may write to ${path}; run chmod 700 on it if you trust its contents`)
  }
}

/**
 * Returns the section and the key of each line. Only a message that names a changed key uses the result, so a wrong result
 * does no harm.
 */
const keysOf = (text: string): ReadonlyArray<readonly [key: string, line: string]> => {
  let section = ""
  return text.split("\n").flatMap((line) => {
    const [, name, sub, rest = line] = /^\s*\[([\w.-]+)(?:\s+"([^"]*)")?\]\s*(.*)$/.exec(line) ?? []
    if (name !== undefined) section = (sub === undefined ? name : `${name}.${sub}`).toLowerCase()
    const [, key] = /^\s*([A-Za-z][\w-]*)/.exec(rest) ?? []
    return key === undefined ? [] : [[`${section}.${key.toLowerCase()}`, rest.trim()] as const]
  })
}

const checkConfig = (directory: string): void => {
  const text = readSmall(directory, "config")
  if (text === configText) return
  const ours = new Map(keysOf(configText))
  const [key] = keysOf(text).find(([key, line]) => ours.get(key) !== line) ?? []
  throw refused(directory, `the config file was modified${key === undefined ? "" : `: ${key}`}`)
}

const readSmall = (directory: string, name: string): string => {
  const path = join(directory, name)
  const stats = lstatIfPresent(path)
  if (stats === undefined || !stats.isFile() || stats.size > 2 ** 16)
    throw refused(directory, `its file ${name} was not written by this library`)
  return Fs.readFileSync(path, "utf8")
}

/** Rejects symlinks and special files. Git could follow a symlink to files outside the store, and could block on a FIFO. */
const checkEntries = (directory: string, name: string, isDeep: boolean): void => {
  for (const entry of entriesOf(join(directory, name))) {
    const path = join(name, entry.name)
    if (entry.isSymbolicLink()) throw refused(directory, `${path} is a link`)
    if (!entry.isFile() && !entry.isDirectory()) throw refused(directory, `${path} is not a file or a directory`)
    if (isDeep && entry.isDirectory()) checkEntries(directory, path, true)
  }
}

/** Lists a directory. Returns no entries if git removed the directory. */
const entriesOf = (path: string): ReadonlyArray<Fs.Dirent> => {
  try {
    return Fs.readdirSync(path, { withFileTypes: true })
  } catch (error) {
    if (codeOf(error) === "ENOENT") return []
    throw error
  }
}

const replaceRefPrefix = "refs/replace/"

const checkPackedRefs = (directory: string): void => {
  const path = join(directory, "packed-refs")
  const stats = lstatIfPresent(path)
  if (stats === undefined) return
  if (!stats.isFile()) throw refused(directory, "packed-refs is not a file")
  if (Fs.readFileSync(path, "latin1").includes(` ${replaceRefPrefix}`))
    throw refused(directory, `packed-refs contains ${replaceRefPrefix}`)
}

const checkStore = (directory: string): void => {
  checkOwner(directory, directory, false)
  checkConfig(directory)
  if (readSmall(directory, "HEAD") !== headText) throw refused(directory, "the file HEAD was modified")
  const found = forbiddenFiles.find((name) => lstatIfPresent(join(directory, name)) !== undefined)
  if (found !== undefined) throw refused(directory, `the directory contains ${found}`)
  for (const name of directories) {
    // Create directories of references again, because git removes empty directories.
    if (name.startsWith("refs/")) makeDirectory(join(directory, name))
    checkOwner(directory, join(directory, name), false)
  }
  checkEntries(directory, "", false)
  checkEntries(directory, "objects", true)
  checkEntries(directory, "refs", true)
  checkPackedRefs(directory)
  Fs.chmodSync(directory, 0o700)
}

const prepareDirectory = (given: string): string => {
  const path = resolve(given)
  const isLink = lstatIfPresent(path)?.isSymbolicLink() === true
  if (isLink) throw refused(path, "the path is a symlink")
  if (lstatIfPresent(path) === undefined) {
    makeDirectories(dirname(path), 0o700)
    makeDirectory(path)
  }
  const directory = Fs.realpathSync(path)
  checkOwner(directory, directory, true)
  if (lstatIfPresent(join(directory, "config")) === undefined) {
    if (!isUnfinished(directory)) throw refused(directory, "the directory contains other files")
    checkOwner(directory, directory, Fs.readdirSync(directory).length === 0)
    Fs.chmodSync(directory, 0o700)
    initialize(directory)
  }
  checkStore(directory)
  return directory
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const refPrefix = "refs/snapshots/"

interface Ref {
  readonly id: string
  readonly commit: string
}

const parseRefs = (stdout: Buffer): ReadonlyArray<Ref> =>
  stdout
    .toString()
    .split("\n")
    .flatMap((line) => {
      const [name = "", commit = "", symref] = line.split(" ")
      const id = name.slice(refPrefix.length)
      return name.startsWith(refPrefix) && uuidPattern.test(id) && isId(commit) && symref === "" ? [{ id, commit }] : []
    })

const maxConcurrentReads = 64

interface CommitsRead {
  readonly intact: ReadonlyArray<Entry>
  readonly damaged: ReadonlyArray<Damaged>
}

/**
 * Returns a function that reads the commits of references. The function caches intact commits, because an object never
 * changes.
 */
const makeCommitReader = (commitOf: Store["commit"]) => {
  let known: ReadonlyMap<string, Commit> = new Map()
  const commits = (refs: ReadonlyArray<Ref>) =>
    Effect.forEach(
      refs.filter(({ commit }) => !known.has(commit)),
      ({ commit }) => Effect.map(Effect.result(commitOf(commit)), (result) => [commit, result] as const),
      { concurrency: maxConcurrentReads }
    )
  return (refs: ReadonlyArray<Ref>): Effect.Effect<CommitsRead, StoreFault> =>
    Effect.gen(function* () {
      const now = new Map<string, Commit>()
      const faults = new Map<string, string>()
      for (const [commit, result] of yield* commits(refs)) {
        if (Result.isSuccess(result)) now.set(commit, result.success)
        else if (result.failure.reason === "corrupt") faults.set(commit, result.failure.detail)
        else return yield* Effect.fail(result.failure)
      }
      for (const { commit } of refs) if (known.has(commit)) now.set(commit, known.get(commit)!)
      known = now
      const intact = refs.flatMap((ref) => (now.has(ref.commit) ? [{ ...now.get(ref.commit)!, ...ref }] : []))
      return {
        intact: intact.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)),
        damaged: refs.flatMap(({ commit, id }) => (faults.has(commit) ? [{ id, detail: faults.get(commit)! }] : []))
      }
    })
}

/** Returns the path of a file whose size in bytes is the number of removals since the last garbage collection. */
export const forgottenFile = (directory: string): string => join(directory, "forgotten")

const makeCommitLoader =
  (reader: Reader.Reader): Store["commit"] =>
  (id) =>
    Effect.flatMap(reader.object(id), ({ body, kind }) =>
      kind === "commit"
        ? Effect.mapError(Effect.fromResult(decodeCommit(body)), ({ detail }) => storeFault("corrupt", `${id}: ${detail}`))
        : Effect.fail(storeFault("corrupt", `the object ${id} is a ${kind} instead of a commit`))
    )

const makeSnapshots = (git: Process.Git, reader: Reader.Reader, commitOf: Store["commit"]): Snapshots => {
  const { directory } = git
  const refs = (pattern: string) =>
    Effect.map(git.run(["for-each-ref", "--format=%(refname) %(objectname) %(symref)", pattern]), ({ stdout }) =>
      parseRefs(stdout)
    )
  const find = (id: string): Effect.Effect<Ref | undefined, StoreFault> =>
    uuidPattern.test(id) ? Effect.map(refs(refPrefix + id), ([found]) => found) : Effect.succeed(undefined)
  const all = Effect.flatMap(refs(refPrefix), makeCommitReader(commitOf))
  const update = (command: string) =>
    Effect.uninterruptible(git.run(["update-ref", "--no-deref", "--stdin"], { input: command }))

  return {
    put: (id, commit) =>
      Effect.gen(function* () {
        if (!uuidPattern.test(id)) return yield* Effect.fail(storeFault("refused", `${JSON.stringify(id)} is not a UUID`))
        const [found] = yield* reader.sizes([commit])
        if (found?.kind !== "commit") return yield* Effect.fail(storeFault("corrupt", `the store has no commit ${commit}`))
        yield* Effect.mapError(update(`create ${refPrefix}${id} ${commit}\n`), (fault) =>
          /already exists/.test(fault.detail) ? storeFault("refused", `the snapshot ${id} already exists`) : fault
        )
      }),
    get: (id) => Effect.map(find(id), (ref) => ref?.commit),
    list: Effect.map(all, ({ intact }) => intact),
    damaged: Effect.map(all, ({ damaged }) => damaged),
    remove: (id) =>
      Effect.gen(function* () {
        const ref = yield* find(id)
        if (ref === undefined) return false
        // Count the removal before it happens. A wrong count does no harm, because it only makes a garbage collection too
        // early or too late.
        yield* Effect.ignore(attempt(directory, () => Fs.appendFileSync(forgottenFile(directory), ".", { mode: 0o600 })))
        return yield* Effect.catch(Effect.as(update(`delete ${refPrefix}${id} ${ref.commit}\n`), true), (fault) =>
          // If another process removed the reference in the meantime, ignore the failure.
          Effect.flatMap(find(id), (now) => (now === undefined ? Effect.succeed(false) : Effect.fail(fault)))
        )
      })
  }
}

const diskUsage = (path: string): number => {
  const stats = lstatIfPresent(path)
  if (stats === undefined) return 0
  let bytes = stats.blocks * 512
  if (stats.isDirectory()) for (const name of namesIn(path)) bytes += diskUsage(join(path, name))
  return bytes
}

const namesIn = (path: string): ReadonlyArray<string> => {
  try {
    return Fs.readdirSync(path)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return []
    throw error
  }
}

const makeStats = (git: Process.Git): Store["stats"] =>
  Effect.gen(function* () {
    const { stdout } = yield* git.run(["count-objects", "-v"])
    const counts = new Map(
      stdout
        .toString()
        .split("\n")
        .map((line) => line.split(": ") as [string, string])
    )
    const count = (key: string): number => Number(counts.get(key) ?? 0)
    const refs = yield* git.run(["for-each-ref", "--format=%(refname) %(objectname) %(symref)", refPrefix])
    const bytes = yield* attempt(git.directory, () => diskUsage(git.directory))
    return {
      bytes,
      objects: count("count") + count("in-pack"),
      snapshots: parseRefs(refs.stdout).length,
      packs: count("packs")
    }
  })

/** The milliseconds between two checks for a remover, and the maximum number of checks: at least 30 seconds. */
const [pollMillis, maxPolls] = [5, 6000] as const

const waitForRemovers = (directory: string, ownLock: Turns.StoreLock): Effect.Effect<void, StoreFault> =>
  Effect.gen(function* () {
    for (let i = 0; ; i++) {
      const other = yield* attempt(directory, () => Turns.findOther(directory, "remover", ownLock))
      if (other === undefined) return
      if (i === maxPolls) {
        const entry = join(Turns.directoryOf(directory), other)
        const detail = `another process has been removing objects in ${directory} for over 30 seconds; if no such process exists, remove ${entry}`
        return yield* Effect.fail(storeFault("unavailable", detail))
      }
      yield* pause(pollMillis)
    }
  })

const withoutRemovalIn =
  (directory: string): Store["withoutRemoval"] =>
  (effect) =>
    Effect.acquireUseRelease(
      attempt(directory, () => Turns.acquire(directory, "holder")),
      (ownLock) => Effect.andThen(waitForRemovers(directory, ownLock), effect),
      (ownLock) => Effect.sync(() => Turns.release(ownLock))
    )

/**
 * Opens the store in a directory. Creates the store if the directory is missing or empty, and completes an unfinished store.
 */
export const open = (given: string, options: Options = {}): Effect.Effect<Store, StoreFault, Scope.Scope> =>
  Effect.gen(function* () {
    const directory = yield* attempt(given, () => prepareDirectory(given))
    const git = yield* Process.make(directory, options)
    const reader = yield* Reader.make(git)
    const commit = makeCommitLoader(reader)
    return {
      directory,
      packDirectory: join(directory, "objects", "pack"),
      git,
      reader,
      snapshots: makeSnapshots(git, reader, commit),
      stats: makeStats(git),
      commit,
      withoutRemoval: withoutRemovalIn(directory)
    }
  })
