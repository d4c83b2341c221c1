/** Real directories under the service: made with the tree of `operations.ts`, looked at by node:fs alone, gone with their scope. */
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

/** Whether to run what needs it; where it is not there and not demanded, one line says so. */
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

/** Tells whether the shell finds the command. Running it tells less: `unzip --version` fails. */
export const has = (command: string): boolean => succeeds("sh", "-c", 'command -v -- "$1"', "sh", command)

const directoryIn = (base: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(base), "fs-algebra-fault-"))),
    (path) => Effect.sync(() => execFileSync("rm", ["-rf", path]))
  )

/** On the machine's disk. */
export const directory = directoryIn(tmpdir())

/** In memory, where there is such a disk, for what is made thousands of times. */
export const fastDirectory = directoryIn(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir())

/** Mounts, for the scope. */
export const mounted = (at: string, ...args: ReadonlyArray<string>): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      execFileSync("mount", [...args, at])
      return at
    }),
    () => Effect.sync(() => execFileSync("umount", [at]))
  )

/** A disk in memory, for the scope. */
export const disk = (options: string, at?: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.flatMap(at === undefined ? directory : Effect.succeed(at), (at) => mounted(at, "-t", "tmpfs", "-o", options, "tmpfs"))

/** Puts the tree there, parents made, through node:fs. */
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

/** Every name below a directory, hidden ones too, with kind, permission bits and content. Nothing is followed. */
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

/** What this process has open in a tree. */
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

/** Runs with a scope of its own, and fails where that has cost a descriptor. */
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
