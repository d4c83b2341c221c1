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
const isOurs = (path: FsPath.FsPath): boolean => TemporaryNames.isPathInProgress(path)

type Kind = FileStat["kind"]

/**
 * Tests whether a path is visible. A missing path is judged as a directory, so that the answer reveals nothing about hidden
 * paths.
 */
export const sees = (rules: Rules, path: FsPath.FsPath, kind: Kind | undefined): boolean =>
  kind === "directory" || kind === undefined
    ? rules.asDirectory("read", path)
    : rules.asFile("read", path) || (kind === "symlink" && rules.asDirectory("read", path))

/** Tests whether every directory in a link's text, and its target, is visible. */
const seesText = (rules: Rules, link: FsPath.FsPath, text: string): boolean => {
  let here: FsPath.FsPath = FsPath.parent(link)
  for (const segment of text.split("/")) {
    const next = FsPath.parse(`${here}/${segment}`)
    // The link leads out of the root, which is reported as usual.
    if (typeof next !== "string") return true
    here = next
    if (!rules.asDirectory("read", here) && !rules.asFile("read", here)) return false
  }
  return true
}

const confine = (self: Backend, rules: Rules): Backend => {
  const { attributes, hostRoots, links, watch } = self
  const may = (access: Access, path: FsPath.FsPath, kind: Kind | undefined): boolean =>
    isOurs(path) || (kind === "directory" ? rules.asDirectory(access, path) : rules.asFile(access, path))
  const maySee = (path: FsPath.FsPath, kind: Kind | undefined): boolean => isOurs(path) || sees(rules, path, kind)
  const kindOf = (path: FsPath.FsPath) => Effect.map(self.stat(path), (stat) => stat?.kind)
  const when = <A, E, R>(permitted: boolean, effect: () => Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    permitted ? effect() : denied

  const stat: Backend["stat"] = (path) =>
    when(maySee(path, "directory") || maySee(path, "file"), () =>
      Effect.flatMap(self.stat(path), (found) => when(maySee(path, found?.kind), () => Effect.succeed(found)))
    )
  const list: Backend["list"] = (path) =>
    when(maySee(path, "directory"), () =>
      Effect.map(self.list(path), (children) => children.filter(({ kind, name }) => maySee(FsPath.join(path, name), kind)))
    )

  /** Checks every entry below a directory, including hidden ones. */
  const below = Effect.fnUntraced(function* (
    top: FsPath.FsPath,
    permits: (path: FsPath.FsPath, child: Child) => boolean
  ): Effect.fn.Return<void, Fault> {
    const pending = [{ at: top, named: top }]
    for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
      for (const child of yield* self.list(here.at)) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const named = FsPath.join(here.named, child.name)
        if (!permits(named, child)) return yield* denied
        if (child.kind === "directory") pending.push({ at: FsPath.join(here.at, keyOf(child)), named })
      }
    }
  })

  const remove: Backend["remove"] = (path) =>
    Effect.withFiber((fiber) =>
      fiber.getRef(TakingBack)
        ? self.remove(path)
        : Effect.flatMap(kindOf(path), (kind) => when(may("delete", path, kind), () => self.remove(path)))
    )

  const rename: Backend["rename"] = (from, to, options) =>
    Effect.flatMap(kindOf(from), (kind) => {
      // Moving a file aside is part of a write, or of a removal that was judged when it began (Rules.keeps).
      const mayGo = may("delete", from, kind) || (kind !== "directory" && isOurs(to) && may("write", from, kind))
      if (!mayGo || !may("write", to, kind)) return denied
      const moved = self.rename(from, to, options)
      if (kind !== "directory" || isOurs(from)) return moved
      const inside = below(from, (path, child) => {
        const there = FsPath.below(to, FsPath.relative(from, path))
        return may("delete", path, child.kind) && may("write", there, child.kind)
      })
      return Effect.andThen(inside, moved)
    })

  const leadsToNothingHidden = (link: FsPath.FsPath): Effect.Effect<void, Fault> =>
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
      settle: (permits) =>
        hostRoots.settle((path) => may("write", path, "file") && may("delete", path, "file") && permits(path))
    },
    rules: { ...self.rules, keeps: (path) => self.rules?.keeps?.(path) ?? (may("delete", path, "file") ? undefined : refusal) },
    stat,
    list,
    open: (path) => when(may("read", path, "file"), () => self.open(path)),
    write: (path, bytes, mode, how) => when(may("write", path, "file"), () => self.write(path, bytes, mode, how)),
    makeDirectory: (path) => when(may("write", path, "directory"), () => self.makeDirectory(path)),
    remove,
    rename,
    links: links && {
      read: (path) =>
        when(maySee(path, "symlink"), () =>
          Effect.flatMap(links.read(path), (text) =>
            when(seesText(rules, path, relativeTarget(links, path, text)), () => Effect.as(leadsToNothingHidden(path), text))
          )
        ),
      follow: (path) => when(maySee(path, "symlink"), () => follow(links, path)),
      relative: links.relative,
      make: (path, text) =>
        when(may("write", path, "file") && seesText(rules, path, relativeTarget(links, path, text)), () =>
          links.make(path, text)
        )
    },
    attributes: attributes && { set: (path, values) => when(may("write", path, "file"), () => attributes.set(path, values)) },
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
          when(may("delete", path, "directory"), () => below(path, (path, child) => may("delete", path, child.kind))),
          Effect.asSome(removeTree(confined, path))
        )
    })
  }
}

export const confined = (self: Algebra, rules: Rules): Algebra => make(confine(self.port, rules))
