/**
 * Opens the filesystem of a command: the directory itself, or a copy in memory. Backends are loaded only when needed, because
 * `--help` needs none.
 */
import { resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Algebra, Filesystem, make } from "../filesystem/Filesystem.ts"
import * as FsError from "../model/FsError.ts"
import { openOperation } from "./advice.ts"
import { writeRemark } from "./answer.ts"
import { reportedLayer } from "./failure.ts"
import { withoutJournalFlag, withRecording } from "./journal/recording.ts"
import { copyTree, type CopiedTree, type HydrateOptions } from "./hydrate.ts"
import { containerLayer, withoutImageFlags, hardlinksUnsupported } from "./container.ts"
import { bytes, count } from "./humanise.ts"
import type { Complaint } from "./exit.ts"
import { errorStyle } from "./look.ts"
import { mountAll, withoutMountFlag } from "./mounts.ts"
import { mountDirectories, toRealPath } from "./directories.ts"
import { withProgress } from "./progress.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

export interface OpenHost {
  (root: string, hardlinks?: "allow" | "reject"): Layer.Layer<Filesystem, FsError.FsError>
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
    const { directories, hardlinks, root } = yield* Settings
    const { directory } = yield* Screen
    const open = yield* HostOpener
    if (hardlinks === "reject" && process.platform === "win32") return yield* hardlinksUnsupported("on Windows")
    const openDirectory = (given: string) => {
      const named = (error: FsError.FsError): FsError.FsError => FsError.promote(FsError.toFault(error), openOperation, given)
      return Layer.catch(open(toRealPath(resolve(directory, given)), hardlinks), (error) =>
        Layer.effect(Filesystem, Effect.fail(named(error)))
      )
    }
    return directories === undefined ? openDirectory(root) : mountDirectories(directories, openDirectory)
  })
)

const named = 3

const leftOut = ({ leftOut }: CopiedTree) =>
  Effect.gen(function* () {
    if (leftOut.length === 0) return
    const { name, yellow } = errorStyle(yield* Screen)
    const rest = leftOut.length > named ? `\n  and ${leftOut.length - named} more` : ""
    const lines = leftOut.slice(0, named).map(({ path, why }) => `\n  ${name(path)}: ${name(why)}`)
    yield* writeRemark(`${yellow("note:")}  left out of the copy, ${count(leftOut.length, "entry")}:${lines.join("")}${rest}`, {
      leftOut
    })
  })

/** Copies a filesystem into memory, with a progress line if it takes long. */
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
  yield* leftOut(copied)
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

const refuseMountOnDirectory = withoutMountFlag("on the directory itself, copied files would stay in it")

const selectedLayer = Layer.unwrap(
  Effect.map(Settings, ({ backend }): Layer.Layer<Filesystem, FsError.FsError | Complaint, Settings | Screen> => {
    if (backend === "memory") return withoutImageFlags(memoryLayer)
    return refuseMountOnDirectory(backend === "container" ? containerLayer : withoutImageFlags(directoryLayer))
  })
)

/** Opens the filesystem that `--root`, `--backend`, `--mount` and `--journal` select. */
export const workspaceLayer = reportedLayer(withRecording(selectedLayer))

/** Opens the filesystem of `--root`, `--backend` and `--mount`, for commands with a recording of their own. */
export const unrecordedLayer = (why: string) => reportedLayer(withoutJournalFlag(why)(selectedLayer))

/** Opens the filesystem of `--root`, `--backend` and `--mount` for viewing, beside a process that records. */
export const viewedLayer = reportedLayer(selectedLayer)
