/**
 * Heads in files. A process that replaces a head first creates an entry in the lock directory of the workspace, and then looks
 * for the entries of other processes. If there is none, no other process replaces the head until the entry is removed. The
 * entries of dead processes are ignored.
 *
 * The entry has the text of the new head, and becomes the head by a rename. So a change makes and removes few files.
 */
import type * as NodeFs from "node:fs"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { codeOf } from "../../model/realms.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import * as Host from "../../runtime/host.ts"
import { Fs, join } from "../../runtime/node.ts"
import * as ProcessLock from "../../runtime/processLock.ts"
import type { Operations } from "../HeadStore.ts"
import { StoreError } from "../errors.ts"
import { foreign, openFile, type Place } from "./directory.ts"
import * as Heads from "./heads.ts"
import * as Wakes from "./wakes.ts"

const lock = ProcessLock.make({
  ...ProcessLock.rolesOf("writer"),
  leaseMillis: 60_000,
  refreshMillis: 10_000
})

/** The maximum wait, in milliseconds, for another process that replaces the same head. */
const timeoutMillis = 30_000
const maxPauseMillis = 8
/** The maximum number of retries to enter a lock directory that other processes keep removing. */
const maxTries = 32
/** The time between two reads of a head. The system does not report all changes on all disks. */
const pollTime = "1 second"

const filePattern = /^[0-9a-f]{64}\.json$/
const maxFileBytes = 2 * Heads.maxHeadBytes

const encode = (workspace: string, text: string): Uint8Array => Buffer.from(`${JSON.stringify(workspace)}\n${text}\n`)

const parseName = (line: string | undefined): string | undefined => {
  try {
    const name: unknown = JSON.parse(line ?? "")
    return typeof name === "string" ? name : undefined
  } catch {
    return undefined
  }
}

const removeEmpty = (directory: string): void => {
  try {
    Fs.rmdirSync(directory)
  } catch {
    // Another process has an entry in the directory, or has removed the directory.
  }
}

/** The new text of a head, or no text to delete the head. With `draft`, a file of this path has the content. */
interface Next {
  readonly content?: Uint8Array | undefined
  readonly draft?: string
}

const maxShown = 10

/** Returns the error with which a list ends if files are damaged. */
const unreadable = (details: ReadonlyArray<string>): StoreError => {
  const rest = details.length - maxShown
  const detail = [...details.slice(0, maxShown), ...(rest > 0 ? [`${rest} more files`] : [])].join("; ")
  return new StoreError({ reason: "corrupt", detail })
}

export const make = ({ attempt, directory, fsync, syncNames, withDraft }: Place): Operations => {
  const top = join(directory, "heads")
  let last: { readonly workspace: string; readonly file: string } | undefined
  const fileOf = (workspace: string): string => {
    if (last?.workspace !== workspace) last = { workspace, file: `${sha256(Buffer.from(workspace))}.json` }
    return last.file
  }

  /** Returns the lines of a head's file, or `undefined` if the file is missing. Throws a StoreError for a damaged file. */
  const readFile = (
    file: string,
    path = join(top, file)
  ): { readonly workspace: string; readonly text: string } | undefined => {
    const found = openFile(path)
    if (found === undefined) return undefined
    try {
      const bytes = new Uint8Array(Math.min(found.size, maxFileBytes))
      const content = new TextDecoder().decode(bytes.subarray(0, Host.readAt(found.descriptor, bytes, 0)))
      const [first, text, end, ...more] = content.split("\n")
      const workspace = parseName(first)
      if (workspace === undefined || text === undefined || end !== "" || more.length > 0 || fileOf(workspace) !== file) {
        throw new StoreError({
          reason: "corrupt",
          detail: `the file heads/${file} is not the head of a workspace; restore it from a backup, or move it away`
        })
      }
      return { workspace, text }
    } finally {
      Host.closeQuietly(found.descriptor)
    }
  }

  /** The keys are names of files. */
  const wakes = Wakes.make(() => {
    let watcher: NodeFs.FSWatcher
    try {
      watcher = Fs.watch(top, { persistent: false })
    } catch {
      // The system has no watches left, or the disk does not support them. Readers then poll.
      return undefined
    }
    watcher.on("change", (_, file) => (typeof file === "string" ? wakes.wake(file) : wakes.wakeAll()))
    watcher.on("error", () => watcher.close())
    return () => watcher.close()
  })

  /**
   * Creates an entry in a lock directory, from the draft if there is one. Another process may be removing the directory, with the
   * deleted head.
   */
  const enter = (lockDirectory: string, { content, draft }: Next): ProcessLock.Held => {
    for (let left = maxTries; ; left--) {
      try {
        return draft === undefined
          ? lock.add(lockDirectory, "writer", content)
          : lock.adopt(lockDirectory, "writer", draft, content!)
      } catch (error) {
        if (codeOf(error) !== "ENOENT" || left === 0) throw error
      }
      try {
        Fs.mkdirSync(lockDirectory, 0o700)
      } catch (error) {
        if (codeOf(error) !== "EEXIST") throw error
      }
    }
  }

  /** Ends an entry that has not become the head. A draft gets its path back, for the next try. */
  const leave = (held: ProcessLock.Held, { draft }: Next): void => {
    try {
      if (draft !== undefined) Fs.renameSync(held.path, draft)
    } catch {
      // Another process has removed the entry. The next try fails, because there is no draft.
    }
    lock.remove(held)
  }

  /**
   * Moves the head to the path of the entry, so that the head is deleted with the entry. If another process has removed the entry
   * and published another head meanwhile, puts that head back and returns false.
   */
  const take = (held: ProcessLock.Held, file: string, expected: string | undefined): boolean => {
    const path = join(top, file)
    Fs.renameSync(path, held.path)
    try {
      if (readFile(file, held.path)?.text === expected) return true
    } catch {
      // The head is damaged, so it is not the expected one.
    }
    try {
      // A link replaces no head that was published in between.
      Fs.linkSync(held.path, path)
    } catch (error) {
      // Some disks have no hard links.
      if (codeOf(error) !== "EEXIST") Fs.renameSync(held.path, path)
    }
    return false
  }

  /**
   * Replaces or deletes the file if its text is `expected`, and returns whether it did. Returns `undefined` if another process has
   * the lock.
   */
  const trySwap = (workspace: string, expected: string | undefined, next: Next): boolean | undefined => {
    const file = fileOf(workspace)
    const path = join(top, file)
    const lockDirectory = join(top, file.replace(/json$/, "lock"))
    if (Fs.lstatSync(lockDirectory, { throwIfNoEntry: false })?.isDirectory() === false) {
      throw foreign("replacing a head", "it has the name of a lock")
    }
    const held = enter(lockDirectory, next)
    let isEntered = true
    let isUnused = next.content === undefined
    try {
      if (lock.others(lockDirectory, held).length > 0) return undefined
      const found = readFile(file)
      if (found?.text !== expected) {
        isUnused = found === undefined
        return false
      }
      if (next.content === undefined) return take(held, file, expected) || undefined
      lock.publish(held, path)
      isEntered = false
      return true
    } finally {
      if (isEntered) leave(held, next)
      if (isUnused) removeEmpty(lockDirectory)
    }
  }

  const swapWith = (
    what: string,
    workspace: string,
    expected: string | undefined,
    next: Next
  ): Effect.Effect<boolean, StoreError> =>
    Effect.gen(function* () {
      const start = yield* Clock.currentTimeMillis
      for (;;) {
        const answer = yield* attempt(what, () => trySwap(workspace, expected, next))
        if (answer !== undefined) return answer
        if ((yield* Clock.currentTimeMillis) - start > timeoutMillis) {
          const detail = `${what}: another process has been replacing this head for ${timeoutMillis / 1000} seconds; end that process if it is suspended`
          return yield* new StoreError({ reason: "unavailable", detail })
        }
        yield* ProcessLock.pause(yield* Random.nextBetween(0.5, maxPauseMillis))
      }
    })

  return Heads.make({
    read: (workspace) => attempt("get of a head", () => readFile(fileOf(workspace))?.text),
    swap: (workspace, expected, next) => {
      const what = next === undefined ? "delete of a head" : "compareAndSet"
      return Effect.gen(function* () {
        const content = next === undefined ? undefined : encode(workspace, next)
        // With `fsync`, write and flush a draft before taking the lock, because the disk is slow. If the head is not as
        // expected, write nothing.
        const isDraft = fsync && content !== undefined
        if (isDraft && (yield* attempt(what, () => readFile(fileOf(workspace))))?.text !== expected) return false
        const isDone = isDraft
          ? yield* withDraft(
              what,
              (write) => write(content),
              (draft) => swapWith(what, workspace, expected, { content, draft })
            )
          : yield* swapWith(what, workspace, expected, { content })
        if (isDone) {
          wakes.wake(fileOf(workspace))
          yield* syncNames(what, top)
        }
        return isDone
      })
    },
    list: Stream.unwrap(
      Effect.map(
        attempt("list of the heads", () => Fs.readdirSync(top).filter((name) => filePattern.test(name))),
        (files) => {
          const damaged: Array<string> = []
          const nameOf = (file: string): Effect.Effect<string | undefined, StoreError> =>
            Effect.catch(
              attempt(`reading heads/${file}`, () => readFile(file)?.workspace),
              (error) =>
                error.reason === "corrupt"
                  ? Effect.as(
                      Effect.sync(() => damaged.push(error.detail)),
                      undefined
                    )
                  : Effect.fail(error)
            )
          const names = Stream.filter(Stream.mapEffect(Stream.fromIterable(files), nameOf), (name) => name !== undefined)
          return Stream.concat(
            names,
            Stream.suspend(() => (damaged.length === 0 ? Stream.empty : Stream.fail(unreadable(damaged))))
          )
        }
      )
    ),
    wakes: (workspace) => Stream.merge(wakes.stream(fileOf(workspace)), Stream.tick(pollTime))
  })
}
