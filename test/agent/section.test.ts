import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Section from "../../src/agent/Section.ts"
import { IoError } from "../../src/model/FsError.ts"
import { Limits, standard } from "../../src/model/Limits.ts"
import { Sandbox } from "../../src/filesystem/Sandbox.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { canned } from "./sandboxes.ts"
import * as Context from "effect/Context"
import { captureTemporary, counted, directory, names, plant, project, session } from "./sectioning.ts"

const place = captureTemporary()

const text = (section: Section.Section) =>
  typeof section.template === "string" ? Effect.succeed(section.template) : section.template({})

const toolNames = (section: Section.Section) => section.tools.map(({ name }) => name)

const seven = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
const four = ["list_directory", "read_file", "write_file", "delete_file"]

/** Makes a value in a scope of its own, which the caller closes. */
const within = <A, E>(make: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    return { scope, made: yield* Scope.provide(make, scope) }
  })

describe("MarkdownSection", () => {
  it("is frozen, derives its key from the title unless a key is given, and has no tools and no children", () => {
    const made = Section.MarkdownSection({ title: "How to Behave: Rules", template: "Be kind." })
    assert.deepStrictEqual(
      [made.key, made.title, made.template, made.tools, made.children, made.acceptsOverrides],
      ["how-to-behave-rules", "How to Behave: Rules", "Be kind.", [], [], false]
    )
    assert.isTrue(Object.isFrozen(made))
    assert.strictEqual(Section.MarkdownSection({ title: "Rules", key: "own", template: "" }).key, "own")
  })
})

describe("sections with files", () => {
  const table = [
    ["VfsSection", () => Section.VfsSection(), "vfs", "Virtual Filesystem", seven],
    ["WorkspaceSection", () => Section.WorkspaceSection(), "workspace", "Workspace", seven],
    ["VfsToolsSection", () => Section.VfsToolsSection(), "vfs.tools", "Virtual Filesystem Tools", four],
    [
      "VfsToolsSection with a session",
      () => Effect.flatMap(session(), (session) => Section.VfsToolsSection({ session })),
      "vfs.tools",
      "Virtual Filesystem Tools",
      four
    ],
    [
      "VfsSection with a session",
      () => Effect.flatMap(session(), (session) => Section.VfsSection({ session })),
      "vfs",
      "Virtual Filesystem",
      seven
    ]
  ] as const

  for (const [name, make, key, title, tools] of table) {
    it.live(`have the key, title and ${tools.length} tools of ${name} (${key}), and snapshots that restore the files`, () =>
      Effect.gen(function* () {
        const made: Section.Workspace = yield* make()
        assert.deepStrictEqual([made.key, made.title, made.acceptsOverrides], [key, title, false])
        assert.deepStrictEqual(toolNames(made), [...tools])
        const filesystem = yield* made.filesystem
        assert.strictEqual(yield* made.filesystem, filesystem)
        assert.strictEqual(yield* made.snapshots, yield* made.snapshots)
        assert.strictEqual((yield* made.snapshots).filesystem, filesystem)
        yield* filesystem.write("a.txt", "one")
        yield* (yield* made.snapshots).snapshot("s")
        yield* filesystem.write("a.txt", "two")
        yield* (yield* made.snapshots).rollback("s")
        assert.strictEqual(yield* filesystem.readString("a.txt"), "one")
        const services = yield* made.services
        assert.strictEqual(yield* made.services, services)
        const snapshots = Context.getUnsafe(services, Snapshots.Snapshots)
        const taken = yield* snapshots.snapshot()
        yield* filesystem.write("a.txt", "three")
        yield* snapshots.restore(taken)
        assert.strictEqual(yield* filesystem.readString("a.txt"), "one")
      }).pipe(Effect.scoped, Effect.andThen(Effect.sync(() => assert.deepStrictEqual(names(place), []))))
    )
  }

  it.live("open no backend before their first use", () =>
    Effect.gen(function* () {
      const { count, layer } = counted()
      yield* Section.FilesystemSection({ key: "a", title: "A", template: "text", layer })
      yield* Section.WorkspaceSection()
      assert.deepStrictEqual([count.begun, names(place)], [0, []] as const)
    }).pipe(Effect.scoped)
  )

  it.live("list their own tools first, then snapshot tools and the user's tools", () =>
    Effect.gen(function* () {
      const own = { ...(yield* Section.VfsSection()).tools[0]!, name: "own" }
      const made = yield* Section.VfsSection({ snapshotTools: true, tools: [own] })
      assert.deepStrictEqual(toolNames(made), [...seven, "snapshot", "snapshots", "restore", "diff", "own"])
    }).pipe(Effect.scoped)
  )

  it.live("override descriptions only where overrides are accepted", () =>
    Effect.gen(function* () {
      const made = yield* Section.VfsToolsSection({ acceptsOverrides: true, overrides: { delete_file: "Removes it." } })
      assert.isTrue(made.acceptsOverrides)
      assert.strictEqual(made.tools.find(({ name }) => name === "delete_file")!.description, "Removes it.")
      const bad: ReadonlyArray<Section.VfsToolsOptions> = [
        { overrides: { delete_file: "Removes it." } },
        { acceptsOverrides: true, overrides: { remove: "Removes it." } },
        { acceptsOverrides: true, overrides: { delete_file: "" } }
      ]
      for (const options of bad) {
        assert.strictEqual((yield* Effect.flip(Section.VfsToolsSection(options)))._tag, "InvalidArgument")
      }
    }).pipe(Effect.scoped)
  )
})

describe("the backend of a section", () => {
  const opened = (layer: Section.FilesystemOptions<never>["layer"]) =>
    Section.FilesystemSection({ key: "files", title: "Files", template: "", layer })

  it.live("is opened once for concurrent uses", () =>
    Effect.gen(function* () {
      const { count, layer } = counted(Effect.yieldNow)
      const { filesystem, services, snapshots } = yield* opened(layer)
      const made = yield* Effect.all([filesystem, filesystem, filesystem], { concurrency: "unbounded" })
      yield* Effect.all([snapshots, services], { concurrency: "unbounded" })
      assert.strictEqual(new Set(made).size, 1)
      assert.deepStrictEqual(count, { begun: 1, made: 1, gone: 0 })
    }).pipe(Effect.scoped)
  )

  it.live("is opened by the next use if the first use is interrupted, and the interrupted attempt is released", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const { count, layer } = counted(Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(go)))
      const { filesystem } = yield* opened(layer)
      const first = yield* Effect.forkChild(filesystem)
      yield* Deferred.await(entered)
      const waiting = yield* Effect.forkChild(filesystem)
      yield* Fiber.interrupt(first)
      assert.deepStrictEqual([count.made, count.gone], [0, 1])
      yield* Deferred.succeed(go, undefined)
      const made = yield* Fiber.join(waiting)
      assert.strictEqual(yield* filesystem, made)
      assert.deepStrictEqual(count, { begun: 2, made: 1, gone: 1 })
    }).pipe(Effect.scoped)
  )

  it.live("is opened again after a failure; the failed use returns the error of the backend", () =>
    Effect.gen(function* () {
      const error = new IoError({ operation: "open", path: ".", detail: "once" })
      let isFirst = true
      const { count, layer } = counted(
        Effect.suspend(() => {
          const fails = isFirst
          isFirst = false
          return fails ? Effect.fail(error) : Effect.void
        })
      )
      const { filesystem, services, snapshots } = yield* opened(layer)
      assert.strictEqual(yield* Effect.flip(services), error)
      assert.strictEqual((yield* snapshots).filesystem, yield* filesystem)
      assert.deepStrictEqual(count, { begun: 2, made: 1, gone: 1 })
    }).pipe(Effect.scoped)
  )

  it.live("is released with the scope, after which every use fails with Unavailable", () =>
    Effect.gen(function* () {
      const { count, layer } = counted()
      const { made, scope } = yield* within(opened(layer))
      const snapshots = Context.getUnsafe(yield* made.services, Snapshots.Snapshots)
      yield* made.filesystem
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(count, { begun: 1, made: 1, gone: 1 })
      for (const part of [made.filesystem, made.snapshots, made.services]) {
        assert.strictEqual((yield* Effect.flip(part as Effect.Effect<unknown, Section.SectionError>))._tag, "Unavailable")
      }
      assert.strictEqual((yield* Effect.flip(snapshots.list)).reason, "unavailable")
      assert.strictEqual((yield* Effect.flip(made.clone(yield* session()).pipe(Effect.scoped)))._tag, "Unavailable")
      assert.deepStrictEqual(count.begun, 1)
    })
  )

  it.live("is opened in the context of the section, not of the call", () =>
    Effect.gen(function* () {
      let seen = standard
      const { layer } = counted(Effect.flatMap(Limits, (limits) => Effect.sync(() => void (seen = limits))))
      const { filesystem } = yield* Effect.provideService(opened(layer), Limits, { ...standard, maxFileSize: 5 })
      yield* Effect.provideService(filesystem, Limits, { ...standard, maxFileSize: 7 })
      assert.strictEqual(seen.maxFileSize, 5)
    }).pipe(Effect.scoped)
  )

  it.live("provides other services of its layer to the tools", () =>
    Effect.gen(function* () {
      const sandbox = canned({ stdout: "here" })
      const { services } = yield* opened(Layer.merge(counted().layer, sandbox.layer))
      assert.strictEqual((yield* Context.getUnsafe(yield* services, Sandbox).exec(["pwd"])).stdout, "here")
    }).pipe(Effect.scoped)
  )

  it.live("keeps named snapshots in the given directory after its scope has closed", () =>
    Effect.gen(function* () {
      const snapshotDirectory = join(directory(), "kept")
      const { made, scope } = yield* within(
        Section.FilesystemSection({ key: "files", title: "Files", template: "", layer: counted().layer, snapshotDirectory })
      )
      yield* (yield* made.snapshots).snapshot("turn-1")
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(names(snapshotDirectory), ["turn-1.fs.zip"])
      const later = yield* Section.VfsSection({ snapshotDirectory })
      assert.strictEqual(yield* (yield* later.snapshots).rollback("turn-1"), 0)
    }).pipe(Effect.scoped)
  )
})

describe("WorkspaceSection", () => {
  it.live("makes a new directory with the mounts, and removes it with the section", () =>
    Effect.gen(function* () {
      const root = project()
      const { made, scope } = yield* within(
        Section.WorkspaceSection({ mounts: [{ hostPath: "src", include: ["*.py"] }], allowedRoots: [root] })
      )
      assert.deepStrictEqual(names(place), [])
      const filesystem = yield* made.filesystem
      const [own, ...others] = names(place)
      assert.match(own!, /^fs-algebra-workspace-/)
      assert.deepStrictEqual(others, [])
      assert.strictEqual(readFileSync(join(place, own!, "src/main.py"), "utf8"), "print('hello')\n")
      assert.isFalse(existsSync(join(place, own!, "src/data.bin")))
      yield* filesystem.write("closed/a.txt", "")
      chmodSync(join(place, own!, "closed"), 0)
      yield* made.snapshots
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(names(place), [])
    })
  )

  it.live("makes a directory whose path is short enough for a Unix socket in it (107 bytes)", () =>
    Effect.gen(function* () {
      const { made, scope } = yield* within(Section.WorkspaceSection())
      yield* made.filesystem
      const [own] = names(place)
      assert.match(own!, /^fs-algebra-workspace-/)
      assert.isAtMost(`/tmp/${own!}/agent.sock`.length, 107)
      yield* Scope.close(scope, Exit.void)
    })
  )

  it.live("uses an existing directory, and leaves it in place", () =>
    Effect.gen(function* () {
      const root = project()
      const { made, scope } = yield* within(Section.WorkspaceSection({ root }))
      yield* (yield* made.filesystem).write("new.txt", "here")
      assert.deepStrictEqual(names(place), [])
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(readFileSync(join(root, "new.txt"), "utf8"), "here")
    })
  )

  it.live("shares its directory with its clones, and the last section to close removes it", () =>
    Effect.gen(function* () {
      for (const order of [
        [0, 1, 2],
        [2, 0, 1],
        [1, 2, 0]
      ]) {
        const first = yield* within(Effect.flatMap(session(), (session) => Section.WorkspaceSection({ session })))
        const other = yield* session()
        const second = yield* within(first.made.clone(other))
        const third = yield* within(second.made.clone(yield* session()))
        assert.strictEqual(second.made.session, other)
        const all = [first, second, third]
        const filesystem = yield* third.made.filesystem
        yield* (yield* second.made.snapshots).snapshot("s")
        assert.lengthOf(names(place), 2)
        for (const [index, which] of order.entries()) {
          yield* Scope.close(all[which]!.scope, Exit.void)
          assert.strictEqual((yield* Effect.flip(all[which]!.made.filesystem))._tag, "Unavailable")
          for (const left of order.slice(index + 1)) {
            assert.strictEqual(yield* all[left]!.made.filesystem, filesystem)
            yield* filesystem.write(`${index}.txt`, "", { mode: "overwrite" })
          }
          assert.lengthOf(names(place), index === 2 ? 0 : 2)
        }
      }
    })
  )

  it.live("can be read-only and have mounts", () =>
    Effect.gen(function* () {
      const root = project()
      const options = { mounts: [{ hostPath: "docs" }], allowedRoots: [root], readOnly: true }
      for (const make of [Section.WorkspaceSection(options), Section.VfsSection(options)]) {
        const filesystem = yield* (yield* make).filesystem
        assert.strictEqual(yield* filesystem.readString("docs/intro.md"), "# Intro\n")
        assert.strictEqual((yield* Effect.flip(filesystem.write("a", "")))._tag, "AccessDenied")
      }
    }).pipe(Effect.scoped)
  )

  it.live("has no tools if they are switched off, but its text names the directory", () =>
    Effect.gen(function* () {
      const made = yield* Section.WorkspaceSection({ tools: "none" })
      assert.deepStrictEqual(made.tools, [])
      const said = yield* text(made)
      assert.include(said, join(place, names(place)[0]!))
      for (const name of seven) assert.notInclude(said, `\`${name}\``)
    }).pipe(Effect.scoped)
  )

  it.live("refuses mounts into an existing directory", () =>
    Effect.gen(function* () {
      const root = project()
      const wrong = Section.WorkspaceSection({ root, mounts: [{ hostPath: "src" }], allowedRoots: [root] })
      assert.strictEqual((yield* Effect.flip(wrong))._tag, "InvalidArgument")
    }).pipe(Effect.scoped)
  )

  it.live("fails with NotFound while its directory is missing", () =>
    Effect.gen(function* () {
      const root = join(directory(), "later")
      const { filesystem } = yield* Section.WorkspaceSection({ root })
      assert.strictEqual((yield* Effect.flip(filesystem))._tag, "NotFound")
      mkdirSync(root)
      assert.isFalse(yield* (yield* filesystem).exists("a"))
    }).pipe(Effect.scoped)
  )
})

describe("mounts of a section", () => {
  const makers = [
    ["VfsSection", Section.VfsSection],
    ["VfsToolsSection", Section.VfsToolsSection],
    ["WorkspaceSection", Section.WorkspaceSection]
  ] as const

  for (const [name, make] of makers) {
    it.live(`are refused by ${name} at construction if they are invalid, and nothing remains`, () =>
      Effect.gen(function* () {
        const root = project()
        const own = yield* session()
        const bad = [
          { mounts: [{ hostPath: "src" }] },
          { mounts: [{ hostPath: "missing" }], allowedRoots: [root] },
          { mounts: [{ hostPath: "src" }], allowedRoots: [join(root, "missing")] },
          { mounts: [{ hostPath: "src" }, { hostPath: "../src" }], allowedRoots: [root] },
          { mounts: [{ hostPath: "src", maxBytes: 3 }], allowedRoots: [root] }
        ]
        for (const options of bad) {
          const { made, scope } = yield* within(Effect.flip(make({ ...options, session: own })))
          assert.strictEqual(made._tag, "MountError", made.message)
          assert.deepStrictEqual(names(place), [])
          yield* Scope.close(scope, Exit.void)
        }
        // The failed attempts have not reserved the session.
        const { filesystem } = yield* make({ session: own, mounts: [{ hostPath: "src" }], allowedRoots: [root] })
        assert.isTrue(yield* (yield* filesystem).exists("src/main.py"))
      }).pipe(Effect.scoped)
    )
  }

  it.live("are removed if the first use fails, and made again by the next use", () =>
    Effect.gen(function* () {
      const root = project()
      const own = yield* session()
      const options = { mounts: [{ hostPath: "src" }], allowedRoots: [root] }
      for (const made of [yield* Section.VfsSection({ ...options, session: own }), yield* Section.WorkspaceSection(options)]) {
        rmSync(join(root, "src"), { recursive: true })
        assert.strictEqual((yield* Effect.flip(made.filesystem))._tag, "MountError")
        assert.deepStrictEqual(names(place), [])
        plant(root, { "src/main.py": "again" })
        assert.strictEqual(yield* (yield* made.filesystem).readString("src/main.py"), "again")
      }
    }).pipe(Effect.scoped)
  )

  it.live("are made at construction by VfsToolsSection", () =>
    Effect.gen(function* () {
      const root = project()
      const made = yield* Section.VfsToolsSection({ mounts: [{ hostPath: "src" }], allowedRoots: [root] })
      rmSync(root, { recursive: true })
      assert.strictEqual(yield* (yield* made.filesystem).readString("src/main.py"), "print('hello')\n")
    }).pipe(Effect.scoped)
  )

  it.live("keep modes and all bytes", () =>
    Effect.gen(function* () {
      const root = project()
      const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
      writeFileSync(join(root, "src/run.sh"), bytes, { mode: 0o755 })
      const filesystem = yield* (yield* Section.VfsSection({ mounts: [{ hostPath: "src" }], allowedRoots: [root] })).filesystem
      assert.deepStrictEqual((yield* filesystem.readBytes("src/run.sh")).content, bytes)
      assert.strictEqual((yield* filesystem.stat("src/run.sh")).mode, 0o755)
    }).pipe(Effect.scoped)
  )
})

describe("a virtual filesystem in a session", () => {
  const mounting = () => ({ mounts: [{ hostPath: "src" }], allowedRoots: [project()] })

  it.live("is rolled back with the session, even to before its first use", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const made = yield* Section.VfsSection({ ...mounting(), session: own })
      assert.strictEqual(made.session, own)
      const first = yield* own.snapshot()
      const filesystem = yield* made.filesystem
      yield* filesystem.write("a.txt", "one")
      const second = yield* own.snapshot()
      yield* filesystem.delete("src", { recursive: true })
      yield* own.restore(second)
      assert.strictEqual(yield* filesystem.readString("a.txt"), "one")
      assert.isTrue(yield* filesystem.exists("src/main.py"))
      yield* own.restore(first)
      assert.deepStrictEqual([yield* filesystem.exists("a.txt"), yield* filesystem.exists("src/main.py")], [false, true])
    }).pipe(Effect.scoped)
  )

  for (const [name, make] of [
    ["in memory", Section.VfsSection],
    ["on disk", Section.VfsToolsSection]
  ] as const) {
    it.live(`has its mounts again after a reset, ${name}`, () =>
      Effect.gen(function* () {
        const own = yield* session()
        const { filesystem: made } = yield* make({ ...mounting(), session: own })
        const filesystem = yield* made
        yield* filesystem.write("a.txt", "one")
        yield* filesystem.write("src/main.py", "changed", { mode: "overwrite" })
        yield* own.reset
        assert.isFalse(yield* filesystem.exists("a.txt"))
        assert.strictEqual(yield* filesystem.readString("src/main.py"), "print('hello')\n")
      }).pipe(Effect.scoped)
    )
  }

  it.live("keeps files that already exist in the session when it copies its mounts", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const options = mounting()
      const first = yield* Section.VfsSection({ ...options, session: own })
      yield* (yield* first.filesystem).write("src/main.py", "changed", { mode: "overwrite" })
      const copy = yield* own.clone()
      const second = yield* first.clone(copy)
      assert.strictEqual(second.session, copy)
      const filesystem = yield* second.filesystem
      assert.strictEqual(yield* filesystem.readString("src/main.py"), "changed")
      yield* filesystem.write("src/main.py", "changed again", { mode: "overwrite" })
      assert.strictEqual(yield* (yield* first.filesystem).readString("src/main.py"), "changed")
    }).pipe(Effect.scoped)
  )

  it.live("is shared by two sections of one session", () =>
    Effect.gen(function* () {
      const own = yield* session()
      for (const make of [Section.VfsSection, Section.VfsToolsSection]) {
        const [first, second] = [yield* make({ session: own }), yield* make({ session: own })]
        yield* (yield* first.filesystem).write("shared.txt", "seen")
        assert.strictEqual(yield* (yield* second.filesystem).readString("shared.txt"), "seen")
      }
    }).pipe(Effect.scoped)
  )

  it.live("is cloned with the children of its section", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const other = yield* session()
      const child = yield* Section.WorkspaceSection({ session: own, tools: "none" })
      const made = yield* Section.VfsSection({ session: own, children: [child] })
      const clone = yield* made.clone(other)
      assert.deepStrictEqual(
        clone.children.map(({ session }) => session?.id),
        [other.id]
      )
      assert.strictEqual(yield* clone.children[0]!.filesystem!, yield* child.filesystem)
    }).pipe(Effect.scoped)
  )
})
