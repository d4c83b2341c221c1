import * as Effect from "effect/Effect"
import type { FsPath } from "../../../src/model/FsPath.ts"
import { answer, call, given, type Mutant, type Operation, option, outcome } from "./mutant.ts"

const trees: ReadonlyArray<Mutant> = [
  option("mkdir", "parents"),
  option("mkdir", "parents", false),
  option("mkdir", "existOk"),
  option("mkdir", "existOk", false),
  outcome("mkdir over a file does nothing", "mkdir", (result) =>
    Effect.catchTag(result, "AlreadyExists" as never, () => Effect.void)
  ),
  outcome("mkdir through a file replaces the file by a directory", "mkdir", (result, self, [path]) =>
    Effect.catchTag(result, "NotADirectory" as never, () =>
      Effect.andThen(Effect.ignore(self.delete(path.split("/")[0]!)), self.mkdir(path))
    )
  ),
  outcome("mkdir makes one directory too many", "mkdir", (result, self) =>
    Effect.tap(result, () => Effect.ignore(self.port.makeDirectory("more" as FsPath)))
  ),
  outcome("mkdir makes a directory although it fails", "mkdir", (result, self) =>
    Effect.tapError(result, () => Effect.ignore(self.mkdir("made")))
  ),
  option("delete", "recursive", true),
  option("delete", "recursive"),
  option("delete", "missing"),
  option("delete", "missing", "ignore"),
  option("delete", "ifMatch"),
  answer("delete counts directories as files", "delete", (result) => ({
    ...result,
    deleted: result.deleted + result.directories
  })),
  answer("delete counts only the given entry", "delete", (result) => ({
    deleted: Math.min(result.deleted, 1),
    directories: result.directories
  })),
  answer("delete counts no directories", "delete", (result) => ({ ...result, directories: 0 })),
  answer("delete counts no files if it removes directories", "delete", (result) => ({
    ...result,
    deleted: result.directories > 0 ? 0 : result.deleted
  })),
  outcome("delete removes parents left empty", "delete", (result, self, [path]) =>
    Effect.tap(result, () => (path.includes("/") ? Effect.ignore(self.delete(path.replace(/\/[^/]*$/, ""))) : Effect.void))
  ),
  outcome("deleting the root empties it", "delete", (result, self) =>
    Effect.tapError(result, (error: any) =>
      error._tag === "AccessDenied"
        ? Effect.flatMap(self.list(), (all) => Effect.forEach(all, (entry) => self.delete(entry.path, { recursive: true })))
        : Effect.void
    )
  ),
  outcome("delete removes all entries whose names begin with the given name", "delete", (result, self, [path, options]) =>
    Effect.tap(result, () =>
      Effect.flatMap(self.list(), (all) =>
        Effect.forEach(
          all.filter(({ name }) => options?.recursive === true && name.startsWith(path)),
          ({ path }) => self.delete(path, { recursive: true })
        )
      )
    )
  ),
  outcome("a recursive delete succeeds without a change", "delete", (result, _, [, options]) =>
    options?.recursive === true ? Effect.succeed({ deleted: 1, directories: 1 }) : result
  ),
  ...(["copy", "move"] as const).flatMap((operation) => [
    option(operation, "overwrite", true),
    option(operation, "overwrite", false),
    answer(`${operation} counts no bytes`, operation, (result) => ({ ...result, bytes: 0 })),
    answer(`${operation} counts no directories`, operation, (result) => ({ ...result, directories: 0 })),
    answer(`${operation} counts no files`, operation, (result) => ({ ...result, files: 0 })),
    answer(`${operation} counts files and directories together`, operation, (result) => ({
      ...result,
      files: result.files + result.directories
    })),
    outcome(`${operation} onto itself does nothing`, operation, (result) =>
      Effect.catchTag(result, "InvalidArgument" as never, () => Effect.succeed({}))
    ),
    call(
      `${operation} makes no parents`,
      operation,
      (original, self) => (from: string, to: string, options: any) =>
        to.includes("/")
          ? Effect.flatMap(self.stat(to.replace(/\/[^/]*$/, "")), () => original(from, to, options))
          : original(from, to, options)
    ),
    call(
      `${operation} over a directory becomes ${operation} into it`,
      operation,
      (original) => (from: string, to: string, options: any) =>
        Effect.catchTag(original(from, to, options), "DirectoryNotEmpty" as never, () =>
          original(from, `${to}/${from}`, options)
        )
    ),
    call(
      `${operation} over another kind of entry replaces the entry`,
      operation,
      (original, self) => (from: string, to: string, options: any) =>
        Effect.catchTag(original(from, to, options), ["NotAFile", "NotADirectory"] as never, () =>
          Effect.andThen(Effect.ignore(self.delete(to, { recursive: true })), original(from, to, options))
        )
    ),
    outcome(`${operation} names the wrong one of its two paths in the error`, operation, (result, _, [from, to]) =>
      Effect.mapError(result, (error: any) => {
        const path = error.path === from ? to : from
        return new error.constructor({ ...error, path })
      })
    ),
    outcome(`${operation} leaves out empty directories`, operation, (result, self, [, to]) =>
      Effect.tap(result, () => Effect.ignore(self.delete(`${to}/empty`)))
    ),
    outcome(`${operation} decodes and encodes bytes as text`, operation, (result, self, [, to]) =>
      Effect.tap(result, () =>
        Effect.ignore(
          Effect.flatMap(self.readBytes(`${to}/a.bin`), ({ content }) =>
            self.write(`${to}/a.bin`, new TextDecoder().decode(content))
          )
        )
      )
    ),
    outcome(`${operation} makes another file when it fails`, operation, (result, self) =>
      Effect.tapError(result, () => Effect.ignore(self.write("aside", "")))
    ),
    outcome(`${operation} stops at the first level`, operation, (result, self, [, to]) =>
      Effect.tap(result, () => Effect.ignore(self.delete(`${to}/b`, { recursive: true })))
    )
  ]),
  outcome("copy removes the source", "copy", (result, self, [from]) =>
    Effect.tap(result, () => Effect.ignore(self.delete(from, { recursive: true })))
  ),
  call("move leaves the source", "move", (_, self) => (from: string, to: string, options: any) => self.copy(from, to, options)),
  outcome("move removes the parent that it leaves empty", "move", (result, self, [from]) =>
    Effect.tap(result, () => (from.includes("/") ? Effect.ignore(self.delete(from.replace(/\/[^/]*$/, ""))) : Effect.void))
  ),
  outcome("copy makes a link to the source", "copy", (result, self, [from, to]) =>
    Effect.tap(result, () => Effect.ignore(Effect.andThen(self.delete(to, { recursive: true }), self.symlink(to, from))))
  ),
  outcome("copy sets the mode 0600", "copy", (result, self, [, to]) =>
    Effect.tap(result, () => Effect.ignore(self.setAttributes(to, { mode: 0o600 })))
  )
]

const linkCalls: ReadonlyArray<Operation> = ["delete", "copy", "move"]

const led = (self: any, path: string): Effect.Effect<string> =>
  Effect.orElseSucceed(
    Effect.map(self.readLink(path) as Effect.Effect<string, unknown>, (target) => (path.includes("/") ? path : target)),
    () => path
  )

const links: ReadonlyArray<Mutant> = [
  ...linkCalls.map((operation) =>
    call(
      `${operation} follows the link`,
      operation,
      (original, self) =>
        (path: string, ...rest: ReadonlyArray<any>) =>
          Effect.flatMap(led(self, path), (at) => original(at, ...rest))
    )
  ),
  ...(["write", "edit", "sink"] as const).map((operation) =>
    call(`${operation} replaces the link`, operation, (original, self) => (path: string, ...rest: ReadonlyArray<any>) => {
      const unlinked = Effect.ignore(Effect.flatMap(self.readLink(path), () => self.delete(path)))
      return operation === "sink"
        ? unlink(self, path, () => original(path, ...rest))
        : Effect.andThen(unlinked, original(path, ...rest))
    })
  ),
  call(
    "copy follows links into the target",
    "copy",
    (original, self) => (from: string, to: string, options: any) =>
      Effect.flatMap(options?.overwrite === true ? led(self, to) : Effect.succeed(to), (at) => original(from, at, options))
  ),
  call(
    "move follows links into the target",
    "move",
    (original, self) => (from: string, to: string, options: any) =>
      Effect.flatMap(options?.overwrite === true ? led(self, to) : Effect.succeed(to), (at) => original(from, at, options))
  ),
  answer("readLink returns a path from the root", "readLink", (target) => target.replace(/^(\.\.?\/)+/, "")),
  given("links are normalised", "symlink", ([path, target]) => [path, target.replace(/^\.\//, "")]),
  given("every new link leads to the root", "symlink", ([path]) => [path, "."]),
  call(
    "symlink replaces an existing entry",
    "symlink",
    (original, self) => (path: string, target: string) =>
      Effect.catchTag(original(path, target), "AlreadyExists" as never, () =>
        Effect.andThen(self.delete(path, { recursive: true }), original(path, target))
      )
  ),
  call(
    "symlink makes links to the outside",
    "symlink",
    (_, self) => (path: string, target: string) => self.port.links!.make(path as never, target)
  ),
  call(
    "symlink refuses every target with two dots",
    "symlink",
    (original) => (path: string, target: string) => original(path, target.includes("..") ? "/" : target)
  ),
  outcome("symlink fails if its target is missing", "symlink", (result, self, [, target]) =>
    Effect.andThen(self.stat(target), result)
  ),
  outcome("a link to the outside reads as empty", "readString", (result) =>
    Effect.catchTag(result, "AccessDenied" as never, () => Effect.succeed(""))
  ),
  call(
    "a loop of links reads as empty",
    "readString",
    (original) => (path: string) =>
      path === "a" || path === "self"
        ? Effect.catchTag(original(path), "InvalidPath" as never, () => Effect.succeed(""))
        : original(path)
  ),
  call(
    "a link that leads nowhere reads as empty",
    "readString",
    (original) => (path: string) => (path === "dangling" ? Effect.orElseSucceed(original(path), () => "") : original(path))
  ),
  call(
    "38 links are too many",
    "readString",
    (original) => (path: string) => (path === "l40" ? original("missing") : original(path))
  )
]

const unlink = (self: any, path: string, sink: () => any): any => {
  Effect.runSync(Effect.ignore(Effect.flatMap(self.readLink(path), () => self.delete(path))) as Effect.Effect<void>)
  return sink()
}

const abilities: ReadonlyArray<Mutant> = [
  option("setAttributes", "mode"),
  option("setAttributes", "mode", 0o600),
  option("setAttributes", "modifiedAt"),
  outcome("setting attributes of a missing entry succeeds", "setAttributes", (result) => Effect.ignore(result)),
  ...(["write", "edit", "copy"] as const).map((operation) =>
    outcome(`${operation} restores the first mode of the file`, operation, (result, self, [path, second]) =>
      Effect.tap(result, () => Effect.ignore(self.setAttributes(operation === "copy" ? second : path, { mode: 0o644 })))
    )
  ),
  call("lstat follows the link", "lstat", (_, self) => (path: string) => self.stat(path)),
  call(
    "lstat refuses a broken link",
    "lstat",
    (original, self) => (path: string) => Effect.andThen(self.stat(path), original(path))
  ),
  answer("lstat tells no size", "lstat", (stat) => ({ ...stat, sizeBytes: 0 })),
  call(
    "lstat does not follow links above",
    "lstat",
    (original, self) => (path: string) =>
      path.includes("/")
        ? Effect.andThen(self.lstat(path.slice(0, path.indexOf("/"))), (stat: any) =>
            stat.kind === "symlink" ? Effect.succeed(stat) : original(path)
          )
        : original(path)
  ),
  call("realPath returns its argument", "realPath", (original) => (path: string) => Effect.as(original(path), path)),
  outcome("realPath never fails", "realPath", (result, _, [path]) => Effect.orElseSucceed(result, () => path)),
  outcome("lstat never fails", "lstat", (result, _, [path]) => Effect.orElseSucceed(result, () => ({ path, kind: "file" }))),
  answer("all entries have one identity", "stat", (stat) => ({ ...stat, identity: "1" })),
  answer("identities depend on the given path", "stat", (stat, [path]) => ({ ...stat, identity: path })),
  outcome("symlink never fails", "symlink", (result) => Effect.ignore(result)),
  outcome("readLink of an entry that is not a link succeeds", "readLink", (result) => Effect.orElseSucceed(result, () => ""))
]

export const nameMutants: ReadonlyArray<Mutant> = [...trees, ...links, ...abilities]
