/**
 * Adds spans and metrics. Duration and outcome are measured around whole calls of the service.
 *
 * Bytes are counted at the port. Bytes that a backend reads in its own searches, in threads or processes, are not counted.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/realms.ts"
import type { FileStat } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Calls, Handle, WriteHow } from "../port/Backend.ts"
import type { Explore } from "../port/explorer.ts"
import type { DirectoryHistory, LentDirectory } from "../port/history.ts"
import * as Request from "../port/Request.ts"
import type { Call } from "../port/Operation.ts"

const calls = Metric.counter("fs_algebra_calls_total", {
  description: "Calls of the service that have ended, by operation and backend",
  incremental: true
})
const errors = Metric.counter("fs_algebra_errors_total", {
  description: "Failed calls, by the tag of the error; by Interrupt or Defect if there was no error",
  incremental: true
})
const readBytes = Metric.counter("fs_algebra_read_bytes_total", {
  description: "Bytes read from files, except by the searches that a backend runs itself",
  incremental: true
})
const writtenBytes = Metric.counter("fs_algebra_written_bytes_total", {
  description: "Bytes written to files",
  incremental: true
})
const duration = Metric.histogram("fs_algebra_call_duration_ms", {
  description: "The duration of each call, or of each stream until its end, in milliseconds",
  boundaries: Metric.exponentialBoundaries({ start: 0.01, factor: 4, count: 12 })
})

const isTagged = (error: unknown): error is { readonly _tag: string } =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"

const failureTagOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return isTagged(error) ? error._tag : Cause.hasInterruptsOnly(cause) ? "Interrupt" : "Defect"
}

/**
 * Returns a function that records the end of a call. The function caches the metrics of each operation, because
 * creating a metric costs more than updating it.
 */
const makeRecorder = (backend: string) => {
  const made = new Map<string, { readonly calls: typeof calls; readonly duration: typeof duration }>()
  const metricsOf = (operation: string) => {
    let metrics = made.get(operation)
    if (metrics === undefined) {
      const attributes = { operation, backend }
      metrics = { calls: Metric.withAttributes(calls, attributes), duration: Metric.withAttributes(duration, attributes) }
      made.set(operation, metrics)
    }
    return metrics
  }
  return (operation: string, nanos: bigint, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
    const { calls, duration } = metricsOf(operation)
    const countCall = Effect.andThen(Metric.update(calls, 1), Metric.update(duration, Number(nanos) / 1e6))
    return Exit.isSuccess(exit)
      ? countCall
      : Effect.andThen(
          countCall,
          Metric.update(Metric.withAttributes(errors, { operation, backend, error: failureTagOf(exit.cause) }), 1)
        )
  }
}

const makeHooks = (backend: string): Calls => {
  const record = makeRecorder(backend)
  const span = ({ operation, path }: Call) =>
    [`Filesystem.${operation}`, { attributes: { path, backend }, captureStackTrace: false }] as const
  return {
    effect: <A, E, R>(call: Call, self: Effect.Effect<A, E, R>) =>
      Effect.clockWith((clock) => {
        const start = clock.currentTimeNanosUnsafe()
        const recorded = Effect.onExit(self, (exit) => record(call.operation, clock.currentTimeNanosUnsafe() - start, exit))
        // The cast is safe: `withSpan` provides only the span, and `self` does not require a span.
        return Effect.withSpan(recorded, ...span(call)) as Effect.Effect<A, E, R>
      }),
    stream: <A, E, R>(call: Call, self: Stream.Stream<A, E, R>) =>
      Stream.unwrap(
        Effect.clockWith((clock) => {
          const start = clock.currentTimeNanosUnsafe()
          const recorded = Stream.onExit(self, (exit) => record(call.operation, clock.currentTimeNanosUnsafe() - start, exit))
          return Effect.succeed(Stream.withSpan(recorded, ...span(call)) as Stream.Stream<A, E, R>)
        })
      )
  }
}

const nestCalls = (outer: Calls, inner: Calls | undefined): Calls =>
  inner === undefined
    ? outer
    : {
        effect: (call, self) => outer.effect(call, inner.effect(call, self)),
        stream: (call, self) => outer.stream(call, inner.stream(call, self))
      }

const tracedCalls = new WeakSet<Calls>()

export const isTraced = (port: Backend): boolean => port.calls !== undefined && tracedCalls.has(port.calls)

const isDeclined = (done: unknown): boolean => Option.isOption(done) && Option.isNone(done)

const sum = <A>(all: ReadonlyArray<A>, sizeOf: (one: A, index: number) => number | undefined): number =>
  all.reduce((total, one, index) => total + (sizeOf(one, index) ?? 0), 0)

export const around = (self: Backend): Backend => {
  const { info } = self
  const read = Metric.withAttributes(readBytes, { backend: info.name })
  const written = Metric.withAttributes(writtenBytes, { backend: info.name })
  const calls = nestCalls(makeHooks(info.name), self.calls)
  tracedCalls.add(calls)

  const counting = (handle: Handle): Handle => ({
    ...handle,
    read: (offset, length) => Effect.tap(handle.read(offset, length), (bytes) => Metric.update(read, bytes.length))
  })

  /** Counts written bytes, unless the backend declined the request. */
  const countWritten = <A, E, R, E2, R2>(
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    write: (content: Uint8Array | Stream.Stream<Uint8Array, E, R>) => Effect.Effect<A, E2, R2>
  ): Effect.Effect<A, E2, R2> =>
    Effect.suspend(() => {
      let size = isBytes(content) ? content.length : 0
      const counting = isBytes(content)
        ? content
        : Stream.mapArray(content, (chunks) => {
            for (const chunk of chunks) size += chunk.length
            return chunks
          })
      return Effect.tap(write(counting), (done) => (isDeclined(done) ? Effect.void : Metric.update(written, size)))
    })
  const write = <E, R>(
    path: FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: "create" | "replace" | "append",
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> => countWritten(content, (bytes) => self.write(path, bytes, mode, how))

  const counts = <A>(
    metric: Metric.Metric<number, unknown>,
    asked: Effect.Effect<Option.Option<A>, Fault>,
    size: (answer: A) => number
  ): Effect.Effect<Option.Option<A>, Fault> =>
    Effect.tap(asked, (answer) => (Option.isNone(answer) ? Effect.void : Metric.update(metric, size(answer.value))))
  const { explore } = self
  /** Counts the bytes of file contents that the backend passes to a search. */
  const exploreCounted: Explore = (pathOf, searches) =>
    Effect.map(explore!(pathOf, searches), (explorer) => {
      const { lend } = explorer
      if (lend === undefined) return explorer
      const bytesOf = (content: Uint8Array | string): number => (typeof content === "string" ? 0 : content.length)
      return {
        ...explorer,
        lend: (files) => Effect.tap(lend(files), (contents) => Metric.update(read, sum(contents, bytesOf)))
      }
    })
  const { history } = self
  /** Counts the bytes that threads read and write in lent directories. */
  const countBytes: LentDirectory["countBytes"] = (direction, count) =>
    Metric.update(direction === "read" ? read : written, count)
  const lend = history?._tag === "Directory" ? history.lend : undefined
  const lendCounted: DirectoryHistory["lend"] = lend && ((path) => Effect.map(lend(path), (lent) => ({ ...lent, countBytes })))
  return {
    ...self,
    calls,
    explore: explore && exploreCounted,
    history: history?._tag === "Directory" ? { ...history, lend: lendCounted } : history,
    open: (path) => Effect.map(self.open(path), counting),
    write,
    perform: Request.override(self.perform, (perform) => ({
      Read: (request) => counts(read, perform(request), (whole) => whole.bytes.length),
      ReadMany: (request) => counts(read, perform(request), (wholes) => sum(wholes, (whole) => whole?.bytes.length)),
      Write: <E, R>(request: Request.Write<E, R>) =>
        countWritten(request.bytes, (bytes) => perform<E, R>({ ...request, bytes })),
      MakeMany: (request) =>
        counts(written, perform(request), (made) =>
          sum(request.entries, ({ bytes }, index) => (made[index] === true ? bytes?.length : 0))
        ),
      CopyTree: (request) =>
        counts(
          written,
          counts(read, perform(request), ({ bytes }) => bytes),
          ({ bytes }) => bytes
        ),
      CopyFile: (request) =>
        counts(
          written,
          counts(read, perform(request), ({ sizeBytes }) => sizeBytes),
          ({ sizeBytes }) => sizeBytes
        ),
      Edit: (request) => counts(written, perform(request), (edited) => edited.bytesWritten)
    }))
  }
}
