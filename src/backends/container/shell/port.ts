/**
 * The port over a directory that can be reached only through a shell. Most primitive operations take one or two requests.
 *
 * The port follows no symlink. But a process in the container could replace a directory by a symlink between its check
 * and its use. Such a symlink can only lead to other files inside the container.
 */
import { alreadyExists, unsupported } from "../../../model/Fault.ts"
import { isRoot, undecodableTarget } from "../../faults.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Fault, located } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import type { Attributes, Backend, Links, Rules } from "../../../port/Backend.ts"
import * as Request from "../../../port/Request.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../../../port/Rules.ts"
import { makeRelativeTargets } from "../../../port/absoluteLinks.ts"
import * as Locks from "../../../runtime/locks.ts"
import { isUtf8 } from "../../../runtime/node.ts"
import * as Bulk from "./bulk.ts"
import { copyTree } from "./copy.ts"
import { changed, list, makeMany, open, requestRead, stat, whole, write } from "./operations.ts"
import type { Reply, Session } from "./session.ts"
import * as Place from "./shellRoot.ts"
import { faultOf } from "./shellRoot.ts"

interface Options extends CommonOptions {
  readonly session: Session
  readonly root: string
  readonly name: string
  readonly symlinks?: Rules["symlinks"]
  readonly preservePermissions?: boolean | undefined
}

const fineTimesUnsupported = unsupported("times with fractions of a second, which the `touch` of this container rejects")

const linksOf = (place: Place.ShellRoot, given: string): Links => ({
  read: (path) =>
    Effect.flatMap(requestRead(place, "readlink_", path), ({ output }) =>
      isUtf8(output) ? Effect.succeed(output.toString()) : Effect.fail(undecodableTarget)
    ),
  relative: makeRelativeTargets(() => [Buffer.from(place.directory).toString(), given]),
  make: (path, target) =>
    path === root ? Effect.fail(alreadyExists) : Effect.asVoid(changed(place, "symlink", [path], [target]))
})

/** Formats milliseconds as decimal seconds. Formats the fraction separately, because a quotient would be rounded. */
const toSeconds = (millis: number): string => {
  const whole = Math.floor(Math.abs(millis) / 1000)
  const rest = String(Math.abs(millis) % 1000).padStart(3, "0")
  return `${millis < 0 ? "-" : ""}${whole}${rest === "000" ? "" : `.${rest}`}`
}

const attributesOf = (place: Place.ShellRoot): Attributes => {
  const chmod = (path: FsPath, mode: number) => changed(place, "chmod_", [path], [mode.toString(8)])
  const touch = (path: FsPath, millis: number) =>
    Effect.mapError(changed(place, "touch_", [path], [toSeconds(millis)]), (fault) =>
      /invalid date/i.test(String(fault["cause"])) ? fineTimesUnsupported : fault
    )
  return {
    set: (path, { mode, modifiedAt }) =>
      Effect.andThen(
        mode === undefined ? Effect.void : chmod(path, mode),
        modifiedAt === undefined ? Effect.void : Effect.asVoid(touch(path, modifiedAt.epochMilliseconds))
      )
  }
}

const failedPathOf = ({ errors }: Reply): string | undefined => /'\.\/([^'\\\n]+)':/.exec(errors)?.[1]

const removeTree = (place: Place.ShellRoot, path: FsPath) =>
  Effect.gen(function* () {
    const name = Place.nameOf(path)
    if (Place.isFault(name)) return yield* Effect.fail(name)
    const reply = yield* place.sendRequest({ call: "rmtree", arguments: [name], repeats: false })
    if (reply.status !== 0) return yield* Effect.fail(located(faultOf(reply), failedPathOf(reply) ?? path))
    const directories = reply.output.indexOf("\n")
    return { directories, deleted: reply.output.length - directories - 1 }
  })

const backend = (place: Place.ShellRoot, options: Options): Backend => {
  const rules: Rules = { ...fromOptions(options), symlinks: options.symlinks, preservePermissions: options.preservePermissions }
  const removesLeftovers = rules.permits?.("delete") !== false
  const listed: Backend["list"] = (path) => list(place, path, removesLeftovers)

  const rename: Backend["rename"] = (from, to, { replace }) => {
    if (from === root || to === root) return Effect.fail(isRoot)
    const once = Effect.asVoid(changed(place, "rename", [from, to], [replace ? "1" : "0"]))
    return Effect.catch(once, (fault) =>
      // A directory that contains only leftovers counts as empty.
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
    links: linksOf(place, options.root),
    attributes: attributesOf(place),
    rules,
    locks: Locks.make({ caseSensitive: true }),
    explore: Bulk.explore({ place, list: listed, caseSensitive: true }),
    perform: Request.handlers({
      ...Bulk.handlers(place),
      Read: ({ maxBytes, path }) => Effect.map(whole(place, path, maxBytes), Option.fromUndefinedOr),
      RemoveTree: ({ path }) => (path === root ? Effect.fail(isRoot) : Effect.asSome(removeTree(place, path))),
      CopyTree: copyTree(place),
      MakeMany: makeMany(place)
    })
  }
}

/**
 * Creates the port of a directory inside the container. Fails with NotFound, NotADirectory, AccessDenied or
 * Unavailable.
 */
export const make = (options: Options): Effect.Effect<Backend, Fault> =>
  Effect.map(Place.make(options.session, options.root), (place) => enforce(backend(place, options)))
