import * as Effect from "effect/Effect"
import { countSigned, hunks as hunksBetween, named } from "../../../engine/diff.ts"
import { wholeAt } from "../../../engine/read.ts"
import { decode } from "../../../engine/text.ts"
import { type Fault, type FsError, promote } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import type { Backend } from "../../../port/Backend.ts"
import { inSlices } from "../../../runtime/steps.ts"

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

export const patchOf = (path: FsPath, before: Backend | undefined, after: Backend | undefined): Effect.Effect<Patch, FsError> =>
  Effect.gen(function* () {
    const old = before === undefined ? nothing : yield* sideAt(before, path)
    const now = after === undefined ? nothing : yield* sideAt(after, path)
    const isFile = old.isFile || now.isFile
    if (!isFile) return { isFile, diff: "" }
    if (old.text === undefined || now.text === undefined) return { isFile, diff: "" }
    const [from, to] = [old.text, now.text]
    return yield* inSlices(function* () {
      const hunks = yield* hunksBetween(from, [{ start: 0, end: from.length, text: to }])
      const lines = { added: yield* countSigned(hunks, "+"), removed: yield* countSigned(hunks, "-") }
      return { isFile, lines, diff: named(path, hunks, { isNew: before === undefined, isGone: after === undefined }) }
    })
  }).pipe(Effect.mapError((fault) => promote(fault, "diff", path)))
