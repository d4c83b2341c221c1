/** What somebody has found out about a workspace, kept in the session so that the next prompt can begin with it. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Slice from "../../model/Slice.ts"
import type * as Session from "../../workspace/Session.ts"

/**
 * A summary of what is in the workspace of a section.
 *
 * @since 0.1.0
 */
export interface WorkspaceDigest {
  /** The key of the section. */
  readonly section: string
  /** Markdown. */
  readonly text: string
}

/**
 * One for each section: `session.dispatch(Section.WorkspaceDigest, { section: "workspace", text })`.
 *
 * @since 0.1.0
 */
export const WorkspaceDigest: Slice.Slice<WorkspaceDigest> = Slice.make(
  "WorkspaceDigest",
  Schema.Struct({ section: Schema.String, text: Schema.String }),
  { reduce: Slice.upsert((digest: WorkspaceDigest) => digest.section) }
)

/** Empty where there is none. */
export const textOf = (session: Session.Operations | undefined, section: string): Effect.Effect<string> =>
  session === undefined
    ? Effect.succeed("")
    : Effect.map(session.all(WorkspaceDigest), (digests) => digests.find((one) => one.section === section)?.text.trim() ?? "")
