import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as InMemory from "../../backends/InMemory.ts"
import { removeWithContent } from "../../engine/remove.ts"
import { resolve } from "../../engine/resolve.ts"
import { readOnly } from "../../filesystem/Decorator.ts"
import { type Algebra, make } from "../../filesystem/Filesystem.ts"
import { overlay } from "../../filesystem/Overlay.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import type { Entry, Scrivener } from "../model.ts"
import type { JournalError } from "../errors.ts"
import * as Beginning from "./contents.ts"
import { bytesAt, content, type ContentError, notRecorded, type Source } from "./contents.ts"
import { load } from "./load.ts"
import { type Attributes, attributesOf, type Directory, type Node, type World } from "./world.ts"

interface BuildContext {
  readonly world: World
  readonly source: Source
  readonly draft: Backend
  readonly base: Backend | undefined
}

/**
 * Reads file contents of the tree before the first entry, from the backend `base`. Returns no bytes for a missing file,
 * because a recorded append created it.
 */
const readFromBase =
  (base: Backend): Source["beginning"] =>
  (path) =>
    Stream.unwrap(Effect.map(base.stat(path), (stat) => (stat === undefined ? Stream.empty : bytesAt(base, path))))

const removeAt = (draft: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(draft.stat(path), (stat) =>
    stat === undefined
      ? Effect.void
      : stat.kind === "directory"
        ? Effect.asVoid(removeWithContent(draft, path))
        : draft.remove(path)
  )

const setMode = (draft: Backend, path: FsPath.FsPath, mode: number | undefined): Effect.Effect<void, Fault> =>
  mode === undefined || draft.attributes === undefined ? Effect.void : draft.attributes.set(path, { mode })

const copyFromBase = Effect.fnUntraced(function* (
  { base, draft, source }: BuildContext,
  from: FsPath.FsPath,
  to: FsPath.FsPath
): Effect.fn.Return<void, ContentError> {
  const pending: Array<readonly [from: FsPath.FsPath, to: FsPath.FsPath]> = [[from, to]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [from, to] = next
    const stat = yield* base!.stat(from)
    if (stat === undefined) continue
    if (stat.kind === "file") yield* draft.write(to, bytesAt(base!, from), "create")
    else if (stat.kind === "symlink" && base!.links !== undefined && draft.links !== undefined) {
      yield* draft.links.make(to, yield* base!.links.read(from))
    } else if (stat.kind === "directory") {
      yield* draft.makeDirectory(to)
      for (const child of yield* base!.list(from))
        pending.push([FsPath.join(from, keyOf(child)), FsPath.join(to, keyOf(child))])
    } else
      return yield* Effect.fail(
        notRecorded(source.operation, from, "the entry is not a file, a directory or a link, so it cannot be created")
      )
    if (stat.kind !== "symlink") yield* setMode(draft, to, stat.mode)
  }
})

const buildNode = (context: BuildContext, path: FsPath.FsPath, node: Node): Effect.Effect<void, ContentError> => {
  const { base, draft, source, world } = context
  switch (node.kind) {
    case "nothing":
      return removeAt(draft, path)
    case "unknown":
      return Effect.fail(notRecorded(source.operation, path, "the journal does not contain the kind of the entry"))
    case "symlink":
      return Effect.andThen(removeAt(draft, path), draft.links!.make(path, node.target))
    case "file":
      return Effect.gen(function* () {
        if ((yield* draft.stat(path))?.kind !== "file") yield* removeAt(draft, path)
        yield* draft.write(path, content(source, path, node), "replace")
        yield* setMode(draft, path, node.attributes.mode.value)
      })
    case "origin": {
      if (base === undefined) {
        const known = Beginning.nodeAt(world.beginning, node.path, (name) => world.key(name))
        return known === undefined
          ? Effect.void
          : buildNode(context, path, node.attributes === undefined ? known : withAttributes(known, node.attributes))
      }
      const moved =
        node.path === path ? Effect.void : Effect.andThen(removeAt(draft, path), copyFromBase(context, node.path, path))
      return Effect.andThen(moved, setMode(draft, path, node.attributes?.mode.value))
    }
    case "directory":
      return buildDirectory(context, path, node)
  }
}

const withAttributes = (node: Node, attributes: Attributes): Node =>
  node.kind === "file" || node.kind === "directory" ? { ...node, attributes } : node

/**
 * Returns the entries that a directory had before the first journal entry. Omits entries that recorded changes have replaced
 * or removed.
 */
const remainingOriginals = (
  { world }: BuildContext,
  { entries, origin }: Directory
): ReadonlyArray<readonly [name: string, node: Node]> => {
  if (origin === undefined) return []
  const out: Array<readonly [name: string, node: Node]> = []
  for (const name of world.beginning.namesIn(origin)) {
    if (!entries.has(world.key(name))) out.push([name, { kind: "origin", path: FsPath.join(origin, name) }])
  }
  return out
}

const buildDirectory = Effect.fnUntraced(function* (
  context: BuildContext,
  path: FsPath.FsPath,
  node: Directory
): Effect.fn.Return<void, ContentError> {
  const { base, draft } = context
  // Resolve links first, because the recorded changes affect the target of a link.
  const at = path === FsPath.root ? path : (yield* resolve(draft, path)).path
  const stat = yield* draft.stat(at)
  const isAtOriginalPath = base !== undefined && node.origin === path
  if (stat?.kind !== "directory" || !(isAtOriginalPath || path === FsPath.root)) {
    yield* removeAt(draft, at)
    if (base !== undefined && node.origin !== undefined && !isAtOriginalPath) yield* copyFromBase(context, node.origin, at)
    if ((yield* draft.stat(at)) === undefined) yield* draft.makeDirectory(at)
  }
  for (const { name, node: child } of node.entries.values()) {
    yield* Effect.suspend(() => buildNode(context, FsPath.join(at, name), child))
  }
  if (base === undefined) {
    for (const [name, child] of remainingOriginals(context, node))
      yield* Effect.suspend(() => buildNode(context, FsPath.join(at, name), child))
  }
  const attributes = base === undefined ? attributesOf(context.world.beginning, node) : node.attributes
  yield* setMode(draft, at, attributes?.mode.value)
})

const build = Effect.fnUntraced(function* (
  world: World,
  source: Source,
  base: Algebra | undefined
): Effect.fn.Return<Algebra, ContentError> {
  const memory = make(yield* InMemory.make({ caseInsensitive: !world.caseSensitive }))
  const draft = base === undefined ? memory : overlay(memory)(readOnly(base))
  const effectiveSource = base === undefined ? source : { ...source, beginning: readFromBase(base.port) }
  yield* buildNode({ world, source: effectiveSource, draft: draft.port, base: base?.port }, FsPath.root, world.rootDirectory)
  return draft
})

export const tree = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  options: {
    readonly until?: number | undefined
    readonly base?: Algebra | undefined
    readonly caseInsensitive?: boolean | undefined
  } = {}
): Effect.fn.Return<Algebra, ContentError | JournalError> {
  const { base, caseInsensitive, until } = options
  const caseSensitive = base?.port.info.caseSensitive ?? caseInsensitive !== true
  // Without a base, read later entries too, because they contain facts about the tree before the first entry.
  const { targetWorld: past } = yield* load(journal, {
    caseSensitive,
    position: until,
    includesLaterEntries: base === undefined
  })
  return yield* build(past, Beginning.beginningSource("tree", journal.contents, past.beginning), base)
})
