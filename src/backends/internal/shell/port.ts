/**
 * The port over a directory that only a shell can reach: each primitive is a request or two of a session.
 *
 * It follows no link, but between a look and what is done by it lie microseconds, in which a process inside could exchange a directory
 * for a link: what it could lead to is inside too.
 */
import * as Effect from "effect/Effect"
import { isUtf8 } from "../../../runtime/node.ts"
import { type Fault, located } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import type { Attributes, Backend, Links, Rules } from "../../../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../../../port/Rules.ts"
import * as Locks from "../../../runtime/locks.ts"
import * as Bulk from "./bulk.ts"
import { faultOf } from "./faults.ts"
import { list } from "./listing.ts"
import * as Place from "./place.ts"
import { looked, open, stat, whole } from "./reading.ts"
import type { Reply, Session } from "./session.ts"
import { changed, write } from "./writing.ts"

export interface Options extends CommonOptions {
  readonly session: Session
  /** Absolute, inside. It must be a directory. */
  readonly root: string
  readonly name: string
  readonly symlinks?: Rules["symlinks"]
  readonly preservePermissions?: boolean | undefined
}

const isRoot: Fault = { _tag: "AccessDenied", why: "root" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }
const undecodable: Fault = { _tag: "InvalidPath", detail: "the text of a link on this path is not UTF-8" }
const tooFine: Fault = { _tag: "Unsupported", feature: "times finer than a second with the touch of this container" }

const linksOf = (place: Place.Place): Links => ({
  read: (path) =>
    Effect.flatMap(looked(place, "readlink_", path), ({ output }) =>
      isUtf8(output) ? Effect.succeed(output.toString()) : Effect.fail(undecodable)
    ),
  make: (path, target) =>
    path === root ? Effect.fail(alreadyExists) : Effect.asVoid(changed(place, "symlink", [path], [target]))
})

/** Exact: text, since a division would round. */
const toSeconds = (millis: number): string => {
  const whole = Math.floor(Math.abs(millis) / 1000)
  const rest = String(Math.abs(millis) % 1000).padStart(3, "0")
  return `${millis < 0 ? "-" : ""}${whole}${rest === "000" ? "" : `.${rest}`}`
}

const attributesOf = (place: Place.Place): Attributes => {
  const chmod = (path: FsPath, mode: number) => changed(place, "chmod_", [path], [mode.toString(8)])
  const touch = (path: FsPath, millis: number) =>
    Effect.mapError(changed(place, "touch_", [path], [toSeconds(millis)]), (fault) =>
      /invalid date/i.test(String(fault["cause"])) ? tooFine : fault
    )
  return {
    set: (path, { mode, modifiedAt }) =>
      Effect.andThen(
        mode === undefined ? Effect.void : chmod(path, mode),
        modifiedAt === undefined ? Effect.void : Effect.asVoid(touch(path, modifiedAt.epochMilliseconds))
      )
  }
}

/** What could not be removed, where the tool's words tell it without doubt. */
const atFault = ({ errors }: Reply): string | undefined => /'\.\/([^'\\\n]+)':/.exec(errors)?.[1]

const removeTree = (place: Place.Place, path: FsPath) =>
  Effect.gen(function* () {
    const name = Place.nameOf(path)
    if (Place.isFault(name)) return yield* Effect.fail(name)
    const reply = yield* place.ask({ call: "rmtree", arguments: [name], repeats: false })
    if (reply.status !== 0) return yield* Effect.fail(located(faultOf(reply), atFault(reply) ?? path))
    const directories = reply.output.indexOf("\n")
    return { directories, deleted: reply.output.length - directories - 1 }
  })

const backend = (place: Place.Place, options: Options): Backend => {
  const rules: Rules = { ...fromOptions(options), symlinks: options.symlinks, preservePermissions: options.preservePermissions }
  const sweeps = rules.permits?.("delete") !== false
  const listed: Backend["list"] = (path) => list(place, path, sweeps)

  const rename: Backend["rename"] = (from, to, { replace }) => {
    if (from === root || to === root) return Effect.fail(isRoot)
    const once = Effect.asVoid(changed(place, "rename", [from, to], [replace ? "1" : "0"]))
    return Effect.catch(once, (fault) =>
      // What killed writers have left does not fill a directory.
      fault._tag === "DirectoryNotEmpty" ? Effect.flatMap(listed(to), () => once) : Effect.fail(fault)
    )
  }

  return {
    info: {
      name: options.name,
      root: options.root,
      caseSensitive: true,
      readOnly: isReadOnly(rules),
      confinement: "best-effort"
    },
    stat: (path) => stat(place, path),
    list: listed,
    open: (path) => open(place, path),
    write: write(place),
    makeDirectory: (path) => (path === root ? Effect.fail(alreadyExists) : Effect.asVoid(changed(place, "mkdir_", [path]))),
    remove: (path) => (path === root ? Effect.fail(isRoot) : Effect.asVoid(changed(place, "remove", [path]))),
    rename,
    links: linksOf(place),
    attributes: attributesOf(place),
    rules,
    locks: Locks.make({ caseSensitive: true }),
    accelerations: {
      ...Bulk.accelerations({ place, list: listed, caseSensitive: true }),
      read: (path, maxBytes) => whole(place, path, maxBytes),
      removeTree: (path) => (path === root ? Effect.fail(isRoot) : removeTree(place, path))
    }
  }
}

/** The filesystem below a directory inside. Fails with NotFound, NotADirectory, AccessDenied and Unavailable for the root. */
export const make = (options: Options): Effect.Effect<Backend, Fault> =>
  Effect.map(Place.make(options.session, options.root), (place) => enforce(backend(place, options)))
