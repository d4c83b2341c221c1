/**
 * Chooses entries level by level from the top, so that one large directory does not hide the others. Entries that .gitignore
 * excludes are omitted; the last line of the result names up to five of them.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type GlobMatch, Kind } from "../../model/Entry.ts"
import { type FsPath, parent } from "../../model/FsPath.ts"
import { type Call, define, optional, type ToolFailure, touching } from "../definition.ts"
import { countFitting } from "../text/fit.ts"
import { displayPath } from "../toolPath.ts"
import { countsOf, formatCounts, formatEntry, listSome, parameters, withProgress } from "./searching.ts"
import { formatCount as plural } from "../../model/words.ts"

const maxDepth = 16
const defaultDepth = 3
const maxEntries = 1000
const defaultEntries = 500
const maxReadEntries = 50_000
const maxNamedPaths = 5
const maxSkipped = 100

const Value = Schema.Struct({
  path: Schema.String,
  depth: Schema.Int,
  entries: Schema.Array(Schema.Struct({ path: Schema.String, kind: Kind, hidden: Schema.optionalKey(Schema.Int) })),
  counts: Schema.Struct({ files: Schema.Int, directories: Schema.Int, others: Schema.Int }),
  ignored: Schema.Array(Schema.String),
  unreadable: Schema.Array(Schema.String),
  truncated: Schema.Boolean
})

interface ReadTree {
  readonly children: ReadonlyMap<string, ReadonlyArray<GlobMatch>>
  readonly ignored: ReadonlyArray<string>
  readonly unreadable: ReadonlyArray<string>
  readonly isComplete: boolean
}

const levels = (depth: number): ReadonlyArray<string> => Array.from({ length: depth }, (_, level) => `/${"*/".repeat(level)}*`)

const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

/** Reads one level more than is shown, in order to count the entries of the deepest directories. */
const readTree = Effect.fnUntraced(function* (
  path: FsPath,
  depth: number,
  isIgnoredShown: boolean,
  { filesystem }: Call
): Effect.fn.Return<ReadTree, ToolFailure> {
  const children = new Map<string, Array<GlobMatch>>()
  const ignored: Array<string> = []
  const unreadable: Array<string> = []
  let seen = 0
  const found = filesystem.globStream(levels(depth + 1), {
    path,
    kinds,
    gitignore: !isIgnoredShown,
    onSkip: (path, why) => {
      if (why === "ignored") ignored.push(path)
      else unreadable.push(path)
    }
  })
  yield* Stream.runForEach(Stream.take(found, maxReadEntries), (match) =>
    Effect.sync(() => {
      seen++
      const parentPath = parent(match.path)
      const siblings = children.get(parentPath)
      if (siblings === undefined) children.set(parentPath, [match])
      else siblings.push(match)
    })
  )
  return { children, ignored, unreadable, isComplete: seen < maxReadEntries }
})

interface ChosenEntries {
  readonly shownChildren: ReadonlyMap<string, ReadonlyArray<GlobMatch>>
  readonly count: number
}

const chooseEntries = ({ children }: ReadTree, base: FsPath, depth: number, entryLimit: number): ChosenEntries => {
  const shownChildren = new Map<string, ReadonlyArray<GlobMatch>>()
  let remaining = entryLimit
  let level: ReadonlyArray<string> = [base]
  for (let at = 0; at < depth && remaining > 0; at++) {
    const below: Array<string> = []
    for (const directory of level) {
      const chosen = (children.get(directory) ?? []).slice(0, remaining)
      if (chosen.length === 0) continue
      remaining -= chosen.length
      shownChildren.set(directory, chosen)
      for (const { kind, path } of chosen) if (kind === "directory") below.push(path)
    }
    level = below
  }
  return { shownChildren, count: entryLimit - remaining }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

const outline = (
  seen: ReadTree,
  shownChildren: ChosenEntries["shownChildren"],
  directory: string,
  indent: string
): ReadonlyArray<string> => {
  const chosen = shownChildren.get(directory) ?? []
  const remaining = (seen.children.get(directory)?.length ?? 0) - chosen.length
  const lines = chosen.flatMap(({ kind, path }) => {
    const line = `${indent}${formatEntry({ name: nameOf(path), kind })}`
    if (shownChildren.has(path)) return [line, ...outline(seen, shownChildren, path, `${indent}  `)]
    const inside = seen.children.get(path)?.length ?? 0
    return [inside === 0 ? line : `${line} (${plural(inside, "entry", "entries")})`]
  })
  return remaining === 0 ? lines : [...lines, `${indent}... ${remaining} more`]
}

const shownEntries = ({ shownChildren }: ChosenEntries): ReadonlyArray<GlobMatch> => [...shownChildren.values()].flat()

const namePaths = (what: string, paths: ReadonlyArray<string>): string =>
  paths.length === 0 ? "" : `${what}: ${listSome(paths, maxNamedPaths)}`

const footer = ({ ignored, isComplete, unreadable }: ReadTree, shown: ChosenEntries, path: FsPath): string =>
  [
    shown.count === 0 ? `${displayPath(path)} is empty` : formatCounts(countsOf(shownEntries(shown))),
    namePaths("ignored", ignored),
    namePaths("unreadable", unreadable),
    isComplete ? "" : `only the first ${maxReadEntries} entries were read`
  ]
    .filter((part) => part !== "")
    .join("; ")

const hiddenIn = ({ children }: ReadTree, { shownChildren }: ChosenEntries, path: string): number =>
  (children.get(path)?.length ?? 0) - (shownChildren.get(path)?.length ?? 0)

export const tree = define({
  name: "tree",
  description: "Show a directory as a tree, some levels deep, with counts of what is not shown.",
  parameters: Schema.Struct({
    path: optional(Schema.String, "Directory. Default: the root"),
    depth: optional(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxDepth })),
      `Levels to show. Default ${defaultDepth}`
    ),
    max_entries: optional(
      Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
      `Default ${defaultEntries}, at most ${maxEntries}`
    ),
    include_ignored: parameters.include_ignored
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{}, { path: "src", depth: 2 }],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* (params, call) {
    const path = yield* call.path(params.path ?? "", { blank: "root" })
    const { depth = defaultDepth } = params
    const seen = yield* withProgress(readTree(path, depth, params.include_ignored === true, call))
    const entryLimit = chooseEntries(seen, path, depth, Math.min(params.max_entries ?? defaultEntries, maxEntries)).count
    const render = (shown: ChosenEntries): string =>
      [...outline(seen, shown.shownChildren, path, ""), footer(seen, shown, path)].join("\n")
    const valueOf = (shown: ChosenEntries): typeof Value.Type => {
      const entries = shownEntries(shown).map(({ kind, path }) => {
        const hidden = kind === "directory" ? hiddenIn(seen, shown, path) : 0
        return hidden === 0 ? { path, kind } : { path, kind, hidden }
      })
      const isCut = hiddenIn(seen, shown, path) > 0 || entries.some(({ hidden }) => hidden !== undefined)
      return {
        path,
        depth,
        entries,
        counts: countsOf(entries),
        ignored: seen.ignored.slice(0, maxSkipped),
        unreadable: seen.unreadable.slice(0, maxSkipped),
        truncated: isCut || !seen.isComplete
      }
    }
    const sent = (count: number): string => {
      const shown = chooseEntries(seen, path, depth, count)
      return call.sent(render(shown), () => valueOf(shown))
    }
    const shown = chooseEntries(seen, path, depth, countFitting(entryLimit, sent, call.settings))
    return { message: render(shown), value: valueOf(shown) }
  })
})
