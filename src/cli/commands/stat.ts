import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { FileStat } from "../../model/Entry.ts"
import { writeDocument } from "../answer.ts"
import { forEachPath } from "../failure.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
import { withProgress } from "../progress.ts"
import { subcommand } from "../subcommand.ts"
import * as DateTime from "effect/DateTime"

const Answer = Schema.Struct({ ...FileStat.fields, version: Schema.optionalKey(Schema.String) })

interface Answer extends FileStat {
  readonly version?: string
}

const kindNames = { file: "file", directory: "directory", symlink: "link", other: "not a file, a directory or a link" } as const

const show = (look: TextStyle, stat: Answer): string => {
  const rows: ReadonlyArray<readonly [string, string | undefined]> = [
    ["path", look.entry(stat.path, stat.kind)],
    [
      "kind",
      stat.isSymlink === true && stat.kind !== "symlink" ? `${kindNames[stat.kind]}, through a link` : kindNames[stat.kind]
    ],
    ["size", stat.isFile ? `${humanise.bytes(stat.sizeBytes)} (${humanise.whole(stat.sizeBytes)} bytes)` : undefined],
    ["mode", stat.mode === undefined ? undefined : `${humanise.mode(stat.mode)} (${stat.mode.toString(8).padStart(4, "0")})`],
    ["modified", stat.modifiedAt && DateTime.formatIso(stat.modifiedAt)],
    ["created", stat.createdAt && DateTime.formatIso(stat.createdAt)],
    ["version", stat.version]
  ]
  return rows
    .filter(([, value]) => value !== undefined)
    .map(([label, value]) => `${look.dim(label.padStart(8))}  ${value}\n`)
    .join("")
}

export const stat = subcommand(
  "stat",
  {
    formatSummary: "Show the kind, size, times and version of a path",
    description: `Kind, size, permissions, times and, of a file, its version: the SHA-256 of its bytes, which --if-match of write,
edit and rm compares, so that no change of others is overwritten.`,
    examples: [
      ["README.md", "A file"],
      ["--json README.md | jq -r .version", "Its version alone"]
    ]
  },
  { paths: flags.paths("The files or directories") },
  Effect.fnUntraced(function* ({ paths }) {
    const fs = yield* Filesystem
    yield* forEachPath(paths, (path) =>
      Effect.gen(function* () {
        const stat: FileStat = yield* fs.stat(path)
        const version = stat.isFile ? yield* fs.version(path).pipe(withProgress(`Hashing ${path}`)) : undefined
        const answer: Answer = version === undefined ? stat : { ...stat, version }
        yield* writeDocument(Answer, answer, (look) => show(look, answer))
      })
    )
  })
)
