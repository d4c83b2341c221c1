/** Which paths tools may read, write and delete: the filesystem, the past and the calls themselves are held to the same rules. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { Snapshots } from "../../history/Snapshots.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Refused, refused, type Touch } from "../definition.ts"
import { confined } from "./confined.ts"
import { confinedSnapshots } from "./confinedSnapshots.ts"
import { type Invocation, layer, type Policy } from "./core.ts"
import * as Rules from "./rules.ts"

const done: Readonly<Record<Touch["access"], string>> = { read: "read", write: "written", delete: "deleted" }

const refusalOf = ({ access, path }: Touch): Refused =>
  refused(
    `${path === FsPath.root ? "The root, with everything below it," : JSON.stringify(path)} may not be ${done[access]}: a policy forbids it.`,
    "Go on without it, or ask the user; another tool will not reach it either."
  )

/** What touches the root as a whole, as a program in a sandbox does, may touch anything; the past is confined by itself. */
const permits = (rules: Rules.Rules, { past }: Invocation, { access, path }: Touch): boolean =>
  path === FsPath.root && access !== "read"
    ? past !== undefined || !rules.restricts(access)
    : rules.asFile(access, path) || rules.asDirectory(access, path)

/**
 * Tools reach only what they are allowed to and what is not denied; denying wins. Globs as those of `glob` are: a name without a slash
 * stands at any depth, and what a glob names goes with all that is below it. Where the filesystem does not tell case apart, neither
 * do they.
 *
 * - What may not be read is as if it were not there: no listing, search or suggestion shows it, and it can be neither changed nor
 *   removed. Directories on the way to what may be read can be seen, with nothing else in them.
 * - A link is judged by its own name and by where it leads. Two names of one file that are no links cannot be told to be one.
 * - A directory that holds anything that may not be deleted is neither removed nor moved.
 * - Programs in a sandbox are refused, since nothing could confine them; restoring a snapshot leaves out what may not be changed.
 *
 * A glob that is none, or that may not mean what it looks like, is a mistake in the program: a RangeError. Such are a comma or `|` outside
 * braces, braces or brackets that are not closed or choose nothing, classes that there are not, a backslash before a letter, `!` in front,
 * and segments that no path has.
 *
 * @since 0.1.0
 */
export const access = (options: Rules.AccessOptions): Layer.Layer<never> => {
  const strict = Rules.make(options, true)
  const lenient = Rules.make(options, false)
  const rulesOf = ({ port }: Algebra): Rules.Rules => (port.info.caseSensitive ? strict : lenient)
  const views = new WeakMap<Algebra, Algebra>()
  const policy: Policy = {
    name: "access",
    filesystem: (self) => {
      const view = views.get(self) ?? confined(self, rulesOf(self))
      views.set(self, view)
      return view
    },
    services: (services, view) => {
      const snapshots = Context.getOrUndefined(services, Snapshots)
      return snapshots === undefined
        ? services
        : (Context.add(services, Snapshots, confinedSnapshots(snapshots, rulesOf(view))) as Context.Context<never>)
    },
    before: (invocation) => {
      const rules = rulesOf(invocation.filesystem)
      const refusing = invocation.touches.find((touch) => !permits(rules, invocation, touch))
      return refusing === undefined ? Effect.void : Effect.fail(refusalOf(refusing))
    }
  }
  return layer(policy)
}
