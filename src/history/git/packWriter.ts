/**
 * Writes all new objects of one capture into one pack, with a few large writes instead of one file per object.
 *
 * While a stream is written to a temporary file, other objects are written to another temporary file. If the stream has the
 * wrong size, its bytes are removed from the file.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Host from "../../runtime/host.ts"
import { createHash, Fs, join, randomBytes, zlib } from "../../runtime/node.ts"
import { storeFault, type StoreFault } from "../errors.ts"
import { type Encoder, makeEncoder } from "./encoder.ts"
import { hasherOf, idOf, type ObjectKind } from "./objects.ts"
import { encodeIndex } from "./packIndex.ts"

export interface PackWriter {
  /**
   * Adds an object if this pack does not contain it, and returns the id. Computes the id if `id` is absent. `finish` reports
   * write errors.
   */
  readonly add: (kind: ObjectKind, body: Uint8Array, id?: string) => string
  /** Adds an object that is already encoded, with the CRC-32 of its encoding. Otherwise behaves like `add`. */
  readonly addEncoded: (id: string, encoded: Uint8Array, crc: number) => void
  /**
   * Adds a blob of a given size. A failure or an interruption leaves the pack unchanged. Several streams can be added at
   * the same time.
   */
  readonly addStream: <E, R>(
    size: number,
    stream: Stream.Stream<Uint8Array, E, R>
  ) => Effect.Effect<string, E | SizeMismatch | StoreFault, R>
  readonly has: (id: string) => boolean
  /**
   * Publishes the pack for git and returns its name, `pack-…`. Returns `undefined` if the pack is empty. A failure before
   * the publication leaves no files.
   */
  readonly finish: Effect.Effect<string | undefined, StoreFault>
  /** Removes all files. Does nothing after `finish`. */
  readonly discard: Effect.Effect<void>
}

export interface SizeMismatch {
  readonly _tag: "SizeMismatch"
  readonly expected: number
  readonly actual: number
}

interface PackOptions {
  /** True if `finish` waits until the data is on the disk. @default true */
  readonly isDurable?: boolean | undefined
  /** The smallest offset that the index stores in 64 bits. @default 2 GiB */
  readonly wideFrom?: number | undefined
}

const bufferBytes = 1024 * 1024
/** The sizes, in bytes, of a chunk of a stream and of a read. Writing a chunk takes about a millisecond. */
const chunkBytes = 256 * 1024
const readBytes = 2 * 1024 * 1024

let loadedEncoder: Encoder | undefined

/** Creates the encoder at the first use, because the encoder loads zlib. */
const encoder = (): Encoder => (loadedEncoder ??= makeEncoder(zlib()))

const diskFullCodes = new Set(["ENOSPC", "EDQUOT"])

const diskFault = (error: unknown): StoreFault => {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  const why = code !== undefined && diskFullCodes.has(code) ? `the disk is full (${code})` : (code ?? String(error))
  return storeFault("io", `a pack cannot be written: ${why}`)
}

const attempt = <A>(run: () => A): Effect.Effect<A, StoreFault> => Effect.try({ try: run, catch: diskFault })

const callFs = <A>(start: Host.Start<A>): Effect.Effect<A, StoreFault> => Host.awaited(start, diskFault)

const writeAll = (descriptor: number, bytes: Uint8Array, position: number): void => {
  for (let at = 0; at < bytes.length;) at += Fs.writeSync(descriptor, bytes, at, bytes.length - at, position + at)
}

/**
 * Returns a name in the form of git's own temporary files. A garbage collection removes the file of a killed process by its
 * name.
 */
const temporaryName = (kind: "pack" | "idx"): string => `tmp_${kind}_${randomBytes(8).toString("hex")}`

const makePart = (path: string) => {
  const descriptor = Fs.openSync(path, "wx+", 0o600)
  const buffer = Buffer.allocUnsafeSlow(bufferBytes)
  const ids: Array<string> = []
  const offsets: Array<number> = []
  const crcs: Array<number> = []
  let flushed = 0
  let used = 0

  const flush = (): void => {
    writeAll(descriptor, buffer.subarray(0, used), flushed)
    flushed += used
    used = 0
  }
  const put = (bytes: Uint8Array): void => {
    if (used + bytes.length > bufferBytes) flush()
    if (bytes.length > bufferBytes) {
      writeAll(descriptor, bytes, flushed)
      flushed += bytes.length
    } else {
      buffer.set(bytes, used)
      used += bytes.length
    }
  }
  return {
    path,
    descriptor,
    packed: { ids, offsets, crcs },
    isBusy: false,
    size: () => flushed + used,
    put,
    flush,
    recordObject: (id: string, offset: number, crc: number): void => {
      ids.push(id)
      offsets.push(offset)
      crcs.push(crc)
    },
    truncateTo: (size: number): void => {
      if (size >= flushed) used = size - flushed
      else {
        Fs.ftruncateSync(descriptor, size)
        flushed = size
        used = 0
      }
    },
    remove: (): void => {
      Host.closeQuietly(descriptor)
      Host.unlinkQuietly(path)
    }
  }
}

type Part = ReturnType<typeof makePart>

const compressor = (isIncompressible: boolean, onData: (bytes: Buffer) => void) => {
  const deflate = zlib().createDeflate({ level: isIncompressible ? 0 : encoder().level, chunkSize: chunkBytes })
  const ended = new Promise<void>((resolve, reject) => deflate.on("data", onData).once("end", resolve).once("error", reject))
  ended.catch(() => {})
  return {
    write: (bytes: Uint8Array) => callFs<void>((done) => deflate.write(bytes, (error) => done(error ?? null))),
    end: Effect.tryPromise({
      try: () => {
        deflate.end()
        return ended
      },
      catch: diskFault
    }),
    close: () => void deflate.off("data", onData).destroy()
  }
}

const mismatch = (expected: number, actual: number): SizeMismatch => ({ _tag: "SizeMismatch", expected, actual })

const writeStream = Effect.fnUntraced(function* <E, R>(part: Part, size: number, stream: Stream.Stream<Uint8Array, E, R>) {
  const header = encoder().header("blob", size)
  const hash = hasherOf("blob", size)
  let crc = zlib().crc32(header)
  let seen = 0
  let failure: StoreFault | undefined
  let deflate: ReturnType<typeof compressor> | undefined
  part.put(header)
  const onData = (bytes: Buffer): void => {
    crc = zlib().crc32(bytes, crc)
    try {
      if (failure === undefined) part.put(bytes)
    } catch (error) {
      failure = diskFault(error)
    }
  }
  const take = Effect.fnUntraced(function* (bytes: Uint8Array) {
    seen += bytes.length
    if (seen > size) return yield* Effect.fail(mismatch(size, seen))
    deflate ??= compressor(encoder().looksIncompressible(bytes), onData)
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const some = bytes.subarray(at, at + chunkBytes)
      hash.update(some)
      yield* deflate.write(some)
      if (failure !== undefined) return yield* Effect.fail(failure)
    }
  })
  const all = Effect.gen(function* () {
    yield* Stream.runForEach(stream, take)
    if (seen < size) return yield* Effect.fail(mismatch(size, seen))
    deflate ??= compressor(false, onData)
    yield* deflate.end
    if (failure !== undefined) return yield* Effect.fail(failure)
    return { id: hash.digest("hex"), crc }
  })
  return yield* Effect.ensuring(
    all,
    Effect.sync(() => deflate?.close())
  )
})

/** Reads a file chunk by chunk. All chunks share one buffer, so `use` must not keep its argument. */
const readThrough = Effect.fnUntraced(function* (descriptor: number, size: number, use: (bytes: Buffer) => void) {
  const buffer = Buffer.allocUnsafeSlow(Math.min(size, readBytes))
  for (let at = 0; at < size;) {
    const count = yield* callFs<number>((done) => Fs.read(descriptor, buffer, 0, Math.min(buffer.length, size - at), at, done))
    if (count === 0) return yield* Effect.fail(storeFault("io", "another program truncated the pack while it was written"))
    yield* attempt(() => use(buffer.subarray(0, count)))
    at += count
  }
})

const append = Effect.fnUntraced(function* (main: Part, part: Part) {
  const base = main.size()
  yield* attempt(part.flush)
  yield* readThrough(part.descriptor, part.size(), main.put)
  const { crcs, ids, offsets } = part.packed
  for (let i = 0; i < ids.length; i++) main.recordObject(ids[i]!, base + offsets[i]!, crcs[i]!)
  part.remove()
})

/**
 * Writes the number of objects into the header, and then appends and returns the SHA-1 of the whole pack. The disk stores the
 * bytes while they are hashed.
 */
const finishHeader = Effect.fnUntraced(function* (main: Part, isDurable: boolean) {
  yield* attempt(main.flush)
  const count = Buffer.alloc(4)
  count.writeUInt32BE(main.packed.ids.length)
  yield* attempt(() => writeAll(main.descriptor, count, 8))
  const hash = createHash("sha1")
  const hashed = readThrough(main.descriptor, main.size(), (bytes) => void hash.update(bytes))
  yield* inParallel(isDurable ? Host.sync(main.descriptor, diskFault) : Effect.void, hashed)
  const checksum = hash.digest()
  yield* attempt(() => {
    main.put(checksum)
    main.flush()
  })
  return checksum
})

/** Runs both effects at the same time. The first one only waits for the disk. */
const inParallel = <A, E>(waits: Effect.Effect<void, E>, works: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.map(Effect.all([waits, works], { concurrency: 2 }), ([, result]) => result)

const readOnlyMode = 0o444

const finishFile = Effect.fnUntraced(function* (descriptor: number, isDurable: boolean) {
  yield* attempt(() => Fs.fchmodSync(descriptor, readOnlyMode))
  if (isDurable) yield* Host.sync(descriptor, diskFault)
})

const withFile = <A>(path: string, use: (descriptor: number) => Effect.Effect<A, StoreFault>): Effect.Effect<A, StoreFault> =>
  Effect.acquireUseRelease(
    attempt(() => Fs.openSync(path, "wx", 0o600)),
    use,
    (descriptor, exit) =>
      Effect.sync(() => {
        Host.closeQuietly(descriptor)
        if (Exit.isFailure(exit)) Host.unlinkQuietly(path)
      })
  )

/** Renames the pack and the index to their final names. The index is last, because git finds a pack by its index. */
const publish = (directory: string, name: string, pack: string, index: string): void => {
  const target = join(directory, name)
  const isNew = !Fs.existsSync(`${target}.pack`)
  Fs.renameSync(pack, `${target}.pack`)
  try {
    Fs.renameSync(index, `${target}.idx`)
  } catch (error) {
    if (isNew) Host.unlinkQuietly(`${target}.pack`)
    throw error
  }
}

export const open = Effect.fnUntraced(function* (
  directory: string,
  { isDurable = true, wideFrom }: PackOptions = {}
): Effect.fn.Return<PackWriter, StoreFault> {
  const newPart = (): Part => makePart(join(directory, temporaryName("pack")))
  const main = yield* attempt(newPart)
  const parts = [main]
  const all = new Set<string>()
  let failure: StoreFault | undefined
  let isClosed = false

  const assertOpen = (): void => {
    if (isClosed) throw new Error("the pack writer is closed, so it accepts no more objects")
  }
  const findFreePart = (): Part => {
    const there = parts.find(({ isBusy }) => !isBusy)
    if (there !== undefined) return there
    const part = newPart()
    parts.push(part)
    return part
  }
  const close = Effect.sync(() => {
    isClosed = true
    for (const part of parts.splice(0)) part.remove()
  })

  const write = (id: string, crc: number, ...parts: ReadonlyArray<Uint8Array>): void => {
    const part = findFreePart()
    const offset = part.size()
    for (const bytes of parts) part.put(bytes)
    part.recordObject(id, offset, crc)
  }
  /** Writes a new object. If the write fails, `finish` reports the failure. */
  const writeNew = (id: string, run: () => void): void => {
    assertOpen()
    if (all.has(id) || failure !== undefined) return
    all.add(id)
    try {
      run()
    } catch (error) {
      failure = diskFault(error)
    }
  }
  const add: PackWriter["add"] = (kind, body, id = idOf(kind, body)) => {
    writeNew(id, () => {
      const header = encoder().header(kind, body.length)
      const content = encoder().deflated(body, kind)
      write(id, zlib().crc32(content, zlib().crc32(header)), header, content)
    })
    return id
  }
  const addEncoded: PackWriter["addEncoded"] = (id, encoded, crc) => writeNew(id, () => write(id, crc, encoded))

  const reserve = Effect.suspend(() => {
    assertOpen()
    if (failure !== undefined) return Effect.fail(failure)
    return attempt(() => {
      const part = findFreePart()
      part.isBusy = true
      return { part, start: part.size() }
    })
  })
  const addStream: PackWriter["addStream"] = <E, R>(size: number, stream: Stream.Stream<Uint8Array, E, R>) =>
    Effect.acquireUseRelease(
      reserve,
      ({ part, start }) =>
        Effect.map(writeStream(part, size, stream), ({ crc, id }) => {
          if (!all.has(id)) {
            all.add(id)
            part.recordObject(id, start, crc)
          }
          return id
        }),
      ({ part, start }) =>
        Effect.sync(() => {
          part.isBusy = false
          if (isClosed || part.packed.offsets.at(-1) === start) return
          try {
            part.truncateTo(start)
          } catch (error) {
            failure ??= diskFault(error)
          }
        })
    )

  const writePack = Effect.gen(function* () {
    if (failure !== undefined) return yield* Effect.fail(failure)
    if (all.size === 0) return undefined
    for (const part of parts.slice(1)) yield* append(main, part)
    parts.length = 1
    const checksum = yield* finishHeader(main, isDurable)
    const index = yield* inParallel(finishFile(main.descriptor, isDurable), encodeIndex(main.packed, checksum, wideFrom))
    const name = `pack-${checksum.toString("hex")}`
    const temporary = join(directory, temporaryName("idx"))
    yield* withFile(
      temporary,
      Effect.fnUntraced(function* (descriptor) {
        yield* attempt(() => writeAll(descriptor, index, 0))
        yield* finishFile(descriptor, isDurable)
        yield* attempt(() => publish(directory, name, main.path, temporary))
      })
    )
    if (isDurable) yield* Host.syncDirectory(directory, diskFault)
    return name
  })
  const finish = Effect.suspend(() => {
    assertOpen()
    isClosed = true
    if (parts.some(({ isBusy }) => isBusy))
      return Effect.andThen(close, Effect.die(new Error("the pack cannot be finished while a stream is being added")))
    return Effect.uninterruptibleMask((restore) => Effect.ensuring(restore(writePack), close))
  })

  yield* attempt(() => main.put(Buffer.from("PACK\0\0\0\x02\0\0\0\0", "latin1")))
  return { add, addEncoded, addStream, has: (id) => all.has(id), finish, discard: close }
})
