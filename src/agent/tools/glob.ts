import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { GlobResult } from "../../model/Entry.ts"
import { agent } from "../../model/Limits.ts"
import { define, touching } from "../definition.ts"
import { joinLines } from "../text/fit.ts"
import * as Searching from "./searching.ts"
import { formatEntry } from "./searching.ts"
import { formatCount as plural } from "../../model/words.ts"

const Value = Schema.Struct({
  matches: Schema.Array(Schema.Struct({ path: Schema.String, size_bytes: Schema.Int })),
  skipped: Searching.Skipped,
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.String)
})

const render = ({ matches, next, skipped }: GlobResult): string =>
  joinLines(
    matches.map(({ kind, path, sizeBytes }) => formatEntry({ name: path, kind, sizeBytes })),
    Searching.footer(plural(matches.length, "match", "matches"), skipped, next)
  )

const valueOf = ({ matches, next, skipped, truncated }: GlobResult): typeof Value.Type => ({
  matches: matches.map(({ path, sizeBytes = 0 }) => ({ path, size_bytes: sizeBytes })),
  skipped: Searching.skippedOf(skipped),
  truncated,
  ...(next !== undefined && { next })
})

export const glob = define({
  name: "glob",
  description:
    "Find files by name. A pattern without / matches names at any depth (*.ts), one with / is relative to path (src/**/*.ts).",
  parameters: Schema.Struct({
    pattern: Schema.String.annotate({ description: "Glob with *, **, ?, [ab], {a,b}" }),
    path: Searching.parameters.path,
    max_matches: Searching.maxMatches(agent.maxGlobMatches, "files"),
    include_ignored: Searching.parameters.include_ignored,
    after: Searching.parameters.after
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{ pattern: "*.ts" }, { pattern: "**/*.test.ts", path: "src" }],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* (params, call) {
    const { settings } = call
    const path = yield* call.path(params.path ?? "", { blank: "root" })
    const pattern = Searching.globOf(params.pattern, settings.mountPoint)
    const page = (maxMatches: number) =>
      call.filesystem.glob(pattern, {
        path,
        maxMatches,
        sizes: true,
        gitignore: params.include_ignored !== true,
        after: params.after || undefined
      })
    const sent = (found: GlobResult): string => call.sent(render(found), () => valueOf(found))
    const { maxGlobMatches } = settings.limits
    const matchLimit = Math.min(params.max_matches ?? maxGlobMatches, maxGlobMatches)
    const nextOf = ({ path }: GlobResult["matches"][number]): string => path
    const found = yield* Searching.withProgress(Searching.searchFitting<GlobResult>(matchLimit, { page, nextOf, sent }, call))
    const hint = found.matches.length === 0 ? Searching.ignoredHint(found.skipped) : ""
    return { message: `${render(found)}${hint}`, value: valueOf(found) }
  })
})
