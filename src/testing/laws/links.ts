import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { subdirectory } from "../../filesystem/Decorator.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { directory, type Files, link } from "../Files.ts"
import { abilities, type Ability, absoluteRoot, Bench, type Law, noted } from "../Law.ts"
import { expectTree, lawForms, plantFiles } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { changingCalls, collect, encodeUtf8, paths, readingCalls, supportedCalls } from "../operations.ts"

const lawsWithLinks = (...needs: ReadonlyArray<Ability>) => lawForms({ kind: "ability", needs: ["links", ...needs] })
const absoluteLinkForms = lawsWithLinks("absolute links")
const writableAbsoluteForms = lawsWithLinks("absolute links", "write")
/** Windows returns absolute targets below the root as relative ones. */
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
  absoluteLinkForms.law("an absolute link below the root is read as what it leads to", "C-39", function* (fs) {
    yield* plantFiles(fs, absoluteLinkTree(fs))
    for (const path of ["lf", "d/e/up", "ld/f", "ld/e/up", "top/d/f", "top/top/lf", "mixed", "through"]) {
      yield* equal(yield* fs.readString(path), "text\n", path)
      yield* has(yield* fs.stat(path), { kind: "file", sizeBytes: 5 })
    }
    yield* equal(
      (yield* fs.list("ld")).map(({ name }) => name),
      ["e", "f"]
    )
    yield* fails(fs.readString("dangling"), "NotFound")
  }),
  absoluteTextForms.law("readLink answers the text of an absolute link", "C-39", function* (fs) {
    yield* plantFiles(fs, absoluteLinkTree(fs))
    yield* equal(yield* fs.readLink("d/e/up"), `${absoluteRoot(fs)}/d/f`)
  }),
  absoluteLinkForms.law("a loop of absolute and relative links is InvalidPath", "C-39", function* (fs) {
    yield* plantFiles(fs, { "d/a": link(`${absoluteRoot(fs)}/b`), b: link("d/a"), self: link(`${absoluteRoot(fs)}/self`) })
    for (const path of ["d/a", "b", "self"]) yield* fails(fs.readString(path), "InvalidPath")
  }),
  absoluteLinkForms.law("an absolute link that climbs above the root is AccessDenied escape", "C-39", function* (fs) {
    yield* plantFiles(fs, climbingLinkTree(fs))
    for (const path of ["up", "up/d/f", "back"]) yield* fails(fs.readString(path), "AccessDenied", { why: "escape" })
  }),
  absoluteLinkForms.law("walks and searches neither match absolute links nor go into them", "C-39", function* (fs) {
    yield* plantFiles(fs, absoluteLinkTree(fs))
    yield* equal(paths((yield* fs.glob("**")).matches), ["d/f"])
    yield* equal(paths((yield* fs.grep("text")).matches), ["d/f"])
    yield* equal(paths((yield* fs.glob("*", { path: "ld" })).matches).length, 1)
  }),
  absoluteLinkForms.law("a directory of the whole follows only absolute links that stay in it", "C-39", function* (fs) {
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
  }),
  writableAbsoluteForms.law("writing goes through an absolute link and keeps it", "C-39", function* (fs) {
    yield* plantFiles(fs, absoluteLinkTree(fs))
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
  writableAbsoluteForms.law("symlink takes an absolute target below the root", "C-39", function* (fs) {
    yield* plantFiles(fs, { "d/f": "x" })
    yield* fs.symlink("d/e/l", `${absoluteRoot(fs)}/d/f`)
    yield* equal(yield* fs.readString("d/e/l"), "x")
  }),
  writableTextForms.law("an absolute link and its copy have the text that it was made with", "C-39, C-51", function* (fs) {
    const root = absoluteRoot(fs)
    yield* plantFiles(fs, { "d/f": "x" })
    yield* fs.symlink("d/l", `${root}/d/f`)
    yield* fs.copy("d/l", "m")
    yield* equal(yield* fs.readString("m"), "x")
    yield* expectTree(fs, { "d/f": "x", "d/l": link(`${root}/d/f`), m: link(`${root}/d/f`) })
  }),
  writableAbsoluteForms.law("symlink refuses an absolute target that climbs above the root", "C-39", function* (fs) {
    yield* plantFiles(fs, { "d/f": "x" })
    for (const { link: target } of [climbingLinkTree(fs)["up"], climbingLinkTree(fs)["back"]] as ReadonlyArray<{
      readonly link: string
    }>) {
      yield* fails(fs.symlink("l", target), "AccessDenied", { why: "escape" })
    }
    yield* expectTree(fs, { "d/f": "x" })
  })
]

const { answers, law, refuses } = lawsWithLinks()
const writing = lawsWithLinks("write")
const deleting = lawsWithLinks("delete")
const moving = lawsWithLinks("write", "delete")
const lawsWithoutLinks = lawForms({ kind: "ability", needs: ["no links"] })
/** A read-only filesystem reports AccessDenied before Unsupported, so these laws need write permission. */
const writableWithoutLinks = lawForms({ kind: "ability", needs: ["no links", "write"] })

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

const followingLaws: ReadonlyArray<Law> = [
  answers("a link to a file is read as the file", "C-39", insideLinkTree, (fs) => fs.readString("lf"), "text\n"),
  answers("a file below a link to a directory is read", "C-39", insideLinkTree, (fs) => fs.readString("ld/f"), "text\n"),
  answers("a link is relative to its own directory", "C-39", insideLinkTree, (fs) => fs.readString("d/up"), "text\n"),
  answers("a link through a link is followed", "C-39", insideLinkTree, (fs) => fs.readString("ld/up"), "text\n"),
  answers(
    "dots and slashes in a link's text are no names",
    "C-39",
    { "d/f": "x", l: link("./d//./f") },
    (fs) => fs.readString("l"),
    "x"
  ),
  answers("stat of a link describes its target and says that it is a link", "C-39", insideLinkTree, (fs) => fs.stat("lf"), {
    kind: "file",
    isFile: true,
    isDirectory: false,
    sizeBytes: 5,
    isSymlink: true
  }),
  answers("stat of a link to a directory describes the directory", "C-39", insideLinkTree, (fs) => fs.stat("ld"), {
    kind: "directory",
    isDirectory: true,
    isSymlink: true
  }),
  answers("stat of a file is no link's", "C-39", insideLinkTree, (fs) => fs.stat("d/f"), { isSymlink: undefined }),
  answers(
    "a link to a directory lists it",
    "C-39",
    { "d/a": "", "d/b": "", l: link("d") },
    (fs) => Effect.map(fs.list("l"), (all) => all.map(({ name }) => name)),
    ["a", "b"]
  ),
  law("a listing shows links as links", "C-39", function* (fs) {
    yield* plantFiles(fs, { "d/f": "x", lf: link("d/f"), ld: link("d") })
    const entries = (yield* fs.list()).filter(({ name }) => name !== "d")
    for (const entry of entries) yield* has(entry, { kind: "symlink", isFile: false, isDirectory: false, addressable: true })
    yield* equal(paths(entries), ["ld", "lf"])
  }),
  answers("what a link leads to exists", "C-39", insideLinkTree, (fs) => Effect.all([fs.exists("lf"), fs.exists("ld/f")]), [
    true,
    true
  ]),
  answers("a link that leads to nothing does not exist", "C-39", insideLinkTree, (fs) => fs.exists("dangling"), false),
  refuses(
    "reading a link that leads to nothing is NotFound",
    "C-39",
    insideLinkTree,
    (fs) => fs.readString("dangling"),
    "NotFound"
  ),
  refuses("stat of a link that leads to nothing is NotFound", "C-39", insideLinkTree, (fs) => fs.stat("dangling"), "NotFound"),
  refuses("below a link to a file there is nothing", "semantics: -", insideLinkTree, (fs) => fs.readString("lf/x"), "NotFound"),
  answers("40 links on the way are followed", "C-39", linkChain(40), (fs) => fs.readString("l40"), "reached"),
  refuses("41 links on the way are InvalidPath", "C-39", linkChain(41), (fs) => fs.readString("l41"), "InvalidPath"),
  law("a loop of links is InvalidPath in every call that follows", "C-39", function* (fs) {
    yield* plantFiles(fs, { a: link("b"), b: link("a"), self: link("self"), "d/deep": link("../a/x") })
    for (const path of ["a", "self", "a/x", "d/deep"]) {
      yield* fails(fs.readString(path), "InvalidPath")
      yield* fails(fs.stat(path), "InvalidPath")
      yield* fails(fs.list(path), "InvalidPath")
      yield* equal(yield* fs.exists(path), false)
    }
  }),
  answers(
    "readLink answers the text of the link",
    "C-39",
    { "d/l": link("./../d//f") },
    (fs) => fs.readLink("d/l"),
    "./../d//f"
  ),
  answers(
    "readLink of a link that leads to nothing answers its text",
    "C-39",
    insideLinkTree,
    (fs) => fs.readLink("dangling"),
    "d/new"
  ),
  refuses(
    "readLink of a file is InvalidArgument",
    "port: links",
    insideLinkTree,
    (fs) => fs.readLink("d/f"),
    "InvalidArgument"
  ),
  refuses(
    "readLink of a directory is InvalidArgument",
    "port: links",
    insideLinkTree,
    (fs) => fs.readLink("d"),
    "InvalidArgument"
  ),
  refuses("readLink of nothing is NotFound", "port: links", insideLinkTree, (fs) => fs.readLink("missing"), "NotFound")
]

const writingThroughLaws: ReadonlyArray<Law> = [
  ...(["overwrite", "replace"] as const).map((mode) =>
    writing.changes(
      `mode ${mode} writes through an inside link and keeps it`,
      "C-39",
      insideLinkTree,
      (fs) => fs.write("lf", "new", { mode }),
      {
        ...insideLinkTree,
        "d/f": "new"
      }
    )
  ),
  ...(["append", "appendExisting"] as const).map((mode) =>
    writing.changes(
      `mode ${mode} writes through an inside link and keeps it`,
      "C-39",
      insideLinkTree,
      (fs) => fs.write("lf", "new", { mode }),
      {
        ...insideLinkTree,
        "d/f": "text\nnew"
      }
    )
  ),
  writing.changes(
    "a sink writes through an inside link and keeps it",
    "C-39, C-49",
    insideLinkTree,
    (fs) => Stream.run(Stream.make(encodeUtf8("new")), fs.sink("lf")),
    { ...insideLinkTree, "d/f": "new" }
  ),
  writing.changes(
    "an edit goes through an inside link and keeps it",
    "C-39",
    insideLinkTree,
    (fs) => fs.edit("lf", { oldText: "text", newText: "new" }),
    { ...insideLinkTree, "d/f": "new\n" }
  ),
  writing.changes(
    "writing below a link to a directory writes in the directory",
    "C-39",
    insideLinkTree,
    (fs) => fs.write("ld/g/h", "new"),
    {
      ...insideLinkTree,
      "d/g/h": "new"
    }
  ),
  ...(["overwrite", "append"] as const).map((mode) =>
    writing.changes(
      `mode ${mode} makes the target of a dangling link`,
      "C-39",
      insideLinkTree,
      (fs) => fs.write("dangling", "new", { mode }),
      {
        ...insideLinkTree,
        "d/new": "new"
      }
    )
  ),
  ...(["replace", "appendExisting"] as const).map((mode) =>
    writing.refuses(
      `mode ${mode} on a dangling link is NotFound`,
      "C-11, C-39",
      insideLinkTree,
      (fs) => fs.write("dangling", "new", { mode }),
      "NotFound"
    )
  ),
  ...["lf", "ld", "dangling", "ld/up"].map((path) =>
    writing.refuses(
      `mode create on the link ${path} is AlreadyExists`,
      "C-39",
      insideLinkTree,
      (fs) => fs.write(path, "new", { mode: "create" }),
      "AlreadyExists"
    )
  ),
  writing.refuses(
    "writing to a link to a directory is NotAFile",
    "C-39",
    insideLinkTree,
    (fs) => fs.write("ld", "new"),
    "NotAFile"
  ),
  writing.law("ifMatch looks at the target of a link", "C-39, C-50", function* (fs) {
    yield* plantFiles(fs, insideLinkTree)
    yield* fs.write("lf", "new", { ifMatch: yield* fs.version("d/f") })
    yield* fails(fs.write("lf", "newer", { ifMatch: "0".repeat(64) }), "Conflict", { actual: yield* fs.version("d/f") })
    yield* expectTree(fs, { ...insideLinkTree, "d/f": "new" })
  }),
  writing.changes("mkdir below a link to a directory makes it there", "C-39", insideLinkTree, (fs) => fs.mkdir("ld/p/q"), {
    ...insideLinkTree,
    "d/p/q": directory
  }),
  writing.changes(
    "mkdir of a link to a directory does nothing",
    "C-39, S0-60",
    insideLinkTree,
    (fs) => fs.mkdir("ld"),
    insideLinkTree
  ),
  writing.refuses(
    "mkdir over a link to a file is AlreadyExists",
    "S0-60",
    insideLinkTree,
    (fs) => fs.mkdir("lf"),
    "AlreadyExists"
  )
]

const escapingLaws: ReadonlyArray<Law> = [
  ...targetsOutside.map((target) =>
    writing.refuses(
      `a link to ${target} is not made`,
      "C-39",
      { "d/f": "x" },
      (fs) => fs.symlink("l", target),
      "AccessDenied",
      { why: "escape" }
    )
  ),
  writing.changes("a link may climb as far as the root", "C-39", { "d/e/f": "x" }, (fs) => fs.symlink("d/e/l", "../../d/e/f"), {
    "d/e/f": "x",
    "d/e/l": link("../../d/e/f")
  }),
  writing.refuses(
    "a link may not climb above the root, however deep it stands",
    "C-39",
    { "d/e/f": "x" },
    (fs) => fs.symlink("d/e/l", "../../../x"),
    "AccessDenied",
    { why: "escape" }
  ),
  ...["out", "absolute", "d/deep"].map((path) =>
    law(`no call follows the link ${path} to the outside`, "C-39", function* (fs) {
      yield* plantFiles(fs, { ...outsideLinkTree, "source.txt": "a" })
      const able = abilities(fs, yield* Bench)
      const acting = new Set(["readLink", "delete", "copy", "move", "symlink"])
      for (const call of supportedCalls([...readingCalls, ...changingCalls], able)) {
        if (!acting.has(call.operation)) yield* fails(call.run(fs, path), "AccessDenied", { why: "escape" })
        yield* fails(call.run(fs, `${path}/x`), "AccessDenied", { why: "escape" })
      }
      yield* equal(yield* fs.exists(path), false)
      yield* equal(yield* fs.exists(`${path}/x`), false)
      yield* expectTree(fs, { ...outsideLinkTree, "source.txt": "a" })
    })
  ),
  law("globs and greps pass over links to the outside", "behaviours: regressions", function* (fs) {
    yield* plantFiles(fs, outsideLinkTree)
    yield* equal(paths((yield* fs.glob("**")).matches), ["d/f"])
    yield* equal(paths((yield* fs.grep("inside")).matches), ["d/f"])
    yield* equal(paths(yield* collect(fs.walk())), ["absolute", "d", "d/deep", "d/f", "out"])
  })
]

const acting: ReadonlyArray<Law> = [
  ...["lf", "ld", "dangling"].map((path) =>
    deleting.law(`delete removes the link ${path} and leaves its target`, "behaviours: regressions", function* (fs) {
      const rest = Object.fromEntries(Object.entries(insideLinkTree).filter(([key]) => key !== path))
      yield* plantFiles(fs, insideLinkTree)
      yield* equal(yield* fs.delete(path), { deleted: 1, directories: 0 })
      yield* expectTree(fs, rest)
    })
  ),
  deleting.changes(
    "a recursive delete of a link to a directory removes the link",
    "behaviours: regressions",
    { "d/f": "x", ld: link("d") },
    (fs) => fs.delete("ld", { recursive: true }),
    { "d/f": "x" },
    { deleted: 1, directories: 0 }
  ),
  deleting.changes(
    "a recursive delete does not follow what it meets",
    "C-39",
    { "d/f": "x", "t/l": link("../d"), "t/out": link("../../x"), "t/f": "y" },
    (fs) => fs.delete("t", { recursive: true }),
    { "d/f": "x" },
    { deleted: 3, directories: 1 }
  ),
  deleting.changes("delete of a link to the outside removes the link", "C-39", outsideLinkTree, (fs) => fs.delete("out"), {
    "d/f": "inside\n",
    absolute: link("/etc/passwd"),
    "d/deep": link("../../x")
  }),
  deleting.changes(
    "delete below a link to a directory removes what is there",
    "C-39",
    { "d/f": "x", "d/g": "y", ld: link("d") },
    (fs) => fs.delete("ld/f"),
    {
      "d/g": "y",
      ld: link("d")
    }
  ),
  writing.changes(
    "copy of a link is a link with the same text",
    "C-51",
    { "d/f": "x", l: link("d/f") },
    (fs) => fs.copy("l", "m"),
    { "d/f": "x", l: link("d/f"), m: link("d/f") },
    { files: 1, directories: 0 }
  ),
  writing.changes(
    "copy of a tree keeps its links, also those that lead nowhere",
    "C-51",
    { "t/f": "x", "t/l": link("f"), "t/none": link("none") },
    (fs) => fs.copy("t", "u"),
    { "t/f": "x", "t/l": link("f"), "t/none": link("none"), "u/f": "x", "u/l": link("f"), "u/none": link("none") },
    { files: 3, directories: 1 }
  ),
  writing.changes(
    "copy of a tree keeps links that lead out",
    "C-51",
    { "t/out": link("../../x"), "t/root": link("/") },
    (fs) => fs.copy("t", "u"),
    { "t/out": link("../../x"), "t/root": link("/"), "u/out": link("../../x"), "u/root": link("/") },
    { files: 2, directories: 1 }
  ),
  writing.changes(
    "copy over a link replaces the link, not its target",
    "C-39, C-51",
    { "d/f": "target", l: link("d/f"), a: "new" },
    (fs) => fs.copy("a", "l", { overwrite: true }),
    { "d/f": "target", l: "new", a: "new" }
  ),
  writing.changes(
    "a link can be copied over a file",
    "C-39, C-51",
    { "d/f": "target", l: link("d/f"), a: "old" },
    (fs) => fs.copy("l", "a", { overwrite: true }),
    { "d/f": "target", l: link("d/f"), a: link("d/f") }
  ),
  writing.refuses(
    "copy to a link is AlreadyExists",
    "C-51",
    insideLinkTree,
    (fs) => fs.copy("d/f", "dangling"),
    "AlreadyExists"
  ),
  moving.changes(
    "move of a link moves the link",
    "C-51",
    { "d/f": "x", l: link("d/f") },
    (fs) => fs.move("l", "p/m"),
    { "d/f": "x", "p/m": link("d/f") },
    { files: 1, directories: 0 }
  ),
  moving.changes(
    "move over a link replaces the link, not its target",
    "C-39, C-51",
    { "d/f": "target", l: link("d/f"), a: "new" },
    (fs) => fs.move("a", "l", { overwrite: true }),
    { "d/f": "target", l: "new" }
  ),
  moving.changes("move below a link to a directory", "C-39", { "d/f": "x", ld: link("d") }, (fs) => fs.move("ld/f", "ld/g"), {
    "d/g": "x",
    ld: link("d")
  }),
  writing.changes("symlink makes a link, whether or not it leads anywhere", "C-39", {}, (fs) => fs.symlink("l", "not/there"), {
    l: link("not/there")
  }),
  writing.changes("symlink keeps the text as it is given", "C-39", { "d/f": "x" }, (fs) => fs.symlink("d/l", "./../d//f"), {
    "d/f": "x",
    "d/l": link("./../d//f")
  }),
  ...["d/f", "d", "lf", "dangling"].map((path) =>
    writing.refuses(
      `symlink over ${path} is AlreadyExists`,
      "port: links",
      insideLinkTree,
      (fs) => fs.symlink(path, "d"),
      "AlreadyExists"
    )
  ),
  writing.refuses(
    "symlink below a file is NotADirectory",
    "semantics: -",
    insideLinkTree,
    (fs) => fs.symlink("d/f/l", "x"),
    "NotADirectory"
  )
]

const searchingLaws: ReadonlyArray<Law> = [
  answers(
    "a walk shows links and never goes into them",
    "C-39",
    insideLinkTree,
    (fs) => Effect.map(collect(fs.walk()), paths),
    ["d", "d/f", "d/up", "dangling", "ld", "lf"]
  ),
  law("a walk ends where a link leads back up", "C-39", function* (fs) {
    yield* plantFiles(fs, { "a/b/loop": link("../../a"), "a/b/f": "x" })
    const found = yield* collect(fs.walk())
    yield* equal(paths(found), ["a", "a/b", "a/b/f", "a/b/loop"])
    yield* holds(found[3]?.kind === "symlink", "a link", found[3])
  }),
  answers(
    "searches match no links",
    "C-39",
    insideLinkTree,
    (fs) => Effect.map(fs.glob("**"), ({ matches }) => paths(matches)),
    ["d/f"]
  ),
  answers(
    "searches match links where the kinds ask for them",
    "C-39",
    insideLinkTree,
    (fs) => Effect.map(fs.glob("**", { kinds: ["symlink"] }), ({ matches }) => paths(matches)),
    ["d/up", "dangling", "ld", "lf"]
  ),
  answers("greps read no links", "C-39", insideLinkTree, (fs) => Effect.map(fs.grep("text"), ({ matches }) => paths(matches)), [
    "d/f"
  ]),
  answers(
    "the base of a search may be a link to a directory",
    "C-39",
    { "d/f": "text", ld: link("d") },
    (fs: Algebra) => Effect.map(fs.glob("*", { path: "ld" }), ({ matches }) => matches.length),
    1
  )
]

export const linkLaws: ReadonlyArray<Law> = [
  ...followingLaws,
  ...writingThroughLaws,
  ...escapingLaws,
  ...acting,
  ...searchingLaws,
  writableWithoutLinks.refuses(
    "symlink is Unsupported where there are no links",
    "architecture: abilities",
    {},
    (fs) => fs.symlink("l", "x"),
    "Unsupported"
  ),
  lawsWithoutLinks.refuses(
    "readLink is Unsupported where there are no links",
    "architecture: abilities",
    { a: "x" },
    (fs) => fs.readLink("a"),
    "Unsupported"
  )
]
