import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type FsPath, join, name as nameOf, parent } from "../../../src/model/FsPath.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import { hanging, type Mutant, port } from "./mutant.ts"
import { at, wholeOf, type Write } from "./ports.ts"

type WriteMutation = (original: Write, ...args: [...Parameters<Write>, self: Backend]) => ReturnType<Write>

const write = (name: string, f: WriteMutation): Mutant =>
  port(name, (self) => ({
    write: ((path, bytes, mode, how) => f(self.write as Write, path, bytes, mode, how, self)) satisfies Write as any
  }))

const collected = (bytes: any) =>
  bytes instanceof Uint8Array
    ? Effect.succeed(bytes)
    : Effect.map(Stream.runCollect(bytes as Stream.Stream<Uint8Array, any>), (all) =>
        Uint8Array.from(all.flatMap((chunk) => [...chunk]))
      )

const writing: ReadonlyArray<Mutant> = [
  write("port write create overwrites", (original, path, bytes, mode, how) =>
    original(path, bytes, mode === "create" ? "replace" : mode, how)
  ),
  write("port write create checks for an entry, and then overwrites", (original, path, bytes, mode, how, self) =>
    mode === "create"
      ? Effect.flatMap(self.stat(path), (stat) =>
          stat === undefined
            ? Effect.andThen(Effect.yieldNow, original(path, bytes, "replace", how))
            : Effect.fail({ _tag: "AlreadyExists" })
        )
      : original(path, bytes, mode, how)
  ),
  write("port write append replaces", (original, path, bytes, mode, how) =>
    original(path, bytes, mode === "append" ? "replace" : mode, how)
  ),
  write("port write replace appends", (original, path, bytes, mode, how) =>
    original(path, bytes, mode === "replace" ? "append" : mode, how)
  ),
  write("port write replace truncates first", (original, path, bytes, mode, how) =>
    mode === "replace"
      ? Effect.andThen(
          Effect.andThen(original(path, new Uint8Array(0), "replace"), Effect.yieldNow),
          original(path, bytes, mode, how)
        )
      : original(path, bytes, mode, how)
  ),
  write("port write append truncates when it fails", (original, path, bytes, mode, how) =>
    mode === "append"
      ? Effect.tapError(original(path, bytes, mode, how), () => Effect.ignore(original(path, new Uint8Array(0), "replace")))
      : original(path, bytes, mode, how)
  ),
  write("port write keeps the received bytes when a stream fails", (original, path, bytes, mode, how) =>
    bytes instanceof Uint8Array
      ? original(path, bytes, mode, how)
      : Effect.onError(
          original(path, bytes, mode, how),
          () => Effect.ignore(original(path, new Uint8Array(3), mode === "create" ? "create" : mode)) as Effect.Effect<void>
        )
  ),
  write("port write leaves its temporary file", (original, path, bytes, mode, how) =>
    Effect.onError(
      original(path, bytes, mode, how),
      () => Effect.ignore(original(join(parent(path), ".~fsa-9.tmp"), new Uint8Array(1), "create")) as Effect.Effect<void>
    )
  ),
  write("port write publishes before commit", (original, path, bytes, mode, how) =>
    how === undefined
      ? original(path, bytes, mode)
      : Effect.flatMap(original(path, bytes, mode), (stat) => how.commit!(Effect.succeed(stat)))
  ),
  write("port write ignores commit", (original, path, bytes, mode) => original(path, bytes, mode)),
  write("port write publishes although commit fails", (original, path, bytes, mode, how) =>
    Effect.tapError(original(path, bytes, mode, how), (fault: any) =>
      fault._tag === "Conflict" && fault.expected === "x" ? Effect.ignore(original(path, bytes, mode)) : Effect.void
    )
  ),
  write("port write checks for an existing file only before commit", (original, path, bytes, mode, how, self) =>
    mode === "create" || how === undefined
      ? Effect.flatMap(self.stat(path), (before) =>
          original(
            path,
            bytes,
            mode,
            how && {
              commit: (publish: any) =>
                Effect.catch(how.commit!(publish), (fault: any) =>
                  fault._tag === "AlreadyExists" && before === undefined ? original(path, bytes, "replace") : Effect.fail(fault)
                )
            }
          )
        )
      : original(path, bytes, mode, how)
  ),
  write("port write replaces a directory that appeared before commit", (original, path, bytes, mode, how, self) =>
    Effect.catch(original(path, bytes, mode, how), (fault: any) =>
      fault._tag === "NotAFile" && how !== undefined
        ? Effect.andThen(self.remove(path), original(path, bytes, mode))
        : Effect.fail(fault)
    )
  ),
  write("port write makes parents", (original, path, bytes, mode, how, self) =>
    Effect.catch(original(path, bytes, mode, how), (fault: any) =>
      fault._tag === "NotFound"
        ? Effect.andThen(self.makeDirectory(parent(path)), original(path, bytes, mode, how))
        : Effect.fail(fault)
    )
  ),
  write("port write follows links in its parents", (original, path, bytes, mode, how) =>
    path.startsWith("todir/") ? original(at(`dir/${nameOf(path)}`), bytes, mode, how) : original(path, bytes, mode, how)
  ),
  write("port write follows a link at its path", (original, path, bytes, mode, how) =>
    ["tofile", "todir", "nowhere"].includes(path) && mode !== "create"
      ? original(at("file"), bytes, mode, how)
      : original(path, bytes, mode, how)
  ),
  write("port write replaces a link at its path", (original, path, bytes, mode, how, self) =>
    Effect.flatMap(self.stat(path), (stat) =>
      stat?.kind === "symlink" && mode !== "create"
        ? Effect.andThen(self.remove(path), original(path, bytes, mode, how))
        : original(path, bytes, mode, how)
    )
  ),
  write("port write returns the size 0", (original, path, bytes, mode, how) =>
    Effect.map(original(path, bytes, mode, how), (stat) => ({ ...stat, sizeBytes: 0 }))
  ),
  write("port write loses the mode of the file", (original, path, bytes, mode, how, self) =>
    Effect.tap(original(path, bytes, mode, how), () =>
      Effect.ignore(self.attributes?.set(path, { mode: 0o600 }) ?? Effect.void)
    )
  ),
  write("port write ignores streams", (original, path, bytes, mode, how) =>
    bytes instanceof Uint8Array ? original(path, bytes, mode, how) : original(path, new Uint8Array(0), mode, how)
  ),
  write("port write writes only the first chunk of a stream", (original, path, bytes, mode, how) =>
    bytes instanceof Uint8Array ? original(path, bytes, mode, how) : original(path, Stream.take(bytes, 1), mode, how)
  ),
  write("port write publishes each chunk of a stream on arrival", (original, path, bytes, mode, how) =>
    bytes instanceof Uint8Array
      ? original(path, bytes, mode, how)
      : Effect.gen(function* () {
          if (mode !== "append") yield* original(path, new Uint8Array(0), mode)
          yield* Stream.runForEach(bytes as Stream.Stream<Uint8Array, any>, (chunk) => original(path, chunk, "append"))
          return yield* original(path, new Uint8Array(0), "append", how)
        })
  ),
  write("port write collects a stream and then writes without commit", (original, path, bytes, mode) =>
    Effect.flatMap(collected(bytes), (all) => original(path, all, mode))
  ),
  port("port write keeps the caller's array", (self) => {
    const kept = new Map<string, Uint8Array>()
    return {
      write: ((path: FsPath, bytes: any, mode: any, how: any) =>
        Effect.tap((self.write as Write)(path, bytes, mode, how), () =>
          Effect.sync(() => (mode !== "append" && bytes instanceof Uint8Array ? kept.set(path, bytes) : kept.delete(path)))
        )) as any,
      open: (path) =>
        Effect.map(self.open(path), (handle) => ({
          stat: handle.stat,
          read: (offset, length) =>
            Effect.map(handle.read(offset, length), (bytes) => kept.get(path)?.slice(offset, offset + length) ?? bytes)
        }))
    }
  })
]

const never = Effect.void

const names: ReadonlyArray<Mutant> = [
  port("port makeDirectory makes parents", (self) => ({
    makeDirectory: (path) =>
      Effect.catch(self.makeDirectory(path), (fault) =>
        fault._tag === "NotFound"
          ? Effect.andThen(self.makeDirectory(parent(path)), self.makeDirectory(path))
          : Effect.fail(fault)
      )
  })),
  port("port makeDirectory makes one directory too many", (self) => ({
    makeDirectory: (path) =>
      Effect.tap(self.makeDirectory(path), () =>
        path.endsWith("/new") ? Effect.ignore(self.makeDirectory(at(`${path}2`))) : Effect.void
      )
  })),
  port("port remove does nothing", () => ({ remove: () => never })),
  port("port remove of a directory does nothing", (self) => ({
    remove: (path) => Effect.flatMap(self.stat(path), (stat) => (stat?.kind === "directory" ? never : self.remove(path)))
  })),
  port("port remove removes a directory with its entries", (self) => ({
    remove: (path) =>
      Effect.catch(self.remove(path), (fault) =>
        fault._tag === "DirectoryNotEmpty"
          ? Effect.andThen(
              Effect.flatMap(self.list(path), (all) => Effect.forEach(all, (child) => self.remove(join(path, child.name)))),
              self.remove(path)
            )
          : Effect.fail(fault)
      )
  })),
  port("port remove follows links", (self) => ({
    remove: (path) =>
      path.startsWith("to") ? Effect.andThen(Effect.ignore(self.remove(at("file"))), self.remove(path)) : self.remove(path)
  })),
  port("port rename replaces without the option replace", (self) => ({
    rename: (from, to) => self.rename(from, to, { replace: true })
  })),
  port("port rename never replaces", (self) => ({ rename: (from, to) => self.rename(from, to, { replace: false }) })),
  port("port rename does nothing, so that a moved tree stays in its old parent", () => ({ rename: () => never })),
  port("port rename replaces an entry of another kind", (self) => ({
    rename: (from, to, options) =>
      Effect.catch(self.rename(from, to, options), (fault) =>
        options.replace && ["NotAFile", "NotADirectory", "DirectoryNotEmpty"].includes(fault._tag)
          ? Effect.andThen(Effect.ignore(self.remove(to)), self.rename(from, to, options))
          : Effect.fail(fault)
      )
  })),
  port("port rename makes parents", (self) => ({
    rename: (from, to, options) =>
      Effect.catch(self.rename(from, to, options), (fault) =>
        fault._tag === "NotFound"
          ? Effect.andThen(Effect.ignore(self.makeDirectory(parent(to))), self.rename(from, to, options))
          : Effect.fail(fault)
      )
  })),
  port("port rename keeps the old name too", (self) => ({
    rename: (from, to, options) =>
      Effect.tap(self.rename(from, to, options), () =>
        Effect.flatMap(self.stat(to), (stat) =>
          stat?.kind === "file"
            ? Effect.flatMap(wholeOf(self, to), (bytes) => self.write<never, never>(from, bytes, "create"))
            : never
        )
      )
  })),
  port("port rename follows links", (self) => ({
    rename: (from, to, options) =>
      self.rename(at(from.startsWith("to") ? "dir" : from), at(to === "todir" ? "file" : to), options)
  })),
  port("port rename loses an entry of the directory", (self) => ({
    rename: (from, to, options) =>
      Effect.tap(self.rename(from, to, options), () => Effect.ignore(self.remove(at(`${to}/inner`))))
  })),
  port("port links are read as paths from the root", (self) => ({
    links: self.links && { ...self.links, read: (path) => Effect.map(self.links!.read(path), (target) => `./${target}`) }
  })),
  port("port links are normalised", (self) => ({
    links: self.links && {
      ...self.links,
      make: (path, target) => self.links!.make(path, target.replaceAll("//", "/").replaceAll("./", "").replace(/^\//, ""))
    }
  })),
  port("port links replace an existing entry", (self) => ({
    links: self.links && {
      ...self.links,
      make: (path, target) => Effect.andThen(Effect.ignore(self.remove(path)), self.links!.make(path, target))
    }
  })),
  ...(["read", "make"] as const).map((operation) =>
    port(`port links ${operation} never fails`, (self) => ({
      links: self.links && {
        ...self.links,
        [operation]: (...args: ReadonlyArray<any>) => Effect.orElseSucceed((self.links![operation] as any)(...args), () => "x")
      }
    }))
  ),
  port("port attributes are not set", (self) => ({ attributes: self.attributes && { set: () => never } })),
  hanging(port("port watch is silent", (self) => ({ watch: self.watch && (() => Stream.never) }))),
  hanging(
    port("port watch reports names instead of paths", (self) => ({
      watch:
        self.watch && ((path) => Stream.map(self.watch!(path), (event) => ({ ...event, path: nameOf(event.path) as FsPath })))
    }))
  ),
  port("there are no locks", () => ({ locks: { exclusive: (_, effect) => Effect.andThen(Effect.yieldNow, effect) } })),
  port("locks of a directory do not cover the paths below it", (self) => ({
    locks: {
      exclusive: (paths, effect) =>
        self.locks!.exclusive(
          paths.map((path) => at(path.replaceAll("/", "_"))),
          effect
        )
    }
  })),
  hanging(
    port("all paths share one lock", (self) => ({
      locks: { exclusive: (_, effect) => self.locks!.exclusive([at("all")], effect) }
    }))
  ),
  hanging(
    port("all paths with the same first letter share one lock", (self) => ({
      locks: {
        exclusive: (paths, effect) =>
          self.locks!.exclusive(
            paths.map((path) => at(path.slice(0, 1))),
            effect
          )
      }
    }))
  ),
  port("the last caller gets the lock of a path first", (self) => ({
    locks: {
      exclusive: (paths, effect) =>
        Effect.andThen(
          Effect.forEach(Array.from({ length: 25 - (turn = (turn + 1) % 25) }), () => Effect.yieldNow),
          self.locks!.exclusive(paths, effect)
        )
    }
  }))
]

let turn = 0

export const portChangeMutants: ReadonlyArray<Mutant> = [...writing, ...names]
