import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { define } from "../../definition.ts"
import { joinFitting } from "../../text/fit.ts"
import { numberLines } from "../../text/lines.ts"
import { isViewable, mediaTypeOf } from "../../text/mediaType.ts"
import { plural } from "../../text/words.ts"
import { type Content, bytesOf, contentOf } from "./content.ts"
import { formatFacts, File, timesOf } from "./metadata.ts"

const base64LineWidth = 100

/** Splits base64 into lines; a write accepts it in that form too. */
const splitBase64 = (text: string): ReadonlyArray<string> => text.match(new RegExp(`.{1,${base64LineWidth}}`, "g")) ?? []

/** Splits a text into lines. A line break at the end starts no further line. */
const linesOf = (text: string): ReadonlyArray<string> => {
  const all = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line))
  return text === "" || text.endsWith("\n") ? all.slice(0, -1) : all
}

const bodyOf = ({ content, text }: Content): readonly [what: string, lines: ReadonlyArray<string>] => {
  if (text === undefined) return ["base64", splitBase64(content)]
  const all = linesOf(text)
  return [plural(all.length, "line"), numberLines(all)]
}

const cutMark = (count: number, of: number): string =>
  `[cut: ${count} of ${plural(of, "line")}; write what you still need into smaller files]`

export const readFile = define({
  name: "read_file",
  description: "Read a whole file, with its size, version and times. Text comes as text, anything else as base64.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the root." })
  }),
  value: Schema.Struct({
    file: File,
    /** The text, or base64 if the encoding is binary. */
    content: Schema.String
  }),
  does: "reads",
  idempotent: true,
  examples: [{ path: "notes/plan.md" }],
  touches: ({ path }, call) => Effect.map(call.path(path), (at) => [{ access: "read", path: at }]),
  handle: Effect.fnUntraced(function* ({ path }, call) {
    const at = yield* call.path(path)
    const { content: bytes, sizeBytes, version } = yield* call.filesystem.readBytes(at, { version: true })
    const stat = yield* call.filesystem.stat(at)
    const read = contentOf(bytes)
    call.memory.saw(at, version!, read.text)
    const [what, body] = bodyOf(read)
    const head = `${at} (${read.encoding}, ${formatFacts({ ...stat, sizeBytes }, version)}): ${sizeBytes === 0 ? "it is empty" : what}`
    return {
      message: joinFitting([head, ...body], call.settings, (count) => cutMark(count - 1, body.length)),
      value: {
        file: { path: at, encoding: read.encoding, size_bytes: sizeBytes, version: version!, ...timesOf(stat) },
        content: read.content
      }
    }
  }),
  images: ({ content, file }) => {
    if (file.encoding !== "binary") return []
    const type = mediaTypeOf(bytesOf(content.slice(0, 1024)) ?? new Uint8Array())?.type
    return type !== undefined && isViewable(type) ? [{ mediaType: type, base64: content }] : []
  }
})
