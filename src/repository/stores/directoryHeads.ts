/**
 * Heads in files. A process that replaces a head first creates an entry in the lock directory of the workspace, and then looks
 * for the entries of other processes. If there is none, no other process replaces the head until the entry is removed. The
 * entries of dead processes are ignored.
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
  refreshMillis: 10_000,
  directoryMode: 0o700
})

/** The maximum wait, in milliseconds, for another process that replaces the same head. */
const timeoutMillis = 30_000
const maxPauseMillis = 8
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

const maxShown = 10

/** Returns the error with which a list ends if files are damaged. */
const unreadable = (details: ReadonlyArray<string>): StoreError => {
  const rest = details.length - maxShown
  const detail = [...details.slice(0, maxShown), ...(rest > 0 ? [`${rest} more files`] : [])].join("; ")
  return new StoreError({ reason: "corrupt", detail })
}

export const make = ({ attempt, directory, syncNames, withDraft }: Place): Operations => {
  const top = join(directory, "heads")
  const fileOf = (workspace: string): string => `${sha256(Buffer.from(workspace))}.json`

  /** Returns the lines of a head's file, or `undefined` if the file is missing. Throws a StoreError for a damaged file. */
  const readFile = (file: string): { readonly workspace: string; readonly text: string } | undefined => {
    const found = openFile(join(top, file))
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
   * Replaces or deletes the file if its text is `expected`, and returns whether it did. Returns `undefined` if another process
   * has the lock.
   */
  const trySwap = (workspace: string, expected: string | undefined, draft: string | undefined): boolean | undefined => {
    const file = fileOf(workspace)
    const path = join(top, file)
    const lockDirectory = join(top, file.replace(/json$/, "lock"))
    if (Fs.lstatSync(lockDirectory, { throwIfNoEntry: false })?.isDirectory() === false) {
      throw foreign("replacing a head", "it has the name of a lock")
    }
    let held: ProcessLock.Held
    try {
      held = lock.add(lockDirectory, "writer")
    } catch (error) {
      if (codeOf(error) === "ENOENT" && Fs.existsSync(top)) return undefined
      throw error
    }
    try {
      if (lock.others(lockDirectory, held).length > 0) return undefined
      if (readFile(file)?.text !== expected) return false
      if (draft === undefined) Fs.unlinkSync(path)
      else Fs.renameSync(draft, path)
      return true
    } finally {
      lock.remove(held)
    }
  }

  const swapWith = (
    what: string,
    workspace: string,
    expected: string | undefined,
    draft: string | undefined
  ): Effect.Effect<boolean, StoreError> =>
    Effect.gen(function* () {
      const start = yield* Clock.currentTimeMillis
      for (;;) {
        const answer = yield* attempt(what, () => trySwap(workspace, expected, draft))
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
        // A caller with an outdated head need not write a draft.
        if ((yield* attempt(what, () => readFile(fileOf(workspace))))?.text !== expected) return false
        const isDone =
          next === undefined
            ? yield* swapWith(what, workspace, expected, undefined)
            : yield* withDraft(
                what,
                (write) => write(encode(workspace, next)),
                (draft) => swapWith(what, workspace, expected, draft)
              )
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
