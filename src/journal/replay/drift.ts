import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { located } from "../../model/FsError.ts"
import { compare, type FsPath, join, root } from "../../model/FsPath.ts"
import { keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { JournalError } from "../errors.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import { type Comparison, differences, applyCompleted, stateAt } from "./actual.ts"
import * as Beginning from "./beginning.ts"
import type { ContentError } from "./contents.ts"
import { hasPath } from "./filter.ts"
import { load } from "./load.ts"
import type { Drift } from "./values.ts"
import type { Node, World } from "./world.ts"

const untouchedEntries = Effect.fnUntraced(function* (
  { beginning, port }: Comparison,
  world: World,
  reportedPaths: ReadonlySet<FsPath>
): Effect.fn.Return<ReadonlyArray<Drift>, ContentError> {
  const out: Array<Drift> = []
  const pending: Array<readonly [path: FsPath, node: Node]> = [[root, world.rootDirectory]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, node] = next
    for (const child of yield* Effect.mapError(port.list(path), (fault) => located(fault, path))) {
      if (TemporaryNames.isInProgress(child.name)) continue
      const below = join(path, keyOf(child))
      const known = world.child(node, keyOf(child))
      const isTouched = node.kind === "directory" && node.entries.has(world.key(keyOf(child)))
      const isNew = known.kind === "nothing" || (known.kind === "origin" && beginning.known.get(known.path)?.kind === "nothing")
      if (!reportedPaths.has(below) && !isTouched) {
        out.push({ path: below, expected: { kind: isNew ? "nothing" : "unknown" }, actual: yield* stateAt(port, below) })
      }
      if (child.kind === "directory") pending.push([below, known])
    }
  }
  return out
})

export const drift = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  { port }: Algebra,
  options: {
    readonly until?: number | undefined
    readonly paths?: ReadonlyArray<string> | undefined
    readonly all?: boolean | undefined
  } = {}
): Effect.fn.Return<ReadonlyArray<Drift>, ContentError | JournalError> {
  const { caseSensitive } = port.info
  const { now, open } = yield* load(journal, { caseSensitive, position: options.until, includesLaterEntries: false })
  const comparison = {
    beginning: now.beginning,
    port,
    source: Beginning.beginningSource("drift", journal.contents, now.beginning)
  }
  const world = yield* applyCompleted(comparison, now, open)
  const found = [...(yield* differences(comparison, root, world.rootDirectory))]
  if (options.all === true) found.push(...(yield* untouchedEntries(comparison, world, new Set(found.map(({ path }) => path)))))
  found.sort((a, b) => compare(a.path, b.path))
  return found.filter(({ path }) => hasPath({ paths: options.paths }, [path]))
})
