/**
 * What one capture adds goes into one pack: few large writes in place of a file for each object, and nothing is there for git before
 * all of it is. Content whose size is known but which is not held in memory goes, while it comes, into a part of its own, so that
 * others can add meanwhile and what does not come as it was told is cut off again.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { createHash, Fs, join, randomBytes, zlib } from "../../runtime/node.ts"
import type * as Zlib from "node:zlib"
import { storeFault, type StoreFault } from "../errors.ts"
import { hasherOf, idOf, type ObjectKind } from "./objects.ts"
import { encodeIndex } from "./packIndex.ts"

export interface PackWriter {
  /**
   * Answers the object's id, which is worked out where it is not given. What this pack has is passed over. A disk that fails is told by
   * `finish`.
   */
  readonly add: (kind: ObjectKind, body: Uint8Array, id?: string) => string
  /** A blob of this size. Where that fails or is interrupted, the pack is as it was before. Several may come at once. */
  readonly addStream: <E, R>(
    size: number,
    stream: Stream.Stream<Uint8Array, E, R>
  ) => Effect.Effect<string, E | SizeMismatch | StoreFault, R>
  /** Whether this pack has it. */
  readonly has: (id: string) => boolean
  /** The name of the pack, `pack-…`, which git sees from now on; `undefined` where nothing was added. Nothing is left where it fails. */
  readonly finish: Effect.Effect<string | undefined, StoreFault>
  /** Leaves nothing. After `finish`, does nothing. */
  readonly abandon: Effect.Effect<void>
}

/** More bytes came than were told, or fewer. */
export interface SizeMismatch {
  readonly _tag: "SizeMismatch"
  readonly expected: number
  /** How many came; where they were too many, until that was seen. */
  readonly actual: number
}

export interface PackOptions {
  /** Whether it is on the disk, and not only on its way there, when it is finished. @default true */
  readonly isDurable?: boolean | undefined
  /** The first offset that the index writes wide. @default 2 GiB */
  readonly wideFrom?: number | undefined
}

/** Less can be had, at several times the cost. */
const level = 1
const bufferBytes = 1024 * 1024
/** Of content that comes in parts, and of what is read again: about a millisecond each. */
const partBytes = 256 * 1024
const readBytes = 2 * 1024 * 1024

const kinds: { readonly [Kind in ObjectKind]: number } = { commit: 1, tree: 2, blob: 3 }

/** Kind and size: four bits of the size, then seven each. */
const headerOf = (kind: ObjectKind, size: number): Buffer => {
  const bytes: Array<number> = []
  let next = (kinds[kind] << 4) | (size & 15)
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(next | 0x80)
    next = rest % 128
  }
  return Buffer.from([...bytes, next])
}

/** So little is not worth the making of a compressor. */
const tiny = 96

const adler32 = (bytes: Uint8Array): number => {
  let [a, b] = [1, 0]
  for (const byte of bytes) {
    a = (a + byte) % 65521
    b = (b + a) % 65521
  }
  return b * 65536 + a
}

/** As one stored block. */
const stored = (body: Uint8Array): Buffer => {
  const size = body.length
  const out = Buffer.allocUnsafe(size + 11)
  out.set([0x78, 0x01, 1, size, 0, 255 - size, 255])
  out.set(body, 7)
  out.writeUInt32BE(adler32(body), size + 7)
  return out
}

const samples = 1024
const counts = new Uint16Array(256)

/** How often two samples are the same where all bytes are equally frequent, and an eighth more: seven times what chance makes of it. */
const fewRepeats = (samples + samples ** 2 / 256) * 1.125

/**
 * Whether the bytes are as evenly spread as those of what is compressed or encrypted, in which looking for more costs thirty times what
 * keeping them costs.
 */
const isDense = (bytes: Uint8Array): boolean => {
  if (bytes.length < 4 * samples) return false
  const step = bytes.length / samples
  counts.fill(0)
  for (let i = 0; i < samples; i++) counts[bytes[Math.floor(i * step)]!]!++
  let repeats = 0
  for (const count of counts) repeats += count * count
  return repeats < fewRepeats
}

/** Compressors for bodies of up to 2^9, 2^10 … bytes: a window no larger than what is in it costs less to make. */
const compressors: ReadonlyArray<Zlib.ZlibOptions> = [9, 10, 11, 12, 13, 14, 15].map((windowBits) => ({
  level,
  windowBits,
  memLevel: Math.min(8, windowBits - 6),
  chunkSize: 2 ** windowBits + 128
}))

const deflated = (body: Uint8Array): Buffer => {
  const size = body.length
  if (size <= tiny) return stored(body)
  const chunkSize = size + 1024
  if (isDense(body)) return zlib().deflateSync(body, { level: 0, chunkSize })
  const bits = 32 - Math.clz32(size - 1)
  return zlib().deflateSync(body, bits > 15 ? { level, chunkSize } : compressors[Math.max(0, bits - 9)])
}

const full = new Set(["ENOSPC", "EDQUOT"])

const diskFault = (error: unknown): StoreFault => {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  const why = code !== undefined && full.has(code) ? `the disk is full (${code})` : (code ?? String(error))
  return storeFault("io", `a pack cannot be written: ${why}`)
}

const attempt = <A>(run: () => A): Effect.Effect<A, StoreFault> => Effect.try({ try: run, catch: diskFault })

/** A call that nothing may happen to its descriptor during. */
const io = <A>(call: (done: (error: Error | null, answer: A) => void) => void): Effect.Effect<A, StoreFault> =>
  Effect.uninterruptible(
    Effect.callback((resume) =>
      call((error, answer) => resume(error === null ? Effect.succeed(answer) : Effect.fail(diskFault(error))))
    )
  )

const writeAll = (descriptor: number, bytes: Uint8Array, position: number): void => {
  for (let at = 0; at < bytes.length;) at += Fs.writeSync(descriptor, bytes, at, bytes.length - at, position + at)
}

const quietly = (run: () => void): void => {
  try {
    run()
  } catch {
    // What cannot be closed or removed is left to git, which knows the names of temporary files.
  }
}

/** As git's own temporary files are called, so that it removes what a killed process has left. */
const temporaryName = (kind: "pack" | "idx"): string => `tmp_${kind}_${randomBytes(8).toString("hex")}`

/** Objects one behind the other in a file of their own. */
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
    /** Something comes into it in parts. */
    isBusy: false,
    size: () => flushed + used,
    put,
    flush,
    /** The object that begins at `offset`. */
    enter: (id: string, offset: number, crc: number): void => {
      ids.push(id)
      offsets.push(offset)
      crcs.push(crc)
    },
    /** Back to the size that it had. */
    cut: (size: number): void => {
      if (size >= flushed) used = size - flushed
      else {
        Fs.ftruncateSync(descriptor, size)
        flushed = size
        used = 0
      }
    },
    remove: (): void => {
      quietly(() => Fs.closeSync(descriptor))
      quietly(() => Fs.unlinkSync(path))
    }
  }
}

type Part = ReturnType<typeof makePart>

/** A compressor that works beside this thread. */
const compressor = (isIncompressible: boolean, onData: (bytes: Buffer) => void) => {
  const deflate = zlib().createDeflate({ level: isIncompressible ? 0 : level, chunkSize: partBytes })
  const ended = new Promise<void>((resolve, reject) => deflate.on("data", onData).once("end", resolve).once("error", reject))
  ended.catch(() => {})
  return {
    write: (bytes: Uint8Array) => io<void>((done) => deflate.write(bytes, (error) => done(error ?? null))),
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

/** Writes a blob at the end of the part. Answers its id and the checksum of what was written. */
const writeStream = Effect.fnUntraced(function* <E, R>(part: Part, size: number, stream: Stream.Stream<Uint8Array, E, R>) {
  const header = headerOf("blob", size)
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
    deflate ??= compressor(isDense(bytes), onData)
    for (let at = 0; at < bytes.length; at += partBytes) {
      const some = bytes.subarray(at, at + partBytes)
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

/** Reads a file from its beginning, some at a time; the reading of the next and the use of what is there are not at once. */
const readThrough = Effect.fnUntraced(function* (descriptor: number, size: number, use: (bytes: Buffer) => void) {
  const buffer = Buffer.allocUnsafeSlow(Math.min(size, readBytes))
  for (let at = 0; at < size;) {
    const count = yield* io<number>((done) => Fs.read(descriptor, buffer, 0, Math.min(buffer.length, size - at), at, done))
    if (count === 0) return yield* Effect.fail(storeFault("io", "a pack was cut off by somebody else while it was written"))
    yield* attempt(() => use(buffer.subarray(0, count)))
    at += count
  }
})

/** Puts all that is in `part` at the end of `main`. */
const append = Effect.fnUntraced(function* (main: Part, part: Part) {
  const base = main.size()
  yield* attempt(part.flush)
  yield* readThrough(part.descriptor, part.size(), main.put)
  const { crcs, ids, offsets } = part.packed
  for (let i = 0; i < ids.length; i++) main.enter(ids[i]!, base + offsets[i]!, crcs[i]!)
  part.remove()
})

/** The pack begins with the number of its objects, so that it can be hashed only when that is known. */
const seal = Effect.fnUntraced(function* (main: Part) {
  yield* attempt(main.flush)
  const count = Buffer.alloc(4)
  count.writeUInt32BE(main.packed.ids.length)
  yield* attempt(() => writeAll(main.descriptor, count, 8))
  const hash = createHash("sha1")
  yield* readThrough(main.descriptor, main.size(), (bytes) => void hash.update(bytes))
  const checksum = hash.digest()
  yield* attempt(() => {
    main.put(checksum)
    main.flush()
  })
  return checksum
})

const isReadOnly = 0o444

const settle = Effect.fnUntraced(function* (descriptor: number, isDurable: boolean) {
  yield* attempt(() => Fs.fchmodSync(descriptor, isReadOnly))
  if (isDurable) yield* io<void>((done) => Fs.fsync(descriptor, (error) => done(error)))
})

/** Removes the file again where `use` does not succeed. */
const withFile = <A>(path: string, use: (descriptor: number) => Effect.Effect<A, StoreFault>): Effect.Effect<A, StoreFault> =>
  Effect.acquireUseRelease(
    attempt(() => Fs.openSync(path, "wx", 0o600)),
    use,
    (descriptor, exit) =>
      Effect.sync(() => {
        quietly(() => Fs.closeSync(descriptor))
        if (Exit.isFailure(exit)) quietly(() => Fs.unlinkSync(path))
      })
  )

/** Git finds a pack by its index, which therefore comes last. */
const publish = (directory: string, name: string, pack: string, index: string): void => {
  const target = join(directory, name)
  const isNew = !Fs.existsSync(`${target}.pack`)
  Fs.renameSync(pack, `${target}.pack`)
  try {
    Fs.renameSync(index, `${target}.idx`)
  } catch (error) {
    if (isNew) quietly(() => Fs.unlinkSync(`${target}.pack`))
    throw error
  }
}

const syncDirectory = (directory: string): Effect.Effect<void, StoreFault> =>
  Effect.acquireUseRelease(
    attempt(() => Fs.openSync(directory, "r")),
    (descriptor) => io<void>((done) => Fs.fsync(descriptor, (error) => done(error))),
    (descriptor) => Effect.sync(() => quietly(() => Fs.closeSync(descriptor)))
  )

/** A pack to be written into this directory, the `objects/pack` of a store. */
export const open = Effect.fnUntraced(function* (
  directory: string,
  { isDurable = true, wideFrom }: PackOptions = {}
): Effect.fn.Return<PackWriter, StoreFault> {
  const newPart = (): Part => makePart(join(directory, temporaryName("pack")))
  const main = yield* attempt(newPart)
  const parts = [main]
  const all = new Set<string>()
  let failure: StoreFault | undefined
  let isOver = false

  const use = (): void => {
    if (isOver) throw new Error("the pack is closed")
  }
  /** One that nothing comes into in parts. */
  const free = (): Part => {
    const there = parts.find(({ isBusy }) => !isBusy)
    if (there !== undefined) return there
    const part = newPart()
    parts.push(part)
    return part
  }
  const close = Effect.sync(() => {
    isOver = true
    for (const part of parts.splice(0)) part.remove()
  })

  const write = (id: string, kind: ObjectKind, body: Uint8Array): void => {
    const part = free()
    const offset = part.size()
    const header = headerOf(kind, body.length)
    const content = deflated(body)
    part.put(header)
    part.put(content)
    part.enter(id, offset, zlib().crc32(content, zlib().crc32(header)))
  }
  const add: PackWriter["add"] = (kind, body, id = idOf(kind, body)) => {
    use()
    if (all.has(id) || failure !== undefined) return id
    all.add(id)
    try {
      write(id, kind, body)
    } catch (error) {
      failure = diskFault(error)
    }
    return id
  }

  const reserve = Effect.suspend(() => {
    use()
    if (failure !== undefined) return Effect.fail(failure)
    return attempt(() => {
      const part = free()
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
            part.enter(id, start, crc)
          }
          return id
        }),
      ({ part, start }) =>
        Effect.sync(() => {
          part.isBusy = false
          if (isOver || part.packed.offsets.at(-1) === start) return
          try {
            part.cut(start)
          } catch (error) {
            failure ??= diskFault(error)
          }
        })
    )

  const finished = Effect.gen(function* () {
    if (failure !== undefined) return yield* Effect.fail(failure)
    if (all.size === 0) return undefined
    for (const part of parts.slice(1)) yield* append(main, part)
    parts.length = 1
    const checksum = yield* seal(main)
    yield* settle(main.descriptor, isDurable)
    const index = yield* encodeIndex(main.packed, checksum, wideFrom)
    const name = `pack-${checksum.toString("hex")}`
    const temporary = join(directory, temporaryName("idx"))
    yield* withFile(
      temporary,
      Effect.fnUntraced(function* (descriptor) {
        yield* attempt(() => writeAll(descriptor, index, 0))
        yield* settle(descriptor, isDurable)
        yield* attempt(() => publish(directory, name, main.path, temporary))
      })
    )
    if (isDurable) yield* syncDirectory(directory)
    return name
  })
  const finish = Effect.suspend(() => {
    use()
    isOver = true
    if (parts.some(({ isBusy }) => isBusy)) return Effect.andThen(close, Effect.die(new Error("content is still coming")))
    return Effect.uninterruptibleMask((restore) => Effect.ensuring(restore(finished), close))
  })

  yield* attempt(() => main.put(Buffer.from("PACK\0\0\0\x02\0\0\0\0", "latin1")))
  return { add, addStream, has: (id) => all.has(id), finish, abandon: close }
})
