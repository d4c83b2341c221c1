/**
 * What of a filesystem goes into an archive, in the order of whole paths by code point. Whatever an import would refuse is found here,
 * before the first byte is written; contents are not looked at yet.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { type Fault, located } from "../../model/FsError.ts"
import { type FsPath, join, root } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import { type Backend, type Child, type Handle } from "../../port/Backend.ts"
import { inWalkOrder } from "../../port/order.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { ArchiveError } from "../errors.ts"
import { Budget, checkLink, collisionKey, judged, type NameRules, pathOf, refuse } from "./names.ts"

export type Item =
  | { readonly kind: "file"; readonly path: FsPath }
  | { readonly kind: "symlink"; readonly path: FsPath; readonly target: string }
  | { readonly kind: "directory"; readonly path: FsPath; readonly mode: number | undefined; readonly isEmpty: boolean }

export interface SurveyOptions {
  readonly limits: LimitsShape
  /** Left out: the archive itself, where it is made in the tree. */
  readonly excludes?: ((path: FsPath) => boolean) | undefined
}

/** Entries between two turns of others. */
const slice = 512

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory" || _tag === "NotAFile"

/** What has gone since it was listed is in no archive. */
export const unlessGone = <A, E, R>(effect: Effect.Effect<A, E | Fault, R>): Effect.Effect<A | undefined, E | Fault, R> =>
  Effect.catch(effect, (error) =>
    typeof error === "object" && error !== null && "_tag" in error && isGone(error as Fault)
      ? Effect.succeed(undefined)
      : Effect.fail(error)
  )

const checkChildren = (path: FsPath, children: ReadonlyArray<Child>, rules: NameRules): void => {
  const names = new Map<string, string>()
  for (const { addressable, kind, name } of children) {
    const at = join(path, name)
    if (!addressable) throw refuse("name", "the name is none that text can express", at)
    pathOf(at, at, rules)
    if (kind === "other") throw refuse("unsupported", "it is neither file, directory nor link, and no archive can hold it", at)
    const key = collisionKey(name)
    const other = names.get(key)
    if (other !== undefined) {
      throw refuse(
        "duplicate",
        `where case and normal form do not distinguish names it is the same as ${JSON.stringify(other)}`,
        at
      )
    }
    names.set(key, name)
  }
}

const linkAt = ({ links }: Backend, path: FsPath): Effect.Effect<Item | undefined, ArchiveError | Fault> => {
  if (links === undefined) {
    return Effect.fail(refuse("link", "it is a link, and this filesystem cannot say where it leads", path))
  }
  return Effect.flatMap(
    Effect.catch(links.read(path), (fault) =>
      isGone(fault) || fault._tag === "InvalidArgument" ? Effect.succeed(undefined) : Effect.fail(located(fault, path))
    ),
    (target) =>
      target === undefined
        ? Effect.succeed(undefined)
        : judged((): Item => {
            checkLink(path, target, path)
            return { kind: "symlink", path, target }
          })
  )
}

interface Entered {
  readonly path: FsPath
  readonly children: ReadonlyArray<Child>
  next: number
}

export const survey = Effect.fnUntraced(function* (
  port: Backend,
  { excludes, limits }: SurveyOptions
): Effect.fn.Return<ReadonlyArray<Item>, ArchiveError | Fault> {
  const rules: NameRules = { limits, policy: port.rules?.policy }
  const budget = new Budget(limits)
  const items: Array<Item> = []
  const list = (path: FsPath): Effect.Effect<Entered, ArchiveError | Fault> =>
    Effect.flatMap(port.list(path), (all) =>
      judged(() => {
        const children = all.filter(({ name }) => !TemporaryNames.isInProgress(name) && excludes?.(join(path, name)) !== true)
        checkChildren(path, children, rules)
        return { path, children: inWalkOrder(children, true), next: 0 }
      })
    )
  const way: Array<Entered> = [yield* list(root)]
  for (let here = way.at(-1), steps = 1; here !== undefined; here = way.at(-1), steps++) {
    if (steps % slice === 0) yield* Effect.yieldNow
    if (here.next === here.children.length) {
      way.pop()
      continue
    }
    const { kind, name } = here.children[here.next++]!
    const path = join(here.path, name)
    if (kind === "directory") {
      const below = yield* unlessGone(list(path))
      const stat = yield* port.stat(path)
      if (below === undefined || stat?.kind !== "directory") continue
      items.push({ kind, path, mode: stat.mode, isEmpty: below.children.length === 0 })
      way.push(below)
    } else {
      const item: Item | undefined = kind === "symlink" ? yield* linkAt(port, path) : { kind: "file", path }
      if (item === undefined) continue
      items.push(item)
    }
    yield* judged(() => budget.enter())
  }
  return items
})

/** Files of at most so many bytes are read whole. */
export const wholeFile = 256 * 1024

/** A file of an archive in the making. */
export type Content =
  | { readonly _tag: "Whole"; readonly bytes: Uint8Array; readonly isLent: boolean; readonly mode: number | undefined }
  | { readonly _tag: "Large"; readonly handle: Handle }

const unsteady = (path: FsPath): Fault => ({ _tag: "IoError", path, detail: "it changed while it was read" })

/** How often a small file that becomes shorter while it is read is read again. */
const maxReadings = 8

const readWhole = (port: Backend, path: FsPath, left: number): Effect.Effect<Content, Fault> =>
  Effect.flatMap(Read.wholeAt(port, path, wholeFile), ({ bytes, isLent, stat }) => {
    if (bytes.length === stat.sizeBytes) {
      return Effect.succeed<Content>({ _tag: "Whole", bytes, isLent: isLent === true, mode: stat.mode })
    }
    return left === 0 ? Effect.fail(unsteady(path)) : readWhole(port, path, left - 1)
  })

/** The content as it is pinned now; `undefined` where the file has gone. */
export const contentOf = (port: Backend, path: FsPath) =>
  unlessGone(
    Effect.catch(
      Effect.mapError(readWhole(port, path, maxReadings), (fault) => located(fault, path)),
      (fault) =>
        fault._tag === "LimitExceeded"
          ? Effect.map(
              Effect.mapError(port.open(path), (fault) => located(fault, path)),
              (handle): Content => ({ _tag: "Large", handle })
            )
          : Effect.fail(fault)
    )
  )

const block = 64 * 1024

/** Exactly the bytes that the handle's stat tells; fails where there are no longer so many. */
export const pinned = (path: FsPath, handle: Handle): Stream.Stream<Uint8Array, Fault> =>
  Stream.suspend(() => {
    const size = handle.stat.sizeBytes
    let seen = 0
    const counted = Stream.map(Read.chunks(handle, 0, size, block), (bytes) => {
      seen += bytes.length
      return bytes
    })
    const end = Stream.suspend(() => (seen === size ? Stream.empty : Stream.fail(unsteady(path))))
    return Stream.mapError(Stream.concat(counted, end), (fault) => located(fault, path))
  })

export { unsteady }
