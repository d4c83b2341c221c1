/** Real directories for one scope, with the tree of `operations.ts`. Checks read them with `node:fs` alone. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFileSync, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { directory as emptyDirectory, type Files } from "../../src/testing/Files.ts"
import { files } from "./operations.ts"

const demanded = process.env["FS_ALGEBRA_NO_SKIP"] !== undefined

/** Tests whether to run tests that need `what`. Prints one line if they are skipped. FS_ALGEBRA_NO_SKIP demands them. */
export const needs = (what: string, isThere: () => boolean, how: string): boolean => {
  if (demanded || isThere()) return true
  console.log(`skipped: ${what}; ${how}`)
  return false
}

const succeeds = (command: string, ...args: ReadonlyArray<string>): boolean => {
  const { status } = spawnSync(command, args, { stdio: "ignore" })
  return status === 0
}

export const isRoot = process.getuid?.() === 0

export const canMount = (): boolean => {
  if (!isRoot) return false
  const at = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-mount-"))
  try {
    return succeeds("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", at) && succeeds("umount", at)
  } finally {
    Fs.rmdirSync(at)
  }
}

/** Tests whether the shell finds the command. Running the command proves less: `unzip --version` fails. */
export const has = (command: string): boolean => succeeds("sh", "-c", 'command -v -- "$1"', "sh", command)

const directoryIn = (base: string, remove: (path: string) => void): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(base), "fs-algebra-fault-"))),
    (path) => Effect.sync(() => remove(path))
  )

/** A temporary directory. Only `rm` can remove trees whose paths are too long for Node. */
export const directory = directoryIn(tmpdir(), (path) => execFileSync("rm", ["-rf", path]))

/** A temporary directory in memory if possible, for trees that are made thousands of times. */
export const fastDirectory = directoryIn(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), (path) =>
  Fs.rmSync(path, { recursive: true, force: true })
)

export const mounted = (at: string, ...args: ReadonlyArray<string>): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      execFileSync("mount", [...args, at])
      return at
    }),
    () => Effect.sync(() => execFileSync("umount", [at]))
  )

export const disk = (options: string, at?: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.flatMap(at === undefined ? directory : Effect.succeed(at), (at) => mounted(at, "-t", "tmpfs", "-o", options, "tmpfs"))

/** Writes a tree with `node:fs`, with the parents that it needs. */
export const plantAt = (root: string, tree: Files = files): void => {
  for (const [path, entry] of Object.entries(tree)) {
    const at = join(root, path)
    Fs.mkdirSync(entry === emptyDirectory ? at : join(at, ".."), { recursive: true })
    if (entry === emptyDirectory) continue
    if (typeof entry === "object" && "link" in entry) Fs.symlinkSync(entry.link, at)
    else Fs.writeFileSync(at, entry as string | Uint8Array)
  }
}

const contentOf = (at: string): string => {
  const bytes = Fs.readFileSync(at)
  return bytes.length <= 100
    ? JSON.stringify(bytes.toString("latin1"))
    : `${bytes.length} bytes ${createHash("sha1").update(bytes).digest("hex")}`
}

const line = (at: string, stats: Fs.Stats): string => {
  const mode = (stats.mode & 0o7777).toString(8)
  if (stats.isDirectory()) return `directory ${mode}`
  if (stats.isSymbolicLink()) return `link -> ${Fs.readlinkSync(at)}`
  return stats.isFile() ? `file ${mode} ${contentOf(at)}` : "other"
}

/**
 * Returns every entry below a directory with its kind, permission bits and content. Includes hidden entries and follows no
 * link.
 */
export const picture = (top: string): Record<string, string> => {
  const out: Record<string, string> = {}
  const visit = (at: string, path: string): void => {
    for (const name of Fs.readdirSync(at).sort()) {
      const child = join(at, name)
      const stats = Fs.lstatSync(child)
      out[path + name] = line(child, stats)
      if (stats.isDirectory()) visit(child, `${path}${name}/`)
    }
  }
  visit(top, "")
  return out
}

export const openDescriptors = (): number => Fs.readdirSync("/proc/self/fd").length

/** Returns the open descriptors of this process below a directory. */
export const openBelow = (root: string): ReadonlyArray<{ readonly descriptor: number; readonly at: string }> =>
  Fs.readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      const at = Fs.readlinkSync(`/proc/self/fd/${name}`)
      return at.startsWith(root) ? [{ descriptor: Number(name), at }] : []
    } catch {
      return []
    }
  })

export const host = (root: string, options?: Partial<PosixHost.PosixHostOptions>): Effect.Effect<Algebra, never, Scope.Scope> =>
  Effect.map(Effect.orDie(PosixHost.make({ root, ...options })), make)

/** Runs the effect in its own scope and fails if the number of open descriptors has grown. */
export const losingNothing = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const before = openDescriptors()
    return Effect.tap(Effect.scoped(effect), () =>
      Effect.sync(() => {
        const after = openDescriptors()
        if (after > before) throw new Error(`${after - before} descriptors more than before`)
      })
    )
  })
