/**
 * Opens handles. The flag determines what a handle reads and writes, as the documentation of `Platform.toFileSystem` describes:
 * `r` reads the file as it was opened, `r+` and `w` stage changes, and `a` appends at once.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { File, FileSystem, OpenFlag } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Read from "../../engine/read.ts"
import { resolveLink } from "../../engine/resolve.ts"
import * as Version from "../../engine/version.ts"
import type { FileStat } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as FsError from "../../model/FsError.ts"
import { Limits } from "../../model/Limits.ts"
import type { Handle } from "../../port/Backend.ts"
import { sha256 } from "../../runtime/hash.ts"
import { writing } from "../operations/call.ts"
import { type Bridge, masked, permissionBits } from "./bridge.ts"
import * as Contents from "./contents.ts"
import { badArgument } from "./errors.ts"
import { type Content, make as makeFile } from "./file.ts"

interface Plan {
  readonly reads: boolean
  readonly writes: "never" | "staged" | "append"
  readonly creates: "never" | "missing" | "always"
  readonly truncates: boolean
}

const plan = (reads: boolean, writes: Plan["writes"], creates: Plan["creates"], truncates = false): Plan => ({
  reads,
  writes,
  creates,
  truncates
})

const plans: { readonly [Flag in OpenFlag]: Plan } = {
  r: plan(true, "never", "never"),
  "r+": plan(true, "staged", "never"),
  w: plan(false, "staged", "missing", true),
  wx: plan(false, "staged", "always"),
  "w+": plan(true, "staged", "missing", true),
  "wx+": plan(true, "staged", "always"),
  a: plan(false, "append", "missing"),
  ax: plan(false, "append", "always"),
  "a+": plan(true, "append", "missing"),
  "ax+": plan(true, "append", "always")
}

type Options = Parameters<FileSystem["open"]>[1]

const empty = new Uint8Array(0)

export interface Handles {
  readonly open: FileSystem["open"]
  readonly settle: (path: string, reach: Reach) => Effect.Effect<void>
}

/**
 * The entries of a path that a call uses: the entry itself, the file behind its symlinks, or that file and all entries
 * below it.
 */
export type Reach = "entry" | "file" | "tree"

export const make = (bridge: Bridge): Handles => {
  /** The publications of handles that create or truncate their file, each with the path of that file. */
  const unseen = new Map<Effect.Effect<void>, FsPath.FsPath>()
  const { answer, fs, look, lookAtLink, port, step } = bridge
  const { caseSensitive } = port.info

  const settle: Handles["settle"] = (path, reach) =>
    Effect.suspend(() =>
      unseen.size === 0
        ? Effect.void
        : Effect.flatMap(Effect.option((reach === "entry" ? lookAtLink : look)("open", path)), (found) => {
            if (Option.isNone(found)) return Effect.void
            const used = caseSensitive ? found.value.path : FsPath.fold(found.value.path)
            const isUsed = (at: FsPath.FsPath) => (reach === "tree" ? FsPath.isWithin(used, at) : at === used)
            return Effect.forEach(
              [...unseen].flatMap(([show, at]) => (isUsed(caseSensitive ? at : FsPath.fold(at)) ? [show] : [])),
              (show) => show,
              { discard: true }
            )
          })
    )

  const pin = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Handle, FsError.FsError> =>
    step("open", path, (path) =>
      Scope.provide(
        noFollow ? Effect.flatMap(resolveLink(port, path), ({ path: at }) => port.open(at)) : Read.open(port, path),
        scope
      )
    )

  const toRead = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Content, FsError.FsError> =>
    Effect.catchTag(
      Effect.map(pin(path, scope, noFollow), (handle) => Contents.pinned(path, handle)),
      "NotAFile",
      (error) =>
        Effect.flatMap((noFollow ? lookAtLink : look)("open", path), ({ stat }) =>
          stat?.kind === "directory" ? Effect.succeed(Contents.directory(path, stat)) : Effect.fail(error)
        )
    )

  /** Creates an empty file if there is none. Returns whether this call created it. */
  const create = (path: string, exclusive: boolean): Effect.Effect<boolean, FsError.FsError> =>
    exclusive
      ? Effect.as(fs.writeBytes(path, empty, { mode: "create", createParents: false }), true)
      : Effect.catchTag(Effect.as(fs.writeBytes(path, empty, { ifMatch: null, createParents: false }), true), "Conflict", () =>
          Effect.succeed(false)
        )

  const setMode = (path: string, mode: number): Effect.Effect<void, FsError.FsError> =>
    Effect.flatMap(fs.stat(path), (made) => fs.setAttributes(path, { mode: masked(mode, made) }))

  const truncate =
    (path: string) =>
    (size: number): Effect.Effect<void, PlatformError> =>
      Effect.scoped(Effect.flatMap(open(path, { flag: "r+" }), (file) => Effect.andThen(file.truncate(size), file.sync)))

  const admits = (path: string, plan: Plan, found: FileStat | undefined): FsError.FsError | undefined => {
    const operation = "open"
    if (found === undefined) return plan.creates === "never" ? new FsError.NotFound({ operation, path }) : undefined
    if (plan.creates === "always") return new FsError.AlreadyExists({ operation, path })
    return found.kind === "file" ? undefined : new FsError.NotAFile({ operation, path })
  }

  const toWrite = Effect.fnUntraced(function* (
    path: string,
    plan: Plan,
    scope: Scope.Scope,
    noFollow: boolean,
    mode: number | undefined
  ): Effect.fn.Return<Contents.Opened, FsError.FsError> {
    const exclusive = plan.creates === "always"
    const found = yield* (noFollow || exclusive ? lookAtLink : look)("open", path, writing)
    const error = admits(path, plan, found.stat)
    if (error !== undefined) return yield* Effect.fail(error)
    const setsMode = mode !== undefined && found.stat === undefined
    if (setsMode && port.attributes === undefined) {
      return yield* Effect.fail(new FsError.Unsupported({ operation: "open", path, feature: "attributes" }))
    }
    const made = found.stat === undefined && (yield* create(path, exclusive))
    const discard = (shown = sha256(empty)): Effect.Effect<void> =>
      made ? Effect.ignore(fs.delete(found.path, { ifMatch: shown })) : Effect.void
    const prepared = Effect.gen(function* () {
      if (made && setsMode) yield* setMode(path, mode)
      if (plan.writes === "append") {
        const content = Contents.appending(bridge, path, plan.reads, truncate(path))
        return { content, close: (exit: Exit.Exit<unknown, unknown>) => (Exit.isFailure(exit) ? discard() : Effect.void) }
      }
      const base = plan.truncates || made ? undefined : yield* pin(path, scope, noFollow)
      const opened = Contents.staged(bridge, {
        path,
        reads: plan.reads,
        before: base?.stat ?? (yield* fs.stat(path)),
        base,
        version: base === undefined ? undefined : yield* Effect.mapError(Version.ofHandle(base), Contents.promoted(path)),
        isChanged: plan.truncates && !made,
        discard,
        limits: yield* Limits
      })
      const { show } = opened
      if (show === undefined) return opened
      unseen.set(show, found.path)
      return {
        ...opened,
        close: (exit: Exit.Exit<unknown, unknown>) =>
          Effect.ensuring(
            opened.close(exit),
            Effect.sync(() => unseen.delete(show))
          )
      }
    })
    return yield* Effect.onError(prepared, () => discard())
  })

  const open = (path: string, options?: Options): Effect.Effect<File, PlatformError, Scope.Scope> => {
    const flag = options?.flag ?? "r"
    const plan = Object.hasOwn(plans, flag) ? plans[flag] : undefined
    if (plan === undefined) return Effect.fail(badArgument("open", `there is no flag ${String(options?.flag)}`))
    const noFollow = options?.noFollow === true
    let isClosed = false
    const closing = Effect.sync(() => void (isClosed = true))
    const file = (content: Content): File => makeFile(bridge, path, content, () => isClosed)
    return Effect.flatMap(Effect.scope, (scope) => {
      if (plan.writes === "never") {
        return Effect.flatMap(answer("open", path, toRead(path, scope, noFollow)), (content) =>
          Effect.as(Scope.addFinalizer(scope, closing), file(content))
        )
      }
      const mode = options?.mode === undefined ? Effect.undefined : permissionBits("open", options.mode)
      return Effect.map(
        Effect.acquireRelease(
          Effect.flatMap(mode, (mode) => answer("open", path, toWrite(path, plan, scope, noFollow, mode))),
          ({ close }, exit) => Effect.andThen(closing, close(exit))
        ),
        ({ content }) => file(content)
      )
    })
  }
  return { open: (path, options) => Effect.andThen(settle(path, "file"), open(path, options)), settle }
}
