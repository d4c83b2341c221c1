/**
 * Follows symbolic links on this side, in the combined tree of all leaves, as for links that lead out of a mount. A leaf that
 * serves a part of the tree would follow a link to files that are not visible here. The text of a link comes from the leaf and
 * is not trusted.
 */
import * as Effect from "effect/Effect"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Links as PortLinks, Seen } from "../../port/Backend.ts"
import type { Handlers } from "../../port/Request.ts"
import { FileMakeLink, FileStat as Stat } from "../FileSystemEntry.ts"
import type { Calls } from "./calls.ts"
import * as Names from "./names.ts"
import { describeLinkItself, resolutionTargetOf, type Metadata, statOf, targetOf } from "./stats.ts"

const linkRefusal: Fault = { _tag: "AccessDenied", why: "link" }

const succeedOrFail = (text: string | Fault): Effect.Effect<string, Fault> =>
  typeof text === "string" ? Effect.succeed(text) : Effect.fail(text)

export const make = ({ ask, links }: Calls): PortLinks => {
  const metadata = (path: FsPath.FsPath) => ask(Stat, { path, ...links })
  return {
    read: (path) => Effect.flatMap(metadata(path), (found) => succeedOrFail(targetOf(found))),
    follow: (path) =>
      Effect.flatMap(metadata(path), (found) =>
        found.noFollow === true ? Effect.fail(linkRefusal) : succeedOrFail(resolutionTargetOf(found))
      ),
    make: (path, target) => Effect.asVoid(ask(FileMakeLink, { path, target, ...links }))
  }
}

const lookupOf = (path: FsPath.FsPath, found: Metadata): Seen => {
  const stat: FileStat = statOf(path, describeLinkItself(found))
  const target = stat.kind === "symlink" && found.noFollow !== true ? resolutionTargetOf(found) : undefined
  return typeof target === "string" ? { stat, target } : { stat }
}

/** Tests whether the request got no answer at all. After any other fault, the caller resolves the path step by step. */
const isUnanswered = ({ _tag }: Fault): boolean => _tag === "Timeout" || _tag === "Unavailable"

/**
 * Asks for the metadata of all components of a path in one request. Declines if the leaf does not support this: an older leaf,
 * or one that has only the parent directories of other leaves at this path.
 */
export const lookUpComponents =
  ({ ask, links }: Calls): NonNullable<Handlers["Look"]> =>
  ({ path }) =>
    Effect.matchEffect(ask(Stat, { path: Names.toLeafPath(path), ...links, way: true }), {
      onFailure: (fault) => (isUnanswered(fault) ? Effect.fail(fault) : Effect.succeedNone),
      onSuccess: ({ way }) => {
        const names = FsPath.segments(path)
        if (way === undefined || way.length === 0 || way.length > names.length + 1) return Effect.succeedNone
        return Effect.succeedSome(way.map((found, i) => lookupOf(FsPath.fromSegments(names.slice(0, i)), found)))
      }
    })
