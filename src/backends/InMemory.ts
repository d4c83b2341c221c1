/**
 * A filesystem that lives and dies with its layer. It keeps every rule that a disk would enforce (parents, kinds, links, modes,
 * case where asked), so that what works here works on a host; what a disk cannot promise it does promise: a call that fails has
 * changed nothing.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { isBytes } from "../model/bytes.ts"
import { Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { InvalidArgument, InvalidPath, type PathTooLong, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, type LimitsShape } from "../model/Limits.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { Slice } from "../model/Slice.ts"
import type { Backend } from "../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions } from "../port/Rules.ts"
import type { Slices } from "../port/slices.ts"
import * as Content from "./internal/memoryContent.ts"
import * as MemoryHistory from "./internal/memoryHistory.ts"
import * as MemoryPort from "./internal/memoryPort.ts"
import * as MemorySession from "./internal/memorySession.ts"
import * as MemoryState from "./internal/memoryState.ts"
import * as MemoryTree from "./internal/memoryTree.ts"
import * as MemoryWatch from "./internal/memoryWatch.ts"

export type {
  /**
   * @since 0.1.0
   */
  CommonOptions
} from "../port/Rules.ts"
export type {
  /**
   * @since 0.1.0
   */
  TreeState
} from "./internal/memoryState.ts"

/**
 * What a filesystem starts with. Keys are single names. A string is a file of UTF-8 text, an object a directory, except that an
 * object whose only key is `link`, with a string, is a symbolic link (a directory with just a text file of that name takes the
 * text as bytes).
 *
 * @since 0.1.0
 */
export type Tree = { readonly [name: string]: string | Uint8Array | { readonly link: string } | Tree }

/**
 * What a filesystem in memory starts with, and which rules it keeps.
 *
 * @since 0.1.0
 */
export interface InMemoryOptions extends CommonOptions {
  /** The first content, put there whatever else the options forbid; or all of one that a session keeps (State). @default empty */
  readonly tree?: Tree | MemoryState.TreeState | undefined
  /** Compare names as Windows does, so its rules can be exercised anywhere. @default false */
  readonly caseInsensitive?: boolean | undefined
}

/** Without a tree, building cannot fail. */
type Empty = Omit<InMemoryOptions, "tree"> & { readonly tree?: undefined }

type TreeError = InvalidPath | PathTooLong | InvalidArgument

const operation = "InMemory.make"

const invalid = (path: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path, argument: "tree", detail })

type Described =
  | { readonly kind: "file"; readonly content: Content.Content }
  | { readonly kind: "directory"; readonly entries: ReadonlyArray<readonly [name: string, value: unknown]> }
  | { readonly kind: "link"; readonly target: string }

const isPlainObject = (value: unknown): value is object => {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const surrogate = "a text with a lone surrogate cannot be encoded"

const encoder = new TextEncoder()

/** What a value of the tree stands for, or why it can stand for nothing. */
const describe = (value: unknown): Described | string => {
  if (typeof value === "string" && !value.isWellFormed()) return surrogate
  if (typeof value === "string" || isBytes(value)) {
    const content = Content.of(typeof value === "string" ? encoder.encode(value) : value)
    return content === undefined ? "there is not enough memory for it" : { kind: "file", content }
  }
  if (!isPlainObject(value)) return "it is neither text nor bytes, a link or an object of these"
  const entries = Object.entries(value)
  const [name, target] = entries.length === 1 ? entries[0]! : []
  if (name !== "link" || typeof target !== "string") return { kind: "directory", entries }
  if (!target.isWellFormed()) return surrogate
  return target === "" || target.includes("\0") ? "it is not the target of a link" : { kind: "link", target }
}

interface Pending {
  readonly path: FsPath.FsPath
  readonly value: unknown
  readonly above: Pending | undefined
}

const holdsItself = (self: Pending): boolean => {
  for (let at = self.above; at !== undefined; at = at.above) if (at.value === self.value) return true
  return false
}

const checkName = (key: string, path: FsPath.FsPath, options: InMemoryOptions, limits: LimitsShape): TreeError | undefined => {
  const parsed = FsPath.parse(key, options.policy)
  if (typeof parsed !== "string") return promote(parsed, operation, path) as TreeError
  if (parsed !== key || parsed === FsPath.root || key.includes("/")) {
    return new InvalidPath({ operation, path, detail: "a key of the tree must be a single name" })
  }
  const fault = FsPath.uncreatable(parsed) ?? FsPath.checkLimits(path, limits)
  return fault && (promote(fault, operation, path) as TreeError)
}

/** Shared with whoever has it; modes and times are its own. */
const adopt = (
  tree: MemoryTree.MemoryTree,
  state: MemoryState.TreeState,
  caseSensitive: boolean
): InvalidArgument | undefined => {
  if (state.caseSensitive !== caseSensitive) return invalid(FsPath.root, "it is a tree with other rules of case")
  tree.restore(MemoryState.capturedIn(state))
  return undefined
}

/** Puts everything in its place, or answers why it cannot be. */
const plant = (
  tree: MemoryTree.MemoryTree,
  options: InMemoryOptions,
  limits: LimitsShape,
  now: DateTime.Utc
): TreeError | undefined => {
  if (options.tree instanceof MemoryState.TreeState) return adopt(tree, options.tree, options.caseInsensitive !== true)
  const pending: Array<Pending> = [{ path: FsPath.root, value: options.tree, above: undefined }]
  while (pending.length > 0) {
    const here = pending.pop()!
    const { path, value } = here
    const described = describe(value)
    if (typeof described === "string") return invalid(path, described)
    if (path === FsPath.root && described.kind !== "directory") return invalid(path, "the root must be a directory")
    if (tree.get(path) !== undefined && path !== FsPath.root) {
      return invalid(path, "another key of the same directory is the same name where case does not distinguish")
    }
    if (described.kind === "file") tree.write(path, described.content, "create", now)
    else if (described.kind === "link") tree.makeLink(path, described.target, now)
    else {
      if (holdsItself(here)) return invalid(path, "it is within itself")
      if (path !== FsPath.root) tree.makeDirectory(path, now)
      for (const [key, value] of described.entries) {
        const child = FsPath.join(path, key)
        const error = checkName(key, child, options, limits)
        if (error !== undefined) return error
        pending.push({ path: child, value, above: here })
      }
    }
  }
  return undefined
}

/** What the options plant, and the port over it, or over what stands in for it. */
interface Grown {
  readonly tree: MemoryTree.MemoryTree
  readonly port: (tree: MemoryTree.MemoryTree) => Backend
}

const grow = (options: InMemoryOptions): Effect.Effect<Grown, TreeError> =>
  Effect.flatMap(Limits, (limits) =>
    Effect.clockWith((clock): Effect.Effect<Grown, TreeError> => {
      const now = DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())
      const caseInsensitive = options.caseInsensitive === true
      const watchers = MemoryWatch.make({ caseInsensitive })
      const tree = MemoryTree.make({ now, caseInsensitive, listener: watchers })
      const error = options.tree === undefined ? undefined : plant(tree, options, limits, now)
      if (error !== undefined) return Effect.fail(error)
      const rules = fromOptions(options)
      const port = (tree: MemoryTree.MemoryTree): Backend => ({
        ...MemoryPort.make(tree, watchers, { caseInsensitive, rules }),
        history: MemoryHistory.make(tree, { caseInsensitive, rules })
      })
      return Effect.succeed({ tree, port })
    })
  )

/**
 * The backend alone, for combinators and tests. Fails with InvalidPath for a key of the tree that is no single name, PathTooLong
 * beyond the limits in force, InvalidArgument for a value that is no content and for keys that are the same name.
 *
 * @since 0.1.0
 */
export function make(options?: Empty): Effect.Effect<Backend>
export function make(options: InMemoryOptions): Effect.Effect<Backend, InvalidPath | PathTooLong | InvalidArgument>
export function make(options: InMemoryOptions = {}): Effect.Effect<Backend, TreeError> {
  return Effect.map(grow(options), ({ port, tree }) => enforce(port(tree)))
}

/**
 * A filesystem in memory, empty or with the given tree.
 *
 * @since 0.1.0
 */
export function layer(options?: Empty): Layer.Layer<Filesystem>
export function layer(options: InMemoryOptions): Layer.Layer<Filesystem, InvalidPath | PathTooLong | InvalidArgument>
export function layer(options: InMemoryOptions = {}): Layer.Layer<Filesystem, TreeError> {
  return Layer.effect(Filesystem, Effect.map(make(options), makeAlgebra))
}

/**
 * What a filesystem of `makeSession` keeps in its session: one item, the whole tree. As JSON it is `{ caseSensitive, directories, files,
 * links }`, each sorted by `path`, the root among the directories as "."; with `mode`, `createdAt` and `modifiedAt` in milliseconds since
 * 1970, `sizeBytes` and `content` in base64, `target`. Equal trees are equal JSON.
 *
 * @since 0.1.0
 */
export const State: Slice<MemoryState.TreeState> = MemoryState.slice

/**
 * The backend whose tree is kept in the session, where its snapshots, rollbacks, saves and resets are those of the tree. What the session
 * keeps already is the tree; the one of the options is there where it keeps none, and after a reset. Several over one session are the
 * same tree. Ends with the scope; the session keeps the tree.
 *
 * Fails as `make` does, with InvalidArgument also where the session keeps a tree with other rules of case, and with SessionError where
 * its slice is another's.
 *
 * @since 0.1.0
 */
export const makeSession = (
  session: Slices,
  options: InMemoryOptions = {}
): Effect.Effect<Backend, InvalidPath | PathTooLong | InvalidArgument | SessionError, Scope.Scope> =>
  Effect.flatMap(grow(options), ({ port, tree }) =>
    Effect.map(
      MemorySession.make(session, tree, {
        caseInsensitive: options.caseInsensitive === true,
        port: (tree, locks) => ({ ...port(tree), locks })
      }),
      enforce
    )
  )

/**
 * The filesystem of `makeSession`.
 *
 * @since 0.1.0
 */
export const layerSession = (
  session: Slices,
  options: InMemoryOptions = {}
): Layer.Layer<Filesystem, InvalidPath | PathTooLong | InvalidArgument | SessionError> =>
  Layer.effect(Filesystem, Effect.map(makeSession(session, options), makeAlgebra))
