/**
 * Provides the filesystem of the bash interpreter `just-bash` (npm), over any `Filesystem`.
 *
 * @example
 * ```ts
 * import { Bash } from "just-bash"
 *
 * const bash = new Bash({ fs: yield* JustBash.make(), cwd: "/" })
 * const { stdout } = yield* Effect.promise(() => bash.exec("grep -c '\\[ \\]' notes/todo.md | tee count.txt"))
 * stdout // => "2\n"
 * yield* fs.readString("count.txt") // => "2\n"
 * ```
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { BufferEncoding, ByteString, FileContent, FsStat, IFileSystem } from "just-bash"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { FileStat } from "../model/Entry.ts"
import type { FsError } from "../model/FsError.ts"
import { isBytes } from "../model/realms.ts"
import { Buffer } from "../runtime/buffer.ts"
import { type Code, errnoError, fromFsError } from "./errno.ts"
import { type Run, runner } from "./run.ts"
import type { AdapterSupport } from "./support.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @category models
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "JustBash",
  package: "just-bash",
  version: "3.4.2",
  maps: [
    "every method of IFileSystem but getAllPaths and link",
    "errors with the message and code of a system call",
    "symlinks, modes, modification times, and the identity that `test -ef` compares",
    "defense in depth of just-bash: the filesystem's own timers keep working"
  ],
  missing: [
    "hard links: EPERM",
    "getAllPaths returns no paths, so the shell expands patterns by listing directories",
    "/dev, /proc and /bin: just-bash puts them only into its own filesystems",
    "names with control characters: EINVAL",
    'absolute link targets: EACCES, except in memory with `absoluteLinks: "root"`',
    "link targets that climb above the root: EACCES",
    "a redirection that the filesystem refuses: `exec` rejects, as over just-bash's own ReadWriteFs",
    "a write keeps the mode of the file, where InMemoryFs resets it",
    "set-user-ID, set-group-ID and sticky bits: EINVAL",
    "a write to a link changes the link's target, where InMemoryFs replaces the link",
    "a directory that is moved over a directory with entries: ENOTEMPTY, where InMemoryFs merges both"
  ]
}

interface Refusal {
  readonly _tag: "Refusal"
  readonly code: Code
}

const refuse = (code: Code): Effect.Effect<never, Refusal> => Effect.fail({ _tag: "Refusal", code })

type EncodingOption = BufferEncoding | { readonly encoding?: BufferEncoding | null | undefined } | null | undefined

const encodingOf = (option: EncodingOption): string =>
  (typeof option === "string" ? option : option?.encoding)?.toLowerCase() ?? "utf8"

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Converts content to bytes. Returns `undefined` if the content or its encoding is invalid. */
const toBytes = (content: FileContent, encoding: string): Uint8Array | undefined => {
  if (isBytes(content)) return content
  if (typeof content !== "string") return undefined
  switch (encoding) {
    // just-bash stores text that it calls ASCII in UTF-8.
    case "utf8":
    case "utf-8":
    case "ascii":
      return encoder.encode(content)
    case "binary":
    case "latin1":
      return Buffer.from(content, "latin1")
    case "hex":
      return content.length % 2 === 0 && /^[0-9a-f]*$/i.test(content) ? Buffer.from(content, "hex") : undefined
    case "base64":
      return /^[A-Za-z0-9+/]*={0,2}$/.test(content) ? Buffer.from(content, "base64") : undefined
    default:
      return undefined
  }
}

const toText = (bytes: Uint8Array, encoding: string): string | undefined => {
  switch (encoding) {
    case "utf8":
    case "utf-8":
    case "ascii":
      return decoder.decode(bytes)
    case "binary":
    case "latin1":
      return Buffer.from(bytes).toString("latin1")
    case "hex":
    case "base64":
      return Buffer.from(bytes).toString(encoding)
    default:
      return undefined
  }
}

/** Resolves "." and ".." lexically, as the filesystems of just-bash do. The parent of the root is the root. */
const normalize = (path: string): string => {
  const names: Array<string> = []
  for (const name of path.split("/")) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return names.join("/") || "."
}

const shown = (path: string): string => (path === "." ? "/" : `/${path}`)

const defaultModes = { file: 0o644, directory: 0o755, symlink: 0o777, other: 0o644 } as const
const typeBits = 0o170_000

const byName = (one: { readonly name: string }, other: { readonly name: string }): number =>
  one.name < other.name ? -1 : one.name > other.name ? 1 : 0

const epoch = DateTime.makeUnsafe(0)

const toStat = ({ identity, isDirectory, isFile, kind, mode, modifiedAt, sizeBytes }: FileStat): FsStat => ({
  isFile,
  isDirectory,
  isSymbolicLink: kind === "symlink",
  mode: mode ?? defaultModes[kind],
  size: sizeBytes,
  mtime: DateTime.toDateUtc(modifiedAt ?? epoch),
  ...(identity === undefined ? undefined : { identity })
})

const isBelow = (path: string, directory: string): boolean =>
  directory === "." || path === directory || path.startsWith(`${directory}/`)

const makeCopy = (fs: Algebra) => {
  /** Copies an entry. A directory is merged into an existing directory, as `cp -r` does. */
  const copy = Effect.fnUntraced(function* (
    from: string,
    to: string,
    recursive: boolean
  ): Effect.fn.Return<void, FsError | Refusal> {
    const source = yield* fs.lstat(from)
    if (source.kind !== "directory") {
      if (from !== to) yield* fs.copy(from, to, { overwrite: true })
      return
    }
    if (!recursive) return yield* refuse("EISDIR")
    const target = yield* Effect.catchTag(fs.stat(to), "NotFound", () => Effect.succeed(undefined))
    if (isBelow(to, from)) return yield* refuse("EINVAL")
    if (target?.kind !== "directory") {
      yield* fs.copy(from, to)
      return
    }
    if (isBelow(yield* fs.realPath(to), yield* fs.realPath(from))) return yield* refuse("EINVAL")
    for (const { name } of yield* fs.list(from)) yield* copy(`${from}/${name}`, `${to}/${name}`, true)
  })
  return copy
}

const makeFileSystem = (fs: Algebra, run: Run): IFileSystem => {
  /** Runs one call. Failures become errors in the form of just-bash: `CODE: text, syscall 'path'`. */
  const call = <A>(
    syscall: string,
    paths: readonly [path: string, dest?: string],
    start: (at: string, dest: string) => Effect.Effect<A, FsError | Refusal>
  ): Promise<A> => {
    const [path, dest] = paths
    const where = { syscall, path: String(path), dest: dest === undefined ? undefined : String(dest) }
    if (paths.some((one) => typeof one !== "string")) return Promise.reject(errnoError("EINVAL", where))
    if (paths.some((one) => one!.includes("\0"))) return Promise.reject(errnoError("ENOENT", where))
    const effect = Effect.suspend(() => start(normalize(path), normalize(dest ?? "")))
    return run(
      Effect.mapError(effect, (error) => (error._tag === "Refusal" ? errnoError(error.code, where) : fromFsError(error, where)))
    )
  }

  const readBytes = (path: string) => call("open", [path], (at) => Effect.map(fs.readBytes(at), ({ content }) => content))

  const write =
    (mode: "overwrite" | "append", syscall: string) => (path: string, content: FileContent, option?: EncodingOption) =>
      call(syscall, [path], (at) => {
        const bytes = toBytes(content, encodingOf(option))
        return bytes === undefined ? refuse("EINVAL") : Effect.asVoid(fs.writeBytes(at, bytes, { mode }))
      })

  const list = (path: string) => call("scandir", [path], (at) => Effect.map(fs.list(at), (entries) => entries.toSorted(byName)))

  const copy = makeCopy(fs)

  return {
    readFileBuffer: readBytes,
    readFileBytes: async (path) => toText(await readBytes(path), "latin1") as unknown as ByteString,
    readFile: async (path, option) => {
      const text = toText(await readBytes(path), encodingOf(option))
      if (text === undefined) throw errnoError("EINVAL", { syscall: "read", path })
      return text
    },
    writeFile: write("overwrite", "write"),
    appendFile: write("append", "append"),
    exists: (path) =>
      call("access", [path], (at) => fs.exists(at)).catch((error: { code?: unknown }) => {
        if (error.code === "ENOENT") return false
        throw error
      }),
    stat: (path) => call("stat", [path], (at) => Effect.map(fs.stat(at), toStat)),
    lstat: (path) => call("lstat", [path], (at) => Effect.map(fs.lstat(at), toStat)),
    mkdir: (path, options) =>
      call("mkdir", [path], (at) =>
        fs.mkdir(at, { parents: options?.recursive === true, existOk: options?.recursive === true })
      ),
    readdir: async (path) => (await list(path)).map(({ name }) => name),
    readdirWithFileTypes: async (path) =>
      (await list(path)).map(({ isDirectory, isFile, kind, name }) => ({
        name,
        isFile,
        isDirectory,
        isSymbolicLink: kind === "symlink"
      })),
    rm: (path, options) =>
      call("rm", [path], (at) =>
        Effect.asVoid(
          fs.delete(at, { recursive: options?.recursive === true, missing: options?.force === true ? "ignore" : "fail" })
        )
      ),
    cp: (from, to, options) => call("cp", [from, to], (at, dest) => copy(at, dest, options?.recursive === true)),
    mv: (from, to) =>
      call("mv", [from, to], (at, dest) =>
        at === dest ? Effect.asVoid(fs.lstat(at)) : Effect.asVoid(fs.move(at, dest, { overwrite: true }))
      ),
    resolvePath: (base, path) => shown(normalize(path.startsWith("/") ? path : `${base}/${path}`)),
    getAllPaths: () => [],
    chmod: (path, mode) =>
      call("chmod", [path], (at) =>
        Number.isInteger(mode) ? fs.setAttributes(at, { mode: mode & ~typeBits }) : refuse("EINVAL")
      ),
    utimes: (path, _atime, mtime) =>
      call("utimes", [path], (at) =>
        Option.match(DateTime.make(mtime), {
          onNone: () => refuse("EINVAL"),
          onSome: (time) => fs.setAttributes(at, { modifiedAt: DateTime.toUtc(time) })
        })
      ),
    symlink: (target, path) =>
      call("symlink", [path], (at) => (typeof target === "string" ? fs.symlink(at, target) : refuse("EINVAL"))),
    // The algebra has no hard links. Check the paths first, as a system without hard links does.
    link: (from, to) =>
      call("link", [from, to], (at, dest) =>
        Effect.flatMap(Effect.andThen(fs.lstat(at), fs.exists(dest)), (exists) => refuse(exists ? "EEXIST" : "EPERM"))
      ),
    readlink: (path) => call("readlink", [path], (at) => fs.readLink(at)),
    realpath: (path) => call("realpath", [path], (at) => Effect.map(fs.realPath(at), shown))
  }
}

/**
 * Returns the filesystem for `new Bash({ fs })`. The root of the filesystem is "/". The calls use the clock, the tracer and
 * the other services of this effect's context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): Effect.Effect<IFileSystem, never, Filesystem> =>
  Effect.gen(function* () {
    return makeFileSystem(yield* Filesystem, yield* runner)
  })
