/** The port of a workspace, and a read-only port of one commit. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Eager from "../engine/eager.ts"
import type { FileStat } from "../model/Entry.ts"
import { accessDenied, type Fault, ioError, notADirectory, notAFile, notFound } from "../model/Fault.ts"
import { type FsPath, root } from "../model/FsPath.ts"
import { isBytes } from "../model/realms.ts"
import type { Backend, Handle, Whole } from "../port/Backend.ts"
import { makeClaims, maxAttempts, shortPause } from "../port/optimisticClaims.ts"
import { parallelExplore } from "../port/parallelExplorer.ts"
import * as Request from "../port/Request.ts"
import { Buffer } from "../runtime/buffer.ts"
import type { Hasher } from "../runtime/hash.ts"
import { make as makeLocks } from "../runtime/locks.ts"
import { notALink, rootWriteFault } from "../backends/faults.ts"
import { collect, type Mode, runCommit } from "../backends/writing.ts"
import * as Changes from "./changes.ts"
import * as Contents from "./format/contents.ts"
import { type Content, type Entry, type FileEntry, sizeOf } from "./format/nodes.ts"
import type { Objects } from "./format/objects.ts"
import * as Trees from "./format/trees.ts"
import { type Draft, type Guard, hasSameContent, lookup, type Problem, toFault } from "./drafts.ts"
import { overtaken, refreshAfter, type Workspace } from "./workspace.ts"

/** The name by which `transaction` recognises a repository behind combinators. */
export const backendName = "Repository"

/** The number of directories or files that a search reads at the same time. */
const readConcurrency = 16
/** The maximum size of one append in bytes. An append is collected in memory. */
const maxAppendBytes = 256 * 1024 * 1024
const entrySize = (entry: Entry): number =>
  entry.kind === "file" ? sizeOf(entry.content) : entry.kind === "symlink" ? Buffer.byteLength(entry.target) : 0

export const statOf = (entry: Entry, path: FsPath, identity: string): FileStat => {
  const { kind } = entry
  const stat = {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: entrySize(entry),
    createdAt: DateTime.makeUnsafe(entry.createdAt),
    modifiedAt: DateTime.makeUnsafe(entry.modifiedAt),
    mode: entry.mode,
    identity: `${identity}:${path}`
  }
  return kind === "symlink" ? { ...stat, isSymlink: true } : stat
}

const contentOf = (path: FsPath): Guard => ({ path, aspect: "content" })

type Read<A> = Effect.Effect<A, Fault>

const orFault = <A>(effect: Effect.Effect<A, Problem>): Read<A> =>
  Eager.catch(effect, (problem) => Effect.fail(toFault(problem)))

/**
 * Makes the reading operations on drafts. `draft` returns the current draft, and `observe` notes each part that is read. `peek`
 * returns the draft if nothing needs to be noted, so that a read of cached nodes is synchronous.
 */
export const makeReader = (
  objects: Objects,
  draft: Read<Draft>,
  observe: (guard: Guard, entry: Entry | undefined) => Effect.Effect<void>,
  peek: (fiber: Fiber.Fiber<unknown, unknown>) => Draft | undefined,
  identity: string
) => {
  const withEntry = <A>(path: FsPath, aspect: Guard["aspect"], use: (entry: Entry | undefined) => Read<A>): Read<A> =>
    Effect.withFiber((fiber) => {
      const present = peek(fiber)
      return present !== undefined
        ? Eager.flatMap(orFault(lookup(objects, present, path)), use)
        : Effect.flatMap(draft, (draft) =>
            Effect.flatMap(
              Effect.tap(orFault(lookup(objects, draft, path)), (entry) => observe({ path, aspect }, entry)),
              use
            )
          )
    })

  const stat = (path: FsPath): Read<FileStat | undefined> =>
    withEntry(path, "stat", (entry) => Effect.succeed(entry && statOf(entry, path, identity)))

  const fileAt = (path: FsPath): Read<FileEntry> =>
    withEntry(path, "stat", (entry) =>
      entry === undefined ? Effect.fail(notFound) : entry.kind === "file" ? Effect.succeed(entry) : Effect.fail(notAFile)
    )

  const list: Backend["list"] = (path) =>
    withEntry(path, "names", (entry) => {
      if (entry === undefined) return Effect.fail(notFound)
      if (entry.kind !== "directory") return Effect.fail(notADirectory)
      return Eager.map(orFault(Trees.list(objects, entry.tree)), (entries) =>
        entries.map((child) => ({ name: child.name, kind: child.kind, addressable: true, sizeBytes: entrySize(child) }))
      )
    })

  const versionOf = (content: Content): Read<string> => Effect.sync(() => Contents.versionOf(content))

  const read = (content: Content, offset: number, length: number): Read<Uint8Array> =>
    orFault(Contents.read(objects, content, offset, length))

  const open = (path: FsPath): Read<Handle> =>
    Effect.map(fileAt(path), (file) => ({
      stat: statOf(file, path, identity),
      read: (offset, length) => read(file.content, offset, length),
      version: versionOf(file.content)
    }))

  const readLink = (path: FsPath): Read<string> =>
    withEntry(path, "content", (entry) =>
      entry === undefined
        ? Effect.fail(notFound)
        : entry.kind === "symlink"
          ? Effect.succeed(entry.target)
          : Effect.fail(notALink)
    )

  const readWhole = (path: FsPath, maxBytes: number): Read<Option.Option<Whole>> =>
    withEntry(path, "stat", (entry): Read<Option.Option<Whole>> => {
      if (entry?.kind !== "file" || sizeOf(entry.content) > maxBytes) return Request.declined
      return Eager.map(read(entry.content, 0, maxBytes), (bytes) =>
        Option.some({ stat: statOf(entry, path, identity), bytes, version: versionOf(entry.content) })
      )
    })

  const handlers = {
    Stat: ({ path }) => withEntry(path, "stat", (entry) => Effect.succeedSome(entry && statOf(entry, path, identity))),
    Read: ({ maxBytes, path }) => readWhole(path, maxBytes),
    ReadMany: ({ maxBytes, paths }) =>
      Effect.asSome(
        Effect.forEach(
          paths,
          (path) => Effect.orElseSucceed(Effect.map(readWhole(path, maxBytes), Option.getOrUndefined), () => undefined),
          { concurrency: readConcurrency }
        )
      )
  } satisfies Request.Handlers

  return {
    stat,
    list,
    open,
    readLink,
    handlers,
    explore: parallelExplore({ info: { caseSensitive: true }, list }, readConcurrency)
  }
}

const withoutValue = <E>(effect: Effect.Effect<Draft, E>) => Effect.map(effect, (draft) => ({ draft, value: undefined }))

/** Tests whether a check before the commit has failed. A Conflict with the commit of another writer has a path. */
const isFailedPrecondition = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "Conflict" && !("path" in error)

/** Remembers the hash states of files after appends, so that the next append need not read the file. */
const makeHashStates = () => {
  const states = new Map<string, Hasher>()
  return {
    take: (content: Content): Hasher | undefined => {
      if (content._tag === "Inline") return undefined
      const found = states.get(content.sha256)
      states.delete(content.sha256)
      return found
    },
    put: (content: Content, hash: Hasher): void => {
      if (content._tag === "Inline") return
      states.set(content.sha256, hash)
      if (states.size > 64) states.delete(states.keys().next().value!)
    }
  }
}

export const makePort = (workspace: Workspace, options: { readonly name: string; readonly identity: string }): Backend => {
  const { objects } = workspace
  const { identity } = options
  const hashStates = makeHashStates()
  const { claim, claimOf, isClaiming } = makeClaims<{ readonly entry: Entry | undefined }>(overtaken)

  const note = (guard: Guard, entry: Entry | undefined): Effect.Effect<void> =>
    Effect.andThen(
      workspace.observe(guard),
      Effect.map(claimOf(guard.path), (claim) => {
        if (claim !== undefined) claim.seen ??= { entry }
      })
    )

  const { explore, handlers, list, open, readLink, stat } = makeReader(
    objects,
    workspace.draft,
    note,
    (fiber) => (isClaiming(fiber) ? undefined : workspace.peek(fiber)),
    identity
  )

  const change = <A>(
    message: string,
    guards: ReadonlyArray<Guard>,
    touched: ReadonlyArray<Guard>,
    run: (draft: Draft, now: number) => Effect.Effect<{ readonly draft: Draft; readonly value: A }, Problem>,
    contents: ReadonlyArray<Content> = []
  ): Effect.Effect<A, Fault> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      workspace.submit({
        message,
        guards,
        touched,
        contents,
        run: (draft) => run(draft, Math.trunc(now))
      })
    )

  /** Fails with `overtaken` if the entry at `path` no longer has the content of `seen`. */
  const requireUnchanged = (
    draft: Draft,
    path: FsPath,
    seen: { readonly entry: Entry | undefined } | undefined
  ): Effect.Effect<void, Problem> =>
    seen === undefined
      ? Effect.void
      : Effect.flatMap(lookup(objects, draft, path), (entry) =>
          hasSameContent(entry, seen.entry) ? Effect.void : Effect.fail(overtaken)
        )

  const publish = (
    path: FsPath,
    mode: Mode,
    content: Content,
    base?: { readonly entry: Entry | undefined }
  ): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(claimOf(path), (claim) => {
      const isGuarded = mode === "replace" && claim?.seen === undefined
      return Effect.map(
        change(
          `write ${path}`,
          isGuarded ? [contentOf(path)] : [],
          [contentOf(path)],
          (draft, now) =>
            Eager.flatMap(requireUnchanged(draft, path, claim?.seen), () =>
              Eager.flatMap(requireUnchanged(draft, path, base), () => Changes.write(objects, draft, path, content, mode, now))
            ),
          [content]
        ),
        (file) => statOf(file, path, identity)
      )
    })

  /** Appends to the current content. If another writer changes the file meanwhile, appends to the new content. */
  const append = (path: FsPath, bytes: Uint8Array): Effect.Effect<FileStat, Fault> => {
    const attempt = (left: number): Effect.Effect<FileStat, Fault> =>
      Effect.gen(function* () {
        const draft = yield* workspace.draft
        const entry = yield* Effect.mapError(lookup(objects, draft, path), toFault)
        if (entry !== undefined && entry.kind !== "file") return yield* Effect.fail(notAFile)
        const old = entry?.content ?? Contents.empty
        const { content, hash } = yield* Effect.mapError(Contents.append(objects, old, bytes, hashStates.take(old)), toFault)
        hashStates.put(content, hash)
        return yield* Effect.catch(publish(path, "append", content, { entry }), (fault) =>
          Effect.flatMap(claimOf(path), (claim) =>
            fault !== overtaken || claim?.seen !== undefined || left === 0
              ? Effect.fail(fault)
              : Effect.andThen(shortPause, attempt(left - 1))
          )
        )
      })
    return path === root ? Effect.fail(rootWriteFault("append")) : attempt(maxAttempts)
  }

  const tooLargeToAppend: Fault = ioError(
    `one append may have at most ${maxAppendBytes} bytes; append in several calls`,
    "EFBIG"
  )

  /** Stores the content of a stream. */
  const stage = <E, R>(stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Content, Fault | E, R> =>
    Effect.suspend(() => {
      const writer = Contents.makeWriter(objects)
      return Effect.andThen(
        Stream.runForEach(stream, (bytes) => Effect.mapError(writer.push(bytes), toFault)),
        Effect.mapError(writer.end, toFault)
      )
    })

  /**
   * Stores content again if it was staged more than `refreshAfter` ago, so that `collect` does not delete it before the commit.
   */
  const refreshed = (content: Content, since: number): Effect.Effect<void, Fault> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now - since < refreshAfter ? Effect.void : Effect.mapError(Contents.refresh(objects, content), toFault)
    )

  const write: Backend["write"] = (path, bytes, mode, how) => {
    const commit = how?.commit
    if (mode === "append") {
      const collected = isBytes(bytes) ? Effect.sync(() => bytes.slice()) : collect(bytes, maxAppendBytes, tooLargeToAppend)
      return Effect.flatMap(collected, (content) => runCommit(commit, append(path, content)))
    }
    if (path === root) return Effect.fail(rootWriteFault(mode))
    return Effect.flatMap(Clock.currentTimeMillis, (since) =>
      Effect.flatMap(isBytes(bytes) ? Effect.mapError(Contents.fromBytes(objects, bytes), toFault) : stage(bytes), (content) =>
        runCommit(
          commit,
          content._tag === "Inline"
            ? publish(path, mode, content)
            : Effect.andThen(refreshed(content, since), publish(path, mode, content))
        )
      )
    )
  }

  const remove: Backend["remove"] = (path) =>
    Effect.flatMap(claimOf(path), (claim) =>
      change(`remove ${path}`, claim?.seen === undefined ? [contentOf(path)] : [], [contentOf(path)], (draft, now) =>
        Effect.andThen(requireUnchanged(draft, path, claim?.seen), withoutValue(Changes.remove(objects, draft, path, now)))
      )
    )

  const locks = makeLocks()

  /** Runs a change again if its precondition fails on an older commit than the head. */
  const exclusive: typeof locks.exclusive = (paths, effect) =>
    locks.exclusive(
      paths,
      Effect.withFiber((fiber) => {
        const before = workspace.peek(fiber)
        return Effect.catch(effect, (error) =>
          isFailedPrecondition(error)
            ? Effect.flatMap(workspace.refresh as Effect.Effect<Draft, typeof error>, (newest) =>
                newest !== before ? effect : Effect.fail(error)
              )
            : Effect.fail(error)
        )
      })
    )

  const makeMany: NonNullable<Request.Handlers["MakeMany"]> = ({ entries }) =>
    Effect.gen(function* () {
      const contents = yield* Effect.forEach(entries, ({ bytes }) =>
        bytes === undefined ? Effect.succeed(undefined) : Effect.mapError(Contents.fromBytes(objects, bytes), toFault)
      )
      const touched = entries.map(({ path }) => contentOf(path as FsPath))
      const staged = contents.filter((content) => content !== undefined)
      const make = (start: Draft, now: number) =>
        Effect.gen(function* () {
          let draft = start
          const made: Array<boolean> = []
          for (const [i, { mode, path }] of entries.entries()) {
            const content = contents[i]
            const next = yield* Effect.result(
              content === undefined
                ? Changes.makeDirectory(objects, draft, path, now, mode)
                : Effect.map(Changes.write(objects, draft, path, content, "create", now, mode), ({ draft }) => draft)
            )
            made.push(next._tag === "Success")
            if (next._tag === "Success") draft = next.success
          }
          return { draft, value: made }
        })
      return Option.some(entries.length === 0 ? [] : yield* change(`make ${entries.length} entries`, [], touched, make, staged))
    })

  return {
    info: { name: backendName, root: options.name, caseSensitive: true, readOnly: false, confinement: "virtual" },
    locks: { ...locks, exclusive, claim },
    stat,
    list,
    open,
    explore,
    write,
    makeDirectory: (path) =>
      change(`make directory ${path}`, [], [contentOf(path)], (draft, now) =>
        withoutValue(Changes.makeDirectory(objects, draft, path, now))
      ),
    remove,
    rename: (from, to, { replace }) =>
      change(`rename ${from} to ${to}`, [], [contentOf(from), contentOf(to)], (draft, now) =>
        withoutValue(Changes.rename(objects, draft, from, to, replace, now))
      ),
    links: {
      read: readLink,
      make: (path, target) =>
        change(`link ${path}`, [], [contentOf(path)], (draft, now) =>
          withoutValue(Changes.makeLink(objects, draft, path, target, now))
        )
    },
    attributes: {
      set: (path, { mode, modifiedAt }) =>
        change(`set attributes of ${path}`, [], [{ path, aspect: "stat" }], (draft) =>
          withoutValue(Changes.setAttributes(objects, draft, path, mode, modifiedAt && DateTime.toEpochMillis(modifiedAt)))
        )
    },
    perform: Request.handlers({
      ...handlers,
      RemoveTree: ({ path }) =>
        Effect.asSome(
          change(`remove ${path}`, [], [{ path, aspect: "tree" }], (draft, now) =>
            Changes.removeTree(objects, draft, path, now)
          )
        ),
      MakeMany: makeMany
    })
  }
}

/** Makes a read-only backend over one draft, which never changes. */
export const makeView = (
  objects: Objects,
  draft: Draft,
  options: { readonly name: string; readonly identity: string }
): Backend => {
  const readOnly = Effect.fail(accessDenied("readOnly"))
  const { explore, handlers, list, open, readLink, stat } = makeReader(
    objects,
    Effect.succeed(draft),
    () => Effect.void,
    () => draft,
    options.identity
  )
  return {
    info: { name: backendName, root: options.name, caseSensitive: true, readOnly: true, confinement: "virtual" },
    rules: { permits: () => false },
    stat,
    list,
    open,
    explore,
    write: () => readOnly,
    makeDirectory: () => readOnly,
    remove: () => readOnly,
    rename: () => readOnly,
    links: { read: readLink, make: () => readOnly },
    attributes: { set: () => readOnly },
    perform: Request.handlers(handlers)
  }
}
