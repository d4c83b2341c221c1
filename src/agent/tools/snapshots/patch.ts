import * as Effect from "effect/Effect"
import { unified } from "../../../engine/diff.ts"
import { wholeAt } from "../../../engine/read.ts"
import { decode } from "../../../engine/text.ts"
import { type Fault, type FsError, promote } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import type { Backend } from "../../../port/Backend.ts"
import { inSlices, perItem, type Steps } from "../../../runtime/steps.ts"

const maxBytes = 1024 * 1024

/** The text of a file or of a link; `undefined` if it cannot be shown as lines. */
type Side = { readonly isFile: boolean; readonly text: string | undefined }

export interface Patch {
  readonly isFile: boolean
  readonly lines?: { readonly added: number; readonly removed: number }
  readonly diff: string
}

const textOf = (bytes: Uint8Array): string | undefined => {
  const text = bytes.includes(0) ? undefined : decode(bytes)
  return typeof text === "string" ? text : undefined
}

const sideAt = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<Side, Fault> {
  const stat = yield* port.stat(path)
  if (stat?.kind === "symlink") {
    return { isFile: true, text: port.links === undefined ? undefined : yield* port.links.read(path) }
  }
  if (stat?.kind !== "file") return { isFile: false, text: "" }
  if (stat.sizeBytes > maxBytes) return { isFile: true, text: undefined }
  return { isFile: true, text: textOf((yield* wholeAt(port, path, maxBytes)).bytes) }
})

const nothing: Side = { isFile: false, text: "" }

/** Counts the lines with this sign, without the header line of the name. */
const countLines = function* (diff: string, sign: string): Steps<number> {
  let count = 0
  for (let at = diff.indexOf(`\n${sign}`); at !== -1; at = diff.indexOf(`\n${sign}`, at + 1)) {
    if (++count % 1024 === 0) yield 1024 * perItem
  }
  // The first header line has no LF before it and was not counted.
  return sign === "+" ? Math.max(0, count - 1) : count
}

/** Names /dev/null for a missing side, so that `git apply` creates or removes the file. */
const named = (diff: string, isNew: boolean, isGone: boolean): string => {
  if (diff === "") return ""
  const first = diff.indexOf("\n")
  const second = diff.indexOf("\n", first + 1)
  const from = isNew ? "--- /dev/null" : diff.slice(0, first)
  const to = isGone ? "+++ /dev/null" : diff.slice(first + 1, second)
  return `${from}\n${to}${diff.slice(second)}`
}

export const patchOf = (path: FsPath, before: Backend | undefined, after: Backend | undefined): Effect.Effect<Patch, FsError> =>
  Effect.gen(function* () {
    const old = before === undefined ? nothing : yield* sideAt(before, path)
    const now = after === undefined ? nothing : yield* sideAt(after, path)
    const isFile = old.isFile || now.isFile
    if (!isFile) return { isFile, diff: "" }
    if (old.text === undefined || now.text === undefined) return { isFile, diff: "" }
    const [from, to] = [old.text, now.text]
    return yield* inSlices(function* () {
      const diff = yield* unified(path, from, [{ start: 0, end: from.length, text: to }])
      const lines = { added: yield* countLines(diff, "+"), removed: yield* countLines(diff, "-") }
      return { isFile, lines, diff: named(diff, before === undefined, after === undefined) }
    })
  }).pipe(Effect.mapError((fault) => promote(fault, "diff", path)))
