/**
 * A pure model of a filesystem: a tree as a value, and a function that returns the answer of a call and the tree after the
 * call. The model shares no code with the engine except the order of paths, so a comparison finds errors of both.
 *
 * @since 0.1.0
 */
import type { WriteMode } from "../model/Entry.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Picture } from "./Files.ts"
import { encodeUtf8 } from "./operations.ts"

const failure = (tag: string): Outcome => ({ tag })
const escapeDenied = failure("AccessDenied escape")
const linkLoop = failure("InvalidPath")

const isOutcome = (value: object): value is Outcome => "tag" in value

type Names = ReadonlyArray<string>

const parse = (input: string): Names | Outcome => {
  const out: Array<string> = []
  for (const segment of input.split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment !== "..") out.push(segment)
    else if (out.pop() === undefined) return failure("InvalidPath")
  }
  return out
}

const folded = (self: Model, name: string): string => (self.caseSensitive ? name : name.toLowerCase())

const isBelow = (self: Model, above: Names, names: Names): boolean =>
  above.length <= names.length && above.every((name, i) => folded(self, name) === folded(self, names[i]!))

const isSame = (self: Model, one: Names, other: Names): boolean => one.length === other.length && isBelow(self, one, other)

const childOf = (self: Model, at: Directory, name: string) => at.entries.get(folded(self, name))

interface Place {
  /** The names of the path after its symlinks are resolved. The name of an existing entry has the case of this entry. */
  readonly names: Names
  readonly node: Node | undefined
  /**
   * The failure of creating an entry at this path. Set if an ancestor is not a directory, or if the target of a link
   * has ".." after a missing entry.
   */
  readonly creationFailure: Outcome | undefined
  readonly followedLinks: number
}

const leavesRoot = (depth: number, target: string): boolean => {
  if (target.startsWith("/")) return true
  let level = depth
  for (const segment of target.split("/")) {
    if (segment === "..") level--
    else if (segment !== "" && segment !== ".") level++
    if (level < 0) return true
  }
  return false
}

const resolvePlace = (self: Model, names: Names, keepLink: boolean, followedLinks = 0): Place | Outcome => {
  if (names.length === 0) return { names: [], node: self.root, creationFailure: undefined, followedLinks }
  const name = names.at(-1)!
  const above = resolvePlace(self, names.slice(0, -1), false, followedLinks)
  if (isOutcome(above)) return above
  if (name === "..") {
    if (above.node?.kind !== "directory") {
      const why = above.node === undefined ? "NotFound" : "NotADirectory"
      return { ...above, node: undefined, creationFailure: above.creationFailure ?? failure(why) }
    }
    return above.names.length === 0 ? escapeDenied : resolvePlace(self, above.names.slice(0, -1), false, above.followedLinks)
  }
  if (above.node?.kind !== "directory") {
    return {
      names: [...above.names, name],
      node: undefined,
      creationFailure: above.creationFailure ?? (above.node === undefined ? undefined : failure("NotADirectory")),
      followedLinks: above.followedLinks
    }
  }
  const found = childOf(self, above.node, name)
  const namesHere = [...above.names, found?.name ?? name]
  if (found?.node.kind !== "link" || keepLink) {
    return { names: namesHere, node: found?.node, creationFailure: undefined, followedLinks: above.followedLinks }
  }
  if (above.followedLinks >= 40) return linkLoop
  const { target } = found.node
  if (leavesRoot(above.names.length, target)) return escapeDenied
  const targetNames = target.split("/").filter((segment) => segment !== "" && segment !== ".")
  return resolvePlace(self, [...above.names, ...targetNames], false, above.followedLinks + 1)
}

/**
 * Returns the tree with the node at the path. Removes the entry at the path if the node is `undefined`. Creates missing parent
 * directories.
 */
const withNodeAt = (self: Model, at: Directory, names: Names, node: Node | undefined): Directory => {
  const [name, ...rest] = names as [string, ...Array<string>]
  const key = folded(self, name)
  const found = at.entries.get(key)
  const entries = new Map(at.entries)
  if (rest.length > 0) {
    const below: Directory = found?.node.kind === "directory" ? found.node : { kind: "directory", entries: new Map() }
    entries.set(key, { name: found?.name ?? name, node: withNodeAt(self, below, rest, node) })
  } else if (node === undefined) entries.delete(key)
  else entries.set(key, { name: found?.name ?? name, node })
  return { kind: "directory", entries }
}

const setNode = (self: Model, names: Names, node: Node | undefined): Model => ({
  ...self,
  root: withNodeAt(self, self.root, names, node)
})

/** Removes the empty parent directories of a path from which an entry was removed, if `prunes` is true. */
const withoutEmptyParents = (self: Model, names: Names): Model => {
  const above = names.slice(0, -1)
  if (!self.prunes || above.length === 0) return self
  const found = resolvePlace(self, above, false)
  return isOutcome(found) || found.node?.kind !== "directory" || found.node.entries.size > 0
    ? self
    : withoutEmptyParents(setNode(self, above, undefined), above)
}

/**
 * An entry in the model.
 *
 * @since 0.1.0
 */
export type Node =
  | { readonly kind: "file"; readonly text: string }
  | { readonly kind: "link"; readonly target: string }
  | Directory

/**
 * A directory in the model.
 *
 * @since 0.1.0
 */
export interface Directory {
  readonly kind: "directory"
  /** The entries. A key is the name of the entry, folded if case is ignored. */
  readonly entries: ReadonlyMap<string, { readonly name: string; readonly node: Node }>
}

/**
 * A filesystem as a value.
 *
 * @since 0.1.0
 */
export interface Model {
  readonly root: Directory
  readonly caseSensitive: boolean
  /** True if a directory is removed when a removal or a move leaves it empty. */
  readonly prunes: boolean
}

/**
 * The value for `ifMatch`: `null` (`absent`), the current version of the file, or a version that the file never had (`stale`).
 *
 * @since 0.1.0
 */
export type Match = "absent" | "current" | "stale"

/**
 * A search below a path: `glob` for every file, `grep` for the letter x.
 *
 * @since 0.1.0
 */
export type Search = "glob" | "grep"

/**
 * A call that the model can answer.
 *
 * @since 0.1.0
 */
export type Command =
  | {
      readonly _tag: "Write"
      readonly via: "write" | "writeBytes" | "sink"
      readonly path: string
      readonly text: string
      readonly mode: WriteMode
      readonly createParents: boolean
      readonly ifMatch?: Match | undefined
    }
  | {
      readonly _tag: "Edit"
      readonly path: string
      /** The text to replace, which has no line endings. Two matches of this text cannot overlap. */
      readonly oldText: string
      readonly newText: string
      readonly match: "unique" | "first" | "all"
      readonly ifMatch?: Match | undefined
    }
  | {
      readonly _tag: "Delete"
      readonly path: string
      readonly recursive: boolean
      readonly missing: "fail" | "ignore"
      readonly ifMatch?: Match | undefined
    }
  | { readonly _tag: "Mkdir"; readonly path: string; readonly parents: boolean; readonly existOk: boolean }
  | {
      readonly _tag: "Transfer"
      readonly via: "copy" | "move"
      readonly from: string
      readonly to: string
      readonly overwrite: boolean
    }
  | { readonly _tag: "Symlink"; readonly path: string; readonly target: string }
  | {
      readonly _tag: "Look"
      readonly via: "exists" | "stat" | "lstat" | "realPath" | "list" | "readString" | "readLink" | Search
      readonly path: string
    }
  | { readonly _tag: "Walk" }

/**
 * The result of a call: the tag of the failure, with the `why` of AccessDenied, or "success" with the answer.
 *
 * @since 0.1.0
 */
export interface Outcome {
  readonly tag: string
  readonly value?: unknown
}

/**
 * Returns a model with only the root.
 *
 * @since 0.1.0
 */
export const empty = (options?: {
  readonly caseSensitive?: boolean | undefined
  readonly prunes?: boolean | undefined
}): Model => ({
  root: { kind: "directory", entries: new Map() },
  caseSensitive: options?.caseSensitive ?? true,
  prunes: options?.prunes ?? false
})

const success = (value?: unknown): Outcome => ({ tag: "success", value })
const rootDenied = failure("AccessDenied root")

/**
 * The result of a command: its outcome, and the model after the command.
 *
 * @since 0.1.0
 */
export interface Step {
  readonly model: Model
  readonly outcome: Outcome
}

const toStep = (model: Model, outcome: Outcome): Step => ({ model, outcome })

const checkPrecondition = (node: Node | undefined, match: Match | undefined): Outcome | undefined => {
  if (match === undefined) return undefined
  if (node === undefined) return match === "absent" ? undefined : failure("Conflict")
  if (node.kind !== "file") return failure("NotAFile")
  return match === "current" ? undefined : failure("Conflict")
}

const hasParent = (self: Model, names: Names): boolean => {
  const above = resolvePlace(self, names.slice(0, -1), false)
  return !isOutcome(above) && above.node !== undefined
}

const write = (self: Model, command: Extract<Command, { _tag: "Write" }>, names: Names): Step => {
  if (command.path === "") return toStep(self, failure("InvalidPath"))
  const { createParents, ifMatch, mode } = command
  if (mode === "create" && ifMatch !== undefined) return toStep(self, failure("InvalidArgument"))
  if (!command.text.isWellFormed()) return toStep(self, failure("InvalidArgument"))
  const found = resolvePlace(self, names, mode === "create" && names.length > 0)
  if (isOutcome(found)) return toStep(self, found)
  const { node } = found
  const refusal = checkPrecondition(node, ifMatch)
  if (refusal !== undefined) return toStep(self, refusal)
  if (node?.kind === "directory") return toStep(self, failure("NotAFile"))
  if (node !== undefined && mode === "create") return toStep(self, failure("AlreadyExists"))
  if (found.creationFailure !== undefined) return toStep(self, found.creationFailure)
  if (node === undefined && (mode === "replace" || mode === "appendExisting")) return toStep(self, failure("NotFound"))
  if (node === undefined && !createParents && !hasParent(self, found.names)) return toStep(self, failure("NotFound"))
  const before = node?.kind === "file" && (mode === "append" || mode === "appendExisting") ? node.text : ""
  const after = setNode(self, found.names, { kind: "file", text: before + command.text })
  return toStep(after, success({ bytesWritten: encodeUtf8(command.text).length, mode }))
}

const edit = (self: Model, command: Extract<Command, { _tag: "Edit" }>, names: Names): Step => {
  const { ifMatch, match, newText, oldText } = command
  if (oldText === "") return toStep(self, failure("InvalidArgument"))
  const found = resolvePlace(self, names, false)
  if (isOutcome(found)) return toStep(self, found)
  const refusal = checkPrecondition(found.node, ifMatch)
  if (refusal !== undefined) return toStep(self, refusal)
  if (found.node === undefined) return toStep(self, failure("NotFound"))
  if (found.node.kind !== "file") return toStep(self, failure("NotAFile"))
  const parts = found.node.text.split(oldText)
  const count = parts.length - 1
  if (count === 0 || (match === "unique" && count > 1)) return toStep(self, failure("InvalidArgument"))
  const after = match === "first" ? [parts[0], parts.slice(1).join(oldText)] : parts
  return toStep(
    setNode(self, found.names, { kind: "file", text: after.join(newText) }),
    success({ replacements: match === "first" ? 1 : count })
  )
}

interface Count {
  readonly files: number
  readonly directories: number
  readonly bytes: number
}

const count = (node: Node): Count => {
  if (node.kind === "file") return { files: 1, directories: 0, bytes: encodeUtf8(node.text).length }
  if (node.kind === "link") return { files: 1, directories: 0, bytes: 0 }
  return [...node.entries.values()]
    .map((entry) => count(entry.node))
    .reduce(
      (sum, one) => ({
        files: sum.files + one.files,
        directories: sum.directories + one.directories,
        bytes: sum.bytes + one.bytes
      }),
      { files: 0, directories: 1, bytes: 0 }
    )
}

const remove = (self: Model, command: Extract<Command, { _tag: "Delete" }>, names: Names): Step => {
  const found = resolvePlace(self, names, true)
  if (isOutcome(found)) return toStep(self, found)
  if (names.length === 0) return toStep(self, rootDenied)
  const refusal = checkPrecondition(found.node, command.ifMatch)
  if (refusal !== undefined) return toStep(self, refusal)
  if (found.node === undefined) {
    return toStep(self, command.missing === "ignore" ? success({ deleted: 0, directories: 0 }) : failure("NotFound"))
  }
  if (found.node.kind === "directory" && found.node.entries.size > 0 && !command.recursive) {
    return toStep(self, failure("DirectoryNotEmpty"))
  }
  const { directories, files } = count(found.node)
  const after = withoutEmptyParents(setNode(self, found.names, undefined), found.names)
  return toStep(after, success({ deleted: Math.max(files, 1), directories }))
}

const mkdir = (self: Model, command: Extract<Command, { _tag: "Mkdir" }>, names: Names): Step => {
  const found = resolvePlace(self, names, true)
  if (isOutcome(found)) return toStep(self, found)
  if (found.node !== undefined) {
    if (!command.existOk) return toStep(self, failure("AlreadyExists"))
    const followedPlace = resolvePlace(self, names, false)
    if (isOutcome(followedPlace)) return toStep(self, followedPlace)
    return toStep(self, followedPlace.node?.kind === "directory" ? success() : failure("AlreadyExists"))
  }
  if (found.creationFailure !== undefined) return toStep(self, found.creationFailure)
  if (!command.parents && !hasParent(self, found.names)) return toStep(self, failure("NotFound"))
  return toStep(setNode(self, found.names, empty().root), success())
}

const checkOverwrite = (source: Node, target: Node): Outcome | undefined => {
  if (target.kind === "directory" && target.entries.size > 0) return failure("DirectoryNotEmpty")
  if (source.kind === "directory") return target.kind === "directory" ? undefined : failure("NotADirectory")
  return target.kind === "directory" ? failure("NotAFile") : undefined
}

const transfer = (self: Model, { from, overwrite, to, via }: Extract<Command, { _tag: "Transfer" }>): Step => {
  const fromNames = parse(from)
  if (isOutcome(fromNames)) return toStep(self, fromNames)
  const toNames = parse(to)
  if (isOutcome(toNames)) return toStep(self, toNames)
  if (toNames.length === 0 || (via === "move" && fromNames.length === 0)) return toStep(self, rootDenied)
  const changesOnlyCase = (one: Names, other: Names): boolean => isSame(self, one, other) && one.at(-1) !== other.at(-1)
  if (isBelow(self, fromNames, toNames) && !(via === "move" && changesOnlyCase(fromNames, toNames))) {
    return toStep(self, failure("InvalidArgument"))
  }
  const source = resolvePlace(self, fromNames, true)
  if (isOutcome(source)) return toStep(self, source)
  if (source.node === undefined) return toStep(self, failure("NotFound"))
  const target = resolvePlace(self, toNames, true)
  if (isOutcome(target)) return toStep(self, target)
  if (target.creationFailure !== undefined) return toStep(self, target.creationFailure)
  const targetNames = [...target.names.slice(0, -1), toNames.at(-1)!]
  // A move may change the case of a name. A move to exactly the requested source name is a move onto itself, even if the
  // stored name has another case.
  const askedNames = [...source.names.slice(0, -1), fromNames.at(-1)!]
  if (via === "move" && changesOnlyCase(source.names, targetNames) && askedNames.join("/") !== targetNames.join("/")) {
    return toStep(setNode(setNode(self, source.names, undefined), targetNames, source.node), success(count(source.node)))
  }
  if (isBelow(self, source.names, target.names)) return toStep(self, failure("InvalidArgument"))
  if (target.node !== undefined) {
    const refusal = overwrite ? checkOverwrite(source.node, target.node) : failure("AlreadyExists")
    if (refusal !== undefined) return toStep(self, refusal)
  }
  const modelWithoutSource = via === "move" ? setNode(self, source.names, undefined) : self
  const after = setNode(modelWithoutSource, target.names, source.node)
  return toStep(via === "move" ? withoutEmptyParents(after, source.names) : after, success(count(source.node)))
}

const symlink = (self: Model, { target }: Extract<Command, { _tag: "Symlink" }>, names: Names): Step => {
  const found = resolvePlace(self, names, true)
  if (isOutcome(found)) return toStep(self, found)
  if (found.node !== undefined) return toStep(self, failure("AlreadyExists"))
  if (found.creationFailure !== undefined) return toStep(self, found.creationFailure)
  if (leavesRoot(found.names.length - 1, target)) return toStep(self, escapeDenied)
  return toStep(setNode(self, found.names, { kind: "link", target }), success())
}

const kindOf = (node: Node): string => (node.kind === "link" ? "symlink" : node.kind)

const sizeOf = (node: Node): number => (node.kind === "file" ? encodeUtf8(node.text).length : 0)

const flatten = (at: Directory, prefix: string): ReadonlyArray<readonly [path: string, node: Node]> =>
  [...at.entries.values()].flatMap(({ name, node }) => {
    const path = `${prefix}${name}`
    return [[path, node] as const, ...(node.kind === "directory" ? flatten(node, `${path}/`) : [])]
  })

const entriesBelow = (self: Model, at: Directory, names: Names): ReturnType<typeof flatten> => {
  const sortKey = (path: string, node: Node): string => folded(self, node.kind === "directory" ? `${path}/` : path)
  return flatten(at, names.map((name) => `${name}/`).join(""))
    .map((entry) => [sortKey(...entry), entry] as const)
    .sort(([a], [b]) => FsPath.compare(a, b))
    .map(([, entry]) => entry)
}

const search = (self: Model, via: Search, names: Names, node: Node): Outcome => {
  if (node.kind !== "directory" && via === "glob") return failure("NotADirectory")
  const all = node.kind === "directory" ? entriesBelow(self, node, names) : [[names.join("/"), node] as const]
  const matches = all.flatMap(([path, node]) => {
    if (node.kind !== "file") return []
    if (via === "glob") return [path]
    return node.text.split(/\r?\n/).flatMap((line, i) => (line.includes("x") ? [`${path}:${i + 1}`] : []))
  })
  return success(matches)
}

const look = (self: Model, via: Extract<Command, { _tag: "Look" }>["via"], names: Names): Outcome => {
  const found = resolvePlace(self, names, via === "readLink" || via === "lstat")
  if (isOutcome(found)) return via === "exists" ? success(false) : found
  const { node } = found
  if (via === "exists") return success(node !== undefined)
  if (node === undefined) return failure("NotFound")
  switch (via) {
    case "stat":
      return success({ kind: kindOf(node), sizeBytes: sizeOf(node) })
    case "lstat":
      return success(kindOf(node))
    case "realPath":
      return success(found.names.length === 0 ? "." : found.names.join("/"))
    case "list":
      return node.kind === "directory"
        ? success([...node.entries.values()].map((entry) => `${entry.name} ${kindOf(entry.node)}`).sort(FsPath.compare))
        : failure("NotADirectory")
    case "readString":
      return node.kind === "file" ? success(node.text) : failure("NotAFile")
    case "readLink":
      return node.kind === "link" ? success(node.target) : failure("InvalidArgument")
    case "glob":
    case "grep":
      return search(self, via, names, node)
  }
}

/**
 * Returns the outcome of a call, and the model after the call.
 *
 * @since 0.1.0
 */
export const step = (self: Model, command: Command): Step => {
  if (command._tag === "Walk") return toStep(self, success(entriesBelow(self, self.root, []).map(([path]) => path)))
  if (command._tag === "Transfer") return transfer(self, command)
  const names = parse(command.path)
  if (isOutcome(names)) {
    return toStep(self, command._tag === "Look" && command.via === "exists" ? success(false) : names)
  }
  switch (command._tag) {
    case "Write":
      return write(self, command, names)
    case "Edit":
      return edit(self, command, names)
    case "Delete":
      return remove(self, command, names)
    case "Mkdir":
      return mkdir(self, command, names)
    case "Symlink":
      return symlink(self, command, names)
    case "Look":
      return toStep(self, look(self, command.via, names))
  }
}

/**
 * Returns the picture of the model, in the form of `Files.capture`.
 *
 * @since 0.1.0
 */
export const picture = (self: Model): Picture =>
  Object.fromEntries(
    flatten(self.root, "")
      .map(([path, node]): readonly [string, string] => [
        path,
        node.kind === "file"
          ? `file ${JSON.stringify(node.text)}`
          : node.kind === "link"
            ? `link -> ${node.target}`
            : "directory"
      ])
      .sort(([a], [b]) => FsPath.compare(a, b))
  )

/**
 * Returns the command as text, such as `mkdir { path: "a", parents: true, existOk: false }`.
 *
 * @since 0.1.0
 */
export const print = (command: Command): string => {
  const { _tag, ...rest } = command
  const options = Object.entries(rest)
    .filter(([key, value]) => key !== "via" && value !== undefined)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  return `${"via" in command ? command.via : _tag.toLowerCase()} { ${options.join(", ")} }`
}
