/**
 * Publishes files atomically in the container.
 *
 * Content is written to a hidden name in the same directory, and one step gives the file its final name. A small file
 * takes one request. A large file or a stream is sent in blocks first.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../../model/bytes.ts"
import type { FileStat } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, join, parent, root } from "../../../model/FsPath.ts"
import type { Backend, Commit } from "../../../port/Backend.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { runCommit, type Mode } from "../atomicReplace.ts"
import { faultOf } from "./faults.ts"
import { isFault, nameOf, type ShellRoot, succeedOrUnexpected } from "./place.ts"
import { maxAnswerBytes } from "./reading.ts"
import type { Reply } from "./session.ts"
import { toStat } from "./stat.ts"

const withTemporary = <A, E, R>(path: FsPath, use: (temporary: FsPath) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  TemporaryNames.withName((name) => use(join(parent(path), name)))

export const changed = (
  place: ShellRoot,
  call: string,
  paths: ReadonlyArray<FsPath>,
  args: ReadonlyArray<string> = [],
  input?: Uint8Array
): Effect.Effect<Reply, Fault> =>
  Effect.suspend(() => {
    const names: Array<Uint8Array> = []
    for (const path of paths) {
      const name = nameOf(path)
      if (isFault(name)) return Effect.fail(name)
      names.push(name)
    }
    return Effect.flatMap(place.sendRequest({ call, arguments: [...names, ...args], input, repeats: false }), (reply) =>
      reply.status === 0 ? Effect.succeed(reply) : Effect.fail(faultOf(reply))
    )
  })

const statOf = (path: FsPath, { output }: Reply): Effect.Effect<FileStat, Fault> =>
  succeedOrUnexpected(toStat(path, output.toString("latin1")))

const putSmall = (place: ShellRoot, path: FsPath, bytes: Uint8Array, mode: Mode): Effect.Effect<FileStat, Fault> =>
  Effect.flatMap(
    mode === "append"
      ? changed(place, "append", [path], [], bytes)
      : withTemporary(path, (temporary) => changed(place, "put", [path, temporary], [mode, String(bytes.length)], bytes)),
    (reply) => statOf(path, reply)
  )

const sendBlocks = <E, R>(
  place: ShellRoot,
  temporary: FsPath,
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>
): Effect.Effect<number, Fault | E, R> => {
  const send = (bytes: Uint8Array) => changed(place, "more", [temporary], [], bytes)
  let sent = 0
  let pendingChunks: Array<Uint8Array> = []
  let size = 0

  const flush = Effect.suspend(() => {
    const bytes = Buffer.concat(pendingChunks)
    pendingChunks = []
    size = 0
    return bytes.length === 0 ? Effect.void : Effect.asVoid(send(bytes))
  })
  const take = (bytes: Uint8Array): Effect.Effect<void, Fault> => {
    const piece = bytes.subarray(0, maxAnswerBytes - size)
    pendingChunks.push(piece)
    size += piece.length
    sent += piece.length
    if (size < maxAnswerBytes) return Effect.void
    return Effect.andThen(
      flush,
      Effect.suspend(() => take(bytes.subarray(piece.length)))
    )
  }
  const taken = isBytes(content)
    ? take(content)
    : Stream.runForEachArray(content, (chunks) => Effect.forEach(chunks, take, { discard: true }))
  return Effect.map(Effect.andThen(taken, flush), () => sent)
}

const putLarge = <E, R>(
  place: ShellRoot,
  path: FsPath,
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
  mode: Mode,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  withTemporary(path, (temporary) => {
    let isPublished = false
    return Effect.acquireUseRelease(
      // Fails early if the publication would fail, so that a long stream is not read in vain.
      changed(place, "stage", [path, temporary], [mode]),
      () =>
        Effect.flatMap(sendBlocks(place, temporary, content), (size) =>
          runCommit(
            commit,
            Effect.flatMap(changed(place, "publish", [path, temporary], [mode, String(size)]), (reply) => {
              isPublished = true
              return statOf(path, reply)
            })
          )
        ),
      () => (isPublished ? Effect.void : Effect.ignore(changed(place, "discard", [temporary])))
    )
  })

export const write =
  (place: ShellRoot): Backend["write"] =>
  (path, content, mode, how) =>
    path === root
      ? Effect.fail<Fault>({ _tag: mode === "create" ? "AlreadyExists" : "NotAFile" })
      : isBytes(content) && content.length <= maxAnswerBytes
        ? runCommit(how?.commit, putSmall(place, path, content, mode))
        : putLarge(place, path, content, mode, how?.commit)
