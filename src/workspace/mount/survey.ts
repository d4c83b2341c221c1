/**
 * Finds the files of a mount. Opens no file, and reads only directories that can contain a match of the globs. The size of each
 * file is recorded, so that the copy never exceeds the budget.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Matcher from "../../engine/matcher.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import { type Backend, type Child, keyOf } from "../../port/Backend.ts"
import { Fs, isAbsolute, join, relative, sep } from "../../runtime/node.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { type LeftOut, MountError, type Request } from "./model.ts"

// Opens the sources of mounts. Opens the allowed root by its real path instead of the source. A directory that is later
// replaced by a link can therefore not lead outside the root.

interface Root {
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

/** The function that opens a directory on the machine, as a reference that tests replace. */
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

const inStoreDetail = "the path is inside a store of snapshots"

const statOf = (path: string): Fs.Stats | undefined => {
  try {
    return Fs.lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

const realRoot = (root: string): string | MountError => {
  const rootError = (reason: MountError["reason"], detail: string) =>
    new MountError({ hostPath: String(root), reason, detail: `the path is an allowed root, but ${detail}` })
  const isName = typeof root === "string" && isAbsolute(root) && !root.includes("\0") && !root.split(sep).includes("..")
  if (!isName) return rootError("invalid", "it is not an absolute path")
  const real = OpenRoots.resolvePath(root)
  const stat = real === undefined ? undefined : statOf(real)
  if (real === undefined || stat === undefined) return rootError("missing", "it does not exist")
  if (!stat.isDirectory()) return rootError("invalid", "it is not a directory")
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

/** Returns a path on the machine relative to a root that contains it. Returns `undefined` if the relative path is not valid. */
const pathWithin = (root: string, real: string): FsPath.FsPath | undefined => {
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
  if (real === undefined) return ["missing", "the path has a dangling link, or a directory that this user may not enter"]
  const root = [triedRoot, ...roots].find((root) => root !== undefined && OpenRoots.isInside(root, real))
  if (root === undefined) return ["outside", "the path is in none of the allowed roots"]
  if (OpenRoots.isInStore(real)) return ["outside", inStoreDetail]
  const at = pathWithin(root, real)
  if (at === undefined) return ["invalid", "the target of the path has a name that no path can represent"]
  return statOf(real) === undefined ? ["missing", "there is no such file or directory"] : { root, at }
}

/** Finds the source in the allowed roots. If no root has the source, an error "outside" has priority over "missing". */
export const findSource = (
  { hostPath, isAbsolute, names }: Request,
  roots: ReadonlyArray<string>
): FoundSource | MountError => {
  const refuse = ([reason, detail]: Reason) => new MountError({ hostPath, reason, detail })
  if (roots.length === 0) return refuse(["outside", "allowedRoots is empty, so no directory can be mounted"])
  let firstReason: Reason | undefined
  for (const root of isAbsolute ? [undefined] : roots) {
    const found = resolveCandidate(root === undefined ? hostPath : join(root, ...names), root, roots)
    if ("root" in found) return found
    if (firstReason === undefined || found[0] === "outside") firstReason = found
  }
  return refuse(firstReason!)
}

export const makeOpener = Effect.gen(function* () {
  const open = yield* OpenDirectory
  const opened = new Map<string, Root>()
  return Effect.fnUntraced(function* (real: string, hostPath: string): Effect.fn.Return<Root, MountError, Scope.Scope> {
    const known = opened.get(real)
    if (known !== undefined) return known
    const port = yield* Effect.mapError(open(real), (error) => {
      const reason = error._tag === "NotFound" || error._tag === "NotADirectory" ? "missing" : "unreadable"
      return new MountError({ hostPath, reason, detail: `the allowed root cannot be opened: ${error.message}` })
    })
    const root: Root = { real, port }
    opened.set(real, root)
    return root
  })
})

export interface SourceFile {
  /** The path below the source, or the name of the source if it is a file. */
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
  readonly sizeBytes: number
  readonly mode: number | undefined
}

export interface Survey {
  readonly isFile: boolean
  readonly files: ReadonlyArray<SourceFile>
  readonly bytes: number
  readonly leftOut: ReadonlyArray<LeftOut>
}

/** The largest number of links that are followed, because a few links that lead to each other can form a tree of any size. */
const maxFollowedLinks = 10_000

const quoted = (path: string): string => JSON.stringify(path)

const faultDetails: Partial<Record<Fault["_tag"], readonly [reason: MountError["reason"], detail: string]>> = {
  NotFound: ["missing", "no longer exists"],
  NotADirectory: ["changed", "is no longer a directory"],
  NotAFile: ["changed", "is no longer a file"],
  InvalidArgument: ["changed", "is no longer a link"],
  AccessDenied: ["unreadable", "may not be read"]
}

export const mountErrorOf = ({ hostPath }: Request, path: FsPath.FsPath, fault: Fault): MountError => {
  const [reason, detail] =
    faultDetails[fault._tag] ?? (["unreadable", `cannot be read: ${String(fault["detail"] ?? fault._tag)}`] as const)
  if (path === FsPath.root) return new MountError({ hostPath, reason, detail: `the source ${detail}` })
  return new MountError({ hostPath, reason, path, detail: `${quoted(path)} ${detail}` })
}

interface Globs {
  readonly include: Matcher.Matcher | undefined
  readonly exclude: Matcher.Matcher | undefined
}

interface SurveyedDirectory {
  readonly above: SurveyedDirectory | undefined
  /** The real path inside the root. The path leads through no link. */
  readonly at: FsPath.FsPath
  readonly path: FsPath.FsPath
  /** True if a path can express the names of this directory and its parents. A name that is not valid text has no path. */
  readonly addressable: boolean
  /** True if the directory was reached through a link, so that it has another path too. */
  readonly isLinked: boolean
  readonly include: Matcher.State | undefined
  readonly exclude: Matcher.State | undefined
}

const isAncestor = (directory: SurveyedDirectory, at: FsPath.FsPath): boolean => {
  for (let ancestor: SurveyedDirectory | undefined = directory; ancestor !== undefined; ancestor = ancestor.above)
    if (ancestor.at === at) return true
  return false
}

class Surveyor {
  readonly #request: Request
  readonly #source: Source
  readonly #globs: Globs
  readonly files: Array<SourceFile> = []
  readonly leftOut: Array<LeftOut> = []
  bytes = 0
  readonly #below: Array<SurveyedDirectory> = []
  #followedLinks = 0

  constructor(request: Request, source: Source, globs: Globs) {
    this.#request = request
    this.#source = source
    this.#globs = globs
  }

  readonly surveyFile = Effect.suspend(() => {
    const { at } = this.#source
    const path = FsPath.fromSegments([FsPath.name(at)])
    const top = this.#top()
    return this.#isWanted(top, path, false) ? this.#add(path, at) : Effect.void
  })

  readonly surveyDirectory = Effect.gen({ self: this }, function* () {
    const pending = [this.#top()]
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      yield* this.#enter(directory)
      pending.push(...this.#below.splice(0))
    }
  })

  #top(): SurveyedDirectory {
    const { exclude, include } = this.#globs
    const base = { above: undefined, at: this.#source.at, path: FsPath.root, addressable: true, isLinked: false }
    return { ...base, include: include?.start, exclude: exclude?.start }
  }

  #enter(directory: SurveyedDirectory): Effect.Effect<void, MountError> {
    const { port } = this.#source.root
    return Effect.flatMap(
      Effect.mapError(port.list(directory.at), (fault) => mountErrorOf(this.#request, directory.path, fault)),
      (children) => Effect.forEach(children, (child) => this.#child(directory, child), { discard: true })
    )
  }

  #child(directory: SurveyedDirectory, child: Child): Effect.Effect<void, MountError> {
    const { kind, name } = child
    if (TemporaryNames.isInProgress(name)) return Effect.void
    const at = FsPath.join(directory.at, keyOf(child))
    if (kind === "symlink") return this.#link(directory, child, at)
    if (directory.isLinked && this.#isHidden(at, kind === "directory")) return Effect.void
    if (kind === "directory") return this.#directory(directory, child, at, directory.isLinked)
    if (!this.#isWanted(directory, name, false)) return Effect.void
    if (kind === "other") return this.#leaveOut(directory, name, "other")
    return this.#file(directory, child, at)
  }

  #file(directory: SurveyedDirectory, { addressable, name }: Child, at: FsPath.FsPath): Effect.Effect<void, MountError> {
    const path = FsPath.join(directory.path, name)
    if (directory.addressable && addressable) return this.#add(path, at)
    const detail = `${quoted(path)} has a name that no path can represent`
    return Effect.fail(new MountError({ hostPath: this.#request.hostPath, reason: "unreadable", path, detail }))
  }

  #directory(
    directory: SurveyedDirectory,
    { addressable, name }: Child,
    at: FsPath.FsPath,
    isLinked: boolean
  ): Effect.Effect<void, MountError> {
    const { exclude, include } = this.#globs
    if (this.#isExcluded(directory, name, true)) return Effect.void
    const included = include?.below(directory.include!, name)
    if (include !== undefined && included === undefined) return Effect.void
    this.#below.push({
      above: directory,
      at,
      path: FsPath.join(directory.path, name),
      addressable: directory.addressable && addressable,
      isLinked,
      include: included,
      exclude: directory.exclude && exclude!.below(directory.exclude, name)
    })
    return Effect.void
  }

  #link(directory: SurveyedDirectory, child: Child, at: FsPath.FsPath): Effect.Effect<void, MountError> {
    const { name } = child
    const isNamed = this.#isWanted(directory, name, false)
    if (!this.#request.followSymlinks) return isNamed ? this.#leaveOut(directory, name, "link") : Effect.void
    const [to, why] = this.#target(at)
    if (to === undefined) return isNamed ? this.#leaveOut(directory, name, why) : Effect.void
    if (++this.#followedLinks > maxFollowedLinks) {
      const detail = `the source has more than ${maxFollowedLinks} links to follow`
      return Effect.fail(new MountError({ hostPath: this.#request.hostPath, reason: "budget", detail }))
    }
    const stat = Effect.mapError(this.#source.root.port.stat(to), (fault) =>
      mountErrorOf(this.#request, FsPath.join(directory.path, name), fault)
    )
    return Effect.flatMap(stat, (found) => {
      if (this.#isHidden(to, found?.kind === "directory")) return Effect.void
      if (found?.kind === "directory") {
        if (isAncestor(directory, to)) return isNamed ? this.#leaveOut(directory, name, "loop") : Effect.void
        return this.#directory(directory, child, to, true)
      }
      if (!isNamed) return Effect.void
      if (found?.kind === "other") return this.#leaveOut(directory, name, "other")
      if (found?.kind !== "file") return this.#leaveOut(directory, name, "dangling")
      return this.#file(directory, child, to)
    })
  }

  /**
   * Returns the target of a link, or the reason why the link has no target inside the root. Opens neither the link nor any entry
   * outside the root.
   */
  #target(at: FsPath.FsPath): readonly [to: FsPath.FsPath] | readonly [to: undefined, why: LeftOut["why"]] {
    const { real } = this.#source.root
    const to = OpenRoots.resolvePath(join(real, ...FsPath.segments(at)))
    if (to === undefined) return [undefined, "dangling"]
    if (!OpenRoots.isInside(real, to) || OpenRoots.isInStore(to)) return [undefined, "outside"]
    const path = pathWithin(real, to)
    return path === undefined ? [undefined, "dangling"] : [path]
  }

  #isExcluded({ exclude }: SurveyedDirectory, name: string, isDirectory: boolean): boolean {
    return exclude !== undefined && this.#globs.exclude!.matches(exclude, name, isDirectory)
  }

  /** Tests whether the real path is excluded. Otherwise a link could include an excluded file under another name. */
  #isHidden(at: FsPath.FsPath, isDirectory: boolean): boolean {
    const { exclude } = this.#globs
    if (exclude === undefined || !FsPath.isWithin(this.#source.at, at)) return false
    const names = FsPath.segments(FsPath.relative(this.#source.at, at))
    let state: Matcher.State | undefined = exclude.start
    for (const [index, name] of names.entries()) {
      if (state === undefined) return false
      if (exclude.matches(state, name, isDirectory || index < names.length - 1)) return true
      state = exclude.below(state, name)
    }
    return false
  }

  #isWanted(directory: SurveyedDirectory, name: string, isDirectory: boolean): boolean {
    const { include } = this.#globs
    return (
      !this.#isExcluded(directory, name, isDirectory) &&
      (include === undefined || include.matches(directory.include!, name, isDirectory))
    )
  }

  #leaveOut(directory: SurveyedDirectory, name: string, why: LeftOut["why"]): Effect.Effect<void> {
    this.leftOut.push({ path: FsPath.join(directory.path, name), why })
    return Effect.void
  }

  #add(path: FsPath.FsPath, at: FsPath.FsPath): Effect.Effect<void, MountError> {
    const { hostPath, maxBytes } = this.#request
    return Effect.flatMap(
      Effect.mapError(this.#source.root.port.stat(at), (fault) => mountErrorOf(this.#request, path, fault)),
      (stat) => {
        if (stat === undefined) return Effect.fail(mountErrorOf(this.#request, path, { _tag: "NotFound" }))
        if (stat.kind !== "file") return Effect.fail(mountErrorOf(this.#request, path, { _tag: "NotAFile" }))
        const { mode, sizeBytes } = stat
        this.bytes += sizeBytes
        if (maxBytes !== undefined && this.bytes > maxBytes) {
          const detail = `the files of the mount exceed its limit of ${maxBytes} bytes`
          return Effect.fail(new MountError({ hostPath, reason: "budget", detail }))
        }
        this.files.push({ path, at, sizeBytes, mode: mode === undefined ? undefined : mode & 0o777 })
        return Effect.void
      }
    )
  }
}

const compile = Effect.fnUntraced(function* (
  { exclude, hostPath, include }: Request,
  caseSensitive: boolean
): Effect.fn.Return<Globs, MountError> {
  const context = { limits: yield* Limits, caseSensitive }
  const compiled = (argument: "include" | "exclude", patterns: ReadonlyArray<string>) => {
    if (patterns.length === 0) return Effect.succeed(undefined)
    const matcher = Matcher.compile(patterns, { argument, rules: argument === "exclude", strict: true }, context)
    return "_tag" in matcher
      ? Effect.fail(new MountError({ hostPath, reason: "invalid", detail: `${argument}: ${String(matcher["detail"])}` }))
      : Effect.succeed(matcher)
  }
  return { include: yield* compiled("include", include), exclude: yield* compiled("exclude", exclude) }
})

const byPath = (a: { readonly path: string }, b: { readonly path: string }): number => FsPath.compare(a.path, b.path)

export const survey = Effect.fnUntraced(function* (request: Request, source: Source): Effect.fn.Return<Survey, MountError> {
  const { port } = source.root
  const surveyor = new Surveyor(request, source, yield* compile(request, port.info.caseSensitive))
  const stat = yield* Effect.mapError(port.stat(source.at), (fault) => mountErrorOf(request, FsPath.root, fault))
  if (stat?.kind === "other") {
    const detail = "the source is neither a file nor a directory"
    return yield* Effect.fail(new MountError({ hostPath: request.hostPath, reason: "unreadable", detail }))
  }
  const isFile = stat?.kind === "file"
  yield* isFile ? surveyor.surveyFile : surveyor.surveyDirectory
  const { bytes, files, leftOut } = surveyor
  return { isFile, files: files.sort(byPath), bytes, leftOut: leftOut.sort(byPath) }
})
