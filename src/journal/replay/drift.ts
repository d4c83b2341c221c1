import * as Effect from "effect/Effect"
import { resolveLink } from "../../engine/resolve.ts"
import * as Version from "../../engine/version.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { compare, join, root } from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Entry, Scrivener } from "../model.ts"
import type { JournalError } from "../errors.ts"
import * as Beginning from "./contents.ts"
import { type ContentError, digest, type Source } from "./contents.ts"
import { hasPath } from "./filter.ts"
import { absoluteLinkError, apply, load, pathsOf, resolveOperation } from "./load.ts"
import type { Operation } from "./operations.ts"
import type { Drift, State } from "./values.ts"
import { attributesOf, type File, type Node, type World } from "./world.ts"

interface Comparison {
  readonly port: Backend
  readonly source: Source
  readonly beginning: World["beginning"]
}

const missingState: State = { kind: "nothing" }

const versionAt = (port: Backend, path: FsPath.FsPath): Effect.Effect<string, Fault> =>
  Effect.scoped(Effect.flatMap(port.open(path), Version.ofHandle))

interface ResolvedEntry {
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
}

const resolvePath = (port: Backend, path: FsPath.FsPath): Effect.Effect<ResolvedEntry, Fault> =>
  Effect.mapError(
    Effect.map(resolveLink(port, path), ({ path: at, stat }) => ({ at, stat })),
    (fault) => located(fault, path)
  )

/** Returns the actual state at a path. An unreadable file is `unknown`. */
export const stateAt = (port: Backend, path: FsPath.FsPath): Effect.Effect<State, Fault> =>
  Effect.flatMap(resolvePath(port, path), (found) => stateOfFound(port, found))

const stateOfFound = (port: Backend, { at, stat }: ResolvedEntry): Effect.Effect<State, Fault> =>
  Effect.suspend((): Effect.Effect<State, Fault> => {
    switch (stat?.kind) {
      case undefined:
        return Effect.succeed(missingState)
      case "file":
        return Effect.match(versionAt(port, at), {
          onSuccess: (version): State => ({ kind: "file", sizeBytes: stat.sizeBytes, version }),
          onFailure: (): State => ({ kind: "unknown" })
        })
      case "symlink":
        return port.links === undefined
          ? Effect.succeed({ kind: "unknown" })
          : Effect.map(port.links.read(at), (target): State => ({ kind: "symlink", target }))
      case "directory":
        return Effect.succeed({ kind: "directory" })
      case "other":
        return Effect.succeed({ kind: "other" })
    }
  })

const stateOfFile = (source: Source, path: FsPath.FsPath, file: File): Effect.Effect<State, ContentError> =>
  Effect.catchIf(
    Effect.map(digest(source, path, file), ({ sha256, size }): State => ({ kind: "file", sizeBytes: size, version: sha256 })),
    (error: ContentError) => error._tag === "NotRecorded",
    () => Effect.succeed<State>({ kind: "unknown" })
  )

const stateOf = (source: Source, path: FsPath.FsPath, node: Node): Effect.Effect<State, ContentError> => {
  switch (node.kind) {
    case "file":
      return stateOfFile(source, path, node)
    case "directory":
      return Effect.succeed({ kind: "directory" })
    case "symlink":
      return Effect.succeed({ kind: "symlink", target: node.target })
    case "nothing":
      return Effect.succeed(missingState)
    case "origin":
    case "unknown":
      return Effect.succeed({ kind: "unknown" })
  }
}

const isSameState = (expected: State, actual: State): boolean => {
  switch (expected.kind) {
    case "unknown":
      return actual.kind !== "nothing"
    case "file":
      return actual.kind === "file" && actual.sizeBytes === expected.sizeBytes && actual.version === expected.version
    case "symlink":
      return actual.kind === "symlink" && actual.target === expected.target
    default:
      return actual.kind === expected.kind
  }
}

const permissions = 0o777

const withMode = (state: State, mode: number): State =>
  state.kind === "file" || state.kind === "directory" || state.kind === "unknown"
    ? { ...state, mode: mode & permissions }
    : state

/**
 * Returns the difference at a path, without the entries below the path. Compares permission bits only if the journal contains
 * them.
 */
export const difference = Effect.fnUntraced(function* (
  { beginning, port, source }: Comparison,
  path: FsPath.FsPath,
  node: Node
): Effect.fn.Return<Drift | undefined, ContentError> {
  const expected = yield* stateOf(source, path, node)
  const found = yield* resolvePath(port, path)
  const actual = yield* stateOfFound(port, found)
  const known = attributesOf(beginning, node)?.mode.value
  const mode = found.stat?.mode
  if (known === undefined || mode === undefined) {
    return isSameState(expected, actual) ? undefined : { path, expected, actual }
  }
  const isSameMode = ((known ^ mode) & permissions) === 0
  return isSameState(expected, actual) && isSameMode
    ? undefined
    : { path, expected: withMode(expected, known), actual: withMode(actual, mode) }
})

/** Tests whether no recorded change affects the entry. If so, any state of the entry is correct. */
const isUntouched = (path: FsPath.FsPath, node: Node): boolean =>
  (node.kind === "origin" && node.path === path && node.attributes === undefined) ||
  (node.kind === "directory" && !node.isTouched && node.attributes?.mode.value === undefined)

/** Returns the differences of the recorded entries at and below a path. Ignores temporary files. */
export const differences = Effect.fnUntraced(function* (
  comparison: Comparison,
  top: FsPath.FsPath,
  node: Node
): Effect.fn.Return<ReadonlyArray<Drift>, ContentError> {
  const out: Array<Drift> = []
  const pending: Array<readonly [path: FsPath.FsPath, node: Node]> = [[top, node]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, node] = next
    if (comparison.beginning.hidden.has(path)) continue
    if (!isUntouched(path, node)) {
      const drift = yield* difference(comparison, path, node)
      if (drift !== undefined) out.push(drift)
    }
    if (node.kind !== "directory") continue
    for (const { name, node: child } of node.entries.values()) pending.push([FsPath.join(path, name), child])
  }
  return out.sort((a, b) => FsPath.compare(a.path, b.path))
})

/**
 * Applies the unanswered requests whose result matches the filesystem, because such a request counts as carried out. Returns
 * the resulting tree.
 */
export const applyCompleted = Effect.fnUntraced(function* (
  comparison: Comparison,
  world: World,
  open: ReadonlyArray<Operation>
): Effect.fn.Return<World, ContentError> {
  let settled = world
  for (const operation of open) {
    const resolved = resolveOperation(settled, operation)
    if (resolved === undefined) return yield* Effect.fail(absoluteLinkError(operation))
    const done = settled.clone()
    apply(done, resolved)
    let isDone = true
    for (const path of pathsOf(resolved)) {
      const found = yield* differences(comparison, path, done.get(path))
      isDone &&= found.length === 0
    }
    if (isDone) settled = done
  }
  return settled
})

const untouchedEntries = Effect.fnUntraced(function* (
  { beginning, port }: Comparison,
  world: World,
  reportedPaths: ReadonlySet<FsPath.FsPath>
): Effect.fn.Return<ReadonlyArray<Drift>, ContentError> {
  const out: Array<Drift> = []
  const pending: Array<readonly [path: FsPath.FsPath, node: Node]> = [[root, world.rootDirectory]]
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
