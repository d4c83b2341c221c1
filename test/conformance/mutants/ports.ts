/** Mutants of ports, each with a mistake that an author of a backend could make. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../../src/model/FsError.ts"
import { type FsPath, join, parent } from "../../../src/model/FsPath.ts"
import type { Backend, Handle } from "../../../src/port/Backend.ts"
import { faults, type Mutant, port } from "./mutant.ts"
import type { Whole } from "../../../src/port/Backend.ts"
import * as Request from "../../../src/port/Request.ts"

export const at = (path: string): FsPath => path as FsPath

export type Write = (path: FsPath, bytes: any, mode: "create" | "replace" | "append", how?: any) => Effect.Effect<any, any, any>

type Tag = Fault["_tag"]

const tags: ReadonlyArray<Tag> = [
  "NotFound",
  "AlreadyExists",
  "AccessDenied",
  "NotADirectory",
  "NotAFile",
  "DirectoryNotEmpty",
  "InvalidArgument",
  "Conflict"
]

const silences: ReadonlyArray<readonly ["write" | "makeDirectory" | "remove" | "rename", ReadonlyArray<Tag>]> = [
  ["write", ["NotFound", "AlreadyExists", "NotADirectory", "NotAFile", "Conflict"]],
  ["makeDirectory", ["NotFound", "AlreadyExists", "NotADirectory"]],
  ["remove", ["NotFound", "AccessDenied", "DirectoryNotEmpty"]],
  ["rename", ["NotFound", "AlreadyExists", "AccessDenied", "NotADirectory", "NotAFile", "DirectoryNotEmpty"]]
]

const succeeding = (tag: Fault["_tag"]) => (self: any) =>
  Effect.catchIf(
    self,
    (fault: any) => fault._tag === tag,
    () => Effect.succeed({ kind: "file", sizeBytes: 0 })
  )

const telling: ReadonlyArray<Mutant> = [
  ...tags.map((tag) =>
    faults(`the port reports ${tag} as IoError`, (fault) => (fault._tag === tag ? { _tag: "IoError", detail: tag } : fault))
  ),
  faults("the port gives the reason permission for every AccessDenied", (fault) =>
    fault._tag === "AccessDenied" ? { ...fault, why: "permission" } : fault
  ),
  ...silences.flatMap(([operation, tags]) =>
    tags.map((tag) =>
      port(`port ${operation} that would be ${tag} does nothing and succeeds`, (self) => ({
        [operation]: (...args: ReadonlyArray<any>) => succeeding(tag)((self[operation] as any)(...args))
      }))
    )
  )
]

export const wholeOf = (self: Backend, path: FsPath) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* self.open(path)
      const parts: Array<number> = []
      for (;;) {
        const part = yield* handle.read(parts.length, 65536)
        if (part.length === 0) return Uint8Array.from(parts)
        parts.push(...part)
      }
    })
  )

const looking: ReadonlyArray<Mutant> = [
  port("port stat fails below a file", (self) => ({
    stat: (path) =>
      Effect.flatMap(self.stat(path), (stat) =>
        stat === undefined && path.startsWith("file/") ? Effect.fail<Fault>({ _tag: "NotADirectory" }) : Effect.succeed(stat)
      )
  })),
  port("port stat follows links", (self) => ({
    stat: (path) =>
      Effect.flatMap(self.stat(path), (stat) =>
        stat?.kind === "symlink" && self.links !== undefined
          ? Effect.flatMap(self.links.read(path), (target) =>
              target.startsWith("/") || target.startsWith(".") ? Effect.succeed(stat) : self.stat(join(parent(path), target))
            )
          : Effect.succeed(stat)
      )
  })),
  port("port links do not follow absolute targets", ({ info, links }) => ({
    links: links && {
      ...links,
      relative: (path, target) => (target === info.root ? links.relative?.(path, target) : "nowhere")
    }
  })),
  port("port stat finds an entry below a link", (self) => ({
    stat: (path) => (path === "todir/inner" ? self.stat(at("dir/inner")) : self.stat(path))
  })),
  port("port stat counts one byte too many", (self) => ({
    stat: (path) => Effect.map(self.stat(path), (stat) => stat && { ...stat, sizeBytes: stat.sizeBytes + 1 })
  })),
  port("port stat ignores case", (self) => ({ stat: (path) => self.stat(at(path === "nAME" ? "Name" : path)) })),
  port("port stat gives the root a size", (self) => ({
    stat: (path) =>
      Effect.map(self.stat(path), (stat) => (path === "." && stat !== undefined ? { ...stat, sizeBytes: 4096 } : stat))
  })),
  port("port list of dir loses an entry", (self) => ({
    list: (path) => Effect.map(self.list(path), (all) => (path === "dir" && all.length === 2 ? all.slice(1) : all))
  })),
  port("port list of dir returns each entry twice", (self) => ({
    list: (path) => Effect.map(self.list(path), (all) => (path === "dir" ? [...all, ...all] : all))
  })),
  port("port list reports links as files", (self) => ({
    list: (path) =>
      Effect.map(self.list(path), (all) =>
        all.map((child) => (child.kind === "symlink" ? { ...child, kind: "file" as const } : child))
      )
  })),
  port("port list reports wrong sizes", (self) => ({
    list: (path) => Effect.map(self.list(path), (all) => all.map((child) => ({ ...child, sizeBytes: 7 })))
  })),
  port("port list of a missing directory is empty", (self) => ({
    list: (path) => Effect.catch(self.list(path), () => Effect.succeed([]))
  })),
  port("port open reads the file that has the name now", (self) => ({
    open: (path) =>
      Effect.map(self.open(path), (handle): Handle => ({
        stat: handle.stat,
        read: (offset, length) =>
          Effect.map(
            Effect.orElseSucceed(wholeOf(self, path), () => new Uint8Array(0)),
            (now) => now.slice(offset, offset + length)
          )
      }))
  })),
  port("port open sees an append as zeros", (self) => {
    const appended = new Set<string>()
    return {
      write: ((path: FsPath, bytes: any, mode: any, how: any) =>
        Effect.tap((self.write as Write)(path, bytes, mode, how), () =>
          Effect.sync(() => void (mode === "append" && appended.add(path)))
        )) as any,
      open: (path) =>
        Effect.map(self.open(path), (handle) => {
          appended.delete(path)
          return {
            stat: handle.stat,
            read: (offset, length) =>
              Effect.map(handle.read(offset, length), (bytes) => (appended.has(path) ? bytes.fill(0) : bytes))
          }
        })
    }
  }),
  port("port open reads nothing after the name is removed", (self) => ({
    open: (path) =>
      Effect.map(self.open(path), (handle): Handle => ({
        stat: handle.stat,
        read: (offset, length) =>
          Effect.flatMap(self.stat(path), (stat) =>
            stat === undefined ? Effect.succeed(new Uint8Array(0)) : handle.read(offset, length)
          )
      }))
  })),
  port("an open file has the version of other content", (self) => ({
    open: (path) => Effect.map(self.open(path), (handle) => ({ ...handle, version: Effect.succeed("0") }))
  })),
  port("port open follows links", (self) => ({
    open: (path) =>
      Effect.catch(self.open(path), (fault) =>
        fault._tag === "NotAFile" && path.startsWith("to") ? self.open(at("file")) : Effect.fail(fault)
      )
  })),
  port("port open opens entries that are not files", (self) => ({
    open: (path) =>
      Effect.catch(self.open(path), (fault) =>
        fault._tag === "NotAFile"
          ? Effect.succeed<Handle>({
              stat: { path, kind: "file", isFile: true, isDirectory: false, sizeBytes: 0 },
              read: () => Effect.succeed(new Uint8Array(0))
            })
          : Effect.fail(fault)
      )
  })),
  port("a read returns more bytes than requested", (self) => ({
    open: (path) =>
      Effect.map(self.open(path), (handle) => ({
        stat: handle.stat,
        read: (offset, length) => handle.read(offset, length + 1)
      }))
  })),
  port("a read at the end returns a zero byte", (self) => ({
    open: (path) =>
      Effect.map(self.open(path), (handle) => ({
        stat: handle.stat,
        read: (offset, length) =>
          Effect.map(handle.read(offset, length), (bytes) => (bytes.length === 0 && offset === 9 ? new Uint8Array(1) : bytes))
      }))
  })),
  port("reads share one array", (self) => {
    const kept = new Map<string, Uint8Array>()
    return {
      open: (path) =>
        Effect.map(self.open(path), (handle) => ({
          stat: handle.stat,
          read: (offset, length) =>
            Effect.map(handle.read(offset, length), (bytes) => {
              const key = `${path} ${offset} ${length}`
              if (!kept.has(key)) kept.set(key, bytes)
              return kept.get(key)!
            })
        }))
    }
  })
]

/** Makes a mutant with one wrong handler, if the port has a handler for its tag. */
const fast =
  (change: (right: Request.Perform) => Request.Handlers): Mutant["of"] =>
  ({ port }) =>
    make({ ...port, perform: Request.override(port.perform, change) })

/** Makes a mutant with one more handler. */
const added =
  (more: (port: Backend) => Request.Handlers): Mutant["of"] =>
  ({ port }) =>
    make({ ...port, perform: Request.extend(port.perform, more(port)) })

const accelerated: ReadonlyArray<Mutant> = [
  {
    name: "the accelerated read returns its first answer again",
    of: fast((perform) => {
      const kept = new Map<string, Option.Option<Whole>>()
      return {
        Read: (request) =>
          Effect.suspend(() => {
            const { path } = request
            return kept.has(path)
              ? Effect.succeed(kept.get(path)!)
              : Effect.tap(perform(request), (whole) => Effect.sync(() => kept.set(path, whole)))
          })
      }
    })
  },
  {
    name: "the accelerated read stops at a line end",
    of: fast((perform) => ({
      Read: (request) =>
        Effect.map(
          perform(request),
          Option.map(({ bytes, stat }) => ({
            stat,
            bytes: bytes.length < 9 ? bytes : bytes.subarray(0, bytes.lastIndexOf(10) + 1)
          }))
        )
    }))
  },
  {
    name: "the accelerated read truncates a file above the limit",
    of: fast((perform) => ({
      Read: (request) =>
        Effect.map(
          perform({ ...request, maxBytes: 1e9 }),
          Option.map(({ bytes, stat }) => ({ stat, bytes: bytes.slice(0, request.maxBytes) }))
        )
    }))
  },
  {
    name: "the accelerated stat finds nothing below a directory",
    of: fast((perform) => ({
      Stat: (request) => (request.path === "d/e/f.ts" ? Effect.succeedSome(undefined) : perform(request))
    }))
  },
  {
    name: "a read of many files returns one byte of each",
    of: added((port) => ({
      ReadMany: ({ paths }) =>
        Effect.asSome(
          Effect.forEach(paths, (path) =>
            Effect.map(port.stat(path), (stat) => (stat?.kind === "file" ? { stat, bytes: new Uint8Array(1) } : undefined))
          )
        )
    }))
  },
  {
    name: "a lookup of a whole path continues below an entry that is not a directory",
    of: added((port) => ({
      Look: ({ path }) =>
        Effect.map(Effect.all([port.stat(at(".")), port.stat(path)]), (all) =>
          Option.some(all.flatMap((stat) => (stat === undefined ? [] : [{ stat }])))
        )
    }))
  },
  {
    name: "a creation of many entries replaces existing entries and follows links",
    of: added((port) => {
      const whole = make(port)
      return {
        MakeMany: ({ entries }) =>
          Effect.asSome(
            Effect.forEach(entries, ({ bytes, path }) =>
              Effect.match(bytes === undefined ? whole.mkdir(path) : whole.writeBytes(path, bytes), {
                onFailure: () => false,
                onSuccess: () => true
              })
            )
          )
      }
    })
  },
  {
    name: "the accelerated copy of a tree omits the contents of files",
    of: added((port) => ({
      CopyTree: ({ to }) => Effect.as(port.makeDirectory(to), Option.some({ files: 0, directories: 1, bytes: 0 }))
    }))
  },
  {
    name: "the accelerated delete counts directories as files",
    of: fast((perform) => ({
      RemoveTree: (request) =>
        Effect.map(
          perform(request),
          Option.map(({ deleted, directories }) => ({ deleted: deleted + directories, directories }))
        )
    }))
  }
]

export const portMutants: ReadonlyArray<Mutant> = [...telling, ...looking, ...accelerated]
