/**
 * Writes appends in batches. Appends that arrive during a write are written together in the next write. An append is confirmed
 * when its lines are written, and with `fsync` when its lines are on disk. After a failed write, the incomplete line is cut
 * off before the next write. Appends that were written completely before the failure are confirmed, because readers may have
 * seen them.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { Fs } from "../../runtime/node.ts"
import { JournalError } from "../errors.ts"
import { composeLine, type Point } from "./format.ts"
import { ioError } from "./systemCalls.ts"

// The system calls of a journal's writer. A test can replace this object to make a call fail.

export interface Disk {
  /** Appends the bytes with one system call, and returns the number of bytes written. */
  readonly write: (descriptor: number, bytes: Uint8Array) => number
  readonly writeAsync: (descriptor: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void) => void
  readonly sync: (descriptor: number, done: (error: Error | null) => void) => void
  readonly truncate: (descriptor: number, size: number) => void
  /** Returns the size of the file. Returns `undefined` if the file was deleted. */
  readonly size: (descriptor: number) => number | undefined
}

export const realDisk: Disk = {
  write: (descriptor, bytes) => Fs.writeSync(descriptor, bytes),
  writeAsync: (descriptor, bytes, done) => Fs.write(descriptor, bytes, 0, bytes.length, null, done),
  sync: (descriptor, done) => Fs.fsync(descriptor, done),
  truncate: (descriptor, size) => Fs.ftruncateSync(descriptor, size),
  size: (descriptor) => {
    const { nlink, size } = Fs.fstatSync(descriptor)
    return nlink === 0 ? undefined : size
  }
}

const operation = "Journal.append"

/**
 * The write limits. `batch`: the largest batch in UTF-16 units; one append may be larger. `inline`: the largest size, in
 * bytes, at which a synchronous write is faster than the thread pool.
 */
const writeLimits = { batch: 4 * 1024 * 1024, inline: 64 * 1024 } as const

const batchesBeforeYield = 32

interface Append {
  readonly entries: ReadonlyArray<string>
  readonly at: number
  /** The total length of the entries in UTF-16 units. */
  readonly size: number
  /** Runs when the entries are written. `first` is the first position, and `lengths` are the lengths of the lines in bytes. */
  readonly written: (first: number, lengths: ReadonlyArray<number>) => void
}

interface QueuedAppend extends Append {
  state: "queued" | "taken" | "cancelled"
  readonly resume: (result: Effect.Effect<number, JournalError>) => void
  /** Runs at the end of an append whose caller was interrupted during the write. */
  onEnd?: () => void
}

interface ComposedAppend {
  readonly queued: QueuedAppend
  readonly first: number
  readonly lengths: ReadonlyArray<number>
  readonly text: string
  readonly point: Point
}

interface Writer {
  /** Appends all entries or no entry, even if the call is interrupted. Returns the last position. */
  readonly append: (append: Append) => Effect.Effect<number, JournalError>
  readonly close: Effect.Effect<void>
}

interface WriterOptions {
  readonly descriptor: number
  readonly from: Point
  readonly fsync: boolean
  readonly disk: Disk
}

const failure = (reason: JournalError["reason"], detail: string): JournalError =>
  new JournalError({ operation, reason, detail })

const compose = (queued: QueuedAppend, from: Point): ComposedAppend => {
  const lengths: Array<number> = []
  let [text, chain, position] = ["", from.chain, from.position]
  for (const [index, entry] of queued.entries.entries()) {
    const line = composeLine(++position, queued.at, queued.entries.length - 1 - index, entry, chain)
    lengths.push(Buffer.byteLength(line.text))
    text += line.text
    chain = line.chain
  }
  const offset = lengths.reduce((sum, length) => sum + length, from.offset)
  return { queued, first: from.position + 1, lengths, text, point: { position, offset, chain } }
}

export const make = ({ descriptor, disk, from, fsync }: WriterOptions): Writer => {
  let point = from
  let queue: Array<QueuedAppend> = []
  let isBusy = false
  let batchCount = 0
  /** True if an incomplete line may follow the last confirmed entry in the file. */
  let isDirty = false
  /** The error that makes all later writes fail. */
  let permanentError: JournalError | undefined
  let isClosed = false
  let onDrained: (() => void) | undefined

  const answer = (queued: QueuedAppend, result: Effect.Effect<number, JournalError>): void => {
    queued.resume(result)
    queued.onEnd?.()
  }
  const succeed = ({ first, lengths, point, queued }: ComposedAppend): void => {
    queued.written(first, lengths)
    answer(queued, Effect.succeed(point.position))
  }

  const truncateToPoint = (): void => {
    disk.truncate(descriptor, point.offset)
    isDirty = false
  }

  /** Cuts off an incomplete line. Throws if the file cannot be written now. */
  const checkWritable = (): void => {
    if (permanentError !== undefined) throw permanentError
    if (isDirty) truncateToPoint()
    const size = disk.size(descriptor)
    if (size === undefined) throw failure("io", "the journal file was removed")
    if (size !== point.offset) throw failure("corrupt", "another program has changed the journal file")
  }

  const take = (): Array<QueuedAppend> => {
    let size = 0
    const taken: Array<QueuedAppend> = []
    let count = 0
    for (const queued of queue) {
      if (queued.state === "queued") {
        if (taken.length > 0 && size + queued.size > writeLimits.batch) break
        size += queued.size
        queued.state = "taken"
        taken.push(queued)
      }
      count++
    }
    queue = count === queue.length ? [] : queue.slice(count)
    return taken
  }

  const scheduleFlush = (): void => {
    if (queue.length > 0) {
      isBusy = true
      if (++batchCount % batchesBeforeYield === 0) setImmediate(flush)
      else queueMicrotask(flush)
      return
    }
    isBusy = false
    onDrained?.()
  }

  const errorOf = (error: unknown): JournalError => (error instanceof JournalError ? error : ioError(operation, error))

  const failAll = (batch: ReadonlyArray<QueuedAppend>, error: JournalError): void => {
    for (const queued of batch) answer(queued, Effect.fail(error))
  }

  /**
   * Confirms the appends whose bytes were written, and fails all other appends of the batch. If the sync of the bytes fails,
   * fails the whole batch. `error` is the error of the write. Without an error, an incomplete write means that the disk is
   * full.
   */
  const confirmWritten = (batch: ReadonlyArray<ComposedAppend>, written: number, error: JournalError | undefined): void => {
    const before = point
    const completeAppends = batch.filter((composed) => composed.point.offset - before.offset <= written)
    const failed = batch.slice(completeAppends.length).map(({ queued }) => queued)
    const confirmedPoint = completeAppends.at(-1)?.point ?? before
    const end = (): void => {
      point = confirmedPoint
      if (failed.length > 0) {
        isDirty = true
        try {
          truncateToPoint()
        } catch {
          // The next batch, or the next process that opens the journal, cuts off the incomplete line.
        }
        failAll(failed, error ?? failure("io", "the disk accepted only a part of the bytes"))
      }
      for (const composed of completeAppends) succeed(composed)
      scheduleFlush()
    }
    if (!fsync || completeAppends.length === 0) return end()
    disk.sync(descriptor, (syncError) => {
      if (syncError === null) return end()
      // After a failed sync, the system may have dropped the data. So the content of the file is unknown until the file is
      // read again.
      permanentError = failure("io", "a sync of the file failed; open the journal again")
      isDirty = true
      try {
        truncateToPoint()
      } catch {
        // The next process that opens the journal cuts off the incomplete line.
      }
      failAll(
        batch.map(({ queued }) => queued),
        errorOf(syncError)
      )
      scheduleFlush()
    })
  }

  const write = (batch: ReadonlyArray<ComposedAppend>): void => {
    const bytes = Buffer.from(batch.length === 1 ? batch[0]!.text : batch.map(({ text }) => text).join(""))
    if (bytes.length > writeLimits.inline) {
      disk.writeAsync(descriptor, bytes, (error, written) =>
        confirmWritten(batch, error === null ? written : 0, error === null ? undefined : errorOf(error))
      )
      return
    }
    let written = 0
    let error: JournalError | undefined
    try {
      written = disk.write(descriptor, bytes)
    } catch (thrown) {
      error = errorOf(thrown)
    }
    confirmWritten(batch, written, error)
  }

  const flush = (): void => {
    const taken = take()
    if (taken.length === 0) return scheduleFlush()
    const batch: Array<ComposedAppend> = []
    try {
      checkWritable()
      for (const queued of taken) batch.push(compose(queued, batch.at(-1)?.point ?? point))
    } catch (thrown) {
      failAll(taken, errorOf(thrown))
      return scheduleFlush()
    }
    write(batch)
  }

  const cancel = (queued: QueuedAppend): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (queued.state === "taken") {
        return Effect.callback<void>((resume) => {
          queued.onEnd = () => resume(Effect.void)
        })
      }
      queued.state = "cancelled"
      return Effect.void
    })

  return {
    append: (append) =>
      Effect.callback<number, JournalError>((resume) => {
        if (isClosed) return resume(Effect.fail(failure("closed", "the journal was closed")))
        const queued: QueuedAppend = { ...append, state: "queued", resume }
        queue.push(queued)
        if (!isBusy) scheduleFlush()
        return cancel(queued)
      }),
    close: Effect.callback<void>((resume) => {
      isClosed = true
      const end = (): void => resume(Effect.void)
      if (isBusy) onDrained = end
      else end()
    })
  }
}
