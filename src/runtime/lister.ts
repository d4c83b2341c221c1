/**
 * What is in directories, read one after another with synchronous calls. All is in one function, which uses nothing from outside
 * itself, so that its source can be given to a worker.
 */
import type * as Fs from "node:fs"

export interface Listing {
  /** Joined by "/", sorted by code point as if a directory's ended with a "/". */
  readonly names: string
  /** Per name: 0 file, 1 directory, 2 symlink, 3 other. */
  readonly kinds: Uint8Array<ArrayBuffer>
  /** A name holds U+FFFD, which may stand for bytes that are no text: ask again for bytes. */
  readonly isDoubtful: boolean
  /** Where it was asked for, per name: size, mode, mtimeMs, ctimeMs, inode; NaN of what had gone when it was looked at. */
  readonly stats?: Float64Array<ArrayBuffer> | undefined
}

/** `withStats`: look at each entry too. */
export type Lister = (directory: string, withStats?: boolean) => Listing | string

/** Makes what answers a directory's listing, or the code of the system's error. The last name of the path is not followed. */
export const makeLister = (
  fs: Pick<typeof Fs, "openSync" | "readdirSync" | "readlinkSync" | "lstatSync" | "closeSync" | "constants">
): Lister => {
  /** O_PATH, which node does not name. */
  const flags = 0o10000000 | fs.constants.O_DIRECTORY | fs.constants.O_NOFOLLOW

  const rank = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit)
  const byCodePoint = (self: string, that: string): number => {
    const length = Math.min(self.length, that.length)
    for (let i = 0; i < length; i++) {
      const a = self.charCodeAt(i)
      const b = that.charCodeAt(i)
      if (a !== b) return rank(a) - rank(b)
    }
    return self.length - that.length
  }
  const kindOf = (entry: Fs.Dirent): number => (entry.isFile() ? 0 : entry.isDirectory() ? 1 : entry.isSymbolicLink() ? 2 : 3)

  const listing = (entries: ReadonlyArray<Fs.Dirent>): Listing => {
    // The kind goes with the name through the sorting, behind a NUL, which is in no name and before every other character.
    const keys = entries.map((entry) => {
      const kind = kindOf(entry)
      return `${entry.name}${kind === 1 ? "/" : ""}\0${kind}`
    })
    const hasPairs = keys.some((key) => /[\ud800-\udfff]/.test(key))
    if (hasPairs) keys.sort(byCodePoint)
    else keys.sort()
    const kinds = new Uint8Array(keys.length)
    const names = keys.map((key, i) => {
      kinds[i] = key.charCodeAt(key.length - 1) - 48
      return key.slice(0, kinds[i] === 1 ? -3 : -2)
    })
    const joined = names.join("/")
    return { names: joined, kinds, isDoubtful: joined.includes("\ufffd") }
  }

  const quietly = { throwIfNoEntry: false } as const

  /** The number of this process, by which its descriptors are found faster. */
  let self = "self"
  try {
    self = fs.readlinkSync("/proc/self")
  } catch {
    // Then it is looked up each time.
  }

  /** What each is now, which may not be what it was when the directory was read. */
  const looked = (found: Listing, base: string): Listing => {
    if (found.kinds.length === 0 || found.isDoubtful) return found
    const names = found.names.split("/")
    const kinds = new Uint8Array(names.length)
    const stats = new Float64Array(5 * names.length)
    for (let i = 0; i < names.length; i++) {
      const one = fs.lstatSync(`${base}/${names[i]}`, quietly)
      stats[5 * i] = one === undefined ? Number.NaN : one.size
      if (one === undefined) continue
      kinds[i] = one.isFile() ? 0 : one.isDirectory() ? 1 : one.isSymbolicLink() ? 2 : 3
      stats[5 * i + 1] = one.mode
      stats[5 * i + 2] = one.mtimeMs
      stats[5 * i + 3] = one.ctimeMs
      stats[5 * i + 4] = one.ino
    }
    return { names: found.names, kinds, isDoubtful: false, stats }
  }

  return (directory, withStats) => {
    try {
      const descriptor = fs.openSync(directory, flags)
      try {
        const base = `/proc/${self}/fd/${descriptor}`
        const found = listing(fs.readdirSync(base, { withFileTypes: true }))
        return withStats === true ? looked(found, base) : found
      } finally {
        fs.closeSync(descriptor)
      }
    } catch (error) {
      return String((error as { readonly code?: unknown }).code ?? "EIO")
    }
  }
}
