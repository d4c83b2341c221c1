import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import * as Replay from "../../journal/Replay.ts"
import { list } from "../answer.ts"
import { formatPath } from "../changes.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
import { withProgress } from "../progress.ts"
import { openForReading } from "./file.ts"
import { pathsOf } from "./filters.ts"
import { checkPosition } from "./positions.ts"

const Mode = Schema.optionalKey(Schema.Int)

const State = Schema.Union([
  Schema.Struct({ kind: Schema.Literals(["nothing", "other"]) }),
  Schema.Struct({ kind: Schema.Literal("file"), sizeBytes: Schema.Int, version: Schema.String, mode: Mode }),
  Schema.Struct({ kind: Schema.Literals(["directory", "unknown"]), mode: Mode }),
  Schema.Struct({ kind: Schema.Literal("symlink"), target: Schema.String })
])

const Drift = Schema.Struct({ path: Schema.String, expected: State, actual: State })

type Shown = typeof Drift.Type

export interface DriftOptions {
  readonly to: number | undefined
  readonly paths: ReadonlyArray<string>
  readonly all: boolean
}

const modeOf = (state: Shown["actual"]): string =>
  "mode" in state && state.mode !== undefined ? `, mode ${state.mode.toString(8).padStart(4, "0")}` : ""

const formatState = (look: TextStyle, state: Shown["actual"]): string => {
  switch (state.kind) {
    case "file":
      return `file of ${humanise.bytes(state.sizeBytes)}, version ${state.version.slice(0, 12)}${modeOf(state)}`
    case "symlink":
      return `link to ${look.name(state.target)}`
    case "other":
      return "FIFO, socket or device"
    case "unknown":
      return `entry of unknown kind${modeOf(state)}`
    default:
      return `${state.kind}${modeOf(state)}`
  }
}

const formatDifference = (look: TextStyle, { actual, expected }: Shown): string => {
  if (actual.kind === "nothing") return `${look.red("removed")}, was ${formatState(look, expected)}`
  if (expected.kind === "nothing") return `${look.green("added")}, ${formatState(look, actual)}`
  // An unknown kind without mode means that the journal knows nothing of the entry.
  if (expected.kind === "unknown" && expected.mode === undefined) return `not in the journal, ${formatState(look, actual)}`
  return `${look.yellow("changed")}, was ${formatState(look, expected)}, is ${formatState(look, actual)}`
}

const formatDrift = (look: TextStyle, drift: Shown): string =>
  `${look.name(formatPath(drift.path))}: ${formatDifference(look, drift)}\n`

export const drift = Effect.fnUntraced(function* (file: string, { all, paths: given, to }: DriftOptions) {
  const paths = yield* pathsOf(given)
  const fs = yield* Filesystem
  const journal = yield* openForReading(file)
  yield* checkPosition(journal, to ?? 0)
  const found: ReadonlyArray<Shown> = yield* Replay.drift(journal, fs, { until: to, paths, all }).pipe(
    withProgress("Comparing")
  )
  yield* list(Drift, Stream.fromIterable(found), (look) => ({
    lines: (items: ReadonlyArray<Shown>) => items.map((item) => formatDrift(look, item)).join("")
  }))
}, Effect.scoped)
