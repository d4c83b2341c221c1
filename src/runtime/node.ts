/**
 * The modules of Node that this library uses. The modules are looked up, not imported, so that code that works only in memory
 * also runs without Node.
 *
 * Without Node, portable code gets replacements, and a function that needs host files throws when it is called. Modules
 * that load slowly, such as `crypto`, are looked up at the first use.
 */
import type * as NodeBuffer from "node:buffer"
import type * as NodeCrypto from "node:crypto"
import type * as NodeFs from "node:fs"
import type * as NodeFsPromises from "node:fs/promises"
import type * as NodeOs from "node:os"
import type * as NodePath from "node:path"
import type * as NodeStream from "node:stream"
import type * as NodeStreamPromises from "node:stream/promises"
import type * as NodeUtil from "node:util"
import type * as NodeV8 from "node:v8"
import type * as NodeWorkerThreads from "node:worker_threads"
import type * as NodeZlib from "node:zlib"
import { Buffer } from "./buffer.ts"
import { Sha } from "./sha.ts"

/** True on Node, and on runtimes with its modules, such as Bun and Deno. */
export const isNode: boolean = typeof process !== "undefined" && typeof process.getBuiltinModule === "function"

const makeThrowingModule = (name: string): object =>
  new Proxy(
    {},
    {
      get: (_, key) => {
        if (key === "constants") return {}
        return () => {
          throw new Error(
            `this call needs the module ${name}, which this runtime does not have; use InMemory here, or use Node, Bun or Deno`
          )
        }
      }
    }
  )

export const builtin = <A extends object>(name: string): A =>
  ((isNode ? process.getBuiltinModule(name) : undefined) ?? makeThrowingModule(name)) as A

const lookUpLazily = <A extends object>(name: string): (() => A) => {
  let module: A | undefined
  return () => (module ??= builtin<A>(name))
}

export const Fs: typeof NodeFs = builtin("node:fs")
export declare namespace Fs {
  export type BigIntStats = NodeFs.BigIntStats
  export type Dir = NodeFs.Dir
  export type Dirent<Name extends string | Buffer = string> = NodeFs.Dirent<Name>
  export type FSWatcher = NodeFs.FSWatcher
  export type Stats = NodeFs.Stats
}
export const realpathSync = (path: string): string => Fs.realpathSync(path)

/** Returns the target of a symlink as bytes. Converts the bytes to a Buffer, because Deno returns another Uint8Array. */
export const readLinkBytes = (path: string | Buffer): Buffer => {
  const bytes: Uint8Array = Fs.readlinkSync(path, { encoding: "buffer" })
  return Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)
}

export const fsPromises = lookUpLazily<typeof NodeFsPromises>("node:fs/promises")
export type FileHandle = NodeFsPromises.FileHandle

export const Path: NodePath.PlatformPath = builtin("node:path")
export const basename: NodePath.PlatformPath["basename"] = (path, suffix) => Path.basename(path, suffix)
export const dirname: NodePath.PlatformPath["dirname"] = (path) => Path.dirname(path)
export const isAbsolute: NodePath.PlatformPath["isAbsolute"] = (path) => Path.isAbsolute(path)
export const join: NodePath.PlatformPath["join"] = (...parts) => Path.join(...parts)
export const parse: NodePath.PlatformPath["parse"] = (path) => Path.parse(path)
export const relative: NodePath.PlatformPath["relative"] = (from, to) => Path.relative(from, to)
export const resolve: NodePath.PlatformPath["resolve"] = (...parts) => Path.resolve(...parts)
export const sep: string = isNode ? Path.sep : "/"
export const delimiter: string = isNode ? Path.delimiter : ":"

export const platform: string = isNode ? process.platform : ""

const os = lookUpLazily<typeof NodeOs>("node:os")
export const homedir: typeof NodeOs.homedir = () => os().homedir()
export const userInfo = (): NodeOs.UserInfo<string> => os().userInfo()
export const tmpdir: typeof NodeOs.tmpdir = () => os().tmpdir()

export const getSystemErrorMessage: typeof NodeUtil.getSystemErrorMessage = (errno) =>
  builtin<typeof NodeUtil>("node:util").getSystemErrorMessage(errno)

export const stream = lookUpLazily<typeof NodeStream>("node:stream")
export const streams = lookUpLazily<typeof NodeStreamPromises>("node:stream/promises")

export const zlib = lookUpLazily<typeof NodeZlib>("node:zlib")

export const v8 = lookUpLazily<typeof NodeV8>("node:v8")
export const workerThreads = lookUpLazily<typeof NodeWorkerThreads>("node:worker_threads")

export const buffer = lookUpLazily<typeof NodeBuffer>("node:buffer")
const strictDecoder = new TextDecoder("utf-8", { fatal: true })

export const isUtf8 = (bytes: Uint8Array): boolean => {
  if (isNode) return buffer().isUtf8(bytes)
  try {
    strictDecoder.decode(bytes)
    return true
  } catch {
    return false
  }
}

export const crypto = lookUpLazily<typeof NodeCrypto>("node:crypto")
export const randomBytes = (length: number): Buffer =>
  isNode ? crypto().randomBytes(length) : Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(length)))
export const randomInt = (max: number): number => crypto().randomInt(max)

/** Returns a random UUID. Also works on pages without HTTPS, where a browser has no `randomUUID`. */
export const randomUUID = (): string => {
  if (isNode) return crypto().randomUUID()
  const bytes = randomBytes(16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
}

export type Hash = NodeCrypto.Hash

export const createHash = (algorithm: "sha1" | "sha256"): Hash =>
  isNode ? crypto().createHash(algorithm) : (new Sha(algorithm) as unknown as Hash)

export const hash = (algorithm: "sha1" | "sha256", bytes: Uint8Array): string =>
  isNode ? crypto().hash(algorithm, bytes, "hex") : new Sha(algorithm).update(bytes).digest("hex")
