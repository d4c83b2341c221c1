/**
 * Computes the effect of a patch on the tree before anything is changed. A later section of a file works on the result of an
 * earlier one; a name that appears or disappears twice is refused.
 */
import * as Effect from "effect/Effect"
import { documentOf, splice } from "../../engine/splice.ts"
import { encode } from "../../engine/text.ts"
import { type FsError, LimitExceeded, promote } from "../../model/FsError.ts"
import { codePoints, type FsPath } from "../../model/FsPath.ts"
import { inSlices } from "../../runtime/steps.ts"
import type { FileChange } from "../changes/apply.ts"
import { type Call, type Refused, refused, type ToolFailure } from "../definition.ts"
import { applyTo, type Deviation, replaced } from "./apply.ts"
import { remains } from "./explain.ts"
import { again, type FilePatch } from "./model.ts"

export interface Section {
  readonly patch: FilePatch
  readonly from: FsPath | undefined
  readonly to: FsPath | undefined
}

export type Action = "added" | "updated" | "deleted" | "moved"

export interface Outcome {
  readonly action: Action
  /** The old path of the file, or the new one if the file is new. */
  readonly path: FsPath
  readonly to?: FsPath | undefined
  readonly addedLines: number
  readonly removedLines: number
  readonly deviations: ReadonlyArray<Deviation>
  readonly setsMode: boolean
  readonly change: FileChange
}

interface File {
  readonly content: Uint8Array
  readonly version: string
}

const empty = new Uint8Array(0)

const exists = (path: FsPath, { at }: FilePatch, what: string): Refused =>
  refused(
    `${path} exists already, so it cannot be ${what} (line ${at} of the patch).`,
    what === "added"
      ? `Nothing was changed. Use *** Update File for it, or read it first and see whether another name is meant.`
      : "Nothing was changed. Choose another name, or remove that file in a call before."
  )

const twice = (path: FsPath, { at }: FilePatch): Refused =>
  refused(`${path} is added, removed or moved more than once by the patch (line ${at}).`, `${again} Or send it in two calls.`)

const read = (call: Call, path: FsPath): Effect.Effect<File, FsError> =>
  Effect.map(call.filesystem.readBytes(path, { version: true }), ({ content, version }) => ({ content, version: version! }))

const readIfAny = (call: Call, path: FsPath): Effect.Effect<File | undefined, FsError> =>
  Effect.catch(read(call, path), (error) => (error._tag === "NotFound" ? Effect.undefined : Effect.fail(error)))

/** Refuses a symlink: its content would be read from the target, but the link itself moved or removed. */
const onlyFiles = Effect.fnUntraced(function* (call: Call, path: FsPath, what: string): Effect.fn.Return<void, ToolFailure> {
  const { isSymlink } = yield* call.filesystem.stat(path)
  if (isSymlink !== true) return
  yield* Effect.fail(
    refused(`${path} is a link, and a patch ${what} only files.`, "Nothing was changed. Use rm or move for the link.")
  )
})

const checkInserted = (call: Call, path: FsPath, texts: ReadonlyArray<string>): LimitExceeded | undefined => {
  const allowed = call.settings.limits.maxFileSize
  const actual = texts.reduce((sum, text) => sum + codePoints(text), 0)
  return actual > allowed
    ? new LimitExceeded({ operation: call.tool, path, limit: "maxFileSize", allowed: Math.floor(allowed), actual })
    : undefined
}

interface Patched {
  readonly bytes: Uint8Array
  readonly addedLines: number
  readonly removedLines: number
  readonly deviations: ReadonlyArray<Deviation>
}

const patched = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  bytes: Uint8Array,
  patch: FilePatch
): Effect.fn.Return<Patched, ToolFailure> {
  if (patch.hunks.length === 0) return { bytes, addedLines: 0, removedLines: 0, deviations: [] }
  const document = yield* inSlices(() => documentOf(bytes))
  if ("_tag" in document) return yield* Effect.fail(promote(document, call.tool, path))
  const applied = yield* inSlices(() => applyTo(patch, document.text, path))
  if ("_tag" in applied) return yield* Effect.fail(applied)
  const { replacements, ...counts } = applied
  if (patch.to === undefined) {
    const left = replaced(document.text, replacements)
    if (left !== "" && left !== "\uFEFF") return yield* Effect.fail(remains(path, patch, left))
    return { bytes: empty, ...counts }
  }
  for (const { text } of replacements) {
    const written = encode(text)
    if ("_tag" in written) return yield* Effect.fail(promote({ ...written, argument: "patch" }, call.tool, path))
  }
  const fault = checkInserted(
    call,
    path,
    replacements.map(({ text }) => text)
  )
  if (fault !== undefined) return yield* Effect.fail(fault)
  return { bytes: yield* inSlices(() => splice(document, replacements)), ...counts }
})

const lineCount = (bytes: Uint8Array): number => {
  let lines = bytes.length > 0 && bytes.at(-1) !== 10 ? 1 : 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

interface Plan {
  readonly outcomes: Map<FsPath, Outcome>
  readonly taken: Set<FsPath>
}

const add = Effect.fnUntraced(function* (call: Call, plan: Plan, section: Section): Effect.fn.Return<Outcome, ToolFailure> {
  const { patch } = section
  const path = section.to!
  if (plan.taken.has(path) || plan.outcomes.has(path)) return yield* Effect.fail(twice(path, patch))
  if (yield* call.filesystem.exists(path)) return yield* Effect.fail(exists(path, patch, "added"))
  const { bytes, ...counts } = yield* patched(call, path, empty, patch)
  const change = { path, before: null, after: bytes }
  return { action: "added", path, ...counts, setsMode: patch.setsMode, change }
})

const remove = Effect.fnUntraced(function* (call: Call, plan: Plan, section: Section): Effect.fn.Return<Outcome, ToolFailure> {
  const { patch } = section
  const path = section.from!
  if (plan.taken.has(path) || plan.outcomes.has(path)) return yield* Effect.fail(twice(path, patch))
  yield* onlyFiles(call, path, "removes")
  const { content, version } = yield* read(call, path)
  const { deviations } = yield* patched(call, path, content, patch)
  const change = { path, before: version, after: null }
  const removedLines = lineCount(content)
  return { action: "deleted", path, addedLines: 0, removedLines, deviations, setsMode: false, change }
})

const move = Effect.fnUntraced(function* (call: Call, plan: Plan, section: Section): Effect.fn.Return<Outcome, ToolFailure> {
  const { patch } = section
  const [path, to] = [section.from!, section.to!]
  for (const name of [path, to]) {
    if (plan.taken.has(name) || plan.outcomes.has(name)) return yield* Effect.fail(twice(name, patch))
  }
  yield* onlyFiles(call, path, "moves")
  const { content, version } = yield* read(call, path)
  if (yield* call.filesystem.exists(to)) return yield* Effect.fail(exists(to, patch, "the new name"))
  const { bytes, ...counts } = yield* patched(call, path, content, patch)
  const change = { path: to, before: null, after: bytes, from: { path, version } }
  return { action: "moved", path, to, ...counts, setsMode: patch.setsMode, change }
})

const updateAgain = Effect.fnUntraced(function* (
  call: Call,
  before: Outcome,
  { patch, to }: Section
): Effect.fn.Return<Outcome, ToolFailure> {
  const more = yield* patched(call, to!, before.change.after!, patch)
  return {
    ...before,
    addedLines: before.addedLines + more.addedLines,
    removedLines: before.removedLines + more.removedLines,
    deviations: [...before.deviations, ...more.deviations],
    setsMode: before.setsMode || patch.setsMode,
    change: { ...before.change, after: more.bytes }
  }
})

const update = Effect.fnUntraced(function* (call: Call, plan: Plan, section: Section): Effect.fn.Return<Outcome, ToolFailure> {
  const { patch } = section
  const path = section.to!
  const before = plan.outcomes.get(path)
  if (before?.change.after != null) return yield* updateAgain(call, before, section)
  if (plan.taken.has(path)) return yield* Effect.fail(twice(path, patch))
  const file = yield* patch.mayBeNew ? readIfAny(call, path) : read(call, path)
  const { bytes, ...counts } = yield* patched(call, path, file?.content ?? empty, patch)
  const change = { path, before: file?.version ?? null, after: bytes }
  return { action: file === undefined ? "added" : "updated", path, ...counts, setsMode: patch.setsMode, change }
})

const kindOf = ({ from, to }: Section) => (from === undefined ? add : to === undefined ? remove : from === to ? update : move)

export const planOf = Effect.fnUntraced(function* (
  call: Call,
  sections: ReadonlyArray<Section>
): Effect.fn.Return<ReadonlyArray<Outcome>, ToolFailure> {
  const plan: Plan = { outcomes: new Map(), taken: new Set() }
  for (const section of sections) {
    const outcome = yield* kindOf(section)(call, plan, section)
    plan.outcomes.set(outcome.to ?? outcome.path, outcome)
    if (outcome.action !== "updated")
      for (const name of [outcome.path, outcome.to]) if (name !== undefined) plan.taken.add(name)
  }
  return [...plan.outcomes.values()]
})
