/** Whole programs with prompts, sections and adapters, as a user writes them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { join } from "node:path"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import * as Slice from "../../src/model/Slice.ts"
import { VirtualFileSystem } from "../../src/workspace/VfsState.ts"
import { directory, plant, session } from "./sectioning.ts"

const behaviour = Section.MarkdownSection({
  title: "Behaviour",
  template: "Use the virtual filesystem to stage edits before applying them to the host workspace."
})

describe("a prompt with a section over a virtual filesystem", () => {
  it.live("has the filesystem of the section with its mounts, and its tools see files that the program writes", () =>
    Effect.gen(function* () {
      const root = directory()
      plant(root, { "src/main.py": "print()\n", "src/notes.txt": "", "docs/intro.md": "# Intro\n", "docs/logo.svg": "" })
      const vfs = yield* Section.VfsToolsSection({
        mounts: [
          { hostPath: "src/", include: ["*.py"] },
          { hostPath: "docs/", include: ["*.md"] }
        ],
        allowedRoots: [root]
      })
      const template = yield* Prompt.template({
        ns: "agents/coder",
        key: "edit-files",
        sections: [
          Section.MarkdownSection({ title: "Instructions", key: "instructions", template: "Edit files as requested." }),
          vfs
        ]
      })
      const prompt = yield* Prompt.make(template)

      const fs = Option.getOrThrow(yield* Prompt.filesystem(prompt))
      assert.strictEqual(fs, yield* vfs.filesystem)
      yield* fs.write("scratch/notes.txt", "Working notes...")
      assert.isTrue(yield* fs.exists("src/main.py"))
      assert.deepStrictEqual(
        (yield* fs.glob("**/*")).matches.filter(({ kind }) => kind === "file").map(({ path }) => String(path)),
        ["docs/intro.md", "scratch/notes.txt", "src/main.py"]
      )

      const run = yield* Adapter.run(Adapter.make("test"), prompt, { session: yield* session() })
      assert.strictEqual(Option.getOrThrow(run.context.filesystem), fs)
      const read = yield* run.call("read_file", { path: "scratch/notes.txt" })
      assert.isTrue(read.success, read.message)
      assert.include(read.message, "Working notes...")
    }).pipe(Effect.scoped)
  )
})

describe("a section with a session", () => {
  it.live("renders its instructions and its tools, and records a file in the session at its first write", () =>
    Effect.gen(function* () {
      const root = directory()
      plant(root, { "docs/a.md": "# A\n", "docs/a.png": "" })
      const own = yield* session()
      const vfs = yield* Section.VfsToolsSection({
        session: own,
        mounts: [{ hostPath: "docs/", mountPath: ["docs"], include: ["*.md"] }],
        allowedRoots: [root]
      })
      const prompt = yield* Prompt.make({
        ns: "agents/background",
        key: "workspace",
        name: "workspace-tools",
        sections: [behaviour, vfs]
      })
      const { text, tools } = yield* Prompt.render(prompt)
      for (const part of [
        "## Behaviour",
        "stage edits",
        "## Virtual Filesystem Tools",
        "contains only the mounted files",
        "`docs/a.md`"
      ]) {
        assert.include(text, part)
      }
      assert.notInclude(text, "a.png")
      assert.deepStrictEqual(
        tools.map(({ definition, section }) => [definition.name, section.key]),
        ["list_directory", "read_file", "write_file", "delete_file"].map((name) => [name, "vfs.tools"])
      )
      const run = yield* Adapter.run(Adapter.make("test"), prompt, { session: own })
      assert.isTrue((yield* run.call("write_file", { path: "new.txt", content: "new" })).success)
      const { files } = Option.getOrThrow(yield* own.latest(VirtualFileSystem)) as { files: ReadonlyArray<unknown> }
      assert.include(JSON.stringify(files), "new.txt")
      const other = yield* Adapter.run(Adapter.make("test"), prompt, { session: yield* session() })
      assert.isFalse((yield* other.call("read_file", { path: "new.txt" })).success)
    }).pipe(Effect.scoped)
  )
})

describe("snapshots of a session and a filesystem with the same id", () => {
  const Turn = Slice.make("Turn", Schema.Number)

  const kinds: ReadonlyArray<readonly [string, (directory: string) => Effect.Effect<Section.Workspace, unknown, Scope.Scope>]> =
    [
      ["memory", (snapshotDirectory) => Section.VfsSection({ snapshotDirectory })],
      ["a workspace", (snapshotDirectory) => Section.WorkspaceSection({ snapshotDirectory })]
    ]

  for (const [name, make] of kinds) {
    it.live(
      `can be rolled back one after the other in ${name}, and a section over another backend can restore the archive`,
      () =>
        Effect.gen(function* () {
          const own = yield* session()
          const section = yield* make(join(directory(), "snapshots"))
          const fs = yield* section.filesystem
          yield* fs.write("code.py", "v1")
          yield* own.dispatch(Turn, 1)
          const { archivePath } = yield* (yield* section.snapshots).snapshot("checkpoint")
          yield* own.snapshot("checkpoint")
          yield* fs.write("code.py", "v2", { mode: "overwrite" })
          yield* own.dispatch(Turn, 2)
          yield* own.rollback("checkpoint")
          yield* (yield* section.snapshots).rollback("checkpoint")
          assert.strictEqual(yield* fs.readString("code.py"), "v1")
          assert.deepStrictEqual(yield* own.all(Turn), [1])
          for (const [, other] of kinds) {
            const resumed = yield* other(join(directory(), "snapshots"))
            yield* (yield* resumed.snapshots).restore(archivePath)
            assert.strictEqual(yield* (yield* resumed.filesystem).readString("code.py"), "v1")
          }
        }).pipe(Effect.scoped)
    )
  }
})

describe("the filesystem of a tool", () => {
  const where = (name: string) =>
    Tool.make({
      name,
      description: "Tells what is in the root.",
      value: Schema.Array(Schema.String),
      does: "reads",
      handle: () =>
        Effect.gen(function* () {
          const { filesystem } = yield* ToolContext
          if (Option.isNone(filesystem)) {
            return yield* Effect.fail(Tool.refused("No filesystem available.", "Go on without."))
          }
          const names = (yield* filesystem.value.list()).map(({ name }) => name)
          return { message: names.join(), value: names }
        })
    })

  it.live("is the filesystem of its section, or else the first filesystem of the prompt, or else missing", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const first = yield* Section.VfsSection({ tools: [where("in_first")] })
      const second = yield* Section.WorkspaceSection({ tools: "none", children: [] })
      const holding = Section.make({ ...second, tools: [where("in_second")] })
      const none = Section.MarkdownSection({ title: "None", template: "", tools: [where("in_none")] })
      yield* (yield* first.filesystem).write("first.txt", "")
      yield* (yield* second.filesystem).write("second.txt", "")
      const ask = Effect.fnUntraced(function* (sections: ReadonlyArray<Section.Section>, tool: string) {
        const prompt = yield* Prompt.make({ ns: "agents/test", key: "test", sections })
        const run = yield* Adapter.run(Adapter.make("test"), prompt, { session: own })
        return yield* run.call(tool, {})
      })
      const all = [none, first, holding]
      assert.deepStrictEqual((yield* ask(all, "in_first")).value, ["first.txt"])
      assert.deepStrictEqual((yield* ask(all, "in_second")).value, ["second.txt"])
      assert.deepStrictEqual((yield* ask(all, "in_none")).value, ["first.txt"])
      const alone = yield* ask([none], "in_none")
      assert.isFalse(alone.success)
      assert.include(alone.message, "No filesystem available")
    }).pipe(Effect.scoped)
  )
})
