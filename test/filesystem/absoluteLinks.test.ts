/** Tests absolute links that lead into the root, through each kind of layer between a host and a caller. */
import { assert, describe, it } from "@effect/vitest"
import { NodeFileSystem } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { quota, readOnly, retry, subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { commit, overlay } from "../../src/filesystem/Overlay.ts"
import { fromFileSystem } from "../../src/filesystem/Platform.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import { makeRelativeTargets } from "../../src/port/absoluteLinks.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { recordInto } from "../../src/journal/record/record.ts"
import * as Replay from "../../src/journal/Replay.ts"
import { checked } from "../backends/posixHost.ts"
import { compile, start } from "../security/attack/attackers.ts"
import { onDisk } from "../scratch.ts"

const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(onDisk(), "absolute-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** Makes a root with absolute links into it, a link that leads out, and a directory beside it. */
const planted = Effect.map(directory, (top) => {
  const [root, outside] = [join(top, "root"), join(top, "outside")]
  for (const at of [join(root, "d/e"), outside]) Fs.mkdirSync(at, { recursive: true })
  Fs.writeFileSync(join(root, "d/f"), "inside")
  Fs.writeFileSync(join(outside, "f"), "secret")
  Fs.symlinkSync(join(root, "d/f"), join(root, "d/e/l"))
  Fs.symlinkSync(join(root, "d"), join(root, "ld"))
  Fs.symlinkSync(outside, join(root, "out"))
  return { top, root, outside }
})

const host = (root: string, options: Omit<PosixHost.PosixHostOptions, "root"> = {}) =>
  Effect.map(PosixHost.make({ root, ...options }), make)

const memory = (options: InMemory.InMemoryOptions = {}) => Effect.map(InMemory.make(options), make)

const whyOf = <A, R>(effect: Effect.Effect<A, { readonly _tag: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => [error._tag, (error as { readonly why?: string }).why])

const escape = ["AccessDenied", "escape"]

describe("absolute links into the root", () => {
  const wrapped: ReadonlyArray<readonly [what: string, wrap: (fs: Algebra) => Effect.Effect<Algebra, unknown>]> = [
    ["a host", Effect.succeed],
    ["a read-only view", (fs) => Effect.succeed(readOnly(fs))],
    ["a quota", quota({ maxBytes: 1000 })],
    ["spans", (fs) => Effect.succeed(traced(fs))],
    ["retries", (fs) => Effect.succeed(retry({ times: 1 })(fs))],
    ["an overlay", (fs) => Effect.map(memory(), (upper) => overlay(upper)(fs))],
    [
      "an overlay with other rules of case",
      (fs) => Effect.map(memory({ caseInsensitive: true }), (upper) => overlay(upper)(fs))
    ]
  ]
  for (const [what, wrap] of wrapped) {
    it.live(`are followed through ${what}`, () =>
      Effect.gen(function* () {
        const { root } = yield* planted
        const fs = yield* wrap(yield* host(root))
        assert.strictEqual(yield* fs.readString("ld/e/l"), "inside")
        assert.strictEqual(yield* fs.readLink("ld"), join(root, "d"))
        assert.deepStrictEqual(yield* whyOf(fs.readString("out/f")), escape)
      })
    )
  }

  it.live("are followed on a machine that does not show descriptors", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      const fs = make(yield* checked({ root }))
      assert.strictEqual(yield* fs.readString("ld/e/l"), "inside")
      assert.deepStrictEqual(yield* whyOf(fs.readString("out/f")), escape)
    })
  )

  it.live("can name the root by its real path or by the path with which it was opened", () =>
    Effect.gen(function* () {
      const { root, top } = yield* planted
      const alias = join(top, "alias")
      Fs.symlinkSync(root, alias)
      Fs.symlinkSync(join(alias, "d/f"), join(root, "byAlias"))
      const fs = yield* host(alias)
      assert.strictEqual(yield* fs.readString("byAlias"), "inside")
      assert.strictEqual(yield* fs.readString("ld/f"), "inside")
      assert.deepStrictEqual(yield* whyOf((yield* host(root)).readString("byAlias")), escape)
    })
  )

  it.live("with the current path of a moved root lead into the root", () =>
    Effect.gen(function* () {
      const { root, top } = yield* planted
      const fs = yield* host(root)
      const moved = join(top, "moved")
      Fs.renameSync(root, moved)
      Fs.symlinkSync(join(moved, "d/f"), join(moved, "after"))
      assert.strictEqual(yield* fs.readString("after"), "inside")
    })
  )

  it.live("with the old path of a moved root lead outside when another directory takes its place", () =>
    Effect.gen(function* () {
      const { root, top } = yield* planted
      const fs = yield* host(root)
      Fs.renameSync(root, join(top, "moved"))
      Fs.mkdirSync(root)
      Fs.writeFileSync(join(root, "foreign"), "foreign")
      assert.deepStrictEqual(yield* whyOf(fs.symlink("k", join(root, "foreign"))), escape)
    })
  )

  it("are refused if the root has no absolute path", () => {
    for (const root of [".", "srv", ""]) {
      const relative = makeRelativeTargets(() => [root])
      for (const target of ["/etc/passwd", "/srv/f", "/"])
        assert.isUndefined(relative(FsPath.root, target), `${root} ${target}`)
    }
  })

  it.live("of a mounted host are refused if they climb out of its root", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      Fs.symlinkSync(`${root}/../conf`, join(root, "up"))
      const outer = yield* memory()
      yield* outer.write("conf", "outer")
      const fs = yield* mount("m", yield* host(root))(outer)
      assert.deepStrictEqual(yield* whyOf(fs.readString("m/up")), escape)
      assert.deepStrictEqual(yield* whyOf(fs.write("m/up", "changed")), escape)
      assert.strictEqual(yield* outer.readString("conf"), "outer")
    })
  )

  it.live("of a host below an overlay start with the host's path, whatever the root of the upper filesystem is", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      const fs = overlay(yield* memory({ absoluteLinks: "root" }))(yield* host(root))
      assert.strictEqual(yield* fs.readString("ld/f"), "inside")
      yield* fs.write("ld/f", "draft")
      assert.strictEqual(yield* fs.readString("d/f"), "draft")
      assert.strictEqual(Fs.readFileSync(join(root, "d/f"), "utf8"), "inside")
    })
  )

  it.live("lead to the same files in a replay of a recording", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      const journal = yield* Journal.makeMemory<Journal.Entry>()
      const recorded = yield* recordInto(journal, { reads: true })(yield* host(root))
      for (const path of ["ld/f", "d/e/l"]) assert.strictEqual(yield* recorded.readString(path), "inside")
      const double = yield* Replay.double(journal)
      for (const path of ["ld/f", "d/e/l"]) assert.strictEqual(yield* double.readString(path), "inside")
    })
  )

  it.live("lead into a subdirectory only if they stay in it", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      Fs.writeFileSync(join(root, "above"), "above")
      Fs.symlinkSync(join(root, "above"), join(root, "d/up"))
      const fs = yield* subdirectory("d")(yield* host(root))
      assert.strictEqual(yield* fs.readString("e/l"), "inside")
      assert.deepStrictEqual(yield* whyOf(fs.readString("up")), escape)
      assert.deepStrictEqual(yield* whyOf(fs.symlink("again", join(root, "above"))), escape)
    })
  )

  it.live("of a mounted host lead into the mount, and never outside of it", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* planted, yield* planted]
      Fs.symlinkSync(join(one.root, "d/f"), join(two.root, "across"))
      const fs = yield* mount("at/two", yield* host(two.root))(yield* host(one.root))
      assert.strictEqual(yield* fs.readString("at/two/ld/e/l"), "inside")
      assert.strictEqual(yield* fs.readString("ld/e/l"), "inside")
      assert.deepStrictEqual(yield* whyOf(fs.readString("at/two/across")), escape)
      yield* fs.write("at/two/ld/f", "changed")
      assert.strictEqual(Fs.readFileSync(join(two.root, "d/f"), "utf8"), "changed")
      assert.strictEqual(Fs.readFileSync(join(one.root, "d/f"), "utf8"), "inside")
    })
  )

  it.live("that were copied up in an overlay lead into the shown tree, and are committed with their text", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      const lower = yield* host(root)
      const fs = overlay(yield* memory())(lower)
      yield* fs.move("d/e/l", "moved")
      yield* fs.write("moved", "draft")
      yield* fs.symlink("made", join(root, "d/f"))
      assert.strictEqual(yield* fs.readString("made"), "draft")
      assert.strictEqual(yield* lower.readString("d/f"), "inside")
      yield* commit(fs)
      assert.strictEqual(Fs.readlinkSync(join(root, "moved")), join(root, "d/f"))
      assert.strictEqual(yield* lower.readString("made"), "draft")
    })
  )

  it.live("obey the symlinks option like other links", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      assert.deepStrictEqual(yield* whyOf((yield* host(root, { symlinks: "refuse" })).readString("ld/f")), [
        "AccessDenied",
        "link"
      ])
      const reports = yield* host(root, { symlinks: "report" })
      assert.strictEqual((yield* reports.stat("ld")).kind, "symlink")
      assert.strictEqual(yield* reports.readString("ld/f"), "inside")
    })
  )

  it.live("are followed in a directory of effect's FileSystem", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      const layer = fromFileSystem({ root }).pipe(Layer.provide(NodeFileSystem.layer))
      const fs = yield* Effect.provide(Filesystem, layer)
      assert.strictEqual(yield* fs.readString("ld/e/l"), "inside")
      assert.deepStrictEqual(yield* whyOf(fs.readString("out/f")), escape)
    })
  )

  for (const [what, snapshots] of [
    ["git", Snapshots.layer],
    ["archives", Snapshots.layerArchive]
  ] as const) {
    it.live(`keep their text in a snapshot by ${what}, and lead into its forks`, () =>
      Effect.gen(function* () {
        const { root } = yield* planted
        const layer = snapshots.pipe(Layer.provideMerge(PosixHost.layer({ root })))
        const program = Effect.gen(function* () {
          const fs = yield* Filesystem
          const taken = yield* (yield* Snapshots.Snapshots).snapshot()
          const fork = yield* Snapshots.fork(taken)
          yield* fork.write("ld/f", "forked")
          assert.strictEqual(yield* fork.readString("d/e/l"), "forked")
          yield* fs.delete("ld")
          yield* (yield* Snapshots.Snapshots).restore(taken)
          assert.strictEqual(Fs.readlinkSync(join(root, "ld")), join(root, "d"))
          assert.strictEqual(yield* fs.readString("ld/f"), "inside")
        })
        yield* Effect.provide(program, layer)
      })
    )
  }

  it.live("are skipped and reported in a ZIP, because they would lead out of it", () =>
    Effect.gen(function* () {
      const { root } = yield* planted
      const skipped: Array<string> = []
      const fs = yield* host(root)
      yield* Stream.runDrain(Archive.exportZipOf(fs, { onSkipped: ({ path }) => void skipped.push(path) }))
      assert.includeMembers(skipped, ["d/e/l", "ld"])
    })
  )

  it.live(
    "never lead outside while their target is swapped for a link",
    () =>
      Effect.gen(function* () {
        const { root, top } = yield* planted
        Fs.symlinkSync(join(top, "outside"), join(root, "swap"))
        const attacker = yield* Effect.promise(() =>
          start(compile(top), ["exchange", join(root, "d"), join(root, "swap")], 20_000, join(top, "counter"))
        )
        const fs = yield* host(root)
        const answers = new Map<string, number>()
        for (let n = 0; n < 1000; n++) {
          const answer = yield* Effect.match(fs.readString("ld/f"), {
            onFailure: ({ _tag }) => _tag,
            onSuccess: (text) => text
          })
          answers.set(answer, (answers.get(answer) ?? 0) + 1)
          yield* Effect.ignore(fs.write("ld/f", "inside"))
        }
        const { swaps } = yield* Effect.promise(attacker.stop)
        assert.isAbove(swaps, 100)
        assert.isUndefined(answers.get("secret"))
        assert.isAbove(answers.get("inside") ?? 0, 0)
        assert.isAbove(answers.get("AccessDenied") ?? 0, 0)
        assert.strictEqual(Fs.readFileSync(join(top, "outside/f"), "utf8"), "secret")
      }),
    120_000
  )
})

describe("absolute links in memory", () => {
  const tree = { d: { f: "inside" }, l: { link: "/d/f" }, top: { link: "/" }, climbs: { link: "/../d/f" } }

  it.effect('lead out of the root unless absoluteLinks is "root"', () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* whyOf((yield* memory({ tree })).readString("l")), escape)
      const fs = yield* memory({ tree, absoluteLinks: "root" })
      assert.strictEqual(yield* fs.readString("l"), "inside")
      assert.strictEqual(yield* fs.readString("top/top/d/f"), "inside")
      assert.deepStrictEqual(yield* whyOf(fs.readString("climbs")), escape)
      yield* fs.symlink("d/made", "/l")
      assert.strictEqual(yield* fs.readString("d/made"), "inside")
      assert.strictEqual(yield* fs.readLink("d/made"), "/l")
    })
  )
})
