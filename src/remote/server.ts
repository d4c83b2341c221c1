/** Answers the requests of remote filesystems with the operations of one filesystem. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Algebra, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { hunksOf } from "../engine/diff.ts"
import type { FileStat } from "../model/Entry.ts"
import { accessDenied, invalidPath, ioError, limitExceeded, unavailable, unsupported } from "../model/Fault.ts"
import { type Fault, type FsError, InvalidArgument, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, type LimitsShape, standard, unlimited } from "../model/Limits.ts"
import { type Backend, type Child, follow, type Handle } from "../port/Backend.ts"
import * as Request from "../port/Request.ts"
import { BringingBack, TakingBack } from "../port/Rules.ts"
import { randomUUID } from "../runtime/node.ts"
import { maxReadBytes, withBudgets } from "./budget.ts"
import * as Changes from "./changes.ts"
import { checkMatches, lengthOfMatch, lengthOfPath, resultParts, skipsOf, split, streamParts } from "./parts.ts"
import {
  type CallLimits,
  FilesystemRpcs,
  type GlobPart,
  type GrepPart,
  type Info,
  maxContentBytes,
  maxPartEntries,
  version,
  type WalkPart,
  type WireStat
} from "./protocol.ts"
import * as Uploads from "./uploads.ts"

/**
 * The maximum number of concurrent requests of all clients that stream, keep a file open, stage a write, watch or hold a claim.
 */
const maxHeld = 1000

/** The weight of a content stream in `maxHeld`. A part of its content may wait in memory for a slow client. */
const contentWeight = 8

const maxKeys = 100_000

/** A set of at most `maxKeys` strings, which forgets the oldest. */
class Recent {
  readonly #values = new Set<string>()
  add(value: string): void {
    if (this.#values.size >= maxKeys) this.#values.delete(this.#values.values().next().value!)
    this.#values.add(value)
  }
  has(value: string): boolean {
    return this.#values.has(value)
  }
  /** Forgets a path and everything below it. With `to`, replaces this path with `to`. */
  move(from: FsPath.FsPath, to?: FsPath.FsPath): void {
    for (const value of [...this.#values] as Array<FsPath.FsPath>) {
      if (!FsPath.isWithin(from, value)) continue
      this.#values.delete(value)
      if (to !== undefined) this.add(FsPath.below(to, FsPath.relative(from, value)))
    }
  }
}

const withoutPath = ({ path: _, ...stat }: FileStat): WireStat => stat

const handleGone: Fault = unavailable("the connection was lost while the file was read; try again")

const defectFault: Fault = ioError("the server failed; its log has the reason")

const infoOf = ({ info, links, attributes, perform, rules, watch }: Backend, instance: string): Info => {
  const permits = rules?.permits
  const relative = links?.relative
  return {
    version,
    instance,
    name: info.name,
    root: info.root,
    caseSensitive: info.caseSensitive,
    readOnly: info.readOnly,
    confinement: info.confinement,
    mayWrite: !info.readOnly && permits?.("write") !== false,
    mayDelete: !info.readOnly && permits?.("delete") !== false,
    ...(rules?.policy !== undefined && { policy: rules.policy }),
    ...(rules?.symlinks !== undefined && { symlinks: rules.symlinks }),
    ...(rules?.preservePermissions !== undefined && { preservePermissions: rules.preservePermissions }),
    ...(rules?.decidesModeOfCopies !== undefined && { decidesModeOfCopies: rules.decidesModeOfCopies }),
    hasLinks: links !== undefined,
    hasAttributes: attributes !== undefined,
    canWatch: watch !== undefined,
    copiesTrees: perform?.tags.has("CopyTree") === true,
    absoluteRoots: [info.root, "/"].filter((path) => relative?.("x" as FsPath.FsPath, path) !== undefined)
  }
}

/**
 * Returns the filesystem for whole changes, which never follows a symlink. A change through a symlink fails, and the client
 * then derives the change. So a view of a subdirectory on the client stays confined.
 */
const withoutLinks = (port: Backend): Algebra =>
  makeAlgebra({
    ...port,
    links: undefined,
    explore: undefined,
    calls: undefined,
    perform: Request.only(port.perform, new Set<Request.Tag>(["RemoveTree"]))
  })

/** Returns the limits of a call: the smaller of the client's limit and the server's limit. */
const lowerLimits = (base: LimitsShape, limits: CallLimits = {}): LimitsShape => {
  const lowered: Record<string, number> = {}
  for (const [name, asked] of Object.entries<number | undefined>(limits)) {
    lowered[name] = Math.min(asked ?? Infinity, base[name as keyof LimitsShape] ?? Infinity)
  }
  return { ...base, ...lowered }
}

/** The maximum number of bytes of a code point in UTF-8. */
const maxBytesOfCodePoint = 4

/**
 * Returns the maximum number of bytes of one write of the port, which does not know whether the bytes are text. As on every
 * filesystem, a stream is unlimited unless the limits restrict it.
 */
const maxWrittenOf = ({ maxFileSize, maxStreamBytes }: LimitsShape): number =>
  Math.max(maxBytesOfCodePoint * maxFileSize, maxStreamBytes ?? (maxFileSize < standard.maxFileSize ? maxFileSize : Infinity))

type Flags = { readonly takingBack?: boolean; readonly bringingBack?: boolean }

/** The resources that the filesystems of one server hold for their clients. The limits apply to all of them together. */
export interface Shared {
  held: number
  readonly long: Changes.LongAnswers
}

export const makeShared = (): Shared => ({ held: 0, long: Changes.makeLongAnswers() })

/** Returns the answers to the requests. `around` wraps each change. */
export const handlers = (
  fs: Algebra,
  scope: Scope.Scope,
  base: LimitsShape,
  around?: Changes.Around,
  shared: Shared = makeShared()
) => {
  const { port } = fs
  const instance = randomUUID()
  const whole = withoutLinks(port)
  const changes = Changes.make(scope, around, shared.long)
  const uploads = Uploads.make(scope)
  const handles = new Map<string, Handle>()
  /** The segments that listings have shown and that no caller can write. */
  const keys = new Recent()
  /** The entries that clients have created. A client may remove these entries again when its call fails. */
  const created = new Recent()

  const limitsOf = (limits: CallLimits | undefined): LimitsShape => lowerLimits(base, limits)
  const maxWritten = maxWrittenOf(base)
  const checkWritten = (bytes: number): Effect.Effect<void, Fault> =>
    bytes > maxWritten ? Effect.fail(limitExceeded("maxFileSize", maxWritten, bytes)) : Effect.void

  const checkPath = (path: string): FsPath.FsPath | Fault => {
    if (FsPath.parse(path) === path) return path as FsPath.FsPath
    const isSegment = (name: string): boolean => keys.has(name) || (name !== "." && FsPath.parse(name) === name)
    return path.split("/").every(isSegment) ? (path as FsPath.FsPath) : invalidPath("it is not in normal form")
  }

  const catchDefects = <A, E, R>(operation: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.catchDefect(effect, (defect) =>
      Effect.andThen(Effect.logError(`fs-algebra: the remote call ${operation} failed`, defect), Effect.fail(defectFault))
    )

  const toError =
    (operation: string, path: string) =>
    (fault: Fault | FsError): Effect.Effect<never, FsError> => {
      if (fault instanceof Error) return Effect.fail(fault as FsError)
      const error = Effect.fail(promote(fault as Fault, operation, path))
      const cause = (fault as Fault)["cause"]
      return cause === undefined ? error : Effect.andThen(Effect.logDebug(`fs-algebra: ${operation} failed`, cause), error)
    }

  /** Runs an operation of the algebra. */
  const run = <A, E extends FsError>(
    operation: string,
    { limits, path = "." }: { readonly limits?: CallLimits; readonly path?: string },
    effect: Effect.Effect<A, E>
  ): Effect.Effect<A, FsError> =>
    Effect.catch(catchDefects(operation, Effect.provideService(effect, Limits, limitsOf(limits))), toError(operation, path))

  const runStream = <A, E extends FsError>(
    { limits }: { readonly limits?: CallLimits },
    stream: Stream.Stream<A, E>
  ): Stream.Stream<A, E> => Stream.provideService(stream, Limits, limitsOf(limits))

  const runChange = <A, E extends FsError>(
    operation: string,
    payload: { readonly id: string; readonly limits?: CallLimits; readonly path?: string },
    effect: Effect.Effect<A, E>
  ): Effect.Effect<A, FsError> => changes.run(payload.id, run(operation, payload, effect))

  /** Runs an operation of the port. An empty path means that the operation has no path. */
  const onPort = <A, R = never>(
    operation: string,
    path: string,
    body: (path: FsPath.FsPath) => Effect.Effect<A, Fault, R>
  ): Effect.Effect<A, FsError, R> => {
    const checked = path === "" ? FsPath.root : checkPath(path)
    return Effect.catch(
      typeof checked === "string"
        ? catchDefects(
            operation,
            Effect.suspend(() => body(checked))
          )
        : Effect.fail(checked),
      toError(operation, path)
    )
  }

  const withFlags = <A, E, R>(path: string, flags: Flags, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const restoring = flags.bringingBack === true ? Effect.provideService(effect, BringingBack, true) : effect
    return flags.takingBack === true && created.has(path) ? Effect.provideService(restoring, TakingBack, true) : restoring
  }

  /** Checks the rules again that an honest client has already checked. */
  const refusal = (action: "write" | "delete", path: FsPath.FsPath, isTakingBack: boolean): Fault | undefined => {
    const { info, rules } = port
    if (info.readOnly) return accessDenied("readOnly")
    if (action === "delete" && rules?.pinned?.(path) === true) return accessDenied("root")
    if (isTakingBack) return undefined
    if (rules?.permits?.(action, path) === false) return accessDenied("readOnly")
    return action === "delete" ? rules?.keeps?.(path) : undefined
  }

  const changePort = <A>(
    operation: string,
    { id, path, ...flags }: Flags & { readonly id: string; readonly path: string },
    body: (path: FsPath.FsPath) => Effect.Effect<A, Fault>,
    action: "write" | "delete" = "write",
    to?: string
  ): Effect.Effect<A, FsError> => {
    const checked = (path: FsPath.FsPath): Effect.Effect<A, Fault> => {
      const isTakingBack = flags.takingBack === true && created.has(path)
      const fault = refusal(action, path, isTakingBack)
      if (fault !== undefined) return Effect.fail(fault)
      // Forget the created entry, because no client may remove an entry that another program creates later with the same name.
      return isTakingBack
        ? Effect.tap(body(path), (answer) =>
            Effect.sync(() => {
              if (answer !== null) created.move(path, to as FsPath.FsPath | undefined)
            })
          )
        : body(path)
    }
    return changes.run(id, withFlags(path, flags, onPort(operation, path, checked)))
  }

  /** Runs a whole change. The answer of a failed change is null, and the client derives the failure. */
  const changeWhole = <A, B>(
    { id, path, ...flags }: Flags & { readonly id: string; readonly path: string },
    effect: Effect.Effect<A, FsError>,
    toAnswer: (answer: A) => B
  ): Effect.Effect<B | null, FsError> =>
    changes.run(
      id,
      Effect.matchEager(withFlags(path, flags, catchDefects("change", Effect.provideService(effect, Limits, unlimited))), {
        onFailure: () => null,
        onSuccess: toAnswer
      })
    )

  const noteCreated = <A, E, R>(path: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tap(effect, () => Effect.sync(() => created.add(path)))

  const childOf = (child: Child) => {
    if (child.key !== undefined) keys.add(child.key)
    return child
  }

  const readWhole = (
    path: FsPath.FsPath,
    maxBytes: number
  ): Effect.Effect<{ stat: WireStat; bytes: Uint8Array } | null, Fault> => {
    const most = Math.min(maxBytes, maxContentBytes)
    const opened = Effect.scoped(
      Effect.flatMap(port.open(path), (handle): Effect.Effect<{ stat: WireStat; bytes: Uint8Array } | null, Fault> => {
        const { sizeBytes } = handle.stat
        return sizeBytes > most
          ? Effect.succeed(null)
          : Effect.map(handle.read(0, sizeBytes), (bytes) =>
              bytes.length === sizeBytes ? { stat: withoutPath(handle.stat), bytes } : null
            )
      })
    )
    const perform = Request.performing(port, "Read")
    return perform === undefined
      ? opened
      : Effect.flatMap(perform({ _tag: "Read", path, maxBytes: most }), (found) =>
          Option.isNone(found) ? opened : Effect.succeed({ stat: withoutPath(found.value.stat), bytes: found.value.bytes })
        )
  }

  const look = Effect.fnUntraced(function* (path: FsPath.FsPath) {
    const perform = Request.performing(port, "Look")
    const answer = perform === undefined ? Option.none() : yield* perform({ _tag: "Look", path })
    if (Option.isSome(answer)) {
      return answer.value.map(({ stat, target }) => ({ stat: withoutPath(stat), ...(target !== undefined && { target }) }))
    }
    const out: Array<{ readonly stat: WireStat; readonly target?: string }> = []
    let at = FsPath.root
    for (const name of [undefined, ...FsPath.segments(path)]) {
      if (name !== undefined) at = FsPath.join(at, name)
      const stat = yield* port.stat(at)
      if (stat === undefined) break
      const target =
        stat.kind === "symlink" && port.links !== undefined ? yield* Effect.option(follow(port.links, at)) : Option.none()
      out.push({ stat: withoutPath(stat), ...(Option.isSome(target) && { target: target.value }) })
      if (stat.kind !== "directory") break
    }
    return out
  })

  const tooMany = promote(unavailable("the server holds too many files for its clients; try again later"), "open", "")
  /** Counts a stream towards `maxHeld` while the stream runs. */
  const counted = <A, E, R>(stream: Effect.Effect<Stream.Stream<A, E, R>, E, R | Scope.Scope>, weight = 1) =>
    Stream.unwrap(
      Effect.andThen(
        Effect.acquireRelease(
          Effect.suspend(() =>
            shared.held + weight > maxHeld ? Effect.fail(tooMany) : Effect.sync(() => (shared.held += weight))
          ),
          () => Effect.sync(() => (shared.held -= weight))
        ),
        stream
      )
    )
  /** Streams one value, and holds the resources of `acquire` until the stream is interrupted. */
  const hold = <A, E>(acquire: Effect.Effect<A, E, Scope.Scope>): Stream.Stream<A, E | FsError> =>
    counted<A, E, never>(Effect.map(acquire, (value) => Stream.concat(Stream.succeed(value), Stream.never)))

  const findHandle = (id: string): Effect.Effect<Handle, Fault> => {
    const handle = handles.get(id)
    return handle === undefined ? Effect.fail(handleGone) : Effect.succeed(handle)
  }

  const regExpOf = (
    operation: string,
    path: string | undefined,
    pattern: string | { readonly source: string; readonly flags: string }
  ): Effect.Effect<string | RegExp, InvalidArgument> =>
    typeof pattern === "string"
      ? Effect.succeed(pattern)
      : Effect.try({
          try: () => new RegExp(pattern.source, pattern.flags),
          catch: (cause) =>
            new InvalidArgument({ operation, path: path ?? ".", argument: "pattern", detail: (cause as Error).message })
        })

  const readLimits = (limits: CallLimits | undefined): CallLimits => ({
    ...limits,
    maxReadBytes: Math.min(limits?.maxReadBytes ?? base.maxReadBytes, maxReadBytes)
  })

  const answers = FilesystemRpcs.of({
    exists: (payload) => run("exists", payload, fs.exists(payload.path)),
    stat: (payload) => run("stat", payload, fs.stat(payload.path)),
    lstat: (payload) => run("lstat", payload, fs.lstat(payload.path)),
    realPath: (payload) => run("realPath", payload, fs.realPath(payload.path)),
    list: (payload) =>
      Stream.unwrap(
        Effect.map(run("list", payload, fs.list(payload.path)), (entries) =>
          Stream.rechunk(Stream.fromIterable(split(entries, lengthOfPath)), 1)
        )
      ),
    walk: ({ options, path, skips: isWanted, ...payload }) => {
      const skips = skipsOf(isWanted)
      const entries = fs.walk(path, { ...options, ...skips.options })
      return streamParts(runStream(payload, entries), lengthOfPath, skips, (entries, skips): WalkPart => ({ entries, skips }))
    },
    glob: ({ options, pattern, skips: isWanted, ...payload }) => {
      const skips = skipsOf(isWanted)
      const found = run("glob", { ...payload, ...options }, fs.glob(pattern, { ...options, ...skips.options }))
      return Stream.unwrap(
        Effect.map(found, ({ matches, ...end }) =>
          resultParts(matches, lengthOfPath, skips, (matches, skips, isLast): GlobPart =>
            isLast ? { matches, skips, end } : { matches, skips }
          )
        )
      )
    },
    globStream: ({ options, pattern, skips: isWanted, ...payload }) => {
      const skips = skipsOf(isWanted)
      const found = fs.globStream(pattern, { ...options, ...skips.options })
      return streamParts(runStream(payload, found), lengthOfPath, skips, (matches, skips): GlobPart => ({ matches, skips }))
    },
    grep: ({ options, pattern, skips: isWanted, ...payload }) => {
      const skips = skipsOf(isWanted)
      const found = Effect.flatMap(regExpOf("grep", options?.path, pattern), (pattern) =>
        fs.grep(pattern, { ...options, ...skips.options })
      )
      return Stream.unwrap(
        run(
          "grep",
          { ...payload, ...options },
          Effect.tap(found, ({ matches }) => checkMatches("grep", matches))
        ).pipe(
          Effect.map(({ matches, ...end }) =>
            resultParts(matches, lengthOfMatch, skips, (matches, skips, isLast): GrepPart =>
              isLast ? { matches, skips, end } : { matches, skips }
            )
          )
        )
      )
    },
    grepStream: ({ options, pattern, skips: isWanted, ...payload }) => {
      const skips = skipsOf(isWanted)
      const found = Stream.unwrap(
        Effect.map(regExpOf("grepStream", options?.path, pattern), (pattern) =>
          fs.grepStream(pattern, { ...options, ...skips.options })
        )
      )
      const checked = Stream.mapArrayEffect(found, (matches) => Effect.as(checkMatches("grepStream", matches), matches))
      return streamParts(runStream(payload, checked), lengthOfMatch, skips, (matches, skips): GrepPart => ({ matches, skips }))
    },
    read: ({ limits, path, ...options }) => run("read", { path, limits: readLimits(limits) }, fs.read(path, options)),
    readString: ({ encoding, limits, path }) =>
      run("readString", { path, limits: readLimits(limits) }, fs.readString(path, encoding)),
    readBytes: ({ limits, path, ...options }) =>
      run("readBytes", { path, limits: readLimits(limits) }, fs.readBytes(path, options)),
    version: (payload) => run("version", payload, fs.version(payload.path)),
    stream: ({ chunkSize, limits, path, ...options }) =>
      runStream(
        { ...(limits && { limits }) },
        fs.stream(path, { ...options, ...(chunkSize !== undefined && { chunkSize: Math.min(chunkSize, maxContentBytes) }) })
      ).pipe(Stream.rechunk(1)),
    lines: ({ path, ...payload }) =>
      Stream.flattenIterable(
        Stream.map(
          Stream.mapArray(runStream(payload, fs.lines(path)), (lines) => [lines] as const),
          (lines) => split(lines, (line) => line.length + 8)
        )
      ).pipe(Stream.rechunk(1)),
    write: ({ content, options, ...payload }) => runChange("write", payload, fs.write(payload.path, content, options)),
    writeBytes: ({ content, options, ...payload }) =>
      runChange("writeBytes", payload, fs.writeBytes(payload.path, content, options)),
    edit: ({ edits, id, limits, path, ...options }) =>
      runChange("edit", { id, path, ...(limits && { limits }) }, fs.edit(path, edits, options)),
    delete: ({ id, limits, path, ...options }) =>
      runChange("delete", { id, path, ...(limits && { limits }) }, fs.delete(path, options)),
    mkdir: ({ id, limits, path, ...options }) =>
      runChange("mkdir", { id, path, ...(limits && { limits }) }, fs.mkdir(path, options)),
    copy: ({ from, id, limits, to, ...options }) =>
      runChange("copy", { id, path: from, ...(limits && { limits }) }, fs.copy(from, to, options)),
    move: ({ from, id, limits, to, ...options }) =>
      runChange("move", { id, path: from, ...(limits && { limits }) }, fs.move(from, to, options)),
    readLink: (payload) => run("readLink", payload, fs.readLink(payload.path)),
    symlink: ({ target, ...payload }) => runChange("symlink", payload, fs.symlink(payload.path, target)),
    setAttributes: ({ id, limits, path, ...attributes }) =>
      runChange("setAttributes", { id, path, ...(limits && { limits }) }, fs.setAttributes(path, attributes)),
    watch: ({ path, ...payload }) =>
      Stream.mapArray(runStream(payload, fs.watch(path)), (events) => [events] as const).pipe(Stream.rechunk(1)),

    "port.info": () => Effect.sync(() => infoOf(port, instance)),
    "port.stat": ({ path }) =>
      onPort("stat", path, (path) => Effect.map(port.stat(path), (stat) => (stat === undefined ? null : withoutPath(stat)))),
    "port.list": ({ path }) =>
      onPort("list", path, (path) =>
        Effect.map(port.list(path), (children) => (children.length > maxPartEntries ? null : children.map(childOf)))
      ),
    "port.listAll": ({ path }) =>
      Stream.unwrap(
        onPort("list", path, (path) =>
          Effect.map(port.list(path), (children) =>
            Stream.rechunk(Stream.fromIterable(split(children.map(childOf), ({ name }) => 2 * name.length + 80)), 1)
          )
        )
      ),
    "port.open": ({ handle: id, path }) =>
      hold(
        onPort("open", path, (path) =>
          Effect.flatMap(port.open(path), (handle) =>
            Effect.as(
              Effect.acquireRelease(
                Effect.sync(() => handles.set(id, handle)),
                () => Effect.sync(() => handles.delete(id))
              ),
              { stat: withoutPath(handle.stat) }
            )
          )
        )
      ),
    "port.readAt": ({ handle, length, offset }) =>
      onPort("read", "", () =>
        Effect.flatMap(findHandle(handle), ({ read }) => read(Math.max(0, offset), Math.min(length, maxContentBytes)))
      ),
    "port.read": ({ maxBytes, path }) => onPort("read", path, (path) => readWhole(path, maxBytes)),
    "port.readMany": ({ maxBytes, paths }) => {
      let total = 0
      return Effect.forEach(paths, (path) =>
        total >= maxContentBytes
          ? Effect.succeed(null)
          : Effect.map(
              Effect.orElseSucceed(
                onPort("read", path, (path) => readWhole(path, Math.min(maxBytes, maxContentBytes - total))),
                () => null
              ),
              (found) => {
                total += found?.bytes.length ?? 0
                return found
              }
            )
      )
    },
    "port.look": ({ path }) => onPort("stat", path, look),
    "port.readLink": ({ follow: isFollowed, path }) =>
      onPort("readLink", path, (path) =>
        port.links === undefined
          ? Effect.fail(unsupported("symbolic links"))
          : isFollowed
            ? follow(port.links, path)
            : port.links.read(path)
      ),
    "port.watch": ({ path }) =>
      Stream.unwrap(
        onPort("watch", path, (path) =>
          port.watch === undefined
            ? Effect.fail(unsupported("watching"))
            : Effect.succeed(
                Stream.catch(
                  Stream.mapArray(port.watch(path), (events) => [events] as const),
                  (fault) => Stream.fromEffect(toError("watch", path)(fault))
                ).pipe(Stream.rechunk(1))
              )
        )
      ),
    "port.claim": ({ path }) =>
      hold(
        onPort("claim", path, (path) =>
          Effect.gen(function* () {
            const held = yield* Deferred.make<void, Fault>()
            const wait = Effect.andThen(Deferred.succeed(held, undefined), Effect.never)
            const claimed = port.locks?.claim === undefined ? wait : port.locks.claim(path, wait)
            const locked = port.locks === undefined ? claimed : port.locks.exclusive([path], claimed)
            yield* Effect.forkScoped(Effect.onExit(locked, (exit) => Deferred.done(held, exit)))
            return yield* Deferred.await(held)
          })
        )
      ),

    "port.write": ({ bytes, mode, ...payload }) => {
      const written = changePort("write", payload, (path) =>
        Effect.andThen(checkWritten(bytes.length), Effect.map(port.write<never, never>(path, bytes, mode), withoutPath))
      )
      return mode === "create" ? noteCreated(payload.path, written) : written
    },
    "port.begin": ({ mode, path, upload, ...flags }) =>
      hold(
        withFlags(
          path,
          flags,
          onPort("write", path, (path) =>
            uploads.begin(upload, (bytes, how) => port.write<never, never>(path, bytes, mode, how), maxWritten)
          )
        )
      ),
    "port.chunk": ({ bytes, index, upload }) => onPort("write", "", () => uploads.chunk(upload, index, bytes)),
    "port.end": ({ upload }) => onPort("write", "", () => uploads.end(upload)),
    "port.publish": ({ id, upload }) =>
      changePort("write", { id, path: "" }, () => Effect.map(uploads.publish(upload), withoutPath)),
    "port.makeDirectory": (payload) =>
      noteCreated(
        payload.path,
        changePort("mkdir", payload, (path) => port.makeDirectory(path))
      ),
    "port.remove": (payload) => changePort("delete", payload, (path) => port.remove(path), "delete"),
    "port.rename": ({ replace, to, ...payload }) =>
      changePort(
        "move",
        payload,
        (path) => {
          const target = checkPath(to)
          const fault = typeof target === "string" ? refusal("write", target, false) : target
          return fault === undefined ? port.rename(path, target as FsPath.FsPath, { replace }) : Effect.fail(fault)
        },
        "delete",
        to
      ),
    "port.makeLink": ({ target, ...payload }) =>
      noteCreated(
        payload.path,
        changePort("symlink", payload, (path) =>
          port.links === undefined ? Effect.fail(unsupported("symbolic links")) : port.links.make(path, target)
        )
      ),
    "port.setAttributes": ({ isCopy, mode, modifiedAt, ...payload }) =>
      changePort("setAttributes", payload, (path) =>
        port.attributes === undefined
          ? Effect.fail(unsupported("attributes"))
          : port.attributes.set(path, { mode, modifiedAt, ...(isCopy !== undefined && { isCopy }) })
      ),

    "port.writeWhole": ({ bytes, createParents, ifMatch, mode, version, ...payload }) =>
      changeWhole(
        payload,
        Effect.andThen(
          Effect.mapError(checkWritten(bytes.length), (fault) => promote(fault, "write", payload.path)),
          whole.writeBytes(payload.path, bytes, { mode, createParents, version, ...(ifMatch !== undefined && { ifMatch }) })
        ),
        (written) => (written.version === undefined ? {} : { version: written.version })
      ),
    "port.editWhole": ({ edits, ifMatch, maxFileSize, maxReadBytes, version, ...payload }) =>
      changeWhole(
        payload,
        Effect.provideService(whole.edit(payload.path, edits, { version, ...(ifMatch !== undefined && { ifMatch }) }), Limits, {
          ...unlimited,
          maxFileSize: Math.min(maxFileSize, base.maxFileSize),
          maxReadBytes: Math.min(maxReadBytes, base.maxReadBytes)
        }),
        ({ bytesWritten, diff, replacements, version }) => ({
          bytesWritten,
          replacements,
          hunks: diff === "" ? "" : hunksOf(diff),
          ...(version !== undefined && { version })
        })
      ),
    "port.removeWhole": ({ ifMatch, recursive, ...payload }) =>
      changeWhole(
        payload,
        whole.delete(payload.path, { recursive, ...(ifMatch !== undefined && { ifMatch }) }),
        (deleted) => deleted
      ),
    "port.makeDirectoryWhole": ({ existOk, parents, ...payload }) =>
      Effect.map(
        changeWhole(payload, whole.mkdir(payload.path, { parents, existOk }), () => true),
        (made) => made === true
      ),
    "port.moveWhole": ({ createParents, overwrite, to, ...payload }) =>
      createParents
        ? changeWhole(payload, whole.move(payload.path, to, { overwrite }), (moved) => moved)
        : Effect.succeed(null),
    "port.removeTree": (payload) =>
      changePort(
        "delete",
        payload,
        (path) => {
          const perform = Request.performing(port, "RemoveTree")
          // A directory that a client has created may contain entries of other programs. The client removes its own entries one
          // by one.
          return perform === undefined || refusal("delete", path, false) !== undefined
            ? Effect.succeed(null)
            : Effect.map(perform({ _tag: "RemoveTree", path }), Option.getOrNull)
        },
        "delete"
      ),
    "port.copyTree": ({ to, ...payload }) =>
      changePort("copy", payload, (path) => {
        const target = checkPath(to)
        const perform = Request.performing(port, "CopyTree")
        if (typeof target !== "string") return Effect.fail(target)
        return perform === undefined
          ? Effect.succeed(null)
          : Effect.map(perform({ _tag: "CopyTree", path, to: target }), Option.getOrNull)
      }),
    "port.cancel": ({ id }) => Effect.andThen(uploads.abort(id), changes.cancel(id))
  })
  const streaming = ["walk", "globStream", "grepStream", "stream", "lines", "watch", "port.watch", "port.listAll"] as const
  const countedAnswers = Object.fromEntries(
    streaming.map((tag) => [
      tag,
      (payload: never) =>
        counted(
          Effect.sync(() => answers[tag](payload) as Stream.Stream<unknown, FsError>),
          tag === "stream" || tag === "lines" ? contentWeight : 1
        )
    ])
  )
  return withBudgets(
    Changes.withRequests({
      ...answers,
      ...(countedAnswers as unknown as Pick<typeof answers, (typeof streaming)[number]>)
    })
  )
}
