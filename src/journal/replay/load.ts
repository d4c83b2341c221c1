/** Reads a journal once, and builds the recorded tree at a position and at the end. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as FsPath from "../../model/FsPath.ts"
import { root } from "../../model/FsPath.ts"
import {
  type Content,
  type Efferent,
  type FileDelete,
  type FileEdit,
  type FileMakeDirectory,
  type FileMakeLink,
  type FileMove,
  type FileSetAttributes,
  type FileWrite,
  type FileWriteChunk,
  isMutation,
  type Removed,
  type Terminal
} from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import type { Intents } from "../entries/kinds.ts"
import { sizeOf } from "../entries/values.ts"
import type { JournalError } from "../errors.ts"
import { type Operation, operations } from "./operations.ts"
import { normalizePath } from "./paths.ts"
import { NotRecorded } from "./values.ts"
import {
  attributesOf,
  type BeginningFact,
  type File,
  missingNode,
  newAttributes,
  type Node,
  type Part,
  unknownNode,
  World
} from "./world.ts"

/** The answer, or `undefined` for an unanswered request. */
type Answer = Terminal | undefined

const isAppend = (asked: FileWrite | FileWriteChunk): boolean =>
  asked.createMode === "append" || asked.createMode === "appendExisting"

/**
 * Returns the previous content from the answer, or an empty content if the leaf recorded the size 0. Returns `null` if there
 * was no file, and `undefined` if the content is unknown.
 */
const previousOf = ({ answered, started }: Operation): Content | null | undefined => {
  const answer = answered?.answer
  if (answer?._tag === "FileWritten" && answer.previous !== undefined) return answer.previous
  return started?.size === null ? null : started?.size === 0 ? new Uint8Array(0) : undefined
}

const write = (world: World, asked: FileWrite | FileWriteChunk, operation: Operation): void => {
  const { path } = operation
  const prior = world.get(path)
  const previous = previousOf(operation)
  const isNew = previous === null || asked.createMode === "create" || asked.ifMatch === null
  if (prior.kind === "origin") {
    if (isNew) world.beginning.reveal(prior.path, missingNode as BeginningFact)
    else if (previous !== undefined) world.beginning.reveal(prior.path, { kind: "file", content: previous })
  }
  const before: ReadonlyArray<Part> =
    !isAppend(asked) || isNew
      ? []
      : previous !== undefined && previous !== null
        ? [previous]
        : prior.kind === "file"
          ? [{ all: prior.parts }]
          : prior.kind === "origin"
            ? [{ origin: prior.path }]
            : []
  const parts = [...before, ...operation.parts.filter(isNonEmpty)]
  world.set(path, { kind: "file", parts, attributes: newAttributes(isNew ? undefined : modeCell(world, prior)) })
}

const isNonEmpty = (content: Content): boolean => sizeOf(content) > 0

/** Returns the mode of the entry before a write, because a write keeps the permission bits. */
const modeCell = (world: World, prior: Node) =>
  prior.kind === "directory" ? undefined : attributesOf(world.beginning, prior)?.mode

const edit = (world: World, { edits }: FileEdit, { path }: Operation, answer: Answer): void => {
  const prior = world.get(path)
  const baseParts: ReadonlyArray<Part> | undefined =
    prior.kind === "file" ? prior.parts : prior.kind === "origin" ? [{ origin: prior.path }] : undefined
  const version = answer?._tag === "FileEdited" ? answer.version : undefined
  const attributes = newAttributes(modeCell(world, prior))
  const file: File | undefined = baseParts && { kind: "file", parts: [{ edits, base: baseParts, version }], attributes }
  world.set(path, file ?? unknownNode)
}

const factOf = ({ content, kind, target }: Removed): BeginningFact =>
  kind === "file"
    ? { kind, content }
    : kind === "directory"
      ? { kind }
      : kind === "symlink" && target !== undefined
        ? { kind, target }
        : { kind: "other" }

/** Records the state of a removed entry before the first journal entry, if no recorded change has set this state. */
const reveal = (world: World, at: FsPath.FsPath, removed: Removed): void => {
  // Ignore a forged path. Leaves and recorders never write "..".
  if (FsPath.segments(at).includes("..")) return
  const node = world.get(at)
  const attributes = attributesOf(world.beginning, node)
  if (attributes !== undefined) attributes.mode.value ??= removed.mode
  const origin = node.kind === "origin" ? node.path : node.kind === "directory" ? node.origin : undefined
  if (origin === undefined) return
  world.beginning.reveal(origin, factOf(removed))
}

const remove = (world: World, _asked: FileDelete, { path }: Operation, answer: Answer): void => {
  if (answer?._tag === "FileDeleted") {
    for (const removed of answer.removed ?? []) reveal(world, normalizePath(removed.path), removed)
  }
  world.set(path, missingNode)
}

const makeDirectory = (world: World, { existOk }: FileMakeDirectory, { path }: Operation): void => {
  if (path === FsPath.root) return
  const prior = world.get(path)
  if (prior.kind === "origin" && existOk === false) {
    world.beginning.reveal(prior.path, missingNode as BeginningFact)
    world.set(path, { kind: "directory", entries: new Map(), attributes: newAttributes(), isTouched: true })
  } else if (prior.kind !== "directory") world.set(path, { ...world.directoryAt(path), isTouched: true })
}

const move = (world: World, asked: FileMove, operation: Operation, answer: Answer): void => {
  const from = operation.path
  const to = operation.to!
  const target = world.get(to)
  if (answer?._tag === "FileMoved" && answer.replaced !== undefined) reveal(world, to, answer.replaced)
  else if (target.kind === "origin" && asked.overwrite !== true && world.key(from) !== world.key(to)) {
    world.beginning.reveal(target.path, missingNode as BeginningFact)
  }
  const node = world.get(from)
  world.set(from, missingNode)
  world.set(to, node.kind === "nothing" ? unknownNode : node.kind === "directory" ? { ...node, isTouched: true } : node)
}

const makeLink = (world: World, { target }: FileMakeLink, { path }: Operation): void => {
  const prior = world.get(path)
  if (prior.kind === "origin") world.beginning.reveal(prior.path, missingNode as BeginningFact)
  world.set(path, { kind: "symlink", target })
}

const setAttributes = (world: World, asked: FileSetAttributes, { path }: Operation, answer: Answer): void => {
  const node = world.get(path)
  const known = attributesOf(world.beginning, node)
  if (known === undefined || node.kind === "nothing" || node.kind === "symlink" || node.kind === "unknown") return
  const { previous, skippedMode } = answer?._tag === "FileAttributesSet" ? answer : {}
  known.mode.value ??= previous?.mode
  known.modified.value ??= previous?.modified
  const attributes = {
    mode: asked.mode === undefined || skippedMode === true ? known.mode : { value: asked.mode },
    modified: asked.modified === undefined ? known.modified : { value: asked.modified }
  }
  if (path === FsPath.root) world.rootDirectory = { ...world.rootDirectory, attributes }
  else world.set(path, { ...node, attributes })
}

const isDone = ({ answered }: Operation): boolean => answered !== undefined && answered.answer._tag !== "FileFault"

const isChange = (operation: Operation): boolean =>
  isMutation(operation.asked) && operation.isWhole && (operation.answered === undefined || isDone(operation))

type Apply<E> = (world: World, asked: E, operation: Operation, answer: Answer) => void

const rows: { readonly [K in keyof Intents]?: Apply<Intents[K]> } = {
  FileWrite: write,
  FileWriteChunk: write,
  FileEdit: edit,
  FileDelete: remove,
  FileMakeDirectory: makeDirectory,
  FileMove: move,
  FileMakeLink: makeLink,
  FileSetAttributes: setAttributes
}

/** Returns `parents` if a change affects the link itself at its path, and `last` if the change follows the link. */
const followedLinks = (asked: Efferent): "last" | "parents" => {
  switch (asked._tag) {
    case "FileWrite":
    case "FileWriteChunk":
      return asked.createMode === "create" ? "parents" : "last"
    case "FileEdit":
    case "FileMakeDirectory":
    case "FileSetAttributes":
      return "last"
    default:
      return "parents"
  }
}

/** Resolves the links in the paths of a change. Returns `undefined` if a path leads through an absolute link. */
export const resolveOperation = (world: World, operation: Operation): Operation | undefined => {
  const through = followedLinks(operation.asked)
  const path = world.resolveLinks(operation.path, through)
  const to = operation.to === undefined ? undefined : world.resolveLinks(operation.to, through)
  return path === undefined || (to === undefined && operation.to !== undefined) ? undefined : { ...operation, path, to }
}

export const absoluteLinkError = ({ path, position }: Operation): NotRecorded => {
  const detail = `the path of the change at position ${position} leads through an absolute link, so the changed entry is unknown`
  return new NotRecorded({ operation: "Replay", path, detail })
}

/** Applies a change whose links are resolved. */
export const apply = (world: World, operation: Operation): void => {
  const { answered, asked } = operation
  const row = rows[asked._tag] as Apply<Efferent> | undefined
  row?.(world, asked, operation, answered?.answer)
}

interface Loaded {
  readonly targetWorld: World
  /** The tree after all answered changes. */
  readonly now: World
  readonly touched: ReadonlySet<FsPath.FsPath>
  /** The changes without an answer, in order. */
  readonly open: ReadonlyArray<Operation>
}

interface LoadOptions {
  readonly caseSensitive: boolean
  /** @default the end */
  readonly position?: number | undefined
  /** True to also read the entries after the position, because they may contain facts about earlier states. */
  readonly includesLaterEntries: boolean
}

export const pathsOf = ({
  path,
  to
}: {
  readonly path: FsPath.FsPath
  readonly to?: FsPath.FsPath | undefined
}): ReadonlyArray<FsPath.FsPath> => (to === undefined ? [path] : [path, to])

export const load = (
  journal: Scrivener<Entry>,
  { caseSensitive, includesLaterEntries, position = Number.POSITIVE_INFINITY }: LoadOptions
): Effect.Effect<Loaded, JournalError | NotRecorded> =>
  Effect.flatMap(Stream.runHead(journal.stored()), (first): Effect.Effect<Loaded, JournalError | NotRecorded> => {
    const lastRemoved = Option.match(first, { onNone: () => 0, onSome: ({ position }) => position - 1 })
    if (position < lastRemoved) {
      const detail = `the journal was compacted, and the entries up to ${lastRemoved} were removed, so the state at position ${position} is unknown`
      return Effect.fail(new NotRecorded({ operation: "Replay", path: root, detail }))
    }
    const now = new World(caseSensitive)
    let targetWorld: World | undefined
    const touched = new Set<FsPath.FsPath>()
    const open: Array<Operation> = []
    let unresolved: Operation | undefined
    const touch = (operation: Operation, through: "last" | "parents"): void => {
      for (const path of pathsOf(operation)) {
        const resolvedPath = now.resolveLinks(path, through)
        if (resolvedPath !== undefined) touched.add(resolvedPath)
      }
    }
    const take = (operation: Operation): void => {
      if (!isChange(operation)) return
      now.beginning.hidden.observe(operation)
      const { answered } = operation
      if (answered === undefined) {
        open.push(operation)
        for (const path of pathsOf(operation)) touched.add(path)
        return
      }
      const resolved = resolveOperation(now, operation)
      if (resolved === undefined) {
        unresolved ??= operation
        return
      }
      if (answered.position > position) {
        targetWorld ??= now.copyTree()
        touch(operation, "parents")
      }
      apply(now, resolved)
      if (answered.position > position) touch(operation, "last")
    }
    const all = operations(journal, includesLaterEntries ? undefined : position)
    return Effect.flatMap(
      Stream.runForEachArray(all, (some) => Effect.sync(() => some.forEach(take))),
      () =>
        unresolved === undefined
          ? Effect.succeed({ targetWorld: targetWorld ?? now.copyTree(), now, touched, open })
          : Effect.fail(absoluteLinkError(unresolved))
    )
  })
