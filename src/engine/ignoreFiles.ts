/** Loads the ignore files of a tree through its backend. */
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend, Child } from "../port/Backend.ts"
import { runInSlices } from "../runtime/steps.ts"
import type { IgnoreFile, TreeSearch } from "../model/treeSearch.ts"
import { judgeSteps, type Level, maxFileBytes, parseSteps, type Rules } from "./ignore.ts"
import { wholeAt } from "./read.ts"

/** Loads the rules of a file. As in git, a file that cannot be read has no rules. Fails if the backend is unavailable. */
const loadRules = (port: Backend, directory: FsPath.FsPath, name: string): Effect.Effect<ReadonlyArray<Level>, Fault> =>
  Effect.matchEffect(
    Effect.suspend(() => wholeAt(port, FsPath.join(directory, name), maxFileBytes)),
    {
      onSuccess: ({ bytes }): Effect.Effect<ReadonlyArray<Level>> =>
        Effect.map(
          runInSlices(() => parseSteps(bytes, port.info.caseSensitive)),
          (file) =>
            file.rows.start.length === 0 ? [] : [{ file, positions: file.rows.start, depth: FsPath.segments(directory).length }]
        ),
      onFailure: (fault) => (fault._tag === "Unavailable" ? Effect.fail(fault) : Effect.succeed([]))
    }
  )

const withFiles = Effect.fnUntraced(function* (
  self: Rules,
  port: Backend,
  directory: FsPath.FsPath,
  git: boolean,
  own: boolean
): Effect.fn.Return<Rules, Fault> {
  return {
    ...self,
    git: git ? self.git.concat(yield* loadRules(port, directory, ".gitignore")) : self.git,
    own: own ? self.own.concat(yield* loadRules(port, directory, ".ignore")) : self.own
  }
})

/**
 * Adds the rules of the directory's own ignore files, or returns `undefined` if it has none. As in git, symlinks are not
 * read.
 */
export const enterDirectory = (
  self: Rules,
  port: Backend,
  directory: FsPath.FsPath,
  children: ReadonlyArray<Child>
): Effect.Effect<Rules, Fault> | undefined => {
  if (self.ignoresEverything) return undefined
  let git = false
  let own = false
  for (const { kind, name } of children) {
    if (kind !== "file") continue
    if (name === ".gitignore") git = true
    else if (name === ".ignore") own = true
  }
  return git || own ? withFiles(self, port, directory, git, own) : undefined
}

export const rulesAtBase = Effect.fnUntraced(function* (
  port: Backend,
  directory: FsPath.FsPath
): Effect.fn.Return<Rules, Fault> {
  const { caseSensitive } = port.info
  let rules: Rules = { git: [], own: [], ignoresEverything: false, caseSensitive }
  let here = FsPath.root
  for (const name of FsPath.segments(directory)) {
    const git = yield* port.stat(FsPath.join(here, ".gitignore"))
    const own = yield* port.stat(FsPath.join(here, ".ignore"))
    rules = yield* withFiles(rules, port, here, git?.kind === "file", own?.kind === "file")
    const before = rules
    const verdict = yield* runInSlices(() => judgeSteps(before, name, true))
    if (verdict.ignored) return { ...rules, ignoresEverything: true }
    rules = verdict.below
    here = FsPath.join(here, name)
  }
  return rules
})

/** Returns the rules at the base of a search as data, from which another process compiles them. */
export const ignoreFilesOf = (
  { git, ignoresEverything, own }: Rules,
  base: FsPath.FsPath
): NonNullable<TreeSearch["ignore"]> => {
  const names = FsPath.segments(base)
  const dataOf = ({ depth, file }: Level): IgnoreFile => ({ bytes: file.bytes, names: names.slice(depth) })
  return { git: git.map(dataOf), own: own.map(dataOf), ignoresEverything }
}
