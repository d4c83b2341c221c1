import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import { Sandbox } from "../../src/filesystem/Sandbox.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import { busyboxRoot, containers, describePodman, directory as cacheOf, services } from "../backends/container/podman.ts"
import { directory, names, project, session } from "./sectioning.ts"

const withSandbox = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm", "shell", "eval"]

const overlays = (): ReadonlyArray<string> => {
  const place = join(cacheOf(), "cache/fs-algebra/overlays")
  return existsSync(place) ? names(place) : []
}

const options = () => ({ image: { rootfs: busyboxRoot() }, evalLanguage: "sh" as const })

describePodman("sections with a container:", () => {
  it.live(
    "the directory of a sandbox has its mounts before a container starts, is shared with clones, and is removed with the last clone",
    () =>
      Effect.gen(function* () {
        const root = project()
        const mounts = [{ hostPath: "src", include: ["*.py"] }]
        const [one, two] = [yield* Scope.make(), yield* Scope.make()]
        const made = yield* Scope.provide(
          Section.PodmanSandboxSection({ ...options(), mounts, allowedRoots: [root], session: yield* session() }),
          one
        )
        assert.deepStrictEqual([made.key, made.title], ["podman.shell", "Podman Sandbox"])
        assert.deepStrictEqual(
          made.tools.map(({ name }) => name),
          withSandbox
        )
        assert.deepStrictEqual([overlays().length, containers().length], [1, 0])
        const filesystem = yield* made.filesystem
        assert.strictEqual(yield* filesystem.readString("src/main.py"), "print('hello')\n")
        const sandbox = Context.getUnsafe(yield* made.services, Sandbox)
        const snapshots = Context.getUnsafe(yield* made.services, Snapshots)
        const taken = yield* snapshots.snapshot()
        const ran = yield* sandbox.exec(["sh", "-c", "cat src/main.py; echo new > made.txt"])
        assert.deepStrictEqual([ran.exitCode, ran.stdout], [0, "print('hello')\n"])
        assert.strictEqual(yield* filesystem.readString("made.txt"), "new\n")
        yield* (yield* made.snapshots).snapshot("turn-1")
        yield* snapshots.restore(taken)
        assert.isFalse(yield* filesystem.exists("made.txt"))
        yield* (yield* made.snapshots).rollback("turn-1")
        assert.strictEqual((yield* sandbox.eval("cat made.txt")).stdout, "new\n")

        const clone = yield* Scope.provide(made.clone(yield* session()), two)
        assert.strictEqual(yield* clone.filesystem, filesystem)
        yield* Scope.close(one, Exit.void)
        assert.lengthOf(containers(), 1)
        assert.strictEqual((yield* Context.getUnsafe(yield* clone.services, Sandbox).exec(["cat", "made.txt"])).stdout, "new\n")
        yield* Scope.close(two, Exit.void)
        assert.deepStrictEqual([overlays(), containers()], [[], []])
      }).pipe(Effect.provide(services))
  )

  it.live("a container with its own files and mounts starts at the first use, not when the prompt is rendered", () =>
    Effect.gen(function* () {
      const root = project()
      const made = yield* Section.PodmanSection({ ...options(), mounts: [{ hostPath: "docs" }], allowedRoots: [root] })
      assert.deepStrictEqual([made.key, made.title], ["podman", "Sandbox"])
      assert.deepStrictEqual(
        made.tools.map(({ name }) => name),
        withSandbox
      )
      const prompt = yield* Prompt.make({ ns: "agents/test", key: "test", sections: [made] })
      assert.include((yield* Prompt.render(prompt)).text, "docs/intro.md")
      assert.lengthOf(containers(), 0)
      const filesystem = yield* made.filesystem
      assert.lengthOf(containers(), 1)
      assert.strictEqual(yield* filesystem.readString("docs/intro.md"), "# Intro\n")
      const sandbox = Context.getUnsafe(yield* made.services, Sandbox)
      assert.strictEqual((yield* sandbox.exec(["cat", "docs/intro.md"])).stdout, "# Intro\n")
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  /**
   * Checks checkpoints with an absolute link, as installers create it. Its target inside the container differs from the
   * target outside.
   */
  const worksAroundLink = (section: Section.Workspace) =>
    Effect.gen(function* () {
      const own = yield* session()
      const snapshots = Context.getUnsafe(yield* section.services, Snapshots)
      const checkpoint = yield* Checkpoint.make({ session: own, snapshots })
      const prompt = yield* Prompt.make({ ns: "agents/test", key: "links", sections: [section] })
      const run = yield* Adapter.run(Adapter.make("test"), prompt, { session: own, checkpoint })
      const filesystem = yield* section.filesystem
      const sandbox = Context.getUnsafe(yield* section.services, Sandbox)
      const call = Effect.fnUntraced(function* (tool: string, input: object, callId: string) {
        const { message, success } = yield* run.call(tool, input, { callId })
        assert.isTrue(success, message)
      })
      const shell = (command: string, callId: string) => call("shell", { command: ["sh", "-c", command] }, callId)
      /** The names of the entries and the targets of the links, as a program in the container sees them. */
      const seen = Effect.map(
        sandbox.exec(["sh", "-c", "for f in *; do if [ -L $f ]; then echo $f = $(readlink $f); else echo $f; fi; done"]),
        ({ stdout }) => stdout.trim().split("\n")
      )
      yield* call("write_file", { path: "before.txt", content: "one\n" }, "1")
      yield* shell("ln -s /bin/busybox tool", "2")
      yield* call("write_file", { path: "after.txt", content: "two\n" }, "3")
      yield* shell("test -x tool && echo three > made.txt", "4")
      const whole = ["after.txt", "before.txt", "made.txt", "tool = /bin/busybox"]
      assert.deepStrictEqual(yield* seen, whole)
      const archives = yield* section.snapshots
      yield* archives.snapshot("whole")

      yield* shell("rm tool", "5")
      assert.deepStrictEqual(yield* seen, ["after.txt", "before.txt", "made.txt"])
      yield* checkpoint.rollback("pre:shell:5")
      assert.deepStrictEqual(yield* seen, whole)

      yield* call("rm", { path: "tool" }, "6")
      yield* call("write_file", { path: "before.txt", content: "changed\n", mode: "overwrite" }, "7")
      assert.deepStrictEqual(yield* seen, ["after.txt", "before.txt", "made.txt"])
      yield* checkpoint.rollback("pre:rm:6")
      assert.deepStrictEqual(yield* seen, whole)
      assert.strictEqual(yield* filesystem.readString("before.txt"), "one\n")
      assert.isTrue((yield* sandbox.exec(["test", "-x", "tool"])).exitCode === 0)

      yield* checkpoint.rollback("pre:shell:2")
      assert.deepStrictEqual(yield* seen, ["before.txt"])
      yield* archives.rollback("whole")
      assert.deepStrictEqual(yield* seen, whole)
    })

  it.live("checkpoints of a sandbox over a directory restore a link that leads out of the root", () =>
    Effect.gen(function* () {
      yield* worksAroundLink(yield* Section.PodmanSandboxSection(options()))
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("checkpoints of a container restore a link that leads out of the root", () =>
    Effect.gen(function* () {
      yield* worksAroundLink(yield* Section.PodmanSection(options()))
    }).pipe(Effect.scoped, Effect.provide(services))
  )

  it.live("a section that cannot be made leaves no directory and no container", () =>
    Effect.gen(function* () {
      const root = project()
      const mounts = [{ hostPath: "src" }]
      const bad = [
        [{ ...options(), mounts }, "MountError"],
        // The mounts can be planned but not copied, because a file is where a directory must be.
        [
          {
            ...options(),
            mounts: [
              { hostPath: "src/main.py", mountPath: "a" },
              { hostPath: "docs", mountPath: "a/main.py" }
            ]
          },
          "NotADirectory"
        ],
        [{ ...options(), hostDirectory: directory(), mounts }, "InvalidArgument"],
        [{ ...options(), acceptsOverrides: true, overrides: { none: "No such tool." } }, "InvalidArgument"]
      ] as const
      for (const [index, [wrong, tag]] of bad.entries()) {
        const made = Section.PodmanSandboxSection(index === 0 ? wrong : { ...wrong, allowedRoots: [root] })
        assert.strictEqual((yield* Effect.flip(made))._tag, tag)
        assert.deepStrictEqual([overlays(), containers()], [[], []])
      }
    }).pipe(Effect.scoped, Effect.provide(services))
  )
})
