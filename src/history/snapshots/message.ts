/**
 * The commit message of a snapshot: a line for people and a line of JSON. A message in another form belongs to no
 * snapshot.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Label } from "./strategy.ts"

export interface Said {
  readonly id: string
  readonly root: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly label: Label
  readonly files: number
  readonly bytes: number
  /** The number of directories, without the root. */
  readonly directories: number
  /** The number of FIFOs, sockets and devices, which are not captured. */
  readonly skipped: number
  readonly previous?: string | undefined
  readonly excludesGit?: boolean | undefined
}

const Text = Schema.optionalKey(Schema.String)
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Line = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    id: Schema.String,
    root: Schema.String,
    createdAt: Count,
    files: Count,
    bytes: Count,
    directories: Count,
    skipped: Count,
    previous: Text,
    excludesGit: Schema.optionalKey(Schema.Boolean),
    tag: Text,
    tool: Text,
    callId: Text
  })
)

const decodeLine = Schema.decodeUnknownOption(Line)

export const encode = ({ label, ...said }: Said): string =>
  `${label.tag ?? "snapshot"}\n\n${JSON.stringify({ version: 1, ...said, ...label })}\n`

export const decode = (message: string): Said | undefined => {
  const line = message.trimEnd().split("\n").at(-1) ?? ""
  const said = Option.getOrUndefined(decodeLine(line))
  if (said === undefined || said.createdAt > 8.64e15) return undefined
  const { callId, tag, tool, version: _, ...rest } = said
  return {
    ...rest,
    label: { ...(tag !== undefined && { tag }), ...(tool !== undefined && { tool }), ...(callId !== undefined && { callId }) }
  }
}
