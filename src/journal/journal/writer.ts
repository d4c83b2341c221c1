/**
 * Appends become batches: what comes while one is being written goes with the next, in one write. An append is answered when its lines
 * are written, and on disk where that is asked for. What a failed write has left of a line is cut off before anything else is
 * written; the appends that were written whole before it are answered like any other, for who reads along may have seen them.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import type { Disk } from "./disk.ts"
import { lineOf } from "./format.ts"
import type { Point } from "./scan.ts"
import { ioError } from "./system.ts"

const operation = "Journal.append"

/** Bytes of a batch, unless its first append has more; and those that are written faster than they are handed to another thread. */
const most = { batch: 4 * 1024 * 1024, inline: 64 * 1024 } as const

/** Batches that may follow each other before everything else gets a turn. */
const turns = 32

/** JSON. */
export interface Append {
  readonly entries: ReadonlyArray<string>
  readonly at: number
  /** UTF-16 units of the entries. */
  readonly size: number
  /** They are written: at these positions, of these lengths in bytes. */
  readonly written: (first: number, lengths: ReadonlyArray<number>) => void
}

interface Waiting extends Append {
  state: "queued" | "taken" | "cancelled"
  readonly resume: (result: Effect.Effect<number, JournalError>) => void
  /** Called at the end, for who was interrupted after it had been taken. */
  ended?: () => void
}

interface Composed {
  readonly waiting: Waiting
  readonly first: number
  readonly lengths: ReadonlyArray<number>
  readonly text: string
  /** Behind it. */
  readonly point: Point
}

export interface Writer {
  /** Answers the last position. All or none, also when it is interrupted. */
  readonly append: (append: Append) => Effect.Effect<number, JournalError>
  /** Takes nothing more, and ends when all that was taken is written. */
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
  /** Half a line may stand behind the point. */
  let isDirty = false
  /** Why nothing can be written any more. */
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

  /** Throws what speaks against writing now. */
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

  /** So many bytes are in the file; fewer than all where an error is told, or the disk is full. */
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
          // Before the next batch, or by whoever opens the journal next.
        }
        failAll(failed, error ?? failure("io", "the disk did not take all of it"))
      }
      for (const composed of whole) succeed(composed)
      turn()
    }
    if (!fsync || whole.length === 0) return end()
    disk.sync(descriptor, (lost) => {
      if (lost === null) return end()
      // The system has forgotten what it could not write: what is in the file is unknown until it is read anew.
      broken = failure("io", "the disk has lost what was written; the journal must be opened anew")
      isDirty = true
      try {
        cut()
      } catch {
        // By whoever opens the journal next.
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
