import * as Effect from "effect/Effect"
import { has } from "../expect.ts"
import { directory, link } from "../Files.ts"
import { type Law } from "../Law.ts"
import { at, changing, leaves, linked, on, refuses, tree, writing } from "../portChapter.ts"

export const portNameLaws: ReadonlyArray<Law> = [
  on(writing, "port makeDirectory makes one directory", "makeDirectory", tree, function* (port) {
    yield* port.makeDirectory(at("dir/new"))
    yield* leaves(port, { ...tree, "dir/new": directory })
  }),
  ...["file", "dir", "empty", "."].map((path) =>
    refuses(
      writing,
      `port makeDirectory over ${path}`,
      "makeDirectory",
      tree,
      (port) => port.makeDirectory(at(path)),
      "AlreadyExists"
    )
  ),
  ...["tofile", "todir", "nowhere"].map((path) =>
    refuses(
      ["write", "links"],
      `port makeDirectory over the link ${path}`,
      "makeDirectory",
      linked,
      (port) => port.makeDirectory(at(path)),
      "AlreadyExists"
    )
  ),
  refuses(
    writing,
    "port makeDirectory needs a parent",
    "missing parent",
    tree,
    (port) => port.makeDirectory(at("none/d")),
    "NotFound"
  ),
  refuses(
    writing,
    "port makeDirectory needs a directory for a parent",
    "missing parent",
    tree,
    (port) => port.makeDirectory(at("file/d")),
    "NotADirectory"
  ),

  on(["delete"], "port remove removes a file", "remove", tree, function* (port) {
    yield* port.remove(at("file"))
    yield* leaves(port, { "dir/inner": "x", empty: directory })
  }),
  on(["delete"], "port remove removes an empty directory", "remove", tree, function* (port) {
    yield* port.remove(at("empty"))
    yield* leaves(port, { "dir/inner": "x", file: "text" })
  }),
  on(["delete", "links"], "port remove removes a link, not what it leads to", "remove", linked, function* (port) {
    for (const path of ["tofile", "todir", "nowhere"]) yield* port.remove(at(path))
    yield* leaves(port, tree)
  }),
  refuses(
    ["delete"],
    "port remove of a directory with content",
    "remove",
    tree,
    (port) => port.remove(at("dir")),
    "DirectoryNotEmpty"
  ),
  refuses(["delete"], "port remove of nothing", "remove", tree, (port) => port.remove(at("none")), "NotFound"),
  refuses(["delete"], "port remove below a file", "remove", tree, (port) => port.remove(at("file/x")), [
    "NotFound",
    "NotADirectory"
  ]),
  refuses(["delete"], "port remove of the root", "root", {}, (port) => port.remove(at(".")), "AccessDenied", { why: "root" }),
  refuses(["delete"], "port remove of the root with content", "root", tree, (port) => port.remove(at(".")), "AccessDenied", {
    why: "root"
  }),

  on(changing, "port rename gives a file another name", "rename", tree, function* (port) {
    yield* port.rename(at("file"), at("moved"), { replace: false })
    yield* leaves(port, { "dir/inner": "x", empty: directory, moved: "text" })
  }),
  on(changing, "port rename gives a whole tree another name", "rename", tree, function* (port) {
    yield* port.rename(at("dir"), at("moved"), { replace: false })
    yield* leaves(port, { "moved/inner": "x", empty: directory, file: "text" })
  }),
  on(changing, "port rename moves to another directory, or says that only copying would do", "rename", tree, function* (port) {
    const moved = yield* Effect.result(port.rename(at("dir"), at("empty/moved"), { replace: false }))
    if (moved._tag === "Success") return yield* leaves(port, { "empty/moved/inner": "x", file: "text" })
    yield* has(moved.failure as object, { _tag: "IoError", code: "EXDEV" } as object)
    yield* leaves(port, tree)
  }),
  on(["write", "delete", "links"], "port rename moves a link, not what it leads to", "rename", linked, function* (port) {
    yield* port.rename(at("todir"), at("moved"), { replace: false })
    const { todir: _, ...rest } = linked
    yield* leaves(port, { ...rest, moved: link("dir") })
  }),
  ...["file", "dir", "empty"].flatMap((from) =>
    ["file", "dir", "empty"]
      .filter((to) => to !== from)
      .map((to) =>
        refuses(
          changing,
          `port rename of ${from} to ${to} without replace`,
          "rename",
          tree,
          (port) => port.rename(at(from), at(to), { replace: false }),
          "AlreadyExists"
        )
      )
  ),
  refuses(
    ["write", "delete", "links"],
    "port rename to a link without replace",
    "rename",
    linked,
    (port) => port.rename(at("file"), at("nowhere"), { replace: false }),
    "AlreadyExists"
  ),
  on(changing, "port rename replaces a file", "rename", { ...tree, other: "old" }, function* (port) {
    yield* port.rename(at("file"), at("other"), { replace: true })
    yield* leaves(port, { "dir/inner": "x", empty: directory, other: "text" })
  }),
  on(changing, "port rename replaces an empty directory", "rename", tree, function* (port) {
    yield* port.rename(at("dir"), at("empty"), { replace: true })
    yield* leaves(port, { "empty/inner": "x", file: "text" })
  }),
  on(["write", "delete", "links"], "port rename replaces a link, not what it leads to", "rename", linked, function* (port) {
    yield* port.rename(at("tofile"), at("todir"), { replace: true })
    const { tofile: _, ...rest } = linked
    yield* leaves(port, { ...rest, todir: link("file") })
  }),
  on(changing, "port rename with replace moves where nothing is", "rename", tree, function* (port) {
    yield* port.rename(at("file"), at("new"), { replace: true })
    yield* leaves(port, { "dir/inner": "x", empty: directory, new: "text" })
  }),
  refuses(
    changing,
    "port rename over a directory with content",
    "rename",
    tree,
    (port) => port.rename(at("empty"), at("dir"), { replace: true }),
    "DirectoryNotEmpty"
  ),
  refuses(
    changing,
    "port rename of a file over an empty directory",
    "wrong kind",
    tree,
    (port) => port.rename(at("file"), at("empty"), { replace: true }),
    "NotAFile"
  ),
  refuses(
    changing,
    "port rename of a directory over a file",
    "wrong kind",
    tree,
    (port) => port.rename(at("empty"), at("file"), { replace: true }),
    "NotADirectory"
  ),
  refuses(
    changing,
    "port rename of nothing",
    "rename",
    tree,
    (port) => port.rename(at("none"), at("new"), { replace: false }),
    "NotFound"
  ),
  refuses(
    changing,
    "port rename of nothing with replace",
    "rename",
    tree,
    (port) => port.rename(at("none"), at("file"), { replace: true }),
    "NotFound"
  ),
  refuses(
    changing,
    "port rename needs a parent",
    "missing parent",
    tree,
    (port) => port.rename(at("file"), at("none/x"), { replace: false }),
    "NotFound"
  ),
  refuses(
    changing,
    "port rename needs a directory for a parent",
    "missing parent",
    tree,
    (port) => port.rename(at("empty"), at("file/x"), { replace: false }),
    "NotADirectory"
  ),
  refuses(
    changing,
    "port rename of the root",
    "root",
    tree,
    (port) => port.rename(at("."), at("new"), { replace: false }),
    "AccessDenied",
    { why: "root" }
  )
]
