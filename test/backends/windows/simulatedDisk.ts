/**
 * A Win32 disk in memory, with the calls that `node:fs` makes on Windows. Its rules come from Microsoft's documentation and
 * from libuv's sources, and were measured under Wine where Wine has them. Where systems differ, the disk is as strict as the
 * strictest: a rename never replaces an open file, an append-only handle cannot be truncated, a full disk stores what still
 * fits.
 *
 * Paths that Windows reads differently (as a device, as a stream, or with a name trimmed) are recorded in `misread`. Every call
 * is recorded in `calls`, so that a test can prove that the disk was not touched.
 */
import * as Fs from "node:fs"
import type { WindowsDisk, WindowsEntry, WindowsStats } from "../../../src/backends/windows/disk.ts"
import { read } from "./simulatedNames.ts"
import { type Access, type Handle, makeNode, type Node, type Place, Refusal, Tree } from "./simulatedTree.ts"

export interface SimulatedDiskOptions {
  /** @default ["C:"] */
  readonly volumes?: ReadonlyArray<string> | undefined
  /** True if the user has the privilege to create symbolic links. Junctions need none. @default true */
  readonly allowSymlinks?: boolean | undefined
  /** True if a rename replaces an open file if all handles share deletion. @default false, as MoveFileEx is documented */
  readonly replacesOpen?: boolean | undefined
  /**
   * `pending`: a deleted file keeps its name until its last handle closes, as on older systems and on shares. @default "posix"
   */
  readonly deletes?: "posix" | "pending" | undefined
  /** @default true */
  readonly hardlinks?: boolean | undefined
}

export interface Call {
  readonly name: string
  readonly path: string | undefined
  readonly to: string | undefined
}

/** The access that another program with an open file leaves to others. */
export type Share = "none" | "read" | "write" | "readWrite" | "all"

const shares: Readonly<Record<Share, ReadonlyArray<Access>>> = {
  none: [],
  read: ["read"],
  write: ["write"],
  readWrite: ["read", "write"],
  all: ["read", "write", "delete"]
}

const numbers: Readonly<Record<string, number>> = {
  EACCES: -4092,
  EBADF: -4083,
  EBUSY: -4082,
  EEXIST: -4075,
  EINVAL: -4071,
  EIO: -4070,
  EISDIR: -4068,
  ELOOP: -4067,
  EMFILE: -4066,
  ENAMETOOLONG: -4064,
  ENOENT: -4058,
  ENOSPC: -4055,
  ENOTDIR: -4052,
  ENOTEMPTY: -4051,
  ENOTSUP: -4049,
  EPERM: -4048,
  EROFS: -4043,
  ETIMEDOUT: -4039,
  EXDEV: -4037,
  UNKNOWN: -4094
}

export const windowsError = (code: string, syscall: string, path?: string, to?: string): NodeJS.ErrnoException => {
  const where = path === undefined ? "" : ` '${path}'${to === undefined ? "" : ` -> '${to}'`}`
  return Object.assign(new Error(`${code}: the system refused, ${syscall}${where}`), {
    code,
    errno: numbers[code] ?? -4094,
    syscall,
    ...(path === undefined ? undefined : { path }),
    ...(to === undefined ? undefined : { dest: to })
  })
}

const refuse = (code: string): never => {
  throw new Refusal(code)
}

const types = { file: 0o100000, directory: 0o40000, link: 0o120000 }

const kindQuestions = (kind: Node["kind"]) => ({
  isFile: () => kind === "file",
  isDirectory: () => kind === "directory",
  isSymbolicLink: () => kind === "link"
})

const statsOf = (node: Node): WindowsStats => ({
  dev: node.dev,
  ino: node.ino,
  mode: BigInt(types[node.kind] | (node.readOnly ? 0o444 : 0o666)),
  nlink: BigInt(node.links),
  size: BigInt(node.kind === "file" ? node.bytes.length : Buffer.byteLength(node.target)),
  mtimeMs: BigInt(Math.floor(node.modified)),
  birthtimeMs: BigInt(Math.floor(node.born)),
  ...kindQuestions(node.kind)
})

const all: ReadonlySet<Access> = new Set(shares.all)
const writable = 0o200
/** CreateDirectory leaves room for an 8.3 name. */
const maxDirectory = 247

const { O_APPEND, O_CREAT, O_EXCL, O_RDWR, O_TRUNC, O_WRONLY } = Fs.constants

export class SimulatedDisk implements WindowsDisk {
  readonly calls: Array<Call> = []
  /** The paths that Windows read differently. */
  readonly misread: Array<string> = []
  /** The number of bytes that still fit; `undefined` for any number. A deletion frees none. */
  free: number | undefined = undefined
  /** Runs before each call. Returns the code with which the call fails, or acts as another program at that moment. */
  before: ((call: Call) => string | undefined | void) | undefined = undefined

  readonly #options: SimulatedDiskOptions
  readonly #tree: Tree
  readonly #open = new Map<number, Handle>()
  #lastDescriptor = 100

  constructor(options: SimulatedDiskOptions = {}) {
    this.#options = options
    this.#tree = new Tree(options.volumes ?? ["C:"])
  }

  get touched(): number {
    return this.calls.length
  }

  get openDescriptors(): number {
    return this.#open.size
  }

  /** Creates a file with any name and the directories above it, or changes a file. */
  put(path: string, content: string | Uint8Array = ""): void {
    const { child, name, parent } = this.#place(path)
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content.slice()
    if (child === undefined) this.#tree.attach(parent, name, makeNode(parent.dev, "file", { bytes }))
    else Object.assign(child.node, { bytes, modified: Date.now() })
  }

  putDirectory(path: string): void {
    const { child, name, parent } = this.#place(path)
    if (child === undefined) this.#tree.attach(parent, name, makeNode(parent.dev, "directory"))
  }

  /** Creates a link. The target of a junction is absolute, and `readlink` returns it with a final backslash. */
  putLink(path: string, target: string, type: "file" | "dir" | "junction"): void {
    const { child, name, parent } = this.#place(path)
    if (child !== undefined) this.#tree.detach(parent, child)
    this.#tree.attach(
      parent,
      name,
      makeNode(parent.dev, "link", { target: type === "junction" ? ended(target) : target, type })
    )
  }

  drop(path: string): void {
    const { child, parent } = this.#place(path)
    if (child !== undefined) this.#tree.detach(parent, child)
  }

  text(path: string): string | undefined {
    const node = this.#place(path).child?.node
    return node?.kind === "file" ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(node.bytes) : undefined
  }

  setReadOnly(path: string, readOnly: boolean): void {
    this.#place(path).child!.node.readOnly = readOnly
  }

  names(path: string): ReadonlyArray<string> {
    const node = this.#place(path).child?.node
    return [...(node?.children.values() ?? [])].map(({ name }) => name).sort()
  }

  /** Opens the file as another program that shares `share`, and returns a function that closes it. */
  hold(path: string, { share }: { readonly share: Share }): () => void {
    const { node } = this.#place(path).child!
    const handle: Handle = { node, shares: new Set(shares[share]), reads: true, writes: true, appends: false }
    node.handles.add(handle)
    return () => this.#letGo(handle)
  }

  readonly lstatSync = (path: string, _options: { readonly bigint: true; readonly throwIfNoEntry: false }) =>
    this.#call("lstat", path, undefined, () => {
      try {
        const { child } = this.#find(path, false)
        return child === undefined ? undefined : statsOf(child.node)
      } catch (error) {
        if (error instanceof Refusal && error.code === "ENOENT") return undefined
        throw error
      }
    })

  readonly fstatSync = (descriptor: number, _options: { readonly bigint: true }) =>
    this.#call("fstat", undefined, undefined, () => statsOf(this.#handle(descriptor).node))

  readonly realpathSync = {
    native: (path: string): string =>
      this.#call("realpath", path, undefined, () => {
        const place = this.#find(path, true)
        this.#existing(place)
        return place.path
      })
  }

  readonly readdirSync = (path: string, _options: { readonly withFileTypes: true }): Array<WindowsEntry> =>
    this.#call("scandir", path, undefined, () => {
      const node = this.#existing(this.#find(path, true))
      if (node.kind !== "directory") return refuse("ENOTDIR")
      this.#share(node, "read")
      return [...node.children.entries()]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, child]) => ({ name: child.name.toWellFormed(), ...kindQuestions(child.node.kind) }))
    })

  readonly readdir: WindowsDisk["readdir"] = (path, options, done) => later(() => this.readdirSync(path, options), [], done)

  readonly openSync = (path: string, flags: number, mode = 0o666): number =>
    this.#call("open", path, undefined, () => {
      const appends = (flags & O_APPEND) !== 0
      const writes = (flags & (O_WRONLY | O_RDWR)) !== 0
      const reads = (flags & O_WRONLY) === 0
      const place = this.#find(path, true)
      if (place.child !== undefined && (flags & O_CREAT) !== 0 && (flags & O_EXCL) !== 0) refuse("EEXIST")
      if (place.child === undefined && (flags & O_CREAT) === 0) refuse("ENOENT")
      const node = place.child?.node ?? makeNode(place.parent.dev, "file", { readOnly: (mode & writable) === 0 })
      if (place.child === undefined) this.#tree.attach(place.parent, place.name, node)
      else this.#admit(node, flags, reads, writes)
      if ((flags & O_TRUNC) !== 0) this.#resize(node, 0)
      const handle: Handle = { node, shares: all, reads, writes, appends }
      node.handles.add(handle)
      this.#open.set(++this.#lastDescriptor, handle)
      return this.#lastDescriptor
    })

  readonly closeSync = (descriptor: number): void =>
    this.#call("close", undefined, undefined, () => {
      const handle = this.#handle(descriptor)
      this.#open.delete(descriptor)
      this.#letGo(handle)
    })

  readonly readSync = (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number): number =>
    this.#call("read", undefined, undefined, () => {
      const { node, reads } = this.#handle(descriptor)
      if (node.kind === "directory") refuse("EISDIR")
      if (!reads) refuse("EBADF")
      const part = node.bytes.subarray(position, position + length)
      bytes.set(part, at)
      return part.length
    })

  readonly writeSync = (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number | null): number =>
    this.#call("write", undefined, undefined, () => {
      const { appends, node, writes } = this.#handle(descriptor)
      if (!writes || node.kind !== "file") refuse("EBADF")
      if (!appends && position === null) throw new Error("the disk keeps no positions: give the position of the write")
      const start = appends ? node.bytes.length : position!
      const growth = Math.max(0, start + length - node.bytes.length)
      const fits = Math.max(0, length - Math.max(0, growth - (this.free ?? Infinity)))
      if (fits === 0 && length > 0) refuse("ENOSPC")
      if (start + fits > node.bytes.length) this.#resize(node, start + fits)
      node.bytes.set(bytes.subarray(at, at + fits), start)
      node.modified = Date.now()
      return fits
    })

  readonly fsyncSync = (descriptor: number): void =>
    this.#call("fsync", undefined, undefined, () => void (this.#handle(descriptor).writes || refuse("EPERM")))

  readonly ftruncateSync = (descriptor: number, length: number): void =>
    this.#call("ftruncate", undefined, undefined, () => {
      const { appends, node, writes } = this.#handle(descriptor)
      // A truncation needs the right to write anywhere, which an open for appending does not request.
      if (!writes || appends) refuse("EPERM")
      if (length - node.bytes.length > (this.free ?? Infinity)) refuse("ENOSPC")
      this.#resize(node, length)
      node.modified = Date.now()
    })

  readonly read: WindowsDisk["read"] = (descriptor, bytes, at, length, position, done) =>
    later(() => this.readSync(descriptor, bytes, at, length, position), 0, done)

  readonly write: WindowsDisk["write"] = (descriptor, bytes, at, length, position, done) =>
    later(() => this.writeSync(descriptor, bytes, at, length, position), 0, done)

  readonly fsync: WindowsDisk["fsync"] = (descriptor, done) => later(() => this.fsyncSync(descriptor), undefined, done)

  readonly mkdirSync = (path: string): void =>
    this.#call("mkdir", path, undefined, () => {
      if (!path.startsWith("\\\\?\\") && path.length > maxDirectory) refuse("ENAMETOOLONG")
      const { child, name, parent } = this.#find(path, false)
      if (child !== undefined || name === "") refuse("EEXIST")
      this.#tree.attach(parent, name, makeNode(parent.dev, "directory"))
    })

  readonly rmdirSync = (path: string): void =>
    this.#call("rmdir", path, undefined, () => {
      const place = this.#find(path, false)
      const node = this.#existing(place)
      if (node.kind === "file" || (node.kind === "link" && node.type === "file")) refuse("ENOENT")
      this.#share(node, "delete")
      if (node.children.size > 0) refuse("ENOTEMPTY")
      this.#delete(place)
    })

  readonly unlinkSync = (path: string): void =>
    this.#call("unlink", path, undefined, () => {
      const place = this.#find(path, false)
      const node = this.#existing(place)
      if (node.kind === "directory") refuse("EPERM")
      this.#share(node, "delete")
      // libuv also deletes a read-only file.
      this.#delete(place)
    })

  readonly renameSync = (from: string, to: string): void =>
    this.#call("rename", from, to, () => {
      const source = this.#find(from, false)
      const node = this.#existing(source)
      this.#share(node, "delete")
      const target = this.#find(to, false)
      if (target.parent.dev !== node.dev) refuse("EXDEV")
      if (node.kind === "directory") {
        if (this.#tree.isBelow(target.parent, node)) refuse("EBUSY")
        if (this.#tree.isOpenBelow(node)) refuse("EPERM")
      }
      if (target.child !== undefined && target.child !== source.child) this.#giveWay(node, target.child.node)
      if (target.child !== undefined) this.#tree.detach(target.parent, target.child)
      if (source.child !== target.child) this.#tree.detach(source.parent, source.child!)
      // A target path with an 8.3 name gives the file that name.
      this.#tree.attach(target.parent, target.name, node)
    })

  readonly linkSync = (existing: string, path: string): void =>
    this.#call("link", existing, path, () => {
      const node = this.#existing(this.#find(existing, false))
      if (node.kind === "directory") refuse("EPERM")
      const { child, name, parent } = this.#find(path, false)
      if (parent.dev !== node.dev) refuse("EXDEV")
      if (child !== undefined) refuse("EEXIST")
      if (this.#options.hardlinks === false) refuse("EISDIR")
      this.#tree.attach(parent, name, node)
    })

  readonly symlinkSync = (target: string, path: string, type: "file" | "dir" | "junction"): void =>
    this.#call("symlink", target, path, () => {
      const { child, name, parent } = this.#find(path, false)
      if (child !== undefined) refuse("EEXIST")
      if (type !== "junction" && this.#options.allowSymlinks === false) refuse("EPERM")
      const plain = target
        .replaceAll("/", "\\")
        .replace(/^\\\\\?\\UNC/i, "\\")
        .replace(/^\\\\\?\\/, "")
      if (type === "junction" && !/^[a-z]:\\/i.test(plain)) refuse("EINVAL")
      const text = type === "junction" ? ended(plain) : plain
      this.#tree.attach(parent, name, makeNode(parent.dev, "link", { target: text, type }))
    })

  readonly readlinkSync = (path: string): string =>
    this.#call("readlink", path, undefined, () => {
      const node = this.#existing(this.#find(path, false))
      return node.kind === "link" ? node.target : refuse("EINVAL")
    })

  #call<A>(name: string, path: string | undefined, to: string | undefined, run: () => A): A {
    const call = { name, path, to }
    this.calls.push(call)
    try {
      const code = this.before?.(call)
      return typeof code === "string" ? refuse(code) : run()
    } catch (error) {
      throw error instanceof Refusal ? windowsError(error.code, name, path, to) : error
    }
  }

  #find(path: string, follow: boolean): Place {
    const reading = read(path)
    if (reading.misread !== undefined) this.misread.push(path)
    if (reading.misread === "device" || reading.misread === "stream") refuse("EINVAL")
    if (reading.tooLong) refuse("ENOENT")
    return this.#tree.locate(reading, follow)
  }

  #existing({ child }: Place): Node {
    return child === undefined ? refuse("ENOENT") : child.node
  }

  /** Finds a path for other programs, and creates the directories above it. */
  #place(path: string): Place {
    const reading = read(path.startsWith("\\\\") ? `\\\\?\\UNC${path.slice(1)}` : `\\\\?\\${path}`)
    for (let depth = 1; depth < reading.names.length; depth++) {
      const { child, name, parent } = this.#tree.locate({ ...reading, names: reading.names.slice(0, depth) }, false)
      if (child === undefined) this.#tree.attach(parent, name, makeNode(parent.dev, "directory"))
    }
    return this.#tree.locate(reading, false)
  }

  #handle(descriptor: number): Handle {
    return this.#open.get(descriptor) ?? refuse("EBADF")
  }

  #letGo(handle: Handle): void {
    const { node } = handle
    node.handles.delete(handle)
    if (node.pending && node.handles.size === 0) this.#expire(node)
  }

  /** Refuses the access unless every open handle shares it. */
  #share(node: Node, access: Access): void {
    for (const { shares } of node.handles) if (!shares.has(access)) refuse("EBUSY")
  }

  /** Refuses an open that the kind of the entry, the read-only attribute or another handle forbids. */
  #admit(node: Node, flags: number, reads: boolean, writes: boolean): void {
    if (node.kind === "directory") {
      if ((flags & (O_CREAT | O_TRUNC)) !== 0) refuse("EISDIR")
    } else if (writes && node.readOnly) refuse("EPERM")
    if (reads) this.#share(node, "read")
    if (writes) this.#share(node, "write")
  }

  /** Refuses a replacement that Windows does not allow; it has the single code "access denied" for all reasons. */
  #giveWay(source: Node, target: Node): void {
    if (source.kind === "directory" || target.kind === "directory" || target.readOnly) refuse("EPERM")
    if (target.handles.size === 0 || source === target) return
    if (this.#options.replacesOpen !== true) refuse("EPERM")
    for (const { shares } of target.handles) if (!shares.has("delete")) refuse("EPERM")
  }

  #delete({ child, parent }: Place): void {
    const { node } = child!
    if (this.#options.deletes !== "pending" || node.handles.size === 0 || node.links > 1) this.#tree.detach(parent, child!)
    else {
      node.pending = true
      this.#expiring.set(node, () => this.#tree.detach(parent, child!))
    }
  }

  readonly #expiring = new Map<Node, () => void>()

  #expire(node: Node): void {
    this.#expiring.get(node)?.()
    this.#expiring.delete(node)
  }

  #resize(node: Node, length: number): void {
    if (this.free !== undefined) this.free -= length - node.bytes.length
    const bytes = new Uint8Array(length)
    bytes.set(node.bytes.subarray(0, length))
    node.bytes = bytes
  }
}

const ended = (target: string): string => (target.endsWith("\\") ? target : `${target}\\`)

/** Calls back like the thread pool, never synchronously. */
const later = <A>(run: () => A, nothing: A, done: (error: Error | null, value: A) => void): void => {
  setImmediate(() => {
    let value: A
    try {
      value = run()
    } catch (error) {
      done(error as Error, nothing)
      return
    }
    done(null, value)
  })
}
