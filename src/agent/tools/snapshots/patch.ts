import * as Effect from "effect/Effect"
import { countSigned, hunks as hunksBetween, withFileHeader } from "../../../engine/diff.ts"
import { wholeAt } from "../../../engine/read.ts"
import { decode } from "../../../engine/text.ts"
import { type Fault, type FsError, promote } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import type { Backend } from "../../../port/Backend.ts"
import { runInSlices } from "../../../runtime/steps.ts"

const maxBytes = 1024 * 1024

/** The text of a file or of a link; `undefined` if it cannot be shown as lines. */
type FileSide = { readonly isFile: boolean; readonly text: string | undefined }

export interface Patch {
  readonly isFile: boolean
  readonly lines?: { readonly added: number; readonly removed: number }
  readonly diff: string
}

const textOf = (bytes: Uint8Array): string | undefined => {
  const text = bytes.includes(0) ? undefined : decode(bytes)
  return typeof text === "string" ? text : undefined
}

const sideAt = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<FileSide, Fault> {
  const stat = yield* port.stat(path)
  if (stat?.kind === "symlink") {
    return { isFile: true, text: port.links === undefined ? undefined : yield* port.links.read(path) }
  }
  if (stat?.kind !== "file") return { isFile: false, text: "" }
  if (stat.sizeBytes > maxBytes) return { isFile: true, text: undefined }
  return { isFile: true, text: textOf((yield* wholeAt(port, path, maxBytes)).bytes) }
})

const missingSide: FileSide = { isFile: false, text: "" }

export const patchOf = (path: FsPath, before: Backend | undefined, after: Backend | undefined): Effect.Effect<Patch, FsError> =>
  Effect.gen(function* () {
    const oldSide = before === undefined ? missingSide : yield* sideAt(before, path)
    const newSide = after === undefined ? missingSide : yield* sideAt(after, path)
    const isFile = oldSide.isFile || newSide.isFile
    if (!isFile) return { isFile, diff: "" }
    if (oldSide.text === undefined || newSide.text === undefined) return { isFile, diff: "" }
    const [from, to] = [oldSide.text, newSide.text]
    return yield* runInSlices(function* () {
      const hunks = yield* hunksBetween(from, [{ start: 0, end: from.length, text: to }])
      const lines = { added: yield* countSigned(hunks, "+"), removed: yield* countSigned(hunks, "-") }
      return { isFile, lines, diff: withFileHeader(path, hunks, { isNew: before === undefined, isGone: after === undefined }) }
    })
  }).pipe(Effect.mapError((fault) => promote(fault, "diff", path)))
