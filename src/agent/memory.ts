/**
 * Records which version of a file a session has seen last, and the recent texts. Both have a limit, beyond which the oldest are
 * forgotten. The texts show which lines changed since a file was read.
 */
import { below, type FsPath, relative } from "../model/FsPath.ts"

export interface Memory {
  readonly session: object
  /** False if the memory is discarded after the call, because the client has no session. */
  readonly isKept: boolean
  readonly seen: (path: FsPath) => string | undefined
  readonly saw: (path: FsPath, version: string, text?: string) => void
  readonly carry: (from: FsPath, to: FsPath) => void
  readonly forget: (path: FsPath) => void
  readonly textOf: (version: string) => string | undefined
}

const maxPaths = 10_000
const maxCharacters = 8 * 1024 * 1024
const maxCharactersPerText = 1024 * 1024

const dropOldest = <K, V>(map: Map<K, V>, isFull: () => boolean, dropped: (value: V) => void): void => {
  for (const [key, value] of map) {
    if (!isFull()) return
    map.delete(key)
    dropped(value)
  }
}

export const make = (session: object = {}, isKept = true): Memory => {
  const versions = new Map<FsPath, string>()
  const texts = new Map<string, string>()
  let characters = 0
  const keepText = (version: string, text: string): void => {
    if (text.length > maxCharactersPerText) return
    // A repeated version becomes the most recent version. The text of a repeated version may differ, because the same bytes can
    // be read in several encodings.
    characters -= texts.get(version)?.length ?? 0
    texts.delete(version)
    texts.set(version, text)
    characters += text.length
    dropOldest(
      texts,
      () => characters > maxCharacters,
      (old) => void (characters -= old.length)
    )
  }
  const saw = (path: FsPath, version: string): void => {
    versions.delete(path)
    versions.set(path, version)
    dropOldest(
      versions,
      () => versions.size > maxPaths,
      () => {}
    )
  }
  return {
    session,
    isKept,
    seen: (path) => versions.get(path),
    saw: (path, version, text) => {
      saw(path, version)
      const known = text ?? texts.get(version)
      if (known !== undefined) keepText(version, known)
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
