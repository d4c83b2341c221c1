import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { readFileSync, rmSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { unlimited } from "../../src/model/Limits.ts"
import { directory, plant, project, session } from "./sectioning.ts"

/** Renders the section in a prompt. */
const said = (section: Section.Section) =>
  Effect.gen(function* () {
    const prompt = yield* Prompt.make({ ns: "agents/test", key: "test", sections: [section] })
    return yield* Prompt.render(prompt)
  })

const hears = (text: string, ...claims: ReadonlyArray<RegExp | string>): void => {
  for (const claim of claims) {
    if (typeof claim === "string") assert.include(text, claim)
    else assert.match(text, claim)
  }
}

type Make = Effect.Effect<Section.Workspace, Section.SectionError, Scope.Scope>

const image = { image: "nobody/has-this" }
const podman = (options: Partial<Section.PodmanOptions> = {}): Make =>
  Effect.provide(Section.PodmanSection({ ...image, ...options }), NodeServices.layer)

const kinds: ReadonlyArray<readonly [name: string, make: Make]> = [
  ["VfsSection", Section.VfsSection()],
  ["VfsToolsSection", Section.VfsToolsSection()],
  ["VfsToolsSection of a session", Effect.flatMap(session(), (session) => Section.VfsToolsSection({ session }))],
  ["WorkspaceSection", Section.WorkspaceSection()],
  ["PodmanSection", podman()]
]

describe("the text of a section", () => {
  for (const [name, make] of kinds) {
    it.live(`names each tool of ${name}, and only existing tools and parameters`, () =>
      Effect.gen(function* () {
        const made = yield* make
        const { text, tools } = yield* said(made)
        assert.isTrue(text.startsWith(`## ${made.title}\n\n`))
        assert.lengthOf(text.match(/^#/gm)!, 1)
        const known = tools.map(({ definition }) => definition.name)
        assert.deepStrictEqual(
          known,
          made.tools.map(({ name }) => name)
        )
        const parameters = new Set(tools.flatMap(({ definition }) => Object.keys(definition.parameters.fields as object)))
        const spoken = [...text.matchAll(/`([a-z_]+)`/g)].map(([, word]) => word!)
        for (const tool of known) assert.include(spoken, tool)
        for (const word of spoken) assert.isTrue(known.includes(word) || parameters.has(word), word)
      }).pipe(Effect.scoped)
    )
  }

  for (const [name, make] of kinds.slice(0, 3)) {
    it.live(`of ${name} contains each required piece of guidance`, () =>
      Effect.gen(function* () {
        const { text } = yield* said(yield* make)
        hears(
          text,
          // The workspace starts empty, and mounts are configuration.
          /empty at the beginning|only the mounted files/,
          /write_file/,
          /mounted files were chosen before.*cannot mount/,
          // List a few entries before reading.
          /Look before you read.*(List only the directories that matter|Keep searches narrow)/,
          // Read a file before changing it, and give its version.
          /read_file.*before you change it.*version/,
          // Write short files as a whole, small binaries, and logs by appends.
          /whole files.*short.*[Bb]inary.*small.*Append.*logs/,
          // Delete files that are no longer needed.
          /Remove files that you no longer need.*(rm|delete_file)/,
          // Do not copy whole repositories, and respect the size limit.
          /Do not copy whole repositories.*48,000 characters/
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("states the limits in force, or no limits if there are none", () =>
    Effect.gen(function* () {
      const made = yield* Section.VfsSection()
      const under = (limits: typeof defaults.limits) => Effect.provideService(said(made), ToolSettings, { ...defaults, limits })
      const own = yield* under({ ...defaults.limits, maxFileSize: 1234, maxPathDepth: 3, maxSegmentLength: 9 })
      hears(own.text, "1,234 characters", "3 names", "9 characters")
      assert.notInclude((yield* under(unlimited)).text, "Limits")
    }).pipe(Effect.scoped)
  )

  for (const [name, make] of [
    ["VfsSection", Section.VfsSection],
    ["VfsToolsSection", Section.VfsToolsSection],
    ["WorkspaceSection", Section.WorkspaceSection],
    ["PodmanSection", podman]
  ] as const) {
    it.live(`of ${name} shows the source, the target and the first files of a mount, and the number of other files`, () =>
      Effect.gen(function* () {
        const root = directory()
        plant(root, Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`docs/${String(i).padStart(2, "0")}.md`, "four"])))
        const mounts = [{ hostPath: "docs", mountPath: "manual" }]
        const { text } = yield* said(yield* make({ mounts, allowedRoots: [root] }))
        hears(text, "docs", "manual", "12 files", "48 bytes", "manual/00.md", "manual/09.md", "+2 more")
        assert.notInclude(text, "10.md")
        assert.notInclude(text, root)
      }).pipe(Effect.scoped)
    )
  }

  it.live("lists the files of a mount as they were when the mount was made", () =>
    Effect.gen(function* () {
      const root = project()
      const made = yield* Section.WorkspaceSection({ mounts: [{ hostPath: "src" }], allowedRoots: [root] })
      hears((yield* said(made)).text, "2 files")
      plant(root, { "src/more.py": "" })
      yield* made.filesystem
      hears((yield* said(made)).text, "3 files")
      rmSync(root, { recursive: true })
      hears((yield* said(made)).text, "3 files")
    }).pipe(Effect.scoped)
  )

  it.live("is rendered without opening the backend", () =>
    Effect.gen(function* () {
      // The directory and the image do not exist.
      hears((yield* said(yield* Section.WorkspaceSection({ root: "/no/such/directory" }))).text, "## Workspace")
      hears((yield* said(yield* podman())).text, "## Sandbox")
    }).pipe(Effect.scoped)
  )

  it.live("of a sandbox states what the options permit and limit", () =>
    Effect.gen(function* () {
      const { text } = yield* said(yield* podman())
      hears(
        text,
        "`/workspace`",
        "no network",
        "65534:65534",
        "1.0 GiB of memory",
        "1 processor ",
        "256 processes",
        "256.0 MiB",
        "30 seconds",
        "120",
        "at most 32 KiB each are kept: the beginning and the end",
        "javascript",
        "48,000 characters"
      )
      const options = {
        workdir: "/srv/work",
        network: "inside",
        user: "7:8",
        memoryBytes: 2 ** 21,
        cpus: 2,
        pids: 9,
        evalLanguage: "python" as const
      }
      hears(
        (yield* said(yield* podman(options))).text,
        "`/srv/work`",
        "`inside`",
        "7:8",
        "2.0 MiB of memory",
        "2 processors",
        "9 processes",
        "python"
      )
    }).pipe(Effect.scoped)
  )

  it.live("cannot be rendered for invalid container options, because the section is refused", () =>
    Effect.gen(function* () {
      for (const options of [
        { image: "" },
        { user: "root" },
        { workdir: "/tmp" },
        { cpus: 0 },
        { mounts: [{ hostPath: "x" }] }
      ]) {
        const error = yield* Effect.flip(podman(options))
        assert.strictEqual(error._tag, "mounts" in options ? "MountError" : "InvalidArgument")
      }
    }).pipe(Effect.scoped)
  )
})

describe("the digest of a workspace", () => {
  const dispatched = (own: Effect.Success<ReturnType<typeof session>>, text: string, section = "workspace") =>
    own.dispatch(Section.WorkspaceDigest, { section, text })

  it.live("is the newest digest of its section in the session, or else text on how to explore", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const made = yield* Section.WorkspaceSection({ session: own })
      hears((yield* said(made)).text, /Nothing is known.*Explore.*`ls`.*`read_file`/)
      yield* dispatched(own, "of another", "other")
      hears((yield* said(made)).text, /Nothing is known/)
      yield* dispatched(own, "A compiler in **Rust**.")
      yield* dispatched(own, "A compiler in **OCaml**.")
      const { text } = yield* said(made)
      hears(text, "A compiler in **OCaml**.")
      assert.notMatch(text, /Nothing is known|Rust/)
      assert.lengthOf(yield* own.all(Section.WorkspaceDigest), 2)
    }).pipe(Effect.scoped)
  )

  it.live("is rolled back with the session, and cloned with the session for a clone of the section", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const made = yield* Section.WorkspaceSection({ session: own })
      const before = yield* own.snapshot()
      yield* dispatched(own, "known by now")
      const clone = yield* made.clone(yield* own.clone())
      yield* own.restore(before)
      assert.notInclude((yield* said(made)).text, "known by now")
      hears((yield* said(clone)).text, "known by now")
    }).pipe(Effect.scoped)
  )

  it.live("may be a section of its own, and is then not repeated in the text of the workspace", () =>
    Effect.gen(function* () {
      const own = yield* session()
      const digest = Section.WorkspaceDigestSection({ session: own })
      const made = yield* Section.WorkspaceSection({ session: own, digest: false })
      const prompt = yield* Prompt.make({ ns: "agents/test", key: "test", sections: [digest, made] })
      hears((yield* Prompt.render(prompt)).text, /^## Workspace Digest\n\nNothing is known/)
      yield* dispatched(own, "known by now")
      assert.lengthOf((yield* Prompt.render(prompt)).text.match(/known by now/g)!, 1)
      const other = yield* session()
      const clone = yield* Prompt.clone(prompt, other)
      hears((yield* Prompt.render(clone)).text, /Nothing is known/)
    }).pipe(Effect.scoped)
  )
})

describe("importing Section", () => {
  const src = fileURLToPath(new URL("../../src", import.meta.url))

  /** Collects the modules that importing a file loads statically. */
  const reached = (file: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(file)) return seen
    seen.add(file)
    const text = readFileSync(file, "utf8")
    for (const [, isType, from] of text.matchAll(/^(?:import|export)\b(\s+type\b)?[^"';]*?\bfrom\s+"(\.[^"]+)"/gm)) {
      if (isType === undefined) reached(resolve(dirname(file), from!), seen)
    }
    return seen
  }

  it("loads no backend, no git and no archive code", () => {
    const modules = [...reached(join(src, "agent/Section.ts"))].map((file) => file.slice(src.length + 1))
    assert.include(modules, "agent/sections/podman.ts")
    assert.include(modules, "agent/tools/readFile.ts")
    assert.deepStrictEqual(
      modules.filter((file) =>
        /^backends\/|^history\/(git\/(?!objects)|zip\/|snapshots\/)|^history\/Snap|^workspace\/[A-Z]/.test(file)
      ),
      []
    )
  })
})

describe("the text for a model", () => {
  const said = (made: Section.Section) =>
    Effect.map(Effect.flatMap(Prompt.make({ ns: "a", key: "b", sections: [made] }), Prompt.render), ({ text }) => text)

  it.live("contains no path on the machine for a mount", () =>
    Effect.gen(function* () {
      const root = project()
      const mounts = [{ hostPath: join(root, "src") }, { hostPath: `${root}/docs/`, mountPath: "manual" }]
      for (const make of [Section.VfsSection, Section.VfsToolsSection, Section.WorkspaceSection]) {
        const text = yield* said(yield* make({ mounts, allowedRoots: [root] }))
        assert.notInclude(text, root)
        assert.include(text, "`src` → `src`")
        assert.include(text, "`docs` → `manual`")
      }
    }).pipe(Effect.scoped, Effect.orDie)
  )

  it.live("mentions binary content only if the tools can write binary content", () =>
    Effect.gen(function* () {
      for (const made of [yield* Section.VfsSection(), yield* Section.VfsToolsSection()]) {
        const { parameters } = made.tools.find(({ name }) => name === "write_file")!
        const canBinary = Object.hasOwn(parameters.fields, "encoding")
        assert.strictEqual(/Write binary content only if/.test(yield* said(made)), canBinary, made.key)
      }
    }).pipe(Effect.scoped, Effect.orDie)
  )
})
