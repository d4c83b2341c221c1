/** Decides access by globs on names alone, without looking at the files. */
import * as Matcher from "../../engine/matcher.ts"
import { isFault, list } from "../../engine/options.ts"
import * as FsPath from "../../model/FsPath.ts"
import { unlimited } from "../../model/Limits.ts"
import type { Access } from "../definition.ts"

/**
 * Globs of paths, for each kind of access.
 *
 * @since 0.1.0
 */
export interface Globs {
  readonly read?: string | ReadonlyArray<string> | undefined
  readonly write?: string | ReadonlyArray<string> | undefined
  readonly delete?: string | ReadonlyArray<string> | undefined
}

/**
 * The paths that tools may read, write and delete.
 *
 * @since 0.1.0
 */
export interface AccessOptions {
  /** The only paths that are permitted. @default everything */
  readonly allow?: Globs | undefined
  /** The paths that are forbidden, even if `allow` matches them. @default nothing */
  readonly deny?: Globs | undefined
}

export interface Rules {
  readonly asFile: (access: Access, path: FsPath.FsPath) => boolean
  /** Tests a directory. A directory on the way to a permitted path may be seen and created, but not removed. */
  readonly asDirectory: (access: Access, path: FsPath.FsPath) => boolean
  /** Tests whether the access is refused for any path at all. */
  readonly restricts: (access: Access) => boolean
}

interface PathSet {
  readonly names: (path: FsPath.FsPath, isDirectory: boolean) => boolean
  /** Tests whether a glob could match something below the path. */
  readonly reaches: (path: FsPath.FsPath) => boolean
}

const compile = (globs: string | ReadonlyArray<string>, argument: string, caseSensitive: boolean): Matcher.Matcher => {
  const matcher = Matcher.compile(list(globs), { argument, strict: true }, { caseSensitive, limits: unlimited })
  if (isFault(matcher)) throw new RangeError(`access: ${argument}: ${String(matcher["detail"])}`)
  return matcher
}

const matcherSet = (matcher: Matcher.Matcher, spell: (path: string) => string): PathSet => {
  const walk = (path: FsPath.FsPath, isDirectory: boolean): { readonly named: boolean; readonly open: boolean } => {
    let state: Matcher.State | undefined = matcher.start
    const names = FsPath.segments(spell(path) as FsPath.FsPath)
    for (const [index, name] of names.entries()) {
      if (state === undefined) return { named: false, open: false }
      if (matcher.matches(state, name, index < names.length - 1 || isDirectory)) return { named: true, open: true }
      state = matcher.below(state, name)
    }
    return { named: false, open: state !== undefined }
  }
  return { names: (path, isDirectory) => walk(path, isDirectory).named, reaches: (path) => walk(path, true).open }
}

/** The spellings that a case-insensitive or normalising disk may treat as the same name. */
const spellings: ReadonlyArray<(text: string) => string> = [
  (text) => text,
  (text) => text.normalize("NFC"),
  (text) => FsPath.fold(text.normalize("NFC")),
  (text) => FsPath.fold(text.toUpperCase()).normalize("NFC")
]

const unionOf = (sides: ReadonlyArray<PathSet>): PathSet => ({
  names: (path, isDirectory) => sides.some((side) => side.names(path, isDirectory)),
  reaches: (path) => sides.some((side) => side.reaches(path))
})

const deniedBy = (globs: string | ReadonlyArray<string>, argument: string, caseSensitive: boolean): PathSet => {
  const given = compile(globs, argument, caseSensitive)
  if (caseSensitive) return matcherSet(given, (path) => path)
  const respelt = spellings.map((spell) => compile(list(globs).map(spell), argument, false))
  return unionOf(respelt.flatMap((matcher) => spellings.map((spell) => matcherSet(matcher, spell))))
}

const allowedBy = (globs: string | ReadonlyArray<string>, argument: string, caseSensitive: boolean): PathSet =>
  matcherSet(compile(globs, argument, caseSensitive), (path) => path)

const allPaths: PathSet = { names: () => true, reaches: () => true }
const noPaths: PathSet = { names: () => false, reaches: () => false }

/** Compiles the rules. Dies for an invalid glob, because that is a programming error. */
export const make = ({ allow = {}, deny = {} }: AccessOptions, caseSensitive: boolean): Rules => {
  const sidesOf = (access: Access): { readonly allowed: PathSet; readonly denied: PathSet } => ({
    allowed: allow[access] === undefined ? allPaths : allowedBy(allow[access], `allow.${access}`, caseSensitive),
    denied: deny[access] === undefined ? noPaths : deniedBy(deny[access], `deny.${access}`, caseSensitive)
  })
  const sides = { read: sidesOf("read"), write: sidesOf("write"), delete: sidesOf("delete") }

  const isNamed = (access: Access, path: FsPath.FsPath, isDirectory: boolean): boolean =>
    !sides[access].denied.names(path, isDirectory) && sides[access].allowed.names(path, isDirectory)
  const leadsToNamed = (access: Access, path: FsPath.FsPath): boolean =>
    path === FsPath.root || (!sides[access].denied.names(path, true) && sides[access].allowed.reaches(path))

  return {
    asFile: (access, path) => isNamed("read", path, false) && (access === "read" || isNamed(access, path, false)),
    asDirectory: (access, path) =>
      leadsToNamed("read", path) &&
      (access === "read" || (access === "write" ? leadsToNamed(access, path) : isNamed(access, path, true))),
    restricts: (access) => [allow.read, deny.read, allow[access], deny[access]].some((globs) => globs !== undefined)
  }
}
