import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { clean, scratch } from "./children.ts"

afterAll(clean)

/** Runs Python, which can read and write extended attributes. Node cannot. */
const python = (code: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync("python3", ["-c", `import os, struct, sys\n${code}`, ...args], {
    encoding: "utf8"
  })
  return { isDone: status === 0, stderr, stdout: stdout?.trim() }
}
const canTell = python("os.setxattr").isDone
const wanted = canTell || process.env["FS_ALGEBRA_NO_SKIP"] !== undefined
if (!wanted) console.log("skipped: extended attributes and access lists, which need python3; apt-get install python3")

/** Returns the names of the extended attributes of each file. */
const attributesOf = (paths: ReadonlyArray<string>): unknown => {
  const { isDone, stderr, stdout } = python(
    "import json\nprint(json.dumps([sorted(os.listxattr(path)) for path in sys.argv[1:]]))",
    ...paths
  )
  assert.isTrue(isDone, stderr)
  return JSON.parse(stdout) as unknown
}

const note = "user.note"
const list = "system.posix_acl_access"

/** Adds a user attribute, and an access control list that grants one more user read access. */
const decorate = (paths: ReadonlyArray<string>): void => {
  const { isDone, stderr } = python(
    `entry = lambda tag, bits, who=0xffffffff: struct.pack("<HHI", tag, bits, who)
for path in sys.argv[1:]:
  os.setxattr(path, "${note}", b"x")
  os.setxattr(path, "${list}", struct.pack("<I", 2)
    + entry(1, 6) + entry(2, 4, 12345) + entry(4, 4) + entry(16, 4) + entry(32, 0))`,
    ...paths
  )
  assert.isTrue(isDone, stderr)
  assert.deepStrictEqual(
    attributesOf(paths),
    paths.map(() => [list, note])
  )
}

const at = scratch()
let roots = 0
const freshRoot = (): string => {
  const root = join(at, `root${roots++}`)
  Fs.mkdirSync(root)
  return root
}

type Change = (fs: Filesystem.Algebra) => Effect.Effect<unknown, unknown>

const on = (root: string, change: Change): Promise<unknown> =>
  Effect.flatMap(Filesystem.Filesystem, change).pipe(Effect.provide(PosixHost.layer({ root })), Effect.orDie, Effect.runPromise)

const replacements: Record<string, Change> = {
  write: (fs) => fs.write("f", "new"),
  "a sink": (fs) => Stream.run(Stream.make(new TextEncoder().encode("new")), fs.sink("f")),
  "a write through a link": (fs) => fs.write("link", "new"),
  edit: (fs) => fs.edit("f", { oldText: "old", newText: "new" }),
  "a copy with overwrite": (fs) => fs.copy("other", "f", { overwrite: true })
}

const plant = (root: string): string => {
  const path = join(root, "f")
  Fs.writeFileSync(path, "old")
  Fs.writeFileSync(join(root, "other"), "new")
  Fs.symlinkSync("f", join(root, "link"))
  return path
}

for (const [how, change] of Object.entries(replacements)) {
  describe(`${how} that replaces a file`, () => {
    it.runIf(process.getuid?.() === 0)("keeps its permission bits, owner and group", async () => {
      for (const mode of [0o600, 0o644, 0o755, 0o400, 0o066]) {
        const root = freshRoot()
        const path = plant(root)
        Fs.chownSync(path, 12345, 54321)
        Fs.chmodSync(path, mode)
        await on(root, change)
        const { gid, mode: kept, uid } = Fs.statSync(path)
        assert.deepStrictEqual({ gid, mode: kept & 0o7777, uid }, { gid: 54321, mode, uid: 12345 })
        assert.strictEqual(Fs.readFileSync(path, "utf8"), "new")
      }
    })

    it("keeps the old content under the other hard links", async () => {
      const root = freshRoot()
      const path = plant(root)
      Fs.linkSync(path, join(root, "second"))
      await on(root, change)
      assert.strictEqual(Fs.readFileSync(path, "utf8"), "new")
      assert.strictEqual(Fs.readFileSync(join(root, "second"), "utf8"), "old")
      assert.strictEqual(Fs.statSync(path).nlink, 1)
    })
  })
}

// Node can neither read nor write extended attributes. If a later Node can, replacements should keep them.
it.runIf(wanted)("no replacement keeps extended attributes or an access control list", async () => {
  const roots = Object.keys(replacements).map(freshRoot)
  const paths = roots.map(plant)
  decorate(paths)
  for (const [n, change] of Object.values(replacements).entries()) await on(roots[n]!, change)
  assert.deepStrictEqual(
    attributesOf(paths),
    paths.map(() => [])
  )
})

describe("a change that does not replace the file", () => {
  const changes: Record<string, readonly [change: Change, path: string]> = {
    append: [(fs) => fs.write("f", "new", { mode: "append" }), "f"],
    "a sink that appends": [(fs) => Stream.run(Stream.make(new Uint8Array(9)), fs.sink("f", { mode: "append" })), "f"],
    move: [(fs) => fs.move("f", "d/g"), "d/g"],
    "move over another": [(fs) => fs.move("f", "other", { overwrite: true }), "other"],
    "a change of mode": [(fs) => fs.setAttributes("f", { mode: 0o640 }), "f"]
  }
  it.runIf(wanted)(`keeps the inode and the extended attributes: ${Object.keys(changes).join(", ")}`, async () => {
    const roots = Object.keys(changes).map(freshRoot)
    const paths = roots.map(plant)
    decorate(paths)
    const numbers = paths.map((path) => Fs.statSync(path).ino)
    const after: Array<string> = []
    for (const [n, [change, path]] of Object.values(changes).entries()) {
      await on(roots[n]!, change)
      after.push(join(roots[n]!, path))
    }
    assert.deepStrictEqual(
      after.map((path) => Fs.statSync(path).ino),
      numbers
    )
    assert.deepStrictEqual(
      attributesOf(after),
      after.map(() => [list, note])
    )
  })
})
