/**
 * What a handle reads and writes, by the flag it is opened with.
 *
 * - `r` reads the file as it was when it was opened, whatever happens to the name meanwhile.
 * - `r+`, `w` and their kin write to a staged content, which takes the file's place in one step: at `sync`, which fails typed, and when
 *   the scope closes well, where a failure is a defect. Until then everyone else reads the old content; when the scope closes with a
 *   failure they go on doing so. A file that opening has made is there at once, and empty; it goes again when the scope fails and
 *   nothing was published.
 * - `a` and its kin append at once, each write whole or not at all, to whatever file then has the name, which must still be there.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { File, FileSystem, OpenFlag } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { resolveLink } from "../../engine/resolve.ts"
import * as FsError from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Handle } from "../../port/Backend.ts"
import { sha256 } from "../../runtime/hash.ts"
import { writing } from "../operations/call.ts"
import { type Bridge, masked, permissionBits } from "./bridge.ts"
import { badArgument } from "./errors.ts"
import * as File_ from "./file.ts"
import * as Pages from "./pages.ts"

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

interface Opened {
  readonly content: File_.Content
  readonly close: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
}

export const make = (bridge: Bridge): FileSystem["open"] => {
  const { answer, fs, look, lookAtLink, port, step } = bridge

  const promoted =
    (path: string) =>
    (fault: FsError.Fault): FsError.FsError =>
      FsError.promote(fault, "open", path)

  const readHandle =
    (handle: Handle, path: string) =>
    (offset: number, length: number): Effect.Effect<Uint8Array, FsError.FsError> => {
      const rest = handle.stat.sizeBytes - offset
      return rest <= 0
        ? Effect.sync(() => new Uint8Array(0))
        : Effect.mapError(handle.read(offset, Math.min(length, rest)), promoted(path))
    }

  const pin = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Handle, FsError.FsError> =>
    step("open", path, (path) =>
      Scope.provide(
        noFollow ? Effect.flatMap(resolveLink(port, path), ({ path: at }) => port.open(at)) : Read.open(port, path),
        scope
      )
    )

  /** That a directory can be opened, and then not read, is how programs look at one through a handle. */
  const directory = (path: string, noFollow: boolean, error: FsError.NotAFile): Effect.Effect<File_.Content, FsError.FsError> =>
    Effect.flatMap((noFollow ? lookAtLink : look)("open", path), ({ stat }) =>
      stat?.kind === "directory"
        ? Effect.succeed({
            stat: Effect.succeed(stat),
            read: () => Effect.fail(error),
            sync: Effect.void,
            appends: false
          })
        : Effect.fail(error)
    )

  const toRead = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<File_.Content, FsError.FsError> =>
    Effect.matchEffect(pin(path, scope, noFollow), {
      onSuccess: (handle): Effect.Effect<File_.Content> =>
        Effect.succeed({
          stat: Effect.succeed(handle.stat),
          read: readHandle(handle, path),
          sync: Effect.void,
          appends: false
        }),
      onFailure: (error) => (error._tag === "NotAFile" ? directory(path, noFollow, error) : Effect.fail(error))
    })

  /** An empty file where there is none. Answers whether it was this call that made it. */
  const create = (path: string, exclusive: boolean): Effect.Effect<boolean, FsError.FsError> =>
    exclusive
      ? Effect.as(fs.writeBytes(path, empty, { mode: "create", createParents: false }), true)
      : Effect.catchTag(Effect.as(fs.writeBytes(path, empty, { ifMatch: null, createParents: false }), true), "Conflict", () =>
          Effect.succeed(false)
        )

  /** What opening has made, when it has come to nothing: unless someone has written to it. */
  const discard = (at: FsPath): Effect.Effect<void> => Effect.ignore(fs.delete(at, { ifMatch: sha256(empty) }))

  const setMode = (path: string, mode: number): Effect.Effect<void, FsError.FsError> =>
    Effect.flatMap(fs.stat(path), (made) => fs.setAttributes(path, { mode: masked(mode, made) }))

  const append = (path: string, plan: Plan): Omit<File_.Content, "stat" | "sync" | "appends"> => ({
    ...(plan.reads && {
      read: (offset: number, limit: number) => Effect.map(fs.readBytes(path, { offset, limit }), ({ content }) => content)
    }),
    write: (_: number, bytes: Uint8Array) =>
      Effect.asVoid(fs.writeBytes(path, bytes, { mode: "appendExisting", createParents: false })),
    truncate: (size: number) =>
      Effect.scoped(Effect.flatMap(open(path, { flag: "r+" }), (file) => Effect.andThen(file.truncate(size), file.sync)))
  })

  const appending = (path: string, plan: Plan, at: FsPath, made: boolean): Opened => ({
    content: { ...append(path, plan), stat: fs.stat(path), sync: Effect.void, appends: true },
    close: (exit) => (made && Exit.isFailure(exit) ? discard(at) : Effect.void)
  })

  const staged = Effect.fnUntraced(function* (
    path: string,
    plan: Plan,
    at: FsPath,
    made: boolean,
    base: Handle | undefined
  ): Effect.fn.Return<Opened, FsError.FsError> {
    const limits = yield* Limits
    const before = base?.stat ?? (yield* fs.stat(path))
    const pages = Pages.make(base)
    let isChanged = plan.truncates && !made
    let stays = !made

    const fits = (actual: number): Effect.Effect<void, FsError.FsError> =>
      actual <= limits.maxFileSize
        ? Effect.void
        : Effect.fail(
            new FsError.LimitExceeded({
              operation: "open",
              path,
              limit: "maxFileSize",
              allowed: limits.maxFileSize,
              actual
            })
          )
    const changed = Effect.sync(() => void (isChanged = true))
    const publish = Effect.suspend(() =>
      Stream.run(
        Stream.mapError(pages.content, promoted(path)),
        fs.sink(path, { mode: "overwrite", createParents: false })
      ).pipe(
        Effect.andThen(
          Effect.sync(() => {
            isChanged = false
            stays = true
          })
        ),
        Effect.provideService(Limits, limits)
      )
    )
    return {
      content: {
        stat: Effect.sync(() => ({ ...before, sizeBytes: pages.size() })),
        ...(plan.reads && { read: (offset, length) => Effect.mapError(pages.read(offset, length), promoted(path)) }),
        write: (offset, bytes) =>
          Effect.andThen(
            fits(Math.max(pages.size(), offset + bytes.length)),
            Effect.andThen(Effect.mapError(pages.write(offset, bytes), promoted(path)), changed)
          ),
        truncate: (size) => Effect.andThen(fits(size), Effect.andThen(pages.truncate(size), changed)),
        sync: Effect.suspend(() => (isChanged ? publish : ((stays = true), Effect.void))),
        appends: false
      },
      close: (exit) =>
        Exit.isFailure(exit)
          ? stays
            ? Effect.void
            : discard(at)
          : isChanged
            ? Effect.orDie(answer("close", path, publish))
            : Effect.void
    }
  })

  const toWrite = Effect.fnUntraced(function* (
    path: string,
    plan: Plan,
    scope: Scope.Scope,
    noFollow: boolean,
    mode: number | undefined
  ): Effect.fn.Return<Opened, FsError.FsError> {
    const exclusive = plan.creates === "always"
    const found = yield* (noFollow || exclusive ? lookAtLink : look)("open", path, writing)
    const at = found.path
    if (found.stat !== undefined) {
      if (exclusive) return yield* Effect.fail(new FsError.AlreadyExists({ operation: "open", path }))
      if (found.stat.kind !== "file") return yield* Effect.fail(new FsError.NotAFile({ operation: "open", path }))
    } else if (plan.creates === "never") {
      return yield* Effect.fail(new FsError.NotFound({ operation: "open", path }))
    } else if (mode !== undefined && port.attributes === undefined) {
      return yield* Effect.fail(new FsError.Unsupported({ operation: "open", path, feature: "attributes" }))
    }
    const made = found.stat === undefined && (yield* create(path, exclusive))
    const prepared = Effect.gen(function* () {
      if (made && mode !== undefined) yield* setMode(path, mode)
      if (plan.writes === "append") return appending(path, plan, at, made)
      const base = plan.truncates || made ? undefined : yield* pin(path, scope, noFollow)
      return yield* staged(path, plan, at, made, base)
    })
    return yield* made ? Effect.onError(prepared, () => discard(at)) : prepared
  })

  const open = (path: string, options?: Options): Effect.Effect<File, PlatformError, Scope.Scope> => {
    const plan = plans[options?.flag ?? "r"]
    if (plan === undefined) return Effect.fail(badArgument("open", `there is no flag ${String(options?.flag)}`))
    const noFollow = options?.noFollow === true
    let isClosed = false
    const closing = Effect.sync(() => void (isClosed = true))
    const file = (content: File_.Content): File => File_.make(bridge, path, content, () => isClosed)
    return Effect.flatMap(Effect.scope, (scope) => {
      if (plan.writes === "never") {
        return Effect.flatMap(answer("open", path, toRead(path, scope, noFollow)), (content) =>
          Effect.as(Scope.addFinalizer(scope, closing), file(content))
        )
      }
      const mode =
        options?.mode === undefined ? Effect.succeed<number | undefined>(undefined) : permissionBits("open", options.mode)
      return Effect.map(
        Effect.acquireRelease(
          Effect.flatMap(mode, (mode) => answer("open", path, toWrite(path, plan, scope, noFollow, mode))),
          ({ close }, exit) => Effect.andThen(closing, close(exit))
        ),
        ({ content }) => file(content)
      )
    })
  }
  return open
}
