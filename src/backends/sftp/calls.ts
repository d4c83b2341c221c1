/** The requests that the backend needs, with parsed answers. */
import * as Effect from "effect/Effect"
import { ioError } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { concatenate } from "../../runtime/buffer.ts"
import { type Answer, type Lost, readAnswer, Refused, refusalOf, type Request, type Session } from "./session.ts"
import { type Attributes, type Field, type Listed, Malformed, protocolFault, StatusCode, Type } from "./wire.ts"

export type Failure = Fault | Refused | Lost

/** A path on the server, as text or as bytes that are not UTF-8. */
export type RemotePath = string | Uint8Array

export const posixRename = "posix-rename@openssh.com"
export const hardlinking = "hardlink@openssh.com"
export const fsyncing = "fsync@openssh.com"
export const statvfs = "statvfs@openssh.com"
export const lsetstat = "lsetstat@openssh.com"
export const copyData = "copy-data"

const ask = <A>(session: Session, request: Request, read: (answer: Answer) => A | Refused): Effect.Effect<A, Failure> =>
  Effect.flatMap(session.askAll([request]), ([answer]) => parse(answer!, read))

const parse = <A>(answer: Answer, read: (answer: Answer) => A | Refused): Effect.Effect<A, Failure> =>
  Effect.flatMap(
    readAnswer(() => ({ value: read(answer) })),
    ({ value }) => (value instanceof Refused ? Effect.fail(value) : Effect.succeed(value))
  )

const expect = (answer: Answer, type: number): Refused | undefined => {
  if (answer.type === type) return undefined
  const refusal = refusalOf(answer)
  if (refusal === undefined) throw new Malformed("it answers with the status OK instead of the requested data")
  return refusal
}

const attributesOf = (answer: Answer): Attributes | undefined | Refused => {
  const refusal = expect(answer, Type.attrs)
  if (refusal !== undefined) return refusal.code === StatusCode.noSuchFile ? undefined : refusal
  return answer.body.attributes()
}

/**
 * Reads the attributes of several paths in one round trip. Follows no link, except at the path `followed`. Each result is a
 * separate effect, because a failure at one path says nothing about the other paths. The attributes of a missing entry are
 * `undefined`.
 */
export const lookAll = (
  session: Session,
  paths: ReadonlyArray<RemotePath>,
  followed?: RemotePath
): Effect.Effect<ReadonlyArray<Effect.Effect<Attributes | undefined, Failure>>, Failure> =>
  Effect.map(
    session.askAll(paths.map((path) => ({ type: path === followed ? Type.stat : Type.lstat, fields: [path] }))),
    (answers) => answers.map((answer) => parse(answer, attributesOf))
  )

export const look = (session: Session, path: RemotePath): Effect.Effect<Attributes | undefined, Failure> =>
  ask(session, { type: Type.lstat, fields: [path] }, attributesOf)

const oneName = (answer: Answer): Buffer | Refused => {
  const refusal = expect(answer, Type.name)
  if (refusal !== undefined) return refusal
  const names = answer.body.names()
  if (names.length !== 1) throw new Malformed(`it answers with ${names.length} names instead of one`)
  return names[0]!.name
}

export const realPath = (session: Session, path: RemotePath): Effect.Effect<Buffer, Failure> =>
  ask(session, { type: Type.realpath, fields: [path] }, oneName)

export const readLink = (session: Session, path: RemotePath): Effect.Effect<Buffer, Failure> =>
  ask(session, { type: Type.readlink, fields: [path] }, oneName)

const status = (
  session: Session,
  type: number,
  fields: ReadonlyArray<Field>,
  isChange: boolean
): Effect.Effect<void, Failure> => ask(session, { type, fields, isChange }, (answer) => refusalOf(answer))

const extended = (session: Session, name: string, ...fields: ReadonlyArray<Field>): Effect.Effect<void, Failure> =>
  status(session, Type.extended, [name, ...fields], true)

export const makeDirectory = (session: Session, path: RemotePath) => status(session, Type.mkdir, [path, {}], true)
export const removeFile = (session: Session, path: RemotePath) => status(session, Type.remove, [path], true)
export const removeDirectory = (session: Session, path: RemotePath) => status(session, Type.rmdir, [path], true)
/** Renames an entry. Fails if the target exists, as the protocol requires. */
export const renameNew = (session: Session, from: RemotePath, to: RemotePath) => status(session, Type.rename, [from, to], true)
export const renameOver = (session: Session, from: RemotePath, to: RemotePath) => extended(session, posixRename, from, to)
export const hardlink = (session: Session, from: RemotePath, to: RemotePath) => extended(session, hardlinking, from, to)
/** Makes a symlink. OpenSSH expects the target first, unlike the specification. */
export const makeLink = (session: Session, path: RemotePath, target: RemotePath) =>
  status(session, Type.symlink, [target, path], true)
/** Sets attributes, and follows links. */
export const setAttributes = (session: Session, path: RemotePath, values: Attributes) =>
  status(session, Type.setstat, [path, values], true)
export const setLinkAttributes = (session: Session, path: RemotePath, values: Attributes) =>
  extended(session, lsetstat, path, values)

/** Tests whether the disk of a path has no space or no inodes left. */
export const isDiskFull = (session: Session, path: RemotePath): Effect.Effect<boolean, Failure> =>
  !session.extensions.has(statvfs)
    ? Effect.succeed(false)
    : ask(session, { type: Type.extended, fields: [statvfs, path] }, (answer) => {
        const refusal = expect(answer, Type.extendedReply)
        if (refusal !== undefined) return refusal
        const [, , blocks, , availableBlocks, files, , availableFiles] = Array.from({ length: 8 }, () => answer.body.u64())
        return (blocks! > 0 && availableBlocks === 0) || (files! > 0 && availableFiles === 0)
      })

/** A file or directory that is open on the server. */
export interface Open {
  readonly handle: Buffer
  isClosed: boolean
}

/** Closes a handle without waiting. */
export const closeQuietly = (session: Session, open: Open): void => {
  if (open.isClosed) return
  open.isClosed = true
  session.post({ type: Type.close, fields: [open.handle] })
}

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Opens a file or directory. Must run in an uninterruptible region. If the caller is interrupted before the answer, the handle
 * is closed when the answer arrives.
 */
const acquire = (session: Session, request: Omit<Request, "onAnswer">, restore: Restore): Effect.Effect<Open, Failure> =>
  Effect.suspend(() => {
    let open: Open | undefined
    let isAbandoned = false
    let failure: Refused | Fault | undefined
    const onAnswer = (answer: Answer): void => {
      try {
        failure = expect(answer, Type.handle)
        if (failure !== undefined) return
        open = { handle: Buffer.from(answer.body.bytes()), isClosed: false }
        if (isAbandoned) closeQuietly(session, open)
      } catch (error) {
        failure = protocolFault((error as Error).message)
      }
    }
    return Effect.onExit(
      Effect.flatMap(restore(session.askAll([{ ...request, onAnswer }])), () =>
        open === undefined ? Effect.fail(failure!) : Effect.succeed(open)
      ),
      (exit) =>
        Effect.sync(() => {
          if (exit._tag === "Success") return
          isAbandoned = true
          if (open !== undefined) closeQuietly(session, open)
        })
    )
  })

/** Opens a file. Must run in an uninterruptible region. */
export const openFile = (
  session: Session,
  path: RemotePath,
  flags: number,
  restore: Restore,
  values: Attributes = {}
): Effect.Effect<Open, Failure> => acquire(session, { type: Type.open, fields: [path, flags, values] }, restore)

/** Opens a file, uses it, and closes it. */
export const withFile = <A, E, R>(
  session: Session,
  path: RemotePath,
  flags: number,
  use: (open: Open) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Failure, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(openFile(session, path, flags, restore), (open) =>
      Effect.ensuring(
        restore(use(open)),
        Effect.sync(() => closeQuietly(session, open))
      )
    )
  )

const found = (attributes: Attributes | undefined): Effect.Effect<Attributes, Failure> =>
  attributes === undefined ? Effect.fail(new Refused(StatusCode.noSuchFile, "")) : Effect.succeed(attributes)

export const fileAttributes = (session: Session, { handle }: Open): Effect.Effect<Attributes, Failure> =>
  Effect.flatMap(ask(session, { type: Type.fstat, fields: [handle] }, attributesOf), found)

export const setFileAttributes = (session: Session, { handle }: Open, values: Attributes): Effect.Effect<void, Failure> =>
  status(session, Type.fsetstat, [handle, values], false)

/** Sets attributes of an open file, closes the file, and returns its attributes. Ignores a refusal to set the attributes. */
export const setAndClose = (session: Session, open: Open, values: Attributes): Effect.Effect<Attributes, Failure> =>
  Effect.suspend(() => {
    const { handle } = open
    open.isClosed = true
    return Effect.flatMap(
      session.askAll([
        { type: Type.fsetstat, fields: [handle, values] },
        { type: Type.fstat, fields: [handle] },
        { type: Type.close, fields: [handle] }
      ]),
      ([set, attributes, closed]) =>
        Effect.andThen(
          Effect.andThen(parse(set!, refusalOf).pipe(Effect.catchTag("Refused", () => Effect.void)), parse(closed!, refusalOf)),
          Effect.flatMap(parse(attributes!, attributesOf), found)
        )
    )
  })

/** Copies the first `length` bytes of a file into another file on the server. */
export const copyOnServer = (session: Session, from: Open, length: number, to: Open): Effect.Effect<void, Failure> =>
  status(session, Type.extended, [copyData, from.handle, 0n, BigInt(length), to.handle, 0n], false)

/** Closes a written file. A failure may mean that bytes are lost. */
export const close = (session: Session, open: Open): Effect.Effect<void, Failure> =>
  Effect.suspend(() => {
    open.isClosed = true
    return status(session, Type.close, [open.handle], false)
  })

/** Splits a range into parts of about the same size that one request can transfer. */
const split = (
  offset: number,
  length: number,
  largest: number
): ReadonlyArray<{ readonly at: number; readonly length: number }> => {
  if (length === 0) return []
  const count = Math.ceil(length / largest)
  const part = Math.min(largest, Math.ceil(length / count / pageBytes) * pageBytes)
  return Array.from({ length: Math.ceil(length / part) }, (_, nth) => ({
    at: offset + nth * part,
    length: Math.min(part, length - nth * part)
  }))
}

/** The size of a page in bytes. If possible, parts begin at pages, so that no page of the file is read or written twice. */
const pageBytes = 4 * 1024

/** The maximum length of a range in one call, in bytes. */
const maxRange = 8 * 1024 * 1024

/** A part of a range, and the number of bytes that have been received for it. */
interface Part {
  readonly at: number
  readonly length: number
  received: number
}

/** Returns the number of bytes of an answer with data. Zero means that the file has ended. */
const dataBytesOf =
  (maxBytes: number) =>
  ({ body, contentBytes, type }: Answer): number | Refused => {
    if (contentBytes !== undefined) return contentBytes
    if (type === Type.data) {
      throw new Malformed(`it sends ${body.bytes().length} bytes where ${maxBytes} were asked for`)
    }
    const refusal = expect({ body, type }, Type.data)
    return refusal?.code === StatusCode.endOfFile ? 0 : refusal!
  }

/** Reads a range with pipelined requests. The result is shorter than 8 MiB only if the range or the file ends. */
export const read = (session: Session, { handle }: Open, offset: number, length: number): Effect.Effect<Uint8Array, Failure> =>
  Effect.gen(function* () {
    const range = Math.min(length, maxRange)
    let parts = split(0, range, session.maxRead).map((part): Part => ({ ...part, received: 0 }))
    // The array is made when the first bytes arrive, so that a false size from the server costs no memory.
    let bytes: Uint8Array | undefined
    const requestOf = ({ at, length, received }: Part): Request => ({
      type: Type.read,
      fields: [handle, BigInt(offset + at + received), length - received],
      answerBytes: length - received,
      takeContent: (arrived) => {
        if (arrived > length - received) return undefined
        // Zeroing would cost as much as copying. All bytes of the result are received bytes.
        bytes ??= new Uint8Array(Buffer.allocUnsafeSlow(range).buffer)
        return bytes.subarray(at + received, at + received + arrived)
      }
    })
    // A server may send less than was asked for. Then the rest of that part is asked for again.
    for (let open = parts; open.length > 0; open = parts.filter(({ length, received }) => received < length)) {
      const answers = yield* session.askAll(open.map(requestOf))
      for (const [nth, answer] of answers.entries()) {
        const part = open[nth]!
        const received = yield* parse(answer, dataBytesOf(part.length - part.received))
        part.received += received
        if (received > 0) continue
        // The file ends in this part. Discard all later parts, because their bytes would not be contiguous.
        parts = [...parts.slice(0, parts.indexOf(part)), { ...part, length: part.received }]
        break
      }
    }
    const { at, length: last } = parts.at(-1) ?? { at: 0, length: 0 }
    return at + last === range && bytes !== undefined ? bytes : (bytes ?? new Uint8Array()).slice(0, at + last)
  })

/** Reads a file of the given size, or up to its end. Reserves no memory for a size that the server only claims. */
export const readWhole = (session: Session, open: Open, size: number): Effect.Effect<Uint8Array, Failure> => {
  const parts: Array<Uint8Array> = []
  const next = (offset: number): Effect.Effect<Uint8Array, Failure> =>
    Effect.flatMap(read(session, open, offset, size - offset), (bytes) => {
      parts.push(bytes)
      const at = offset + bytes.length
      return bytes.length === 0 || at === size ? Effect.succeed(concatenate(parts)) : next(at)
    })
  return next(0)
}

/** The number of bytes from which copying content costs more than sending it as an array of its own. */
const minUncopiedBytes = 16 * 1024

const writeRequests = (session: Session, { handle }: Open, offset: number, bytes: Uint8Array, isChange: boolean) =>
  split(0, bytes.length, session.maxWrite).map(({ at, length }): Request => {
    const content = bytes.subarray(at, at + length)
    const fields = [handle, BigInt(offset + at)]
    // An interrupted caller may change its array, which must not change what an append adds.
    return isChange || length < minUncopiedBytes
      ? { type: Type.write, fields: [...fields, content], isChange }
      : { type: Type.write, fields, content }
  })

const checkAll = (answers: ReadonlyArray<Answer>): Effect.Effect<void, Failure> =>
  Effect.forEach(answers, (answer) => parse(answer, refusalOf), { discard: true })

/** Writes bytes with pipelined requests. Fails with the first failure. */
export const write = (session: Session, open: Open, offset: number, bytes: Uint8Array): Effect.Effect<void, Failure> =>
  Effect.flatMap(session.askAll(writeRequests(session, open, offset, bytes, false)), checkAll)

/**
 * Writes the last bytes of a file, flushes the file to disk if `isDurable`, and returns its attributes. Takes one round trip,
 * because a server must process the requests for one file in their order. If the file is too short, the server has changed the
 * order, and the file is flushed and examined again. Fails with the first failure.
 */
export const writeLast = (
  session: Session,
  open: Open,
  offset: number,
  bytes: Uint8Array,
  { isChange = false, isDurable }: { readonly isDurable: boolean; readonly isChange?: boolean }
): Effect.Effect<Attributes, Failure> => {
  const { handle } = open
  const isSynced = isDurable && session.extensions.has(fsyncing)
  const finish: ReadonlyArray<Request> = [
    ...(isSynced ? [{ type: Type.extended, fields: [fsyncing, handle], isChange }] : []),
    { type: Type.fstat, fields: [handle], isChange }
  ]
  const ask = (requests: ReadonlyArray<Request>) =>
    Effect.flatMap(session.askAll(requests), (answers) =>
      Effect.andThen(checkAll(answers.slice(0, -1)), Effect.flatMap(parse(answers.at(-1)!, attributesOf), found))
    )
  return Effect.flatMap(ask([...writeRequests(session, open, offset, bytes, isChange), ...finish]), (attributes) =>
    attributes.size !== undefined && attributes.size < offset + bytes.length ? ask(finish) : Effect.succeed(attributes)
  )
}

const listedOf = (answer: Answer): ReadonlyArray<Listed> | undefined | Refused => {
  const refusal = expect(answer, Type.name)
  if (refusal !== undefined) return refusal.code === StatusCode.endOfFile ? undefined : refusal
  const names = answer.body.names()
  if (names.length === 0) throw new Malformed("it lists no name before the end of a directory")
  for (const { name } of names) {
    if (name.length === 0 || name.includes(0) || name.includes("/")) {
      throw new Malformed(`it lists the name ${JSON.stringify(name.toString().slice(0, 60))}, which no directory can contain`)
    }
  }
  return names
}

/** The maximum number of READDIR requests that wait for an answer. Each answer of OpenSSH has up to 100 names. */
const maxListingRequests = 16

/** The approximate size of an answer with 100 names, in bytes. */
const listingAnswerBytes = 32 * 1024

/** The maximum size of all names of a directory together, in bytes. */
const maxListingBytes = 64 * 1024 * 1024

/**
 * Opens a directory, and runs `check` in the same round trip. Closes the directory if `check` fails, or if the caller is
 * interrupted. Must run in an uninterruptible region.
 */
const acquireDirectory = (
  session: Session,
  path: RemotePath,
  restore: Restore,
  check: Effect.Effect<void, Failure>
): Effect.Effect<Open, Failure> =>
  Effect.suspend(() => {
    let acquired: Open | undefined
    const opened = Effect.uninterruptibleMask((restore) =>
      Effect.map(acquire(session, { type: Type.opendir, fields: [path] }, restore), (open) => (acquired = open))
    )
    return Effect.onExit(
      // The failure of `check` counts, so it must not interrupt, nor be interrupted by, the other request.
      Effect.flatMap(
        // An uninterruptible fiber would wait for the answers, even of a server that is silent.
        restore(Effect.all([Effect.result(check), Effect.result(opened)], { concurrency: 2 })),
        ([checked, directory]) => Effect.andThen(Effect.fromResult(checked), Effect.fromResult(directory))
      ),
      (exit) =>
        Effect.sync(() => {
          if (exit._tag === "Failure" && acquired !== undefined) closeQuietly(session, acquired)
        })
    )
  })

/**
 * Lists a directory, without "." and "..". Fails with IoError `EFBIG` if it has more than `maxEntries` entries, or if their
 * names have more than 64 MiB. Lists nothing if `check` fails.
 */
export const list = (
  session: Session,
  path: RemotePath,
  maxEntries: number,
  check: Effect.Effect<void, Failure> = Effect.void
): Effect.Effect<ReadonlyArray<Listed>, Failure> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(acquireDirectory(session, path, restore, check), (open) => {
      const request: Request = { type: Type.readdir, fields: [open.handle], answerBytes: listingAnswerBytes }
      const listed = Effect.gen(function* () {
        const all: Array<Listed> = []
        let bytes = 0
        for (let requests = 2; ; requests = Math.min(maxListingRequests, requests * 2)) {
          const answers = yield* session.askAll(Array.from({ length: requests }, () => request))
          for (const answer of answers) {
            const names = yield* parse(answer, listedOf)
            if (names === undefined) return all.filter(({ name }) => !isDots(name))
            for (const one of names) {
              all.push(one)
              bytes += one.name.length
            }
            if (all.length > maxEntries + 2) {
              return yield* Effect.fail(ioError(`the directory has more than ${maxEntries} entries`, "EFBIG"))
            }
            if (bytes > maxListingBytes) {
              return yield* Effect.fail(ioError("the names in the directory have more than 64 MiB", "EFBIG"))
            }
          }
        }
      })
      return Effect.ensuring(
        restore(listed),
        Effect.sync(() => closeQuietly(session, open))
      )
    })
  )

const isDots = (name: Buffer): boolean => name[0] === 46 && (name.length === 1 || (name.length === 2 && name[1] === 46))
