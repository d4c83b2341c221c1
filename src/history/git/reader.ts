/**
 * Reads objects through `git cat-file --batch`. The first read starts the process, and later reads use the same process,
 * because starting a process takes longer than reading a hundred objects. Sizes have a process of their own, and so has each
 * stream.
 *
 * Every content is checked against its id, because the store may be damaged, or an attacker may have prepared it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Socket } from "node:net"
import type { Readable } from "node:stream"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import { createHash } from "../../runtime/node.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import type { DirectoryNode, FileNode, LinkNode, Node } from "../tree.ts"
import type { TreeSource } from "../view.ts"
import { decodeTree, emptyTreeId, type TreeEntry, withModes } from "./codec.ts"
import { isId, type ObjectKind } from "./objects.ts"
import { type End, failureOf, type Git, type Running } from "./process.ts"

type Kind = ObjectKind | "tag"

interface Found {
  readonly kind: Kind
  readonly body: Buffer
}

interface Size {
  readonly kind: Kind
  readonly size: number
}

export interface Reader {
  /**
   * Reads a whole object into memory. Fails with "corrupt" if the object is missing or does not match its id, and with "budget"
   * if the object is too large.
   */
  readonly object: (id: string) => Effect.Effect<Found, StoreFault>
  readonly sizes: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Size | undefined>, StoreFault>
  /** Ends the current processes, because they keep removed packs open. The next read starts a new process. */
  readonly restart: Effect.Effect<void>
  /** Streams a blob of any size with backpressure. Fails at the end of the stream if the content does not match the id. */
  readonly stream: (id: string) => Stream.Stream<Uint8Array, StoreFault>
}

/** The answer of git about one id. The body is absent if it was not requested or is too large. */
interface Answer {
  readonly kind: Kind
  readonly size: number
  readonly body: Buffer | undefined
}

interface ReadRequest {
  readonly ids: ReadonlyArray<string>
  readonly answers: Array<Answer | undefined>
  readonly settle: (outcome: ReadonlyArray<Answer | undefined> | ProcessEnded) => void
  isCancelled: boolean
}

/**
 * The failure of a request whose process ended. `isFirst` means that the process was answering this request, so the request may
 * be the cause.
 */
interface ProcessEnded {
  readonly _tag: "Ended"
  readonly end: End
  readonly isFirst: boolean
}

interface CatFileSession {
  readonly ask: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Answer | undefined>, ProcessEnded>
  readonly isOver: () => boolean
  readonly finish: () => Promise<unknown>
}

const lineFeed = 10

const header = /^([0-9a-f]{40}) (?:missing|(blob|tree|commit|tag) (\d{1,15}))$/

/**
 * Makes a session on a process of git. The session keeps bodies of at most `maxBodyBytes`, and no bodies if `maxBodyBytes` is
 * absent.
 */
const openSession = ({ child, end }: Running, maxBodyBytes: number | undefined): CatFileSession => {
  const requests: Array<ReadRequest> = []
  let line: Array<Buffer> = []
  let current: Answer | undefined
  /** The number of bytes of the body that have not arrived yet, including the line feed at the end. */
  let remainingBytes = 0
  let pendingInput = ""
  let isOver = false
  let exitResult: End | undefined

  const setReferenced = (isReferenced: boolean): void => {
    for (const handle of [child, child.stdin as Socket, child.stdout as Socket, child.stderr as Socket]) {
      if (isReferenced) handle.ref()
      else handle.unref()
    }
  }
  const send = (text: string): void => {
    if (pendingInput === "") process.nextTick(flush)
    pendingInput += text
  }
  const flush = (): void => {
    child.stdin.write(pendingInput, "latin1")
    pendingInput = ""
  }
  const settleAnswer = (answer: Answer | undefined): void => {
    const request = requests[0]!
    request.answers.push(answer)
    if (request.answers.length < request.ids.length) return
    requests.shift()
    if (requests.length === 0) setReferenced(false)
    if (!request.isCancelled) request.settle(request.answers)
  }
  const beginAnswer = (text: string): boolean => {
    const request = requests[0]
    const [, id, kind, digits] = header.exec(text) ?? []
    if (request === undefined || id !== request.ids[request.answers.length]) return false
    if (kind === undefined) settleAnswer(undefined)
    else {
      const size = Number(digits)
      const isWanted = maxBodyBytes !== undefined && !request.isCancelled && size <= maxBodyBytes
      current = { kind: kind as Kind, size, body: isWanted ? Buffer.allocUnsafe(size) : undefined }
      remainingBytes = maxBodyBytes === undefined ? 0 : size + 1
      if (remainingBytes === 0) finish()
    }
    return true
  }
  const finish = (): void => {
    const answer = current
    current = undefined
    settleAnswer(answer)
  }
  const takeLine = (bytes: Buffer): number => {
    const at = bytes.indexOf(lineFeed)
    line.push(at === -1 ? bytes : bytes.subarray(0, at))
    if (at === -1) return bytes.length
    const text = Buffer.concat(line).toString("latin1")
    line = []
    // Kill a process whose output does not match the request. A new process receives the pending requests.
    if (!beginAnswer(text)) child.kill("SIGKILL")
    return at + 1
  }
  const takeBody = ({ body, size }: Answer, bytes: Buffer): number => {
    const taken = Math.min(remainingBytes, bytes.length)
    if (body !== undefined) bytes.copy(body, size + 1 - remainingBytes, 0, Math.min(taken, remainingBytes - 1))
    remainingBytes -= taken
    if (remainingBytes === 0) finish()
    return taken
  }
  child.stdout.on("data", (bytes: Buffer) => {
    for (let rest = bytes; rest.length > 0 && !child.killed;) {
      rest = rest.subarray(current === undefined ? takeLine(rest) : takeBody(current, rest))
    }
  })
  child.once("exit", () => {
    isOver = true
  })
  void end.then((processEnd) => {
    isOver = true
    exitResult = processEnd
    for (const [at, request] of requests.splice(0).entries()) {
      if (!request.isCancelled) request.settle({ _tag: "Ended", end: processEnd, isFirst: at === 0 })
    }
  })
  setReferenced(false)

  return {
    isOver: () => isOver,
    finish: () => {
      isOver = true
      // Keep this Node process alive until git has exited.
      if (exitResult === undefined) setReferenced(true)
      child.stdin.end()
      return end
    },
    ask: (ids) =>
      Effect.callback((resume) => {
        if (exitResult !== undefined) return resume(Effect.fail({ _tag: "Ended", end: exitResult, isFirst: false }))
        const request: ReadRequest = {
          ids,
          answers: [],
          isCancelled: false,
          settle: (outcome) => resume("_tag" in outcome ? Effect.fail(outcome) : Effect.succeed(outcome))
        }
        requests.push(request)
        setReferenced(true)
        send(`${ids.join("\n")}\n`)
        return Effect.sync(() => {
          request.isCancelled = true
        })
      })
  }
}

/** The largest number of times that a request is sent to a new process because the old process was killed. */
const maxRestarts = 3

const makeRequester = (git: Git, args: ReadonlyArray<string>, maxBodyBytes: number | undefined, scope: Scope.Scope) => {
  const lock = Semaphore.makeUnsafe(1)
  let current: CatFileSession | undefined
  const currentSession: Effect.Effect<CatFileSession, StoreFault> = lock.withPermit(
    Effect.suspend(() => {
      if (current !== undefined && !current.isOver()) return Effect.succeed(current)
      return Effect.map(Scope.provide(git.start(args), scope), (running) => (current = openSession(running, maxBodyBytes)))
    })
  )
  const ask = (ids: ReadonlyArray<string>, tries = maxRestarts): Effect.Effect<ReadonlyArray<Answer | undefined>, StoreFault> =>
    Effect.catch(
      Effect.flatMap(currentSession, (session) => session.ask(ids)),
      (fault): Effect.Effect<ReadonlyArray<Answer | undefined>, StoreFault> => {
        if (fault._tag === "StoreFault") return Effect.fail(fault)
        const { end, isFirst } = fault
        if (end.error === undefined && !isFirst) return ask(ids, tries)
        const isOurs = end.error !== undefined || (end.code !== null && end.code !== 0) || tries === 0
        return isOurs ? Effect.fail(failureOf("cat-file", end)) : ask(ids, tries - 1)
      }
    )
  return { ask, restart: Effect.promise(async () => current?.finish()) }
}

const corrupt = (id: string, why: string): StoreFault => storeFault("corrupt", `the store is damaged: the object ${id} ${why}`)

const verifyObject = (id: string, answer: Answer | undefined): Effect.Effect<Found, StoreFault> => {
  if (answer === undefined) return Effect.fail(corrupt(id, "is missing"))
  const { body, kind, size } = answer
  if (body === undefined)
    return Effect.fail(storeFault("budget", `the object ${id} has ${size} bytes, which is too large to read into memory`))
  const actual = createHash("sha1").update(`${kind} ${size}\0`).update(body).digest("hex")
  return actual === id ? Effect.succeed({ kind, body }) : Effect.fail(corrupt(id, `has the content of ${actual}`))
}

/** Waits until the stream is readable or has ended. The stream never buffers more than its high-water mark. */
const waitUntilReadable = (stream: Readable): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (stream.readableEnded || stream.destroyed) return resume(Effect.void)
    const events = ["readable", "end", "close", "error"]
    const off = (): void => {
      for (const event of events) stream.off(event, done)
    }
    const done = (): void => {
      off()
      resume(Effect.void)
    }
    for (const event of events) stream.on(event, done)
    return Effect.sync(off)
  })

const streamBlob = ({ child, end }: Running, id: string, size: number) => {
  const { stdout } = child
  const hash = createHash("sha1").update(`blob ${size}\0`)
  const checkEnd: Effect.Effect<never, StoreFault | Cause.Done> = Effect.flatMap(
    Effect.promise(() => end),
    (processEnd): Effect.Effect<never, StoreFault | Cause.Done> => {
      if (processEnd.code !== 0) return Effect.fail(failureOf("cat-file", processEnd))
      const actual = hash.digest("hex")
      return actual === id ? Cause.done() : Effect.fail(corrupt(id, `has the content of ${actual}`))
    }
  )
  const pull: Effect.Effect<readonly [Uint8Array], StoreFault | Cause.Done> = Effect.suspend(() => {
    const bytes: Buffer | null = stdout.read()
    if (bytes !== null) {
      hash.update(bytes)
      return Effect.succeed([bytes] as const)
    }
    return stdout.readableEnded || stdout.destroyed ? checkEnd : Effect.flatMap(waitUntilReadable(stdout), () => pull)
  })
  return Stream.fromPull(Effect.succeed(pull))
}

const invalidId = (text: string): StoreFault =>
  storeFault("corrupt", `${JSON.stringify(text.slice(0, 60))} is not an object id`)

const checkIds = (ids: ReadonlyArray<string>): Effect.Effect<void, StoreFault> => {
  const wrong = ids.find((id) => !isId(id))
  return wrong === undefined ? Effect.void : Effect.fail(invalidId(wrong))
}

export const make = (
  git: Git,
  { maxBodyBytes = 2 ** 30 }: { readonly maxBodyBytes?: number } = {}
): Effect.Effect<Reader, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const bodies = makeRequester(git, ["cat-file", "--batch"], maxBodyBytes, scope)
    const heads = makeRequester(git, ["cat-file", "--batch-check"], undefined, scope)
    const sizes: Reader["sizes"] = (ids) =>
      ids.length === 0 ? Effect.succeed([]) : Effect.andThen(checkIds(ids), heads.ask(ids))
    return {
      object: (id) => Effect.flatMap(Effect.andThen(checkIds([id]), bodies.ask([id])), ([answer]) => verifyObject(id, answer)),
      sizes,
      restart: Effect.andThen(bodies.restart, heads.restart),
      stream: (id) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const [found] = yield* sizes([id])
            if (found === undefined) return yield* Effect.fail(corrupt(id, "is missing"))
            if (found.kind !== "blob") return yield* Effect.fail(corrupt(id, `is a ${found.kind} instead of a blob`))
            const running = yield* git.start(["cat-file", "blob", id])
            running.child.stdin.end()
            return streamBlob(running, id, found.size)
          })
        )
    }
  })

// A directory with a known id is not read again, so loading a tree that is similar to a known tree reads few objects.

const bodyOf = (reader: Reader, id: string, kind: "blob" | "tree"): Effect.Effect<Buffer, StoreFault> =>
  Effect.flatMap(reader.object(id), (found) =>
    found.kind === kind
      ? Effect.succeed(found.body)
      : Effect.fail(storeFault("corrupt", `the object ${id} is a ${found.kind} instead of a ${kind}`))
  )

/** Reads the target of a symlink. Rejects a target that this library cannot have written, such as invalid UTF-8. */
const targetOf = (reader: Reader, id: string): Effect.Effect<string, StoreFault> =>
  Effect.flatMap(bodyOf(reader, id, "blob"), (body) => {
    const target = body.toString()
    return Buffer.from(target).equals(body) && !target.includes("\0") && target !== ""
      ? Effect.succeed(target)
      : Effect.fail(storeFault("corrupt", `the object ${id} is not a valid symlink target`))
  })

interface StoredDirectory {
  readonly mode: number
  readonly entries: ReadonlyMap<string, TreeEntry>
}

const readDirectory = (reader: Reader, id: string): Effect.Effect<StoredDirectory, StoreFault> =>
  id === emptyTreeId
    ? Effect.succeed({ mode: 0o755, entries: new Map() })
    : Effect.flatMap(bodyOf(reader, id, "tree"), (body) =>
        Effect.flatMap(Effect.fromResult(decodeTree(body)), (decoded) =>
          decoded.modes === undefined
            ? Effect.fromResult(withModes(decoded, undefined))
            : Effect.flatMap(bodyOf(reader, decoded.modes, "blob"), (modes) => Effect.fromResult(withModes(decoded, modes)))
        )
      )

const linkOf = (reader: Reader, { id }: TreeEntry): Effect.Effect<LinkNode, StoreFault> =>
  Effect.map(targetOf(reader, id), (target) => ({ kind: "symlink", target }))

interface UnsizedFile {
  readonly into: Map<string, Node>
  readonly segment: string
  readonly entry: TreeEntry
}

const addSizes = Effect.fnUntraced(function* (
  reader: Reader,
  files: ReadonlyArray<UnsizedFile>
): Effect.fn.Return<void, StoreFault> {
  const sizes = yield* reader.sizes(files.map(({ entry }) => entry.id))
  for (const [i, { entry, into, segment }] of files.entries()) {
    const found = sizes[i]
    if (found?.kind !== "blob")
      return yield* Effect.fail(storeFault("corrupt", `the store does not contain the object ${entry.id}`))
    const file: FileNode = { kind: "file", id: entry.id, mode: entry.mode, sizeBytes: found.size }
    into.set(segment, file)
  }
})

interface Pending {
  readonly id: string
  readonly known: DirectoryNode | undefined
  readonly depth: number
  readonly onLoaded: (directory: DirectoryNode) => void
}

const maxDepth = 4096
const maxUnsizedFiles = 2000

/**
 * Loads the whole tree below an id. Reuses the nodes of `known` that have the same ids, without reading them again. Fails
 * with "budget" if the other directories have more than `maxEntries` entries.
 */
export const load = Effect.fnUntraced(function* (
  reader: Reader,
  id: string,
  known: DirectoryNode | undefined,
  maxEntries: number
): Effect.fn.Return<DirectoryNode, StoreFault> {
  let top: DirectoryNode | undefined
  let entryCount = 0
  const unsizedFiles: Array<UnsizedFile> = []
  const pending: Array<Pending> = [{ id, known, depth: 0, onLoaded: (directory) => void (top = directory) }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { depth, id, known, onLoaded } = next
    if (known?.id === id) {
      onLoaded(known)
      continue
    }
    if (depth > maxDepth)
      return yield* Effect.fail(storeFault("corrupt", "the directories of the snapshot are nested too deeply"))
    const { entries, mode } = yield* readDirectory(reader, id)
    // A few objects that refer to each other can expand to millions of entries, so count the entries.
    entryCount += entries.size
    if (entryCount > maxEntries)
      return yield* Effect.fail(storeFault("budget", `the snapshot has more than ${maxEntries} entries`))
    const nodes = new Map<string, Node>()
    for (const [segment, entry] of entries) {
      const before = known?.entries.get(segment)
      if (entry.kind === "directory") {
        const below = before?.kind === "directory" ? before : undefined
        pending.push({
          id: entry.id,
          known: below,
          depth: depth + 1,
          onLoaded: (directory) => void nodes.set(segment, directory)
        })
      } else if (entry.kind === "symlink") nodes.set(segment, yield* linkOf(reader, entry))
      else if (before?.kind === "file" && before.id === entry.id) {
        nodes.set(segment, { kind: "file", id: entry.id, mode: entry.mode, sizeBytes: before.sizeBytes })
      } else {
        unsizedFiles.push({ into: nodes, segment, entry })
        if (unsizedFiles.length >= maxUnsizedFiles) yield* addSizes(reader, unsizedFiles.splice(0))
      }
    }
    onLoaded({ kind: "directory", mode, entries: nodes, id })
  }
  yield* addSizes(reader, unsizedFiles)
  return top!
})

interface Directory {
  readonly mode: number
  readonly entries: ReadonlyMap<string, Node>
}

/**
 * Reads one directory without loading the trees below it. The subdirectories in the result have ids, but no modes and no
 * entries.
 */
const readNodes = Effect.fnUntraced(function* (reader: Reader, id: string): Effect.fn.Return<Directory, StoreFault> {
  const { entries, mode } = yield* readDirectory(reader, id)
  const nodes = new Map<string, Node>()
  const unsizedFiles: Array<UnsizedFile> = []
  for (const [segment, entry] of entries) {
    if (entry.kind === "directory") nodes.set(segment, { kind: "directory", id: entry.id, entries: new Map() })
    else if (entry.kind === "symlink") nodes.set(segment, yield* linkOf(reader, entry))
    else unsizedFiles.push({ into: nodes, segment, entry })
  }
  yield* addSizes(reader, unsizedFiles)
  return { mode, entries: nodes }
})

const maxCachedDirectories = 20_000

/**
 * Converts a fault of the store. Omits the path of the store and the messages of git, because users of a snapshot's view
 * must not see them.
 */
const toFault = ({ reason }: StoreFault): Fault =>
  reason === "unavailable" || reason === "gitMissing"
    ? { _tag: "Unavailable", detail: "the store of this snapshot cannot be read" }
    : { _tag: "IoError", detail: `the store of this snapshot cannot be read (${reason})` }

export const treeSourceOf = (
  reader: Reader,
  tree: string,
  content: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault>
): Pick<TreeSource, "tree" | "entries" | "mode" | "content"> => {
  const cachedDirectories = new Map<string, Directory>()
  const directory = (id: string): Effect.Effect<Directory, Fault> => {
    const found = cachedDirectories.get(id)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.mapBoth(readNodes(reader, id), {
      onFailure: toFault,
      onSuccess: (read) => {
        if (cachedDirectories.size >= maxCachedDirectories) cachedDirectories.clear()
        cachedDirectories.set(id, read)
        return read
      }
    })
  }
  return {
    tree: { kind: "directory", id: tree, entries: new Map() },
    entries: ({ id }) => Effect.map(directory(id!), ({ entries }) => entries),
    mode: ({ id }) => Effect.map(directory(id!), ({ mode }) => mode),
    content: (path, file) =>
      Effect.mapBoth(content(path, file), {
        onFailure: toFault,
        onSuccess: (bytes) => (isBytes(bytes) ? bytes : Stream.mapError(bytes, toFault))
      })
  }
}
