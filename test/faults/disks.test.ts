/** A second disk inside the tree. A move between the disks copies and then removes, and no failure in between loses data. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { canMount, directory, disk, host, losingNothing, needs, picture, plantAt } from "./ground.ts"
import { spawned } from "./child.ts"
import { extraMoves } from "./large.ts"
import { failure, steps } from "./operations.ts"
import { tracer } from "./tracer.ts"

interface Ground {
  readonly fs: Algebra
  readonly root: string
}

/** Makes the usual tree with a second disk mounted at `m`. */
const ground: Effect.Effect<Ground, never, Scope.Scope> = Effect.gen(function* () {
  const root = yield* directory
  plantAt(root)
  Fs.mkdirSync(join(root, "m"))
  yield* disk("size=1m", join(root, "m"))
  return { fs: yield* host(root), root }
})

const mountable = needs("a disk inside the tree", canMount, "it needs root and a kernel that lets it mount a tmpfs")

describe.runIf(mountable)("between two disks", () => {
  it.live("files, links and trees are moved and copied without leftovers, and a move keeps modes", () =>
    losingNothing(
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        Fs.chmodSync(join(root, "d/f"), 0o640)
        Fs.chmodSync(join(root, "d/e"), 0o750)
        const { m: _, ...before } = picture(root)
        assert.deepStrictEqual(yield* fs.move("d", "m/p/d"), { files: 2, directories: 2, bytes: 8 })
        assert.deepStrictEqual(yield* fs.move("other", "m/other"), { files: 1, directories: 0, bytes: 1 })
        assert.deepStrictEqual(yield* fs.move("l", "m/l"), { files: 1, directories: 0, bytes: 0 })
        assert.deepStrictEqual(yield* fs.copy("m/other", "q/other"), { files: 1, directories: 0, bytes: 1 })
        const moved = picture(join(root, "m"))
        for (const path of ["d", "d/e", "d/e/g", "d/f"]) assert.strictEqual(moved[`p/${path}`], before[path])
        assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["empty", "m", "q"])
        for (const path of ["d", "other", "l"]) {
          yield* fs.move(path === "d" ? "m/p/d" : `m/${path}`, path)
        }
        yield* fs.delete("q", { recursive: true })
        yield* fs.delete("m/p")
        const { m: _m, ...after } = picture(root)
        assert.deepStrictEqual(after, before)
        assert.deepStrictEqual(picture(join(root, "m")), {})
      })
    )
  )

  it.live("a move or copy that does not fit fails with DiskFull, keeps the original and leaves no copy", () =>
    losingNothing(
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        Fs.mkdirSync(join(root, "big"))
        for (const name of ["1", "2", "3"]) Fs.writeFileSync(join(root, "big", name), Buffer.alloc(400_000, name))
        Fs.writeFileSync(join(root, "huge"), Buffer.alloc(2_000_000, "h"))
        const before = picture(root)
        for (const call of [
          fs.move("big", "m/p/big"),
          fs.copy("big", "m/p/big"),
          fs.move("huge", "m/p/huge"),
          fs.copy("huge", "m/huge")
        ]) {
          assert.strictEqual((yield* Effect.flip(call))._tag, "DiskFull")
          assert.deepStrictEqual(picture(root), before)
        }
      })
    )
  )

  it.live("a move that is interrupted at any step loses nothing and leaves no partial file", () =>
    losingNothing(
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        const before = picture(join(root, "d"))
        let isThrough = false
        for (let nth = 1; !isThrough; nth++) {
          const slow = faulty([{ operation: steps, nth, fault: "hang" }])(fs)
          const fiber = yield* Effect.forkChild(slow.move("d", "m/p/d"), { startImmediately: true })
          isThrough = yield* Effect.raceFirst(Effect.as(slow.hung, false), Effect.as(Fiber.await(fiber), true))
          yield* Fiber.interrupt(fiber)
          const [original, copy] = ["d", "m/p/d"].map((path) =>
            Fs.existsSync(join(root, path)) ? picture(join(root, path)) : {}
          )
          for (const [path, line] of Object.entries(before)) {
            assert.include([original![path], copy![path]], line, `${path} after ${nth}`)
            assert.include([undefined, line], original![path], `${path} after ${nth}`)
            assert.include([undefined, line], copy![path], `${path} after ${nth}`)
          }
          assert.notInclude(JSON.stringify(picture(root)), ".~fsa-")
          execFileSync("rm", ["-rf", join(root, "m/p"), join(root, "d")])
          plantAt(join(root, "d"), { f: "old\n", "e/g": "deep" })
        }
        assert.isAbove(Object.keys(before).length, 2)
      })
    )
  )

  it.live("a move whose removal cannot be confirmed (durability full, EIO from fsync) keeps at least one complete copy", () =>
    losingNothing(
      Effect.gen(function* () {
        const { root } = yield* ground
        const scratch = yield* directory
        const child = yield* spawned()
        const { failing, sites } = tracer(scratch)
        const [self] = extraMoves
        const anew = () => {
          execFileSync("rm", ["-rf", join(root, "m/f"), join(root, "d")])
          plantAt(join(root, "d"), { f: "old\n", "e/g": "deep" })
          return child.ask({ open: root, options: { durability: "full" } })
        }
        yield* anew()
        const all = yield* sites(child.pid, root, child.ask({ run: self!.name }))
        assert.strictEqual(Fs.readFileSync(join(root, "m/f"), "utf8"), "old\n")
        const points = all.filter(({ call }) => call === "fsync" || call === "unlink" || call === "fchmod" || call === "chmod")
        assert.isAbove(points.length, 2)
        const wrong: Array<string> = []
        for (const site of points) {
          yield* anew()
          const { answer } = yield* failing(site, "EIO", child.ask({ run: self!.name }))
          const kept = ["d/f", "m/f"].filter((path) => Fs.existsSync(join(root, path)))
          const isWhole = kept.every((path) => Fs.readFileSync(join(root, path), "utf8") === "old\n")
          if (kept.length === 0 || !isWhole) wrong.push(`${site.call}${site.text}: ${JSON.stringify([answer, kept])}`)
        }
        assert.deepStrictEqual(wrong, [])
      })
    )
  )

  it.live("a move to a disk that became read-only, or a delete on it, fails with AccessDenied", () =>
    losingNothing(
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        yield* fs.copy("d", "m/d")
        execFileSync("mount", ["-o", "remount,ro", join(root, "m")])
        const before = picture(root)
        const [self] = extraMoves
        assert.deepInclude(yield* failure(self!, fs), { _tag: "AccessDenied", why: "readOnly", isDeclared: true })
        assert.deepInclude(yield* Effect.flip(fs.delete("m/d", { recursive: true })), { _tag: "AccessDenied", why: "readOnly" })
        assert.deepInclude(yield* Effect.flip(fs.delete("m", { recursive: true })), { _tag: "AccessDenied" })
        assert.deepStrictEqual(picture(root), before)
      })
    )
  )
})
