import * as Schema from "effect/Schema"
import type { Details } from "../history/Snapshots.ts"
import { FilesystemSnapshot } from "../history/snapshots/value.ts"
import * as humanise from "./humanise.ts"

const Count = Schema.optionalKey(Schema.Int)

export const DescribedSnapshot = Schema.Struct({
  ...FilesystemSnapshot.fields,
  files: Schema.Int,
  bytes: Schema.Int,
  /** The number of FIFOs, sockets and devices, which snapshots do not hold. */
  skipped: Count,
  filesChanged: Count,
  linesAdded: Count,
  linesRemoved: Count,
  tool: Schema.optionalKey(Schema.String),
  callId: Schema.optionalKey(Schema.String)
})

export const describeSnapshot = ({ snapshot, ...details }: Details): typeof DescribedSnapshot.Type => {
  const known = Object.entries({ ...snapshot, ...details }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known) as unknown as typeof DescribedSnapshot.Type
}

/** Formats the changes as `3 files changed, +10 -2`, as far as they are known. */
export const changed = ({ filesChanged, linesAdded, linesRemoved }: Details): ReadonlyArray<string> => [
  ...(filesChanged === undefined ? [] : [`${humanise.count(filesChanged, "file")} changed`]),
  ...(linesAdded === undefined || linesRemoved === undefined
    ? []
    : [`+${humanise.whole(linesAdded)} -${humanise.whole(linesRemoved)}`])
]

export const formatNumbers = (details: Details): string => {
  const now = `${humanise.count(details.files, "file")}, ${humanise.bytes(details.bytes)}`
  const since = changed(details)
  return since.length === 0 ? now : `${now}; ${since.join(", ")}`
}
