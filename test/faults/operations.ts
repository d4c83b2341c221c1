/** Every operation of the service as data, on one tree, so that each test can inject its faults into each operation. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Algebra, WriteOptions } from "../../src/filesystem/Filesystem.ts"
import * as FsError from "../../src/model/FsError.ts"
import type { Step } from "../../src/testing/Faults.ts"
import { directory, type Files, link } from "../../src/testing/Files.ts"

export const files: Files = { "d/f": "old\n", "d/e/g": "deep", other: "y", empty: directory, l: link("other") }

export interface Operation {
  readonly name: string
  /**
   * `reads`: changes nothing. `one`: changes a single path, so that a failure leaves the old tree. `tree`: may have done a part
   * of its work when it fails, but never a part of a file.
   */
  readonly kind: "reads" | "one" | "tree"
  readonly errors: Schema.Top
  readonly run: (fs: Algebra) => Effect.Effect<unknown, FsError.FsError>
}

const operation =
  (kind: Operation["kind"]) =>
  (name: string, errors: Schema.Top, run: Operation["run"]): Operation => ({ name, kind, errors, run })

const reads = operation("reads")
const one = operation("one")
const tree = operation("tree")

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const linkErrors = Schema.Union([...FsError.StatError.members, FsError.InvalidArgument, FsError.Unsupported])
const lineErrors = Schema.Union([...FsError.StreamError.members, FsError.NotText])
const drain = <A>(stream: Stream.Stream<A, FsError.FsError>) => Stream.runDrain(stream)

/** Returns the same write twice: as bytes and as a stream. */
const writes = (what: string, path: string, options: WriteOptions, text = "new"): ReadonlyArray<Operation> => [
  one(`${what}, bytes`, FsError.WriteError, (fs) => fs.writeBytes(path, utf8(text), options)),
  one(`${what}, a stream`, FsError.WriteError, (fs) =>
    Stream.run(Stream.fromIterable([utf8(text.slice(0, 2)), utf8(text.slice(2))]), fs.sink(path, options))
  )
]

/** The SHA-256 of "old\n", from sha256sum. */
const versionOfOld = "01d09d19c2139a46aebfb577780d123d7396e97201bc7ead210a2ebff8239dee"

export const writing: ReadonlyArray<Operation> = [
  ...writes("create", "d/new", { mode: "create" }),
  ...writes("create with parents", "p/q/new", { mode: "create" }),
  ...writes("overwrite of a missing file", "p/q/new", {}),
  ...writes("overwrite", "d/f", {}),
  ...writes("overwrite through a link", "l", {}),
  ...writes("overwrite where a version is expected", "d/f", { ifMatch: versionOfOld, version: true }),
  ...writes("replace", "d/f", { mode: "replace" }),
  ...writes("append", "d/f", { mode: "append" }),
  ...writes("append to a missing file", "p/q/new", { mode: "append" }),
  ...writes("appendExisting", "d/f", { mode: "appendExisting", version: true }),
  one("edit", FsError.EditError, (fs) => fs.edit("d/f", { oldText: "old", newText: "new" }))
]

export const changing: ReadonlyArray<Operation> = [
  one("copy", FsError.TransferError, (fs) => fs.copy("d/f", "p/q/copied")),
  one("copy over a file", FsError.TransferError, (fs) => fs.copy("d/f", "other", { overwrite: true })),
  one("copy of a link", FsError.TransferError, (fs) => fs.copy("l", "p/l")),
  one("move", FsError.TransferError, (fs) => fs.move("d/f", "p/q/moved")),
  one("move over a file", FsError.TransferError, (fs) => fs.move("d/f", "other", { overwrite: true })),
  one("move of a link", FsError.TransferError, (fs) => fs.move("l", "p/l")),
  one("delete", FsError.DeleteError, (fs) => fs.delete("d/f")),
  one("delete of a link", FsError.DeleteError, (fs) => fs.delete("l")),
  one("delete of an empty directory", FsError.DeleteError, (fs) => fs.delete("empty")),
  one("mkdir", FsError.MkdirError, (fs) => fs.mkdir("d/new")),
  one("mkdir with parents", FsError.MkdirError, (fs) => fs.mkdir("p/q/r")),
  one("symlink", FsError.LinkError, (fs) => fs.symlink("p/q/l", "../../other")),
  one("setAttributes", linkErrors, (fs) => fs.setAttributes("d/f", { mode: 0o600 }))
]

export const trees: ReadonlyArray<Operation> = [
  tree("copy of a tree", FsError.TransferError, (fs) => fs.copy("d", "p/d")),
  tree("copy of a tree over an empty directory", FsError.TransferError, (fs) => fs.copy("d", "empty", { overwrite: true })),
  tree("move of a tree", FsError.TransferError, (fs) => fs.move("d", "p/d")),
  tree("move of a tree over an empty directory", FsError.TransferError, (fs) => fs.move("d", "empty", { overwrite: true })),
  tree("delete of a tree", FsError.DeleteError, (fs) => fs.delete("d", { recursive: true }))
]

export const reading: ReadonlyArray<Operation> = [
  reads("exists", FsError.BackendError, (fs) => fs.exists("d/f")),
  reads("stat", FsError.StatError, (fs) => fs.stat("d/f")),
  reads("stat through a link", FsError.StatError, (fs) => fs.stat("l")),
  reads("lstat", FsError.StatError, (fs) => fs.lstat("l")),
  reads("realPath", FsError.StatError, (fs) => fs.realPath("l")),
  reads("list", FsError.ListError, (fs) => fs.list("d")),
  reads("walk", FsError.ListError, (fs) => drain(fs.walk(".", { sizes: true }))),
  reads("glob", FsError.GlobError, (fs) => fs.glob("**/f", { sizes: true })),
  reads("globStream", FsError.GlobError, (fs) => drain(fs.globStream("f", { gitignore: true }))),
  reads("grep", FsError.GrepError, (fs) => fs.grep("old")),
  reads("grepStream", FsError.GrepError, (fs) => drain(fs.grepStream("old", { path: "d" }))),
  reads("read", FsError.ReadError, (fs) => fs.read("d/f", { version: true })),
  reads("readString", FsError.ReadError, (fs) => fs.readString("d/f")),
  reads("readBytes", FsError.ReadBytesError, (fs) => fs.readBytes("d/f")),
  reads("readBytes of a window", FsError.ReadBytesError, (fs) => fs.readBytes("d/f", { offset: 1, limit: 2 })),
  reads("version", FsError.StreamError, (fs) => fs.version("d/f")),
  reads("stream", FsError.StreamError, (fs) => drain(fs.stream("d/f"))),
  reads("lines", lineErrors, (fs) => drain(fs.lines("d/f"))),
  reads("readLink", linkErrors, (fs) => fs.readLink("l"))
]

export const operations: ReadonlyArray<Operation> = [...reading, ...writing, ...changing, ...trees]

export interface Failure {
  readonly _tag: string
  readonly why?: string
  readonly code?: string
  readonly path: string
  /** True if the error is one of the operation's declared errors. */
  readonly isDeclared: boolean
}

export const failure = (self: Operation, fs: Algebra): Effect.Effect<Failure | undefined> =>
  Effect.match(self.run(fs), {
    onSuccess: () => undefined,
    onFailure: (error): Failure => ({
      _tag: error._tag,
      ...("why" in error && { why: error.why }),
      ...("code" in error && error.code !== undefined && { code: error.code }),
      path: error.path,
      isDeclared: Schema.is(self.errors)(error)
    })
  })

export const steps: ReadonlyArray<Step> = [
  "Stat",
  "List",
  "Open",
  "Read",
  "Write",
  "MakeDirectory",
  "Remove",
  "Rename",
  "ReadLink",
  "MakeLink",
  "SetAttributes"
]
