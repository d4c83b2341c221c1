/**
 * A backend whose operations are requests to a leaf. The result of a read does not change later, because large contents are read from the
 * content store.
 */
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath, PathPolicy } from "../../model/FsPath.ts"
import { type Attributes, type Backend, type Handle, mapPath, type WriteHow } from "../../port/Backend.ts"
import { extend } from "../../port/Request.ts"
import * as Locks from "../../runtime/locks.ts"
import { createModes } from "../entries/kinds.ts"
import { FileDelete, type FileFault, FileList, FileMakeDirectory, FileMove, FileSetAttributes } from "../FileSystemEntry.ts"
import * as Calls from "./calls.ts"
import { faultOf, faultOfRequestError, unsupported } from "./faults.ts"
import * as Links from "./links.ts"
import * as Names from "./names.ts"
import * as Pieces from "./pieces.ts"
import type { RequestClient } from "./requests.ts"
import { childOf, sizedStat } from "./stats.ts"
import * as BranchAccelerations from "./whole.ts"

export interface Options {
  readonly extended: boolean
  readonly caseSensitive: boolean
  readonly name: string
  readonly root: string
  readonly policy: PathPolicy | undefined
  readonly streamingThreshold: number
}

const notFound: Fault = { _tag: "NotFound" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }

type Mode = "create" | "replace" | "append"

/**
 * Maps NotAFile to AlreadyExists: when creating over a directory, a leaf reports a directory, and a port must report that the entry exists.
 */
const createFault = (fault: FileFault): Fault => {
  const found = faultOf(fault)
  return found._tag === "NotAFile" ? alreadyExists : found
}

export const make = (asking: RequestClient, options: Options): Backend => {
  const { caseSensitive, extended, name, policy, root, streamingThreshold } = options
  const { journal } = asking
  const links = extended ? Calls.unfollowedLinks : Calls.followedLinks
  const calls = Calls.make(asking, streamingThreshold, links)
  const { ask, stat } = calls

  const handleOf = (path: FsPath, pieces: Pieces.Pieces): Handle => {
    const read = Pieces.makeReader(journal, pieces)
    const version = Pieces.versionOf(pieces)
    return {
      stat: pieces.stat ?? sizedStat(path, pieces.size),
      read: (offset, length) => Effect.mapError(read(offset, length), faultOfRequestError),
      ...(version !== undefined && { version: Effect.succeed(version) })
    }
  }

  const write = <E, R>(
    path: FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> => {
    if (!extended) return Effect.fail(unsupported("writing without making parents"))
    return Effect.flatMap(
      calls.write(
        {
          path,
          createMode: createModes[mode],
          createParents: false,
          ...links,
          fault: mode === "create" ? createFault : undefined
        },
        bytes,
        how?.commit
      ),
      (written) =>
        written.stat === undefined
          ? Effect.flatMap(stat(path), (found) => (found === undefined ? Effect.fail(notFound) : Effect.succeed(found)))
          : Effect.succeed(written.stat)
    )
  }

  const attributes: Attributes = {
    set: (path, { isCopy, mode, modifiedAt }) =>
      Effect.asVoid(
        ask(FileSetAttributes, { path, ...links, mode, modified: modifiedAt, isCopy: isCopy === true ? isCopy : undefined })
      )
  }

  const list: Backend["list"] = (path) => Effect.map(ask(FileList, { path, ...links }), ({ entries }) => entries.map(childOf))

  const backend: Backend = {
    info: { name, root: root, caseSensitive, readOnly: false, confinement: "virtual" },
    stat,
    list,
    open: (path) => Effect.map(calls.read(path, links), (pieces) => handleOf(path, pieces)),
    write,
    makeDirectory: (path) =>
      extended
        ? Effect.asVoid(ask(FileMakeDirectory, { path, ...links, parents: false, existOk: false }))
        : Effect.fail(unsupported("making of directories")),
    remove: (path) => Effect.asVoid(ask(FileDelete, { path, ...links })),
    rename: (path, to, { replace }) =>
      extended
        ? Effect.asVoid(ask(FileMove, { path, to, ...links, createParents: false, overwrite: replace ? true : undefined }))
        : Effect.fail(unsupported("moving")),
    ...(extended && { attributes, links: Links.make(calls) }),
    // Each leaf decides by its own setting.
    rules: { policy, decidesModeOfCopies: extended },
    locks: Locks.make({ caseSensitive }),
    perform: BranchAccelerations.make({
      calls,
      journal,
      extended,
      list,
      links: extended ? Calls.refusedLinks : Calls.followedLinks
    })
  }
  const mapped = mapPath(backend, Names.toLeafPath, Names.fromLeafPath)
  return extended ? { ...mapped, perform: extend(mapped.perform, { Look: Links.lookUpComponents(calls) }) } : mapped
}
