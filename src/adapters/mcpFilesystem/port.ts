/** Builds the primitive operations of a filesystem from the tools of an MCP filesystem server. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import * as Fault from "../../model/Fault.ts"
import * as FsPath from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend, Child, Info, Rules, WriteHow } from "../../port/Backend.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { escapeName } from "../../runtime/escapedName.ts"
import * as Locks from "../../runtime/locks.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { bytesOf, faultOfText, namesOf, type Server, textOf, unsupported } from "./server.ts"

type Mode = "create" | "replace" | "append"

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const decode = (bytes: Uint8Array): Effect.Effect<string, Fault.Fault> =>
  Effect.try({
    try: () => decoder.decode(bytes),
    catch: () => unsupported("tool on the MCP server that writes bytes other than UTF-8")
  })

const rootDenied = Fault.accessDenied("root")
const confusedName = Fault.invalidPath("the MCP server confuses this name with the name of another entry")
const notWritten = Fault.ioError("the MCP server reported a write that it did not do, or another program changed the file")

/** Tests whether an error of `move_file` says that the target exists. */
const isTaken = (error: string | undefined): boolean => error?.startsWith("Destination already exists") === true

export const make = (server: Server, info: Info, rules: Rules, maxFileBytes: number): Backend => {
  const { at, call, look } = server
  const run = (tool: string, args: Readonly<Record<string, string>>) => Effect.flatMap(call(tool, args), textOf)

  const requireEntry = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault.Fault> =>
    Effect.flatMap(look(path), ({ stat }) => (stat === undefined ? Effect.fail(Fault.notFound) : Effect.succeed(stat)))

  /** Looks up a path at which an entry could be created. Fails if its parent directory does not exist. */
  const findCreatable = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<FileStat | undefined, Fault.Fault> {
    if (!(yield* requireEntry(FsPath.parent(path))).isDirectory) return yield* Effect.fail(Fault.notADirectory)
    const { isOtherName, stat } = yield* look(path)
    return isOtherName === true ? yield* Effect.fail(confusedName) : stat
  })

  const childOf = Effect.fnUntraced(function* (
    path: FsPath.FsPath,
    name: string,
    mark: "DIR" | "FILE"
  ): Effect.fn.Return<Child | undefined, Fault.Fault> {
    const addressable = FsPath.parse(name) === name
    const child = addressable ? { name, addressable } : { name: escapeName(Buffer.from(name)), addressable, key: name }
    const found = yield* Effect.catch(look(FsPath.join(path, name)), (fault) =>
      fault._tag === "AccessDenied" ? Effect.undefined : Effect.fail(fault)
    )
    if (found === undefined) return { ...child, kind: mark === "DIR" ? "directory" : "other", sizeBytes: 0 }
    if (found.stat !== undefined) return { ...child, kind: found.stat.kind, sizeBytes: found.stat.sizeBytes }
    if (found.isOtherName === true) return { ...child, kind: "symlink", sizeBytes: 0 }
    return name.includes("\ufffd") ? { name, kind: "other", addressable: false, sizeBytes: 0 } : undefined
  })

  const list = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<ReadonlyArray<Child>, Fault.Fault> {
    if (!(yield* requireEntry(path)).isDirectory) return yield* Effect.fail(Fault.notADirectory)
    const names = yield* Effect.flatMap(call("list_directory", { path: at(path) }), namesOf)
    const children = yield* Effect.forEach(names, ([name, mark]) => childOf(path, name, mark), { concurrency: 16 })
    return children.filter((child) => child !== undefined)
  })

  const requireSize = (size: number): Effect.Effect<void, Fault.Fault> =>
    size > maxFileBytes ? Effect.fail(Fault.limitExceeded("maxFileBytes", maxFileBytes, size)) : Effect.void

  const readFile = Effect.fnUntraced(function* (stat: FileStat): Effect.fn.Return<Uint8Array, Fault.Fault> {
    // Reading a FIFO would not end.
    if (!stat.isFile) return yield* Effect.fail(Fault.notAFile)
    yield* requireSize(stat.sizeBytes)
    return yield* Effect.flatMap(call("read_media_file", { path: at(stat.path) }), bytesOf)
  })

  /**
   * Creates a file. Writes the file under a temporary name first, because a failed write of the server leaves an incomplete
   * file. Returns false if an entry has appeared at the path.
   */
  const createFile = (path: FsPath.FsPath, content: string): Effect.Effect<boolean, Fault.Fault> =>
    TemporaryNames.withName((name) => {
      const temporaryPath = at(FsPath.join(FsPath.parent(path), name))
      return Effect.gen(function* () {
        yield* run("write_file", { path: temporaryPath, content })
        const { error } = yield* call("move_file", { source: temporaryPath, destination: at(path) })
        return error === undefined || (isTaken(error) ? false : yield* Effect.fail(faultOfText(error)))
      })
    })

  /** Writes a file. `isRetry` is true if another program created an entry at the path during the first attempt. */
  const publish = Effect.fnUntraced(function* (
    path: FsPath.FsPath,
    bytes: Uint8Array,
    mode: Mode,
    isRetry = false
  ): Effect.fn.Return<FileStat, Fault.Fault> {
    const old = yield* findCreatable(path)
    if (old !== undefined && mode === "create") return yield* Effect.fail(Fault.alreadyExists)
    if (old !== undefined && !old.isFile) return yield* Effect.fail(Fault.notAFile)
    const newBytes = old !== undefined && mode === "append" ? Buffer.concat([yield* readFile(old), bytes]) : bytes
    yield* requireSize(newBytes.length)
    const content = yield* decode(newBytes)
    if (old !== undefined) yield* run("write_file", { path: at(path), content })
    else if (!(yield* createFile(path, content))) {
      if (mode === "create") return yield* Effect.fail(Fault.alreadyExists)
      return yield* isRetry ? Effect.fail(notWritten) : publish(path, bytes, mode, true)
    }
    const { stat } = yield* look(path)
    return stat?.sizeBytes === newBytes.length ? stat : yield* Effect.fail(notWritten)
  })

  const write = Effect.fnUntraced(function* <E, R>(
    path: FsPath.FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.fn.Return<FileStat, Fault.Fault | E, R> {
    if (path === FsPath.root) return yield* Effect.fail(mode === "create" ? Fault.alreadyExists : Fault.notAFile)
    const commit = how?.commit ?? ((publish) => publish)
    const chunks: Array<Uint8Array> = []
    let size = 0
    const add = (chunk: Uint8Array) => {
      chunks.push(chunk.slice())
      return requireSize((size += chunk.length))
    }
    yield* isBytes(content) ? add(content) : Stream.runForEach(content, add)
    return yield* commit(Effect.uninterruptible(publish(path, Buffer.concat(chunks), mode)))
  })

  const rename: Backend["rename"] = Effect.fnUntraced(function* (from, to, { replace }) {
    if (from === FsPath.root || to === FsPath.root) return yield* Effect.fail(rootDenied)
    const source = yield* requireEntry(from)
    if (from !== to && FsPath.isWithin(from, to)) {
      return yield* Effect.fail(Fault.invalidArgument("to", "a directory cannot be moved into itself"))
    }
    const target = yield* findCreatable(to)
    if (from === to) return
    if (target !== undefined) {
      if (!replace) return yield* Effect.fail(Fault.alreadyExists)
      if (target.isDirectory !== source.isDirectory) {
        return yield* Effect.fail(target.isDirectory ? Fault.notAFile : Fault.notADirectory)
      }
      if (target.isDirectory && (yield* list(to)).length > 0) return yield* Effect.fail(Fault.directoryNotEmpty)
      return yield* Effect.fail(unsupported("tool on the MCP server that replaces an entry"))
    }
    // The server would move the target of a symlink.
    if (source.kind === "symlink") return yield* Effect.fail(unsupported("tool on the MCP server that moves a symbolic link"))
    const { error } = yield* call("move_file", { source: at(from), destination: at(to) })
    if (error === undefined) return
    if (!isTaken(error)) return yield* Effect.fail(faultOfText(error))
    return yield* replace
      ? Effect.fail(unsupported("tool on the MCP server that replaces an entry"))
      : Effect.fail(Fault.alreadyExists)
  }, Effect.uninterruptible)

  return {
    info,
    rules,
    locks: Locks.make(),
    stat: (path) => Effect.map(look(path), ({ stat }) => stat),
    list,
    open: (path) =>
      Effect.flatMap(requireEntry(path), (stat) =>
        Effect.map(readFile(stat), (bytes) => ({
          stat: { ...stat, sizeBytes: bytes.length },
          read: (offset, length) => Effect.sync(() => bytes.slice(offset, offset + length))
        }))
      ),
    write,
    makeDirectory: Effect.fnUntraced(function* (path) {
      if (path === FsPath.root || (yield* findCreatable(path)) !== undefined) return yield* Effect.fail(Fault.alreadyExists)
      yield* run("create_directory", { path: at(path) })
    }, Effect.uninterruptible),
    remove: Effect.fnUntraced(function* (path) {
      if (path === FsPath.root) return yield* Effect.fail(rootDenied)
      const isFull = (yield* requireEntry(path)).isDirectory && (yield* list(path)).length > 0
      return yield* Effect.fail(isFull ? Fault.directoryNotEmpty : unsupported("tool on the MCP server that deletes"))
    }),
    rename
  }
}
