import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Snapshots } from "../../../history/Snapshots.ts"
import { findCandidates, isSafety, latest, makeShortIds } from "../../../history/snapshots/choice.ts"
import type { Operations } from "../../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../../history/snapshots/value.ts"
import { checkpointTag } from "../../checkpointTag.ts"
import { type Call, refused, type ToolFailure } from "../../definition.ts"
import { plural } from "../../text/words.ts"

const noSnapshots = refused("No snapshots are kept here.", "Provide a layer of fs-algebra's Snapshots to the tools.")

export const requireSnapshots: Effect.Effect<Operations, ToolFailure> = Effect.flatMap(
  Effect.serviceOption(Snapshots),
  Option.match({ onNone: () => Effect.fail<ToolFailure>(noSnapshots), onSome: Effect.succeed })
)

const maxExamples = 5

const describeSnapshot = (all: ReadonlyArray<FilesystemSnapshot>, { tag, ...snapshot }: FilesystemSnapshot): string =>
  `${makeShortIds(all)({ tag, ...snapshot } as FilesystemSnapshot)}${tag === undefined ? "" : ` (${tag})`}`

const refuseChoice = (
  all: ReadonlyArray<FilesystemSnapshot>,
  found: ReadonlyArray<FilesystemSnapshot>,
  text: string
): ToolFailure => {
  if (all.every(isSafety) && found.length === 0) {
    return refused("There is no snapshot yet.", "Call snapshot to keep the current files.")
  }
  const quoted = JSON.stringify(text.slice(0, 100))
  if (found.length === 0) return refused(`There is no snapshot ${quoted}.`, "Call snapshots to list them.")
  const examples = found.slice(-maxExamples).map((snapshot) => describeSnapshot(all, snapshot))
  return refused(`${quoted} matches ${plural(found.length, "snapshot")}.`, `Give more of the id: ${examples.join(", ")}.`)
}

export const snapshotParameter = Schema.String.annotate({
  description: 'Beginning of its id, a tag, or "latest". Default: latest'
})

/**
 * Finds a snapshot by a unique beginning of its id, by a unique tag, or by "latest". The call's own checkpoint does not count.
 */
export const chooseSnapshot = Effect.fnUntraced(function* (
  snapshots: Operations,
  text: string | undefined,
  { callId, tool }: Call
): Effect.fn.Return<FilesystemSnapshot, ToolFailure> {
  const ownTag = checkpointTag(tool, callId)
  const all = (yield* snapshots.list).filter(({ tag }) => tag !== ownTag)
  const wanted = text?.trim() ?? latest
  const found = findCandidates(all, wanted)
  return found.length === 1 ? found[0]! : yield* Effect.fail(refuseChoice(all, found, wanted))
})
