/** Where a filesystem is no longer what its journal left. */
import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { JournalError } from "../errors.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import { differences, settle } from "./actual.ts"
import * as Beginning from "./beginning.ts"
import type { ContentError } from "./contents.ts"
import { hasPath } from "./filter.ts"
import { load } from "./load.ts"
import type { Drift } from "./values.ts"
import { root } from "../../model/FsPath.ts"

export const drift = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  { port }: Algebra,
  options: { readonly until?: number | undefined; readonly paths?: ReadonlyArray<string> | undefined } = {}
): Effect.fn.Return<ReadonlyArray<Drift>, ContentError | JournalError> {
  const { caseSensitive } = port.info
  const { now, open } = yield* load(journal, { caseSensitive, position: options.until, isFurther: false })
  const comparison = { port, source: Beginning.source("drift", journal.contents, now.beginning) }
  const world = yield* settle(comparison, now, open)
  const found = yield* differences(comparison, root, world.top)
  return found.filter(({ path }) => hasPath({ paths: options.paths }, [path]))
})
