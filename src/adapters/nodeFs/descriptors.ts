/** The calls of `node:fs` that read and write contents, with their descriptors. */
import * as Effect from "effect/Effect"
import type { Action } from "../../filesystem/operations/call.ts"
import type { Resolved } from "../../engine/resolve.ts"
import { Buffer } from "../../runtime/buffer.ts"
import type * as FsPath from "../../model/FsPath.ts"
import {
  constants,
  type Encoding,
  invalidType,
  isView,
  type OpenFlags,
  outOfRange,
  toBuffer,
  toBytes,
  toFlags,
  toLength,
  toMillis,
  toMode,
  toOptions,
  toPath,
  toPosition,
  toRange,
  toThreeBits
} from "./arguments.ts"
import { type Core, type Entry, type Failure, named, naming, refuse } from "./core.ts"
import type { EntryCalls } from "./entries.ts"
import type { OpenFile } from "./openFiles.ts"
import { type BigIntStats, type Stats, toStats } from "./stats.ts"

interface Descriptor {
  readonly flags: OpenFlags
  readonly file: OpenFile | undefined
  /** The directory that was opened. `file` is then `undefined`. */
  readonly directory: Entry | undefined
  position: number
}

interface FileOptions {
  readonly flag?: unknown
  readonly mode?: unknown
}

/** The number before the first descriptor. The number is large, so that no descriptor is equal to a descriptor of the process. */
const firstDescriptor = 0x1000_0000
const defaultFileMode = 0o666
const writing: ReadonlyArray<Action> = ["write"]
const reading: ReadonlyArray<Action> = ["read"]
const noBytes = new Uint8Array(0)
const readSize = 0x10_0000

/** Fails with EFBIG if the file is too large for the memory. */
const withinMemory = <A>(effect: Effect.Effect<A, Failure>): Effect.Effect<A, Failure> =>
  Effect.catchDefect(effect, (defect) => (defect instanceof RangeError ? refuse("EFBIG") : Effect.die(defect)))

export const makeDescriptorCalls = (core: Core, entries: Pick<EntryCalls, "chmodAt" | "checkOwner" | "utimesAt">) => {
  const { fs, openFiles } = core
  const descriptors = new Map<number, Descriptor>()
  let last = firstDescriptor

  const toDescriptor = (fd: unknown): number => {
    if (typeof fd !== "number") throw invalidType("fd", "of type number", fd)
    if (!Number.isInteger(fd) || fd < 0 || fd > 0x7fff_ffff) throw outOfRange("fd", ">= 0 && <= 2147483647", fd)
    return fd
  }

  const withDescriptor = <A>(
    syscall: string,
    fd: number,
    run: (descriptor: Descriptor) => Effect.Effect<A, Failure>
  ): Effect.Effect<A, Error> =>
    named(
      syscall,
      Effect.suspend(() => {
        const descriptor = descriptors.get(fd)
        return descriptor === undefined ? refuse("EBADF") : run(descriptor)
      })
    )

  /** Finds the entry that a call opens with the flags, and checks that the flags permit its kind. */
  const prepare = (at: string, flags: OpenFlags): Effect.Effect<Resolved, Failure> => {
    const follow = !flags.refusesLink && !flags.isExclusive
    const actions = flags.isWritable || flags.creates ? writing : reading
    if (flags.creates && /[^/]\/+$/.test(at)) return refuse("EISDIR")
    return Effect.tap(
      flags.creates ? core.lookUpCreatable(at, follow, actions) : core.lookUp(at, follow, actions),
      ({ stat }): Effect.Effect<void, Failure> => {
        if (stat === undefined) return flags.creates ? Effect.void : refuse("ENOENT")
        if (flags.isExclusive) return refuse("EEXIST")
        if (stat.kind === "symlink") return refuse("ELOOP")
        if (stat.isDirectory) return flags.isWritable || flags.creates ? refuse("EISDIR") : Effect.void
        if (flags.isDirectoryOnly) return refuse("ENOTDIR")
        return stat.isFile ? Effect.void : refuse("ENXIO")
      }
    )
  }

  const create = (path: FsPath.FsPath, mode: number, isExclusive: boolean): Effect.Effect<void, Failure> => {
    const made = fs.writeBytes(path, noBytes, { mode: "create", createParents: false })
    const withMode = mode === defaultFileMode ? Effect.asVoid(made) : Effect.andThen(made, core.applyMode(path, mode))
    return isExclusive ? withMode : Effect.catchTag(withMode, "AlreadyExists", () => Effect.void)
  }

  const openAt = (at: string, flags: OpenFlags, mode: number): Effect.Effect<number, Failure> =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        let found = yield* prepare(at, flags)
        if (found.stat === undefined) {
          yield* create(found.path, mode, flags.isExclusive)
          found = yield* core.lookUp(at, true)
        }
        const { path, stat } = found
        if (stat === undefined) return yield* refuse("ENOENT")
        const isDirectory = stat.isDirectory
        const file = isDirectory
          ? undefined
          : yield* openFiles.open(path, stat, { reads: !flags.truncates && !(flags.isAppending && !flags.isReadable) })
        if (file !== undefined && flags.truncates && stat.sizeBytes > 0) yield* openFiles.truncate(file, 0)
        const fd = ++last
        descriptors.set(fd, { flags, file, directory: isDirectory ? { path, stat } : undefined, position: 0 })
        return fd
      })
    )

  const open = (path: unknown, flags?: unknown, mode?: unknown) => {
    const at = toPath(path)
    const parsed = toFlags(flags)
    const bits = toMode(mode, defaultFileMode)
    return named("open", openAt(at, parsed, bits), at)
  }

  const closeAt = (fd: number): Effect.Effect<void, Failure> =>
    Effect.uninterruptible(
      Effect.suspend((): Effect.Effect<void, Failure> => {
        const descriptor = descriptors.get(fd)
        if (!descriptors.delete(fd)) return refuse("EBADF")
        return descriptor?.file === undefined ? Effect.void : openFiles.close(descriptor.file)
      })
    )

  const close = (fd: unknown) => named("close", closeAt(toDescriptor(fd)))

  const readInto = (
    descriptor: Descriptor,
    target: Uint8Array,
    position: number | undefined
  ): Effect.Effect<number, Failure> => {
    if (!descriptor.flags.isReadable) return refuse("EBADF")
    const { file } = descriptor
    if (file === undefined) return refuse("EISDIR")
    return Effect.map(openFiles.read(file, position ?? descriptor, target.length), (bytes) => {
      target.set(bytes)
      return bytes.length
    })
  }

  const writeFrom = (
    descriptor: Descriptor,
    bytes: Uint8Array,
    position: number | undefined
  ): Effect.Effect<number, Failure> => {
    const { file, flags } = descriptor
    if (!flags.isWritable || file === undefined) return refuse("EBADF")
    if (bytes.length === 0) return Effect.succeed(0)
    const at = position ?? descriptor
    const written = flags.isAppending ? openFiles.append(file, bytes, at) : openFiles.write(file, at, bytes)
    return Effect.as(withinMemory(written), bytes.length)
  }

  /** Reads `(buffer, offset, length, position)` or `(buffer, { offset, length, position })`. */
  const toSlice = (buffer: ArrayBufferView, rest: ReadonlyArray<unknown>) => {
    const [first] = rest
    const named = typeof first === "object" && first !== null ? (first as Record<string, unknown>) : undefined
    const [offset, length, position] = named ? [named["offset"], named["length"], named["position"]] : rest
    const [start, count] = toRange(buffer, offset, length)
    return { bytes: toBuffer(buffer).subarray(start, start + count), position: toPosition(position) }
  }

  const read = (fd: unknown, ...args: ReadonlyArray<unknown>) => {
    const descriptor = toDescriptor(fd)
    const [buffer, ...rest] = args
    if (!isView(buffer)) throw invalidType("buffer", "an instance of Buffer, TypedArray, or DataView", buffer)
    const { bytes, position } = toSlice(buffer, rest)
    return withDescriptor("read", descriptor, (descriptor) => readInto(descriptor, bytes, position))
  }

  const write = (fd: unknown, data: unknown, ...rest: ReadonlyArray<unknown>) => {
    const descriptor = toDescriptor(fd)
    if (typeof data !== "string" && !isView(data)) {
      throw invalidType("buffer", "of type string or an instance of Buffer, TypedArray, or DataView", data)
    }
    const { bytes, position } =
      typeof data === "string"
        ? { bytes: toBytes(data, toOptions(rest[1]).encoding), position: toPosition(rest[0]) }
        : toSlice(data, rest)
    return withDescriptor("write", descriptor, (descriptor) => writeFrom(descriptor, bytes, position))
  }

  const toBuffers = (buffers: unknown): ReadonlyArray<Buffer> => {
    if (!Array.isArray(buffers) || !buffers.every(isView)) throw invalidType("buffers", "an ArrayBufferView[]", buffers)
    return buffers.map(toBuffer)
  }

  const readv = (fd: unknown, buffers: unknown, position?: unknown) => {
    const descriptor = toDescriptor(fd)
    const targets = toBuffers(buffers)
    const start = toPosition(position)
    return withDescriptor("read", descriptor, (descriptor) => {
      const all = new Uint8Array(targets.reduce((sum, { length }) => sum + length, 0))
      return Effect.map(readInto(descriptor, all, start), (count) => {
        let at = 0
        for (const target of targets) {
          target.set(all.subarray(at, Math.min(count, at + target.length)))
          at = Math.min(count, at + target.length)
        }
        return count
      })
    })
  }

  const writev = (fd: unknown, buffers: unknown, position?: unknown) => {
    const descriptor = toDescriptor(fd)
    const all = Buffer.concat(toBuffers(buffers) as Array<Buffer>)
    const start = toPosition(position)
    return withDescriptor("write", descriptor, (descriptor) => writeFrom(descriptor, all, start))
  }

  const entryOf = ({ directory, file }: Descriptor): Effect.Effect<Entry, Failure> => {
    if (file === undefined) return Effect.succeed(directory!)
    const known = { path: file.path, stat: { ...file.stat, sizeBytes: openFiles.sizeOf(file) } }
    if (!file.isAttached) return Effect.succeed(known)
    return Effect.flatMap(openFiles.publish(file), () => Effect.map(fs.stat(file.path), (stat) => ({ path: file.path, stat })))
  }

  const fstat = (fd: unknown, options?: unknown) => {
    const descriptor = toDescriptor(fd)
    const { bigint } = toOptions<{ readonly bigint?: boolean }>(options)
    return withDescriptor("fstat", descriptor, (descriptor) =>
      Effect.map(entryOf(descriptor), ({ stat }): Stats | BigIntStats => toStats(stat, bigint === true))
    )
  }

  const ftruncate = (fd: unknown, length: unknown = 0) => {
    const descriptor = toDescriptor(fd)
    const size = toLength(length)
    return withDescriptor("ftruncate", descriptor, ({ file, flags }) =>
      file === undefined || !flags.isWritable ? refuse("EINVAL") : withinMemory(openFiles.truncate(file, size))
    )
  }

  const sync = (syscall: "fsync" | "fdatasync") => (fd: unknown) =>
    withDescriptor(syscall, toDescriptor(fd), ({ file }) => (file === undefined ? Effect.void : openFiles.publish(file)))

  const fchmod = (fd: unknown, mode: unknown) => {
    const descriptor = toDescriptor(fd)
    const bits = toMode(mode)
    return withDescriptor("fchmod", descriptor, (descriptor) =>
      Effect.flatMap(entryOf(descriptor), (entry) => entries.chmodAt(entry, bits))
    )
  }

  const fchown = (fd: unknown, uid: unknown, gid: unknown) =>
    withDescriptor("fchown", toDescriptor(fd), () => entries.checkOwner(uid, gid))

  const futimes = (fd: unknown, atime: unknown, mtime: unknown) => {
    const descriptor = toDescriptor(fd)
    toMillis(atime)
    const millis = toMillis(mtime)
    return withDescriptor("futime", descriptor, (descriptor) =>
      Effect.flatMap(entryOf(descriptor), (entry) => entries.utimesAt(entry, millis))
    )
  }

  const readRest = Effect.fnUntraced(function* (descriptor: Descriptor): Effect.fn.Return<Buffer, Failure> {
    const chunks: Array<Uint8Array> = []
    for (;;) {
      const size = descriptor.file === undefined ? 0 : openFiles.sizeOf(descriptor.file) - descriptor.position
      const chunk = new Uint8Array(Math.min(readSize, Math.max(1, size)))
      const count = yield* readInto(descriptor, chunk, undefined)
      if (count === 0) return Buffer.concat(chunks)
      chunks.push(chunk.subarray(0, count))
    }
  })

  const usingFile = <A>(
    at: string,
    flags: OpenFlags,
    mode: number,
    syscall: string,
    use: (descriptor: Descriptor) => Effect.Effect<A, Failure>
  ): Effect.Effect<A, Failure> =>
    Effect.acquireUseRelease(openAt(at, flags, mode), (fd) => naming(use(descriptors.get(fd)!), { syscall }), closeAt)

  const decode = (bytes: Buffer, encoding: Encoding | null | undefined): Buffer | string =>
    encoding === undefined || encoding === null || encoding === "buffer" ? bytes : bytes.toString(encoding)

  const readFile = (file: unknown, options?: unknown): Effect.Effect<Buffer | string, Error> => {
    const { encoding, flag } = toOptions<FileOptions>(options)
    const flags = toFlags(flag)
    if (typeof file === "number") {
      return withDescriptor("read", toDescriptor(file), (descriptor) =>
        Effect.map(readRest(descriptor), (bytes) => decode(bytes, encoding))
      )
    }
    const at = toPath(file)
    const isPlain = flags.isReadable && !flags.isWritable && !flags.creates
    const whole = Effect.flatMap(prepare(at, flags), ({ path, stat }) =>
      stat?.isDirectory === true
        ? refuse("EISDIR", { syscall: "read" })
        : Effect.map(fs.readBytes(path), ({ content }) => toBuffer(content))
    )
    const read = isPlain ? whole : usingFile(at, flags, defaultFileMode, "read", readRest)
    return named(
      "open",
      Effect.map(read, (bytes) => decode(bytes, encoding)),
      at
    )
  }

  const writeAll = (descriptor: Descriptor, bytes: Uint8Array): Effect.Effect<void, Failure> =>
    bytes.length === 0 ? Effect.void : Effect.asVoid(writeFrom(descriptor, bytes, undefined))

  const writeWhole = (at: string, flags: OpenFlags, mode: number, bytes: Uint8Array): Effect.Effect<void, Failure> =>
    Effect.flatMap(prepare(at, flags), ({ path, stat }): Effect.Effect<void, Failure> => {
      // If no descriptor is open, write without loading the file: the backend can replace and append directly.
      const isReplacing = flags.truncates || stat === undefined
      const isPlain = openFiles.at(path) === undefined && (isReplacing || flags.isAppending) && flags.isWritable
      if (!isPlain) {
        return usingFile(at, flags, mode, "write", (descriptor) => writeAll(descriptor, bytes))
      }
      return Effect.andThen(
        openFiles.replace(path, bytes, flags.isExclusive ? "create" : isReplacing ? "overwrite" : "append"),
        stat === undefined && mode !== defaultFileMode ? core.applyMode(path, mode) : Effect.void
      )
    })

  const writer = (defaultFlag: "w" | "a") => (file: unknown, data: unknown, options?: unknown) => {
    const { encoding, flag, mode } = toOptions<FileOptions>(options)
    const flags = toFlags(flag ?? defaultFlag)
    const bytes = toBytes(data, encoding)
    const bits = toMode(mode, defaultFileMode)
    if (typeof file === "number") {
      return withDescriptor("write", toDescriptor(file), (descriptor) => writeAll(descriptor, bytes))
    }
    const at = toPath(file)
    return named("open", writeWhole(at, flags, bits, bytes), at)
  }

  const updating: OpenFlags = { ...toFlags("r+"), isReadable: false }

  const truncate = (path: unknown, length: unknown = 0): Effect.Effect<void, Error> => {
    if (typeof path === "number") return ftruncate(path, length)
    const at = toPath(path)
    const size = toLength(length ?? 0)
    return named(
      "open",
      usingFile(at, updating, defaultFileMode, "ftruncate", ({ file }) => withinMemory(openFiles.truncate(file!, size))),
      at
    )
  }

  const copyFileTo = Effect.fnUntraced(function* (from: string, to: string, mode: number): Effect.fn.Return<void, Failure> {
    const source = yield* core.require(from, true)
    if (/[^/]\/+$/.test(to)) return yield* refuse("EISDIR")
    const isExclusive = (mode & constants.COPYFILE_EXCL) !== 0
    const target = yield* core.lookUpCreatable(to, !isExclusive)
    if (target.stat !== undefined && isExclusive) return yield* refuse("EEXIST")
    if (target.stat?.isDirectory === true || source.stat.isDirectory) return yield* refuse("EISDIR")
    if (!source.stat.isFile) return yield* refuse("ENXIO")
    if ((mode & constants.COPYFILE_FICLONE_FORCE) !== 0) return yield* refuse("ENOTSUP")
    if (target.path === source.path) return
    const open = openFiles.at(target.path)
    if (open === undefined) {
      yield* fs.copy(source.path, target.path, { overwrite: true })
      return
    }
    const { content } = yield* fs.readBytes(source.path)
    yield* usingFile(to, toFlags("w"), defaultFileMode, "write", (descriptor) => writeAll(descriptor, content))
    if (core.hasAttributes && source.stat.mode !== undefined) yield* fs.setAttributes(target.path, { mode: source.stat.mode })
  })

  const copyFile = (from: unknown, to: unknown, mode: unknown = 0) => {
    const source = toPath(from, "src")
    const target = toPath(to, "dest")
    return named("copyfile", copyFileTo(source, target, toThreeBits(mode)), source, target)
  }

  return {
    appendFile: writer("a"),
    close,
    copyFile,
    fchmod,
    fchown,
    fdatasync: sync("fdatasync"),
    fstat,
    fsync: sync("fsync"),
    ftruncate,
    futimes,
    open,
    read,
    readFile,
    readv,
    truncate,
    write,
    writeFile: writer("w"),
    writev
  }
}

export type DescriptorCalls = ReturnType<typeof makeDescriptorCalls>
