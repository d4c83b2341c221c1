/** Statistics of a snapshot. They are computed on request, so that taking a snapshot stays fast. */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { findCommonBlocks, makeLineNumbering } from "../../engine/diff.ts"
import { wholeAt } from "../../engine/read.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { runInSlices, type Steps } from "../../runtime/steps.ts"
import type { Change } from "../tree.ts"
import type { Details } from "./operations.ts"
import type { StoredSnapshot, Problem, Strategy } from "./strategy.ts"

/** The most changed files, and bytes per file, for which lines are counted. */
const maxFiles = 500
const maxBytes = 1024 * 1024
/** The most edits that the diff looks for. Beyond that the counts are approximate. */
const maxEdits = 100

interface LineCounts {
  readonly added: number
  readonly removed: number
}

const isBinary = (bytes: Uint8Array): boolean => bytes.includes(0)

/** Reads a file. Returns no bytes if the path is no file, and `undefined` if the file is too large. */
const read = (port: Backend | undefined, path: FsPath): Effect.Effect<Uint8Array | undefined, Fault> =>
  port === undefined
    ? Effect.succeed(new Uint8Array())
    : Effect.flatMap(port.stat(path), (stat): Effect.Effect<Uint8Array | undefined, Fault> =>
        stat?.kind !== "file"
          ? Effect.succeed(new Uint8Array())
          : stat.sizeBytes > maxBytes
            ? Effect.succeed(undefined)
            : Effect.map(wholeAt(port, path, maxBytes), ({ bytes }) => bytes)
      )

const linesOf = function* (before: Uint8Array, after: Uint8Array): Steps<LineCounts> {
  if (isBinary(before) || isBinary(after)) return { added: 0, removed: 0 }
  const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
  const number = makeLineNumbering()
  const [old, now] = [yield* number(text(before)), yield* number(text(after))]
  let common = 0
  for (const { length } of yield* findCommonBlocks(old.ids, now.ids, maxEdits)) common += length
  return { added: now.ids.length - common, removed: old.ids.length - common }
}

const countLines = Effect.fnUntraced(function* (
  changes: ReadonlyArray<Change>,
  before: Backend | undefined,
  after: Backend
): Effect.fn.Return<LineCounts | undefined, Fault> {
  if (changes.length > maxFiles) return undefined
  let [added, removed] = [0, 0]
  for (const { path } of changes) {
    const [old, now] = [yield* read(before, path), yield* read(after, path)]
    if (old === undefined || now === undefined) return undefined
    const lines = yield* runInSlices(() => linesOf(old, now))
    added += lines.added
    removed += lines.removed
    yield* Effect.yieldNow
  }
  return { added, removed }
})

const filesIn = Effect.fnUntraced(function* (
  changes: ReadonlyArray<Change>,
  before: Backend | undefined,
  after: Backend
): Effect.fn.Return<number, Fault> {
  let files = 0
  for (const { _tag, path } of changes) {
    const stat = _tag === "Removed" ? yield* before!.stat(path) : yield* after.stat(path)
    if (stat?.kind !== "directory") files++
  }
  return files
})

export const details = Effect.fnUntraced(function* (
  strategy: Strategy,
  kept: StoredSnapshot
): Effect.fn.Return<Details, Problem> {
  const { label, previous, skipped = 0, snapshot } = kept
  const { bytes, files } = yield* kept.counts
  const { callId, tool } = label
  const known = {
    snapshot,
    files,
    bytes,
    ...(tool !== undefined && { tool }),
    ...(callId !== undefined && { callId }),
    ...(skipped > 0 && { skipped })
  }
  if (previous === undefined) return { ...known, filesChanged: files }
  const before = yield* strategy.find(previous)
  if (before === undefined) return known
  const changes = yield* strategy.diff(before, kept)
  const [old, now] = [yield* strategy.view(before), yield* strategy.view(kept)]
  const lines = yield* countLines(changes, old, now)
  return {
    ...known,
    filesChanged: yield* filesIn(changes, old, now),
    ...(lines && { linesAdded: lines.added, linesRemoved: lines.removed })
  }
})
