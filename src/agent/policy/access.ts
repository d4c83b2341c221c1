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

const pastParticiples: Readonly<Record<Touch["access"], string>> = { read: "read", write: "written", delete: "deleted" }

const refusalOf = ({ access, path }: Touch): Refused =>
  refused(
    `${path === FsPath.root ? "The root, with everything below it," : JSON.stringify(path)} may not be ${pastParticiples[access]}: a policy forbids it.`,
    "Go on without it, or ask the user; another tool will not reach it either."
  )

/**
 * Tests whether a touch is allowed. A call that writes to or deletes at the root, such as a program in a sandbox, may touch any
 * path, so it needs unrestricted access. Snapshot tools are confined separately.
 */
const permits = (rules: Rules.Rules, { past }: Invocation, { access, path }: Touch): boolean =>
  path === FsPath.root && access !== "read"
    ? past !== undefined || !rules.restricts(access)
    : rules.asFile(access, path) || rules.asDirectory(access, path)

/**
 * Restricts tools to paths that are allowed and not denied; a denial wins. The globs are those of `glob`: a name without a
 * slash matches at any depth, and a match includes everything below it. On a case-insensitive filesystem the globs ignore case
 * too.
 *
 * - A path that may not be read seems not to exist: no listing, search or suggestion shows it, and it can be neither changed nor
 *   removed. Directories on the way to readable paths are visible, with nothing else in them.
 * - A link is judged by its own name and by its target. Hard links of one file are judged each by its own name.
 * - A directory that contains anything undeletable can be neither removed nor moved.
 * - Programs in a sandbox are refused, because nothing could confine them. A restore of a snapshot omits paths that may not be
 *   changed.
 *
 * Throws a RangeError for an invalid or misleading glob, because that is a programming error. Misleading are a comma or `|`
 * outside braces, a backslash before a letter, a leading `!`, and segments that no path has. Invalid are unclosed or empty
 * braces or brackets and unknown character classes.
 *
 * @example
 * ```ts
 * const policy = Policy.access({ deny: { write: ["notes/**"] } })
 * const handlers = FilesystemToolkit.layer.pipe(Layer.provide(policy))
 * const tools = yield* Effect.provide(FilesystemToolkit.toolkit, handlers)
 * yield* Stream.runDrain(yield* tools.handle("write_file", { path: "notes/new.md", content: "one" }))
 * yield* fs.exists("notes/new.md") // => false
 * ```
 * @category policies
 * @since 0.1.0
 */
export const access = (options: Rules.AccessOptions): Layer.Layer<never> => {
  const caseSensitiveRules = Rules.make(options, true)
  const caseInsensitiveRules = Rules.make(options, false)
  const rulesOf = ({ port }: Algebra): Rules.Rules => (port.info.caseSensitive ? caseSensitiveRules : caseInsensitiveRules)
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
      const refusedTouch = invocation.touches.find((touch) => !permits(rules, invocation, touch))
      return refusedTouch === undefined ? Effect.void : Effect.fail(refusalOf(refusedTouch))
    }
  }
  return layer(policy)
}
