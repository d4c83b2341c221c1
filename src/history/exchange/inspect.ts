/**
 * Inspects every entry that a transaction will remove or replace, before anything is made.
 *
 * Each entry must be as the tree says and contain nothing that the tree lacks, because such content would be lost.
 */
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { DirectoryNode, Node } from "../tree.ts"
import { isUnmovable, type EntryState, type Plan, type Step } from "./plan.ts"

const changed: Fault = { _tag: "IoError", code: "ECHANGED", detail: "it has changed since it was looked at" }

const unknownEntry = (name: string): Fault => ({
  _tag: "IoError",
  code: "ENOTEMPTY",
  detail: `it holds ${JSON.stringify(name)}, which the snapshot taken of it does not, and which would be lost`
})

const occupied: Fault = {
  _tag: "IoError",
  code: "EEXIST",
  detail: "something that no snapshot holds stands there, and would be lost"
}

export const entryStateOf = (stat: FileStat): EntryState | undefined => {
  const { kind, modifiedAt, sizeBytes } = stat
  return kind === "other" ? undefined : { kind, sizeBytes, ...(modifiedAt && { modified: modifiedAt.epochMilliseconds }) }
}

/** Tests whether an entry is unchanged; for a directory, only the kind counts. */
export const hasEntryState = (stat: FileStat, mark: EntryState): boolean =>
  stat.kind === mark.kind &&
  (mark.kind === "directory" ||
    (stat.sizeBytes === mark.sizeBytes &&
      (mark.modified === undefined || stat.modifiedAt?.epochMilliseconds === mark.modified)))

const matchesNode = (stat: FileStat, node: Node): boolean =>
  stat.kind === node.kind && (node.kind !== "file" || node.sizeBytes === stat.sizeBytes)

const findUnexpectedChild = (children: ReadonlyArray<Child>, known: DirectoryNode): Child | undefined =>
  children.find((child) => !TemporaryNames.isInProgress(child.name) && known.entries.get(keyOf(child))?.kind !== child.kind)

const inspectWhole = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  known: DirectoryNode
): Effect.fn.Return<void, Fault> {
  const pending: Array<readonly [path: FsPath.FsPath, known: DirectoryNode]> = [[top, known]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, known] = next
    const children = yield* locate(path, port.list(path))
    const unexpectedChild = findUnexpectedChild(children, known)
    if (unexpectedChild !== undefined) return yield* Effect.fail(located(unknownEntry(unexpectedChild.name), path))
    for (const child of children) {
      const inside = known.entries.get(keyOf(child))
      if (inside?.kind === "directory") pending.push([FsPath.join(path, keyOf(child)), inside])
    }
  }
})

const inspectStep = Effect.fnUntraced(function* (port: Backend, step: Step): Effect.fn.Return<void, Fault> {
  const { before, path } = step
  const stat = yield* locate(path, port.stat(path))
  if (before === undefined) {
    if (stat !== undefined && !step.replacesOtherSpelling) return yield* Effect.fail(located(occupied, path))
    return
  }
  if (stat === undefined || !matchesNode(stat, before)) return yield* Effect.fail(located(changed, path))
  const mark = entryStateOf(stat)
  if (mark !== undefined) step.was = mark
  if (before.kind !== "directory") return
  if (port.attributes !== undefined && isUnmovable(stat.mode)) step.opens = stat.mode
  yield* inspectWhole(port, path, before)
})

/** Inspects the entries of the steps, and records their state in `was` and `opens`. */
export const inspect = (port: Backend, { steps }: Plan): Effect.Effect<void, Fault> =>
  Effect.forEach(steps, (step) => inspectStep(port, step), { discard: true })
