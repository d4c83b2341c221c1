/** The objects that calls of `node:fs` return: `FileHandle`, `Dir` and `FSWatcher`. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type * as NodeEvents from "node:events"
import type * as NodeReadline from "node:readline"
import type * as NodeStream from "node:stream"
import type { FileEntry, WatchEvent } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { builtin, Fs } from "../../runtime/node.ts"
import { encodeName, type Encoding, toOptions, toPath } from "./arguments.ts"
import { type Core, type Failure, named, toNodeError } from "./core.ts"
import type { DescriptorCalls } from "./descriptors.ts"
import type { EntryCalls } from "./entries.ts"
import { Dirent } from "./stats.ts"

/** Runs an effect as a promise that rejects with Node's error. */
export type Run = <A>(effect: Effect.Effect<A, Error>, signal?: AbortSignal) => Promise<A>

interface StreamOptions {
  readonly fd?: unknown
  readonly [option: string]: unknown
}

type Streams = (path: unknown, options: StreamOptions) => unknown

export const isAborted = (signal: AbortSignal | undefined): boolean => signal?.aborted === true

/** Returns the signal of the options. Throws for options that Node refuses. */
export const toSignal = (options: unknown): AbortSignal | undefined =>
  toOptions<{ readonly signal?: AbortSignal }>(options).signal

export const abortError = (signal: AbortSignal): Error =>
  Object.assign(new Error("The operation was aborted", { cause: signal.reason }), { name: "AbortError", code: "ABORT_ERR" })

const closedError = (method: string): Error => Object.assign(new Error("file closed"), { code: "EBADF", syscall: method })

const isClosedAlready = (error: Error): boolean => "code" in error && error.code === "EBADF"

/** A file handle of `promises.open`. */
export class FileHandle {
  readonly #calls: DescriptorCalls
  readonly #run: Run
  readonly #streams: { readonly read: Streams; readonly write: Streams }
  readonly #running = new Set<Promise<unknown>>()
  #fd: number
  #closing: Promise<void> | undefined

  constructor(fd: number, calls: DescriptorCalls, run: Run, streams: { readonly read: Streams; readonly write: Streams }) {
    this.#fd = fd
    this.#calls = calls
    this.#run = run
    this.#streams = streams
  }

  /** The descriptor, or -1 after `close`. */
  get fd(): number {
    return this.#fd
  }

  async #hold<A>(method: string, use: (fd: number) => Promise<A>): Promise<A> {
    if (this.#fd === -1) throw closedError(method)
    const running = use(this.#fd)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }
  /** Runs a call. `name` is the name of the method, which the error of a closed handle contains. */
  #call<A>(name: string, effect: (fd: number) => Effect.Effect<A, Error>): Promise<A> {
    return this.#hold(name, (fd) => this.#run(effect(fd)))
  }

  /** Closes the descriptor after the calls that still run. */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      const fd = this.#fd
      this.#fd = -1
      this.#closing = this.#closeAfterCalls(fd)
    }
    return this.#closing
  }
  async #closeAfterCalls(fd: number): Promise<void> {
    await Promise.allSettled(this.#running)
    // A stream of this handle may have closed the descriptor.
    await this.#run(Effect.catchIf(this.#calls.close(fd), isClosedAlready, () => Effect.void))
  }
  async read(buffer?: unknown, ...rest: ReadonlyArray<unknown>) {
    const isOptions = typeof buffer === "object" && buffer !== null && !ArrayBuffer.isView(buffer)
    const options = isOptions ? (buffer as { readonly buffer?: ArrayBufferView }) : undefined
    const target = options === undefined && buffer !== undefined ? buffer : (options?.buffer ?? new Uint8Array(16_384))
    const bytesRead = await this.#call("read", (fd) => this.#calls.read(fd, target, ...(options ? [options] : rest)))
    return { bytesRead, buffer: target }
  }
  async readv(buffers: unknown, position?: unknown) {
    return { bytesRead: await this.#call("readv", (fd) => this.#calls.readv(fd, buffers, position)), buffers }
  }
  async write(data: unknown, ...rest: ReadonlyArray<unknown>) {
    return { bytesWritten: await this.#call("write", (fd) => this.#calls.write(fd, data, ...rest)), buffer: data }
  }
  async writev(buffers: unknown, position?: unknown) {
    return { bytesWritten: await this.#call("writev", (fd) => this.#calls.writev(fd, buffers, position)), buffers }
  }
  readFile(options?: unknown) {
    return this.#hold("readFile", async (fd) => this.#run(this.#calls.readFile(fd, options), toSignal(options)))
  }
  writeFile(data: unknown, options?: unknown): Promise<void> {
    return this.#hold("writeFile", async (fd) =>
      this.#run(this.#calls.writeFile(fd, await collect(data, options), options), toSignal(options))
    )
  }
  appendFile(data: unknown, options?: unknown) {
    return this.writeFile(data, options)
  }
  stat(options?: unknown) {
    return this.#call("fstat", (fd) => this.#calls.fstat(fd, options))
  }
  truncate(length?: unknown) {
    return this.#call("ftruncate", (fd) => this.#calls.ftruncate(fd, length))
  }
  sync() {
    return this.#call("fsync", this.#calls.fsync)
  }
  datasync() {
    return this.#call("fdatasync", this.#calls.fdatasync)
  }
  chmod(mode: unknown) {
    return this.#call("fchmod", (fd) => this.#calls.fchmod(fd, mode))
  }
  chown(uid: unknown, gid: unknown) {
    return this.#call("fchown", (fd) => this.#calls.fchown(fd, uid, gid))
  }
  utimes(atime: unknown, mtime: unknown) {
    return this.#call("futimes", (fd) => this.#calls.futimes(fd, atime, mtime))
  }
  createReadStream(options?: unknown) {
    return this.#streams.read("", { ...toOptions<StreamOptions>(options), fd: this })
  }
  createWriteStream(options?: unknown) {
    return this.#streams.write("", { ...toOptions<StreamOptions>(options), fd: this })
  }
  readLines(options?: unknown) {
    const input = this.createReadStream(options) as NodeJS.ReadableStream
    return builtin<typeof NodeReadline>("node:readline").createInterface({ input, crlfDelay: Infinity })
  }
  readableWebStream() {
    if (this.#fd === -1) {
      throw Object.assign(new Error("Invalid state: The FileHandle is closed"), { code: "ERR_INVALID_STATE" })
    }
    return builtin<typeof NodeStream>("node:stream").Readable.toWeb(
      this.createReadStream({ autoClose: false }) as NodeStream.Readable
    )
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** Collects the chunks of an iterable before the first write, so that a failing or endless iterable changes nothing. */
export const collect = async (data: unknown, options: unknown): Promise<unknown> => {
  const isChunks = typeof data === "object" && data !== null && !ArrayBuffer.isView(data)
  if (!isChunks || !(Symbol.asyncIterator in data || Symbol.iterator in data)) return data
  const { encoding } = toOptions(options)
  const signal = toSignal(options)
  const chunks: Array<Uint8Array> = []
  if (isAborted(signal)) throw abortError(signal!)
  for await (const chunk of data as AsyncIterable<unknown>) {
    if (isAborted(signal)) throw abortError(signal!)
    if (typeof chunk === "string") chunks.push(Buffer.from(chunk, encoding === "buffer" ? undefined : encoding))
    else if (chunk instanceof Uint8Array) chunks.push(chunk.slice())
    else throw Object.assign(new TypeError("every chunk must be a string or a Uint8Array"), { code: "ERR_INVALID_ARG_TYPE" })
  }
  return Buffer.concat(chunks)
}

/** Returns `createReadStream` and `createWriteStream`: the streams of Node, over the open, read, write and close of `fs`. */
export const makeStreams = (fs: object): { readonly read: Streams; readonly write: Streams } => {
  const optionsFor = ({ fd, ...options }: StreamOptions) => ({
    ...options,
    fs,
    ...(fd === undefined || fd === null ? undefined : { fd: fd instanceof FileHandle ? fd.fd : fd })
  })
  const pathFor = (path: unknown, { fd }: StreamOptions) => (fd === undefined || fd === null ? toPath(path) : "")
  return {
    read: (path, options) => Fs.createReadStream(pathFor(path, options), optionsFor(options) as object),
    write: (path, options) => Fs.createWriteStream(pathFor(path, options), optionsFor(options) as object)
  }
}

const closedDirectory = (): Error => Object.assign(new Error("Directory handle was closed"), { code: "ERR_DIR_CLOSED" })

type Callback<A> = (error: Error | null, value?: A) => void

/** A directory opened by `opendir`. The entries are those that existed when the directory was opened. */
export class Dir {
  readonly path: string
  readonly #entries: Array<Dirent>
  #isClosed = false

  constructor(path: string, entries: ReadonlyArray<FileEntry>, encoding: Encoding | undefined) {
    this.path = path
    this.#entries = entries.map(({ kind, name }) => new Dirent(encodeName(name, encoding), path, kind))
  }

  readSync(): Dirent | null {
    if (this.#isClosed) throw closedDirectory()
    return this.#entries.shift() ?? null
  }
  closeSync(): void {
    if (this.#isClosed) throw closedDirectory()
    this.#isClosed = true
  }
  read(callback?: Callback<Dirent | null>): Promise<Dirent | null> | undefined {
    return settle(async () => this.readSync(), callback)
  }
  close(callback?: Callback<void>): Promise<void> | undefined {
    return settle(async () => this.closeSync(), callback)
  }
  async *entries(): AsyncGenerator<Dirent> {
    try {
      for (let entry = this.readSync(); entry !== null; entry = this.readSync()) yield entry
    } finally {
      if (!this.#isClosed) this.closeSync()
    }
  }
  [Symbol.asyncIterator](): AsyncGenerator<Dirent> {
    return this.entries()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) this.closeSync()
  }
}

const settle = <A>(run: () => Promise<A>, callback: Callback<A> | undefined): Promise<A> | undefined => {
  if (callback === undefined) return run()
  run().then(
    (value) => queueMicrotask(() => callback(null, value)),
    (error: Error) => queueMicrotask(() => callback(error))
  )
  return undefined
}

interface WatchOptions {
  readonly recursive?: boolean
  readonly signal?: AbortSignal
}

export interface Change {
  readonly eventType: "rename" | "change"
  readonly filename: string | Buffer
}

/** Streams the changes of a file or directory as `fs.watch` reports them. */
export const watchChanges = (core: Core, at: string, options: WatchOptions & { readonly encoding?: Encoding | undefined }) => {
  const failed = (failure: Failure): Error =>
    Object.assign(toNodeError(failure, { syscall: "watch", path: at }), { filename: at })
  const changes = Effect.map(core.require(at, true), ({ path, stat }) => {
    const base = stat.isDirectory ? path : FsPath.parent(path)
    const isSeen = (event: WatchEvent) =>
      stat.isDirectory ? options.recursive === true || !FsPath.relative(base, event.path).includes("/") : event.path === path
    return Stream.map(Stream.filter(core.fs.watch(base), isSeen), (event): Change => ({
      eventType: event._tag === "Updated" ? "change" : "rename",
      filename: encodeName(FsPath.relative(base, event.path), options.encoding) as string | Buffer
    }))
  })
  return Stream.mapError(Stream.unwrap(changes), failed)
}

/** Returns the `FSWatcher` of `fs.watch`. A path that is missing is reported as an "error" event. */
export const makeWatch =
  (core: Core, fork: <A>(effect: Effect.Effect<A, Error>) => Fiber.Fiber<A, Error>) =>
  (path: unknown, ...args: ReadonlyArray<unknown>): NodeEvents.EventEmitter => {
    const at = toPath(path, "filename")
    const options = toOptions<WatchOptions>(typeof args[0] === "function" ? undefined : args[0])
    const listener = args.find((arg) => typeof arg === "function") as ((type: string, name: unknown) => void) | undefined
    const { EventEmitter } = builtin<typeof NodeEvents>("node:events")
    const emitter = new EventEmitter()
    if (listener !== undefined) emitter.on("change", listener)
    let isClosed = false
    // If a listener throws, the watcher continues and the error is uncaught, as in Node.
    const emit = (name: string, ...values: ReadonlyArray<unknown>) =>
      Effect.sync(() =>
        process.nextTick(() => {
          if (!isClosed) emitter.emit(name, ...values)
        })
      )
    const fiber = fork(
      Stream.runForEach(watchChanges(core, at, options), ({ eventType, filename }) => emit("change", eventType, filename)).pipe(
        Effect.catch((error) => emit("error", error))
      )
    )
    const close = () => {
      if (isClosed) return
      isClosed = true
      options.signal?.removeEventListener("abort", close)
      fork(Fiber.interrupt(fiber))
      process.nextTick(() => emitter.emit("close"))
    }
    if (isAborted(options.signal)) close()
    else options.signal?.addEventListener("abort", close, { once: true })
    return Object.assign(emitter, { close, ref: () => emitter, unref: () => emitter })
  }

/** Opens a directory for `opendir`. */
export const openDirectory = (entries: EntryCalls, path: unknown, options: unknown): Effect.Effect<Dir, Error> => {
  const at = toPath(path)
  const { encoding } = toOptions(options)
  return named(
    "opendir",
    Effect.map(entries.list(at), (list) => new Dir(at, list, encoding)),
    at
  )
}
