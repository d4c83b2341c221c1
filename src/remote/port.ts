/** The port of a remote filesystem: each primitive operation and each whole change is a request to the server. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { FileStat } from "../model/Entry.ts"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import { ioError } from "../model/Fault.ts"
import type { Fault, FsError } from "../model/FsError.ts"
import { fold, type FsPath, isWithin, parse, segments } from "../model/FsPath.ts"
import { concatenate } from "../runtime/buffer.ts"
import { isBytes } from "../model/realms.ts"
import { makeRelativeTargets } from "../port/absoluteLinks.ts"
import type { Backend, Child, Rules, Whole } from "../port/Backend.ts"
import { readAhead } from "../port/readAhead.ts"
import * as Request from "../port/Request.ts"
import { BringingBack, TakingBack } from "../port/Rules.ts"
import * as Locks from "../runtime/locks.ts"
import type { Connection } from "./connection.ts"
import { collectBounded, isSegment } from "./parts.ts"
import { type Info, maxContentBytes, type WireStat } from "./protocol.ts"

const statOf = (stat: WireStat, path: FsPath): FileStat => ({ path, ...stat })

type WireWhole = { readonly stat: WireStat; readonly bytes: Uint8Array } | null

/** Returns a file that the server has sent. A file with more bytes than asked for counts as not sent. */
const wholeOf = (whole: WireWhole, path: FsPath, maxBytes: number): Whole | undefined =>
  whole === null || whole.bytes.length > maxBytes ? undefined : { stat: statOf(whole.stat, path), bytes: whole.bytes }

const ifMatchOf = ({ ifMatch }: { readonly ifMatch?: string | null | undefined }) => (ifMatch === undefined ? {} : { ifMatch })

const rulesOf = (info: Info): Rules => ({
  permits: info.mayWrite && info.mayDelete ? undefined : (action) => (action === "write" ? info.mayWrite : info.mayDelete),
  policy: info.policy,
  symlinks: info.symlinks,
  preservePermissions: info.preservePermissions,
  decidesModeOfCopies: info.decidesModeOfCopies
})

/**
 * Returns functions that send the chunks of a stream in full messages, because each message is a round trip. A chunk that waits
 * for others is copied: its owner may change it when the stream continues.
 */
const makePieces = <E>(send: (bytes: Uint8Array) => Effect.Effect<void, E>) => {
  let piece: Uint8Array | undefined
  let used = 0
  /** The size of the next piece. The size grows with the stream, because many short or slow streams may be open. */
  let capacity = 0
  const reserve = (length: number): Uint8Array => {
    const size = used + length
    if (piece !== undefined && size <= piece.length) return piece
    if (size > capacity) capacity = Math.min(maxContentBytes, Math.max(size, 2 * capacity))
    const larger = new Uint8Array(capacity)
    if (piece !== undefined) larger.set(piece.subarray(0, used))
    return (piece = larger)
  }
  const flush = Effect.suspend(() => {
    if (piece === undefined || used === 0) return Effect.void
    const bytes = piece.subarray(0, used)
    // The receiver may keep the bytes, so the next message has its own.
    piece = undefined
    used = 0
    return send(bytes)
  })
  const add = Effect.fnUntraced(function* (chunk: Uint8Array) {
    for (let at = 0; at < chunk.length;) {
      const isWhole = used === 0 && chunk.length - at >= maxContentBytes
      const part = chunk.subarray(at, at + maxContentBytes - used)
      at += part.length
      if (isWhole) {
        yield* send(part)
        continue
      }
      reserve(part.length).set(part, used)
      used += part.length
      if (used === maxContentBytes) yield* flush
    }
  })
  return { add, flush }
}

/** The maximum number of bytes that a stream reads ahead. */
const maxReadAheadBytes = 4 * 1024 * 1024

/** The maximum number of entries of one directory that a client accepts. */
const maxListedEntries = 2_000_000

const tooManyComponents = ioError("the server described more entries than the path has")

/** Refuses names that lead out of the directory, because the client may use the names on another filesystem, as in a copy. */
const checkChildren = (children: ReadonlyArray<Child>): Effect.Effect<ReadonlyArray<Child>, Fault> => {
  const wrong = children.find(
    ({ addressable, key, name }) =>
      !isSegment(name) || (key !== undefined && !isSegment(key)) || (addressable && parse(name) !== name)
  )
  return wrong === undefined
    ? Effect.succeed(children)
    : Effect.fail(ioError(`the server listed the name ${JSON.stringify(wrong.name)}, which no entry can have`))
}

export const make = (connection: Connection, info: Info): Backend => {
  const { ask, change, hold, nextId, once, send, stream } = connection

  /** Sends a change with flags from the calling fiber, which some backends need. */
  const changeAt = <A>(
    path: FsPath,
    request: (head: { readonly id: string; readonly path: FsPath }) => Effect.Effect<A, FsError | RpcClientError>
  ): Effect.Effect<A, Fault> =>
    Effect.withFiber((fiber) => {
      const flags = {
        ...(fiber.getRef(TakingBack) && { takingBack: true }),
        ...(fiber.getRef(BringingBack) && { bringingBack: true })
      }
      return change(path, (id) => request({ id, path, ...flags }))
    })

  const stat: Backend["stat"] = (path) =>
    Effect.map(ask(path, send("port.stat", { path })), (stat) => (stat === null ? undefined : statOf(stat, path)))

  const readAt = (path: FsPath, handle: string, offset: number, length: number): Effect.Effect<Uint8Array, Fault> => {
    const piece = (at: number, left: number): Effect.Effect<Uint8Array, Fault> => {
      const wanted = Math.min(left, maxContentBytes)
      const received = once(path, send("port.readAt", { handle, offset: at, length: wanted }))
      return Effect.map(received, (bytes) => (bytes.length > wanted ? bytes.subarray(0, wanted) : bytes))
    }
    if (length <= 0) return Effect.succeed(new Uint8Array(0))
    if (length <= maxContentBytes) return piece(offset, length)
    return Effect.gen(function* () {
      const pieces: Array<Uint8Array> = []
      for (let at = offset; at < offset + length; at += maxContentBytes) {
        const bytes = yield* piece(at, offset + length - at)
        pieces.push(bytes)
        if (bytes.length < maxContentBytes) break
      }
      return concatenate(pieces)
    })
  }

  const open: Backend["open"] = (path) =>
    Effect.suspend(() => {
      const handle = nextId()
      return Effect.flatMap(hold(path, send("port.open", { path, handle })), ({ stat }) =>
        readAhead(
          { stat: statOf(stat, path), read: (offset, length) => readAt(path, handle, offset, length) },
          maxReadAheadBytes
        )
      )
    })

  const writeStaged = <E, R>(
    path: FsPath,
    bytes: Stream.Stream<Uint8Array, E, R>,
    mode: "create" | "replace" | "append",
    how: Parameters<Backend["write"]>[3]
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.scoped(
      Effect.gen(function* () {
        const upload = nextId()
        const bringingBack = yield* BringingBack
        yield* Effect.acquireRelease(Effect.void, () =>
          Effect.ignore(Effect.timeout(once(path, send("port.cancel", { id: upload })), "5 seconds"))
        )
        yield* hold(path, send("port.begin", { upload, path, mode, ...(bringingBack && { bringingBack }) }))
        let index = 0
        const pieces = makePieces((bytes) => once(path, send("port.chunk", { upload, index: index++, bytes })))
        yield* Stream.runForEach(bytes, pieces.add)
        yield* pieces.flush
        yield* once(path, send("port.end", { upload }))
        const publish = change(path, (id) => send("port.publish", { id, upload }))
        const commit = how?.commit
        return statOf(yield* commit === undefined ? publish : commit(publish), path)
      })
    )

  const write: Backend["write"] = (path, bytes, mode, how) => {
    if (!isBytes(bytes)) return writeStaged(path, bytes, mode, how)
    if (bytes.length > maxContentBytes) return writeStaged(path, Stream.succeed(bytes), mode, how)
    const publish = Effect.map(
      changeAt(path, (head) => send("port.write", { ...head, mode, bytes })),
      (stat) => statOf(stat, path)
    )
    return how?.commit === undefined ? publish : how.commit(publish)
  }

  const list: Backend["list"] = (path) =>
    Effect.flatMap(ask(path, send("port.list", { path })), (children) =>
      children !== null
        ? checkChildren(children)
        : Effect.flatMap(
            collectBounded(stream(path, send("port.listAll", { path })), (part) => part.length, maxListedEntries),
            (parts) => checkChildren(parts.flat())
          )
    )

  const locks = Locks.make({ caseSensitive: info.caseSensitive })

  const handlers: Request.Handlers = {
    Stat: ({ path }) => Effect.map(stat(path), Option.some),
    Read: ({ maxBytes, path }) =>
      Effect.map(ask(path, send("port.read", { path, maxBytes })), (whole) =>
        Option.fromUndefinedOr(wholeOf(whole, path, maxBytes))
      ),
    ReadMany: ({ maxBytes, paths }) =>
      Effect.map(ask("", send("port.readMany", { paths, maxBytes })), (wholes) =>
        Option.some(paths.map((path, index) => wholeOf(wholes[index] ?? null, path, maxBytes)))
      ),
    RemoveTree: ({ path }) =>
      Effect.map(
        changeAt(path, (head) => send("port.removeTree", head)),
        Option.fromNullOr
      ),
    CopyTree: info.copiesTrees
      ? ({ path, to }) =>
          Effect.map(
            changeAt(path, (head) => send("port.copyTree", { ...head, to })),
            Option.fromNullOr
          )
      : undefined,
    Look: ({ path }) =>
      Effect.flatMap(ask(path, send("port.look", { path })), (seen) => {
        let at = ""
        const names = segments(path)
        if (seen.length > names.length + 1) return Effect.fail(tooManyComponents)
        return Effect.succeed(
          Option.some(
            seen.map(({ stat, target }, index) => {
              if (index > 0) at = at === "" ? names[0]! : `${at}/${names[index - 1]!}`
              return { stat: statOf(stat, (index === 0 ? "." : at) as FsPath), ...(target !== undefined && { target }) }
            })
          )
        )
      }),
    Write: ({ bytes, path, plan }) =>
      !isBytes(bytes) || bytes.length > maxContentBytes
        ? Request.declined
        : Effect.map(
            changeAt(path, (head) =>
              send("port.writeWhole", {
                ...head,
                bytes,
                mode: plan.mode,
                createParents: plan.createParents,
                version: plan.version,
                ...ifMatchOf(plan)
              })
            ),
            Option.fromNullOr
          ),
    Edit: ({ edits, path, plan }) =>
      Effect.map(
        changeAt(path, (head) =>
          send("port.editWhole", {
            ...head,
            edits: edits.map(({ match, newText, oldText }) => ({ oldText, newText, ...(match !== undefined && { match }) })),
            version: plan.version,
            maxFileSize: plan.limits.maxFileSize,
            maxReadBytes: plan.limits.maxReadBytes,
            ...ifMatchOf(plan)
          })
        ),
        Option.fromNullOr
      ),
    Remove: ({ path, plan }) =>
      Effect.map(
        changeAt(path, (head) => send("port.removeWhole", { ...head, recursive: plan.recursive, ...ifMatchOf(plan) })),
        Option.fromNullOr
      ),
    MakeDirectory: ({ path, plan }) =>
      Effect.map(
        changeAt(path, (head) => send("port.makeDirectoryWhole", { ...head, ...plan })),
        (isMade) => (isMade ? Option.some(undefined) : Option.none())
      ),
    Move: ({ path, plan, to }) =>
      Effect.map(
        changeAt(path, (head) => send("port.moveWhole", { ...head, to, ...plan })),
        Option.fromNullOr
      )
  }

  return {
    info: {
      name: info.name,
      root: info.root,
      caseSensitive: info.caseSensitive,
      readOnly: info.readOnly,
      confinement: info.confinement
    },
    stat,
    list,
    open,
    write,
    makeDirectory: (path) => changeAt(path, (head) => send("port.makeDirectory", head)),
    remove: (path) => changeAt(path, (head) => send("port.remove", head)),
    rename: (from, to, { replace }) => changeAt(from, (head) => send("port.rename", { ...head, to, replace })),
    links: info.hasLinks
      ? {
          read: (path) => ask(path, send("port.readLink", { path, follow: false })),
          follow: (path) => ask(path, send("port.readLink", { path, follow: true })),
          relative: info.absoluteRoots.length === 0 ? undefined : makeRelativeTargets(() => info.absoluteRoots),
          make: (path, target) => changeAt(path, (head) => send("port.makeLink", { ...head, target }))
        }
      : undefined,
    attributes: info.hasAttributes
      ? {
          set: (path, { isCopy, mode, modifiedAt }) =>
            changeAt(path, (head) =>
              send("port.setAttributes", {
                ...head,
                ...(mode !== undefined && { mode }),
                ...(modifiedAt !== undefined && { modifiedAt }),
                ...(isCopy !== undefined && { isCopy })
              })
            )
        }
      : undefined,
    watch: info.canWatch
      ? (path) =>
          Stream.flattenIterable(stream(path, send("port.watch", { path }))).pipe(
            Stream.filter((event) => event.path === "." || event.path.split("/").every(isSegment)),
            Stream.map((event) => ({ ...event, path: event.path as FsPath })),
            Stream.filter((event) =>
              info.caseSensitive ? isWithin(path, event.path) : isWithin(fold(path) as FsPath, fold(event.path) as FsPath)
            )
          )
      : undefined,
    rules: rulesOf(info),
    locks: {
      ...locks,
      claim: (path, effect) => Effect.scoped(Effect.andThen(hold(path, send("port.claim", { path })), effect))
    },
    perform: Request.handlers(handlers)
  }
}
