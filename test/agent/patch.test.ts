/** The answers and refusals of apply_patch on several filesystems. A broken patch changes nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { runAtOnce } from "../../src/runtime/steps.ts"
import { applyHunks, applyReplacements } from "../../src/agent/patch/apply.ts"
import { parse } from "../../src/agent/patch/parse.ts"
import * as Memory from "../../src/agent/memory.ts"
import { applyPatch } from "../../src/agent/tools/applyPatch.ts"
import { unlimited } from "../../src/model/Limits.ts"
import { capture, type Files, link, picture } from "../../src/testing/Files.ts"
import { grounds, host, memory, p, versionOf } from "./changing.ts"
import { patched, patchOn, randomOf, v4a } from "./patching.ts"

const files: Files = {
  "a.txt": "one\ntwo\nthree\n",
  "d/b.txt": "b\n",
  "d/c.txt": "1\r\n2\r\n",
  gone: "x\ny\n",
  bin: new Uint8Array([0xff, 0, 0xfe])
}

const all = v4a(
  "*** Add File: new/n.txt",
  "+n",
  "*** Delete File: gone",
  "*** Update File: a.txt",
  "@@",
  " one",
  "-two",
  "+TWO",
  "+more",
  "*** Update File: d/b.txt",
  "*** Move to: e/b.txt",
  "@@",
  "-b",
  "+B",
  "*** Update File: d/c.txt",
  "@@",
  "-2",
  "+two"
)

const after: Files = {
  "a.txt": "one\nTWO\nmore\nthree\n",
  "d/c.txt": "1\r\ntwo\r\n",
  "e/b.txt": "B\n",
  "new/n.txt": "n\n",
  bin: files["bin"]!
}

const value = {
  files: [
    { path: "new/n.txt", action: "added", added_lines: 1, removed_lines: 0, version: versionOf("n\n") },
    { path: "gone", action: "deleted", added_lines: 0, removed_lines: 2 },
    { path: "a.txt", action: "updated", added_lines: 2, removed_lines: 1, version: versionOf("one\nTWO\nmore\nthree\n") },
    { path: "d/b.txt", action: "moved", to: "e/b.txt", added_lines: 1, removed_lines: 1, version: versionOf("B\n") },
    { path: "d/c.txt", action: "updated", added_lines: 1, removed_lines: 1, version: versionOf("1\r\ntwo\r\n") }
  ]
}

const message = `applied the patch: 5 files changed
added new/n.txt (+1 -0)
deleted gone (+0 -2)
updated a.txt (+2 -1)
moved d/b.txt to e/b.txt (+1 -1)
updated d/c.txt (+1 -1)`

describe("apply_patch", () => {
  for (const [name, ground] of Object.entries(grounds)) {
    it.effect(`changes five files of ${name} and reports each change`, () =>
      Effect.gen(function* () {
        const result = yield* patched(files, all, ground)
        assert.strictEqual(result.message, message)
        assert.isTrue(result.success)
        assert.deepStrictEqual(result.value, value)
        assert.deepStrictEqual(result.becomes, picture(after))
      })
    )
  }

  it.effect("keeps the permissions of changed and moved files on a host", () =>
    Effect.gen(function* () {
      const fs = yield* host(files)
      yield* fs.setAttributes("a.txt", { mode: 0o755 })
      yield* fs.setAttributes("d/b.txt", { mode: 0o750 })
      assert.isTrue((yield* patchOn(fs, all)).success)
      assert.strictEqual((yield* fs.stat("a.txt")).mode! & 0o777, 0o755)
      assert.strictEqual((yield* fs.stat("e/b.txt")).mode! & 0o777, 0o750)
    }).pipe(Effect.scoped)
  )

  it.effect("marks the files that it wrote as read, and forgets the files that it removed", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const seen = Memory.make()
      for (const path of ["gone", "d/b.txt"]) seen.saw(p(path), "old")
      yield* patchOn(fs, all, seen)
      assert.strictEqual(seen.seen(p("a.txt")), versionOf("one\nTWO\nmore\nthree\n"))
      assert.strictEqual(seen.textOf(versionOf("one\nTWO\nmore\nthree\n")), "one\nTWO\nmore\nthree\n")
      assert.strictEqual(seen.seen(p("e/b.txt")), versionOf("B\n"))
      assert.isUndefined(seen.seen(p("gone")))
      assert.isUndefined(seen.seen(p("d/b.txt")))
    }).pipe(Effect.scoped)
  )

  it.effect("reports hunks that match elsewhere or inexactly, and permissions that it does not set", () =>
    Effect.gen(function* () {
      const moved = yield* patched({ x: "0\n1\n2\n" }, "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n")
      assert.include(moved.message, "updated x (+1 -1); hunk 1 applied at line 2")
      const trailing = yield* patched({ x: "1 \n2\n" }, v4a("*** Update File: x", "@@", " 1", "-2", "+two"))
      assert.include(trailing.message, "; hunk 1 matched line 1 except for blanks at line ends")
      const indented = yield* patched({ x: "  1\n" }, v4a("*** Update File: x", "@@", "-1", "+one"))
      assert.include(
        indented.message,
        "; hunk 1 matched line 1 except for indentation, so it was indented like the lines there"
      )
      assert.deepStrictEqual(indented.becomes, picture({ x: "  one\n" }))
      const mixed = yield* patched({ x: "  1\n 2\n" }, v4a("*** Update File: x", "@@", "-1", "+one", " 2"))
      assert.include(mixed.message, "check the indentation of the lines that it added")
      const mode = yield* patched({ x: "1\n" }, "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n")
      assert.include(mode.message, "updated x (+0 -0); its permissions were not changed")
    })
  )

  it.effect("declares the paths it writes and the paths it removes", () =>
    Effect.gen(function* () {
      const call = { path: (raw: string) => Effect.succeed(p(raw.trim())), settings: { limits: unlimited } } as never
      const touches = yield* applyPatch.touches({ patch: all }, call) as Effect.Effect<unknown>
      assert.deepStrictEqual(touches, [
        { access: "write", path: "new/n.txt" },
        { access: "delete", path: "gone" },
        { access: "write", path: "a.txt" },
        { access: "write", path: "e/b.txt" },
        { access: "delete", path: "d/b.txt" },
        { access: "write", path: "d/c.txt" }
      ])
    })
  )

  for (const [what, patch, says] of [
    ["a path that leads out of the root", v4a("*** Update File: ../x", "-a", "+b"), /"\.\.\/x" is not a valid path/],
    ["a new path that leads out of the root", v4a("*** Update File: a.txt", "*** Move to: d/../../x"), /not a valid path/],
    ["a NUL in a path", v4a("*** Add File: a\0b", "+b"), /not a valid path/],
    ["the deletion of the root", v4a("*** Delete File: ."), /./],
    ["a path below a file", v4a("*** Add File: a.txt/b", "+b"), /./],
    ["a number instead of a patch", 7, /patch/],
    ["a missing patch", undefined, /patch/]
  ] as const) {
    it.effect(`refuses ${what}, and changes nothing`, () =>
      Effect.gen(function* () {
        for (const ground of [memory, host]) {
          const fs = yield* ground(files)
          const result = yield* patchOn(fs, patch)
          assert.isFalse(result.success)
          assert.match(result.message, says)
          assert.notInclude(result.message, "/dev/shm")
          assert.deepStrictEqual(yield* capture(fs.port), picture(files))
        }
      }).pipe(Effect.scoped)
    )
  }

  it.effect("treats an absolute path as a path below the root", () =>
    Effect.gen(function* () {
      const result = yield* patched({}, v4a("*** Add File: /etc/passwd", "+x"))
      assert.deepStrictEqual(result.becomes, picture({ "etc/passwd": "x\n" }))
    })
  )

  it.effect("writes through links, and refuses to remove or move them", () =>
    Effect.gen(function* () {
      const tree: Files = { x: "1\n", l: link("x") }
      const written = yield* patched(tree, v4a("*** Update File: l", "-1", "+2"), host)
      assert.deepStrictEqual(written.becomes, picture({ x: "2\n", l: link("x") }))
      for (const section of [["*** Delete File: l"], ["*** Update File: l", "*** Move to: m"]]) {
        const result = yield* patched(tree, v4a(...section), host)
        assert.match(result.message, /^l is a link/)
        assert.deepStrictEqual(result.becomes, picture(tree))
      }
    })
  )

  it.effect("refuses content above the write limit, before it changes anything", () =>
    Effect.gen(function* () {
      const big = v4a("*** Add File: a", "+x", "*** Add File: b", ...Array.from({ length: 60 }, () => `+${"y".repeat(999)}`))
      const result = yield* patched({}, big)
      assert.isFalse(result.success)
      assert.deepStrictEqual(result.becomes, {})
    })
  )

  it.effect("has made all changes or none if it is interrupted", () =>
    Effect.gen(function* () {
      const pictures = [picture(files), picture(after)]
      const seen = new Set<number>()
      for (let yields = 0; yields < 400 && seen.size < 2; yields += 9) {
        const fs = yield* grounds["an adversarial filesystem"]!(files)
        const fiber = yield* Effect.forkChild(patchOn(fs, all))
        for (let i = 0; i < yields * 4; i++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        const found = JSON.stringify(yield* capture(fs.port))
        const index = pictures.findIndex((one) => JSON.stringify(one) === found)
        assert.notStrictEqual(index, -1, `after ${yields * 4} yields: ${found}`)
        seen.add(index)
      }
      assert.deepStrictEqual([...seen].sort(), [0, 1])
    }).pipe(Effect.scoped)
  )
})

const originals = [
  all,
  "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n",
  "diff --git a/d/c.txt b/d/z.txt\nsimilarity index 50%\nrename from d/c.txt\nrename to d/z.txt\n--- a/d/c.txt\n+++ b/d/z.txt\n@@ -1,2 +1,2 @@\n 1\r\n-2\r\n+3\r\n"
]

const scraps = [
  "",
  " ",
  "\n",
  "\r",
  "+",
  "-",
  "@@",
  "\\",
  "*** ",
  "--- a/a.txt\n+++ b/a.txt\n",
  "@@ -9,9 +9,9 @@\n",
  "\0",
  "\uD800",
  "../",
  '"',
  "9".repeat(400)
]

/** Removes, repeats and replaces random lines and characters of a patch. */
const mutated = (random: (below: number) => number, patch: string): string => {
  let out = patch
  for (let i = random(4); i >= 0; i--) {
    const lines = out.split("\n")
    const [one, other] = [random(lines.length), random(lines.length)]
    const at = random(out.length + 1)
    const kind = random(6)
    if (kind === 0) out = lines.toSpliced(one, 1).join("\n")
    else if (kind === 1) out = lines.toSpliced(one, 0, lines[other]!).join("\n")
    else if (kind === 2) out = lines.toSpliced(one, 1, lines[other]!).join("\n")
    else if (kind === 3) out = out.slice(0, at) + scraps[random(scraps.length)]! + out.slice(at)
    else if (kind === 4) out = out.slice(0, at) + out.slice(at + 1 + random(5))
    else out = out.slice(0, at)
  }
  return out
}

describe("broken patches", () => {
  it.effect(
    "never throw, and change nothing if they fail",
    () =>
      Effect.gen(function* () {
        const random = randomOf(6)
        const before = picture(files)
        let fs = yield* memory(files)
        let failed = 0
        const runs = process.env["FS_ALGEBRA_SOAK"] === undefined ? 300 : 30_000
        for (let run = 0; run < runs; run++) {
          const patch = mutated(random, originals[random(originals.length)]!)
          const result = yield* patchOn(fs, patch)
          if (result.success) {
            fs = yield* memory(files)
            continue
          }
          failed++
          assert.deepStrictEqual(yield* capture(fs.port), before, JSON.stringify(patch))
          assert.match(result.message, /\S[.?]$/, JSON.stringify(patch))
          assert.isBelow(result.message.length, 3000)
        }
        assert.isAbove(failed, runs / 2)
        assert.isBelow(failed, runs)
      }).pipe(Effect.scoped),
    600_000
  )

  it("are refused if the envelope is truncated anywhere", () => {
    const whole = all.trimEnd()
    for (let end = 0; end < whole.length; end++) assert.property(parse(whole.slice(0, end)), "_tag", `${end}`)
    assert.notProperty(parse(whole), "_tag")
  })

  it("are refused if a unified diff is truncated within a hunk", () => {
    const head = "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n"
    const lines = [" 1", "-2", "+two", " 3", " 4"]
    for (let end = 0; end < lines.length; end++) assert.property(parse(head + lines.slice(0, end).join("\n")), "_tag", `${end}`)
    assert.notProperty(parse(head + lines.join("\n")), "_tag")
  })
})

const rows = (count: number, line: (row: number) => string): string =>
  Array.from({ length: count }, (_, row) => line(row)).join("")

describe("a huge patch finishes quickly", () => {
  it.effect("for a new file of ten megabytes", () =>
    Effect.gen(function* () {
      const line = "x".repeat(99)
      const patch = `*** Begin Patch\n*** Add File: big\n${rows(100_000, () => `+${line}\n`)}*** End Patch\n`
      const fs = yield* memory({})
      const result = yield* patchOn(fs, patch, undefined, unlimited)
      assert.isTrue(result.success, result.message.slice(0, 500))
      assert.strictEqual((yield* fs.stat("big")).sizeBytes, 10_000_000)
    }).pipe(Effect.scoped)
  )

  const text = rows(200_000, (row) => `line ${row}\n`)
  const becomes = text.replaceAll(/^(line \d*[02468])$/gm, "$1!")

  it("for 100,000 hunks", () => {
    const hunks = rows(100_000, (n) => `@@\n-line ${2 * n}\n+line ${2 * n}!\n`)
    const parsed = parse(`*** Begin Patch\n*** Update File: x\n${hunks}*** End Patch\n`)
    if ("_tag" in parsed) return assert.fail(parsed.happened)
    const applied = runAtOnce(applyHunks(parsed[0]!, text, "x"))
    if ("_tag" in applied) return assert.fail(applied.happened)
    assert.isTrue(applyReplacements(text, applied.replacements) === becomes)
  })

  const hostile: ReadonlyArray<readonly [claim: string, text: string, patch: string]> = [
    [
      "a hunk of equal lines that matches half of a file except in its last line",
      "a\n".repeat(40_000) + "b\n",
      `*** Begin Patch\n*** Update File: x\n@@\n${" a\n".repeat(20_000)}-b\n-b\n+c\n*** End Patch\n`
    ],
    [
      "a hunk that nearly matches at every line",
      "a\nb\n".repeat(20_000),
      `*** Begin Patch\n*** Update File: x\n@@\n${" a\n b\n".repeat(10_000)} a\n-a\n+c\n*** End Patch\n`
    ],
    [
      "100,000 @@ lines",
      "a\n".repeat(10_000),
      `*** Begin Patch\n*** Update File: x\n${rows(100_000, (n) => `@@ z${n}\n`)}-a\n+c\n*** End Patch\n`
    ],
    [
      "20,000 @@ lines that all occur in the file",
      rows(20_000, (n) => `z${n}\n`),
      `*** Begin Patch\n*** Update File: x\n${rows(20_000, (n) => `@@ z${n}\n`)}-a\n+c\n*** End Patch\n`
    ],
    ["50,000 empty lines in a hunk", "1\n", `--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n${"\n".repeat(50_000)} x\n`],
    ["a megabyte of one line", "1\n", `--- a/x\n+++ b/x\n@@ -1 +1 @@\n-${"y".repeat(1_000_000)}\n+2\n`],
    ["a line number of 30 digits", "1\n", `--- a/x\n+++ b/x\n@@ -${"9".repeat(30)} +1 @@\n-3\n+2\n`],
    ["line numbers beyond the end of the file", "1\n", "--- a/x\n+++ b/x\n@@ -999999999,0 +999999999 @@\n+2\n"]
  ]
  for (const [claim, text, patch] of hostile) {
    it(`with a short error for ${claim}`, () => {
      const parsed = parse(patch)
      const result = "_tag" in parsed ? parsed : runAtOnce(applyHunks(parsed[0]!, text, "x"))
      assert.property(result, "_tag")
      assert.isBelow(JSON.stringify(result).length, 3000)
    })
  }
})
