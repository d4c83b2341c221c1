/** How a file differs, where that can be told in lines. */
import * as Effect from "effect/Effect"
import { unified } from "../../../engine/diff.ts"
import { wholeAt } from "../../../engine/read.ts"
import { decode } from "../../../engine/text.ts"
import { type Fault, type FsError, promote } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import type { Backend } from "../../../port/Backend.ts"

const maxBytes = 1024 * 1024

/** The text of a file or of a link; `undefined` for what has no lines that could be shown. */
type Side = { readonly isFile: boolean; readonly text: string | undefined }

export interface Patch {
  readonly isFile: boolean
  /** Left out where there are no lines to compare. */
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

/** Without the line of the name, which begins so too. */
const countLines = (diff: string, sign: string): number =>
  diff === "" ? 0 : diff.split("\n").filter((line) => line.startsWith(sign)).length - 1

/** What was not there, or is no more, is /dev/null: so that `git apply` makes or removes the file. */
const named = (diff: string, isNew: boolean, isGone: boolean): string => {
  if (diff === "") return ""
  const [first, second, ...rest] = diff.split("\n")
  return [isNew ? "--- /dev/null" : first, isGone ? "+++ /dev/null" : second, ...rest].join("\n")
}

/** With `undefined` for the side that has nothing there. */
export const patchOf = (path: FsPath, before: Backend | undefined, after: Backend | undefined): Effect.Effect<Patch, FsError> =>
  Effect.gen(function* () {
    const old = before === undefined ? nothing : yield* sideAt(before, path)
    const now = after === undefined ? nothing : yield* sideAt(after, path)
    const isFile = old.isFile || now.isFile
    if (!isFile) return { isFile, diff: "" }
    if (old.text === undefined || now.text === undefined) return { isFile, diff: "" }
    const diff = unified(path, old.text, [{ start: 0, end: old.text.length, text: now.text }])
    const lines = { added: countLines(diff, "+"), removed: countLines(diff, "-") }
    return { isFile, lines, diff: named(diff, before === undefined, after === undefined) }
  }).pipe(Effect.mapError((fault) => promote(fault, "diff", path)))
