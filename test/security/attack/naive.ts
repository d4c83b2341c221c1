/**
 * Ports that the attack must catch: they check that a path is inside, and then use the path. They differ in the check:
 *
 * - `prefix`: the path is made absolute, and must begin with the root;
 * - `realpath`: links are resolved first, then the prefix is checked, and the resolved path is used;
 * - `cached`: a directory is opened at the first use, and reused for its path ever after.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { dirname, join, resolve } from "node:path"
import type { FileStat, Kind } from "../../../src/model/Entry.ts"
import type { Fault } from "../../../src/model/FsError.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import type { Backend, Handle } from "../../../src/port/Backend.ts"
import { name, parent } from "../../../src/model/FsPath.ts"
import * as Request from "../../../src/port/Request.ts"

type Look = (root: string, path: FsPath) => string

const inside = (root: string, path: string): string => {
  if (path !== root && !path.startsWith(`${root}/`)) throw Object.assign(new Error("outside"), { code: "EACCES" })
  return path
}

const byPrefix: Look = (root, path) => inside(root, resolve(root, path))

const byRealpath: Look = (root, path) => {
  const full = resolve(root, path)
  return join(inside(root, Fs.realpathSync(dirname(full))), name(path))
}

const byCache = (): { readonly look: Look; readonly close: () => void } => {
  const known = new Map<FsPath, number>()
  const look: Look = (root, path) => {
    const above = parent(path)
    const descriptor =
      known.get(above) ?? Fs.openSync(byRealpath(root, `${above}/.` as FsPath).slice(0, -1), Fs.constants.O_DIRECTORY)
    known.set(above, descriptor)
    return `/proc/self/fd/${descriptor}/${name(path)}`
  }
  return { look, close: () => known.forEach((descriptor) => Fs.closeSync(descriptor)) }
}

const tags: Record<string, Fault["_tag"]> = {
  ENOENT: "NotFound",
  ENOTDIR: "NotADirectory",
  EEXIST: "AlreadyExists",
  EISDIR: "NotAFile",
  ENOTEMPTY: "DirectoryNotEmpty",
  EACCES: "AccessDenied",
  EINVAL: "InvalidArgument"
}

const attempt = <A>(run: () => A): Effect.Effect<A, Fault> =>
  Effect.try({
    try: run,
    catch: (error): Fault => ({ _tag: tags[(error as { code: string }).code] ?? "IoError", why: "escape", detail: "" })
  })

const kindOf = (stats: Fs.Stats | Fs.Dirent): Kind =>
  stats.isFile() ? "file" : stats.isDirectory() ? "directory" : stats.isSymbolicLink() ? "symlink" : "other"

const toStat = (path: FsPath, stats: Fs.Stats): FileStat => {
  const kind = kindOf(stats)
  return {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: kind === "directory" ? 0 : stats.size
  }
}

const gathered = <E, R>(content: Uint8Array | Stream.Stream<Uint8Array, E, R>): Effect.Effect<Uint8Array, E, R> =>
  content instanceof Uint8Array
    ? Effect.succeed(content)
    : Effect.map(Stream.runCollect(content), (chunks) => Buffer.concat([...chunks]))

const flags = { create: "wx", replace: "w", append: "a" } as const

const port = (root: string, look: Look): Backend => {
  const statOf = (path: FsPath): FileStat | undefined => {
    try {
      return toStat(path, Fs.lstatSync(path === "." ? root : look(root, path)))
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes((error as { code: string }).code)) return undefined
      throw error
    }
  }
  return {
    info: { name: "Naive", root: root, caseSensitive: true, readOnly: false, confinement: "best-effort" },
    stat: (path) => attempt(() => statOf(path)),
    list: (path) =>
      attempt(() =>
        Fs.readdirSync(path === "." ? root : look(root, path), { withFileTypes: true }).map((entry) => ({
          name: entry.name,
          kind: kindOf(entry),
          addressable: true
        }))
      ),
    open: (path) =>
      attempt((): Handle => {
        const stat = toStat(path, Fs.statSync(look(root, path)))
        // The file is read by its name each time, as many readers of a range do.
        const read: Handle["read"] = (offset, length) =>
          attempt(() => Fs.readFileSync(look(root, path)).subarray(offset, offset + length))
        return { stat, read }
      }),
    write: (path, content, mode) =>
      Effect.flatMap(gathered(content), (bytes) =>
        attempt(() => {
          Fs.writeFileSync(look(root, path), bytes, { flag: flags[mode] })
          return toStat(path, Fs.statSync(look(root, path)))
        })
      ),
    makeDirectory: (path) => attempt(() => Fs.mkdirSync(look(root, path))),
    remove: (path) =>
      attempt(() => {
        const at = look(root, path)
        if (Fs.lstatSync(at).isDirectory()) Fs.rmdirSync(at)
        else Fs.unlinkSync(at)
      }),
    rename: (from, to) => attempt(() => Fs.renameSync(look(root, from), look(root, to))),
    links: {
      read: (path) => attempt(() => Fs.readlinkSync(look(root, path))),
      make: (path, target) => attempt(() => Fs.symlinkSync(target, look(root, path)))
    },
    attributes: {
      set: (path, { mode, modifiedAt }) =>
        attempt(() => {
          const at = look(root, path)
          if (mode !== undefined) Fs.chmodSync(at, mode)
          if (modifiedAt !== undefined) Fs.utimesSync(at, 0, DateTime.toEpochMillis(modifiedAt) / 1000)
        })
    },
    perform: Request.handlers({
      Read: ({ path }) =>
        attempt(() => {
          const bytes = Fs.readFileSync(look(root, path))
          return Option.some({ stat: statOf(path)!, bytes })
        }),
      RemoveTree: ({ path }) =>
        attempt(() => {
          Fs.rmSync(look(root, path), { recursive: true })
          return Option.some({ deleted: 0, directories: 0 })
        })
    })
  }
}

export const prefix = (root: string): Backend => port(root, byPrefix)
export const realpath = (root: string): Backend => port(root, byRealpath)
export const cached = (root: string): { readonly backend: Backend; readonly close: () => void } => {
  const { close, look } = byCache()
  return { backend: port(root, look), close }
}
