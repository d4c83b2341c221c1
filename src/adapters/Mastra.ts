/**
 * Provides the filesystem of a workspace of Mastra (npm package `@mastra/core`), over any `Filesystem`. The error classes of the package
 * are a parameter, so that this module loads without it.
 *
 * @example
 * ```ts
 * import * as Package from "@mastra/core/workspace"
 *
 * const filesystem = yield* Mastra.make(Package)
 * const workspace = new Package.Workspace({ filesystem })
 * yield* Effect.promise(() => workspace.init())
 * yield* Effect.promise(() => filesystem.appendFile("notes/todo.md", "- [ ] milk\n"))
 * yield* fs.readString("notes/todo.md") // => "- [ ] tea\n- [ ] bread\n- [ ] milk\n"
 * const error = yield* Effect.promise(() => filesystem.readFile("/none.md").catch((error: Error) => error.message))
 * error // => "File not found: /none.md"
 * ```
 * @since 0.1.0
 */
import type * as Package from "@mastra/core/workspace"
import type { FileEntry, WorkspaceFilesystem } from "@mastra/core/workspace"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem, type WalkOptions } from "../filesystem/Filesystem.ts"
import type * as Entry from "../model/Entry.ts"
import { type FsError, shownPath } from "../model/FsError.ts"
import { isBytes } from "../model/realms.ts"
import { Buffer } from "../runtime/buffer.ts"
import { randomUUID } from "../runtime/node.ts"
import { type Code, codeOf, errnoError } from "./errno.ts"
import { extensionOf, mimeTypeOf } from "./mastra/mimeTypes.ts"
import { type Run, runner } from "./run.ts"
import type { AdapterSupport } from "./support.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @category models
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "Mastra",
  package: "@mastra/core",
  version: "1.71.0",
  maps: [
    "every method of WorkspaceFilesystem that LocalFilesystem has, and walk",
    "errors of the package's own classes; other failures are a FilesystemError with the code of a system call",
    "expectedMtime: the write succeeds only if the file still has this modification time; otherwise it fails with StaleFileError",
    "a read-only filesystem: WorkspaceReadOnlyError"
  ],
  missing: [
    "grep: the tools of the workspace read the files",
    "basePath, getMountConfig and resolveAbsolutePath: the files need not be on a disk, so language servers and sandboxes do not see them",
    'absolute paths of the host: "/a" means "a" below the root of the filesystem; LocalFilesystem reads it as a path of the host',
    "paths that climb above the root or begin with `~`: PermissionError, also if they return to the root",
    "symlinks to directories: listed, but not entered by recursive listings; copied as symlinks with their directory",
    "a copy to a symlink without a target: replaces the symlink",
    "moveFile with `overwrite: false` moves directories too, and fails with FileExistsError where LocalFilesystem merges",
    "removal of the root: PermissionError",
    "a moveFile that fails: leaves no new directories",
    "paths below a file: FileNotFoundError or NotDirectoryError, where LocalFilesystem throws ENOTDIR of Node"
  ]
}

/**
 * The error classes that `make` needs. The module "@mastra/core/workspace" has them.
 *
 * @category models
 * @since 0.1.0
 */
export type Errors = Pick<
  typeof Package,
  | "DirectoryNotEmptyError"
  | "DirectoryNotFoundError"
  | "FileExistsError"
  | "FileNotFoundError"
  | "FilesystemError"
  | "IsDirectoryError"
  | "NotDirectoryError"
  | "PermissionError"
  | "StaleFileError"
  | "WorkspaceReadOnlyError"
>

type Foreign = Package.FilesystemError | Package.WorkspaceReadOnlyError
type Work<A> = Effect.Effect<A, FsError | Foreign>

const encodings: ReadonlySet<unknown> = new Set(
  "utf8 utf-8 utf16le utf-16le ucs2 ucs-2 base64 base64url latin1 binary hex ascii".split(" ")
)

const encoder = new TextEncoder()
const epoch = DateTime.makeUnsafe(0)

/** Returns the path below the root, "." for the root, or `undefined` for a path that begins with `~` or leads out of the root. */
const normalize = (path: string): string | undefined => {
  if (/^~(?:[/\\]|$)/.test(path)) return undefined
  const names: Array<string> = []
  for (const name of path.split("/")) {
    if (name === ".." && names.pop() === undefined) return undefined
    if (name !== ".." && name !== "" && name !== ".") names.push(name)
  }
  return names.join("/") || "."
}

/** Returns the path of the directory that contains an entry, as Node's `dirname` does. */
const parentOf = (path: string): string => {
  let end = path.length
  while (end > 0 && path[end - 1] === "/") end--
  end = path.lastIndexOf("/", end - 1)
  if (end < 0) return "."
  while (end > 0 && path[end - 1] === "/") end--
  return end === 0 ? "/" : path.slice(0, end)
}

const isBelow = (path: string, directory: string): boolean =>
  directory === "." || path === directory || path.startsWith(`${directory}/`)

const toDate = ({ modifiedAt = epoch }: Pick<Entry.FileStat, "modifiedAt">): Date => DateTime.toDateUtc(modifiedAt)

interface Call {
  readonly operation: string
  readonly path: string
  readonly dest?: string
  /** True if the call needs a directory, so that a missing entry is reported as a missing directory. */
  readonly isDirectory?: boolean
}

/** Returns the functions that make errors of the package. */
const makeErrors = (errors: Errors) => {
  const ofCode = (code: Code, operation: string, path: string): Foreign =>
    new errors.FilesystemError(errnoError(code, { syscall: operation, path }).message, code, path)

  const convert = (error: FsError, { dest, isDirectory = false, operation, path }: Call): Foreign => {
    const where =
      error.path === normalize(path) ? path : dest !== undefined && error.path === normalize(dest) ? dest : error.path
    switch (error._tag) {
      case "NotFound":
        return new errors[isDirectory ? "DirectoryNotFoundError" : "FileNotFoundError"](where)
      case "AlreadyExists":
        return new errors.FileExistsError(where)
      case "NotADirectory":
        return new errors.NotDirectoryError(where)
      case "NotAFile":
        return new errors.IsDirectoryError(where)
      case "DirectoryNotEmpty":
        return new errors.DirectoryNotEmptyError(where)
      case "AccessDenied":
        return error.why === "readOnly"
          ? new errors.WorkspaceReadOnlyError(operation)
          : new errors.PermissionError(where, error.why === "escape" ? "access" : operation)
      default:
        return ofCode(codeOf(error), operation, where)
    }
  }
  return { convert, ofCode }
}

const makeFilesystem = (fs: Algebra, run: Run, errors: Errors): WorkspaceFilesystem => {
  const { convert, ofCode } = makeErrors(errors)

  /** Runs one call. Its failures become errors of the package. */
  const call = <A>(at: Call, start: (path: string, dest: string) => Work<A>): Promise<A> =>
    run(
      Effect.suspend((): Work<A> => {
        const paths: Array<string> = []
        for (const path of at.dest === undefined ? [at.path] : [at.path, at.dest]) {
          if (typeof path !== "string") return Effect.fail(ofCode("EINVAL", at.operation, shownPath(path)))
          const normal = normalize(path)
          if (normal === undefined) return Effect.fail(new errors.PermissionError(path, "access"))
          paths.push(normal)
        }
        return start(paths[0]!, paths[1] ?? ".")
      }).pipe(
        Effect.mapError((error) =>
          "_tag" in error ? Object.defineProperty(convert(error, at), "cause", { value: error, configurable: true }) : error
        )
      )
    )

  const change = <A>(at: Call, start: (path: string, dest: string) => Work<A>): Promise<A> =>
    fs.readOnly ? Promise.reject(new errors.WorkspaceReadOnlyError(at.operation)) : call(at, start)

  const toBytes = (content: unknown, operation: string, path: string): Effect.Effect<Uint8Array, Foreign> =>
    typeof content === "string"
      ? Effect.succeed(encoder.encode(content))
      : isBytes(content)
        ? Effect.succeed(content)
        : Effect.fail(ofCode("EINVAL", operation, path))

  const orUndefined = <A>(effect: Effect.Effect<A, FsError>): Effect.Effect<A | undefined, FsError> =>
    Effect.catchTag(effect, "NotFound", () => Effect.undefined)

  /**
   * Writes only if the file still has the modification time, or does not exist. The version is read first, so that a later change
   * is detected.
   */
  const writeUnchanged = Effect.fnUntraced(function* (
    at: string,
    path: string,
    bytes: Uint8Array,
    expected: Date,
    options: { readonly mode: Entry.WriteMode; readonly createParents: boolean }
  ): Effect.fn.Return<void, FsError | Foreign> {
    const ifMatch = (yield* orUndefined(fs.version(at))) ?? null
    const stat = yield* orUndefined(fs.stat(at))
    if (stat !== undefined && toDate(stat).getTime() !== expected.getTime())
      return yield* Effect.fail(new errors.StaleFileError(path, expected, toDate(stat)))
    const condition = options.mode === "create" ? undefined : { ifMatch }
    yield* Effect.catchTag(fs.writeBytes(at, bytes, { ...options, ...condition }), "Conflict", () =>
      Effect.flatMap(orUndefined(fs.stat(at)), (found) =>
        Effect.fail(new errors.StaleFileError(path, expected, toDate(found ?? {})))
      )
    )
  })

  const exists = (at: string) => Effect.map(orUndefined(fs.lstat(at)), (stat) => stat !== undefined)

  /** Copies an entry. A directory is merged into an existing directory. Symlinks in a directory are copied as symlinks. */
  const copy = Effect.fnUntraced(function* (
    from: string,
    to: string,
    kind: Entry.Kind,
    overwrite: boolean
  ): Effect.fn.Return<void, FsError | Foreign> {
    if (kind === "symlink") {
      yield* fs.copy(from, to, { overwrite })
      return
    }
    const real = yield* orUndefined(fs.realPath(to))
    if (kind !== "directory") {
      if (real !== undefined && !overwrite) return yield* Effect.fail(new errors.FileExistsError(to))
      if (from === real) return
      if (real !== undefined && (yield* fs.stat(real)).isDirectory) return yield* Effect.fail(new errors.IsDirectoryError(to))
      yield* fs.copy(from, real ?? to, { overwrite })
      return
    }
    if (isBelow(real ?? to, from)) return yield* Effect.fail(ofCode("EINVAL", "copyFile", to))
    if (real === undefined) {
      yield* fs.copy(from, to)
      return
    }
    if (!(yield* fs.stat(real)).isDirectory) return yield* Effect.fail(new errors.FileExistsError(to))
    for (const entry of yield* fs.list(from)) {
      const target = `${real}/${entry.name}`
      if (overwrite || entry.kind === "directory" || !(yield* exists(target)))
        yield* copy(`${from}/${entry.name}`, target, entry.kind, overwrite)
    }
  })

  /** Returns an entry in the form of the package. A symlink to a directory is a directory, and any other symlink is a file. */
  const toEntry = ({ kind, path, sizeBytes }: Entry.FileEntry, name: string): Effect.Effect<FileEntry> => {
    if (kind !== "symlink") {
      const type = kind === "directory" ? "directory" : "file"
      return Effect.succeed(type === "file" && sizeBytes !== undefined ? { name, type, size: sizeBytes } : { name, type })
    }
    const target = Effect.orElseSucceed(fs.readLink(path), () => undefined)
    const isDirectory = Effect.orElseSucceed(
      Effect.map(fs.stat(path), (stat) => stat.isDirectory),
      () => false
    )
    return Effect.zipWith(target, isDirectory, (symlinkTarget, isDirectory) => ({
      name,
      type: isDirectory ? ("directory" as const) : ("file" as const),
      isSymlink: true,
      ...(symlinkTarget === undefined ? undefined : { symlinkTarget })
    }))
  }

  const entriesBelow = Effect.fnUntraced(function* (
    at: string,
    path: string,
    options: WalkOptions,
    isKept: (entry: Entry.FileEntry) => boolean
  ): Effect.fn.Return<Array<FileEntry & { readonly path: string }>, FsError | Foreign> {
    if (!(yield* fs.stat(at)).isDirectory) return yield* Effect.fail(new errors.NotDirectoryError(path))
    const found = yield* Stream.runCollect(fs.walk(at, { ...options, sizes: true }))
    return yield* Effect.forEach(
      found.filter(isKept),
      (entry) => {
        const relative = at === "." ? entry.path : entry.path.slice(at.length + 1)
        return Effect.map(toEntry(entry, entry.name), (shown) => ({ ...shown, path: relative }))
      },
      { concurrency: 16 }
    )
  })

  const identity = { id: `fs-algebra-${randomUUID()}`, name: fs.name, provider: "fs-algebra", readOnly: fs.readOnly }

  return {
    ...identity,
    status: "ready",
    getInfo: () => ({ ...identity, status: "ready" }),
    getInstructions: () =>
      'Filesystem with the root "/". Relative paths resolve from the root, so "/a" and "a" are one file. File access is restricted to this root.',
    realpath: (path) =>
      call({ operation: "realpath", path }, (at) => Effect.map(fs.realPath(at), (real) => (real === "." ? "" : real))),
    readFile: (path, options) =>
      call({ operation: "readFile", path }, (at) => {
        const encoding: unknown = options?.encoding
        const known = typeof encoding === "string" ? encoding.toLowerCase() : (encoding ?? undefined)
        if (known !== undefined && !encodings.has(known)) return Effect.fail(ofCode("EINVAL", "readFile", path))
        return Effect.map(fs.readBytes(at), ({ content }) => {
          const buffer = Buffer.from(content.buffer, content.byteOffset, content.length)
          return known === undefined ? buffer : buffer.toString(known as BufferEncoding)
        })
      }),
    writeFile: (path, content, options) =>
      change({ operation: "writeFile", path }, (at) => {
        const { expectedMtime, overwrite, recursive } = options ?? {}
        if (expectedMtime != null && !(expectedMtime instanceof Date && Number.isFinite(expectedMtime.getTime())))
          return Effect.fail(ofCode("EINVAL", "writeFile", path))
        const how = { mode: overwrite === false ? "create" : "overwrite", createParents: recursive !== false } as const
        const write = Effect.flatMap(toBytes(content, "writeFile", path), (bytes): Work<unknown> =>
          expectedMtime == null ? fs.writeBytes(at, bytes, how) : writeUnchanged(at, path, bytes, expectedMtime, how)
        )
        return Effect.asVoid(write).pipe(
          Effect.catchTags({
            NotFound: () => Effect.fail(new errors.DirectoryNotFoundError(parentOf(path))),
            NotADirectory: () => Effect.fail(new errors.NotDirectoryError(parentOf(path))),
            NotAFile: () => Effect.fail(new errors[overwrite === false ? "FileExistsError" : "IsDirectoryError"](path))
          })
        )
      }),
    appendFile: (path, content) =>
      change({ operation: "appendFile", path }, (at) =>
        Effect.flatMap(toBytes(content, "appendFile", path), (bytes) =>
          Effect.asVoid(fs.writeBytes(at, bytes, { mode: "append" }))
        )
      ),
    deleteFile: (path, options) =>
      change({ operation: "deleteFile", path }, (at) => {
        const remove = Effect.flatMap(fs.stat(at), ({ isDirectory }): Work<unknown> =>
          isDirectory ? Effect.fail(new errors.IsDirectoryError(path)) : fs.delete(at)
        )
        return Effect.asVoid(options?.force === true ? Effect.catchTag(remove, "NotFound", () => Effect.void) : remove)
      }),
    copyFile: (src, dest, options) =>
      change({ operation: "copyFile", path: src, dest }, (from, to) =>
        Effect.flatMap(Effect.all([fs.stat(from), fs.realPath(from)]), ([{ kind }, real]) =>
          kind === "directory" && options?.recursive !== true
            ? Effect.fail(new errors.IsDirectoryError(src))
            : copy(real, to, kind, options?.overwrite !== false)
        )
      ),
    moveFile: (src, dest, options) =>
      change({ operation: "moveFile", path: src, dest }, (from, to) => {
        const overwrite = options?.overwrite !== false
        if (from !== to) return Effect.asVoid(fs.move(from, to, { overwrite }))
        return Effect.flatMap(fs.lstat(from), () => (overwrite ? Effect.void : Effect.fail(new errors.FileExistsError(dest))))
      }),
    mkdir: (path, options) =>
      change({ operation: "mkdir", path }, (at) =>
        Effect.catchTag(fs.mkdir(at, { parents: options?.recursive !== false, existOk: true }), "NotFound", () =>
          Effect.fail(new errors.DirectoryNotFoundError(parentOf(path)))
        )
      ),
    rmdir: (path, options) =>
      change({ operation: "rmdir", path, isDirectory: true }, (at) => {
        const recursive = options?.recursive === true
        const remove = Effect.flatMap(Effect.all([fs.stat(at), fs.lstat(at)]), ([{ isDirectory }, { kind }]): Work<unknown> =>
          isDirectory && (recursive || kind === "directory")
            ? fs.delete(at, { recursive })
            : Effect.fail(new errors.NotDirectoryError(path))
        )
        return Effect.asVoid(options?.force === true ? Effect.catchTag(remove, "NotFound", () => Effect.void) : remove)
      }),
    readdir: (path, options) =>
      call({ operation: "readdir", path, isDirectory: true }, (at) => {
        const { extension, maxDepth = 100, recursive } = options ?? {}
        const extensions = extension === undefined || extension === "" ? undefined : [extension].flat()
        const levels = recursive === true && maxDepth > 0 ? Math.ceil(maxDepth) + 1 : 1
        const isKept = ({ kind, name }: Entry.FileEntry): boolean => {
          if (extensions === undefined || kind !== "file") return true
          const own = extensionOf(name)
          return extensions.some((one) => one === own || one === own.slice(1))
        }
        return Effect.map(entriesBelow(at, path, Number.isFinite(levels) ? { maxDepth: levels } : {}, isKept), (entries) =>
          entries.map(({ path, ...entry }) => ({ ...entry, name: path }))
        )
      }),
    walk: (path, options) =>
      call({ operation: "walk", path, isDirectory: true }, (at) =>
        entriesBelow(
          at,
          path,
          {
            ...(options?.maxDepth === undefined ? undefined : { maxDepth: options.maxDepth }),
            ...(options?.includeHidden === true ? undefined : { exclude: ".*" })
          },
          () => true
        )
      ),
    exists: (path) => call({ operation: "exists", path }, (at) => fs.exists(at)),
    stat: (path) =>
      call({ operation: "stat", path }, (at) =>
        Effect.map(fs.stat(at), (stat) => {
          const name = at === "." ? "" : at.slice(at.lastIndexOf("/") + 1)
          const times = { createdAt: DateTime.toDateUtc(stat.createdAt ?? stat.modifiedAt ?? epoch), modifiedAt: toDate(stat) }
          const rest = { name, path: at === "." ? "" : at, ...times }
          return stat.isDirectory
            ? { ...rest, type: "directory" as const, size: 0 }
            : { ...rest, type: "file" as const, size: stat.sizeBytes, mimeType: mimeTypeOf(name) }
        })
      )
  }
}

/**
 * Returns the filesystem for `new Workspace({ filesystem })`. The root of the filesystem is "/". The calls use the clock, the
 * tracer and the other services of this effect's context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (errors: Errors): Effect.Effect<WorkspaceFilesystem, never, Filesystem> =>
  Effect.gen(function* () {
    return makeFilesystem(yield* Filesystem, yield* runner, errors)
  })
