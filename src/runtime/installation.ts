/**
 * The private directory of this installation, which holds records of running work and one secret key.
 *
 * Files in a workspace may come from strangers. So a file there is trusted only if a record in this directory names it,
 * or if its name carries a code made with the key.
 *
 * The directory is `fs-algebra` in the user's state directory. If that directory is not usable (no home, a read-only
 * disk, another owner), a private directory in the temporary directory replaces it. If neither is usable, the key
 * exists only in the memory of this process.
 */
import type { KeyObject } from "node:crypto"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { writeFile } from "./atomicFile.ts"
import { crypto, Fs, homedir, join, randomBytes, tmpdir } from "./node.ts"
import { isPrivate, makePrivateDirectory, stateDirectory, throwIfTransient } from "./privateDirectory.ts"

const readSetting = (name: string): string | undefined =>
  Effect.runSync(Effect.orElseSucceed(Config.String(name), (): string | undefined => undefined))

const homeOrEmpty = (): string => {
  try {
    return homedir()
  } catch {
    return ""
  }
}

const findDirectory = (): string | undefined => {
  const state = stateDirectory({
    platform: process.platform,
    environment: { XDG_STATE_HOME: readSetting("XDG_STATE_HOME"), LOCALAPPDATA: readSetting("LOCALAPPDATA") },
    home: homeOrEmpty()
  })
  const candidates = [
    ...(state === undefined ? [] : [join(state, "fs-algebra")]),
    join(tmpdir(), `fs-algebra-state-${process.geteuid?.() ?? "user"}`)
  ]
  return candidates.find(makePrivateDirectory)
}

let cachedDirectory: { readonly path: string | undefined } | undefined

/**
 * Returns the private directory, created with mode 0700 at the first call, or `undefined` if it cannot be created.
 *
 * Throws the system's error if descriptors or memory are exhausted.
 */
export const directory = (): string | undefined => (cachedDirectory ??= { path: findDirectory() }).path

const keyLength = 32

const readKey = (path: string): Buffer | undefined => {
  const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants
  let descriptor: number
  try {
    descriptor = Fs.openSync(path, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0))
  } catch (error) {
    throwIfTransient(error)
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

/** Publishes a complete key atomically, so that two processes that start at the same time get the same key. */
const makeKey = (path: string): Buffer | undefined => {
  try {
    const draft = `${path}.${randomBytes(9).toString("hex")}`
    // The name may be taken, by the key of another process or by another entry. `readKey` below accepts only a valid key.
    writeFile(path, randomBytes(keyLength), { draft, durability: "file", replaces: false })
  } catch (error) {
    throwIfTransient(error)
    return undefined
  }
  return readKey(path)
}

let cachedKey: KeyObject | undefined

/** Returns the key as a KeyObject. An HMAC with this object takes a tenth of the time of an HMAC with the bytes. */
const key = (): KeyObject => {
  if (cachedKey === undefined) {
    const at = directory()
    const path = at === undefined ? undefined : join(at, "key")
    const bytes = (path === undefined ? undefined : (readKey(path) ?? makeKey(path))) ?? randomBytes(keyLength)
    cachedKey = crypto().createSecretKey(bytes)
  }
  return cachedKey
}

/** Reads the key into memory, so that it is known even when no descriptor is left. Throws like `directory`. */
export const loadKey = (): void => void key()

/** Returns 32 hexadecimal digits (128 bits of HMAC-SHA-256) that only this installation can compute for the text. */
export const signName = (text: string): string => crypto().createHmac("sha256", key()).update(text).digest("hex").slice(0, 32)

export const isSignatureOf = (text: string, code: string): boolean => {
  const expected = Buffer.from(signName(text))
  const givenBytes = Buffer.from(code)
  return givenBytes.length === expected.length && crypto().timingSafeEqual(givenBytes, expected)
}
