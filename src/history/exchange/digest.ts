/**
 * The digest of a staged file, symlink or tree: its kinds, names, targets and contents, and its permission bits if all
 * are known.
 *
 * Recovery compares the digest before it puts an entry in place.
 */
import * as Effect from "effect/Effect"
import { createHash, type Hash } from "../../runtime/node.ts"
import { at as locate } from "../../engine/directories.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import type { Move } from "./plan.ts"

export const makeHasher = (): Hash => createHash("sha256")

interface StagedFields {
  readonly path: FsPath.FsPath
  readonly mode: number | undefined
}

export type Staged =
  | (StagedFields & { readonly kind: "file"; readonly hash: string })
  | (StagedFields & { readonly kind: "symlink"; readonly target: string })
  | (StagedFields & { readonly kind: "directory" })

const sha256 = (value: unknown): string => makeHasher().update(JSON.stringify(value)).digest("hex")

/** Returns the digest of a tree. In `entries` every directory must come before its contents. */
const treeDigest = (entries: ReadonlyArray<Staged>, hasBits: boolean): string => {
  const inside = new Map<FsPath.FsPath, Array<readonly [name: string, digest: string]>>()
  let digest = ""
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]!
    const bits = hasBits && entry.kind !== "symlink" ? entry.mode : null
    const content =
      entry.kind === "file"
        ? entry.hash
        : entry.kind === "symlink"
          ? entry.target
          : (inside.get(entry.path) ?? []).sort(([a], [b]) => FsPath.compare(a, b))
    inside.delete(entry.path)
    digest = sha256([entry.kind, bits, content])
    const above = FsPath.parent(entry.path)
    const siblings = inside.get(above)
    if (siblings === undefined) inside.set(above, [[FsPath.name(entry.path), digest]])
    else siblings.push([FsPath.name(entry.path), digest])
  }
  return digest
}

export type StagedDigest = Required<Pick<Move, "digest" | "hasBits">>

export const digestStaged = (entries: ReadonlyArray<Staged>): StagedDigest => {
  const hasBits = entries.every(({ kind, mode }) => kind === "symlink" || mode !== undefined)
  return { digest: treeDigest(entries, hasBits), hasBits }
}

const blockBytes = 1024 * 1024

const hashAt = (port: Backend, path: FsPath.FsPath): Effect.Effect<string, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { read } = yield* port.open(path)
      const hash = makeHasher()
      for (let offset = 0; ;) {
        const bytes = yield* read(offset, blockBytes)
        if (bytes.length === 0) return hash.digest("hex")
        hash.update(bytes)
        offset += bytes.length
      }
    })
  )

const noLinks: Fault = { _tag: "Unsupported", feature: "symbolic links" }

const readStagedEntry = (
  port: Backend,
  path: FsPath.FsPath,
  { kind, mode }: FileStat
): Effect.Effect<Staged | undefined, Fault> => {
  const common = { path, mode: mode === undefined ? undefined : mode & 0o777 }
  if (kind === "file") return Effect.map(hashAt(port, path), (hash) => ({ ...common, kind, hash }))
  if (kind === "directory") return Effect.succeed({ ...common, kind })
  if (kind !== "symlink") return Effect.succeed(undefined)
  return Effect.map(port.links?.read(path) ?? Effect.fail(located(noLinks, path)), (target) => ({ ...common, kind, target }))
}

export const isStagedEntry = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  { digest, hasBits = false, next }: Move,
  stat: FileStat
): Effect.fn.Return<boolean, Fault> {
  if (stat.kind !== next || digest === undefined) return false
  const entries: Array<Staged> = []
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const found = path === top ? stat : yield* locate(path, port.stat(path))
    const entry = found && (yield* locate(path, readStagedEntry(port, path, found)))
    if (entry === undefined) return false
    entries.push(entry)
    if (entry.kind !== "directory") continue
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPath.join(path, keyOf(child)))
  }
  return treeDigest(entries, hasBits) === digest
})
