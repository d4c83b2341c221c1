import type { Retention } from "./options.ts"
import type { StoredSnapshot } from "./strategy.ts"

/**
 * Returns the expired snapshots, never the newest one.
 *
 * `all` must be in the order of creation; `now` is in milliseconds since 1970. `spared` counts but never expires.
 */
export const findExpired = (
  all: ReadonlyArray<StoredSnapshot>,
  retention: Retention | undefined,
  now: number,
  spared?: StoredSnapshot
): ReadonlyArray<StoredSnapshot> => {
  const { maxAge, maxSnapshots } = retention ?? {}
  const excessCount = maxSnapshots === undefined ? 0 : all.length - Math.max(1, maxSnapshots)
  return all
    .slice(0, -1)
    .filter(
      ({ snapshot }, i) => i < excessCount || (maxAge !== undefined && now - snapshot.createdAt.epochMilliseconds > maxAge)
    )
    .filter(({ snapshot }) => snapshot.snapshotId !== spared?.snapshot.snapshotId)
}
