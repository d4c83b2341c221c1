/**
 * Writes a draft under a temporary name, and then gives the draft its final name in one step. So every reader sees the
 * old file or the complete new file, even if this process is killed.
 *
 * The host backends do not use this module, because other processes may replace the directories in which they write.
 */
import * as Effect from "effect/Effect"
import { codeOf } from "../model/realms.ts"
import { closeQuietly, syncDirectoryNow, unlinkQuietly } from "./host.ts"
import { dirname, Fs } from "./node.ts"

/**
 * The events that a published file survives.
 *
 * - `none`: a crash of the program
 * - `file`: also a machine crash, but the name may then refer to the old file
 * - `full`: also a machine crash, and the name then refers to the new file; on Windows the same as `file`
 */
export type Durability = "none" | "file" | "full"

export interface PublishOptions {
  /** The events that the published file survives. @default "none" */
  readonly durability?: Durability | undefined
  /** True to replace an existing file. False requires a disk with hard links. @default true */
  readonly replaces?: boolean | undefined
}

export interface Draft {
  readonly path: string
  readonly descriptor: number
  /** Appends text or bytes. Throws system errors. */
  readonly write: (content: string | Uint8Array) => void
  /**
   * Closes the draft and gives it the name `target`, which must be on the same disk as the draft. Returns false if `target`
   * exists and `replaces` is false. Throws system errors.
   */
  readonly publish: (target: string, options?: PublishOptions) => boolean
  /** Closes and removes the draft, unless it was published. */
  readonly discard: () => void
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = Fs.constants

const linkIfFree = (from: string, to: string): boolean => {
  try {
    Fs.linkSync(from, to)
    return true
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
    return false
  }
}

/** Creates a draft at a path that must not exist. Throws system errors. */
export const openDraft = (path: string, mode = 0o600): Draft => {
  const descriptor = Fs.openSync(path, O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), mode)
  let isOpen = true
  let isRenamed = false
  return {
    path,
    descriptor,
    write: (content) => {
      const bytes = typeof content === "string" ? Buffer.from(content) : content
      for (let at = 0; at < bytes.length;) at += Fs.writeSync(descriptor, bytes, at)
    },
    publish: (target, { durability = "none", replaces = true } = {}) => {
      if (durability !== "none") Fs.fsyncSync(descriptor)
      isOpen = false
      // Report a failure of close, because some network disks report only here that the content was lost.
      Fs.closeSync(descriptor)
      if (replaces) {
        Fs.renameSync(path, target)
        isRenamed = true
      } else if (!linkIfFree(path, target)) return false
      if (durability === "full" && process.platform !== "win32") syncDirectoryNow(dirname(target))
      return true
    },
    discard: () => {
      if (isOpen) closeQuietly(descriptor)
      isOpen = false
      if (!isRenamed) unlinkQuietly(path)
    }
  }
}

export interface WriteOptions extends PublishOptions {
  /** The path of the draft, which must be on the same disk as the file. */
  readonly draft: string
  /** The permission bits, from which the system removes the umask. @default 0o600 */
  readonly mode?: number | undefined
}

/** Writes a whole file. Returns false if the file exists and `replaces` is false. Throws system errors. */
export const writeFile = (path: string, content: string | Uint8Array, options: WriteOptions): boolean => {
  const draft = openDraft(options.draft, options.mode)
  try {
    draft.write(content)
    return draft.publish(path, options)
  } finally {
    draft.discard()
  }
}

export const withDraft = <A, E, R, E2>(
  path: string,
  toError: (error: unknown) => E2,
  use: (draft: Draft) => Effect.Effect<A, E, R>,
  mode?: number
): Effect.Effect<A, E | E2, R> =>
  Effect.acquireUseRelease(Effect.try({ try: () => openDraft(path, mode), catch: toError }), use, (draft) =>
    Effect.sync(draft.discard)
  )
