/**
 * The private directory of this installation, in which records of running work and one secret key lie. Files in a workspace may come from
 * strangers, so a file there is obeyed only where a record in this directory names it or its name carries a code made with the key.
 *
 * The directory is `fs-algebra` in the user's state directory. Where that cannot be used (no home, a read-only disk, another owner), a
 * directory of the user's own in the temporary directory takes its place, and without that the key lives as long as the process.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import * as Fs from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { stateDirectory } from "./stateDirectory.ts"

const configured = (name: string): string | undefined =>
  Effect.runSync(Effect.orElseSucceed(Config.String(name), (): string | undefined => undefined))

const homeOrNothing = (): string => {
  try {
    return homedir()
  } catch {
    return ""
  }
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = Fs.constants

/** Windows has no such bits; the directories of a user are closed to others there by inheritance. */
const isPrivate = (stats: Fs.Stats): boolean =>
  process.geteuid === undefined || (stats.uid === process.geteuid() && (stats.mode & 0o077) === 0)

/** Makes the directory where it is missing, and returns whether it belongs to this user alone. */
const isOwned = (path: string): boolean => {
  try {
    Fs.mkdirSync(path, { recursive: true, mode: 0o700 })
    const descriptor = Fs.openSync(path, O_RDONLY | (O_DIRECTORY ?? 0) | (O_NOFOLLOW ?? 0))
    try {
      let stats = Fs.fstatSync(descriptor)
      if (process.geteuid !== undefined && stats.uid === process.geteuid() && (stats.mode & 0o077) !== 0) {
        Fs.fchmodSync(descriptor, 0o700)
        stats = Fs.fstatSync(descriptor)
      }
      return isPrivate(stats)
    } finally {
      Fs.closeSync(descriptor)
    }
  } catch {
    return false
  }
}

const find = (): string | undefined => {
  const state = stateDirectory({
    platform: process.platform,
    environment: { XDG_STATE_HOME: configured("XDG_STATE_HOME"), LOCALAPPDATA: configured("LOCALAPPDATA") },
    home: homeOrNothing()
  })
  const candidates = [
    ...(state === undefined ? [] : [join(state, "fs-algebra")]),
    join(tmpdir(), `fs-algebra-state-${process.geteuid?.() ?? "user"}`)
  ]
  return candidates.find(isOwned)
}

let found: { readonly path: string | undefined } | undefined

/** Returns the private directory of this installation, made with mode 0700 at the first call; `undefined` where none can be made. */
export const directory = (): string | undefined => (found ??= { path: find() }).path

const keyLength = 32

const readKey = (path: string): Buffer | undefined => {
  let descriptor: number
  try {
    descriptor = Fs.openSync(path, O_RDONLY | (O_NOFOLLOW ?? 0))
  } catch {
    return undefined
  }
  try {
    const stats = Fs.fstatSync(descriptor)
    if (!stats.isFile() || !isPrivate(stats) || stats.size !== keyLength) return undefined
    const bytes = Buffer.alloc(keyLength)
    return Fs.readSync(descriptor, bytes, 0, keyLength, 0) === keyLength ? bytes : undefined
  } finally {
    Fs.closeSync(descriptor)
  }
}

/** Publishes a complete key under the name, so that of two processes that start at once both end with the same one. */
const makeKey = (path: string): Buffer | undefined => {
  const draft = `${path}.${randomBytes(9).toString("hex")}`
  try {
    const descriptor = Fs.openSync(draft, O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), 0o600)
    try {
      Fs.writeSync(descriptor, randomBytes(keyLength))
      Fs.fsyncSync(descriptor)
    } finally {
      Fs.closeSync(descriptor)
    }
    try {
      Fs.linkSync(draft, path)
    } catch {
      // Another process was first, or the name is taken by something else; the read below decides.
    } finally {
      Fs.unlinkSync(draft)
    }
  } catch {
    return undefined
  }
  return readKey(path)
}

let known: Buffer | undefined

const key = (): Buffer => {
  if (known === undefined) {
    const at = directory()
    const path = at === undefined ? undefined : join(at, "key")
    known = (path === undefined ? undefined : (readKey(path) ?? makeKey(path))) ?? randomBytes(keyLength)
  }
  return known
}

/** Returns the code of a text: 32 hexadecimal digits (128 bits of HMAC-SHA-256) that only this installation can make. */
export const codeOf = (text: string): string => createHmac("sha256", key()).update(text).digest("hex").slice(0, 32)

/** Returns whether this installation made the code of this text. */
export const isCodeOf = (text: string, code: string): boolean => {
  const expected = Buffer.from(codeOf(text))
  const given = Buffer.from(code)
  return given.length === expected.length && timingSafeEqual(given, expected)
}
