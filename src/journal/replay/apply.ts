import * as FsPath from "../../model/FsPath.ts"
import { sizeOf } from "../entries/contents.ts"
import type { Intents } from "../entries/kinds.ts"
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
import type { Operation } from "./operations.ts"
import { normalizePath } from "./paths.ts"
import {
  attributesOf,
  type File,
  type BeginningFact,
  newAttributes,
  type Node,
  missingNode,
  type Part,
  unknownNode,
  type World
} from "./world.ts"

/** The answer; `undefined` for a request that was not answered, which is applied without the facts that only an answer has. */
type Answer = Terminal | undefined

const isAppend = (asked: FileWrite | FileWriteChunk): boolean =>
  asked.createMode === "append" || asked.createMode === "appendExisting"

/** Returns the previous content, from the answer or from the leaf's announcement. */
const previousOf = ({ answered, started }: Operation): Content | null | undefined => {
  const answer = answered?.answer
  if (answer?._tag === "FileWritten" && answer.previous !== undefined) return answer.previous
  return started?.size === null ? null : started?.size === 0 ? new Uint8Array(0) : undefined
}

const write = (world: World, asked: FileWrite | FileWriteChunk, operation: Operation): void => {
  const path = world.resolveLinks(operation.path, asked.createMode === "create" ? "parents" : "last")
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

/** Returns the mode of the file. A write keeps the permission bits. */
const modeCell = (world: World, prior: Node) =>
  prior.kind === "directory" ? undefined : attributesOf(world.beginning, prior)?.mode

const edit = (world: World, { edits }: FileEdit, { path: requestPath }: Operation, answer: Answer): void => {
  const path = world.resolveLinks(requestPath, "last")
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

/** Records what was there before a removal, if only its original path was known. */
const reveal = (world: World, at: FsPath.FsPath, removed: Removed): void => {
  // No leaf and no recorder writes such a path.
  if (FsPath.segments(at).includes("..")) return
  const node = world.get(at)
  const attributes = attributesOf(world.beginning, node)
  if (attributes !== undefined) attributes.mode.value ??= removed.mode
  const origin = node.kind === "origin" ? node.path : node.kind === "directory" ? node.origin : undefined
  if (origin === undefined) return
  world.beginning.reveal(origin, factOf(removed))
}

const remove = (world: World, _asked: FileDelete, { path: requestPath }: Operation, answer: Answer): void => {
  const path = world.resolveLinks(requestPath, "parents")
  if (answer?._tag === "FileDeleted") {
    for (const removed of answer.removed ?? []) reveal(world, normalizePath(removed.path), removed)
  }
  world.set(path, missingNode)
}

const makeDirectory = (world: World, { existOk }: FileMakeDirectory, { path: requestPath }: Operation): void => {
  const path = world.resolveLinks(requestPath, "last")
  if (path === FsPath.root) return
  const prior = world.get(path)
  if (prior.kind === "origin" && existOk === false) {
    world.beginning.reveal(prior.path, missingNode as BeginningFact)
    world.set(path, { kind: "directory", entries: new Map(), attributes: newAttributes(), isTouched: true })
  } else if (prior.kind !== "directory") world.set(path, { ...world.directoryAt(path), isTouched: true })
}

const move = (world: World, asked: FileMove, operation: Operation, answer: Answer): void => {
  const from = world.resolveLinks(operation.path, "parents")
  const to = world.resolveLinks(operation.to!, "parents")
  const target = world.get(to)
  if (answer?._tag === "FileMoved" && answer.replaced !== undefined) reveal(world, to, answer.replaced)
  else if (target.kind === "origin" && asked.overwrite !== true && world.key(from) !== world.key(to)) {
    world.beginning.reveal(target.path, missingNode as BeginningFact)
  }
  const node = world.get(from)
  world.set(from, missingNode)
  world.set(to, node.kind === "nothing" ? unknownNode : node.kind === "directory" ? { ...node, isTouched: true } : node)
}

const makeLink = (world: World, { target }: FileMakeLink, { path: requestPath }: Operation): void => {
  const path = world.resolveLinks(requestPath, "parents")
  const prior = world.get(path)
  if (prior.kind === "origin") world.beginning.reveal(prior.path, missingNode as BeginningFact)
  world.set(path, { kind: "symlink", target })
}

const setAttributes = (world: World, asked: FileSetAttributes, { path: requestPath }: Operation, answer: Answer): void => {
  const path = world.resolveLinks(requestPath, "last")
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

export const isChange = (operation: Operation): boolean =>
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

export const apply = (world: World, operation: Operation): void => {
  const { answered, asked } = operation
  const row = rows[asked._tag] as Apply<Efferent> | undefined
  row?.(world, asked, operation, answered?.answer)
}
