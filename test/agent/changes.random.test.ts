import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { applyChanges, type FileChange } from "../../src/agent/changes.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { editFile } from "../../src/agent/tools/editFile.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { capture, type Files, picture } from "../../src/testing/Files.ts"
import { bytesOf, type Ground, host, memory, oneOf, p, versionOf } from "./changing.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const runs = soak ? 5000 : 150

const names = ["a", "b", "d/c", "é 日"]
const content = Arbitrary.map(Arbitrary.array(oneOf(["x", "x", "y", "é", "\n", "\r\n", "\ufeff"]), { maxLength: 6 }), (parts) =>
  parts.join("")
)
const contents = Arbitrary.all([content, content, content, content])
const edit = Arbitrary.all({
  path: oneOf(names),
  old_string: oneOf(["x", "y", "xy", "é", "yé"]),
  new_string: oneOf(["", "y", "xyx", "😀"]),
  replace_all: oneOf([true, true, false])
})
type Edit = typeof edit extends Arbitrary.Arbitrary<infer A> ? A : never

const occurrences = (text: string, part: string): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at)
  return found
}

/**
 * Computes the expected result independently. Each text must occur exactly once in the original file, unless the edit
 * replaces all, and no two matches may overlap; otherwise returns `undefined`. Every character is marked with the edit
 * that replaces it.
 */
const modelled = (files: Readonly<Record<string, string>>, edits: ReadonlyArray<Edit>): Record<string, string> | undefined => {
  const out = { ...files }
  for (const path of Object.keys(files)) {
    const text = files[path]!
    const taken: Array<string | undefined> = []
    for (const { new_string, old_string, replace_all } of edits.filter((edit) => edit.path === path)) {
      const found = occurrences(text, old_string)
      if (old_string === new_string || found.length === 0 || (!replace_all && found.length > 1)) return undefined
      for (const start of found) {
        for (let at = start; at < start + old_string.length; at++) {
          if (taken[at] !== undefined) return undefined
          taken[at] = at === start ? new_string : ""
        }
      }
    }
    out[path] = text
      .split("")
      .map((unit, at) => taken[at] ?? unit)
      .join("")
  }
  return out
}

const editing = (fs: Algebra, edits: ReadonlyArray<Edit>) =>
  invokeUnknown(editFile, { edits }, { memory: Memory.make() }).pipe(Effect.provideService(Filesystem, fs)) as Effect.Effect<{
    readonly success: boolean
    readonly message: string
  }>

const filesOf = (texts: ReadonlyArray<string>): Record<string, string> =>
  Object.fromEntries(names.map((name, i) => [name, texts[i]!]))

/** The fate of each name: unchanged, written, removed, created, or moved to the next name. */
const kinds = ["stay", "write", "write", "go", "come", "over"] as const
const places = ["a", "d/b", "d/e/c", "f/g/h", "i", "j/k"]
const fate = Arbitrary.all({ kind: oneOf(kinds), was: content, becomes: content })

const plan = (
  fates: ReadonlyArray<{ readonly kind: (typeof kinds)[number]; readonly was: string; readonly becomes: string }>
) => {
  const before: Record<string, string> = {}
  const after: Record<string, string> = {}
  const changes: Array<FileChange> = []
  for (const [i, { becomes, kind, was }] of fates.entries()) {
    const path = places[i]!
    const [version, bytes] = [versionOf(was), bytesOf(becomes)]
    if (kind !== "come") before[path] = was
    if (kind === "stay") after[path] = was
    else if (kind === "over") {
      after[`${path}.new`] = becomes
      changes.push({ path: p(`${path}.new`), before: null, after: bytes, from: { path: p(path), version } })
    } else if (kind === "go") changes.push({ path: p(path), before: version, after: null })
    else {
      after[path] = becomes
      changes.push({ path: p(path), before: kind === "come" ? null : version, after: bytes })
    }
  }
  return { before, after, changes }
}

/** Reads the files without the directories, because no directory is removed. */
const filesIn = (fs: Algebra) =>
  Effect.map(capture(fs.port), (all) => Object.fromEntries(Object.entries(all).filter(([, what]) => what !== "directory")))
const flat = (files: Files) => Object.fromEntries(Object.entries(picture(files)).filter(([, what]) => what !== "directory"))

for (const [name, ground, times] of [
  ["memory", memory, runs],
  ["a host", host, runs / 5]
] as ReadonlyArray<readonly [string, Ground, number]>) {
  describe(`random changes of several files in ${name}`, () => {
    it.live.prop(
      "apply all edits to the original text, or none",
      [contents, Arbitrary.array(edit, { minLength: 1, maxLength: 4 })],
      ([texts, edits]) =>
        Effect.scoped(
          Effect.gen(function* () {
            const files = filesOf(texts)
            const fs = yield* ground(files)
            const expected = modelled(files, edits)
            const { message, success } = yield* editing(fs, edits)
            assert.strictEqual(success, expected !== undefined, message)
            assert.deepStrictEqual(yield* capture(fs.port), picture(expected ?? files))
          })
        ),
      { arbitrary: { runs: times } }
    )

    it.live.prop(
      "create, change, move and remove files as the list of changes requests",
      [Arbitrary.all([fate, fate, fate, fate, fate, fate])],
      ([fates]) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { after, before, changes } = plan(fates)
            const fs = yield* ground(before)
            yield* applyChanges(fs, changes)
            assert.deepStrictEqual(yield* filesIn(fs), flat(after))
          })
        ),
      { arbitrary: { runs: times } }
    )
  })
}
