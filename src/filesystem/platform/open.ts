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
import { writeActions } from "../operations/call.ts"
import { type Bridge, maskMode, permissionBits } from "./bridge.ts"
import * as Contents from "./contents.ts"
import { badArgument } from "./errors.ts"
import { type Content, make as makeFile } from "./file.ts"

interface Plan {
  readonly isReadable: boolean
  readonly writes: "never" | "staged" | "append"
  readonly creates: "never" | "missing" | "always"
  readonly truncates: boolean
}

const plan = (isReadable: boolean, writes: Plan["writes"], creates: Plan["creates"], truncates = false): Plan => ({
  isReadable,
  writes,
  creates,
  truncates
})

const planByFlag: { readonly [Flag in OpenFlag]: Plan } = {
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

const noBytes = new Uint8Array(0)

export interface Handles {
  readonly open: FileSystem["open"]
  readonly publishPending: (path: string, extent: PathExtent) => Effect.Effect<void>
}

/**
 * The entries of a path that a call uses: the entry itself, the file behind its symlinks, or that file and all entries
 * below it.
 */
export type PathExtent = "entry" | "file" | "tree"

export const make = (bridge: Bridge): Handles => {
  /** The publications of handles that create or truncate their file, each with the path of that file. */
  const publications = new Map<Effect.Effect<void>, FsPath.FsPath>()
  const { withPlatformErrors: answer, fs, lookUp: look, lookUpLink: lookAtLink, port, runStep: step } = bridge
  const { caseSensitive } = port.info

  const publishPending: Handles["publishPending"] = (path, extent) =>
    Effect.suspend(() =>
      publications.size === 0
        ? Effect.void
        : Effect.flatMap(Effect.option((extent === "entry" ? lookAtLink : look)("open", path)), (found) => {
            if (Option.isNone(found)) return Effect.void
            const used = caseSensitive ? found.value.path : FsPath.fold(found.value.path)
            const isUsed = (at: FsPath.FsPath) => (extent === "tree" ? FsPath.isWithin(used, at) : at === used)
            return Effect.forEach(
              [...publications].flatMap(([show, at]) => (isUsed(caseSensitive ? at : FsPath.fold(at)) ? [show] : [])),
              (show) => show,
              { discard: true }
            )
          })
    )

  const openPinned = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Handle, FsError.FsError> =>
    step("open", path, (path) =>
      Scope.provide(
        noFollow ? Effect.flatMap(resolveLink(port, path), ({ path: at }) => port.open(at)) : Read.open(port, path),
        scope
      )
    )

  const openForReading = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Content, FsError.FsError> =>
    Effect.catchTag(
      Effect.map(openPinned(path, scope, noFollow), (handle) => Contents.pinnedContent(path, handle)),
      "NotAFile",
      (error) =>
        Effect.flatMap((noFollow ? lookAtLink : look)("open", path), ({ stat }) =>
          stat?.kind === "directory" ? Effect.succeed(Contents.directoryContent(path, stat)) : Effect.fail(error)
        )
    )

  /** Creates an empty file if there is none. Returns whether this call created it. */
  const create = (path: string, exclusive: boolean): Effect.Effect<boolean, FsError.FsError> =>
    exclusive
      ? Effect.as(fs.writeBytes(path, noBytes, { mode: "create", createParents: false }), true)
      : Effect.catchTag(
          Effect.as(fs.writeBytes(path, noBytes, { ifMatch: null, createParents: false }), true),
          "Conflict",
          () => Effect.succeed(false)
        )

  const setMode = (path: string, mode: number): Effect.Effect<void, FsError.FsError> =>
    Effect.flatMap(fs.stat(path), (made) => fs.setAttributes(path, { mode: maskMode(mode, made) }))

  const truncate =
    (path: string) =>
    (size: number): Effect.Effect<void, PlatformError> =>
      Effect.scoped(Effect.flatMap(open(path, { flag: "r+" }), (file) => Effect.andThen(file.truncate(size), file.sync)))

  const checkPlan = (path: string, plan: Plan, found: FileStat | undefined): FsError.FsError | undefined => {
    const operation = "open"
    if (found === undefined) return plan.creates === "never" ? new FsError.NotFound({ operation, path }) : undefined
    if (plan.creates === "always") return new FsError.AlreadyExists({ operation, path })
    return found.kind === "file" ? undefined : new FsError.NotAFile({ operation, path })
  }

  const openForWriting = Effect.fnUntraced(function* (
    path: string,
    plan: Plan,
    scope: Scope.Scope,
    noFollow: boolean,
    mode: number | undefined
  ): Effect.fn.Return<Contents.Opened, FsError.FsError> {
    const exclusive = plan.creates === "always"
    const found = yield* (noFollow || exclusive ? lookAtLink : look)("open", path, writeActions)
    const error = checkPlan(path, plan, found.stat)
    if (error !== undefined) return yield* Effect.fail(error)
    const setsMode = mode !== undefined && found.stat === undefined
    if (setsMode && port.attributes === undefined) {
      return yield* Effect.fail(new FsError.Unsupported({ operation: "open", path, feature: "attributes" }))
    }
    const made = found.stat === undefined && (yield* create(path, exclusive))
    const discard = (shown = sha256(noBytes)): Effect.Effect<void> =>
      made ? Effect.ignore(fs.delete(found.path, { ifMatch: shown })) : Effect.void
    const openContent = Effect.gen(function* () {
      if (made && setsMode) yield* setMode(path, mode)
      if (plan.writes === "append") {
        const content = Contents.appendingContent(bridge, path, plan.isReadable, truncate(path))
        return { content, close: (exit: Exit.Exit<unknown, unknown>) => (Exit.isFailure(exit) ? discard() : Effect.void) }
      }
      const base = plan.truncates || made ? undefined : yield* openPinned(path, scope, noFollow)
      const opened = Contents.stageContent(bridge, {
        path,
        isReadable: plan.isReadable,
        before: base?.stat ?? (yield* fs.stat(path)),
        base,
        version: base === undefined ? undefined : yield* Effect.mapError(Version.ofHandle(base), Contents.toOpenError(path)),
        isChanged: plan.truncates && !made,
        discard,
        limits: yield* Limits
      })
      const { publishBeforeRead: show } = opened
      if (show === undefined) return opened
      publications.set(show, found.path)
      return {
        ...opened,
        close: (exit: Exit.Exit<unknown, unknown>) =>
          Effect.ensuring(
            opened.close(exit),
            Effect.sync(() => publications.delete(show))
          )
      }
    })
    return yield* Effect.onError(openContent, () => discard())
  })

  const open = (path: string, options?: Options): Effect.Effect<File, PlatformError, Scope.Scope> => {
    const flag = options?.flag ?? "r"
    const plan = Object.hasOwn(planByFlag, flag) ? planByFlag[flag] : undefined
    if (plan === undefined) return Effect.fail(badArgument("open", `there is no flag ${String(options?.flag)}`))
    const noFollow = options?.noFollow === true
    let isClosed = false
    const markClosed = Effect.sync(() => void (isClosed = true))
    const file = (content: Content): File => makeFile(bridge, path, content, () => isClosed)
    return Effect.flatMap(Effect.scope, (scope) => {
      if (plan.writes === "never") {
        return Effect.flatMap(answer("open", path, openForReading(path, scope, noFollow)), (content) =>
          Effect.as(Scope.addFinalizer(scope, markClosed), file(content))
        )
      }
      const mode = options?.mode === undefined ? Effect.undefined : permissionBits("open", options.mode)
      return Effect.map(
        Effect.acquireRelease(
          Effect.flatMap(mode, (mode) => answer("open", path, openForWriting(path, plan, scope, noFollow, mode))),
          ({ close }, exit) => Effect.andThen(markClosed, close(exit))
        ),
        ({ content }) => file(content)
      )
    })
  }
  return { open: (path, options) => Effect.andThen(publishPending(path, "file"), open(path, options)), publishPending }
}
