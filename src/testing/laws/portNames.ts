import * as Effect from "effect/Effect"
import { has } from "../expect.ts"
import { directory, link } from "../Files.ts"
import { type Law } from "../Law.ts"
import { toPath, changing, expectPortTree, linkedTree, lawOnPort, refuses, exampleTree, writing } from "../portChapter.ts"

export const portNameLaws: ReadonlyArray<Law> = [
  lawOnPort(writing, "port makeDirectory makes one directory", "makeDirectory", exampleTree, function* (port) {
    yield* port.makeDirectory(toPath("dir/new"))
    yield* expectPortTree(port, { ...exampleTree, "dir/new": directory })
  }),
  ...["file", "dir", "empty", "."].map((path) =>
    refuses(
      writing,
      `port makeDirectory over ${path}`,
      "makeDirectory",
      exampleTree,
      (port) => port.makeDirectory(toPath(path)),
      "AlreadyExists"
    )
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    refuses(
      ["write", "links"],
      `port makeDirectory over the link ${path}`,
      "makeDirectory",
      linkedTree,
      (port) => port.makeDirectory(toPath(path)),
      "AlreadyExists"
    )
  ),
  refuses(
    writing,
    "port makeDirectory needs a parent",
    "missing parent",
    exampleTree,
    (port) => port.makeDirectory(toPath("none/d")),
    "NotFound"
  ),
  refuses(
    writing,
    "port makeDirectory needs a directory for a parent",
    "missing parent",
    exampleTree,
    (port) => port.makeDirectory(toPath("file/d")),
    "NotADirectory"
  ),

  lawOnPort(["delete"], "port remove removes a file", "remove", exampleTree, function* (port) {
    yield* port.remove(toPath("file"))
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory })
  }),
  lawOnPort(["delete"], "port remove removes an empty directory", "remove", exampleTree, function* (port) {
    yield* port.remove(toPath("empty"))
    yield* expectPortTree(port, { "dir/inner": "x", file: "text" })
  }),
  lawOnPort(["delete", "links"], "port remove removes a link, not what it leads to", "remove", linkedTree, function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) yield* port.remove(toPath(path))
    yield* expectPortTree(port, exampleTree)
  }),
  refuses(
    ["delete"],
    "port remove of a directory with content",
    "remove",
    exampleTree,
    (port) => port.remove(toPath("dir")),
    "DirectoryNotEmpty"
  ),
  refuses(["delete"], "port remove of nothing", "remove", exampleTree, (port) => port.remove(toPath("none")), "NotFound"),
  refuses(["delete"], "port remove below a file", "remove", exampleTree, (port) => port.remove(toPath("file/x")), [
    "NotFound",
    "NotADirectory"
  ]),
  refuses(["delete"], "port remove of the root", "root", {}, (port) => port.remove(toPath(".")), "AccessDenied", {
    why: "root"
  }),
  refuses(
    ["delete"],
    "port remove of the root with content",
    "root",
    exampleTree,
    (port) => port.remove(toPath(".")),
    "AccessDenied",
    {
      why: "root"
    }
  ),

  lawOnPort(changing, "port rename gives a file another name", "rename", exampleTree, function* (port) {
    yield* port.rename(toPath("file"), toPath("moved"), { replace: false })
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory, moved: "text" })
  }),
  lawOnPort(changing, "port rename gives a whole tree another name", "rename", exampleTree, function* (port) {
    yield* port.rename(toPath("dir"), toPath("moved"), { replace: false })
    yield* expectPortTree(port, { "moved/inner": "x", empty: directory, file: "text" })
  }),
  lawOnPort(
    changing,
    "port rename moves to another directory, or says that only copying would do",
    "rename",
    exampleTree,
    function* (port) {
      const moved = yield* Effect.result(port.rename(toPath("dir"), toPath("empty/moved"), { replace: false }))
      if (moved._tag === "Success") return yield* expectPortTree(port, { "empty/moved/inner": "x", file: "text" })
      yield* has(moved.failure as object, { _tag: "IoError", code: "EXDEV" } as object)
      yield* expectPortTree(port, exampleTree)
    }
  ),
  lawOnPort(
    ["write", "delete", "links"],
    "port rename moves a link, not what it leads to",
    "rename",
    linkedTree,
    function* (port) {
      yield* port.rename(toPath("todir"), toPath("moved"), { replace: false })
      const { todir: _, ...rest } = linkedTree
      yield* expectPortTree(port, { ...rest, moved: link("dir") })
    }
  ),
  ...["file", "dir", "empty"].flatMap((from) =>
    ["file", "dir", "empty"]
      .filter((to) => to !== from)
      .map((to) =>
        refuses(
          changing,
          `port rename of ${from} to ${to} without replace`,
          "rename",
          exampleTree,
          (port) => port.rename(toPath(from), toPath(to), { replace: false }),
          "AlreadyExists"
        )
      )
  ),
  refuses(
    ["write", "delete", "links"],
    "port rename to a link without replace",
    "rename",
    linkedTree,
    (port) => port.rename(toPath("file"), toPath("nowhere"), { replace: false }),
    "AlreadyExists"
  ),
  lawOnPort(changing, "port rename replaces a file", "rename", { ...exampleTree, other: "old" }, function* (port) {
    yield* port.rename(toPath("file"), toPath("other"), { replace: true })
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory, other: "text" })
  }),
  lawOnPort(changing, "port rename replaces an empty directory", "rename", exampleTree, function* (port) {
    yield* port.rename(toPath("dir"), toPath("empty"), { replace: true })
    yield* expectPortTree(port, { "empty/inner": "x", file: "text" })
  }),
  lawOnPort(
    ["write", "delete", "links"],
    "port rename replaces a link, not what it leads to",
    "rename",
    linkedTree,
    function* (port) {
      yield* port.rename(toPath("tofile"), toPath("todir"), { replace: true })
      const { tofile: _, ...rest } = linkedTree
      yield* expectPortTree(port, { ...rest, todir: link("file") })
    }
  ),
  lawOnPort(changing, "port rename with replace moves where nothing is", "rename", exampleTree, function* (port) {
    yield* port.rename(toPath("file"), toPath("new"), { replace: true })
    yield* expectPortTree(port, { "dir/inner": "x", empty: directory, new: "text" })
  }),
  refuses(
    changing,
    "port rename over a directory with content",
    "rename",
    exampleTree,
    (port) => port.rename(toPath("empty"), toPath("dir"), { replace: true }),
    "DirectoryNotEmpty"
  ),
  refuses(
    changing,
    "port rename of a file over an empty directory",
    "wrong kind",
    exampleTree,
    (port) => port.rename(toPath("file"), toPath("empty"), { replace: true }),
    "NotAFile"
  ),
  refuses(
    changing,
    "port rename of a directory over a file",
    "wrong kind",
    exampleTree,
    (port) => port.rename(toPath("empty"), toPath("file"), { replace: true }),
    "NotADirectory"
  ),
  refuses(
    changing,
    "port rename of nothing",
    "rename",
    exampleTree,
    (port) => port.rename(toPath("none"), toPath("new"), { replace: false }),
    "NotFound"
  ),
  refuses(
    changing,
    "port rename of nothing with replace",
    "rename",
    exampleTree,
    (port) => port.rename(toPath("none"), toPath("file"), { replace: true }),
    "NotFound"
  ),
  refuses(
    changing,
    "port rename needs a parent",
    "missing parent",
    exampleTree,
    (port) => port.rename(toPath("file"), toPath("none/x"), { replace: false }),
    "NotFound"
  ),
  refuses(
    changing,
    "port rename needs a directory for a parent",
    "missing parent",
    exampleTree,
    (port) => port.rename(toPath("empty"), toPath("file/x"), { replace: false }),
    "NotADirectory"
  ),
  refuses(
    changing,
    "port rename of the root",
    "root",
    exampleTree,
    (port) => port.rename(toPath("."), toPath("new"), { replace: false }),
    "AccessDenied",
    { why: "root" }
  )
]
