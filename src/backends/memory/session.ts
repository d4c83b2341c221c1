/**
 * Keeps a tree in memory in a session.
 *
 * Each change of the tree also sets the slice, in the same step. Any other change of the slice (a rollback, a reset,
 * another filesystem on the session) replaces the tree.
 *
 * Filesystems on one session share their locks and their initial tree.
 */
import { unavailable } from "../../model/Fault.ts"
import { filesystemClosed } from "../faults.ts"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type * as Scope from "effect/Scope"
import { type Fault, InvalidArgument } from "../../model/FsError.ts"
import { checkLimits, compare, fold, type FsPath, join, name, parent, parse, root } from "../../model/FsPath.ts"
import { Limits, type LimitsShape } from "../../model/Limits.ts"
import { make as makeSlice, replaceLatest, type Slice } from "../../model/Slice.ts"
import type { SessionError } from "../../model/sessionError.ts"
import type { Backend } from "../../port/Backend.ts"
import type { Explore } from "../../port/explorer.ts"
import * as Request from "../../port/Request.ts"
import type { Cell, Slices } from "../../port/slices.ts"
import { Buffer } from "../../runtime/buffer.ts"
import * as Locks from "../../runtime/locks.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import * as Content from "./content.ts"
import * as Children from "./hashTrie.ts"
import { type Captured, type Directory, isFault, type MemoryTree, type Node, noChildren } from "./tree.ts"

// Stores a whole tree as one item of a session's slice.
//
// The item shares nodes with earlier and later items, so one item per change costs little. Only saving an item creates
// its JSON form. This form is complete and sorted, so equal trees have equal texts.
//
// The JSON form is untrusted input: decoding it gives a complete tree or fails.

let rootOf: (state: TreeState) => Directory

/**
 * A tree in memory at one moment.
 *
 * A program can keep a state, set it and save it. Only a filesystem can read its contents.
 *
 * @since 0.1.0
 */
export class TreeState {
  readonly caseSensitive: boolean
  readonly #root: Directory

  static {
    rootOf = (state) => state.#root
  }

  constructor({ root }: { readonly root: Directory }, caseSensitive: boolean) {
    this.#root = root
    this.caseSensitive = caseSensitive
  }
}

export const capturedIn = (state: TreeState): Captured => ({ root: rootOf(state) })

const Time = Schema.Int.check(Schema.isBetween({ minimum: -8.64e15, maximum: 8.64e15 }))
const Mode = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0o7777 }))
const entryFields = { path: Schema.String, createdAt: Time, modifiedAt: Time }

const Form = Schema.Struct({
  caseSensitive: Schema.Boolean,
  directories: Schema.Array(Schema.Struct({ ...entryFields, mode: Mode })),
  files: Schema.Array(
    Schema.Struct({ ...entryFields, mode: Mode, sizeBytes: Schema.optionalKey(Schema.Int), content: Schema.String })
  ),
  links: Schema.Array(Schema.Struct({ ...entryFields, target: Schema.String }))
})
type Form = typeof Form.Type

const byPath = (self: { readonly path: string }, that: { readonly path: string }): number => compare(self.path, that.path)

const toBase64 = (content: Content.Content): string => {
  const { buffer, byteOffset, length } = Content.view(content)
  return Buffer.from(buffer, byteOffset, length).toString("base64")
}

/**
 * Returns the JSON form of a state. Omits the temporary files of writes in progress, because their writers no longer
 * exist when the form is read.
 */
const encode = (state: TreeState): Form => {
  const directories: Array<Form["directories"][number]> = []
  const files: Array<Form["files"][number]> = []
  const links: Array<Form["links"][number]> = []
  const pending: Array<readonly [path: FsPath, node: Node]> = [[root, rootOf(state)]]
  while (pending.length > 0) {
    const [path, node] = pending.pop()!
    const { mode } = node
    const createdAt = node.createdAt.epochMilliseconds
    const modifiedAt = node.modifiedAt.epochMilliseconds
    if (node.kind === "symlink") links.push({ path, createdAt, modifiedAt, target: node.target })
    else if (node.kind === "file") {
      const sizeBytes = node.content.length
      files.push({ path, createdAt, modifiedAt, mode, sizeBytes, content: toBase64(node.content) })
    } else {
      directories.push({ path, createdAt, modifiedAt, mode })
      Children.forEach(node.children, (child) => {
        if (!TemporaryNames.isInProgress(child.name)) pending.push([join(path, child.name), child])
      })
    }
  }
  return {
    caseSensitive: state.caseSensitive,
    directories: directories.sort(byPath),
    files: files.sort(byPath),
    links: links.sort(byPath)
  }
}

const fromBase64 = (text: string): Uint8Array | undefined => {
  const bytes = Buffer.from(text, "base64")
  return bytes.toString("base64") === text ? bytes : undefined
}

type EntryAttributes = Pick<Node, "createdAt" | "modifiedAt" | "mode">

class Builder {
  readonly root: Directory
  readonly #owner: object = {}
  readonly #directories = new Map<string, Directory>()
  readonly #folds: boolean
  readonly #limits: LimitsShape

  constructor(attributes: EntryAttributes, folds: boolean, limits: LimitsShape) {
    this.#folds = folds
    this.#limits = limits
    const place = { key: "", hash: 0, name: "", owner: this.#owner }
    this.root = { kind: "directory", ...place, ...attributes, ...noChildren }
    this.#directories.set(root, this.root)
  }

  #place(path: FsPath): Pick<Node, "key" | "hash" | "name" | "owner"> {
    const own = name(path)
    const key = this.#folds ? fold(own) : own
    return { key, hash: Children.hashOf(key, 0, key.length), name: own, owner: this.#owner }
  }

  #add(path: string, made: (place: Pick<Node, "key" | "hash" | "name" | "owner">) => Node): string | undefined {
    const parsed = parse(path)
    if (typeof parsed !== "string") return String(parsed["detail"])
    if (parsed !== path || parsed === root) return "it is not in normal form"
    const fault = checkLimits(parsed, this.#limits)
    if (fault !== undefined) return String(fault["detail"])
    const holder = this.#directories.get(parent(parsed))
    if (holder === undefined) return "its parent directory is not in the list"
    const node = made(this.#place(parsed))
    if (Children.get<Node>(holder.children, node.key, 0, node.key.length) !== undefined)
      return "another entry has the same path"
    holder.children = Children.set<Node>(holder.children, node, this.#owner)
    holder.size++
    if (node.kind === "directory") this.#directories.set(parsed, node)
    return undefined
  }

  directory(path: string, attributes: EntryAttributes): string | undefined {
    return this.#add(path, (place) => ({ kind: "directory", ...place, ...attributes, ...noChildren }))
  }

  file(path: string, attributes: EntryAttributes, content: Content.Content): string | undefined {
    return this.#add(path, (place) => ({ kind: "file", ...place, ...attributes, content }))
  }

  link(path: string, attributes: EntryAttributes, target: string): string | undefined {
    const sizeBytes = Buffer.byteLength(target)
    return this.#add(path, (place) => ({ kind: "symlink", ...place, ...attributes, target, sizeBytes }))
  }
}

const attributesOf = (entry: {
  readonly createdAt: number
  readonly modifiedAt: number
  readonly mode?: number
}): EntryAttributes => ({
  createdAt: DateTime.makeUnsafe(entry.createdAt),
  modifiedAt: DateTime.makeUnsafe(entry.modifiedAt),
  mode: entry.mode ?? 0o777
})

const isTarget = (text: string): boolean => text !== "" && text.isWellFormed() && !text.includes("\0")

const issue = (message: string): SchemaIssue.Issue => new SchemaIssue.InvalidValue({ message })

const entryIssue = (path: string, why: string): SchemaIssue.Issue => issue(`${JSON.stringify(path.slice(0, 200))}: ${why}`)

const decode = (form: Form, limits: LimitsShape): TreeState | SchemaIssue.Issue => {
  // Sort the directories, so that each comes after its parent.
  const [first, ...directories] = form.directories.toSorted(byPath)
  if (first?.path !== root) return issue("the list of directories does not contain the root")
  const builder = new Builder(attributesOf(first), !form.caseSensitive, limits)
  for (const directory of directories) {
    const why = builder.directory(directory.path, attributesOf(directory))
    if (why !== undefined) return entryIssue(directory.path, why)
  }
  for (const file of form.files) {
    const bytes = fromBase64(file.content)
    if (bytes === undefined) return entryIssue(file.path, "the content is not base64")
    if (file.sizeBytes !== undefined && file.sizeBytes !== bytes.length)
      return entryIssue(file.path, "the size does not equal the length of the content")
    const content = Content.of(bytes)
    if (content === undefined) return entryIssue(file.path, "there is not enough memory for the file")
    const why = builder.file(file.path, attributesOf(file), content)
    if (why !== undefined) return entryIssue(file.path, why)
  }
  for (const link of form.links) {
    if (!isTarget(link.target)) return entryIssue(link.path, "the target of a link must not be empty or contain NUL")
    const why = builder.link(link.path, attributesOf(link), link.target)
    if (why !== undefined) return entryIssue(link.path, why)
  }
  return new TreeState({ root: builder.root }, form.caseSensitive)
}

const tooLarge = issue("a file is too large for a JSON text")

const codec: Schema.Codec<TreeState, unknown> = Form.pipe(
  Schema.decodeTo(
    Schema.instanceOf(TreeState),
    SchemaTransformation.transformEffect({
      decode: (form: Form) =>
        Effect.flatMap(Limits, (limits) => {
          const decoded = decode(form, limits)
          return decoded instanceof TreeState ? Effect.succeed(decoded) : Effect.fail(decoded)
        }),
      encode: (state: TreeState) => Effect.try({ try: () => encode(state), catch: () => tooLarge })
    })
  )
)

export const slice: Slice<TreeState> = makeSlice("InMemoryState", codec, { reduce: replaceLatest })

interface SessionTree {
  /** The locks of the tree alone, for the session's participant. `locks` locks the session too. */
  readonly participantLocks: Locks.Locks
  readonly locks: Locks.Locks
  readonly caseSensitive: boolean
  readonly first: TreeState
  members: number
  participantCount: number
}

const sessionTrees = new WeakMap<Slices, SessionTree>()

const otherCaseDetail = "the session's tree was created with a different value of the option `caseInsensitive`"

const mismatch = new InvalidArgument({
  operation: "InMemory.makeSession",
  path: root,
  argument: "caseInsensitive",
  detail: otherCaseDetail
})

const notShown = unavailable(otherCaseDetail)

const joinSessionTree = (session: Slices, first: TreeState): Effect.Effect<SessionTree, InvalidArgument, Scope.Scope> => {
  const { caseSensitive } = first
  const entered = Effect.suspend(() => {
    let sessionTree = sessionTrees.get(session)
    if (sessionTree === undefined) {
      const participantLocks = Locks.make({ caseSensitive })
      sessionTree = {
        participantLocks,
        locks: Locks.nestLocks(session.exclusively, participantLocks),
        caseSensitive,
        first,
        members: 0,
        participantCount: 0
      }
      sessionTrees.set(session, sessionTree)
    }
    if (sessionTree.caseSensitive !== caseSensitive) return Effect.fail(mismatch)
    sessionTree.members++
    return Effect.succeed(sessionTree)
  })
  return Effect.acquireRelease(entered, (sessionTree) =>
    Effect.sync(() => {
      if (--sessionTree.members === 0) sessionTrees.delete(session)
    })
  )
}

/**
 * Returns a tree that stores each change in the session. Refuses changes, except restores, while `findFault` returns a
 * fault.
 */
const persistChanges = (tree: MemoryTree, keep: () => void, findFault: () => Fault | undefined): MemoryTree => {
  const kept = <A extends object | undefined>(change: () => A): A | Fault => {
    const refused = findFault()
    if (refused !== undefined) return refused
    const result = change()
    if (result === undefined || !isFault(result)) keep()
    return result
  }
  return {
    ...tree,
    write: (path, content, mode, now) => kept(() => tree.write(path, content, mode, now)),
    makeDirectory: (path, now) => kept(() => tree.makeDirectory(path, now)),
    makeLink: (path, target, now) => kept(() => tree.makeLink(path, target, now)),
    remove: (path, now) => kept(() => tree.remove(path, now)),
    removeTree: (path, now) => kept(() => tree.removeTree(path, now)),
    rename: (from, to, replace, now) => kept(() => tree.rename(from, to, replace, now)),
    setAttributes: (path, attributes) => kept(() => tree.setAttributes(path, attributes)),
    restore: (captured) => {
      tree.restore(captured)
      keep()
    },
    restorePaths: (captured, paths, now) => {
      tree.restorePaths(captured, paths, now)
      keep()
    }
  }
}

const guardExplore =
  (explore: Explore, findFault: () => Fault | undefined): Explore =>
  (pathOf, searches) =>
    Effect.map(explore(pathOf, searches), (explorer) => ({
      ...explorer,
      take: () => {
        const refused = findFault()
        const readings = explorer.take()
        return refused === undefined ? readings : readings.map(({ visit }) => ({ visit, children: refused }))
      },
      lend: (files) =>
        Effect.suspend(() => {
          const refused = findFault()
          return refused === undefined ? explorer.lend!(files) : Effect.fail(refused)
        })
    }))

const failWhile = (port: Backend, findFault: () => Fault | undefined): Backend => {
  const guardRead =
    <Args extends ReadonlyArray<unknown>, A, R>(read: (...args: Args) => Effect.Effect<A, Fault, R>) =>
    (...args: Args): Effect.Effect<A, Fault, R> => {
      const refused = findFault()
      return refused === undefined ? read(...args) : Effect.fail(refused)
    }
  const { explore, history, links } = port
  return {
    ...port,
    explore: explore && guardExplore(explore, findFault),
    stat: guardRead(port.stat),
    list: guardRead(port.list),
    open: guardRead(port.open),
    links: links && { ...links, read: guardRead(links.read) },
    perform: Request.override(port.perform, (perform) => ({
      Stat: guardRead((request) => perform(request)),
      Read: guardRead((request) => perform(request))
    })),
    history: history?._tag === "Memory" ? { ...history, restore: guardRead(history.restore) } : history
  }
}

interface Options {
  readonly caseInsensitive: boolean
  readonly port: (tree: MemoryTree, locks: Locks.Locks) => Backend
}

export const make = (
  session: Slices,
  tree: MemoryTree,
  { caseInsensitive, port }: Options
): Effect.Effect<Backend, SessionError | InvalidArgument, Scope.Scope> =>
  Effect.gen(function* () {
    const caseSensitive = !caseInsensitive
    const captured = (): TreeState => new TreeState(tree.capture(), caseSensitive)
    const sessionTree = yield* joinSessionTree(session, captured())
    let refused: Fault | undefined
    let isEnded = false
    const findFault = () => (isEnded ? filesystemClosed : refused)
    const showTree = (state: TreeState): void => {
      refused = state.caseSensitive === caseSensitive ? undefined : notShown
      if (refused === undefined) tree.restore(capturedIn(state))
    }
    const changed = (latest: TreeState | undefined): void => {
      if (latest === undefined) cell.set(sessionTree.first)
      showTree(latest ?? sessionTree.first)
    }
    const cell: Cell<TreeState> = yield* session.cell(slice, changed)
    const storedTree = cell.get()
    if (storedTree !== undefined && storedTree.caseSensitive !== caseSensitive) return yield* Effect.fail(mismatch)
    changed(storedTree)
    yield* Effect.addFinalizer(() => Effect.sync(() => void (isEnded = true)))
    yield* session.addParticipant({
      name: `InMemory ${++sessionTree.participantCount}`,
      exclusively: (effect) => sessionTree.participantLocks.alone([root], effect)
    })
    return failWhile(
      port(
        persistChanges(tree, () => cell.set(captured()), findFault),
        sessionTree.locks
      ),
      findFault
    )
  })
