import { is as isFault } from "../../model/Fault.ts"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Matcher from "../../engine/matcher.ts"
import { list } from "../../engine/options.ts"
import { removeTree } from "../../engine/remove.ts"
import { resolve } from "../../engine/resolve.ts"
import { type Algebra, make as makeFilesystem } from "../../filesystem/Filesystem.ts"
import { Snapshots } from "../../history/snapshots/tag.ts"
import { SnapshotError } from "../../history/errors.ts"
import type { Operations, RestoreOptions } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import type { Change } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { unlimited } from "../../model/Limits.ts"
import { type Backend, type Child, follow, keyOf } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { TakingBack } from "../../port/Rules.ts"
import { relativeTarget } from "../../port/absoluteLinks.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { type Access, type Refused, refused, type Touch } from "../definition.ts"
import { type Invocation, layer, type Policy } from "./core.ts"

/**
 * Globs that match paths, for each kind of access.
 *
 * @since 0.1.0
 */
export interface Globs {
  readonly read?: string | ReadonlyArray<string> | undefined
  readonly write?: string | ReadonlyArray<string> | undefined
  readonly delete?: string | ReadonlyArray<string> | undefined
}

/**
 * The paths that tools may read, write and delete.
 *
 * @since 0.1.0
 */
export interface AccessOptions {
  /** The only paths that are permitted. @default everything */
  readonly allow?: Globs | undefined
  /** The paths that are forbidden, even if `allow` matches them. @default nothing */
  readonly deny?: Globs | undefined
}

interface Rules {
  readonly asFile: (access: Access, path: FsPath.FsPath) => boolean
  /**
   * Tests whether an access to a directory is permitted. A directory above a permitted path may be seen and created, but not
   * removed.
   */
  readonly asDirectory: (access: Access, path: FsPath.FsPath) => boolean
  readonly restricts: (access: Access) => boolean
}

interface PathSet {
  readonly names: (path: FsPath.FsPath, isDirectory: boolean) => boolean
  readonly reaches: (path: FsPath.FsPath) => boolean
}

const compile = (globs: string | ReadonlyArray<string>, argument: string, caseSensitive: boolean): Matcher.Matcher => {
  const matcher = Matcher.compile(list(globs), { argument, strict: true }, { caseSensitive, limits: unlimited })
  if (isFault(matcher)) throw new RangeError(`access: ${argument}: ${String(matcher["detail"])}`)
  return matcher
}

const matcherSet = (matcher: Matcher.Matcher, spell: (path: string) => string): PathSet => {
  const walk = (path: FsPath.FsPath, isDirectory: boolean): { readonly named: boolean; readonly open: boolean } => {
    let state: Matcher.State | undefined = matcher.start
    const names = FsPath.segments(spell(path) as FsPath.FsPath)
    for (const [index, name] of names.entries()) {
      if (state === undefined) return { named: false, open: false }
      if (matcher.matches(state, name, index < names.length - 1 || isDirectory)) return { named: true, open: true }
      state = matcher.below(state, name)
    }
    return { named: false, open: state !== undefined }
  }
  return { names: (path, isDirectory) => walk(path, isDirectory).named, reaches: (path) => walk(path, true).open }
}

/** The functions that respell a name. A case-insensitive or normalising disk may treat all their results as the same name. */
const spellings: ReadonlyArray<(text: string) => string> = [
  (text) => text,
  (text) => text.normalize("NFC"),
  (text) => FsPath.fold(text.normalize("NFC")),
  (text) => FsPath.fold(text.toUpperCase()).normalize("NFC")
]

const unionOf = (sides: ReadonlyArray<PathSet>): PathSet => ({
  names: (path, isDirectory) => sides.some((side) => side.names(path, isDirectory)),
  reaches: (path) => sides.some((side) => side.reaches(path))
})

const deniedBy = (globs: string | ReadonlyArray<string>, argument: string, caseSensitive: boolean): PathSet => {
  const given = compile(globs, argument, caseSensitive)
  if (caseSensitive) return matcherSet(given, (path) => path)
  const respelt = spellings.map((spell) => compile(list(globs).map(spell), argument, false))
  return unionOf(respelt.flatMap((matcher) => spellings.map((spell) => matcherSet(matcher, spell))))
}

const allowedBy = (globs: string | ReadonlyArray<string>, argument: string, caseSensitive: boolean): PathSet =>
  matcherSet(compile(globs, argument, caseSensitive), (path) => path)

const allPaths: PathSet = { names: () => true, reaches: () => true }
const noPaths: PathSet = { names: () => false, reaches: () => false }

export const make = ({ allow = {}, deny = {} }: AccessOptions, caseSensitive: boolean): Rules => {
  const sidesOf = (access: Access): { readonly allowed: PathSet; readonly denied: PathSet } => ({
    allowed: allow[access] === undefined ? allPaths : allowedBy(allow[access], `allow.${access}`, caseSensitive),
    denied: deny[access] === undefined ? noPaths : deniedBy(deny[access], `deny.${access}`, caseSensitive)
  })
  const sides = { read: sidesOf("read"), write: sidesOf("write"), delete: sidesOf("delete") }

  const isNamed = (access: Access, path: FsPath.FsPath, isDirectory: boolean): boolean =>
    !sides[access].denied.names(path, isDirectory) && sides[access].allowed.names(path, isDirectory)
  const leadsToNamed = (access: Access, path: FsPath.FsPath): boolean =>
    path === FsPath.root || (!sides[access].denied.names(path, true) && sides[access].allowed.reaches(path))

  return {
    asFile: (access, path) => isNamed("read", path, false) && (access === "read" || isNamed(access, path, false)),
    asDirectory: (access, path) =>
      leadsToNamed("read", path) &&
      (access === "read" || (access === "write" ? leadsToNamed(access, path) : isNamed(access, path, true))),
    restricts: (access) => [allow.read, deny.read, allow[access], deny[access]].some((globs) => globs !== undefined)
  }
}

// Applies the rules in a decorator of the backend port, which no caller can bypass. Links are resolved above the port. The
// decorator therefore checks the target of each link, and each step of a composed operation, like any other path.

const refusal: Fault = { _tag: "AccessDenied", why: "policy" }
const denied: Effect.Effect<never, Fault> = Effect.fail(refusal)

/**
 * Tests whether a path is the temporary file of a write in progress. A move between a temporary file and another path is judged
 * by the other path.
 */
const isTemporary = (path: FsPath.FsPath): boolean => TemporaryNames.hasNameInProgress(path)

type Kind = FileStat["kind"]

/**
 * Tests whether a path is visible. A missing path is judged like a directory, so that the result reveals nothing about hidden
 * paths.
 */
const isPathVisible = (rules: Rules, path: FsPath.FsPath, kind: Kind | undefined): boolean =>
  kind === "directory" || kind === undefined
    ? rules.asDirectory("read", path)
    : rules.asFile("read", path) || (kind === "symlink" && rules.asDirectory("read", path))

const isLinkTextVisible = (rules: Rules, link: FsPath.FsPath, text: string): boolean => {
  let current: FsPath.FsPath = FsPath.parent(link)
  for (const segment of text.split("/")) {
    const next = FsPath.parse(`${current}/${segment}`)
    // The link leads out of the root. Report the link as visible, so that its resolution fails with the usual error.
    if (typeof next !== "string") return true
    current = next
    if (!rules.asDirectory("read", current) && !rules.asFile("read", current)) return false
  }
  return true
}

const confine = (self: Backend, rules: Rules): Backend => {
  const { attributes, hostRoots, links, watch } = self
  const may = (access: Access, path: FsPath.FsPath, kind: Kind | undefined): boolean =>
    isTemporary(path) || (kind === "directory" ? rules.asDirectory(access, path) : rules.asFile(access, path))
  const maySee = (path: FsPath.FsPath, kind: Kind | undefined): boolean => isTemporary(path) || isPathVisible(rules, path, kind)
  const kindOf = (path: FsPath.FsPath) => Effect.map(self.stat(path), (stat) => stat?.kind)
  const ifPermitted = <A, E, R>(permitted: boolean, effect: () => Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    permitted ? effect() : denied

  const stat: Backend["stat"] = (path) =>
    ifPermitted(maySee(path, "directory") || maySee(path, "file"), () =>
      Effect.flatMap(self.stat(path), (found) => ifPermitted(maySee(path, found?.kind), () => Effect.succeed(found)))
    )
  const list: Backend["list"] = (path) =>
    ifPermitted(maySee(path, "directory"), () =>
      Effect.map(self.list(path), (children) => children.filter(({ kind, name }) => maySee(FsPath.join(path, name), kind)))
    )

  const checkBelow = Effect.fnUntraced(function* (
    top: FsPath.FsPath,
    permits: (path: FsPath.FsPath, child: Child) => boolean
  ): Effect.fn.Return<void, Fault> {
    const pending = [{ at: top, named: top }]
    for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
      for (const child of yield* self.list(current.at)) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const named = FsPath.join(current.named, child.name)
        if (!permits(named, child)) return yield* denied
        if (child.kind === "directory") pending.push({ at: FsPath.join(current.at, keyOf(child)), named })
      }
    }
  })

  const remove: Backend["remove"] = (path) =>
    Effect.withFiber((fiber) =>
      fiber.getRef(TakingBack)
        ? self.remove(path)
        : Effect.flatMap(kindOf(path), (kind) => ifPermitted(may("delete", path, kind), () => self.remove(path)))
    )

  const rename: Backend["rename"] = (from, to, options) =>
    Effect.flatMap(kindOf(from), (kind) => {
      // A write and a removal move the old file aside. The permission to remove it was checked when the removal began.
      const mayMoveAway = may("delete", from, kind) || (kind !== "directory" && isTemporary(to) && may("write", from, kind))
      if (!mayMoveAway || !may("write", to, kind)) return denied
      const moved = self.rename(from, to, options)
      if (kind !== "directory" || isTemporary(from)) return moved
      const inside = checkBelow(from, (path, child) => {
        const target = FsPath.below(to, FsPath.relative(from, path))
        return may("delete", path, child.kind) && may("write", target, child.kind)
      })
      return Effect.andThen(inside, moved)
    })

  const checkLinkTarget = (link: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.catch(Effect.asVoid(resolve(confined, link)), (fault) =>
      fault._tag === "AccessDenied" && fault["why"] === "policy" ? Effect.fail(fault) : Effect.void
    )

  const confined: Backend = {
    ...self,
    perform: undefined,
    explore: undefined,
    history: undefined,
    hostRoots: hostRoots && {
      ...hostRoots,
      settleTransactions: (permits) =>
        hostRoots.settleTransactions((path) => may("write", path, "file") && may("delete", path, "file") && permits(path))
    },
    rules: { ...self.rules, keeps: (path) => self.rules?.keeps?.(path) ?? (may("delete", path, "file") ? undefined : refusal) },
    stat,
    list,
    open: (path) => ifPermitted(may("read", path, "file"), () => self.open(path)),
    write: (path, bytes, mode, how) => ifPermitted(may("write", path, "file"), () => self.write(path, bytes, mode, how)),
    makeDirectory: (path) => ifPermitted(may("write", path, "directory"), () => self.makeDirectory(path)),
    remove,
    rename,
    links: links && {
      read: (path) =>
        ifPermitted(maySee(path, "symlink"), () =>
          Effect.flatMap(links.read(path), (text) =>
            ifPermitted(isLinkTextVisible(rules, path, relativeTarget(links, path, text)), () =>
              Effect.as(checkLinkTarget(path), text)
            )
          )
        ),
      follow: (path) => ifPermitted(maySee(path, "symlink"), () => follow(links, path)),
      relative: links.relative,
      make: (path, text) =>
        ifPermitted(may("write", path, "file") && isLinkTextVisible(rules, path, relativeTarget(links, path, text)), () =>
          links.make(path, text)
        )
    },
    attributes: attributes && {
      set: (path, values) => ifPermitted(may("write", path, "file"), () => attributes.set(path, values))
    },
    watch:
      watch &&
      ((path) =>
        maySee(path, "directory")
          ? Stream.filter(watch(path), (event) => maySee(event.path, "file"))
          : Stream.fromEffect(denied))
  }
  return {
    ...confined,
    perform: Request.handlers({
      // Check all entries first. Otherwise a hidden entry could make the removal fail after other entries were removed.
      RemoveTree: ({ path }) =>
        Effect.andThen(
          ifPermitted(may("delete", path, "directory"), () =>
            checkBelow(path, (path, child) => may("delete", path, child.kind))
          ),
          Effect.asSome(removeTree(confined, path))
        )
    })
  }
}

export const confined = (self: Algebra, rules: Rules): Algebra => makeFilesystem(confine(self.port, rules))

const refusedError = (operation: string): SnapshotError =>
  new SnapshotError({
    operation,
    reason: "refused",
    detail: "a policy forbids snapshots unless every file may be read and changed"
  })

const isVisible =
  (rules: Rules) =>
  ({ path }: Change): boolean =>
    rules.asFile("read", path) && rules.asDirectory("read", path)

const isPermitted =
  (rules: Rules) =>
  ({ _tag, path }: Change): boolean => {
    const access = _tag === "Removed" ? "delete" : "write"
    return rules.asFile(access, path) && rules.asDirectory(access, path)
  }

const isAddressable = ({ path }: Change): boolean => FsPath.parse(path) === path

const separablePaths = (changes: ReadonlyArray<Change>, rules: Rules): ReadonlyArray<FsPath.FsPath> => {
  const permits = isPermitted(rules)
  const refused = changes.filter((change) => !permits(change) || !isAddressable(change))
  return changes
    .filter((change) => permits(change) && isAddressable(change))
    .map(({ path }) => path)
    .filter((path) => !refused.some((other) => FsPath.isWithin(path, other.path)))
}

const restorePermitted = (self: Operations, rules: Rules, snapshot: FilesystemSnapshot, options: RestoreOptions) =>
  Effect.gen(function* () {
    const { changes } = yield* self.restore(snapshot, { ...options, dryRun: true })
    const paths = separablePaths(changes, rules)
    if (paths.length === 0) return { changes: [] }
    const restored = yield* self.restore(snapshot, { ...options, paths })
    return { ...restored, changes: restored.changes.filter(isVisible(rules)) }
  })

const confinedSnapshots = (self: Operations, rules: Rules): Operations => ({
  ...self,
  restore: (snapshot, options = {}) =>
    rules.restricts("write") || rules.restricts("delete")
      ? restorePermitted(self, rules, snapshot, options)
      : self.restore(snapshot, options),
  diff: (from, to) => Effect.map(self.diff(from, to), (changes) => changes.filter(isVisible(rules))),
  view: (snapshot) => Effect.map(self.view(snapshot), (past) => confined(past, rules)),
  fork: () => Effect.fail(refusedError("fork")),
  merge: () => Effect.fail(refusedError("merge"))
})

const pastParticiples: Readonly<Record<Touch["access"], string>> = { read: "read", write: "written", delete: "deleted" }

const refusalOf = ({ access, path }: Touch): Refused =>
  refused(
    `${path === FsPath.root ? "The root, with everything below it," : JSON.stringify(path)} may not be ${pastParticiples[access]}, because a policy forbids it.`,
    "Go on without this path, or ask the user; other tools cannot access it either."
  )

/**
 * Tests whether a call may access a path. A call that runs a program in a sandbox declares a write and a delete of the
 * root. Such a call may affect any path, so it needs unrestricted access. The access of snapshot tools is checked
 * separately.
 */
const permits = (rules: Rules, { past }: Invocation, { access, path }: Touch): boolean =>
  path === FsPath.root && access !== "read"
    ? past !== undefined || !rules.restricts(access)
    : rules.asFile(access, path) || rules.asDirectory(access, path)

/**
 * Restricts tools to paths that are allowed and not denied; a denial wins. The globs have the syntax of the tool `glob`. A name
 * without a slash matches at any depth, and a match includes everything below it. On a case-insensitive filesystem the globs are
 * case-insensitive too.
 *
 * - No listing, search or suggestion shows a path that may not be read. A call on the path itself fails with the policy's
 * error, whether the path exists or not. Directories above readable paths are visible, but only their readable entries are.
 * - A symlink is judged by its name and by its target. Each hard link of a file is judged by its own name.
 * - A directory that contains anything undeletable can be neither removed nor moved.
 * - Programs in a sandbox are refused, because the policy cannot confine them. A restore of a snapshot omits paths that may not
 * be changed.
 *
 * Throws a RangeError for an invalid or misleading glob, because that is a programming error. A glob is misleading if it has a
 * comma or `|` outside braces, a backslash before a letter, a leading `!`, or a segment that no path has. A glob is invalid if
 * it has unclosed or empty braces or brackets, or an unknown character class.
 *
 * @example
 * ```ts
 * const policy = Policy.access({ deny: { write: ["notes/**"] } })
 * const handlers = FilesystemToolkit.layer.pipe(Layer.provide(policy))
 * const tools = yield* Effect.provide(FilesystemToolkit.toolkit, handlers)
 * yield* Stream.runDrain(yield* tools.handle("write_file", { path: "notes/new.md", content: "one" }))
 * yield* fs.exists("notes/new.md") // => false
 * ```
 * @category policies
 * @since 0.1.0
 */
export const access = (options: AccessOptions): Layer.Layer<never> => {
  const caseSensitiveRules = make(options, true)
  const caseInsensitiveRules = make(options, false)
  const rulesOf = ({ port }: Algebra): Rules => (port.info.caseSensitive ? caseSensitiveRules : caseInsensitiveRules)
  const views = new WeakMap<Algebra, Algebra>()
  const policy: Policy = {
    name: "access",
    filesystem: (self) => {
      const view = views.get(self) ?? confined(self, rulesOf(self))
      views.set(self, view)
      return view
    },
    services: (services, view) => {
      const snapshots = Context.getOrUndefined(services, Snapshots)
      return snapshots === undefined
        ? services
        : (Context.add(services, Snapshots, confinedSnapshots(snapshots, rulesOf(view))) as Context.Context<never>)
    },
    before: (invocation) => {
      const rules = rulesOf(invocation.filesystem)
      const refusedTouch = invocation.touches.find((touch) => !permits(rules, invocation, touch))
      return refusedTouch === undefined ? Effect.void : Effect.fail(refusalOf(refusedTouch))
    }
  }
  return layer(policy)
}
