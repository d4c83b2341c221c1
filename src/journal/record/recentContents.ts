import type { FsPath } from "../../model/FsPath.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { keepBytes } from "../store/entryCopies.ts"

/**
 * The contents of the latest recorded writes. The next write to the same path replaces such a content, so that both entries
 * can share one copy of its bytes.
 */
export interface RecentContents {
  readonly add: (path: FsPath, content: Uint8Array) => void
  /** Returns the recent content of the path if it has the same bytes, otherwise a copy of the bytes. */
  readonly keep: (path: FsPath, bytes: Uint8Array) => Uint8Array
}

const maxContents = 256

export const make = (): RecentContents => {
  const contents = new Map<FsPath, Uint8Array>()
  return {
    add: (path, content) => {
      contents.delete(path)
      contents.set(path, content)
      if (contents.size > maxContents) contents.delete(contents.keys().next().value!)
    },
    keep: (path, bytes) => {
      const recent = contents.get(path)
      return recent !== undefined && recent.length === bytes.length && Buffer.compare(recent, bytes) === 0
        ? recent
        : keepBytes(bytes)
    }
  }
}
