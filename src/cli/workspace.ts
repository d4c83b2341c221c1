/**
 * Opens the filesystem of a command: the root (a directory, server, bucket, SFTP directory or workspace of a store), a
 * container, or an in-memory copy. A backend is loaded only when a command needs it, so that `--help` is fast.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { resolve } from "node:path"
import { type Algebra, Filesystem, make } from "../filesystem/Filesystem.ts"
import type { GlobMatch } from "../model/Entry.ts"
import * as FsErrorModule from "../model/FsError.ts"
import type { FsError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { openOperation } from "./advice.ts"
import { withProgress, writeRemark } from "./answer.ts"
import { containerLayer, hardlinksUnsupported, withoutImageFlags } from "./container.ts"
import type { Complaint } from "./exit.ts"
import { reportedLayer } from "./failure.ts"
import { bytes, count } from "./humanise.ts"
import { withoutJournalFlag, withRecording } from "./journal/recording.ts"
import { errorStyle } from "./look.ts"
import { mountAll, mountDirectories, withoutMountFlag } from "./mounts.ts"
import { resolveLinks } from "./paths.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

// Copies one filesystem into another, so that a command can work on a copy of real files. Entries that cannot be copied are
// reported, such as devices, links that lead out, and files without read permission.

interface HydrateOptions {
  /** True to omit `.git` and the files that .gitignore and .ignore match. @default false */
  readonly gitignore?: boolean | undefined
  /** The largest amount to copy. The copy stops before it exceeds this amount. @default no bound */
  readonly upTo?: { readonly files: number; readonly bytes: number } | undefined
  readonly onFile?: ((bytes: number) => void) | undefined
}

interface CopiedTree {
  readonly files: number
  readonly directories: number
  readonly links: number
  readonly bytes: number
  /** True if `upTo` was reached, so that the copy is incomplete. */
  readonly truncated: boolean
  readonly leftOut: ReadonlyArray<{ readonly path: string; readonly why: string }>
}

const concurrency = 16

export const copyTree = Effect.fnUntraced(
  function* (from: Algebra, to: Algebra, options: HydrateOptions = {}): Effect.fn.Return<CopiedTree, FsError> {
    const leftOut: Array<{ readonly path: string; readonly why: string }> = []
    const directories: Array<FsPath.FsPath> = []
    const links: Array<FsPath.FsPath> = []
    let files = 0
    let copiedLinks = 0
    let bytes = 0
    let truncated = false
    const recordLeftOut = (path: string) => (error: FsError) =>
      Effect.sync(() => void leftOut.push({ path, why: error.message }))

    const attributes = Effect.fnUntraced(function* (path: FsPath.FsPath) {
      const { mode, modifiedAt } = yield* from.stat(path)
      yield* to.setAttributes(path, { mode, modifiedAt })
    })

    /**
     * The numbers of files and bytes of all started reads. A file is counted before its read, so that concurrent reads count
     * too.
     */
    const plannedUsage = { files: 0, bytes: 0 }
    const reserveIfFits = (size: number): boolean => {
      if (options.upTo === undefined) return true
      if (plannedUsage.files + 1 > options.upTo.files || plannedUsage.bytes + size > options.upTo.bytes) return false
      plannedUsage.files++
      plannedUsage.bytes += size
      return true
    }

    const copy = ({ kind, path, sizeBytes }: GlobMatch): Effect.Effect<void, FsError> => {
      if (kind === "directory") {
        directories.push(path)
        return to.mkdir(path)
      }
      if (kind === "symlink") {
        links.push(path)
        return Effect.void
      }
      if (kind === "other") {
        leftOut.push({ path, why: "it is not a file, a directory or a link" })
        return Effect.void
      }
      if (!reserveIfFits(sizeBytes ?? 0)) {
        truncated = true
        return Effect.void
      }
      return Effect.matchEffect(from.readBytes(path), {
        onFailure: recordLeftOut(path),
        onSuccess: ({ content }) =>
          Effect.andThen(
            to.writeBytes(path, content),
            Effect.suspend(() => {
              files++
              bytes += content.length
              options.onFile?.(content.length)
              return Effect.ignore(attributes(path))
            })
          )
      })
    }

    yield* from
      .globStream("*", {
        kinds: ["file", "directory", "symlink", "other"],
        gitignore: options.gitignore,
        sizes: options.upTo !== undefined,
        onSkip: (path, why) => {
          if (why === "unreadable") leftOut.push({ path, why: "it cannot be read" })
        }
      })
      .pipe(
        Stream.takeWhile(() => {
          truncated ||= plannedUsage.files >= (options.upTo?.files ?? Number.POSITIVE_INFINITY)
          return !truncated
        }),
        Stream.runForEachArray((matches) => Effect.forEach(matches, copy, { concurrency, discard: true }))
      )
    for (const path of links) {
      yield* Effect.matchEffect(
        Effect.flatMap(from.readLink(path), (target) => to.symlink(path, target)),
        { onFailure: recordLeftOut(path), onSuccess: () => Effect.sync(() => void copiedLinks++) }
      )
    }
    // Set the attributes of directories at the end, because creating entries changes their times.
    for (const path of directories) yield* Effect.ignore(attributes(path))
    leftOut.sort((a, b) => FsPath.compare(a.path, b.path))
    return { files, directories: directories.length, links: copiedLinks, bytes, truncated, leftOut }
  },
  Effect.provideService(Limits, unlimited)
)

export interface OpenHost {
  (root: string, hardlinks?: "allow" | "reject"): Layer.Layer<Filesystem, FsErrorModule.FsError>
}

export const HostOpener: Context.Reference<OpenHost> = Context.Reference<OpenHost>("fs-algebra/cli/Host", {
  defaultValue: () => (root, hardlinks) =>
    Layer.unwrap(
      process.platform === "win32"
        ? Effect.map(
            Effect.promise(() => import("../backends/WindowsHost.ts")),
            (host) => host.layer({ root })
          )
        : Effect.map(
            Effect.promise(() => import("../backends/PosixHost.ts")),
            (host) => host.layer({ root, hardlinks })
          )
    )
})

const directoryLayer = Layer.unwrap(
  Effect.gen(function* () {
    const { directories, hardlinks, refusal, root, tokenFile } = yield* Settings
    if (refusal !== undefined) return yield* refusal
    const { directory } = yield* Screen
    const open = yield* HostOpener
    if (directories === undefined) {
      const { openRoot } = yield* Effect.promise(() => import("./openRoot.ts"))
      const opened = yield* openRoot(root, tokenFile)
      if (opened !== undefined) {
        return hardlinks === "reject"
          ? yield* hardlinksUnsupported("on a root that is not a directory of this machine")
          : opened
      }
    }
    if (hardlinks === "reject" && process.platform === "win32") return yield* hardlinksUnsupported("on Windows")
    const openDirectory = (given: string) => {
      const named = (error: FsErrorModule.FsError): FsErrorModule.FsError =>
        FsErrorModule.promote(FsErrorModule.toFault(error), openOperation, given)
      return Layer.catch(open(resolveLinks(resolve(directory, given)), hardlinks), (error) =>
        Layer.effect(Filesystem, Effect.fail(named(error)))
      )
    }
    return directories === undefined ? openDirectory(root) : mountDirectories(directories, openDirectory)
  })
)

const maxShownEntries = 3

const reportLeftOut = ({ leftOut }: CopiedTree) =>
  Effect.gen(function* () {
    if (leftOut.length === 0) return
    const { name, yellow } = errorStyle(yield* Screen)
    const rest = leftOut.length > maxShownEntries ? `\n  and ${leftOut.length - maxShownEntries} more` : ""
    const lines = leftOut.slice(0, maxShownEntries).map(({ path, why }) => `\n  ${name(path)}: ${name(why)}`)
    yield* writeRemark(`${yellow("note:")}  left out of the copy, ${count(leftOut.length, "entry")}:${lines.join("")}${rest}`, {
      leftOut
    })
  })

export const copyInMemory = Effect.fnUntraced(function* (from: Algebra, options?: Pick<HydrateOptions, "gitignore" | "upTo">) {
  const memory = yield* Effect.promise(() => import("../backends/InMemory.ts"))
  const to = make(yield* memory.make())
  let files = 0
  let size = 0
  const onFile = (bytes: number) => {
    files++
    size += bytes
  }
  const copied = yield* copyTree(from, to, { ...options, onFile }).pipe(
    withProgress("Copying into memory", () => `${count(files, "file")}, ${bytes(size)}`)
  )
  yield* reportLeftOut(copied)
  return { fs: to, copied }
})

const memoryLayer = Layer.effect(
  Filesystem,
  Effect.gen(function* () {
    const { fs } = yield* copyInMemory(yield* Filesystem)
    yield* mountAll(fs)
    return fs
  }).pipe(Effect.provide(directoryLayer))
)

export const hostLayer = reportedLayer(
  withoutJournalFlag("the directory does not change")(
    withoutMountFlag("this command shows the directory as it is")(directoryLayer)
  )
)

const refuseMountOnDirectory = withoutMountFlag("without a copy in memory, the mounted files would stay in the directory")

const selectedLayer = Layer.unwrap(
  Effect.map(Settings, ({ backend }): Layer.Layer<Filesystem, FsErrorModule.FsError | Complaint, Settings | Screen> => {
    if (backend === "memory") return withoutImageFlags(memoryLayer)
    return refuseMountOnDirectory(backend === "container" ? containerLayer : withoutImageFlags(directoryLayer))
  })
)

/** Opens the filesystem that `--root`, `--backend` and `--mount` select. If `--journal` is given, its changes are recorded. */
export const workspaceLayer = reportedLayer(withRecording(selectedLayer))

/** Opens the filesystem that `serve` serves. Its flag `--token-file` is for the clients, not for the root. */
export const servedLayer = Layer.unwrap(
  Effect.map(Settings, (settings) =>
    Layer.provide(workspaceLayer, Layer.succeed(Settings, { ...settings, tokenFile: undefined }))
  )
)

/** Opens the filesystem that `--root`, `--backend` and `--mount` select, and refuses `--journal` for the given reason. */
export const unrecordedLayer = (why: string) => reportedLayer(withoutJournalFlag(why)(selectedLayer))

/**
 * Opens the filesystem that `--root`, `--backend` and `--mount` select, without recording, because another process may record
 * in the journal at the same time.
 */
export const viewedLayer = reportedLayer(selectedLayer)
