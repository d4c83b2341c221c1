import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import { Files, Law, laws, policySuite, suite } from "../../src/testing/index.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "fs-algebra-laws-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const bench = (root: string): Law.Bench => ({
  makeOther: (path) => Effect.sync(() => void execFileSync("mkfifo", [join(root, path)]))
})

const node = Layer.unwrap(
  Effect.map(temporary, (root) =>
    Layer.merge(Layer.provide(Platform.fromFileSystem({ root }), NodeFileSystem.layer), Layer.succeed(Law.Bench, bench(root)))
  )
)

const round = Platform.fromFileSystem({ root: "/" }).pipe(Layer.provide(Platform.toFileSystem), Layer.provide(InMemory.layer()))

/** They begin with a link to the outside, which a Filesystem that is served as a FileSystem does not make. */
const beginsOutside = new Set([
  "no call follows the link out to the outside",
  "no call follows the link absolute to the outside",
  "no call follows the link d/deep to the outside",
  "globs and greps pass over links to the outside",
  "a recursive delete does not follow what it meets",
  "delete of a link to the outside removes the link",
  "copy of a tree keeps its links, also those that lead out or nowhere"
])

suite("Platform.fromFileSystem over effect's Node implementation", node, { programs: 60 })

suite("Platform.fromFileSystem over Platform.toFileSystem of InMemory", round, {
  programs: 60,
  laws: laws.filter((law) => !beginsOutside.has(law.name))
})

describe("the laws that Platform.fromFileSystem over Platform.toFileSystem cannot keep", () => {
  for (const law of laws.filter((law) => beginsOutside.has(law.name))) {
    it.live(`${law.name}: the link itself is refused`, () =>
      Effect.gen(function* () {
        const found = yield* Effect.provide(Law.verdict(law), round)
        assert.strictEqual(found._tag, "Broken")
        if (found._tag === "Broken") assert.match(found.error.actual, /"why":"escape".*"operation":"symlink"/)
      })
    )
  }
  it("are all in the list", () =>
    assert.strictEqual(laws.filter((law) => beginsOutside.has(law.name)).length, beginsOutside.size))
})

/** The files are put there by a Filesystem without options, over the same FileSystem. */
const planted = (options: Platform.FileSystemOptions, files: Files.Files) =>
  Layer.effectDiscard(
    Effect.provide(
      Effect.flatMap(Filesystem, ({ port }) => Effect.orDie(Files.plant(port, files))),
      Platform.fromFileSystem({ root: options.root })
    )
  ).pipe(Layer.provideMerge(Platform.fromFileSystem(options)))

policySuite("Platform.fromFileSystem over effect's Node implementation", ({ symlinks, ...options }, files) =>
  symlinks === undefined
    ? Layer.unwrap(Effect.map(temporary, (root) => planted({ ...options, root }, files))).pipe(
        Layer.provide(NodeFileSystem.layer)
      )
    : undefined
)

policySuite("Platform.fromFileSystem over Platform.toFileSystem of InMemory", ({ symlinks, ...options }, files) =>
  symlinks === undefined
    ? planted({ ...options, root: "." }, files).pipe(Layer.provide(Platform.toFileSystem), Layer.provide(InMemory.layer()))
    : undefined
)
