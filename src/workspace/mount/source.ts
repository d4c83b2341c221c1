/**
 * Opens the sources of mounts by the real paths of their allowed roots. The allowed root is opened, not the source, so that a
 * directory that is later replaced by a link does not lead outside.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, isAbsolute, join, relative, sep } from "../../runtime/node.ts"
import type { FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import { MountError } from "./model.ts"
import type { Request } from "./request.ts"

export interface Root {
  readonly real: string
  readonly port: Backend
}

export interface Source {
  readonly root: Root
  readonly at: FsPath.FsPath
}

export interface OpenDirectory {
  (root: string): Effect.Effect<Backend, FsError, Scope.Scope>
}

/** The function that opens a directory of the machine. Tests replace it. */
export const OpenDirectory: Context.Reference<OpenDirectory> = Context.Reference<OpenDirectory>(
  "fs-algebra/workspace/OpenDirectory",
  {
    defaultValue: () => (root) =>
      Effect.flatMap(
        Effect.promise(() =>
          process.platform === "win32" ? import("../../backends/WindowsHost.ts") : import("../../backends/PosixHost.ts")
        ),
        (host) => host.make({ root })
      )
  }
)

const inStoreDetail = "it lies in a store of snapshots"

const statOf = (path: string): Fs.Stats | undefined => {
  try {
    return Fs.lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

const realRoot = (root: string): string | MountError => {
  const rootError = (reason: MountError["reason"], detail: string) =>
    new MountError({ hostPath: String(root), reason, detail: `it is an allowed root, and ${detail}` })
  const isName = typeof root === "string" && isAbsolute(root) && !root.includes("\0") && !root.split(sep).includes("..")
  if (!isName) return rootError("invalid", "not an absolute path")
  const real = OpenRoots.resolvePath(root)
  const stat = real === undefined ? undefined : statOf(real)
  if (real === undefined || stat === undefined) return rootError("missing", "there is no such directory")
  if (!stat.isDirectory()) return rootError("invalid", "not a directory")
  return OpenRoots.isInStore(real) ? rootError("outside", inStoreDetail) : real
}

export const realRoots = (allowedRoots: ReadonlyArray<string>): ReadonlyArray<string> | MountError => {
  const out: Array<string> = []
  for (const root of allowedRoots) {
    const real = realRoot(root)
    if (typeof real !== "string") return real
    if (!out.includes(real)) out.push(real)
  }
  return out
}

/** Returns a path of the machine relative to a root that contains it; `undefined` if no valid path exists for it. */
export const pathWithin = (root: string, real: string): FsPath.FsPath | undefined => {
  const path = FsPath.fromSegments(relative(root, real).split(sep).filter(Boolean))
  return FsPath.parse(path) === path ? path : undefined
}

interface FoundSource {
  readonly root: string
  readonly at: FsPath.FsPath
}

type Reason = readonly [reason: MountError["reason"], detail: string]

const resolveCandidate = (
  candidate: string,
  triedRoot: string | undefined,
  roots: ReadonlyArray<string>
): FoundSource | Reason => {
  const real = OpenRoots.resolvePath(candidate)
  if (real === undefined) return ["missing", "the way there ends at a link that leads nowhere, or at what may not be entered"]
  const root = [triedRoot, ...roots].find((root) => root !== undefined && OpenRoots.isInside(root, real))
  if (root === undefined) return ["outside", "it lies in none of the allowed roots"]
  if (OpenRoots.isInStore(real)) return ["outside", inStoreDetail]
  const at = pathWithin(root, real)
  if (at === undefined) return ["invalid", "it leads to a name that no path can hold"]
  return statOf(real) === undefined ? ["missing", "there is nothing"] : { root, at }
}

const isFound = (found: FoundSource | Reason): found is FoundSource => "root" in found

/** Finds the source in the allowed roots. The error "outside" takes precedence over "missing". */
export const findSource = (
  { hostPath, isAbsolute, names }: Request,
  roots: ReadonlyArray<string>
): FoundSource | MountError => {
  const refuse = ([reason, detail]: Reason) => new MountError({ hostPath, reason, detail })
  if (roots.length === 0) return refuse(["outside", "no directory is allowed"])
  let firstReason: Reason | undefined
  for (const root of isAbsolute ? [undefined] : roots) {
    const found = resolveCandidate(root === undefined ? hostPath : join(root, ...names), root, roots)
    if (isFound(found)) return found
    if (firstReason === undefined || found[0] === "outside") firstReason = found
  }
  return refuse(firstReason!)
}

/** Returns a function that opens each root once. */
export const makeOpener = Effect.gen(function* () {
  const open = yield* OpenDirectory
  const opened = new Map<string, Root>()
  return Effect.fnUntraced(function* (real: string, hostPath: string): Effect.fn.Return<Root, MountError, Scope.Scope> {
    const known = opened.get(real)
    if (known !== undefined) return known
    const port = yield* Effect.mapError(open(real), (error) => {
      const reason = error._tag === "NotFound" || error._tag === "NotADirectory" ? "missing" : "unreadable"
      return new MountError({ hostPath, reason, detail: `its allowed root: ${error.message}` })
    })
    const root: Root = { real, port }
    opened.set(real, root)
    return root
  })
})
