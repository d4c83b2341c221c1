import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { countSigned, hunks as hunksBetween, withFileHeader } from "../../engine/diff.ts"
import { wholeAt } from "../../engine/read.ts"
import { makeShortIds } from "../../history/snapshots/value.ts"
import type { Change as TreeChange } from "../../history/tree.ts"
import { type Fault, type FsError, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { runInSlices } from "../../runtime/steps.ts"
import { define, optional } from "../definition.ts"
import { diffText, excerptDiff, withDiff } from "../text/fit.ts"
import { textOf } from "../text/mediaType.ts"
import { Change, changed, changeLine, changeOf, chooseSnapshot, requireSnapshots, snapshotParameter } from "./snapshots.ts"

const maxBytes = 1024 * 1024

type FileSide = { readonly isFile: boolean; readonly text: string | undefined }

interface Patch {
  readonly isFile: boolean
  readonly lines?: { readonly added: number; readonly removed: number }
  readonly diff: string
}

const sideAt = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<FileSide, Fault> {
  const stat = yield* port.stat(path)
  if (stat?.kind === "symlink") {
    return { isFile: true, text: port.links === undefined ? undefined : yield* port.links.read(path) }
  }
  if (stat?.kind !== "file") return { isFile: false, text: "" }
  if (stat.sizeBytes > maxBytes) return { isFile: true, text: undefined }
  return { isFile: true, text: textOf((yield* wholeAt(port, path, maxBytes)).bytes) }
})

const missingSide: FileSide = { isFile: false, text: "" }

const patchOf = (path: FsPath, before: Backend | undefined, after: Backend | undefined): Effect.Effect<Patch, FsError> =>
  Effect.gen(function* () {
    const oldSide = before === undefined ? missingSide : yield* sideAt(before, path)
    const newSide = after === undefined ? missingSide : yield* sideAt(after, path)
    const isFile = oldSide.isFile || newSide.isFile
    if (!isFile) return { isFile, diff: "" }
    if (oldSide.text === undefined || newSide.text === undefined) return { isFile, diff: "" }
    const [from, to] = [oldSide.text, newSide.text]
    return yield* runInSlices(function* () {
      const hunks = yield* hunksBetween(from, [{ start: 0, end: from.length, text: to }])
      const lines = { added: yield* countSigned(hunks, "+"), removed: yield* countSigned(hunks, "-") }
      return { isFile, lines, diff: withFileHeader(path, hunks, { isNew: before === undefined, isGone: after === undefined }) }
    })
  }).pipe(Effect.mapError((fault) => promote(fault, "diff", path)))

const maxComparedFiles = 500
const maxDiffLength = 1024 * 1024

const Difference = Schema.Struct({
  ...Change.fields,
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

const renderDiff = (compared: ReadonlyArray<ComparedChange>): string =>
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
  description: "Show the changes since a snapshot, or between two snapshots: the changed files, and a unified diff.",
  parameters: Schema.Struct({
    snapshot_id: Schema.optionalKey(snapshotParameter),
    to: optional(Schema.String, "Later snapshot. Default: the files as they are now")
  }),
  value: Schema.Struct({
    snapshot_id: Schema.String,
    to: Schema.optionalKey(Schema.String),
    changes: Schema.Array(Difference),
    files_changed: Schema.Int,
    lines_added: Schema.Int,
    lines_removed: Schema.Int,
    /**
     * The unified diff of text files, with three lines of context. The diff has at most 48,000 characters and ends with a whole
     * line. Lines over 2,000 characters are cut.
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
    const text = renderDiff(compared)
    const head = `${changed(counts)} from ${short(from)} to ${to === undefined ? "the current files" : short(to)}`
    const shown = yield* runInSlices(() => excerptDiff(text))
    return {
      message: withDiff([head, ...differences.map(describeDifference)], shown, call.settings, "; read_file shows whole files"),
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
