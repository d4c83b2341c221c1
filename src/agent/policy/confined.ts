/**
 * Applies the rules in a decorator of the backend port, which no caller can bypass. Links are resolved above it, so the target
 * of a link and each step of a composed operation are judged like any other path.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { removeTree } from "../../engine/remove.ts"
import { resolve } from "../../engine/resolve.ts"
import { type Algebra, make } from "../../filesystem/Filesystem.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Child, follow, keyOf } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { relativeTarget } from "../../port/absoluteLinks.ts"
import { TakingBack } from "../../port/Rules.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Access } from "../definition.ts"
import type { Rules } from "./rules.ts"

const refusal: Fault = { _tag: "AccessDenied", why: "policy" }
const denied: Effect.Effect<never, Fault> = Effect.fail(refusal)

/**
 * Tests for a temporary file of a write in progress. A move between such a file and another path is judged by the other path.
 */
const isTemporary = (path: FsPath.FsPath): boolean => TemporaryNames.hasNameInProgress(path)

type Kind = FileStat["kind"]

/**
 * Tests whether a path is visible. A missing path is judged as a directory, so that the answer reveals nothing about hidden
 * paths.
 */
export const isPathVisible = (rules: Rules, path: FsPath.FsPath, kind: Kind | undefined): boolean =>
  kind === "directory" || kind === undefined
    ? rules.asDirectory("read", path)
    : rules.asFile("read", path) || (kind === "symlink" && rules.asDirectory("read", path))

/** Tests whether every directory in a link's text, and its target, is visible. */
const isLinkTextVisible = (rules: Rules, link: FsPath.FsPath, text: string): boolean => {
  let current: FsPath.FsPath = FsPath.parent(link)
  for (const segment of text.split("/")) {
    const next = FsPath.parse(`${current}/${segment}`)
    // The link leads out of the root, which is reported as usual.
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

  /** Checks every entry below a directory, including hidden ones. */
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
      // Moving a file aside is part of a write, or of a removal that was judged when it began (Rules.keeps).
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
      // Remove all or nothing: a hidden entry would keep the directory while the rest is gone.
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

export const confined = (self: Algebra, rules: Rules): Algebra => make(confine(self.port, rules))
