/**
 * Writes one change in the format of `git diff` and `git apply`. Text is one character per byte, so that content of any
 * encoding stays exact; only terminals and JSON get it decoded.
 */
import { isUtf8 } from "node:buffer"
import * as Effect from "effect/Effect"
import { countSigned, hunks as hunksBetween } from "../engine/diff.ts"
import { wholeAt } from "../engine/read.ts"
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { runAtOnce } from "../runtime/steps.ts"
import * as humanise from "./humanise.ts"

export const maxComparedBytes = 8 * 1024 * 1024

/** The size of the beginning that git tests for binary content. */
const sniffedBytes = 8000

export interface Side {
  readonly kind: Kind
  readonly mode?: number | undefined
  readonly sizeBytes: number
  readonly bytes?: Uint8Array | undefined
}

export interface Patch {
  /** The text; empty for directories, which git does not track. */
  readonly text: string
  readonly linesAdded: number
  readonly linesRemoved: number
  readonly isBinary: boolean
}

const noBytes = new Uint8Array()

const bytesAt = (port: Backend, path: FsPath): Effect.Effect<Uint8Array | undefined, Fault> =>
  Effect.catchIf(
    Effect.map(wholeAt(port, path, maxComparedBytes), ({ bytes }) => bytes),
    (fault: Fault) => fault._tag === "LimitExceeded",
    () => Effect.succeed(undefined)
  )

export const sideOf = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<Side | undefined, Fault> {
  const stat = yield* port.stat(path)
  if (stat === undefined) return undefined
  const { kind, mode, sizeBytes } = stat
  if (kind === "symlink") {
    const bytes = Buffer.from(port.links === undefined ? "" : yield* port.links.read(path))
    return { kind, bytes, sizeBytes: bytes.length }
  }
  return { kind, mode, sizeBytes, bytes: kind === "file" ? yield* bytesAt(port, path) : noBytes }
})

const rawPath = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? Buffer.from(name.slice(1), "hex") : Buffer.from(name)).toString("latin1"))
    .join("/")

const letters: Readonly<Record<string, string>> = { "\t": "t", "\n": "n", "\r": "r", '"': '"', "\\": "\\" }

const escaped = (character: string): string => `\\${letters[character] ?? character.charCodeAt(0).toString(8).padStart(3, "0")}`

const quoted = (rawName: string): string => {
  const special = isUtf8(Buffer.from(rawName, "latin1")) ? /[\0-\x1f"\\\x7f]/g : /[\0-\x1f"\\\x7f-\xff]/g
  return special.test(rawName) ? `"${rawName.replace(special, escaped)}"` : rawName
}

const isTooLarge = (side: Side): boolean => side.bytes === undefined

const isBinary = ({ bytes, kind }: Side): boolean => kind === "file" && bytes!.subarray(0, sniffedBytes).includes(0)

const modeOf = ({ kind, mode }: Side): string =>
  kind === "symlink" ? "120000" : `100${(mode ?? 0o644).toString(8).padStart(3, "0")}`

const formatModes = (before: Side | undefined, after: Side | undefined): string => {
  if (before === undefined) return `new file mode ${modeOf(after!)}\n`
  if (after === undefined) return `deleted file mode ${modeOf(before)}\n`
  const isSame = before.mode === undefined || after.mode === undefined || before.mode === after.mode
  return isSame ? "" : `old mode ${modeOf(before)}\nnew mode ${modeOf(after)}\n`
}

const latin1 = ({ bytes }: Side): string => Buffer.from(bytes!).toString("latin1")

const hunksOf = (before: string, after: string): string =>
  runAtOnce(hunksBetween(before, [{ start: 0, end: before.length, text: after }]))

const emptySide: Side = { kind: "file", sizeBytes: 0, bytes: noBytes }

const formatSameKind = (path: string, before: Side | undefined, after: Side | undefined): Patch => {
  const rawName = rawPath(path)
  const [a, b] = [quoted(`a/${rawName}`), quoted(`b/${rawName}`)]
  const headerLines = `diff --git ${a} ${b}\n${formatModes(before, after)}`
  const [from, to] = [before === undefined ? "/dev/null" : a, after === undefined ? "/dev/null" : b]
  const [old, now] = [before ?? emptySide, after ?? emptySide]
  const counted = { linesAdded: 0, linesRemoved: 0 }
  if (isTooLarge(old) || isTooLarge(now)) {
    const sizes = `${humanise.bytes(old.sizeBytes)} and ${humanise.bytes(now.sizeBytes)}`
    return {
      ...counted,
      isBinary: true,
      text: `${headerLines}Files ${from} and ${to} differ, too large to compare: ${sizes}\n`
    }
  }
  if (isBinary(old) || isBinary(now)) {
    const isSame = Buffer.compare(old.bytes!, now.bytes!) === 0
    return { ...counted, isBinary: true, text: isSame ? headerLines : `${headerLines}Binary files ${from} and ${to} differ\n` }
  }
  const hunks = hunksOf(latin1(old), latin1(now))
  // A name with a space gets a tab after it; otherwise `patch` reads the part after the space as a date.
  const tab = rawName.includes(" ") ? "\t" : ""
  const names = `--- ${from}${before === undefined ? "" : tab}\n+++ ${to}${after === undefined ? "" : tab}\n`
  return {
    text: hunks === "" ? headerLines : headerLines + names + hunks,
    linesAdded: runAtOnce(countSigned(hunks, "+")),
    linesRemoved: runAtOnce(countSigned(hunks, "-")),
    isBinary: false
  }
}

const emptyPatch: Patch = { text: "", linesAdded: 0, linesRemoved: 0, isBinary: false }

const isContent = (side: Side | undefined): side is Side => side !== undefined && side.kind !== "directory"

/** Formats a change. A change of kind becomes a deletion and an addition, as in git. */
export const patchOf = (path: string, before: Side | undefined, after: Side | undefined): Patch => {
  const [old, now] = [isContent(before) ? before : undefined, isContent(after) ? after : undefined]
  if (old === undefined && now === undefined) return emptyPatch
  if (old === undefined || now === undefined || old.kind === now.kind) return formatSameKind(path, old, now)
  const [deletion, addition] = [formatSameKind(path, old, undefined), formatSameKind(path, undefined, now)]
  return {
    text: deletion.text + addition.text,
    linesAdded: addition.linesAdded,
    linesRemoved: deletion.linesRemoved,
    isBinary: deletion.isBinary || addition.isBinary
  }
}

export const decoded = (text: string): string => Buffer.from(text, "latin1").toString("utf8")
