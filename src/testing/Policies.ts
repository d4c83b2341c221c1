/**
 * Laws about the options of a backend. Each law has options, and initial files because its options may forbid writing. The
 * caller of the suite provides a function that makes a filesystem with the options and files.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FsPath, PathPolicy } from "../model/FsPath.ts"
import type { Fault } from "../model/FsError.ts"
import type { CommonOptions } from "../port/Rules.ts"
import { expectTree } from "./chapter.ts"
import { equal, fails, has } from "./expect.ts"
import { directory, type Files, link } from "./Files.ts"
import { abilities, type Ability, Bench, type Law, make } from "./Law.ts"
import { changingCalls, collect, encodeUtf8, pathCalls, paths, supportedCalls } from "./operations.ts"

/**
 * The options that the laws set.
 *
 * @since 0.1.0
 */
export interface PolicyOptions extends CommonOptions {
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
}

/**
 * A law about an option, with the options and initial files of its filesystem.
 *
 * @since 0.1.0
 */
export interface PolicyLaw {
  readonly options: PolicyOptions
  readonly files: Files
  readonly law: Law
}

const exampleTree: Files = { "source.txt": "a", "d/f": "text", empty: directory }

const policy =
  (ref: string, options: PolicyOptions, files: Files = exampleTree, ...needs: ReadonlyArray<Ability>) =>
  (name: string, body: (fs: Algebra) => Effect.fn.Return<void, unknown>): PolicyLaw => ({
    options,
    files,
    law: make({ name, ref, kind: "service", needs }, body)
  })

/** Returns the abilities that the filesystem has without its options, which may forbid writing and deleting. */
const abilitiesOf = (fs: Algebra): Effect.Effect<ReadonlySet<Ability>> =>
  Effect.map(Bench, (bench) => new Set<Ability>([...abilities(fs, bench), "write", "delete"]))

const refusesAllCalls = (needs?: Ability) =>
  function* (fs: Algebra): Effect.fn.Return<void, unknown> {
    const calls = supportedCalls(changingCalls, yield* abilitiesOf(fs))
    for (const { operation, run } of calls.filter((call) => needs === undefined || call.needs.includes(needs))) {
      for (const path of ["source.txt", "d", "missing", "no/where", "../x", "a\0b"]) {
        yield* fails(run(fs, path), "AccessDenied", { why: "readOnly", operation })
      }
    }
    yield* expectTree(fs, exampleTree)
  }

const toPath = (path: string): FsPath => path as FsPath

const primitives: ReadonlyArray<readonly [Ability, (fs: Algebra) => Effect.Effect<unknown, Fault>]> = [
  ["write", ({ port }) => port.write<never, never>(toPath("new"), encodeUtf8("x"), "create")],
  ["write", ({ port }) => port.write<never, never>(toPath("source.txt"), encodeUtf8("x"), "replace")],
  ["write", ({ port }) => port.makeDirectory(toPath("new"))],
  ["delete", ({ port }) => port.remove(toPath("source.txt"))],
  ["delete", ({ port }) => port.rename(toPath("source.txt"), toPath("new"), { replace: false })]
]

const expectReadable = function* (fs: Algebra): Effect.fn.Return<void, unknown> {
  yield* equal(yield* fs.readString("d/f"), "text")
  yield* equal(paths(yield* collect(fs.walk())), ["d", "d/f", "empty", "source.txt"])
  yield* equal(yield* fs.exists("source.txt"), true)
}

const permissions: ReadonlyArray<PolicyLaw> = [
  policy("C-40, C-54", { readOnly: true })("with readOnly, every change fails before the path is checked", refusesAllCalls()),
  policy("C-40", { readOnly: true })("with readOnly, files can be read", function* (fs) {
    yield* expectReadable(fs)
    yield* equal([fs.readOnly, fs.port.info.readOnly], [true, true])
  }),
  policy("C-40", { readOnly: true })(
    "with readOnly, the port refuses every primitive operation that changes files",
    function* (fs) {
      for (const [, call] of primitives) yield* fails(call(fs), "AccessDenied", { why: "readOnly" })
      yield* expectTree(fs, exampleTree)
    }
  ),
  policy("C-40", { allowWrite: false, allowDelete: false })(
    "a filesystem without permission to write and to delete is read-only",
    function* (fs) {
      yield* equal(fs.readOnly, true)
      yield* refusesAllCalls()(fs)
    }
  ),
  policy("C-40", { allowWrite: false })(
    "without permission to write, every call that writes is refused",
    refusesAllCalls("write")
  ),
  policy("C-40", { allowWrite: false })("without permission to write, files can be deleted", function* (fs) {
    yield* equal(fs.readOnly, false)
    yield* fs.delete("d", { recursive: true })
    yield* expectTree(fs, { "source.txt": "a", empty: directory })
  }),
  policy("C-40, C-51", { allowDelete: false })(
    "without permission to delete, every call that deletes or moves is refused",
    refusesAllCalls("delete")
  ),
  policy("C-40", { allowDelete: false })("without permission to delete, files can be overwritten", function* (fs) {
    yield* equal(fs.readOnly, false)
    yield* fs.write("source.txt", "new")
    yield* fs.write("p/q", "made")
    yield* fs.copy("source.txt", "d/f", { overwrite: true })
    yield* expectTree(fs, { "source.txt": "new", "p/q": "made", "d/f": "new", empty: directory })
  }),
  ...(["write", "delete"] as const).map((action) =>
    policy("C-40", action === "write" ? { allowWrite: false } : { allowDelete: false })(
      `without permission to ${action}, the port refuses to ${action}`,
      function* (fs) {
        for (const [needs, call] of primitives) {
          if (needs === action) yield* fails(call(fs), "AccessDenied", { why: "readOnly" })
        }
        yield* expectTree(fs, exampleTree)
      }
    )
  )
]

const pathPolicyRows: ReadonlyArray<readonly [policy: PathPolicy, input: string, path: string | undefined, ref: string]> = [
  ["standard", "d/../source.txt", "source.txt", "C-02"],
  ["standard", "./d//f/", "d/f", "C-03, C-04"],
  ["vfs", "d/../source.txt", undefined, "C-02"],
  ["vfs", "..", undefined, "C-02"],
  ["vfs", "d//f", "d/f", "C-03"],
  ["vfs", "/d/f/", "d/f", "C-01, C-03"],
  ["vfs", "./d/f", undefined, "C-04"],
  ["vfs", "d/./f", undefined, "C-04"],
  ["vfs", ".", ".", "C-04"],
  ["vfs", "", ".", "C-07"],
  ["vfs", "é", undefined, "C-05"],
  ["vfs", "d\0f", undefined, "C-05"],
  ["branch", "d/../source.txt", undefined, "C-02"],
  ["branch", "../x", undefined, "C-02"],
  ["branch", "d//f", undefined, "C-03"],
  ["branch", "d/f/", undefined, "C-03"],
  ["branch", "./d/./f", "d/f", "C-04"],
  ["branch", ".", ".", "C-07"],
  ["branch", "d\nf", undefined, "C-05"]
]

const pathPolicyLaws: ReadonlyArray<PolicyLaw> = pathPolicyRows.map(([name, input, path, ref]) =>
  policy(ref, { policy: name })(
    `the path policy ${name} ${path === undefined ? "rejects" : "accepts"} ${JSON.stringify(input)}`,
    function* (fs) {
      if (path !== undefined) return yield* has(yield* fs.stat(input), { path: path as FsPath })
      for (const { run } of supportedCalls(pathCalls, yield* abilitiesOf(fs))) yield* fails(run(fs, input), "InvalidPath")
      yield* equal(yield* fs.exists(input), false)
      yield* expectTree(fs, exampleTree)
    }
  )
)

const linkedTree: Files = { "d/f": "text", lf: link("d/f"), ld: link("d"), dangling: link("none") }

const links: ReadonlyArray<PolicyLaw> = [
  policy(
    "C-39, C-47",
    { symlinks: "report" },
    linkedTree,
    "links"
  )("with symlinks report, stat describes the link, and a read follows the link", function* (fs) {
    for (const path of ["lf", "ld", "dangling"]) {
      yield* has(yield* fs.stat(path), { kind: "symlink", isSymlink: true, isFile: false, isDirectory: false })
    }
    yield* equal(yield* fs.readString("lf"), "text")
    yield* equal(yield* fs.readString("ld/f"), "text")
    yield* has(yield* fs.stat("ld/f"), { kind: "file" })
  }),
  policy(
    "C-39",
    { symlinks: "refuse" },
    linkedTree,
    "links"
  )("with symlinks refuse, a path through a link fails", function* (fs) {
    for (const path of ["lf", "ld/f"]) {
      yield* fails(fs.readString(path), "AccessDenied", { why: "link" })
      yield* fails(fs.readBytes(path), "AccessDenied", { why: "link" })
      yield* fails(fs.write(path, "new"), "AccessDenied", { why: "link" })
      yield* fails(fs.edit(path, { oldText: "text", newText: "new" }), "AccessDenied", { why: "link" })
      yield* equal(yield* fs.exists(path), false)
    }
    yield* fails(fs.list("ld"), "AccessDenied", { why: "link" })
    yield* fails(fs.delete("ld/f"), "AccessDenied", { why: "link" })
    yield* fails(fs.write("dangling", "new"), "AccessDenied", { why: "link" })
    yield* expectTree(fs, linkedTree)
  }),
  policy(
    "C-39",
    { symlinks: "refuse" },
    linkedTree,
    "links"
  )("with symlinks refuse, a link can be listed, read with readLink and deleted", function* (fs) {
    yield* equal(paths(yield* collect(fs.walk())), ["d", "d/f", "dangling", "ld", "lf"])
    yield* equal(yield* fs.readLink("lf"), "d/f")
    yield* fs.delete("lf")
    yield* fs.delete("ld", { recursive: true })
    yield* expectTree(fs, { "d/f": "text", dangling: link("none") })
  })
]

/**
 * All laws about the options of a backend.
 *
 * @category testing
 * @since 0.1.0
 */
export const policyLaws: ReadonlyArray<PolicyLaw> = [...permissions, ...pathPolicyLaws, ...links]
