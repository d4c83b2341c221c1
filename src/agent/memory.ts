/**
 * What one session knows of files: the version it last saw of each, and, while there is room, the text of versions, so that what has
 * changed since can be said.
 */
import { below, type FsPath, relative } from "../model/FsPath.ts"

export interface Memory {
  /** Whose it is: where a session works on several filesystems, it has a memory of each. */
  readonly session: object
  /** The version of a file that this session has read or written last. */
  readonly seen: (path: FsPath) => string | undefined
  readonly saw: (path: FsPath, version: string, text?: string) => void
  /** Gives a path, and every path below it, what is known of another and below that. */
  readonly carry: (from: FsPath, to: FsPath) => void
  /** Of the path and all below it. */
  readonly forget: (path: FsPath) => void
  readonly textOf: (version: string) => string | undefined
}

const maxPaths = 10_000
const maxCharacters = 8 * 1024 * 1024
const maxCharactersOfOne = 1024 * 1024

/** Lets go of what was put in first. */
const trim = <K, V>(map: Map<K, V>, isFull: () => boolean, dropped: (value: V) => void): void => {
  for (const [key, value] of map) {
    if (!isFull()) return
    map.delete(key)
    dropped(value)
  }
}

export const make = (session: object = {}): Memory => {
  const versions = new Map<FsPath, string>()
  const texts = new Map<string, string>()
  let characters = 0
  const keep = (version: string, text: string): void => {
    if (text.length > maxCharactersOfOne || texts.has(version)) return
    texts.set(version, text)
    characters += text.length
    trim(
      texts,
      () => characters > maxCharacters,
      (old) => void (characters -= old.length)
    )
  }
  const saw = (path: FsPath, version: string): void => {
    versions.delete(path)
    versions.set(path, version)
    trim(
      versions,
      () => versions.size > maxPaths,
      () => {}
    )
  }
  return {
    session,
    seen: (path) => versions.get(path),
    saw: (path, version, text) => {
      saw(path, version)
      if (text !== undefined) keep(version, text)
    },
    carry: (from, to) => {
      const known = [...versions].filter(([path]) => path === from || path.startsWith(`${from}/`))
      for (const [path, version] of known) saw(below(to, relative(from, path)), version)
    },
    forget: (path) => {
      for (const known of versions.keys()) if (known === path || known.startsWith(`${path}/`)) versions.delete(known)
    },
    textOf: (version) => texts.get(version)
  }
}
