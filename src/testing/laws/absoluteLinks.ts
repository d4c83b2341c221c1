import * as Effect from "effect/Effect"
import { subdirectory } from "../../filesystem/Decorator.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { plantFiles, lawForms, expectTree } from "../chapter.ts"
import { equal, fails, has } from "../expect.ts"
import { type Files, link } from "../Files.ts"
import { type Ability, absoluteRoot, type Law, noted } from "../Law.ts"
import { paths } from "../operations.ts"

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
