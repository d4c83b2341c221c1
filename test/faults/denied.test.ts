/** Changes that the system denies: read-only disks, files of other users, immutable files, mount points and running programs. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { spawned } from "./child.ts"
import { canMount, directory, disk, host, isRoot, losingNothing, mounted, needs, picture, plantAt } from "./ground.ts"
import { changing, failure, operations, reading, trees, writing } from "./operations.ts"

const mutations = [...writing, ...changing, ...trees]

const mountable = needs("disks for reading only", canMount, "it needs root and a kernel that lets it mount")

describe.runIf(mountable)("a disk that is mounted read-only", () => {
  const readOnly = { _tag: "AccessDenied", why: "readOnly", isDeclared: true }

  it.live("lets every read succeed; every change fails with AccessDenied readOnly and changes nothing", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* disk("size=1m")
        plantAt(root)
        const fs = yield* host(root)
        execFileSync("mount", ["-o", "remount,ro", root])
        const before = picture(root)
        for (const self of reading) assert.isUndefined(yield* failure(self, fs), self.name)
        for (const self of mutations) assert.deepInclude(yield* failure(self, fs), readOnly, self.name)
        assert.deepStrictEqual(picture(root), before)
        execFileSync("mount", ["-o", "remount,rw", root])
        for (const self of writing) yield* failure(self, fs)
        assert.strictEqual(Fs.readFileSync(join(root, "d/new"), "utf8"), "new")
      })
    )
  )

  it.live("lets its entries be copied but not moved, and a failed move of a file or symlink leaves no copy", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* directory
        const at = join(root, "m")
        Fs.mkdirSync(at)
        yield* disk("size=1m", at)
        plantAt(at)
        execFileSync("mount", ["-o", "remount,ro", at])
        const fs = yield* host(root)
        const before = picture(root)
        for (const path of ["d/f", "l", "empty"]) {
          const error = yield* Effect.flip(fs.move(`m/${path}`, "p/moved"))
          assert.deepInclude(error, { _tag: "AccessDenied", why: "readOnly" }, path)
          // The copy of a directory stays, because it may be the only complete version.
          assert.strictEqual(Fs.readdirSync(root).includes("p"), path === "empty", path)
        }
        const { p: _, ...after } = picture(root)
        for (const [path, line] of Object.entries(before)) assert.strictEqual(after[path], line)
        yield* fs.delete("p", { recursive: true, missing: "ignore" })
        yield* fs.copy("m/d", "copied")
        assert.strictEqual(yield* fs.readString("copied/e/g"), "deep")
      })
    )
  )
})

const immutable = (): boolean => {
  if (!isRoot) return false
  const at = Fs.mkdtempSync("/var/tmp/fs-algebra-immutable-")
  try {
    return spawnSync("chattr", ["+i", at]).status === 0 && spawnSync("chattr", ["-i", at]).status === 0
  } finally {
    Fs.rmdirSync(at)
  }
}

describe.runIf(needs("immutable files", immutable, "it needs root and chattr (apt-get install e2fsprogs) on an ext4 disk"))(
  "an immutable entry",
  () => {
    it.live(
      "that is a file can be read and copied; every change of it fails with AccessDenied permission and changes nothing",
      () =>
        losingNothing(
          Effect.gen(function* () {
            const root = yield* directory
            plantAt(root)
            const fs = yield* host(root)
            const file = join(root, "d/f")
            yield* Effect.acquireRelease(
              Effect.sync(() => execFileSync("chattr", ["+i", file])),
              () => Effect.sync(() => execFileSync("chattr", ["-i", file]))
            )
            const before = picture(root)
            const touching = mutations.filter(({ name }) =>
              /^(overwrite|replace|append|appendExisting|edit|move|move over a file|delete|setAttributes|move of a tree)(,|$)/.test(
                name
              )
            )
            assert.isAbove(touching.length, 12)
            for (const self of touching.filter(({ name }) => name !== "move of a tree")) {
              const denied = { _tag: "AccessDenied", why: "permission", isDeclared: true }
              assert.deepInclude(yield* failure(self, fs), denied, self.name)
              assert.deepStrictEqual(picture(root), before, self.name)
            }
            const error = yield* Effect.flip(fs.delete("d", { recursive: true }))
            assert.deepInclude(error, { _tag: "AccessDenied", why: "permission" })
            assert.strictEqual(yield* fs.readString("d/f"), "old\n")
            yield* fs.copy("d/f", "copied")
            yield* fs.write("copied", "not immutable")
          })
        )
    )

    it.live("that is a directory permits appends to its files, but denies the creation, replacement and removal of files", () =>
      losingNothing(
        Effect.gen(function* () {
          const root = yield* directory
          plantAt(root)
          const fs = yield* host(root)
          const at = join(root, "d")
          yield* Effect.acquireRelease(
            Effect.sync(() => execFileSync("chattr", ["+i", at])),
            () => Effect.sync(() => execFileSync("chattr", ["-i", at]))
          )
          const before = picture(root)
          for (const self of mutations.filter(({ name }) =>
            /^(create,|overwrite,|replace,|edit|delete$|move|mkdir$)/.test(name)
          )) {
            if (self.name === "move of a link") continue
            const denied = { _tag: "AccessDenied", why: "permission", isDeclared: true }
            assert.deepInclude(yield* failure(self, fs), denied, self.name)
            assert.deepStrictEqual(picture(root), before, self.name)
          }
          yield* fs.write("d/f", "er", { mode: "append" })
          assert.strictEqual(yield* fs.readString("d/f"), "old\ner")
        })
      )
    )
  }
)

describe.runIf(mountable)("a file that is a mount point", () => {
  it.live("can be appended to, but not replaced, moved or removed: AccessDenied busy", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* directory
        const beside = yield* directory
        plantAt(root)
        Fs.writeFileSync(join(beside, "bound"), "old\n")
        yield* mounted(join(root, "d/f"), "--bind", join(beside, "bound"))
        const fs = yield* host(root)
        const before = picture(root)
        const busy = /^(overwrite,|overwrite where|replace,|edit|delete$|move over)/
        for (const self of mutations.filter(
          ({ name }) => busy.test(name) && name !== "move of a tree over an empty directory"
        )) {
          assert.deepInclude(yield* failure(self, fs), { _tag: "AccessDenied", why: "busy", isDeclared: true }, self.name)
          assert.deepStrictEqual(picture(root), before, self.name)
        }
        assert.deepInclude(yield* Effect.flip(fs.delete("d", { recursive: true })), { _tag: "AccessDenied", why: "busy" })
        yield* fs.write("d/f", "er", { mode: "append" })
        assert.strictEqual(Fs.readFileSync(join(beside, "bound"), "utf8"), "old\ner")
      })
    )
  )
})

describe("a program that is running (ETXTBSY)", () => {
  it.live("can be replaced, but an append fails with AccessDenied permission", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* directory
        const fs = yield* host(root)
        const program = join(root, "sleeping")
        Fs.copyFileSync("/bin/sleep", program)
        Fs.chmodSync(program, 0o755)
        yield* Effect.acquireRelease(
          Effect.promise(
            () =>
              new Promise<ReturnType<typeof spawn>>((resolve) => {
                const made = spawn(program, ["600"])
                made.once("spawn", () => resolve(made))
              })
          ),
          (made) =>
            Effect.promise(
              () =>
                new Promise((resolve) => {
                  made.once("exit", resolve)
                  made.kill()
                })
            )
        )
        const before = picture(root)
        const error = yield* Effect.flip(fs.write("sleeping", "x", { mode: "append" }))
        assert.deepInclude(error, { _tag: "AccessDenied", why: "permission" })
        assert.deepStrictEqual(picture(root), before)
        yield* fs.write("sleeping", "x")
        assert.deepStrictEqual(picture(root), { sleeping: 'file 755 "x"' })
      })
    )
  )
})

const nobody = 65534

interface Scene {
  readonly name: string
  readonly prepare: (root: string) => void
  /** The operations that POSIX allows here. Every other operation must be AccessDenied permission. */
  readonly possible: RegExp
}

const give = (...paths: ReadonlyArray<string>): void => void execFileSync("chown", ["-hR", `${nobody}:${nobody}`, ...paths])

const scenes: ReadonlyArray<Scene> = [
  {
    name: "a tree of another user",
    prepare: () => {},
    possible: new RegExp(`^(${reading.map(({ name }) => name).join("|")})$`)
  },
  {
    // Moving a directory needs write access to it. A stream is staged beside the file that it is appended to.
    name: "a directory without write permission that contains files of the user",
    prepare: (root) => {
      give(root)
      Fs.chmodSync(join(root, "d"), 0o555)
    },
    possible: new RegExp(
      `^(${reading.map(({ name }) => name).join("|")}|.*with parents.*|overwrite of a missing file.*|overwrite through a link.*|append, bytes|append to a missing file.*|appendExisting, bytes|` +
        "copy.*|move of a link|delete of (a link|an empty directory)|symlink|setAttributes|move of a tree over.*)$"
    )
  },
  {
    name: "a file without read permission",
    prepare: (root) => {
      give(root)
      Fs.chmodSync(join(root, "d/f"), 0o000)
    },
    possible:
      /^(exists|stat.*|lstat|realPath|list|walk|glob.*|grep.*|readLink|create.*|overwrite(,| of a missing file| through).*|replace.*|append to a missing file.*|copy of a link|move.*|delete.*|mkdir.*|symlink|setAttributes)$/
  },
  {
    name: "a directory without search permission",
    prepare: (root) => {
      give(root)
      Fs.chmodSync(join(root, "d"), 0o000)
    },
    possible:
      /^(exists|stat through a link|lstat|realPath|glob|globStream|grep|grepStream|readLink|create with.*|overwrite (of|through).*|append to a missing file.*|copy of a link|move of a link|delete of (a link|an empty directory)|mkdir with.*|symlink)$/
  }
]

describe.runIf(needs("changes by other users", () => isRoot, "it needs root to become another user"))(
  "a process of another user",
  () => {
    it.live("gets AccessDenied permission for every change that POSIX denies, and changes nothing", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const top = yield* directory
          Fs.chmodSync(top, 0o755)
          const child = yield* spawned()
          yield* child.ask({ become: nobody })
          const wrong: Array<string> = []
          for (const { name, possible, prepare } of scenes) {
            for (const self of operations) {
              const root = join(top, "root")
              Fs.rmSync(root, { recursive: true, force: true })
              Fs.mkdirSync(root)
              plantAt(root)
              prepare(root)
              const before = picture(root)
              const { left } = yield* child.ask({ open: root })
              if (left!.length > 0) wrong.push(`${name}, ${self.name}: left open ${left!.join()}`)
              const { died, failed } = yield* child.ask({ run: self.name })
              const shown = died ?? (failed === undefined ? "done" : JSON.stringify(failed))
              if (possible.test(self.name)) {
                if (shown !== "done") wrong.push(`${name}, ${self.name}: ${shown}`)
                continue
              }
              // A file that cannot be read can only be reported as a conflict with the expected version.
              if (failed?._tag === "Conflict" && self.name.includes("a version is expected")) continue
              if (failed?._tag !== "AccessDenied" || failed.why !== "permission" || !failed.isDeclared) {
                wrong.push(`${name}, ${self.name}: ${shown}`)
              }
              const after = picture(root)
              if (JSON.stringify(after) !== JSON.stringify(before) && self.name !== "delete of a tree") {
                wrong.push(`${name}, ${self.name}: changed to ${JSON.stringify(after)}`)
              }
            }
          }
          assert.deepStrictEqual(wrong, [])
        })
      )
    )

    it.live("creates files in a sticky directory, and cannot replace or remove files of other users", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = yield* directory
          plantAt(root)
          Fs.chmodSync(root, 0o1777)
          Fs.chmodSync(join(root, "d"), 0o1777)
          Fs.chmodSync(join(root, "d/f"), 0o666)
          const before = picture(root)
          const child = yield* spawned()
          yield* child.ask({ become: nobody })
          yield* child.ask({ open: root })
          for (const name of [
            "overwrite, bytes",
            "replace, a stream",
            "edit",
            "delete",
            "move",
            "move of a tree",
            "delete of a link"
          ]) {
            const { died, failed } = yield* child.ask({ run: name })
            assert.deepInclude(failed, { _tag: "AccessDenied", why: "permission", isDeclared: true }, `${name} ${died}`)
            assert.deepStrictEqual(picture(root), before, name)
          }
          for (const name of ["create, bytes", "append, bytes", "copy"]) {
            assert.deepStrictEqual(yield* child.ask({ run: name }), {}, name)
          }
          assert.strictEqual(Fs.readFileSync(join(root, "d/f"), "utf8"), "old\nnew")
          assert.strictEqual(Fs.statSync(join(root, "d/new")).uid, nobody)
        })
      )
    )
  }
)
