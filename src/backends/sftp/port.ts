/** The seven primitive operations on a directory of an SSH server. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import {
  alreadyExists,
  directoryNotEmpty,
  invalidArgument,
  ioError,
  notADirectory,
  notAFile,
  notFound,
  unsupported
} from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, isWithin, root } from "../../model/FsPath.ts"
import { makeRelativeTargets } from "../../port/absoluteLinks.ts"
import type { Attributes as AttributesPort, Backend, Child, Handle, Rules } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { parallelExplore } from "../../port/parallelExplorer.ts"
import { readAhead } from "../../port/readAhead.ts"
import { isReadOnly } from "../../port/Rules.ts"
import { make as makeLocks } from "../../runtime/locks.ts"
import { isUtf8 } from "../../runtime/node.ts"
import {
  fileClosed,
  intoItself,
  isRoot,
  kindFault,
  linkMode,
  notALink,
  notFoundBelowFile,
  rootWriteFault,
  undecodableTarget
} from "../faults.ts"
import { below, childOf, fromBytes } from "../posix/place.ts"
import * as Calls from "./calls.ts"
import {
  clearLeftovers,
  faultOf,
  isLeftover,
  kindOf,
  lookAlong,
  lookAlongAll,
  onRefused,
  pathOf,
  pathsAlong,
  type Place,
  placeOf,
  refuse,
  type Site,
  toStat
} from "./place.ts"
import { removeTree } from "./removeTree.ts"
import { Lost, Refused, type Session } from "./session.ts"
import { type Attributes, type Listed, OpenFlag } from "./wire.ts"
import { append, noAtomicReplacement, replaceFile } from "./write.ts"

export interface PortSettings {
  readonly site: Site
  readonly rules: Rules
  readonly shownRoot: string
  readonly bestEffort: ReadonlyArray<string>
}

const changedWhileOpened: Fault = ioError("the file keeps changing while it is opened; try again", "EAGAIN")
const lostWhileRead: Fault = ioError("the connection was lost while the file was read; read it again", "ESTALE")
const notMoved: Fault = ioError(
  "the server reported success but did not move the entry; the two names may be hard links of one file",
  "EIO"
)
const noLinks: Fault = unsupported("creation of links on servers without the extension posix-rename@openssh.com")

/** The maximum time that the protocol can express, in seconds since 1970. */
const maxSeconds = 0xffff_ffff

/** The maximum number of times that a file is opened again because another program has replaced it. */
const maxOpenings = 4

/** The maximum number of bytes that a stream reads ahead. ssh2 receives at most 2 MiB in a round trip. */
const maxReadAheadBytes = 4 * 1024 * 1024

/** The number of entries whose attributes are read in one round trip. */
const maxLooks = 64

/** The number of files that are read, and of directories that a walk lists, at the same time. */
const concurrentReads = 32
const concurrentLists = 16

export const makePort = (settings: PortSettings): Backend => {
  const { rules, site } = settings
  const { link } = site

  const run = <A, E, R>(use: (session: Session) => Effect.Effect<A, E | Refused | Lost, R>) =>
    toFaults(link.run(use)) as Effect.Effect<A, Exclude<E, Refused | Lost> | Fault, R>

  /** Runs an operation for which a path through a file or a link does not exist. Such a path fails with NotFound. */
  const reading = <A, R>(use: (session: Session) => Effect.Effect<A, Calls.Failure, R>): Effect.Effect<A, Fault, R> =>
    Effect.mapError(run<A, Calls.Failure, R>(use), notFoundBelowFile)

  const stat: Backend["stat"] = (path) =>
    Effect.catch(
      reading((session) => Effect.map(placeOf(session, site, path), ({ found }) => found && toStat(path, found))),
      (fault) => (fault._tag === "NotFound" ? Effect.succeed(undefined) : Effect.fail(fault))
    )

  const childrenOf = (session: Session, at: string | Buffer, listed: ReadonlyArray<Listed>) =>
    Effect.gen(function* () {
      const unknown = listed.filter(({ attributes }) => attributes.mode === undefined)
      const looked = new Map<Listed, Attributes | undefined>()
      if (unknown.length > 0) {
        const paths = unknown.map(({ name }) => below(at, segmentOf(name)))
        for (let from = 0; from < paths.length; from += maxLooks) {
          const answers = yield* Calls.lookAll(session, paths.slice(from, from + maxLooks))
          for (const [nth, answer] of answers.entries()) looked.set(unknown[from + nth]!, yield* answer)
        }
      }
      const out = new Map<string, Child>()
      for (const one of listed) {
        const attributes = looked.has(one) ? looked.get(one) : one.attributes
        if (attributes === undefined) continue
        const text = one.name.toString()
        if (site.mayRemoveLeftovers && isLeftover(site, text, attributes)) {
          link.discard(below(at, text))
          continue
        }
        const kind = kindOf(attributes)
        const child = childOf(fromBytes(one.name), kind)
        out.set(child.key ?? child.name, kind === "file" ? { ...child, sizeBytes: attributes.size ?? 0 } : child)
      }
      return [...out.values()]
    })

  /** Fails unless the path is a directory that no link leads to. */
  const checkDirectory = (session: Session, path: FsPath): Effect.Effect<void, Calls.Failure> =>
    Effect.matchEffect(placeOf(session, site, path), {
      onFailure: (failure) => Effect.fail(failure._tag === "NotADirectory" ? notFound : failure),
      onSuccess: ({ found }) =>
        found === undefined ? Effect.fail(notFound) : kindOf(found) === "directory" ? Effect.void : Effect.fail(notADirectory)
    })

  // Opening a directory has no effects. So it is opened before it is known that no link leads to it, to save a round trip.
  const list: Backend["list"] = (path) =>
    run((session) =>
      Effect.flatMap(pathOf(site, path), (at) =>
        Effect.flatMap(Calls.list(session, at, site.maxEntries, checkDirectory(session, path)), (listed) =>
          childrenOf(session, at, listed)
        )
      )
    )

  const fileAt = (session: Session, path: FsPath): Effect.Effect<Place & { readonly found: Attributes }, Calls.Failure> =>
    Effect.flatMap(placeOf(session, site, path), ({ at, found }) =>
      found === undefined
        ? Effect.fail(notFound)
        : kindOf(found) === "file"
          ? Effect.succeed({ at, found })
          : Effect.fail(notAFile)
    )

  const handleOf = (session: Session, open: Calls.Open, stat: Handle["stat"]): Handle => ({
    stat,
    read: (offset, length) =>
      Effect.suspend(() => {
        if (open.isClosed) return Effect.fail(fileClosed)
        // Bytes that were appended after the file was opened are not part of the handle's content.
        const rest = Math.max(0, Math.min(length, stat.sizeBytes - offset))
        if (rest === 0) return Effect.succeed(new Uint8Array())
        return Effect.mapError(Calls.read(session, open, offset, rest), (failure) =>
          failure instanceof Lost ? lostWhileRead : faultOf(failure)
        )
      })
  })

  const openAt = (session: Session, path: FsPath, left: number): Effect.Effect<Handle, Calls.Failure, Scope.Scope> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        const { at } = yield* restore(fileAt(session, path))
        const open = yield* Calls.openFile(session, at, OpenFlag.read, restore)
        yield* Scope.addFinalizer(
          scope,
          Effect.sync(() => Calls.closeQuietly(session, open))
        )
        const attributes = yield* restore(Calls.fileAttributes(session, open))
        if (kindOf(attributes) === "file") {
          return yield* readAhead(handleOf(session, open, toStat(path, attributes)), maxReadAheadBytes)
        }
        // The server follows links and opens directories. So the entry was replaced after its attributes were read.
        Calls.closeQuietly(session, open)
        return left === 0 ? yield* Effect.fail(changedWhileOpened) : yield* openAt(session, path, left - 1)
      })
    )

  const open: Backend["open"] = (path) =>
    path === root ? Effect.fail(notAFile) : reading((session) => openAt(session, path, maxOpenings))

  /** Reads a whole file whose attributes are known, in two round trips. */
  const readFound = (
    session: Session,
    path: FsPath,
    at: string | Buffer,
    found: Attributes,
    maxBytes: number
  ): Effect.Effect<Option.Option<Request.Whole>, Calls.Failure> => {
    const expected = found.size ?? 0
    if (expected > maxBytes) return Effect.succeedNone
    return Calls.withFile(session, at, OpenFlag.read, (open) =>
      Effect.gen(function* () {
        const [attributes, first] = yield* Effect.all(
          [Calls.fileAttributes(session, open), Calls.readWhole(session, open, expected)],
          { concurrency: 2 }
        )
        if (kindOf(attributes) !== "file") return yield* Effect.fail(notAFile)
        const { size = 0 } = attributes
        if (size > maxBytes) return Option.none()
        const bytes = size === expected ? first : yield* Calls.readWhole(session, open, size)
        return Option.some({ stat: toStat(path, { ...attributes, size: bytes.length }), bytes })
      })
    )
  }

  /** Reads a whole file in three round trips. */
  const readWhole = (path: FsPath, maxBytes: number): Effect.Effect<Option.Option<Request.Whole>, Fault> =>
    path === root
      ? Effect.fail(notAFile)
      : reading((session) =>
          Effect.flatMap(fileAt(session, path), ({ at, found }) => readFound(session, path, at, found, maxBytes))
        )

  /**
   * Reads many files. Reads the attributes of all files and of the directories above them in one round trip, each once. Returns
   * `undefined` for a file that cannot be read.
   */
  const readMany = (
    paths: ReadonlyArray<FsPath>,
    maxBytes: number
  ): Effect.Effect<ReadonlyArray<Request.Whole | undefined>, Fault> =>
    run((session) =>
      Effect.gen(function* () {
        const seen = yield* lookAlongAll(session, site, paths)
        const read = (path: FsPath, nth: number): Effect.Effect<Request.Whole | undefined, Calls.Failure> => {
          const place = seen[nth]
          if (place?.found === undefined || kindOf(place.found) !== "file") return Effect.succeed(undefined)
          return Effect.catch(
            Effect.map(readFound(session, path, place.at, place.found, maxBytes), Option.getOrUndefined),
            (failure) => (failure instanceof Lost ? Effect.fail(failure) : Effect.succeed(undefined))
          )
        }
        return yield* Effect.forEach(paths, read, { concurrency: concurrentReads })
      })
    )

  const write: Backend["write"] = (path, bytes, mode, how) =>
    path === root
      ? Effect.fail(rootWriteFault(mode))
      : toFaults(mode === "append" ? append(site, path, bytes, how?.commit) : replaceFile(site, path, bytes, mode, how?.commit))

  const makeDirectory: Backend["makeDirectory"] = (path) =>
    path === root
      ? Effect.fail(alreadyExists)
      : run((session) =>
          Effect.gen(function* () {
            const { at, found } = yield* placeOf(session, site, path)
            if (found !== undefined) return yield* Effect.fail(alreadyExists)
            yield* onRefused(Calls.makeDirectory(session, at), (refused) => existsOr(session, at, refused))
          })
        )

  /** Fails with AlreadyExists if the path has an entry, because the server does not report this. */
  const existsOr = (session: Session, at: string | Buffer, refused: Refused): Effect.Effect<never, Calls.Failure> =>
    Effect.flatMap(Calls.look(session, at), (now) =>
      now === undefined ? refuse(session, site, refused) : Effect.fail(alreadyExists)
    )

  const removeRefused = (session: Session, at: string | Buffer, wasDirectory: boolean, refused: Refused) =>
    Effect.gen(function* () {
      const now = yield* Calls.look(session, at)
      if (now === undefined) return yield* Effect.fail(notFound)
      if (!wasDirectory || kindOf(now) !== "directory") return yield* refuse(session, site, refused)
      const listed = yield* Calls.list(session, at, site.maxEntries)
      if (listed.length === 0) return yield* refuse(session, site, refused)
      if (!(yield* clearLeftovers(session, site, at))) return yield* Effect.fail(directoryNotEmpty)
      yield* Calls.removeDirectory(session, at)
    })

  const remove: Backend["remove"] = (path) =>
    path === root
      ? Effect.fail(isRoot)
      : reading((session) =>
          Effect.gen(function* () {
            const { at, found } = yield* placeOf(session, site, path)
            if (found === undefined) return yield* Effect.fail(notFound)
            const isDirectory = kindOf(found) === "directory"
            yield* onRefused((isDirectory ? Calls.removeDirectory : Calls.removeFile)(session, at), (refused) =>
              removeRefused(session, at, isDirectory, refused)
            )
          })
        )

  /** Replaces an existing entry of the same kind. */
  const moveOver = (session: Session, from: string | Buffer, to: string | Buffer, isDirectory: boolean) =>
    Effect.gen(function* () {
      if (session.extensions.has(Calls.posixRename)) {
        const moved = Calls.renameOver(session, from, to)
        if (!isDirectory) return yield* onRefused(moved, (refused) => refuse(session, site, refused))
        return yield* onRefused(moved, (refused) =>
          Effect.gen(function* () {
            const listed = yield* Calls.list(session, to, site.maxEntries)
            if (listed.length === 0) return yield* refuse(session, site, refused)
            if (!(yield* clearLeftovers(session, site, to))) return yield* Effect.fail(directoryNotEmpty)
            yield* moved
          })
        )
      }
      if (!site.mayReplaceUnsafely) return yield* Effect.fail(noAtomicReplacement)
      yield* onRefused((isDirectory ? Calls.removeDirectory : Calls.removeFile)(session, to), (refused) =>
        removeRefused(session, to, isDirectory, refused)
      )
      yield* Calls.renameNew(session, from, to)
    })

  const rename: Backend["rename"] = (from, to, { replace }) =>
    from === root || to === root
      ? Effect.fail(isRoot)
      : run((session) =>
          Effect.gen(function* () {
            // Both paths are looked at in one round trip. A failure at the source is reported first.
            const [sourceFound, targetFound] = yield* Effect.all(
              [Effect.result(placeOf(session, site, from)), Effect.result(placeOf(session, site, to))],
              { concurrency: 2 }
            )
            const source = yield* Effect.mapError(Effect.fromResult(sourceFound), (failure) =>
              failure._tag === "NotADirectory" ? notFound : failure
            )
            if (source.found === undefined) return yield* Effect.fail(notFound)
            const isDirectory = kindOf(source.found) === "directory"
            if (isDirectory && from !== to && isWithin(from, to)) return yield* Effect.fail(intoItself)
            const target = yield* Effect.fromResult(targetFound)
            if (target.found === undefined) {
              yield* onRefused(Calls.renameNew(session, source.at, target.at), (refused) =>
                Effect.gen(function* () {
                  if ((yield* Calls.look(session, source.at)) === undefined) return yield* Effect.fail(notFound)
                  return yield* existsOr(session, target.at, refused)
                })
              )
            } else {
              if (!replace) return yield* Effect.fail(alreadyExists)
              if (from === to) return
              const fault = kindFault(isDirectory, kindOf(target.found) === "directory")
              if (fault !== undefined) return yield* Effect.fail(fault)
              yield* moveOver(session, source.at, target.at, isDirectory)
              if (yield* isUnmoved(session, source)) return yield* Effect.fail(notMoved)
            }
          })
        )

  /**
   * Tests whether a rename did nothing. The system reports success for a rename between two hard links of one file, but does
   * nothing.
   */
  const isUnmoved = (session: Session, { at, found }: Place): Effect.Effect<boolean> =>
    Effect.match(Calls.look(session, at), {
      // The server confirmed the rename. A failure of this check must not fail the call, because the rename would be repeated.
      onFailure: () => false,
      onSuccess: (now) =>
        now !== undefined && now.modified === found?.modified && now.size === found?.size && now.mode === found?.mode
    })

  const readLink = (path: FsPath): Effect.Effect<string, Fault> =>
    path === root
      ? Effect.fail(notALink)
      : reading((session) =>
          Effect.gen(function* () {
            const { at, found } = yield* placeOf(session, site, path)
            if (found === undefined) return yield* Effect.fail(notFound)
            if (kindOf(found) !== "symlink") return yield* Effect.fail(notALink)
            return yield* targetAt(session, at)
          })
        )

  const targetAt = (session: Session, at: string | Buffer): Effect.Effect<string, Calls.Failure> =>
    Effect.flatMap(Calls.readLink(session, at), (target) =>
      isUtf8(target) ? Effect.succeed(target.toString()) : Effect.fail(undecodableTarget)
    )

  const makeLink = (path: FsPath, target: string): Effect.Effect<void, Fault> =>
    path === root
      ? Effect.fail(alreadyExists)
      : run((session) =>
          Effect.gen(function* () {
            // Other servers expect the two paths in the order of the specification, and would make a link at the path of the
            // target.
            if (!session.extensions.has(Calls.posixRename)) return yield* Effect.fail(noLinks)
            const { at, found } = yield* placeOf(session, site, path)
            if (found !== undefined) return yield* Effect.fail(alreadyExists)
            yield* onRefused(Calls.makeLink(session, at, target), (refused) => existsOr(session, at, refused))
          })
        )

  const setAttributes: AttributesPort["set"] = (path, { mode, modifiedAt }) => {
    const modified = modifiedAt && Math.floor(modifiedAt.epochMilliseconds / 1000)
    if (modified !== undefined && (modified < 0 || modified > maxSeconds)) {
      return Effect.fail(invalidArgument("modifiedAt", "SFTP can express only times from 1970 to 2106"))
    }
    return reading((session) =>
      Effect.gen(function* () {
        const { at, found } = yield* placeOf(session, site, path)
        if (found === undefined) return yield* Effect.fail(notFound)
        const isLink = kindOf(found) === "symlink"
        if (isLink && mode !== undefined) return yield* Effect.fail(linkMode)
        const special = kindOf(found) === "directory" ? (found.mode ?? 0) & 0o7000 : 0
        const values: Attributes = {
          ...(mode === undefined ? {} : { mode: mode | special }),
          ...(modified === undefined ? {} : { accessed: found.accessed ?? modified, modified })
        }
        const hasOwnCall = session.extensions.has(Calls.lsetstat)
        if (isLink && !hasOwnCall) return yield* Effect.fail(unsupported("times of links on this server"))
        const set = hasOwnCall && path !== root ? Calls.setLinkAttributes : Calls.setAttributes
        yield* onRefused(set(session, at, values), (refused) =>
          // Some systems cannot set permission bits without following links.
          isLink || set === Calls.setAttributes
            ? refuse(session, site, refused)
            : onRefused(Calls.setAttributes(session, at, values), (refused) => refuse(session, site, refused))
        )
      })
    )
  }

  /** Reads the attributes of each component of a path in one round trip. */
  const lookAt = (path: FsPath): Effect.Effect<Option.Option<ReadonlyArray<Request.Seen>>, Fault> =>
    run((session) =>
      Effect.gen(function* () {
        const seen: Array<Request.Seen> = []
        const paths = pathsAlong(site, path)
        for (const [nth, found] of (yield* lookAlong(session, site, path)).entries()) {
          if (found === undefined) break
          const here = (nth === 0 ? root : path.split("/").slice(0, nth).join("/")) as FsPath
          const target = kindOf(found) === "symlink" ? yield* targetAt(session, paths[nth]!) : undefined
          seen.push(target === undefined ? { stat: toStat(here, found) } : { stat: toStat(here, found), target })
        }
        return Option.some(seen)
      })
    )

  const info: Backend["info"] = {
    name: "Sftp",
    root: settings.shownRoot,
    caseSensitive: true,
    readOnly: isReadOnly(rules),
    confinement: "best-effort",
    bestEffort: settings.bestEffort
  }

  return {
    info,
    rules,
    locks: makeLocks(),
    stat,
    list,
    open,
    write,
    makeDirectory,
    remove,
    rename,
    links: {
      read: readLink,
      relative: makeRelativeTargets(() => (typeof site.root === "string" ? [site.root] : [])),
      make: makeLink
    },
    attributes: { set: setAttributes },
    perform: Request.handlers({
      Read: ({ maxBytes, path }) => readWhole(path, maxBytes),
      ReadMany: ({ maxBytes, paths }) => Effect.asSome(readMany(paths, maxBytes)),
      Look: ({ path }) => lookAt(path),
      RemoveTree: ({ path }) => (path === root ? Effect.fail(isRoot) : Effect.asSome(removeTree({ list, remove }, path)))
    }),
    explore: parallelExplore({ info, list }, concurrentLists)
  }
}

const segmentOf = (name: Buffer): string => {
  const child = childOf(fromBytes(name), "other")
  return child.key ?? child.name
}

/** Converts the server's refusals to faults. Other failures, such as the errors of a stream, are unchanged. */
const toFaults = <A, E, R>(effect: Effect.Effect<A, E | Refused, R>): Effect.Effect<A, Exclude<E, Refused> | Fault, R> =>
  Effect.mapError(effect, (failure) => (failure instanceof Refused ? faultOf(failure) : (failure as Exclude<E, Refused>)))
