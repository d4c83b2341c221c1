/** A read-only backend that serves a captured tree. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { Buffer } from "../runtime/buffer.ts"
import { isBytes } from "../model/realms.ts"
import type { FileStat } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import { fold, type FsPath, join, root, segments } from "../model/FsPath.ts"
import { type Backend, type Child, type Handle, keyOf, type Links } from "../port/Backend.ts"
import { escapeName } from "../runtime/escapedName.ts"
import type { DirectoryNode, FileNode, Node } from "./tree.ts"

export interface TreeSource {
  readonly name: string
  readonly root: string
  readonly caseSensitive: boolean
  readonly tree: DirectoryNode
  /** Returns the entries of a directory, and fetches them if necessary. @default the entries in the node */
  readonly entries?: ((directory: DirectoryNode) => Effect.Effect<ReadonlyMap<string, Node>, Fault>) | undefined
  readonly mode?: ((directory: DirectoryNode) => Effect.Effect<number | undefined, Fault>) | undefined
  /**
   * Converts an absolute target of a symlink to a relative target, as the captured filesystem does.
   *
   * @default no absolute target leads into the tree
   */
  readonly relative?: Links["relative"]
  readonly content: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, Fault>, Fault>
}

const readOnly: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "readOnly" })
const notFound: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotFound" })
const notADirectory: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotADirectory" })
const notAFile: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotAFile" })
const notALink: Effect.Effect<never, Fault> = Effect.fail({
  _tag: "InvalidArgument",
  argument: "path",
  detail: "it is not a symbolic link"
})

const sizeOf = (node: Node): number =>
  node.kind === "file" ? node.sizeBytes : node.kind === "symlink" ? Buffer.byteLength(node.target) : 0

const statOf = (node: Node, path: FsPath): FileStat => ({
  path,
  kind: node.kind,
  isFile: node.kind === "file",
  isDirectory: node.kind === "directory",
  sizeBytes: sizeOf(node),
  ...(node.kind !== "symlink" && node.mode !== undefined && { mode: node.mode }),
  ...(node.kind === "symlink" && { isSymlink: true })
})

/**
 * Converts a node to a `Child`. If no path can express the name, `segment` is a NUL followed by the bytes of the name in
 * hexadecimal, and is also the `key`.
 */
const childOf = (segment: string, node: Node): Child => {
  const kind = { kind: node.kind, sizeBytes: sizeOf(node) }
  return segment.startsWith("\0")
    ? { name: escapeName(Buffer.from(segment.slice(1), "hex")), addressable: false, key: segment, ...kind }
    : { name: segment, addressable: true, ...kind }
}

/**
 * Returns a function that reads ranges of a stream. Concurrent calls wait for each other.
 *
 * The reader keeps the current chunk. A read before this chunk starts the stream again, so only sequential reads are fast.
 */
const sequentialReader = (stream: Stream.Stream<Uint8Array, Fault>, scope: Scope.Scope): Effect.Effect<Handle["read"]> =>
  Effect.map(Semaphore.make(1), (readLock) => {
    let pull: Pull.Pull<ReadonlyArray<Uint8Array>, Fault> | undefined
    let pullScope: Scope.Closeable | undefined
    let currentChunk: Uint8Array = new Uint8Array()
    let at = 0
    const restart = Effect.gen(function* () {
      if (pullScope !== undefined) yield* Scope.close(pullScope, Exit.void)
      pullScope = yield* Scope.fork(scope)
      pull = yield* Scope.provide(Stream.toPull(stream), pullScope)
      currentChunk = new Uint8Array()
      at = 0
    })
    const readMore: Effect.Effect<boolean, Fault> = Effect.suspend(() =>
      Effect.matchCauseEffect(pull!, {
        onSuccess: (arrays) =>
          Effect.sync(() => {
            at += currentChunk.length
            currentChunk = Buffer.concat(arrays)
            return true
          }),
        onFailure: (cause) => (Pull.isDoneCause(cause) ? Effect.succeed(false) : Effect.failCause(cause as Cause.Cause<Fault>))
      })
    )
    return (offset, length) =>
      readLock.withPermit(
        Effect.gen(function* () {
          if (pull === undefined || offset < at) yield* restart
          while (at + currentChunk.length <= offset) if (!(yield* readMore)) return new Uint8Array()
          return currentChunk.slice(offset - at, offset - at + length)
        })
      )
  })

const handleOf = (
  stat: FileStat,
  content: Uint8Array | Stream.Stream<Uint8Array, Fault>
): Effect.Effect<Handle, never, Scope.Scope> =>
  isBytes(content)
    ? Effect.succeed({
        stat,
        read: (offset: number, length: number) => Effect.sync(() => content.slice(offset, offset + length))
      })
    : Effect.flatMap(Effect.scope, (scope) => Effect.map(sequentialReader(content, scope), (read) => ({ stat, read })))

export const make = (source: TreeSource): Backend => {
  const { caseSensitive, content } = source
  const entries = source.entries ?? ((directory: DirectoryNode) => Effect.succeed(directory.entries))
  const foldedOf = new WeakMap<ReadonlyMap<string, Node>, Map<string, Node>>()

  const childIn = (all: ReadonlyMap<string, Node>, segment: string): Node | undefined => {
    if (caseSensitive) return all.get(segment)
    let folded = foldedOf.get(all)
    if (folded === undefined) {
      folded = new Map([...all].map(([name, node]) => [fold(name), node]))
      foldedOf.set(all, folded)
    }
    return folded.get(fold(segment))
  }

  const find = Effect.fnUntraced(function* (path: FsPath): Effect.fn.Return<Node | undefined, Fault> {
    let node: Node | undefined = source.tree
    for (const segment of segments(path)) {
      if (node?.kind !== "directory") return undefined
      node = childIn(yield* entries(node), segment)
    }
    return node
  })

  const fileAt = (path: FsPath): Effect.Effect<FileNode, Fault> =>
    Effect.flatMap(find(path), (node): Effect.Effect<FileNode, Fault> =>
      node === undefined ? notFound : node.kind === "file" ? Effect.succeed(node) : notAFile
    )

  return {
    info: { name: source.name, root: source.root, caseSensitive, readOnly: true, confinement: "virtual" },
    stat: (path) =>
      Effect.flatMap(find(path), (node): Effect.Effect<FileStat | undefined, Fault> => {
        if (node?.kind !== "directory" || node.mode !== undefined || source.mode === undefined) {
          return Effect.succeed(node && statOf(node, path))
        }
        return Effect.map(source.mode(node), (mode) => statOf({ ...node, mode }, path))
      }),
    list: (path) =>
      Effect.flatMap(find(path), (node): Effect.Effect<ReadonlyArray<Child>, Fault> => {
        if (node === undefined) return notFound
        return node.kind === "directory"
          ? Effect.map(entries(node), (all) => Array.from(all, ([segment, node]) => childOf(segment, node)))
          : notADirectory
      }),
    open: (path) =>
      Effect.flatMap(fileAt(path), (file) =>
        Effect.flatMap(content(path, file), (bytes) => handleOf(statOf(file, path), bytes))
      ),
    write: () => readOnly,
    makeDirectory: () => readOnly,
    remove: () => readOnly,
    rename: () => readOnly,
    links: {
      read: (path) =>
        Effect.flatMap(find(path), (node): Effect.Effect<string, Fault> =>
          node === undefined ? notFound : node.kind === "symlink" ? Effect.succeed(node.target) : notALink
        ),
      relative: source.relative,
      make: () => readOnly
    },
    rules: { permits: () => false }
  }
}

export const countIn = Effect.fnUntraced(function* (
  port: Backend
): Effect.fn.Return<{ readonly files: number; readonly bytes: number }, Fault> {
  let [files, bytes] = [0, 0]
  const pending: Array<FsPath> = [root]
  for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
    for (const child of yield* port.list(here)) {
      const path = join(here, keyOf(child))
      if (child.kind === "directory") pending.push(path)
      else {
        files++
        bytes += child.sizeBytes ?? (yield* port.stat(path))?.sizeBytes ?? 0
      }
    }
  }
  return { files, bytes }
})
