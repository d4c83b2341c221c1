/**
 * The directory of the snapshots. The default directory is inside a shared directory, so a directory is used only if it belongs
 * to this user.
 *
 * Other processes may change the directory, so each call reads the directory again.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { whyInvalidFileName } from "../../model/fileName.ts"
import { codeOf } from "../../model/realms.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { unlinkQuietly } from "../../runtime/host.ts"
import { basename, createHash, type FileHandle, Fs, fsPromises, isAbsolute, join, resolve, sep } from "../../runtime/node.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { type StoreFault, storeFault } from "../errors.ts"

// A file name contains the id of the snapshot, so the id must be valid as a part of a file name.

const suffix = ".fs.zip"

/** The longest file name, in bytes, on most disks. */
const maxNameBytes = 255
const maxIdBytes = maxNameBytes - suffix.length

export const whyInvalidId = (id: string): string | undefined => {
  const why = whyInvalidFileName(id)
  if (why !== undefined) return why
  const length = Buffer.byteLength(id)
  return length > maxIdBytes ? `the id has ${length} bytes, but at most ${maxIdBytes} are allowed` : undefined
}

const nameOf = (id: string): string => id + suffix

const idOf = (name: string): string | undefined => {
  if (!name.endsWith(suffix)) return undefined
  const id = name.slice(0, -suffix.length)
  return whyInvalidId(id) === undefined ? id : undefined
}

// An archive may belong to a dump. A dump of a session is the file `{id}.jsonl` and the archive `{id}.fs.zip` of the
// filesystem. `{id}.jsonl` contains the SHA-256 of the archive. A store in the same directory lists and reads such an
// archive, but never replaces or removes it.

/** The flags that open a file without following a symlink or blocking on a pipe. */
const readFlags = Fs.constants.O_RDONLY | (Fs.constants.O_NOFOLLOW ?? 0) | (Fs.constants.O_NONBLOCK ?? 0)

const chunkSize = 65_536

/**
 * Passes the chunks of a file to `take` until `take` returns true. A chunk is valid only during the call. Returns false if the
 * path is not a file.
 */
const readChunks = async (path: string, signal: AbortSignal, take: (piece: Buffer) => boolean): Promise<boolean> => {
  let handle: FileHandle
  try {
    handle = await fsPromises().open(path, readFlags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO") return false
    throw error
  }
  try {
    if (!(await handle.stat()).isFile()) return false
    const buffer = Buffer.allocUnsafe(chunkSize)
    for (let position = 0; ;) {
      signal.throwIfAborted()
      const { bytesRead } = await handle.read(buffer, 0, chunkSize, position)
      if (bytesRead === 0 || take(buffer.subarray(0, bytesRead))) return true
      position += bytesRead
    }
  } finally {
    await handle.close()
  }
}

const hashOf = async (path: string, signal: AbortSignal): Promise<string | undefined> => {
  const hash = createHash("sha256")
  const isThere = await readChunks(path, signal, (piece) => {
    hash.update(piece)
    return false
  })
  return isThere ? hash.digest("hex") : undefined
}

const containsText = async (path: string, text: string, signal: AbortSignal): Promise<boolean> => {
  let end = ""
  let isFound = false
  await readChunks(path, signal, (piece) => {
    const seen = end + piece.toString("latin1")
    end = seen.slice(1 - text.length)
    return (isFound = seen.includes(text))
  })
  return isFound
}

const isFile = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Returns the file name of the dump that owns an archive, or `undefined` if no dump does. Fails with disk errors. */
const dumpOf = (archive: string): Effect.Effect<string | undefined, unknown> =>
  Effect.tryPromise({
    try: async (signal) => {
      const lines = `${archive.slice(0, -suffix.length)}.jsonl`
      if (!isFile(lines)) return undefined
      const hash = await hashOf(archive, signal)
      return hash !== undefined && (await containsText(lines, hash, signal)) ? basename(lines) : undefined
    },
    catch: (error) => error
  })

export interface Archive {
  readonly id: string
  readonly path: string
  readonly stat: Fs.BigIntStats
}

const diskFullCodes: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "EFBIG"])

const toStoreFault = (error: unknown): StoreFault => {
  if (codeOf(error) === undefined) throw error
  const { message } = error as Error
  return storeFault("io", diskFullCodes.has(codeOf(error)) ? `the disk is full: ${message}` : message)
}

const rethrow = (error: unknown): never => {
  throw error
}

const attempt = <A>(run: () => A): Effect.Effect<A, StoreFault> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(run())
    } catch (error) {
      return Effect.fail("_tag" in (error as object) ? (error as StoreFault) : toStoreFault(error))
    }
  })

const missingCodes: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"])

const lstatIfPresent = (path: string): Fs.BigIntStats | undefined => {
  try {
    return Fs.lstatSync(path, { bigint: true })
  } catch (error) {
    if (missingCodes.has(codeOf(error))) return undefined
    throw error
  }
}

const isForeign = ({ uid }: Fs.BigIntStats): boolean => {
  const own = process.geteuid?.()
  return own !== undefined && uid !== BigInt(own)
}

const othersWriteBit = 0o002n

const whyUntrusted = (stat: Fs.BigIntStats): string | undefined => {
  if (stat.isSymbolicLink()) return "the directory is a symlink"
  if (!stat.isDirectory()) return "the path is not a directory"
  if (isForeign(stat)) return "the directory belongs to another user"
  return (stat.mode & othersWriteBit) === 0n ? undefined : "everybody may write to the directory"
}

/**
 * Removes a trailing slash, because a path with a trailing slash follows a symlink. Keeps a relative path or a path with
 * `..`, which is refused later.
 */
const normalizeDirectory = (directory: string): string =>
  typeof directory === "string" && isAbsolute(directory) && !directory.split(sep).includes("..")
    ? resolve(directory)
    : directory

const link = (from: string, to: string): boolean => {
  try {
    Fs.linkSync(from, to)
    return true
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false
    throw error
  }
}

const nanosPerMillisecond = 1_000_000n

export class SnapshotDirectory {
  readonly directory: string
  #unregister: (() => void) | undefined

  private constructor(directory: string) {
    this.directory = normalizeDirectory(directory)
  }

  /**
   * Checks the directory, which need not exist yet. Once the directory is used, no filesystem can be opened in it during the
   * scope. Fails with "refused" if the directory violates the rules of `Options.directory`.
   */
  static make(directory: string): Effect.Effect<SnapshotDirectory, StoreFault, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.suspend(() => {
        const snapshotDirectory = new SnapshotDirectory(directory)
        return Effect.as(
          attempt(() => snapshotDirectory.#judge()),
          snapshotDirectory
        )
      }),
      (snapshotDirectory) => Effect.sync(() => snapshotDirectory.#unregister?.())
    )
  }

  #refuse(why: string): StoreFault {
    return storeFault("refused", `snapshots cannot be stored in ${JSON.stringify(this.directory)}: ${why}`)
  }

  /** Tests whether the directory exists. Throws if the directory must not be used. */
  #judge(): boolean {
    if (typeof this.directory !== "string") throw this.#refuse("the path of the directory is not a string")
    const fault = OpenRoots.reachabilityFault("directory", this.directory)
    if (fault !== undefined) throw this.#refuse(String(fault["detail"]))
    return this.#isThere()
  }

  #isThere(): boolean {
    const stat = lstatIfPresent(this.directory)
    if (stat === undefined) return false
    const why = whyUntrusted(stat)
    if (why !== undefined) throw this.#refuse(why)
    this.#unregister ??= OpenRoots.registerStore(this.directory)
    return true
  }

  get prepare(): Effect.Effect<void, StoreFault> {
    return attempt(() => {
      if (!this.#judge()) {
        makeDirectories(this.directory, 0o700)
        this.#isThere()
      }
      this.#sweep()
    })
  }

  #sweep(): void {
    for (const name of Fs.readdirSync(this.directory)) {
      const path = join(this.directory, name)
      if (TemporaryNames.isLeftover(name) && lstatIfPresent(path)?.isFile() === true) unlinkQuietly(path)
    }
  }

  get draft(): Effect.Effect<string, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => join(this.directory, TemporaryNames.make("snapshot"))),
      (path) =>
        Effect.sync(() => {
          unlinkQuietly(path)
          TemporaryNames.forget(basename(path))
        })
    )
  }

  /**
   * Publishes the draft atomically as the newest snapshot, so that snapshots of the same moment keep their order.
   *
   * Returns `undefined` if a snapshot with this id exists and `replacesExisting` is false.
   */
  publish(draft: string, id: string, replacesExisting: boolean): Effect.Effect<Archive | undefined, StoreFault> {
    return attempt(() => {
      Fs.chmodSync(draft, 0o600)
      this.#makeNewest(draft)
      const archive = { id, path: this.pathOf(id), stat: Fs.lstatSync(draft, { bigint: true }) }
      if (replacesExisting) Fs.renameSync(draft, archive.path)
      else if (!link(draft, archive.path)) return undefined
      return archive
    })
  }

  #makeNewest(draft: string): void {
    let newest = 0n
    for (const { stat } of this.#archives()) if (stat.mtimeNs > newest) newest = stat.mtimeNs
    const { atimeMs, mtimeNs } = Fs.lstatSync(draft, { bigint: true })
    if (mtimeNs > newest) return
    // Add two milliseconds, because the conversion to seconds may round down.
    Fs.utimesSync(draft, Number(atimeMs) / 1000, Number(newest / nanosPerMillisecond + 2n) / 1000)
  }

  pathOf(id: string): string {
    return join(this.directory, nameOf(id))
  }

  #archiveOf(id: string): Archive | undefined {
    const path = this.pathOf(id)
    const stat = lstatIfPresent(path)
    return stat?.isFile() === true ? { id, path, stat } : undefined
  }

  *#archives(): Generator<Archive> {
    for (const name of Fs.readdirSync(this.directory)) {
      const id = idOf(name)
      const found = id === undefined ? undefined : this.#archiveOf(id)
      if (found !== undefined) yield found
    }
  }

  find(id: string): Effect.Effect<Archive | undefined, StoreFault> {
    return attempt(() => (this.#isThere() ? this.#archiveOf(id) : undefined))
  }

  get all(): Effect.Effect<ReadonlyArray<Archive>, StoreFault> {
    return attempt(() => (this.#isThere() ? [...this.#archives()] : []))
  }

  /** Checks that the archive with this id belongs to no dump. Otherwise fails with "refused". */
  checkOwn(id: string): Effect.Effect<void, StoreFault> {
    return Effect.matchEffect(dumpOf(this.pathOf(id)), {
      onFailure: (error) => attempt<void>(() => rethrow(error)),
      onSuccess: (dump) => {
        if (dump === undefined) return Effect.void
        const shown = [nameOf(id), dump].map((name) => JSON.stringify(name))
        const detail = `the archive ${shown[0]} belongs to the session dump ${shown[1]}; choose another id or another directory`
        return Effect.fail(storeFault("refused", detail))
      }
    })
  }

  remove(id: string): Effect.Effect<boolean, StoreFault> {
    return attempt(() => {
      if (!this.#isThere() || this.#archiveOf(id) === undefined) return false
      try {
        Fs.unlinkSync(this.pathOf(id))
        return true
      } catch (error) {
        if (codeOf(error) === "ENOENT") return false
        throw error
      }
    })
  }
}
