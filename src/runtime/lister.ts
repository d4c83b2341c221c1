/**
 * Lists directories with synchronous calls. All code is in one function without outside references, so that its source
 * can run in a worker.
 */
import type * as Fs from "node:fs"

export interface Listing {
  /** The names joined by "/", sorted by code point as if a directory's name ended with "/". */
  readonly names: string
  /** The kind of each name: 0 file, 1 directory, 2 symlink, 3 other. */
  readonly kinds: Uint8Array<ArrayBuffer>
  /**
   * True if a name contains U+FFFD, which may stand for invalid bytes. If so, the caller must list the directory as bytes.
   */
  readonly mayBeLossy: boolean
  /**
   * Five numbers for the directory, read before the listing, and then five for each name: size, mode, mtimeMs, ctimeMs,
   * inode. The first number of the directory is its device number. The size of an entry that no longer exists is NaN.
   * Present only if requested, and absent if `mayBeLossy`.
   */
  readonly stats?: Float64Array<ArrayBuffer> | undefined
}

export type Lister = (directory: string, withStats?: boolean) => Listing | string

export const makeLister = (
  fs: Pick<typeof Fs, "openSync" | "readdirSync" | "readlinkSync" | "lstatSync" | "fstatSync" | "closeSync" | "constants">
): Lister => {
  const openFlags = 0o10000000 | fs.constants.O_DIRECTORY | fs.constants.O_NOFOLLOW

  const codePointRank = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit)
  const byCodePoint = (self: string, that: string): number => {
    const length = Math.min(self.length, that.length)
    for (let i = 0; i < length; i++) {
      const a = self.charCodeAt(i)
      const b = that.charCodeAt(i)
      if (a !== b) return codePointRank(a) - codePointRank(b)
    }
    return self.length - that.length
  }
  const kindOf = (entry: Fs.Dirent): number => (entry.isFile() ? 0 : entry.isDirectory() ? 1 : entry.isSymbolicLink() ? 2 : 3)

  const listing = (entries: ReadonlyArray<Fs.Dirent>): Listing => {
    // For the sort, append the kind to the name after a NUL, which no name contains and which sorts first.
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
    return { names: joined, kinds, mayBeLossy: joined.includes("\ufffd") }
  }

  const lstatOptions = { throwIfNoEntry: false } as const

  let self = "self"
  try {
    self = fs.readlinkSync("/proc/self")
  } catch {
    // Keep `self` in the paths. The system resolves `self` at each call.
  }

  const listingWithStats = (descriptor: number, base: string): Listing => {
    const self = fs.fstatSync(descriptor)
    const found = listing(fs.readdirSync(base, { withFileTypes: true }))
    if (found.mayBeLossy) return found
    const names = found.kinds.length === 0 ? [] : found.names.split("/")
    const kinds = new Uint8Array(names.length)
    const stats = new Float64Array(5 * (names.length + 1))
    const put = (at: number, { ctimeMs, ino, mode, mtimeMs }: Fs.Stats, first: number): void => {
      stats[at] = first
      stats[at + 1] = mode
      stats[at + 2] = mtimeMs
      stats[at + 3] = ctimeMs
      stats[at + 4] = ino
    }
    put(0, self, self.dev)
    for (let i = 0; i < names.length; i++) {
      const at = 5 * (i + 1)
      const one = fs.lstatSync(`${base}/${names[i]}`, lstatOptions)
      if (one === undefined) {
        stats[at] = Number.NaN
        continue
      }
      kinds[i] = one.isFile() ? 0 : one.isDirectory() ? 1 : one.isSymbolicLink() ? 2 : 3
      put(at, one, one.size)
    }
    return { names: found.names, kinds, mayBeLossy: false, stats }
  }

  return (directory, withStats) => {
    try {
      const descriptor = fs.openSync(directory, openFlags)
      try {
        const base = `/proc/${self}/fd/${descriptor}`
        return withStats === true ? listingWithStats(descriptor, base) : listing(fs.readdirSync(base, { withFileTypes: true }))
      } finally {
        fs.closeSync(descriptor)
      }
    } catch (error) {
      return String((error as { readonly code?: unknown }).code ?? "EIO")
    }
  }
}
