import * as Effect from "effect/Effect"
import { subdirectory } from "../../filesystem/Decorator.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { directory, type Files, link } from "../Files.ts"
import { abilities, type Ability, absoluteRoot, Bench, type Law, noted } from "../Law.ts"
import { expectTree, lawForms, plantFiles } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { changingCalls, collect, names, paths, readingCalls, supportedCalls, writeThroughSink } from "../operations.ts"

const lawsWithLinks = (...needs: ReadonlyArray<Ability>) => lawForms("ability", "links", ...needs)
const absoluteLinkForms = lawsWithLinks("absolute links")
const writableAbsoluteForms = lawsWithLinks("absolute links", "write")
/** The forms of laws about the text of absolute links. Windows returns an absolute target below the root as a relative target. */
const absoluteTextForms = lawsWithLinks("absolute texts")
const writableTextForms = lawsWithLinks("absolute texts", "write")

const absoluteLinkTree = (fs: Algebra): Files => {
  const root = absoluteRoot(fs)
  return {
    "d/f": "text\n",
    "d/e/up": link(`${root}/d/f`),
    lf: link(`${root}/d/f`),
    ld: link(`${root}/d`),
    top: link(root),
    mixed: link(`${root}/ld/e/up`),
    through: link("ld/e/up"),
    dangling: link(`${root}/d/new`)
  }
}

const climbingLinkTree = (fs: Algebra): Files => {
  const root = absoluteRoot(fs)
  return { "d/f": "x", up: link(`${root}/..`), back: link(`${root}/d/../../d/f`) }
}

export const absoluteLinkLaws: ReadonlyArray<Law> = [
  absoluteLinkForms("C-39", absoluteLinkTree).law(
    "an absolute link to a path below the root leads to its target in reads, stat and lists",
    function* (fs) {
      for (const path of ["lf", "d/e/up", "ld/f", "ld/e/up", "top/d/f", "top/top/lf", "mixed", "through"]) {
        yield* equal(yield* fs.readString(path), "text\n", path)
        yield* has(yield* fs.stat(path), { kind: "file", sizeBytes: 5 })
      }
      yield* equal(names(yield* fs.list("ld")), ["e", "f"])
      yield* fails(fs.readString("dangling"), "NotFound")
    }
  ),
  absoluteTextForms("C-39", absoluteLinkTree).law("readLink returns the target text of an absolute link", function* (fs) {
    yield* equal(yield* fs.readLink("d/e/up"), `${absoluteRoot(fs)}/d/f`)
  }),
  absoluteLinkForms("C-39", (fs) => ({
    "d/a": link(`${absoluteRoot(fs)}/b`),
    b: link("d/a"),
    self: link(`${absoluteRoot(fs)}/self`)
  })).law("a loop of absolute and relative links is InvalidPath", function* (fs) {
    for (const path of ["d/a", "b", "self"]) yield* fails(fs.readString(path), "InvalidPath")
  }),
  absoluteLinkForms("C-39", climbingLinkTree).law(
    "an absolute link that climbs above the root is AccessDenied escape",
    function* (fs) {
      for (const path of ["up", "up/d/f", "back"]) yield* fails(fs.readString(path), "AccessDenied", { why: "escape" })
    }
  ),
  absoluteLinkForms("C-39", absoluteLinkTree).law("globs and greps do not match or follow absolute links", function* (fs) {
    yield* equal(paths((yield* fs.glob("**")).matches), ["d/f"])
    yield* equal(paths((yield* fs.grep("text")).matches), ["d/f"])
    yield* equal(paths((yield* fs.glob("*", { path: "ld" })).matches).length, 1)
  }),
  absoluteLinkForms("C-39").law(
    "a subdirectory view follows only absolute links that stay inside the subdirectory",
    function* (fs) {
      const root = absoluteRoot(fs)
      yield* plantFiles(fs, {
        f: "outer",
        "d/f": "inner",
        "d/in": link(`${root}/d/f`),
        "d/out": link(`${root}/f`),
        "d/e/up": link(`${root}/d`)
      })
      const inner = noted(fs, yield* subdirectory("d")(fs))
      yield* equal(yield* inner.readString("in"), "inner")
      yield* equal(yield* inner.readString("e/up/f"), "inner")
      yield* fails(inner.readString("out"), "AccessDenied", { why: "escape" })
    }
  ),
  writableAbsoluteForms("C-39", absoluteLinkTree).law("a write follows an absolute link and keeps the link", function* (fs) {
    const linked = Effect.forEach(["lf", "dangling", "ld", "through"], (path) => fs.readLink(path))
    const before = yield* linked
    yield* fs.write("lf", "one")
    yield* fs.write("dangling", "two")
    yield* fs.write("ld/e/g", "three")
    yield* fs.edit("through", { oldText: "one", newText: "four" })
    yield* fails(fs.write("lf", "x", { mode: "create" }), "AlreadyExists")
    yield* equal(yield* linked, before)
    yield* equal(yield* Effect.forEach(["d/f", "d/new", "d/e/g"], (path) => fs.readString(path)), ["four", "two", "three"])
  }),
  writableAbsoluteForms("C-39", { "d/f": "x" }).law("symlink accepts an absolute target below the root", function* (fs) {
    yield* fs.symlink("d/e/l", `${absoluteRoot(fs)}/d/f`)
    yield* equal(yield* fs.readString("d/e/l"), "x")
  }),
  writableTextForms("C-39, C-51").law("an absolute link and its copy keep the original target text", function* (fs) {
    const root = absoluteRoot(fs)
    yield* plantFiles(fs, { "d/f": "x" })
    yield* fs.symlink("d/l", `${root}/d/f`)
    yield* fs.copy("d/l", "m")
    yield* equal(yield* fs.readString("m"), "x")
    yield* expectTree(fs, { "d/f": "x", "d/l": link(`${root}/d/f`), m: link(`${root}/d/f`) })
  }),
  writableAbsoluteForms("C-39", { "d/f": "x" }).law(
    "symlink refuses an absolute target that climbs above the root",
    function* (fs) {
      for (const { link: target } of [climbingLinkTree(fs)["up"], climbingLinkTree(fs)["back"]] as ReadonlyArray<{
        readonly link: string
      }>) {
        yield* fails(fs.symlink("l", target), "AccessDenied", { why: "escape" })
      }
      yield* expectTree(fs, { "d/f": "x" })
    }
  )
]

const linked = lawsWithLinks()
const writing = lawsWithLinks("write")
const deleting = lawsWithLinks("delete")
const moving = lawsWithLinks("write", "delete")
const lawsWithoutLinks = lawForms("ability", "no links")
/** The form of laws about changes without links. A read-only filesystem reports AccessDenied instead of Unsupported. */
const writableWithoutLinks = lawForms("ability", "no links", "write")

const insideLinkTree: Files = {
  "d/f": "text\n",
  lf: link("d/f"),
  ld: link("d"),
  "d/up": link("../d/f"),
  dangling: link("d/new")
}

const targetsOutside = ["/etc/passwd", "..", "../outside", "a/../../outside", "d/../../fs/d/f", "/"]

const outsideLinkTree: Files = {
  "d/f": "inside\n",
  out: link("../outside"),
  absolute: link("/etc/passwd"),
  "d/deep": link("../../x")
}

const linkChain = (length: number): Files => {
  const files: Record<string, Files[string]> = { end: "reached" }
  for (let i = 1; i <= length; i++) files[`l${i}`] = link(i === 1 ? "end" : `l${i - 1}`)
  return files
}

const following = linked("C-39", insideLinkTree)

const linkText = linked("port: links", insideLinkTree)

const followingLaws: ReadonlyArray<Law> = [
  following.answers("a link to a file is read as the file", (fs) => fs.readString("lf"), "text\n"),
  following.answers("a file below a link to a directory is read", (fs) => fs.readString("ld/f"), "text\n"),
  following.answers("a link is relative to its own directory", (fs) => fs.readString("d/up"), "text\n"),
  following.answers("a link through a link is followed", (fs) => fs.readString("ld/up"), "text\n"),
  linked("C-39", { "d/f": "x", l: link("./d//./f") }).answers(
    "a link's text may contain dots and repeated slashes",
    (fs) => fs.readString("l"),
    "x"
  ),
  following.answers("stat of a link describes its target and reports a link", (fs) => fs.stat("lf"), {
    kind: "file",
    isFile: true,
    isDirectory: false,
    sizeBytes: 5,
    isSymlink: true
  }),
  following.answers("stat of a link to a directory describes the directory", (fs) => fs.stat("ld"), {
    kind: "directory",
    isDirectory: true,
    isSymlink: true
  }),
  following.answers("stat of a file does not report a link", (fs) => fs.stat("d/f"), { isSymlink: undefined }),
  linked("C-39", { "d/a": "", "d/b": "", l: link("d") }).answers(
    "list of a link to a directory lists the directory",
    (fs) => Effect.map(fs.list("l"), names),
    ["a", "b"]
  ),
  linked("C-39", { "d/f": "x", lf: link("d/f"), ld: link("d") }).law(
    "a listing contains links with the kind symlink",
    function* (fs) {
      const entries = (yield* fs.list()).filter(({ name }) => name !== "d")
      for (const entry of entries) yield* has(entry, { kind: "symlink", isFile: false, isDirectory: false, addressable: true })
      yield* equal(paths(entries), ["ld", "lf"])
    }
  ),
  following.answers("lstat of a link describes the link", (fs) => fs.lstat("lf"), {
    kind: "symlink",
    isFile: false,
    isDirectory: false,
    isSymlink: true
  }),
  following.answers("lstat of a broken link describes the link", (fs) => fs.lstat("dangling"), { kind: "symlink" }),
  following.answers("lstat follows the links above its path", (fs) => fs.lstat("ld/f"), { kind: "file", sizeBytes: 5 }),
  linked("C-39", { ...outsideLinkTree, self: link("self") }).law(
    "lstat does not follow a link at the end of its path",
    function* (fs) {
      for (const path of ["out", "absolute", "d/deep", "self"]) yield* has(yield* fs.lstat(path), { kind: "symlink" })
      yield* fails(fs.lstat("self/x"), "InvalidPath")
    }
  ),
  following.law("realPath resolves every link", function* (fs) {
    for (const path of ["lf", "ld/f", "d/up", "ld/up", "d/f"]) yield* equal(yield* fs.realPath(path), "d/f", path)
    yield* equal(yield* fs.realPath("ld"), "d")
  }),
  following.refuses("realPath of a broken link is NotFound", (fs) => fs.realPath("dangling"), "NotFound"),
  linked("C-39", { a: link("b"), b: link("a") }).refuses(
    "realPath of a loop is InvalidPath",
    (fs) => fs.realPath("a"),
    "InvalidPath"
  ),
  following.law("stat through a link returns the identity of its target", function* (fs) {
    const { identity } = yield* fs.stat("d/f")
    for (const path of ["lf", "ld/f", "d/up"]) yield* equal((yield* fs.stat(path)).identity, identity, path)
    if (identity !== undefined) yield* holds((yield* fs.lstat("lf")).identity !== identity, "a link is not its target")
  }),
  following.answers("exists follows links", (fs) => Effect.all([fs.exists("lf"), fs.exists("ld/f")]), [true, true]),
  following.answers("exists returns false for a broken link", (fs) => fs.exists("dangling"), false),
  following.refuses("reading a broken link is NotFound", (fs) => fs.readString("dangling"), "NotFound"),
  following.refuses("stat of a broken link is NotFound", (fs) => fs.stat("dangling"), "NotFound"),
  linked("semantics: -", insideLinkTree).refuses(
    "a path below a link to a file is NotFound",
    (fs) => fs.readString("lf/x"),
    "NotFound"
  ),
  linked("C-39", linkChain(40)).answers("a path through 40 links is followed", (fs) => fs.readString("l40"), "reached"),
  linked("C-39", linkChain(41)).refuses("a path through 41 links is InvalidPath", (fs) => fs.readString("l41"), "InvalidPath"),
  linked("C-39", { a: link("b"), b: link("a"), self: link("self"), "d/deep": link("../a/x") }).law(
    "a loop of links is InvalidPath in readString, stat and list",
    function* (fs) {
      for (const path of ["a", "self", "a/x", "d/deep"]) {
        yield* fails(fs.readString(path), "InvalidPath")
        yield* fails(fs.stat(path), "InvalidPath")
        yield* fails(fs.list(path), "InvalidPath")
        yield* equal(yield* fs.exists(path), false)
      }
    }
  ),
  linked("C-39", { "d/l": link("./../d//f") }).answers(
    "readLink returns the target text of the link",
    (fs) => fs.readLink("d/l"),
    "./../d//f"
  ),
  following.answers("readLink of a broken link returns its text", (fs) => fs.readLink("dangling"), "d/new"),
  linkText.refuses("readLink of a file is InvalidArgument", (fs) => fs.readLink("d/f"), "InvalidArgument"),
  linkText.refuses("readLink of a directory is InvalidArgument", (fs) => fs.readLink("d"), "InvalidArgument"),
  linkText.refuses("readLink of a missing path is NotFound", (fs) => fs.readLink("missing"), "NotFound")
]

const writingThrough = writing("C-39", insideLinkTree)

const writingThroughLaws: ReadonlyArray<Law> = [
  ...(
    [
      ["overwrite", "new"],
      ["replace", "new"],
      ["append", "text\nnew"],
      ["appendExisting", "text\nnew"]
    ] as const
  ).map(([mode, after]) =>
    writingThrough.changes(
      `a write in mode ${mode} follows a link inside the root and keeps the link`,
      (fs) => fs.write("lf", "new", { mode }),
      { ...insideLinkTree, "d/f": after }
    )
  ),
  writing("C-39, C-49", insideLinkTree).changes(
    "a sink follows a link inside the root and keeps the link",
    (fs) => writeThroughSink(fs, "lf", ["new"]),
    { ...insideLinkTree, "d/f": "new" }
  ),
  writingThrough.changes(
    "an edit follows a link inside the root and keeps the link",
    (fs) => fs.edit("lf", { oldText: "text", newText: "new" }),
    { ...insideLinkTree, "d/f": "new\n" }
  ),
  writingThrough.changes("writing below a link to a directory writes in the directory", (fs) => fs.write("ld/g/h", "new"), {
    ...insideLinkTree,
    "d/g/h": "new"
  }),
  ...(["overwrite", "append"] as const).map((mode) =>
    writingThrough.changes(
      `mode ${mode} creates the target of a dangling link`,
      (fs) => fs.write("dangling", "new", { mode }),
      { ...insideLinkTree, "d/new": "new" }
    )
  ),
  ...(["replace", "appendExisting"] as const).map((mode) =>
    writing("C-11, C-39", insideLinkTree).refuses(
      `mode ${mode} on a dangling link is NotFound`,
      (fs) => fs.write("dangling", "new", { mode }),
      "NotFound"
    )
  ),
  ...["lf", "ld", "dangling", "ld/up"].map((path) =>
    writingThrough.refuses(
      `mode create on the link ${path} is AlreadyExists`,
      (fs) => fs.write(path, "new", { mode: "create" }),
      "AlreadyExists"
    )
  ),
  writingThrough.refuses("writing to a link to a directory is NotAFile", (fs) => fs.write("ld", "new"), "NotAFile"),
  writing("C-39, C-50", insideLinkTree).law("ifMatch is compared with the version of a link's target", function* (fs) {
    yield* fs.write("lf", "new", { ifMatch: yield* fs.version("d/f") })
    yield* fails(fs.write("lf", "newer", { ifMatch: "0".repeat(64) }), "Conflict", { actual: yield* fs.version("d/f") })
    yield* expectTree(fs, { ...insideLinkTree, "d/f": "new" })
  }),
  writingThrough.changes("mkdir below a link to a directory creates a directory in its target", (fs) => fs.mkdir("ld/p/q"), {
    ...insideLinkTree,
    "d/p/q": directory
  }),
  writing("C-39, S0-60", insideLinkTree).changes(
    "mkdir of a link to a directory does nothing",
    (fs) => fs.mkdir("ld"),
    insideLinkTree
  ),
  writing("S0-60", insideLinkTree).refuses(
    "mkdir over a link to a file is AlreadyExists",
    (fs) => fs.mkdir("lf"),
    "AlreadyExists"
  )
]

const escapingLaws: ReadonlyArray<Law> = [
  ...targetsOutside.map((target) =>
    writing("C-39", { "d/f": "x" }).refuses(
      `symlink refuses the target ${target}`,
      (fs) => fs.symlink("l", target),
      "AccessDenied",
      { why: "escape" }
    )
  ),
  writing("C-39", { "d/e/f": "x" }).changes("a link may climb to the root", (fs) => fs.symlink("d/e/l", "../../d/e/f"), {
    "d/e/f": "x",
    "d/e/l": link("../../d/e/f")
  }),
  writing("C-39", { "d/e/f": "x" }).refuses(
    "symlink in a subdirectory refuses a target that climbs above the root",
    (fs) => fs.symlink("d/e/l", "../../../x"),
    "AccessDenied",
    { why: "escape" }
  ),
  ...["out", "absolute", "d/deep"].map((path) =>
    linked("C-39", { ...outsideLinkTree, "source.txt": "a" }).law(
      `no call follows the link ${path} that leads out of the root`,
      function* (fs) {
        const able = abilities(fs, yield* Bench)
        const linkOperations = new Set(["lstat", "readLink", "delete", "copy", "move", "symlink"])
        for (const call of supportedCalls([...readingCalls, ...changingCalls], able)) {
          if (!linkOperations.has(call.operation)) yield* fails(call.run(fs, path), "AccessDenied", { why: "escape" })
          yield* fails(call.run(fs, `${path}/x`), "AccessDenied", { why: "escape" })
        }
        yield* equal(yield* fs.exists(path), false)
        yield* equal(yield* fs.exists(`${path}/x`), false)
        yield* expectTree(fs, { ...outsideLinkTree, "source.txt": "a" })
      }
    )
  ),
  linked("behaviours: regressions", outsideLinkTree).law(
    "globs and greps skip links that lead out of the root",
    function* (fs) {
      yield* equal(paths((yield* fs.glob("**")).matches), ["d/f"])
      yield* equal(paths((yield* fs.grep("inside")).matches), ["d/f"])
      yield* equal(paths(yield* collect(fs.walk())), ["absolute", "d", "d/deep", "d/f", "out"])
    }
  )
]

const linkChangeLaws: ReadonlyArray<Law> = [
  ...["lf", "ld", "dangling"].map((path) =>
    deleting("behaviours: regressions").law(`delete removes the link ${path} and leaves its target`, function* (fs) {
      const rest = Object.fromEntries(Object.entries(insideLinkTree).filter(([key]) => key !== path))
      yield* plantFiles(fs, insideLinkTree)
      yield* equal(yield* fs.delete(path), { deleted: 1, directories: 0 })
      yield* expectTree(fs, rest)
    })
  ),
  deleting("behaviours: regressions", { "d/f": "x", ld: link("d") }).changes(
    "a recursive delete of a link to a directory removes the link",
    (fs) => fs.delete("ld", { recursive: true }),
    { "d/f": "x" },
    { deleted: 1, directories: 0 }
  ),
  deleting("C-39", { "d/f": "x", "t/l": link("../d"), "t/out": link("../../x"), "t/f": "y" }).changes(
    "a recursive delete does not follow links in the tree",
    (fs) => fs.delete("t", { recursive: true }),
    { "d/f": "x" },
    { deleted: 3, directories: 1 }
  ),
  deleting("C-39", outsideLinkTree).changes(
    "delete of a link that leads out of the root removes the link",
    (fs) => fs.delete("out"),
    {
      "d/f": "inside\n",
      absolute: link("/etc/passwd"),
      "d/deep": link("../../x")
    }
  ),
  deleting("C-39", { "d/f": "x", "d/g": "y", ld: link("d") }).changes(
    "delete below a link to a directory removes the entry in the target directory",
    (fs) => fs.delete("ld/f"),
    { "d/g": "y", ld: link("d") }
  ),
  writing("C-51", { "d/f": "x", l: link("d/f") }).changes(
    "copy of a link creates a link with the same target text",
    (fs) => fs.copy("l", "m"),
    { "d/f": "x", l: link("d/f"), m: link("d/f") },
    { files: 1, directories: 0 }
  ),
  writing("C-51", { "t/f": "x", "t/l": link("f"), "t/none": link("none") }).changes(
    "copy of a tree keeps its links, including dangling links",
    (fs) => fs.copy("t", "u"),
    { "t/f": "x", "t/l": link("f"), "t/none": link("none"), "u/f": "x", "u/l": link("f"), "u/none": link("none") },
    { files: 3, directories: 1 }
  ),
  writing("C-51", { "t/out": link("../../x"), "t/root": link("/") }).changes(
    "copy of a tree keeps links that lead out of the root",
    (fs) => fs.copy("t", "u"),
    { "t/out": link("../../x"), "t/root": link("/"), "u/out": link("../../x"), "u/root": link("/") },
    { files: 2, directories: 1 }
  ),
  writing("C-39, C-51", { "d/f": "target", l: link("d/f"), a: "new" }).changes(
    "copy over a link replaces the link, not its target",
    (fs) => fs.copy("a", "l", { overwrite: true }),
    { "d/f": "target", l: "new", a: "new" }
  ),
  writing("C-39, C-51", { "d/f": "target", l: link("d/f"), a: "old" }).changes(
    "a link can be copied over a file",
    (fs) => fs.copy("l", "a", { overwrite: true }),
    { "d/f": "target", l: link("d/f"), a: link("d/f") }
  ),
  writing("C-51", insideLinkTree).refuses(
    "copy to a link without overwrite is AlreadyExists",
    (fs) => fs.copy("d/f", "dangling"),
    "AlreadyExists"
  ),
  moving("C-51", { "d/f": "x", l: link("d/f") }).changes(
    "move of a link moves the link",
    (fs) => fs.move("l", "p/m"),
    { "d/f": "x", "p/m": link("d/f") },
    { files: 1, directories: 0 }
  ),
  moving("C-39, C-51", { "d/f": "target", l: link("d/f"), a: "new" }).changes(
    "move over a link replaces the link, not its target",
    (fs) => fs.move("a", "l", { overwrite: true }),
    { "d/f": "target", l: "new" }
  ),
  moving("C-39", { "d/f": "x", ld: link("d") }).changes(
    "move below a link to a directory moves an entry of the target directory",
    (fs) => fs.move("ld/f", "ld/g"),
    {
      "d/g": "x",
      ld: link("d")
    }
  ),
  writing("C-39").changes("symlink creates a link even if the target is missing", (fs) => fs.symlink("l", "not/there"), {
    l: link("not/there")
  }),
  writing("C-39", { "d/f": "x" }).changes("symlink stores the target text unchanged", (fs) => fs.symlink("d/l", "./../d//f"), {
    "d/f": "x",
    "d/l": link("./../d//f")
  }),
  ...["d/f", "d", "lf", "dangling"].map((path) =>
    writing("port: links", insideLinkTree).refuses(
      `symlink over ${path} is AlreadyExists`,
      (fs) => fs.symlink(path, "d"),
      "AlreadyExists"
    )
  ),
  writing("semantics: -", insideLinkTree).refuses(
    "symlink below a file is NotADirectory",
    (fs) => fs.symlink("d/f/l", "x"),
    "NotADirectory"
  )
]

const searchingLaws: ReadonlyArray<Law> = [
  following.answers("a walk returns links and does not follow them", (fs) => Effect.map(collect(fs.walk()), paths), [
    "d",
    "d/f",
    "d/up",
    "dangling",
    "ld",
    "lf"
  ]),
  linked("C-39", { "a/b/loop": link("../../a"), "a/b/f": "x" }).law(
    "a walk ends if a link leads to a directory above the link",
    function* (fs) {
      const found = yield* collect(fs.walk())
      yield* equal(paths(found), ["a", "a/b", "a/b/f", "a/b/loop"])
      yield* holds(found[3]?.kind === "symlink", "a link", found[3])
    }
  ),
  following.answers("globs do not match links", (fs) => Effect.map(fs.glob("**"), ({ matches }) => paths(matches)), ["d/f"]),
  following.answers(
    "globs match links if the option kinds includes symlink",
    (fs) => Effect.map(fs.glob("**", { kinds: ["symlink"] }), ({ matches }) => paths(matches)),
    ["d/up", "dangling", "ld", "lf"]
  ),
  following.answers("greps do not read links", (fs) => Effect.map(fs.grep("text"), ({ matches }) => paths(matches)), ["d/f"]),
  linked("C-39", { "d/f": "text", ld: link("d") }).answers(
    "the base of a glob may be a link to a directory",
    (fs: Algebra) => Effect.map(fs.glob("*", { path: "ld" }), ({ matches }) => matches.length),
    1
  )
]

export const linkLaws: ReadonlyArray<Law> = [
  ...followingLaws,
  ...writingThroughLaws,
  ...escapingLaws,
  ...linkChangeLaws,
  ...searchingLaws,
  writableWithoutLinks("architecture: abilities").refuses(
    "symlink is Unsupported without the capability",
    (fs) => fs.symlink("l", "x"),
    "Unsupported"
  ),
  lawsWithoutLinks("architecture: abilities", { a: "x" }).refuses(
    "readLink is Unsupported without the capability",
    (fs) => fs.readLink("a"),
    "Unsupported"
  )
]
