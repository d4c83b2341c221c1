import * as Effect from "effect/Effect"
import { fails, has } from "../expect.ts"
import { directory, link } from "../Files.ts"
import { type Law } from "../Law.ts"
import { exampleTree, expectPortTree, linkedTree, portForms, toPath } from "../portChapter.ts"

const writing = portForms("write")
const linking = portForms("links", "write")
const deleting = portForms("delete")
const unlinking = portForms("delete", "links")
const changingLinks = portForms("write", "delete", "links", "rename")

const renaming = portForms("write", "delete", "rename")

const renames = renaming("rename", exampleTree)

const removals = deleting("remove", exampleTree)

const linkRenames = changingLinks("rename", linkedTree)

export const portNameLaws: ReadonlyArray<Law> = [
  writing("makeDirectory", exampleTree).law("port makeDirectory creates one directory", function* (port) {
    yield* port.makeDirectory(toPath("dir/new"))
    yield* expectPortTree(port, { ...exampleTree, "dir/new": directory })
  }),
  ...["file", "dir", "empty", "."].map((path) =>
    writing("makeDirectory", exampleTree).refuses(
      `port makeDirectory over ${path}`,
      (port) => port.makeDirectory(toPath(path)),
      "AlreadyExists"
    )
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    linking("makeDirectory", linkedTree).refuses(
      `port makeDirectory over the link ${path}`,
      (port) => port.makeDirectory(toPath(path)),
      "AlreadyExists"
    )
  ),
  writing("missing parent", exampleTree).refuses(
    "port makeDirectory without a parent",
    (port) => port.makeDirectory(toPath("none/d")),
    "NotFound"
  ),
  writing("missing parent", exampleTree).refuses(
    "port makeDirectory below a file",
    (port) => port.makeDirectory(toPath("file/d")),
    "NotADirectory"
  ),

  removals.law("port remove removes a file", function* (port) {
    yield* port.remove(toPath("file"))
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory })
  }),
  removals.law("port remove removes an empty directory", function* (port) {
    yield* port.remove(toPath("empty"))
    yield* expectPortTree(port, { "dir/inner": "x", file: "text" })
  }),
  unlinking("remove", linkedTree).law("port remove removes a link, but not its target", function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) yield* port.remove(toPath(path))
    yield* expectPortTree(port, exampleTree)
  }),
  removals.refuses("port remove of a directory with content", (port) => port.remove(toPath("dir")), "DirectoryNotEmpty"),
  removals.refuses("port remove of a missing path", (port) => port.remove(toPath("none")), "NotFound"),
  removals.refuses("port remove below a file", (port) => port.remove(toPath("file/x")), ["NotFound", "NotADirectory"]),
  deleting("root").refuses("port remove of the root", (port) => port.remove(toPath(".")), "AccessDenied", { why: "root" }),
  deleting("root", exampleTree).refuses(
    "port remove of a root that has content",
    (port) => port.remove(toPath(".")),
    "AccessDenied",
    { why: "root" }
  ),

  portForms(
    "write",
    "delete",
    "no rename"
  )("rename", exampleTree).law(
    "port rename fails with EXDEV and changes nothing, if the backend cannot rename",
    function* (port) {
      for (const replace of [false, true]) {
        yield* fails(port.rename(toPath("file"), toPath("moved"), { replace }), "IoError", { code: "EXDEV" })
        yield* fails(port.rename(toPath("dir"), toPath("empty/moved"), { replace }), "IoError", { code: "EXDEV" })
      }
      yield* expectPortTree(port, exampleTree)
    }
  ),
  renames.law("port rename renames a file", function* (port) {
    yield* port.rename(toPath("file"), toPath("moved"), { replace: false })
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory, moved: "text" })
  }),
  renames.law("port rename renames a directory with its contents", function* (port) {
    yield* port.rename(toPath("dir"), toPath("moved"), { replace: false })
    yield* expectPortTree(port, { "moved/inner": "x", empty: directory, file: "text" })
  }),
  renames.law("port rename moves a directory to another directory, or fails with EXDEV", function* (port) {
    const moved = yield* Effect.result(port.rename(toPath("dir"), toPath("empty/moved"), { replace: false }))
    if (moved._tag === "Success") return yield* expectPortTree(port, { "empty/moved/inner": "x", file: "text" })
    yield* has(moved.failure as object, { _tag: "IoError", code: "EXDEV" } as object)
    yield* expectPortTree(port, exampleTree)
  }),
  linkRenames.law("port rename moves a link, but not its target", function* (port) {
    yield* port.rename(toPath("todir"), toPath("moved"), { replace: false })
    const { todir: _, ...rest } = linkedTree
    yield* expectPortTree(port, { ...rest, moved: link("dir") })
  }),
  ...["file", "dir", "empty"].flatMap((from) =>
    ["file", "dir", "empty"]
      .filter((to) => to !== from)
      .map((to) =>
        renames.refuses(
          `port rename of ${from} to ${to} without replace`,
          (port) => port.rename(toPath(from), toPath(to), { replace: false }),
          "AlreadyExists"
        )
      )
  ),
  linkRenames.refuses(
    "port rename to a link without replace",
    (port) => port.rename(toPath("file"), toPath("nowhere"), { replace: false }),
    "AlreadyExists"
  ),
  renaming("rename", { ...exampleTree, other: "old" }).law("port rename replaces a file", function* (port) {
    yield* port.rename(toPath("file"), toPath("other"), { replace: true })
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory, other: "text" })
  }),
  renames.law("port rename replaces an empty directory", function* (port) {
    yield* port.rename(toPath("dir"), toPath("empty"), { replace: true })
    yield* expectPortTree(port, { "empty/inner": "x", file: "text" })
  }),
  linkRenames.law("port rename replaces a link, but not its target", function* (port) {
    yield* port.rename(toPath("tofile"), toPath("todir"), { replace: true })
    const { tofile: _, ...rest } = linkedTree
    yield* expectPortTree(port, { ...rest, todir: link("file") })
  }),
  renames.law("port rename with replace moves a file to a missing path", function* (port) {
    yield* port.rename(toPath("file"), toPath("new"), { replace: true })
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory, new: "text" })
  }),
  ...(
    [
      ["rename", "over a directory with content", "empty", "dir", true, "DirectoryNotEmpty"],
      ["wrong kind", "of a file over an empty directory", "file", "empty", true, "NotAFile"],
      ["wrong kind", "of a directory over a file", "empty", "file", true, "NotADirectory"],
      ["rename", "of a missing path", "none", "new", false, "NotFound"],
      ["rename", "of a missing path with replace", "none", "file", true, "NotFound"],
      ["missing parent", "without a parent", "file", "none/x", false, "NotFound"],
      ["missing parent", "below a file", "empty", "file/x", false, "NotADirectory"]
    ] as const
  ).map(([part, what, from, to, replace, tag]) =>
    renaming(part, exampleTree).refuses(
      `port rename ${what}`,
      (port) => port.rename(toPath(from), toPath(to), { replace }),
      tag
    )
  ),
  renaming("root", exampleTree).refuses(
    "port rename of the root",
    (port) => port.rename(toPath("."), toPath("new"), { replace: false }),
    "AccessDenied",
    { why: "root" }
  )
]
