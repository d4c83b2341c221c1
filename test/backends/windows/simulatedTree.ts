/**
 * The tree of the simulated disk: directories, files and links, found by name as on NTFS. Names are case-insensitive and
 * case-preserving. An 8.3 name leads to its file, and links within a path are followed.
 */
import { isName, read, type Reading, shortName, upcase } from "./simulatedNames.ts"

export interface Node {
  readonly ino: bigint
  readonly dev: bigint
  readonly kind: "file" | "directory" | "link"
  bytes: Uint8Array
  readonly children: Map<string, Child>
  readonly target: string
  readonly type: "file" | "dir" | "junction"
  readOnly: boolean
  modified: number
  readonly born: number
  links: number
  /** True if the file is deleted but still open: its name stays, and no other handle can be opened. */
  pending: boolean
  readonly handles: Set<Handle>
}

export interface Child {
  name: string
  readonly short: string | undefined
  readonly node: Node
}

/** An open handle: ours, or that of another program that shares less. */
export interface Handle {
  readonly node: Node
  readonly shares: ReadonlySet<Access>
  readonly reads: boolean
  readonly writes: boolean
  readonly appends: boolean
}

export type Access = "read" | "write" | "delete"

export interface Place {
  readonly parent: Node
  readonly name: string
  readonly child: Child | undefined
  /** The path without links, in the spelling of the disk. */
  readonly path: string
}

/** A refusal inside the disk, which becomes an error of `node:fs`. */
export class Refusal extends Error {
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

const refuse = (code: string): never => {
  throw new Refusal(code)
}

const maxLinks = 63

/** Larger than a double can distinguish, like the numbers of files on NTFS. */
let lastNumber = 0x1234n << 48n

export const makeNode = (dev: bigint, kind: Node["kind"], more: Partial<Node> = {}): Node => ({
  ino: ++lastNumber,
  dev,
  kind,
  bytes: new Uint8Array(0),
  children: new Map(),
  target: "",
  type: "file",
  readOnly: false,
  modified: Date.now(),
  born: Date.now(),
  links: 0,
  pending: false,
  handles: new Set(),
  ...more
})

export class Tree {
  readonly #volumes = new Map<string, Node>()

  constructor(volumes: ReadonlyArray<string>) {
    for (const [at, volume] of volumes.entries()) {
      this.#volumes.set(upcase(volume), makeNode(BigInt(0x5eed + at), "directory", { links: 1 }))
    }
  }

  childOf(parent: Node, name: string): Child | undefined {
    const key = upcase(name)
    const found = parent.children.get(key)
    if (found !== undefined) return found
    for (const child of parent.children.values()) if (child.short === key) return child
    return undefined
  }

  attach(parent: Node, name: string, node: Node): void {
    const short = shortName(name, (short) => this.childOf(parent, short) !== undefined)
    parent.children.set(upcase(name), { name, short, node })
    parent.modified = Date.now()
    node.links++
  }

  detach(parent: Node, child: Child): void {
    parent.children.delete(upcase(child.name))
    parent.modified = Date.now()
    child.node.links--
  }

  /** Finds a path. With `follow`, a final link is resolved too. */
  locate({ names, volume }: Pick<Reading, "names" | "volume">, follow: boolean, links = 0): Place {
    let here = this.#volumes.get(volume) ?? refuse("ENOENT")
    let path = volume.startsWith("\\") ? volume : `${volume}\\`
    if (names.length === 0) return { parent: here, name: "", child: { name: "", short: undefined, node: here }, path }
    for (const [at, name] of names.entries()) {
      if (!isName(name)) refuse("ENOENT")
      const isLast = at === names.length - 1
      const child = this.childOf(here, name)
      if (child?.node.pending === true) refuse("EPERM")
      const next = `${path}${path.endsWith("\\") ? "" : "\\"}${child?.name ?? name}`
      if (child?.node.kind === "link" && (!isLast || follow)) {
        if (links === maxLinks) refuse("ELOOP")
        if (!isLast && child.node.type === "file") refuse("ENOENT")
        const target = targetOf(path, child.node.target)
        return this.locate({ volume: target.volume, names: [...target.names, ...names.slice(at + 1)] }, follow, links + 1)
      }
      if (isLast) return { parent: here, name, child, path: next }
      if (child === undefined || child.node.kind !== "directory") return refuse("ENOENT")
      here = child.node
      path = next
    }
    return refuse("ENOENT")
  }

  isOpenBelow(node: Node): boolean {
    for (const { node: child } of node.children.values()) {
      if (child.handles.size > 0 || this.isOpenBelow(child)) return true
    }
    return false
  }

  isBelow(node: Node, above: Node): boolean {
    if (node === above) return true
    for (const { node: child } of above.children.values())
      if (child.kind === "directory" && this.isBelow(node, child)) return true
    return false
  }
}

const targetOf = (directory: string, target: string): Reading => {
  if (/^(?:[a-z]:\\|\\\\)/i.test(target)) return read(target)
  if (target.startsWith("\\")) return read(`${directory.slice(0, 2)}${target}`)
  return read(`${directory}\\${target}`)
}
