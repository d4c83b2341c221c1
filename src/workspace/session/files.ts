import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { attempt, awaitCall, faultOf, open, type Opened, writeFully } from "../../history/zip/hostFile.ts"
import { type Fault, promote } from "../../model/FsError.ts"
import { SessionError } from "../../model/sessionError.ts"
import { sync, syncDirectoryNow } from "../../runtime/host.ts"
import { createHash, Fs } from "../../runtime/node.ts"
import type { WithFilesystem } from "../Session.ts"

export type FilesystemSource<E> = Algebra | WithFilesystem<E>

export const algebraOf = <E>(source: FilesystemSource<E> | undefined): Effect.Effect<Algebra | undefined, E> => {
  if (source === undefined) return Effect.succeed(undefined)
  return "port" in source ? Effect.succeed(source) : (source.filesystem ?? Effect.succeed(undefined))
}

const chunkBytes = 1024 * 1024

const newlineByte = 10

export const toError =
  (operation: string, path: string) =>
  (fault: Fault): SessionError =>
    new SessionError({ operation, reason: "io", detail: promote(fault, operation, path).message })

/**
 * Passes the content of a file to `use` in pieces. Each piece is valid only until the next piece is read. `size` is the size of
 * the whole file in bytes.
 */
const forEachPieceOf = <E, R>(
  { descriptor, size }: Opened,
  use: (bytes: Uint8Array, size: number) => Effect.Effect<void, E, R>
): Effect.Effect<void, E | Fault, R> =>
  Effect.suspend(() => {
    const buffer = Buffer.allocUnsafeSlow(chunkBytes)
    const readFrom = (position: number): Effect.Effect<void, E | Fault, R> =>
      Effect.flatMap(
        awaitCall<number>((done) => Fs.read(descriptor, buffer, 0, chunkBytes, position, done)),
        (length) =>
          length === 0 ? Effect.void : Effect.flatMap(use(buffer.subarray(0, length), size), () => readFrom(position + length))
      )
    return readFrom(0)
  })

const forEachPiece = <E, R>(
  path: string,
  use: (bytes: Uint8Array, size: number) => Effect.Effect<void, E, R>
): Effect.Effect<void, E | Fault, R> => Effect.scoped(Effect.flatMap(open(path), (opened) => forEachPieceOf(opened, use)))

export const hashOfOpened = (opened: Opened): Effect.Effect<string, Fault> =>
  Effect.suspend(() => {
    const hash = createHash("sha256")
    return Effect.map(
      forEachPieceOf(opened, (bytes) => Effect.sync(() => void hash.update(bytes))),
      () => hash.digest("hex")
    )
  })

export const hashOf = (path: string): Effect.Effect<string, Fault> => Effect.scoped(Effect.flatMap(open(path), hashOfOpened))

export interface Overlong {
  readonly _tag: "Overlong"
  readonly line: number
}

export const readWhole = (path: string, maxBytes: number): Effect.Effect<Uint8Array, Fault | Overlong> =>
  Effect.suspend(() => {
    const parts: Array<Uint8Array> = []
    let length = 0
    const add = (bytes: Uint8Array, size: number): Effect.Effect<void, Overlong> => {
      parts.push(Buffer.from(bytes))
      length += bytes.length
      return Math.max(length, size) > maxBytes ? Effect.fail({ _tag: "Overlong", line: 1 }) : Effect.void
    }
    return Effect.map(forEachPiece(path, add), () => Buffer.concat(parts))
  })

/**
 * Passes each line without its newline to `use`. Lines are numbered from 1. A last line without a newline counts if it is not
 * empty.
 */
export const forEachLine = <E>(
  path: string,
  maxBytes: number,
  use: (line: Uint8Array, number: number) => Effect.Effect<void, E>
): Effect.Effect<void, E | Fault | Overlong> =>
  Effect.suspend(() => {
    let parts: Array<Uint8Array> = []
    let length = 0
    let number = 1
    const add = (bytes: Uint8Array): boolean => {
      if (bytes.length > 0) parts.push(Buffer.from(bytes))
      length += bytes.length
      return length <= maxBytes
    }
    const finish = (): Effect.Effect<void, E> => {
      const line = Buffer.concat(parts)
      parts = []
      length = 0
      return use(line, number++)
    }
    const failOverlong = (): Effect.Effect<never, Overlong> => Effect.fail({ _tag: "Overlong", line: number })
    const split = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<void, E | Overlong> {
      let start = 0
      for (let end = bytes.indexOf(newlineByte); end !== -1; end = bytes.indexOf(newlineByte, start)) {
        if (!add(bytes.subarray(start, end))) return yield* failOverlong()
        yield* finish()
        start = end + 1
      }
      if (!add(bytes.subarray(start))) return yield* failOverlong()
    })
    return Effect.flatMap(forEachPiece(path, split), () => (length > 0 ? finish() : Effect.void))
  })

interface FirstLine {
  readonly _tag: "FirstLine"
  readonly line: Uint8Array
}

/** Returns the first line of a file without its newline. Returns an empty array for an empty file. */
export const readFirstLine = (path: string, maxBytes: number): Effect.Effect<Uint8Array, Fault | Overlong> => {
  const reading = forEachLine(path, maxBytes, (line) => Effect.fail<FirstLine>({ _tag: "FirstLine", line }))
  return Effect.matchEffect(reading, {
    onSuccess: () => Effect.succeed(new Uint8Array(0)),
    onFailure: (problem): Effect.Effect<Uint8Array, Fault | Overlong> =>
      problem._tag === "FirstLine" ? Effect.succeed(problem.line as Uint8Array) : Effect.fail(problem as Fault | Overlong)
  })
}

/** Creates a file, calls `write` with a function that appends bytes, and then flushes the file. */
export const writeNew = <E, R>(
  path: string,
  write: (append: (bytes: Uint8Array) => Effect.Effect<void, Fault>) => Effect.Effect<void, E, R>
): Effect.Effect<void, E | Fault, R> =>
  Effect.acquireUseRelease(
    attempt(() => Fs.openSync(path, "wx")),
    (descriptor) =>
      Effect.andThen(
        write((bytes) => writeFully(descriptor, bytes)),
        sync(descriptor, faultOf)
      ),
    (descriptor) => Effect.sync(() => Fs.closeSync(descriptor))
  )

/**
 * Flushes a directory, so that the names in it survive a loss of power. Ignores failures, because some systems cannot flush
 * directories.
 */
export const flushDirectory = (directory: string): void => {
  try {
    syncDirectoryNow(directory)
  } catch {
    // The files themselves are flushed.
  }
}
