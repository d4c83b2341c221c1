/**
 * Snapshots of the files in a container while it runs. Directories shared with the host use layerGit, and files inside the
 * container use archives.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Container from "../../src/backends/Container.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { Sandbox } from "../../src/filesystem/Sandbox.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { capture, directory, type Files, link, plant } from "../../src/testing/Files.ts"
import { busyboxRoot, describePodman, services } from "../backends/container/podman.ts"
import { onDisk } from "../scratch.ts"

const files: Files = {
  ".gitignore": "ignored\n*.log\n",
  ignored: "kept all the same",
  "a.log": "\r\n",
  ".git/config": "[core]\n\tfsmonitor = touch /tmp/owned\n",
  "nested/.git/HEAD": "ref: refs/heads/main\n",
  "empty/dir": directory,
  "names/with 'quotes' and $(spaces)": "x",
  "names/-dash": "y",
  "deep/er/link": link("../../ignored"),
  "bin/tool": "#!/bin/sh\necho tool\n"
}

/** Shared directories use git. Files inside the container use the default layer, which stores archives. */
const snapshots = {
  overlay: () => Snapshots.layerGit({ gitDir: join(Fs.mkdtempSync(join(onDisk(), "store-")), "git") }),
  exec: () => Snapshots.layer
}

const working = (strategy: "overlay" | "exec") =>
  Effect.gen(function* () {
    const built = yield* Layer.build(
      snapshots[strategy]().pipe(
        Layer.provideMerge(Container.layer({ image: { rootfs: busyboxRoot() }, strategy })),
        Layer.provide(services)
      )
    )
    const fs = Context.get(built, Filesystem)
    yield* plant(fs.port, files)
    yield* fs.setAttributes("bin/tool", { mode: 0o755 })
    const { exec } = Context.get(built, Sandbox)
    const sh = (script: string) =>
      Effect.flatMap(exec(["sh", "-c", script]), ({ exitCode, stderr, stdout }) =>
        exitCode === 0 ? Effect.succeed(stdout) : Effect.die(new Error(`${script}: ${stderr}`))
      )
    return { fs, exec, sh, snapshots: Context.get(built, Snapshots.Snapshots) }
  })

/** The command that lists the tree from inside the container. */
const inside = "find . ! -name '.~fsa*' | sort; find . -type f ! -name '.~fsa*' -exec sha256sum {} + | sort"

const picture = (fs: Algebra) => capture(fs.port)

describePodman("with podman", () => {
  for (const strategy of ["overlay", "exec"] as const) {
    describe(`snapshots in a container, ${strategy}`, () => {
      it.live("restore files that commands changed, byte for byte, for the commands and for the filesystem", () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { fs, sh, snapshots } = yield* working(strategy)
            const before = yield* picture(fs)
            const seen = yield* sh(inside)
            const taken = yield* snapshots.snapshot()
            yield* sh(
              "rm -rf deep names .git; echo changed > ignored; chmod 644 bin/tool; mkdir -p new/empty; ln -s ../bin new/l"
            )
            assert.notDeepEqual(yield* picture(fs), before)
            const changes = yield* snapshots.diff(taken)
            assert.include(
              changes.map(({ _tag, path }) => `${_tag} ${path}`),
              "Modified ignored"
            )
            yield* snapshots.restore(taken)
            assert.deepStrictEqual(yield* picture(fs), before)
            assert.strictEqual(yield* sh(inside), seen)
            assert.strictEqual(yield* sh("./bin/tool && echo more >> ignored && rm -r names && id -u"), "tool\n65534\n")
          })
        )
      )

      it.live("can be restored while a command runs in the container, and keep the working directory of the command", () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { exec, fs, snapshots } = yield* working(strategy)
            const taken = yield* snapshots.snapshot()
            const before = yield* picture(fs)
            yield* fs.write("ignored", "changed")
            // The command waits, in its working directory, until the file comes back.
            const waiting = 'until [ "$(cat ignored)" = "kept all the same" ]; do sleep 0.05; done; cat ignored'
            const command = yield* Effect.forkChild(exec(["sh", "-c", waiting], { timeout: "60 seconds" }))
            yield* snapshots.restore(taken)
            const { exitCode, stdout } = yield* Fiber.join(command)
            assert.deepStrictEqual([exitCode, stdout], [0, "kept all the same"])
            assert.deepStrictEqual(yield* picture(fs), before)
          })
        )
      )

      it.live("roll back a failed transaction with the changes of its commands", () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { fs, sh, snapshots } = yield* working(strategy)
            const before = yield* picture(fs)
            const failed = Effect.andThen(sh("rm -rf bin; echo x > y"), Effect.fail("no" as const))
            assert.strictEqual(yield* Effect.flip(snapshots.transaction(failed)), "no")
            assert.deepStrictEqual(yield* picture(fs), before)
          })
        )
      )
    })
  }

  it.live("archives transfer a tree unchanged from memory to a host, into a container and into a shared directory", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const memory = make(yield* InMemory.make())
        yield* plant(memory.port, files)
        yield* memory.setAttributes("bin/tool", { mode: 0o755 })
        const host = make(yield* PosixHost.make({ root: Fs.mkdtempSync(join(onDisk(), "host-")) }))
        const [apart, shared] = [yield* working("exec"), yield* working("overlay")]
        for (const { fs } of [apart, shared]) yield* fs.delete("nested", { recursive: true })
        const before = yield* picture(memory)
        let last: Algebra = memory
        for (const next of [host, apart.fs, shared.fs]) {
          yield* Archive.importBytesOf(next, yield* Archive.exportBytesOf(last))
          assert.deepStrictEqual(yield* picture(next), before, next.name)
          last = next
        }
        for (const { sh } of [apart, shared]) assert.strictEqual(yield* sh("./bin/tool"), "tool\n")
      })
    )
  )
})
