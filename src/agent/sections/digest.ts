import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Slice from "../../model/Slice.ts"
import type * as Session from "../../workspace/Session.ts"

/**
 * A summary of the workspace of a section.
 *
 * @since 0.1.0
 */
export interface WorkspaceDigest {
  /** The key of the section. */
  readonly section: string
  /** The summary, in Markdown. */
  readonly text: string
}

/**
 * The digests of a session, one per section: `session.dispatch(Section.WorkspaceDigest, { section: "workspace", text })`.
 *
 * @since 0.1.0
 */
export const WorkspaceDigest: Slice.Slice<WorkspaceDigest> = Slice.make(
  "WorkspaceDigest",
  Schema.Struct({ section: Schema.String, text: Schema.String }),
  { reduce: Slice.upsert((digest: WorkspaceDigest) => digest.section) }
)

export const textOf = (session: Session.Operations | undefined, section: string): Effect.Effect<string> =>
  session === undefined
    ? Effect.succeed("")
    : Effect.map(session.all(WorkspaceDigest), (digests) => digests.find((one) => one.section === section)?.text.trim() ?? "")
