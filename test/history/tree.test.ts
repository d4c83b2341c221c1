import { assert, describe, it } from "@effect/vitest"
import type { FsPath } from "../../src/model/FsPath.ts"
import { findNode, blobId, type DirectoryNode, differences, graft, type Node } from "../../src/history/tree.ts"

type Shape = string | { readonly [name: string]: Shape }

const nodeOf = (shape: Shape): Node =>
  typeof shape === "string" ? { kind: "file", id: blobId(Buffer.from(shape)), sizeBytes: shape.length } : tree(shape)

const tree = (shape: { readonly [name: string]: Shape }): DirectoryNode => ({
  kind: "directory",
  entries: new Map(Object.entries(shape).map(([name, below]) => [name, nodeOf(below)]))
})

const path = (text: string) => text as FsPath

const grafted = (onto: DirectoryNode, from: DirectoryNode, paths: ReadonlyArray<string>, caseSensitive = true) =>
  graft(onto, from, paths.map(path), caseSensitive)

describe("trees of snapshots:", () => {
  it("entries have the content ids of git", () => {
    // The result of `printf 'what is up, doc?' | git hash-object --stdin`.
    assert.strictEqual(blobId(Buffer.from("what is up, doc?")), "bd9dbf5aae1a3862dd1526723246b20206e5fc37")
  })

  it("graft replaces a path with everything below it, and nothing else", () => {
    const now = tree({ a: { x: "new", y: "new" }, b: "new" })
    const then = tree({ a: { x: "old", z: { w: "old" } }, b: "old" })
    assert.deepStrictEqual(grafted(now, then, ["a/x"]), tree({ a: { y: "new", x: "old" }, b: "new" }))
    assert.deepStrictEqual(grafted(now, then, ["a"]), tree({ b: "new", a: { x: "old", z: { w: "old" } } }))
    assert.deepStrictEqual(grafted(now, then, ["a/z/w"]), tree({ a: { x: "new", y: "new", z: { w: "old" } }, b: "new" }))
    assert.deepStrictEqual(grafted(now, then, ["a/y"]), tree({ a: { x: "new" }, b: "new" }))
    assert.deepStrictEqual(grafted(now, then, ["."]), then)
  })

  it("graft changes nothing for paths that neither side has", () => {
    const now = tree({ a: "file" })
    const then = tree({ a: { x: "old" } })
    for (const nowhere of ["a/y", "a/y/z", "b", "b/c"]) assert.strictEqual(grafted(now, then, [nowhere]), now)
  })

  it("graft replaces a file with the directory of a grafted entry", () => {
    const out = grafted(tree({ a: "file" }), tree({ a: { x: "old", y: "old" } }), ["a/x"])
    assert.deepStrictEqual(out, tree({ a: { x: "old" } }))
  })

  it("graft matches names in another case in a case-insensitive tree", () => {
    const [now, then] = [tree({ Dir: { "New.txt": "new" } }), tree({ dir: { "new.TXT": "old" } })]
    assert.deepStrictEqual(grafted(now, then, ["DIR/NEW.txt"], false), tree({ dir: { "new.TXT": "old" } }))
    assert.strictEqual(grafted(now, then, ["DIR/NEW.txt"], true), now)
    assert.isUndefined(findNode(then, path("Dir")))
    assert.isDefined(findNode(then, path("Dir/NEW.txt"), false))
  })

  it("differences name everything below added and removed directories, in path order", () => {
    const changes = differences(tree({ a: { x: "1" }, "a-b": "1", c: "1" }), tree({ "a-b": "2", c: { d: "1" } }), true)
    assert.deepStrictEqual(
      changes.map(({ _tag, path }) => `${_tag} ${path}`),
      ["Removed a", "Modified a-b", "Removed a/x", "Modified c", "Added c/d"]
    )
  })
})
