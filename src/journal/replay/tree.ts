import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { JournalError } from "../errors.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import * as Beginning from "./beginning.ts"
import { build } from "./build.ts"
import type { ContentError } from "./contents.ts"
import { load } from "./load.ts"

export const tree = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  options: {
    readonly until?: number | undefined
    readonly base?: Algebra | undefined
    readonly caseInsensitive?: boolean | undefined
  } = {}
): Effect.fn.Return<Algebra, ContentError | JournalError> {
  const { base, caseInsensitive, until } = options
  const caseSensitive = base?.port.info.caseSensitive ?? caseInsensitive !== true
  // Without a base, later entries are read too, because they reveal the state of the beginning.
  const { targetWorld: past } = yield* load(journal, {
    caseSensitive,
    position: until,
    includesLaterEntries: base === undefined
  })
  return yield* build(past, Beginning.beginningSource("tree", journal.contents, past.beginning), base)
})
