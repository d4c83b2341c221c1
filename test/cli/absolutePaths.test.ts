/** Tests absolute paths on the machine that name entries of the root. Shells and other programs print such paths. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import { hasGit, kept } from "./kept.ts"
import { shell } from "./terminal.ts"

const tree = {
  "README.md": "needle\n",
  "src/main.ts": "needle\n",
  "src/lib/util.ts": "x\n",
  link: { link: "README.md" }
}

const here = kept(tree)

describe("an absolute path inside the root", () => {
  it.effect.each([
    [["ls", "/src"], "lib/\nmain.ts\n"],
    [["ls", "/src/"], "lib/\nmain.ts\n"],
    [["tree", "/src/lib"], "src/lib/\n`-- util.ts  2 B\n\n0 directories, 1 file, 2 B\n"],
    [["cat", "/README.md", "src/main.ts"], "needle\nneedle\n"],
    [["grep", "needle", "/src"], "src/main.ts:1:needle\n"],
    [["grep", "needle", "/src/main.ts"], "src/main.ts:1:needle\n"],
    [["glob", "*.ts", "--path", "/src/lib"], "src/lib/util.ts\n"],
    [["glob", "/src/*.ts"], "src/main.ts\n"],
    [["mkdir", "/new/deep"], "Made new/deep/\n"],
    [["rm", "/src/main.ts"], "Removed src/main.ts\n"],
    [["cp", "/README.md", "/src/"], "Copied README.md to src/README.md, 1 file, 7 B\n"],
    [["cp", "README.md", "/new/"], "Copied README.md to new/README.md, 1 file, 7 B\n"],
    [["mv", "/README.md", "/NOTES.md"], "Moved README.md to NOTES.md, 1 file, 7 B\n"]
  ] as const)("in %s is accepted, and the output has only relative paths", ([args, expected]) =>
    Effect.gen(function* () {
      const { root, run } = yield* here
      const ran = yield* run(args.map((arg) => (arg.startsWith("/") ? root + arg : arg)))
      assert.strictEqual(ran.out, expected, ran.err)
    }).pipe(Effect.scoped)
  )
  it.effect("is accepted by stat, write and edit", () =>
    Effect.gen(function* () {
      const { json, root } = yield* here
      const [stat] = yield* json(["stat", `${root}/README.md`])
      assert.deepInclude(stat as object, { path: "README.md" })
      const [written] = yield* json(["write", `${root}/new.txt`, "--text", "one"])
      assert.deepInclude(written as object, { path: "new.txt" })
      const [edited] = yield* json(["edit", `${root}/new.txt`, "--old", "one", "--new", "two"])
      assert.deepInclude(edited as object, { path: "new.txt" })
      assert.strictEqual(Fs.readFileSync(join(root, "new.txt"), "utf8"), "two")
    }).pipe(Effect.scoped)
  )
  it.live.runIf(hasGit)("is accepted by restore and diff", () =>
    Effect.gen(function* () {
      const { json, root, run } = yield* here
      yield* json(["snapshot"])
      for (const name of ["README.md", "src/main.ts"]) Fs.writeFileSync(join(root, name), "changed\n")
      assert.strictEqual((yield* run(["diff", "--names", "--path", `${root}/src`])).out, "M\tsrc/main.ts\n")
      assert.include((yield* run(["restore", `${root}/src/`])).err, "fs-algebra restore latest src/ --root root")
      const restored = yield* run(["restore", "latest", `${root}/src/`])
      assert.match(restored.out, /^M\tsrc\/main\.ts\nRestored /, restored.err)
      assert.strictEqual(Fs.readFileSync(join(root, "README.md"), "utf8"), "changed\n")
      assert.strictEqual(Fs.readFileSync(join(root, "src/main.ts"), "utf8"), "needle\n")
    }).pipe(Effect.scoped)
  )
  it.live("is accepted by journal show, drift and undo", () =>
    Effect.gen(function* () {
      const { json, root, run } = yield* here
      const path = ["--path", `${root}/src`]
      yield* json(["write", "README.md", "--text", "one", "--journal", "work"])
      yield* json(["write", "src/main.ts", "--text", "two", "--journal", "work"])
      const changed = yield* json(["journal", "show", "work", "--changes", ...path])
      assert.deepStrictEqual(
        changed.map((change) => (change as { readonly path: string }).path),
        ["src/main.ts"]
      )
      for (const name of ["README.md", "src/main.ts"]) Fs.writeFileSync(join(root, name), "three")
      assert.match((yield* run(["journal", "drift", "work", ...path])).out, /^src\/main\.ts: [^\n]*\n$/)
      Fs.writeFileSync(join(root, "src/main.ts"), "two")
      const undone = yield* run(["journal", "undo", "work", "--to", "0", ...path])
      assert.match(undone.out, /^M\tsrc\/main\.ts\nUndid the changes /, undone.err)
    }).pipe(Effect.scoped)
  )
  it.effect("may be the root, with or without a trailing slash", () =>
    Effect.gen(function* () {
      const { root, run } = yield* here
      const expected = (yield* run(["ls"])).out
      for (const path of [root, `${root}/`, `${root}//`, `${root}/.`, `${root}/src/..`]) {
        assert.strictEqual((yield* run(["ls", path])).out, expected, path)
      }
      assert.strictEqual((yield* run(["rm", "-r", root])).code, 5)
    }).pipe(Effect.scoped)
  )
  it.effect("may lead through any link to the root, whether --root names the link or the directory", () =>
    Effect.gen(function* () {
      const { root, run, top } = yield* here
      Fs.symlinkSync("root", join(top, "alias"))
      for (const given of ["root", "alias", root, join(top, "alias")]) {
        for (const spelling of [root, join(top, "alias")]) {
          const ran = yield* run(["grep", "needle", `${spelling}/src`, "--root", given])
          assert.strictEqual(ran.out, "src/main.ts:1:needle\n", `${spelling} in ${given}: ${ran.err}`)
          assert.strictEqual((yield* run(["glob", `${spelling}/src/*.ts`, "--root", given])).out, "src/main.ts\n")
        }
      }
    }).pipe(Effect.scoped)
  )
  it.effect("may lead through a link to a directory in the root", () =>
    Effect.gen(function* () {
      const { root, run, top } = yield* here
      Fs.symlinkSync(join(root, "src"), join(top, "shortcut"))
      assert.strictEqual((yield* run(["cat", join(top, "shortcut/main.ts")])).out, "needle\n")
    }).pipe(Effect.scoped)
  )
  it.effect("that ends in a link refers to the link itself", () =>
    Effect.gen(function* () {
      const { root, run } = yield* here
      assert.strictEqual((yield* run(["rm", `${root}/link`])).code, 0)
      assert.deepStrictEqual(Fs.readdirSync(root), ["README.md", "src"])
    }).pipe(Effect.scoped)
  )
  it.effect("may leave the root through `..` if it returns to the root", () =>
    Effect.gen(function* () {
      const { root, run } = yield* here
      assert.strictEqual((yield* run(["cat", `${root}/src/../README.md`])).out, "needle\n")
      assert.strictEqual((yield* run(["cat", `${root}/../root/README.md`])).out, "needle\n")
    }).pipe(Effect.scoped)
  )
  it.effect("that is missing is reported with a similar name", () =>
    Effect.gen(function* () {
      const { root, run } = yield* here
      const ran = yield* run(["cat", `${root}/REAMDE.md`])
      assert.strictEqual(ran.code, 3)
      assert.match(ran.err, /^error: cat "REAMDE\.md": .*\nhint: {2}Did you mean README\.md\?\n$/)
    }).pipe(Effect.scoped)
  )
  it.effect("may lie anywhere on the machine if the root is /", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ src: { "main.ts": "needle\n" } })
      assert.strictEqual((yield* run(["cat", "/src/main.ts"])).out, "needle\n")
      assert.strictEqual((yield* run(["ls", "/"])).out, "src/\n")
    })
  )
})

describe("an absolute path outside the root", () => {
  it.effect.each([
    [["cat"]],
    [["stat"]],
    [["ls"]],
    [["tree"]],
    [["rm"]],
    [["mkdir"]],
    [["grep", "x"]],
    [["glob", "*", "--path"]],
    [["write", "--text", "x"]],
    [["edit", "--old", "x", "--new", "y"]],
    [["cp", "README.md"]],
    [["mv", "README.md"]],
    [["diff", "latest", "--path"]],
    [["journal", "drift", "../work", "--path"]]
  ])("is refused by %s with a message that names the root", ([args]) =>
    Effect.gen(function* () {
      const { root, run, top } = yield* here
      Fs.writeFileSync(join(top, "root2"), "x")
      for (const path of [join(top, "root2"), "/", top, `${root}/../root2`]) {
        const ran = yield* run([...args, path])
        assert.strictEqual(ran.code, 2, path)
        assert.strictEqual(ran.out, "")
        assert.include(ran.err, `outside the root "${root}"`)
        assert.include(ran.err, "--root")
      }
      assert.strictEqual(Fs.readFileSync(join(top, "root2"), "utf8"), "x")
    }).pipe(Effect.scoped)
  )
  it.effect("is refused even if it is a link that leads into the root", () =>
    Effect.gen(function* () {
      const { root, run, top } = yield* here
      Fs.symlinkSync(join(root, "src/main.ts"), join(top, "outer"))
      assert.strictEqual((yield* run(["rm", join(top, "outer")])).code, 2)
      assert.isTrue(Fs.existsSync(join(root, "src/main.ts")))
    }).pipe(Effect.scoped)
  )
  it.effect("gets a hint if it exists below the root without its leading slash", () =>
    Effect.gen(function* () {
      const { run } = yield* here
      assert.include((yield* run(["cat", "/src/main.ts"])).err, "Did you mean src/main.ts?")
    }).pipe(Effect.scoped)
  )
  it.effect("does not stop the command from processing its other paths", () =>
    Effect.gen(function* () {
      const { run } = yield* here
      const ran = yield* run(["cat", "/etc/hostname", "README.md"])
      assert.deepStrictEqual([ran.code, ran.out], [2, "needle\n"])
    }).pipe(Effect.scoped)
  )
})

describe("a tilde", () => {
  it.effect("is an ordinary name if no shell expanded it, and the hint says when a shell expands it", () =>
    Effect.gen(function* () {
      const { run } = yield* here
      const ran = yield* run(["cat", "~/notes.txt"])
      assert.strictEqual(ran.code, 3)
      assert.match(ran.err, /hint: {2}The shell replaces ~ by the home directory/)
    }).pipe(Effect.scoped)
  )
})
