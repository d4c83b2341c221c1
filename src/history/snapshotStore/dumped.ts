/**
 * Archives that belong to dumps.
 *
 * A dump of a session stores its filesystem as `{id}.fs.zip` beside `{id}.jsonl`, which names the archive by its
 * SHA-256. A store in the same directory lists and reads such an archive, but never replaces or removes it.
 */
import * as Effect from "effect/Effect"
import { basename, createHash, Fs, FsPromises } from "../../runtime/node.ts"

const archiveEnding = ".fs.zip"

/** Flags that do not follow a symlink and do not block on a pipe. */
const readFlags = Fs.constants.O_RDONLY | (Fs.constants.O_NOFOLLOW ?? 0) | (Fs.constants.O_NONBLOCK ?? 0)

const chunkSize = 65_536

/**
 * Passes the chunks of a file to `take` until it returns true. A chunk is valid only during the call. Returns false if
 * there is no such file.
 */
const readChunks = async (path: string, signal: AbortSignal, take: (piece: Buffer) => boolean): Promise<boolean> => {
  let handle: FsPromises.FileHandle
  try {
    handle = await FsPromises.open(path, readFlags)
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

/** Returns the name of the dump that owns an archive, or `undefined`. Fails with the error of the disk. */
export const dumpOf = (archive: string): Effect.Effect<string | undefined, unknown> =>
  Effect.tryPromise({
    try: async (signal) => {
      const lines = `${archive.slice(0, -archiveEnding.length)}.jsonl`
      if (!isFile(lines)) return undefined
      const hash = await hashOf(archive, signal)
      return hash !== undefined && (await containsText(lines, hash, signal)) ? basename(lines) : undefined
    },
    catch: (error) => error
  })
