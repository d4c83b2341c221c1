import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import * as Replay from "../../journal/Replay.ts"
import { list } from "../answer.ts"
import { shownPath } from "../changes.ts"
import * as humanise from "../humanise.ts"
import type { Look } from "../look.ts"
import { withProgress } from "../progress.ts"
import { reading } from "./file.ts"
import { pathsOf } from "./filters.ts"
import { checked } from "./positions.ts"

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

const said = (look: Look, state: Shown["actual"]): string => {
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

const differenceOf = (look: Look, { actual, expected }: Shown): string => {
  if (actual.kind === "nothing") return `${look.red("removed")}, was ${said(look, expected)}`
  if (expected.kind === "nothing") return `${look.green("added")}, ${said(look, actual)}`
  // An unknown kind without mode means that the journal knows nothing of the entry.
  if (expected.kind === "unknown" && expected.mode === undefined) return `not in the journal, ${said(look, actual)}`
  return `${look.yellow("changed")}, was ${said(look, expected)}, is ${said(look, actual)}`
}

const line = (look: Look, drift: Shown): string => `${look.name(shownPath(drift.path))}: ${differenceOf(look, drift)}\n`

export const drift = Effect.fnUntraced(function* (file: string, { all, paths: given, to }: DriftOptions) {
  const paths = yield* pathsOf(given)
  const fs = yield* Filesystem
  const journal = yield* reading(file)
  yield* checked(journal, to ?? 0)
  const found: ReadonlyArray<Shown> = yield* Replay.drift(journal, fs, { until: to, paths, all }).pipe(
    withProgress("Comparing")
  )
  yield* list(Drift, Stream.fromIterable(found), (look) => ({
    lines: (items: ReadonlyArray<Shown>) => items.map((item) => line(look, item)).join("")
  }))
}, Effect.scoped)
