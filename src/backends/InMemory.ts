/**
 * A filesystem in memory, which exists as long as its layer.
 *
 * It enforces the rules of a disk about parents, kinds, symlinks and, if requested, case. Permission bits are stored, but
 * they restrict no call. A primitive operation that fails has changed nothing.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { isBytes } from "../model/realms.ts"
import { Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { InvalidArgument, InvalidPath, type PathTooLong, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, type LimitsShape } from "../model/Limits.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { Slice } from "../model/Slice.ts"
import { makeRelativeTargets } from "../port/absoluteLinks.ts"
import type { Backend } from "../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions } from "../port/Rules.ts"
import type { Slices } from "../port/slices.ts"
import { make as makeWatchers } from "../port/watchers.ts"
import * as Content from "./memory/content.ts"
import { makeMemoryHistory, makeMemoryPort } from "./memory/port.ts"
import * as MemorySession from "./memory/session.ts"
import * as MemoryTree from "./memory/tree.ts"

export type {
  /**
   * @since 0.1.0
   */
  CommonOptions
} from "../port/Rules.ts"
export type { TreeState } from "./memory/session.ts"

/**
 * The initial content of a filesystem.
 *
 * Keys are single names. A string is a text file in UTF-8, a Uint8Array is a file of bytes, and an object is a
 * directory. An object whose only key is `link`, with a string, is a symlink. To create a directory with a single text
 * file named `link`, give the text as a Uint8Array.
 *
 * @category models
 * @since 0.1.0
 */
export type Tree = { readonly [name: string]: string | Uint8Array | { readonly link: string } | Tree }

/**
 * The initial content of a filesystem in memory, and the rules that it enforces.
 *
 * @since 0.1.0
 */
export interface InMemoryOptions extends CommonOptions {
  /**
   * The initial content, or the whole tree of a session (`State`). The content is created even if other options forbid
   * writing.
   * @default empty
   */
  readonly tree?: Tree | MemorySession.TreeState | undefined
  /** True to ignore case in names, so that code for Windows can be tested on any system. @default false */
  readonly caseInsensitive?: boolean | undefined
  /**
   * The meaning of an absolute symlink target. `escape`: the target leads out of the root. `root`: the "/" of the
   * target is the root of this filesystem.
   * @default "escape"
   */
  readonly absoluteLinks?: "escape" | "root" | undefined
}

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

const describe = (value: unknown): Described | string => {
  if (typeof value === "string" && !value.isWellFormed()) return surrogate
  if (typeof value === "string" || isBytes(value)) {
    const content = Content.of(typeof value === "string" ? encoder.encode(value) : value)
    return content === undefined ? "there is not enough memory for the file" : { kind: "file", content }
  }
  if (!isPlainObject(value)) return "each value must be a string, a Uint8Array, a link or an object of such values"
  const entries = Object.entries(value)
  const [name, target] = entries.length === 1 ? entries[0]! : []
  if (name !== "link" || typeof target !== "string") return { kind: "directory", entries }
  if (!target.isWellFormed()) return surrogate
  return target === "" || target.includes("\0")
    ? "the target of a link must not be empty or contain NUL"
    : { kind: "link", target }
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

/**
 * Restores a tree state. Returns InvalidArgument if the state treats case differently. The state stays valid, because the
 * tree copies each of its nodes before the first change.
 */
const adopt = (
  tree: MemoryTree.MemoryTree,
  state: MemorySession.TreeState,
  caseSensitive: boolean
): InvalidArgument | undefined => {
  if (state.caseSensitive !== caseSensitive)
    return invalid(FsPath.root, "the tree was created with a different value of the option `caseInsensitive`")
  tree.restore(MemorySession.capturedIn(state))
  return undefined
}

const plant = (
  tree: MemoryTree.MemoryTree,
  options: InMemoryOptions,
  limits: LimitsShape,
  now: DateTime.Utc
): TreeError | undefined => {
  if (options.tree instanceof MemorySession.TreeState) return adopt(tree, options.tree, options.caseInsensitive !== true)
  const pending: Array<Pending> = [{ path: FsPath.root, value: options.tree, above: undefined }]
  while (pending.length > 0) {
    const here = pending.pop()!
    const { path, value } = here
    const described = describe(value)
    if (typeof described === "string") return invalid(path, described)
    if (path === FsPath.root && described.kind !== "directory") return invalid(path, "the root must be a directory")
    if (tree.get(path) !== undefined && path !== FsPath.root) {
      return invalid(path, "another key of the same directory differs only in case")
    }
    if (described.kind === "file") tree.write(path, described.content, "create", now)
    else if (described.kind === "link") tree.makeLink(path, described.target, now)
    else {
      if (holdsItself(here)) return invalid(path, "the object contains itself")
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

/** A new tree, and the function that creates a port: the port of the new tree, or of the tree in a session. */
interface Grown {
  readonly tree: MemoryTree.MemoryTree
  readonly port: (tree: MemoryTree.MemoryTree) => Backend
}

const grow = (options: InMemoryOptions): Effect.Effect<Grown, TreeError> =>
  Effect.flatMap(Limits, (limits) =>
    Effect.clockWith((clock): Effect.Effect<Grown, TreeError> => {
      const now = DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())
      const caseInsensitive = options.caseInsensitive === true
      const watchers = makeWatchers((path) => (caseInsensitive ? FsPath.fold(path) : path))
      const tree = MemoryTree.make({ now, caseInsensitive, listener: watchers })
      const error = options.tree === undefined ? undefined : plant(tree, options, limits, now)
      if (error !== undefined) return Effect.fail(error)
      const rules = fromOptions(options)
      const relative = options.absoluteLinks === "root" ? makeRelativeTargets(() => ["/"]) : undefined
      const settings = { caseInsensitive, rules, relative }
      const port = (tree: MemoryTree.MemoryTree): Backend => ({
        ...makeMemoryPort(tree, watchers, settings),
        history: makeMemoryHistory(tree, settings)
      })
      return Effect.succeed({ tree, port })
    })
  )

/**
 * Creates the backend alone, for combinators and tests.
 *
 * Fails with InvalidPath for a key of the tree that is not a single name, and with PathTooLong for a path that exceeds
 * the current limits. Fails with InvalidArgument for an invalid value, and for two keys that are the same name.
 *
 * @category constructors
 * @since 0.1.0
 */
export function make(options?: Empty): Effect.Effect<Backend>
export function make(options: InMemoryOptions): Effect.Effect<Backend, InvalidPath | PathTooLong | InvalidArgument>
export function make(options: InMemoryOptions = {}): Effect.Effect<Backend, TreeError> {
  return Effect.map(grow(options), ({ port, tree }) => enforce(port(tree)))
}

/**
 * Creates a filesystem in memory, empty or with the given tree.
 *
 * @example
 * ```ts
 * const layer = InMemory.layer({ tree: { docs: { "guide.md": "Read it." }, latest: { link: "docs/guide.md" } } })
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("latest"))
 * yield* Effect.provide(read, layer) // => "Read it."
 * ```
 * @category layers
 * @since 0.1.0
 */
export function layer(options?: Empty): Layer.Layer<Filesystem>
export function layer(options: InMemoryOptions): Layer.Layer<Filesystem, InvalidPath | PathTooLong | InvalidArgument>
export function layer(options: InMemoryOptions = {}): Layer.Layer<Filesystem, TreeError> {
  return Layer.effect(Filesystem, Effect.map(make(options), makeAlgebra))
}

/**
 * The slice in which `makeSession` stores its filesystem. The slice has one item, the whole tree.
 *
 * The JSON form of the item is `{ caseSensitive, directories, files, links }`. The three lists are sorted by `path`, and
 * the root directory is ".". The entries have `createdAt` and `modifiedAt` (milliseconds since 1970). Directories and files
 * also have `mode`, files have `sizeBytes` and `content` (base64), and links have `target`. Equal trees have equal JSON.
 *
 * @since 0.1.0
 */
export const State: Slice<MemorySession.TreeState> = MemorySession.slice

/**
 * Creates a backend whose tree is stored in a session. Snapshots, rollbacks, saves and resets of the session apply to
 * the tree.
 *
 * If the session already has a tree, this tree is used. Otherwise, and after a reset, the tree of the options is used.
 * Several backends over one session share the same tree. When the scope closes, the backend stops working, but the
 * session keeps the tree.
 *
 * Fails like `make`. Also fails with InvalidArgument if the session's tree treats case in names differently, and with
 * SessionError if other code has installed the slice.
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
 * Creates the filesystem of `makeSession`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSession = (
  session: Slices,
  options: InMemoryOptions = {}
): Layer.Layer<Filesystem, InvalidPath | PathTooLong | InvalidArgument | SessionError> =>
  Layer.effect(Filesystem, Effect.map(makeSession(session, options), makeAlgebra))
