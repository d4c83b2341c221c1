/** Real directories for the tests of the host, each removed with its scope, with a directory outside the root. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Confined } from "../../src/backends/posix/place.ts"
import * as HostRoot from "../../src/backends/posix/confinement.ts"
import { backend } from "../../src/backends/posix/port.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { FileStat } from "../../src/model/Entry.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend, WriteHow } from "../../src/port/Backend.ts"
import { enforce } from "../../src/port/Rules.ts"

export const p = (path: string): FsPath => path as FsPath

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const directoryIn = (base: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(base), "fs-algebra-test-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )

export const directory = directoryIn(tmpdir())

/** A directory on a disk in memory where there is one, for tests with thousands of directories. */
export const fastDirectory = directoryIn(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir())

export interface Host {
  readonly port: Backend
  /** The path of the root on the machine. */
  readonly root: string
  /** A directory beside the root that no call may change. */
  readonly outside: string
}

type Make = (options: PosixHost.PosixHostOptions) => Effect.Effect<Backend, never, Scope.Scope>

const preferred: Make = (options) => Effect.orDie(PosixHost.make(options))

/** Opens the port as on a system that does not show descriptors as files. */
export const checked: Make = (options) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => HostRoot.open(options.root, "best-effort") as Confined),
      (confined) => Effect.sync(confined.close)
    ),
    (confined) => enforce(backend(confined, options))
  )

export const walks: ReadonlyArray<readonly [level: "race-free" | "best-effort", make: Make]> = [
  ["race-free", preferred],
  ["best-effort", checked]
]

export const host = (
  options?: Partial<PosixHost.PosixHostOptions>,
  make: Make = preferred
): Effect.Effect<Host, never, Scope.Scope> =>
  Effect.flatMap(directory, (top) => {
    const root = join(top, "root")
    const outside = join(top, "outside")
    Fs.mkdirSync(root)
    Fs.mkdirSync(outside)
    return Effect.map(make({ root, ...options }), (port) => ({ port, root, outside }))
  })

/** Returns the fault of the effect, without the host's own error. */
export const faultOf = <A, R>(
  effect: Effect.Effect<A, Fault, R>
): Effect.Effect<{ readonly _tag: string; [detail: string]: unknown }, A, R> =>
  Effect.map(Effect.flip(effect), ({ cause: _cause, ...fault }) => fault as Fault)

/** Calls the port's `write`, without type arguments for bytes. */
export const write = <E = never, R = never>(
  port: Backend,
  path: string,
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
  mode: "create" | "replace" | "append",
  how?: WriteHow
): Effect.Effect<FileStat, Fault | E, R> => port.write<E, R>(p(path), content, mode, how)

/** Returns every entry below a directory with its content, sorted, hidden ones too, without following links. */
export const tree = (top: string): Record<string, string> => {
  const out: Record<string, string> = {}
  const visit = (at: string, path: string): void => {
    for (const name of Fs.readdirSync(at).sort()) {
      const child = join(at, name)
      const stats = Fs.lstatSync(child)
      const key = path === "" ? name : `${path}/${name}`
      out[key] = stats.isDirectory()
        ? "directory"
        : stats.isSymbolicLink()
          ? `-> ${Fs.readlinkSync(child)}`
          : stats.isFile()
            ? Fs.readFileSync(child, "utf8")
            : "other"
      if (stats.isDirectory()) visit(child, key)
    }
  }
  visit(top, "")
  return out
}

export const readAll = (port: Backend, path: FsPath): Effect.Effect<string, Fault> =>
  Effect.scoped(
    Effect.flatMap(port.open(path), (handle) =>
      Effect.map(handle.read(0, handle.stat.sizeBytes), (bytes) => new TextDecoder().decode(bytes))
    )
  )

export const openDescriptors = (): number => Fs.readdirSync("/proc/self/fd").length
