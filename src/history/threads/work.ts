/**
 * The work of a thread for snapshots and archives. The thread reads, hashes and packs files, compares directories with
 * their stamps, and compresses and decompresses contents. All code is in one function without references to other code,
 * so that its source can run in a worker.
 */
import type * as NodeCrypto from "node:crypto"
import type * as Fs from "node:fs"
import type * as WorkerThreads from "node:worker_threads"
import type * as Zlib from "node:zlib"
import type { Encoder } from "../git/encoder.ts"
import type { Deflater } from "../zip/deflater.ts"
import type {
  CaptureOrder,
  CaptureReport,
  CompareOrder,
  CompareReport,
  DeflateOrder,
  DeflateReport,
  directoryStates,
  InflateOrder,
  InflateReport,
  Order,
  PackOrder,
  PackReport,
  Report,
  UnpackOrder,
  UnpackReport
} from "./orders.ts"

export interface Tools {
  readonly fs: Pick<
    typeof Fs,
    "openSync" | "fstatSync" | "readSync" | "writeSync" | "fchmodSync" | "closeSync" | "lstatSync" | "unlinkSync" | "constants"
  >
  readonly zlib: Pick<typeof Zlib, "crc32" | "inflateRawSync">
  readonly crypto: Pick<typeof NodeCrypto, "hash">
  readonly encoder: Encoder
  readonly deflated: Deflater
  readonly is: typeof directoryStates
  readonly port: Pick<WorkerThreads.MessagePort, "on" | "postMessage">
}

export const work = ({ crypto, deflated, encoder, fs, is, port, zlib }: Tools): void => {
  const { O_CREAT, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = fs.constants
  const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
  const fields = 5
  /** The number of bytes reserved before the content, for the header of the git object. */
  const room = 32
  let buffer = Buffer.allocUnsafeSlow(room + 2 ** 18)

  const hasStamp = (stats: Fs.Stats, stamps: Float64Array, at: number): boolean =>
    stats.mtimeMs === stamps[at + 2] &&
    stats.ctimeMs === stamps[at + 3] &&
    stats.ino === stamps[at + 4] &&
    (stats.mode & 0o777) === stamps[at + 1]
  const hasFileStamp = (stats: Fs.Stats | undefined, stamps: Float64Array, at: number): boolean =>
    stats !== undefined && stats.isFile() && stats.size === stamps[at] && hasStamp(stats, stamps, at)

  const makeOutput = (size: number) => {
    let out = Buffer.allocUnsafeSlow(size)
    let length = 0
    return {
      length: () => length,
      put: (bytes: Uint8Array): void => {
        if (length + bytes.length > out.length) {
          const larger = Buffer.allocUnsafeSlow(2 * (length + bytes.length))
          larger.set(out.subarray(0, length))
          out = larger
        }
        out.set(bytes, length)
        length += bytes.length
      },
      bytes: () => new Uint8Array(out.buffer, 0, length)
    }
  }

  const lstat = (path: string): Fs.Stats | undefined => {
    try {
      return fs.lstatSync(path, { throwIfNoEntry: false })
    } catch {
      return undefined
    }
  }

  const makeRoom = (size: number): void => {
    if (room + size > buffer.length) buffer = Buffer.allocUnsafeSlow(room + 2 * size)
  }
  const hold = (content: Uint8Array): number => {
    makeRoom(content.length)
    buffer.set(content, room)
    return content.length
  }

  /**
   * Reads a file into the buffer after the reserved bytes. Returns the size, or -1 if the file cannot be read, or if `accepts`
   * returns false for its stats.
   */
  const read = (path: string, accepts: (stats: Fs.Stats) => boolean): number => {
    let descriptor: number
    try {
      descriptor = fs.openSync(path, flags)
    } catch {
      return -1
    }
    try {
      const stats = fs.fstatSync(descriptor)
      if (!accepts(stats)) return -1
      const { size } = stats
      makeRoom(size)
      let done = 0
      while (done < size) {
        const count = fs.readSync(descriptor, buffer, room + done, size - done, done)
        if (count === 0) return -1
        done += count
      }
      return size
    } catch {
      return -1
    } finally {
      fs.closeSync(descriptor)
    }
  }

  const hashBlob = (size: number): string => {
    const header = `blob ${size}\0`
    const start = room - header.length
    buffer.write(header, start, "latin1")
    return crypto.hash("sha1", buffer.subarray(start, room + size), "hex")
  }

  const capture = ({ isEncoding, knownIds, places, refusesHardlinks, stamps }: CaptureOrder): void => {
    const count = stamps.length / fields
    const ids: Array<string> = []
    const ends = new Uint32Array(count)
    const crcs = new Uint32Array(count)
    const out = makeOutput(isEncoding ? 2 ** 16 : 0)
    for (const { base, names } of places) {
      const first = ids.length
      const all = names.split("/")
      for (const name of all) {
        const index = ids.length
        const size = read(
          `${base}/${name}`,
          (stats) => hasFileStamp(stats, stamps, fields * index) && !(refusesHardlinks && stats.nlink > 1)
        )
        const id = size === -1 ? "" : hashBlob(size)
        ids.push(id)
        if (isEncoding && id !== "" && id !== knownIds[index]) {
          const header = encoder.header("blob", size)
          const content = encoder.deflated(buffer.subarray(room, room + size))
          out.put(header)
          out.put(content)
          crcs[index] = zlib.crc32(content, zlib.crc32(header))
        }
        ends[index] = out.length()
      }
      // Compare the stamps again, because a file may have changed while it was read.
      for (const [at, name] of all.entries()) {
        const index = first + at
        if (ids[index] !== "" && !hasFileStamp(lstat(`${base}/${name}`), stamps, fields * index)) ids[index] = ""
      }
    }
    const bytes = out.bytes()
    const report: CaptureReport = { _tag: "Captured", ids, ends, crcs, bytes }
    port.postMessage(report, [ends.buffer, crcs.buffer, bytes.buffer])
  }

  const compare = ({ base, device, directories, stamps }: CompareOrder): void => {
    const states = new Uint8Array(directories.length)
    let at = 0
    for (const [index, directory] of directories.entries()) {
      const [path = "", ...names] = directory.split("\n")
      const from = at
      at += fields * (names.length + 1)
      const top = `${base}/${path}`
      const stats = lstat(top)
      if (stats === undefined || !stats.isDirectory() || stats.dev !== device || !hasStamp(stats, stamps, from)) continue
      const areSame = names.every((name, i) => {
        const found = lstat(`${top}/${name}`)
        const stamp = from + fields * (i + 1)
        return found !== undefined && found.dev === device && found.size === stamps[stamp] && hasStamp(found, stamps, stamp)
      })
      states[index] = areSame ? is.same : is.otherNames
    }
    port.postMessage({ _tag: "Compared", states } satisfies CompareReport, [states.buffer])
  }

  const pack = ({ maxBytes, places, refusesHardlinks }: PackOrder): void => {
    const paths = places.flatMap(({ base, names }) => names.split("/").map((name) => `${base}/${name}`))
    const modes = new Int32Array(paths.length)
    const sizes = new Uint32Array(paths.length)
    const ends = new Uint32Array(paths.length)
    const crcs = new Uint32Array(paths.length)
    const out = makeOutput(2 ** 16)
    for (const [index, path] of paths.entries()) {
      const size = read(path, (stats) => {
        modes[index] = stats.mode & 0o777
        return stats.isFile() && stats.size <= maxBytes && !(refusesHardlinks && stats.nlink > 1)
      })
      if (size === -1) modes[index] = -1
      else {
        const content = buffer.subarray(room, room + size)
        out.put(deflated(content))
        sizes[index] = size
        crcs[index] = zlib.crc32(content)
      }
      ends[index] = out.length()
    }
    const bytes = out.bytes()
    const report: PackReport = { _tag: "Packed", modes, sizes, ends, crcs, bytes }
    port.postMessage(report, [modes.buffer, sizes.buffer, ends.buffer, crcs.buffer, bytes.buffer])
  }

  const deflate = ({ bytes, ends }: DeflateOrder): void => {
    const out = makeOutput(bytes.length)
    const packedEnds = new Uint32Array(ends.length)
    const crcs = new Uint32Array(ends.length)
    for (let index = 0, start = 0; index < ends.length; start = ends[index++]!) {
      const content = bytes.subarray(start, ends[index])
      out.put(deflated(content))
      packedEnds[index] = out.length()
      crcs[index] = zlib.crc32(content)
    }
    const all = out.bytes()
    const report: DeflateReport = { _tag: "Deflated", bytes: all, ends: packedEnds, crcs }
    port.postMessage(report, [all.buffer, packedEnds.buffer, crcs.buffer])
  }

  const inflated = (packed: Uint8Array, size: number): Uint8Array | undefined => {
    try {
      const options = { maxOutputLength: Math.max(size, 1), chunkSize: Math.max(64, size), info: true }
      const done = zlib.inflateRawSync(packed, options) as unknown as {
        readonly buffer: Uint8Array
        readonly engine: { readonly bytesWritten: number }
      }
      return done.buffer.length === size && done.engine.bytesWritten === packed.length ? done.buffer : undefined
    } catch {
      return undefined
    }
  }

  const inflate = ({ bytes, crcs, ends, isDeflated, sizes }: InflateOrder): void => {
    const ids: Array<string> = []
    for (let index = 0, start = 0; index < ends.length; start = ends[index++]!) {
      const packed = bytes.subarray(start, ends[index])
      const content = isDeflated[index] === 1 ? inflated(packed, sizes[index]!) : packed
      const isIntact = content !== undefined && content.length === sizes[index] && zlib.crc32(content) === crcs[index]
      ids.push(isIntact ? hashBlob(hold(content)) : "")
    }
    port.postMessage({ _tag: "Inflated", ids } satisfies InflateReport)
  }

  const writeNew = (descriptor: number, content: Uint8Array, mode: number): void => {
    for (let done = 0; done < content.length;) {
      const count = fs.writeSync(descriptor, content, done, content.length - done)
      if (count === 0) throw new Error("the disk accepts no bytes")
      done += count
    }
    // The umask may have cleared some of the bits.
    if (mode !== -1 && (fs.fstatSync(descriptor).mode & 0o777) !== mode) fs.fchmodSync(descriptor, mode)
  }

  /** Creates a file that must not exist. Returns false, and leaves no file, if the system refuses any step. */
  const create = (path: string, content: Uint8Array, mode: number): boolean => {
    let descriptor: number
    try {
      descriptor = fs.openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY, mode === -1 ? 0o666 : mode)
    } catch {
      return false
    }
    try {
      try {
        writeNew(descriptor, content, mode)
      } finally {
        // Some network disks report only here that the content was lost.
        fs.closeSync(descriptor)
      }
      return true
    } catch {
      fs.unlinkSync(path)
      return false
    }
  }

  const unpack = ({ bytes, crcs, ends, ids, isDeflated, isHashed, modes, places, sizes, starts }: UnpackOrder): void => {
    const paths = places.flatMap(({ base, names }) => names.split("/").map((name) => `${base}/${name}`))
    const hashes = paths.map((path, index) => {
      const packed = bytes.subarray(starts[index], ends[index])
      const content = isDeflated[index] === 1 ? inflated(packed, sizes[index]!) : packed
      const isIntact = content !== undefined && content.length === sizes[index] && zlib.crc32(content) === crcs[index]
      if (!isIntact || (ids[index] !== "" && hashBlob(hold(content)) !== ids[index])) return undefined
      if (!create(path, content, modes[index]!)) return undefined
      return isHashed ? crypto.hash("sha256", content, "hex") : ""
    })
    port.postMessage({ _tag: "Unpacked", hashes } satisfies UnpackReport)
  }

  port.on("message", (order: Order) => {
    try {
      if (order._tag === "Capture") capture(order)
      else if (order._tag === "Compare") compare(order)
      else if (order._tag === "Pack") pack(order)
      else if (order._tag === "Deflate") deflate(order)
      else if (order._tag === "Inflate") inflate(order)
      else unpack(order)
    } catch (error) {
      port.postMessage({ _tag: "Failed", detail: String(error) } satisfies Report)
    }
  })
}
