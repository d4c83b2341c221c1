import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeShortIds } from "../../../history/snapshots/choice.ts"
import type { Change as TreeChange } from "../../../history/tree.ts"
import type { FsError } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import type { Backend } from "../../../port/Backend.ts"
import { define } from "../../definition.ts"
import { runInSlices } from "../../../runtime/steps.ts"
import { diffText, excerptDiff, withDiff } from "../../text/fit.ts"
import { chooseSnapshot, requireSnapshots, snapshotParameter } from "./choosing.ts"
import { type Patch, patchOf } from "./patch.ts"
import { Change, changed, changeLine, changeOf } from "./shown.ts"

/** The largest number of files to compare by line, and the longest text of their diffs. */
const maxComparedFiles = 500
const maxDiffLength = 1024 * 1024

const Difference = Schema.Struct({
  ...Change.fields,
  /** The numbers of lines; absent for directories, binary files and very large files. */
  lines_added: Schema.optionalKey(Schema.Int),
  lines_removed: Schema.optionalKey(Schema.Int)
})
type Difference = typeof Difference.Type

interface ComparedChange {
  readonly difference: Difference
  readonly patch: Patch | undefined
}

const compareChanges = Effect.fnUntraced(function* (
  changes: ReadonlyArray<TreeChange>,
  before: Backend,
  after: Backend
): Effect.fn.Return<ReadonlyArray<ComparedChange>, FsError> {
  return yield* Effect.forEach(
    changes,
    Effect.fnUntraced(function* (change, index): Effect.fn.Return<ComparedChange, FsError> {
      const shown = changeOf(change)
      if (index >= maxComparedFiles) return { difference: shown, patch: undefined }
      const patch = yield* patchOf(
        change.path as FsPath,
        change._tag === "Added" ? undefined : before,
        change._tag === "Removed" ? undefined : after
      )
      yield* Effect.yieldNow
      const { lines } = patch
      return { difference: { ...shown, ...(lines && { lines_added: lines.added, lines_removed: lines.removed }) }, patch }
    })
  )
})

/** Joins the diffs, without those for which there is no room. */
const textOf = (compared: ReadonlyArray<ComparedChange>): string =>
  compared.reduce((text, { patch }) => {
    const diff = patch?.diff ?? ""
    return text.length + diff.length > maxDiffLength ? text : text + diff
  }, "")

const sum = (numbers: ReadonlyArray<number | undefined>): number => numbers.reduce<number>((all, one) => all + (one ?? 0), 0)

const describeDifference = (difference: Difference): string => {
  const { lines_added: added, lines_removed: removed } = difference
  return added === undefined ? changeLine(difference) : `${changeLine(difference)} (+${added} -${removed})`
}

export const diff = define({
  name: "diff",
  description: "Show what has changed since a snapshot, or between two: files, and a unified diff.",
  parameters: Schema.Struct({
    snapshot_id: Schema.optionalKey(snapshotParameter),
    to: Schema.optionalKey(Schema.String.annotate({ description: "Later snapshot. Default: the files as they are now" }))
  }),
  value: Schema.Struct({
    snapshot_id: Schema.String,
    to: Schema.optionalKey(Schema.String),
    changes: Schema.Array(Difference),
    files_changed: Schema.Int,
    lines_added: Schema.Int,
    lines_removed: Schema.Int,
    /**
     * The unified diff of text files, with three lines of context. It has at most 48,000 characters, in whole lines; lines over
     * 2,000 characters are cut.
     */
    diff: Schema.String
  }),
  does: "reads",
  past: "shows",
  idempotent: true,
  examples: [{}, { snapshot_id: "3fa91c02", to: "tests pass" }],
  touches: () => Effect.succeed([]),
  handle: Effect.fnUntraced(function* (params, call) {
    const snapshots = yield* requireSnapshots
    const from = yield* chooseSnapshot(snapshots, params.snapshot_id, call)
    const to =
      params.to === undefined || params.to.trim() === "" ? undefined : yield* chooseSnapshot(snapshots, params.to, call)
    const changes = yield* snapshots.diff(from, to)
    const after = to === undefined ? call.filesystem : yield* snapshots.view(to)
    const compared = yield* compareChanges(changes, (yield* snapshots.view(from)).port, after.port)
    const short = makeShortIds(yield* snapshots.list)
    const differences = compared.map(({ difference }) => difference)
    const counts = {
      files_changed: compared.filter(({ patch }) => patch === undefined || patch.isFile).length,
      lines_added: sum(differences.map((one) => one.lines_added)),
      lines_removed: sum(differences.map((one) => one.lines_removed))
    }
    const text = textOf(compared)
    const head = `${changed(counts)} from ${short(from)} to ${to === undefined ? "the current files" : short(to)}`
    const shown = yield* runInSlices(() => excerptDiff(text))
    return {
      message: withDiff([head, ...differences.map(describeDifference)], shown, call.settings, "; read_file shows files whole"),
      value: {
        snapshot_id: from.snapshotId,
        ...(to !== undefined && { to: to.snapshotId }),
        changes: differences,
        ...counts,
        diff: diffText(shown)
      }
    }
  })
})
