/**
 * Every operation of the service with its expected result for each kind of path. The results are written by hand from
 * the laws C-09 to C-19, C-34, C-39, C-45, C-50, C-51 and C-54. The tests compare the result and the tree; after a
 * failure the tree must be unchanged.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import type { Algebra, WriteOptions } from "../../../src/filesystem/Filesystem.ts"
import type { Leads, Meaning } from "./meaning.ts"
import {
  below,
  childrenOf,
  copied,
  directory,
  file,
  isDirectory,
  isFile,
  isLink,
  join,
  link,
  normal,
  parentOf,
  put,
  textOf,
  type Tree,
  whatIs,
  without
} from "./tree.ts"

export interface Failure {
  readonly fails: string
  readonly why?: string
}

export interface Success {
  readonly answers: unknown
  readonly leaves?: Tree
  readonly sets?: { readonly at: string; readonly mode?: number; readonly modifiedAt?: number }
}

export type Expected = Failure | Success

/** A row of the first table, in the tree of its layout. */
export interface Case extends Meaning {
  readonly path: string
  readonly tree: Tree
}

export interface Method {
  readonly name: string
  /** True if only the soak runs the method, because it is a variant of another one. */
  readonly isExtra: boolean
  readonly run: (fs: Algebra, path: string) => Effect.Effect<unknown, unknown>
  readonly expects: (at: Case) => Expected
}

const fails = (tag: string, why?: string): Failure => (why === undefined ? { fails: tag } : { fails: tag, why })
const notFound = fails("NotFound")
const notAFile = fails("NotAFile")
const notADirectory = fails("NotADirectory")
const exists = fails("AlreadyExists")
const root = fails("AccessDenied", "root")

type Nowhere = Exclude<Leads["is"], "file" | "directory" | "nothing" | "blocked">

const refusals: Readonly<Record<Nowhere, Failure>> = {
  lost: notFound,
  escape: fails("AccessDenied", "escape"),
  refused: fails("AccessDenied", "link"),
  loop: fails("InvalidPath"),
  invalid: fails("InvalidPath"),
  tooLong: fails("PathTooLong")
}

interface Follows {
  readonly file: (at: string, self: Case) => Expected
  readonly directory: (at: string, self: Case) => Expected
  readonly nothing: (at: string, self: Case) => Expected
  readonly blocked?: Expected
  readonly lost?: Expected
}

/** Returns the expectation of an operation that follows a final link. */
const follows =
  (cases: Follows) =>
  (self: Case): Expected => {
    const { leads } = self
    if (leads.is === "file" || leads.is === "directory" || leads.is === "nothing") return cases[leads.is](leads.at, self)
    if (leads.is === "blocked") return cases.blocked ?? notFound
    return leads.is === "lost" ? (cases.lost ?? notFound) : refusals[leads.is]
  }

/** Returns the expectation of an operation that acts on a final link itself. */
const acts =
  (onLink: (at: string, self: Case) => Expected, cases: Follows) =>
  (self: Case): Expected =>
    self.link === undefined ? follows(cases)(self) : onLink(self.link, self)

const contentOf = (self: Case, at: string): string => textOf(self.tree[at]!)
const sizeOf = (self: Case, at: string): number => Buffer.byteLength(contentOf(self, at))
const under = (self: Case, path: string): string => join(normal(self.path)!, path)
const kindOf = (what: string): string => (isDirectory(what) ? "directory" : isLink(what) ? "symlink" : "file")
const filesBelow = (self: Case, at: string): ReadonlyArray<string> =>
  Object.entries(below(self.tree, at))
    .filter(([, what]) => isFile(what))
    .map(([path]) => under(self, path))
    .sort()

const method = (name: string, run: Method["run"], expects: Method["expects"]): Method => ({
  name,
  isExtra: false,
  run,
  expects
})

const sorted = (paths: Iterable<{ readonly path: string }>): ReadonlyArray<string> =>
  Array.from(paths, ({ path }) => path).sort()
const all = <A, E>(stream: Stream.Stream<A, E>): Effect.Effect<ReadonlyArray<A>, E> => Stream.runCollect(stream)
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

const ofContent = (answer: (content: string) => unknown): Method["expects"] =>
  follows({
    file: (at, self) => ({ answers: answer(contentOf(self, at)) }),
    directory: () => notAFile,
    nothing: () => notFound
  })

const inDirectory = (answer: (at: string, self: Case) => unknown): Method["expects"] =>
  follows({
    file: () => notADirectory,
    directory: (at, self) => ({ answers: answer(at, self) }),
    nothing: () => notFound
  })

const linesWith = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line.includes("inside"))

const searched: Method["expects"] = follows({
  file: (_, self) => ({ answers: [normal(self.path)] }),
  directory: (at, self) => ({ answers: filesBelow(self, at) }),
  nothing: () => notFound
})

const looking: ReadonlyArray<Method> = [
  method(
    "exists",
    (fs, path) => fs.exists(path),
    ({ leads }) => ({ answers: leads.is === "file" || leads.is === "directory" })
  ),
  method(
    "stat",
    (fs, path) =>
      Effect.map(fs.stat(path), ({ isSymlink = false, kind, path, sizeBytes }) => [path, kind, sizeBytes, isSymlink]),
    follows({
      file: (at, self) => ({ answers: [normal(self.path), "file", sizeOf(self, at), self.link !== undefined] }),
      directory: (_, self) => ({ answers: [normal(self.path), "directory", 0, self.link !== undefined] }),
      nothing: () => notFound
    })
  ),
  method(
    "list",
    (fs, path) => Effect.map(fs.list(path), (entries) => entries.map(({ kind, name, path }) => [name, path, kind]).sort()),
    inDirectory((at, self) =>
      childrenOf(self.tree, at)
        .map((name) => [name, under(self, name), kindOf(self.tree[join(at, name)]!)])
        .sort()
    )
  ),
  method(
    "walk",
    (fs, path) => Effect.map(all(fs.walk(path)), sorted),
    inDirectory((at, self) =>
      Object.keys(below(self.tree, at))
        .map((path) => under(self, path))
        .sort()
    )
  ),
  method(
    "glob",
    (fs, path) => Effect.map(fs.glob("**", { path }), ({ matches }) => sorted(matches)),
    inDirectory((at, self) => filesBelow(self, at))
  ),
  method(
    "globStream",
    (fs, path) => Effect.map(all(fs.globStream("**", { path })), sorted),
    inDirectory((at, self) => filesBelow(self, at))
  ),
  method(
    "glob of links",
    (fs, path) => Effect.map(fs.glob("**", { path, kinds: ["symlink"] }), ({ matches }) => sorted(matches)),
    inDirectory((at, self) =>
      Object.entries(below(self.tree, at))
        .filter(([, what]) => isLink(what))
        .map(([path]) => under(self, path))
        .sort()
    )
  ),
  method("grep", (fs, path) => Effect.map(fs.grep("inside", { path }), ({ matches }) => sorted(matches)), searched),
  method("grepStream", (fs, path) => Effect.map(all(fs.grepStream("inside", { path })), sorted), searched),
  method(
    "readLink",
    (fs, path) => fs.readLink(path),
    acts((at, self) => ({ answers: contentOf(self, at) }), {
      file: () => fails("InvalidArgument"),
      directory: () => fails("InvalidArgument"),
      nothing: () => notFound
    })
  )
]

const reading: ReadonlyArray<Method> = [
  method(
    "read",
    (fs, path) => Effect.map(fs.read(path), ({ content, totalLines }) => [content, totalLines]),
    ofContent((text) => [text.replace(/\n$/, ""), 1])
  ),
  method(
    "readString",
    (fs, path) => fs.readString(path),
    ofContent((text) => text)
  ),
  method(
    "readBytes",
    (fs, path) => Effect.map(fs.readBytes(path), ({ content }) => decode(content)),
    ofContent((text) => text)
  ),
  method(
    "readBytes of a part",
    (fs, path) => Effect.map(fs.readBytes(path, { offset: 1, limit: 3 }), ({ content }) => decode(content)),
    ofContent((text) => text.slice(1, 4))
  ),
  method("version", (fs, path) => fs.version(path), ofContent(sha256)),
  method(
    "stream",
    (fs, path) => Effect.map(all(fs.stream(path)), (chunks) => Buffer.concat(chunks).toString()),
    ofContent((text) => text)
  ),
  method("lines", (fs, path) => all(fs.lines(path)), ofContent(linesWith)),
  method(
    "edit, dry",
    (fs, path) =>
      Effect.map(fs.edit(path, { oldText: "inside", newText: "edited" }, { dryRun: true }), (all) => all.replacements),
    ofContent(() => 1)
  )
]

const written = "written\n"
type Put = (old: string | undefined) => string

const writes = (name: string, options: WriteOptions, expected: Method["expects"]): ReadonlyArray<Method> => {
  // An empty path is a mistake of the caller.
  const expects: Method["expects"] = (self) => (self.path === "" ? fails("InvalidPath") : expected(self))
  return [
    method(`write, ${name}`, (fs, path) => Effect.as(fs.write(path, written, options), undefined), expects),
    {
      ...method(
        `writeBytes, ${name}`,
        (fs, path) => Effect.as(fs.writeBytes(path, utf8(written), options), undefined),
        expects
      ),
      isExtra: name !== "overwrite"
    },
    method(
      `sink, ${name}`,
      (fs, path) => Effect.as(Stream.run(Stream.make(utf8("writ"), utf8("ten\n")), fs.sink(path, options)), undefined),
      expects
    )
  ]
}

const makes =
  (what: string) =>
  (at: string, { tree }: Case): Success => ({ answers: undefined, leaves: put(tree, at, what) })

const parentIsThere = (at: string, self: Case): boolean => isDirectory(whatIs(self.tree, parentOf(at)))

const through = (text: Put, needsFile: boolean): Follows => ({
  file: (at, self) => ({ answers: undefined, leaves: put(self.tree, at, file(text(contentOf(self, at)))) }),
  directory: () => notAFile,
  nothing: needsFile ? () => notFound : makes(file(text(undefined))),
  blocked: notADirectory
})

const replaced: Put = () => written
const appended: Put = (old = "") => old + written
const noVersion = "0".repeat(64)

const writing: ReadonlyArray<Method> = [
  ...writes(
    "create",
    { mode: "create" },
    acts(() => exists, { ...through(replaced, false), file: () => exists })
  ),
  ...writes("overwrite", {}, follows(through(replaced, false))),
  ...writes("append", { mode: "append" }, follows(through(appended, false))),
  ...writes("replace", { mode: "replace" }, follows(through(replaced, true))),
  ...writes("appendExisting", { mode: "appendExisting" }, follows(through(appended, true))),
  ...writes(
    "without parents",
    { createParents: false },
    follows({
      ...through(replaced, false),
      nothing: (at, self) => (parentIsThere(at, self) ? makes(file(written))(at, self) : notFound)
    })
  ),
  ...writes("if there is none", { ifMatch: null }, follows({ ...through(replaced, false), file: () => fails("Conflict") })),
  ...writes(
    "if it is another",
    { ifMatch: noVersion },
    follows({
      file: () => fails("Conflict"),
      directory: () => notAFile,
      nothing: () => fails("Conflict"),
      blocked: fails("Conflict"),
      lost: fails("Conflict")
    })
  ),
  method(
    "edit",
    (fs, path) => Effect.as(fs.edit(path, { oldText: "inside", newText: "edited" }), undefined),
    follows({
      file: (at, self) => ({
        answers: undefined,
        leaves: put(self.tree, at, file(contentOf(self, at).replace("inside", "edited")))
      }),
      directory: () => notAFile,
      nothing: () => notFound
    })
  )
]

const removedLink = (at: string, { tree }: Case): Success => ({
  answers: [1, 0],
  leaves: without(tree, at)
})

const removes = (recursive: boolean, missing: Expected): Method["expects"] =>
  acts(removedLink, {
    file: removedLink,
    directory: (at, { tree }) => {
      if (at === ".") return root
      const inIt = Object.values(below(tree, at))
      if (!recursive && inIt.length > 0) return fails("DirectoryNotEmpty")
      const directories = inIt.filter(isDirectory).length
      return { answers: [Math.max(1, inIt.length - directories), directories + 1], leaves: without(tree, at) }
    },
    nothing: () => missing,
    blocked: missing,
    lost: missing
  })

const removed = ({ deleted, directories }: { readonly deleted: number; readonly directories: number }) => [deleted, directories]

const deleting: ReadonlyArray<Method> = [
  method("delete", (fs, path) => Effect.map(fs.delete(path), removed), removes(false, notFound)),
  method("delete, recursive", (fs, path) => Effect.map(fs.delete(path, { recursive: true }), removed), removes(true, notFound)),
  method(
    "delete, also if missing",
    (fs, path) => Effect.map(fs.delete(path, { missing: "ignore" }), removed),
    removes(false, { answers: [0, 0] })
  ),
  method(
    "delete, if it is another",
    (fs, path) => Effect.map(fs.delete(path, { ifMatch: noVersion, recursive: true }), removed),
    acts(() => notAFile, {
      file: () => fails("Conflict"),
      directory: (at) => (at === "." ? root : notAFile),
      nothing: () => fails("Conflict"),
      blocked: fails("Conflict"),
      lost: fails("Conflict")
    })
  )
]

/** Returns the expectation of mkdir. `onDirectory` is the result for a directory, and for a link to one. */
const makesDirectory = (parents: boolean, onDirectory: Expected): Method["expects"] => {
  const made: Follows = {
    file: () => exists,
    directory: () => onDirectory,
    nothing: (at, self) => (parents || parentIsThere(at, self) ? makes(directory)(at, self) : notFound),
    blocked: notADirectory
  }
  const isThere =
    "fails" in onDirectory ? () => onDirectory : follows({ ...made, nothing: () => exists, blocked: exists, lost: exists })
  return acts((_, self) => isThere(self), made)
}

const making: ReadonlyArray<Method> = [
  method("mkdir", (fs, path) => fs.mkdir(path), makesDirectory(true, { answers: undefined })),
  method("mkdir, alone", (fs, path) => fs.mkdir(path, { parents: false }), makesDirectory(false, { answers: undefined })),
  method("mkdir, new", (fs, path) => fs.mkdir(path, { existOk: false }), makesDirectory(true, exists)),
  method(
    "symlink",
    (fs, path) => fs.symlink(path, "source.txt"),
    acts(() => exists, {
      file: () => exists,
      directory: () => exists,
      nothing: makes(link("source.txt")),
      blocked: notADirectory
    })
  ),
  method(
    "symlink to the outside",
    (fs, path) => fs.symlink(path, "in/../../outside/file/../../../../../".padEnd(800, "../")),
    acts(() => exists, {
      file: () => exists,
      directory: () => exists,
      nothing: () => refusals.escape,
      blocked: notADirectory
    })
  ),
  method(
    "setAttributes, mode",
    (fs, path) => fs.setAttributes(path, { mode: 0o750 }),
    follows({
      file: (at) => ({ answers: undefined, sets: { at, mode: 0o750 } }),
      directory: (at) => ({ answers: undefined, sets: { at, mode: 0o750 } }),
      nothing: () => notFound
    })
  ),
  method(
    "setAttributes, time",
    (fs, path) => fs.setAttributes(path, { modifiedAt: DateTime.makeUnsafe(981_173_106_789) }),
    follows({
      file: (at) => ({ answers: undefined, sets: { at, modifiedAt: 981_173_106_789 } }),
      directory: (at) => ({ answers: undefined, sets: { at, modifiedAt: 981_173_106_789 } }),
      nothing: () => notFound
    })
  )
]

const weighed = (tree: Tree, at: string): ReadonlyArray<number> => {
  const found = [tree[at]!, ...Object.values(below(tree, at))]
  const bytes = found.filter(isFile).reduce((sum, what) => sum + Buffer.byteLength(textOf(what)), 0)
  return [found.filter((what) => !isDirectory(what)).length, found.filter(isDirectory).length, bytes]
}

const counts = (all: { readonly files: number; readonly directories: number; readonly bytes: number }) => [
  all.files,
  all.directories,
  all.bytes
]

const takes = (rootFails: Failure, keeps: boolean): Method["expects"] => {
  const take = (at: string, { tree }: Case): Expected => {
    if (at === ".") return rootFails
    const there = copied(tree, at, "taken/away")
    return { answers: weighed(tree, at), leaves: keeps ? there : without(there, at) }
  }
  return acts(take, { file: take, directory: take, nothing: () => notFound })
}

/** Returns the expectation of a transfer from `source.txt` to the path. */
const gives = (overwrite: boolean, keeps: boolean): Method["expects"] => {
  const give = (at: string, { tree }: Case): Expected => {
    const there = copied(tree, "source.txt", at)
    return { answers: weighed(tree, "source.txt"), leaves: keeps ? there : without(there, "source.txt") }
  }
  return acts(overwrite ? give : () => exists, {
    file: overwrite ? give : () => exists,
    directory: (at, { tree }) =>
      at === "." ? root : !overwrite ? exists : childrenOf(tree, at).length > 0 ? fails("DirectoryNotEmpty") : notAFile,
    nothing: give,
    blocked: notADirectory
  })
}

const transferring: ReadonlyArray<Method> = [
  method("copy from", (fs, path) => Effect.map(fs.copy(path, "taken/away"), counts), takes(fails("InvalidArgument"), true)),
  method("move from", (fs, path) => Effect.map(fs.move(path, "taken/away"), counts), takes(root, false)),
  method("copy to", (fs, path) => Effect.map(fs.copy("source.txt", path), counts), gives(false, true)),
  method("copy over", (fs, path) => Effect.map(fs.copy("source.txt", path, { overwrite: true }), counts), gives(true, true)),
  method("move to", (fs, path) => Effect.map(fs.move("source.txt", path), counts), gives(false, false)),
  method("move over", (fs, path) => Effect.map(fs.move("source.txt", path, { overwrite: true }), counts), gives(true, false))
]

export const methods: ReadonlyArray<Method> = [...looking, ...reading, ...writing, ...deleting, ...making, ...transferring]
