/**
 * What a start after a crash has to know, written whole before the first change that anybody could see. How far the exchange has come
 * it need not say: that can be seen from which of the hidden entries are still there. What is read back may have been written by
 * anybody who can write in the root, so it is checked like any other input; and whatever it says is done by the port, which leads
 * nowhere else.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as FsPath from "../../model/FsPath.ts"
import type { Region } from "./places.ts"
import type { ModeChange, Move, Plan } from "./plan.ts"

export interface Journal {
  readonly regions: ReadonlyArray<Region>
  readonly steps: ReadonlyArray<Move>
  readonly modes: ReadonlyArray<ModeChange>
}

/** Names of the journal while the exchange goes on, while it is taken back, and when only the hidden entries are left to remove. */
export const names = { forward: "journal", back: "journal.back", done: "journal.done" } as const

/** The key of a name that is no text. */
const key = /^\u0000(?:[0-9a-f]{2})+$/

const isSegment = (segment: string): boolean =>
  key.test(segment) || (segment !== "." && FsPath.parse(segment) === segment && !segment.includes("/"))

const isPath = (text: string): boolean => text === FsPath.root || text.split("/").every(isSegment)

const Path = Schema.String.check(
  Schema.makeFilter((text: string) => isPath(text) || "must be a path in normal form")
) as unknown as Schema.Codec<FsPath.FsPath, string>

const Whole = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Mode = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0o777 }))
const Kind = Schema.Literals(["file", "symlink", "directory"])

const Mark = Schema.Struct({
  kind: Kind,
  sizeBytes: Schema.Number,
  modified: Schema.optionalKey(Schema.Number)
})

const Format = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    regions: Schema.Array(Schema.Struct({ path: Path, isFlat: Schema.Boolean })),
    steps: Schema.Array(
      Schema.Struct({
        path: Path,
        region: Whole,
        slot: Whole,
        next: Schema.optionalKey(Kind),
        was: Schema.optionalKey(Mark),
        keeps: Schema.Boolean,
        opens: Schema.optionalKey(Mode),
        shuts: Schema.optionalKey(Mode)
      })
    ),
    modes: Schema.Array(
      Schema.Struct({
        path: Path,
        kind: Schema.Literals(["file", "directory"]),
        was: Mode,
        becomes: Mode,
        opens: Schema.Boolean
      })
    )
  })
)

export const encode = ({ modes, regions, steps }: Plan): Uint8Array => {
  const moves = steps.map(({ after: _, before: __, isRespelt: ___, ...move }): Move => move)
  return new TextEncoder().encode(JSON.stringify({ version: 1, regions, steps: moves, modes }))
}

const decodeText = Schema.decodeUnknownResult(Format)

const isWhole = ({ modes, regions, steps }: Journal): boolean =>
  regions[0]?.path === FsPath.root &&
  !regions[0].isFlat &&
  steps.every(({ path, region }) => region < regions.length && path !== FsPath.root) &&
  modes.every(({ kind, path }) => kind === "directory" || path !== FsPath.root)

/** `undefined` for what is no journal. */
export const decode = (bytes: Uint8Array): Journal | undefined => {
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
  const decoded = decodeText(text)
  return Result.isSuccess(decoded) && isWhole(decoded.success) ? decoded.success : undefined
}
