/** Applies the rules to snapshots, whose views are confined like the present tree. */
import * as Effect from "effect/Effect"
import { SnapshotError } from "../../history/errors.ts"
import type { Operations, RestoreOptions } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import type { Change } from "../../history/tree.ts"
import * as FsPath from "../../model/FsPath.ts"
import { confined } from "./confined.ts"
import type { Rules } from "./rules.ts"

const refusedError = (operation: string): SnapshotError =>
  new SnapshotError({
    operation,
    reason: "refused",
    detail: "a policy forbids snapshots unless every file may be read and changed"
  })

/** Tests whether a change is visible. The path may be a file or a directory, so both must be readable. */
const isVisible =
  (rules: Rules) =>
  ({ path }: Change): boolean =>
    rules.asFile("read", path) && rules.asDirectory("read", path)

const isPermitted =
  (rules: Rules) =>
  ({ _tag, path }: Change): boolean => {
    const access = _tag === "Removed" ? "delete" : "write"
    return rules.asFile(access, path) && rules.asDirectory(access, path)
  }

const isAddressable = ({ path }: Change): boolean => FsPath.parse(path) === path

/** Returns the paths of permitted changes that contain no forbidden change. */
const separablePaths = (changes: ReadonlyArray<Change>, rules: Rules): ReadonlyArray<FsPath.FsPath> => {
  const permits = isPermitted(rules)
  const refused = changes.filter((change) => !permits(change) || !isAddressable(change))
  return changes
    .filter((change) => permits(change) && isAddressable(change))
    .map(({ path }) => path)
    .filter((path) => !refused.some((other) => FsPath.isWithin(path, other.path)))
}

const restorePermitted = (self: Operations, rules: Rules, snapshot: FilesystemSnapshot, options: RestoreOptions) =>
  Effect.gen(function* () {
    const { changes } = yield* self.restore(snapshot, { ...options, dryRun: true })
    const paths = separablePaths(changes, rules)
    if (paths.length === 0) return { changes: [] }
    const restored = yield* self.restore(snapshot, { ...options, paths })
    return { ...restored, changes: restored.changes.filter(isVisible(rules)) }
  })

export const confinedSnapshots = (self: Operations, rules: Rules): Operations => ({
  ...self,
  restore: (snapshot, options = {}) =>
    rules.restricts("write") || rules.restricts("delete")
      ? restorePermitted(self, rules, snapshot, options)
      : self.restore(snapshot, options),
  diff: (from, to) => Effect.map(self.diff(from, to), (changes) => changes.filter(isVisible(rules))),
  view: (snapshot) => Effect.map(self.view(snapshot), (past) => confined(past, rules)),
  fork: () => Effect.fail(refusedError("fork")),
  merge: () => Effect.fail(refusedError("merge"))
})
