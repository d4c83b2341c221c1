/**
 * Writes appends in batches: the appends that arrive during a write are written together in the next one. An append is confirmed when its
 * lines are written, and with `fsync` when they are on disk. A partial line of a failed write is cut off before the next write. Appends
 * that were completely written before the failure are confirmed, because readers may have seen them.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import type { Disk } from "./disk.ts"
import { lineOf } from "./format.ts"
import type { Point } from "./scan.ts"
import { ioError } from "./system.ts"

const operation = "Journal.append"

/**
 * The largest batch in bytes, unless its first append is larger. `inline` is the size up to which a synchronous write is faster than the
 * thread pool.
 */
const most = { batch: 4 * 1024 * 1024, inline: 64 * 1024 } as const

const turns = 32

export interface Append {
  readonly entries: ReadonlyArray<string>
  readonly at: number
  /** The sum of the entries' lengths in UTF-16 units. */
  readonly size: number
  /** Called when the entries are written, with the first position and the length of each line in bytes. */
  readonly written: (first: number, lengths: ReadonlyArray<number>) => void
}

interface Waiting extends Append {
  state: "queued" | "taken" | "cancelled"
  readonly resume: (result: Effect.Effect<number, JournalError>) => void
  /** Called at the end of an append whose caller was interrupted during the write. */
  ended?: () => void
}

interface Composed {
  readonly waiting: Waiting
  readonly first: number
  readonly lengths: ReadonlyArray<number>
  readonly text: string
  readonly point: Point
}

export interface Writer {
  /** Appends all entries or none, even if interrupted, and returns the last position. */
  readonly append: (append: Append) => Effect.Effect<number, JournalError>
  readonly close: Effect.Effect<void>
}

export interface WriterOptions {
  readonly descriptor: number
  readonly from: Point
  readonly fsync: boolean
  readonly disk: Disk
}

const failure = (reason: JournalError["reason"], detail: string): JournalError =>
  new JournalError({ operation, reason, detail })

const compose = (waiting: Waiting, from: Point): Composed => {
  const lengths: Array<number> = []
  let [text, chain, position] = ["", from.chain, from.position]
  for (const [index, entry] of waiting.entries.entries()) {
    const line = lineOf(++position, waiting.at, waiting.entries.length - 1 - index, entry, chain)
    lengths.push(Buffer.byteLength(line.text))
    text += line.text
    chain = line.chain
  }
  const offset = lengths.reduce((sum, length) => sum + length, from.offset)
  return { waiting, first: from.position + 1, lengths, text, point: { position, offset, chain } }
}

export const make = ({ descriptor, disk, from, fsync }: WriterOptions): Writer => {
  let point = from
  let queue: Array<Waiting> = []
  let isBusy = false
  let batches = 0
  /** True if a partial line may follow the point. */
  let isDirty = false
  /** The error after which nothing can be written any more. */
  let broken: JournalError | undefined
  let isClosed = false
  let drained: (() => void) | undefined

  const answer = (waiting: Waiting, result: Effect.Effect<number, JournalError>): void => {
    waiting.resume(result)
    waiting.ended?.()
  }
  const succeed = ({ first, lengths, point, waiting }: Composed): void => {
    waiting.written(first, lengths)
    answer(waiting, Effect.succeed(point.position))
  }

  const cut = (): void => {
    disk.truncate(descriptor, point.offset)
    isDirty = false
  }

  /** Throws if the file cannot be written now. */
  const prepare = (): void => {
    if (broken !== undefined) throw broken
    if (isDirty) cut()
    const size = disk.size(descriptor)
    if (size === undefined) throw failure("io", "its file was removed")
    if (size !== point.offset) throw failure("corrupt", "somebody else has changed its file")
  }

  const take = (): Array<Waiting> => {
    let size = 0
    const taken: Array<Waiting> = []
    let count = 0
    for (const waiting of queue) {
      if (waiting.state === "queued") {
        if (taken.length > 0 && size + waiting.size > most.batch) break
        size += waiting.size
        waiting.state = "taken"
        taken.push(waiting)
      }
      count++
    }
    queue = count === queue.length ? [] : queue.slice(count)
    return taken
  }

  const turn = (): void => {
    if (queue.length > 0) {
      isBusy = true
      if (++batches % turns === 0) setImmediate(flush)
      else queueMicrotask(flush)
      return
    }
    isBusy = false
    drained?.()
  }

  const errorOf = (error: unknown): JournalError => (error instanceof JournalError ? error : ioError(operation, error))

  const failAll = (batch: ReadonlyArray<Waiting>, error: JournalError): void => {
    for (const waiting of batch) answer(waiting, Effect.fail(error))
  }

  /**
   * Confirms the appends within the written bytes, and fails the others. `error` is the error of the write; without one, an incomplete
   * write means a full disk.
   */
  const settle = (batch: ReadonlyArray<Composed>, written: number, error: JournalError | undefined): void => {
    const before = point
    const whole = batch.filter((composed) => composed.point.offset - before.offset <= written)
    const failed = batch.slice(whole.length).map(({ waiting }) => waiting)
    const reached = whole.at(-1)?.point ?? before
    const end = (): void => {
      point = reached
      if (failed.length > 0) {
        isDirty = true
        try {
          cut()
        } catch {
          // The next batch cuts again, or the next process that opens the journal.
        }
        failAll(failed, error ?? failure("io", "the disk did not take all of it"))
      }
      for (const composed of whole) succeed(composed)
      turn()
    }
    if (!fsync || whole.length === 0) return end()
    disk.sync(descriptor, (lost) => {
      if (lost === null) return end()
      // After a failed sync the system may have dropped the data. The content of the file is unknown until it is read again.
      broken = failure("io", "the disk has lost what was written; the journal must be opened anew")
      isDirty = true
      try {
        cut()
      } catch {
        // The next process that opens the journal cuts it.
      }
      failAll(
        batch.map(({ waiting }) => waiting),
        errorOf(lost)
      )
      turn()
    })
  }

  const write = (batch: ReadonlyArray<Composed>): void => {
    const bytes = Buffer.from(batch.length === 1 ? batch[0]!.text : batch.map(({ text }) => text).join(""))
    if (bytes.length > most.inline) {
      disk.writeLater(descriptor, bytes, (error, written) =>
        settle(batch, error === null ? written : 0, error === null ? undefined : errorOf(error))
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
    settle(batch, written, error)
  }

  const flush = (): void => {
    const taken = take()
    if (taken.length === 0) return turn()
    const batch: Array<Composed> = []
    try {
      prepare()
      for (const waiting of taken) batch.push(compose(waiting, batch.at(-1)?.point ?? point))
    } catch (thrown) {
      failAll(taken, errorOf(thrown))
      return turn()
    }
    write(batch)
  }

  const cancel = (waiting: Waiting): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (waiting.state === "taken") {
        return Effect.callback<void>((resume) => {
          waiting.ended = () => resume(Effect.void)
        })
      }
      waiting.state = "cancelled"
      return Effect.void
    })

  return {
    append: (append) =>
      Effect.callback<number, JournalError>((resume) => {
        if (isClosed) return resume(Effect.fail(failure("closed", "the journal was closed")))
        const waiting: Waiting = { ...append, state: "queued", resume }
        queue.push(waiting)
        if (!isBusy) turn()
        return cancel(waiting)
      }),
    close: Effect.callback<void>((resume) => {
      isClosed = true
      const end = (): void => resume(Effect.void)
      if (isBusy) drained = end
      else end()
    })
  }
}
