/**
 * Reads files in the container.
 *
 * A small file arrives with its stat in one answer and is kept in memory. A large file is held open by a process
 * inside, so that all its pieces belong to one file even if its name changes.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileStat } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import type { Handle, Whole } from "../../../port/Backend.ts"
import { faultOf } from "./faults.ts"
import { isFault, nameOf, type ShellRoot, succeedOrUnexpected } from "./place.ts"
import type { Reply } from "./session.ts"
import { toStat } from "./stat.ts"

/** The largest content of one answer in bytes. */
export const maxAnswerBytes = 1024 * 1024

const notAFile: Fault = { _tag: "NotAFile" }
const notFound: Fault = { _tag: "NotFound" }
const closed: Fault = { _tag: "IoError", detail: "the file has been closed" }

export const requestRead = (
  place: ShellRoot,
  call: string,
  path: FsPath,
  ...args: ReadonlyArray<string>
): Effect.Effect<Reply, Fault> => {
  const name = nameOf(path)
  if (isFault(name)) return Effect.fail(name)
  return Effect.flatMap(place.sendRequest({ call, arguments: [name, ...args], repeats: true }), (reply) =>
    reply.status === 0 ? Effect.succeed(reply) : Effect.fail(faultOf(reply))
  )
}

export const stat = (place: ShellRoot, path: FsPath): Effect.Effect<FileStat | undefined, Fault> =>
  Effect.matchEffect(requestRead(place, "look", path), {
    onFailure: (fault) => (fault._tag === "NotFound" ? Effect.succeed(undefined) : Effect.fail(fault)),
    onSuccess: ({ output }) => succeedOrUnexpected(toStat(path, output.toString("latin1")))
  })

interface Loaded {
  readonly stat: FileStat
  readonly bytes: Uint8Array | undefined
}

const loadedOf = (path: FsPath, output: Buffer, most: number): Loaded | undefined => {
  const end = output.indexOf("\n")
  const stat = toStat(path, output.toString("latin1", 0, Math.max(0, end)))
  if (stat === undefined) return undefined
  if (stat.sizeBytes > most) return { stat, bytes: undefined }
  const bytes = output.subarray(end + 1, end + 1 + stat.sizeBytes)
  return { stat: bytes.length === stat.sizeBytes ? stat : { ...stat, sizeBytes: bytes.length }, bytes }
}

const load = (place: ShellRoot, path: FsPath, most: number): Effect.Effect<Loaded, Fault> =>
  path === root
    ? Effect.fail(notAFile)
    : Effect.flatMap(requestRead(place, "load", path, String(most)), ({ output }) =>
        succeedOrUnexpected(loadedOf(path, output, most))
      )

export const whole = (place: ShellRoot, path: FsPath, maxBytes: number): Effect.Effect<Whole | undefined, Fault> =>
  Effect.map(load(place, path, Math.min(maxBytes, maxAnswerBytes)), ({ bytes, stat }) => bytes && { stat, bytes })

const readPiece = (
  place: ShellRoot,
  holder: string,
  identity: string,
  offset: number,
  count: number
): Effect.Effect<Uint8Array, Fault> =>
  Effect.flatMap(
    place.sendRequest({ call: "piece", arguments: [holder, identity, String(offset), String(count)], repeats: true }),
    (reply) =>
      reply.status === 0 && reply.output.length <= count
        ? Effect.succeed(new Uint8Array(reply.output))
        : Effect.fail(reply.status === 0 ? notFound : faultOf(reply))
  )

const openHeld = (place: ShellRoot, path: FsPath): Effect.Effect<Handle, Fault, Scope.Scope> => {
  let isClosed = false
  /**
   * The end of the last read. A read that continues there fetches a whole block ahead, because a request takes
   * milliseconds.
   */
  let next = -1
  let readAhead = { offset: 0, bytes: new Uint8Array(0) as Uint8Array }
  const held = Effect.acquireRelease(
    Effect.flatMap(requestRead(place, "pin", path), ({ output }) => {
      const found = /^(\d+) (\d+:\d+) ([^]*)$/.exec(output.toString("latin1"))
      const [, holder = "", identity = "", statText = ""] = found ?? []
      const stat = toStat(path, statText)
      return succeedOrUnexpected(stat && { holder, identity, stat })
    }),
    ({ holder }) =>
      Effect.ignore(
        Effect.suspend(() => {
          isClosed = true
          return place.sendRequest({ call: "unpin", arguments: [holder], repeats: true })
        })
      )
  )
  return Effect.map(held, ({ holder, identity, stat }) => ({
    stat,
    read: (offset, length) =>
      Effect.suspend(() => {
        if (isClosed) return Effect.fail(closed)
        // Bytes appended since the file was opened are not part of the handle's content.
        const count = Math.min(length, maxAnswerBytes, stat.sizeBytes - offset)
        if (!(count > 0)) return Effect.succeed(new Uint8Array(0))
        const isSequential = offset === next
        next = offset + count
        const at = offset - readAhead.offset
        if (at >= 0 && at + count <= readAhead.bytes.length) return Effect.succeed(readAhead.bytes.slice(at, at + count))
        const fetched = readPiece(
          place,
          holder,
          identity,
          offset,
          isSequential ? Math.min(maxAnswerBytes, stat.sizeBytes - offset) : count
        )
        return Effect.map(fetched, (bytes) => {
          readAhead = { offset, bytes }
          return bytes.slice(0, count)
        })
      })
  }))
}

const handleOf = (stat: FileStat, bytes: Uint8Array): Effect.Effect<Handle, never, Scope.Scope> => {
  let isClosed = false
  const handle: Handle = {
    stat,
    read: (offset, length) =>
      Effect.suspend(() =>
        isClosed ? Effect.fail(closed) : Effect.succeed(new Uint8Array(bytes.subarray(offset, offset + length)))
      )
  }
  return Effect.acquireRelease(Effect.succeed(handle), () => Effect.sync(() => (isClosed = true)))
}

export const open = (place: ShellRoot, path: FsPath): Effect.Effect<Handle, Fault, Scope.Scope> =>
  Effect.flatMap(load(place, path, maxAnswerBytes), ({ bytes, stat }) =>
    bytes === undefined ? openHeld(place, path) : handleOf(stat, bytes)
  )
