import { realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ContainerOptions } from "../backends/Container.ts"
import { isPath } from "../backends/container/dialect.ts"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import type { Sandbox } from "../filesystem/Sandbox.ts"
import * as FsError from "../model/FsError.ts"
import { openOperation } from "./advice.ts"
import { type Complaint, usage } from "./exit.ts"
import { isDirectoryRoot, needsDirectory } from "./root.ts"
import { Screen } from "./screen.ts"
import { refusing, Settings } from "./settings.ts"

export interface OpenContainer {
  (options: ContainerOptions): Layer.Layer<Filesystem | Sandbox, FsError.FsError>
}

export const ContainerOpener: Context.Reference<OpenContainer> = Context.Reference<OpenContainer>("fs-algebra/cli/Engine", {
  defaultValue: () => (options) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => Promise.all([import("../backends/Container.ts"), import("@effect/platform-node/NodeServices")])),
        ([container, node]) => Layer.provide(container.layer(options), node.layer)
      )
    )
})

const failInvalidOption = (argument: string, detail: string) =>
  Layer.effectContext(Effect.fail(new FsError.InvalidArgument({ operation: openOperation, path: ".", argument, detail })))

export const hardlinksUnsupported = (where: string): Complaint =>
  usage(
    `--hardlinks reject cannot be enforced ${where}`,
    "Omit --hardlinks reject, and make sure that no file below the root has several hard links."
  )

/**
 * Returns the user that runs programs in the container. If root runs the command, programs run as the owner of the directory,
 * who then owns new files too. For other users the container engine maps the container's user to the user of the process.
 */
const containerUserOf = (directory: string): { readonly user?: string } => {
  if (process.geteuid?.() !== 0) return {}
  const { gid, uid } = statSync(directory)
  return { user: `${uid}:${gid}` }
}

/** Refuses --image and --rootfs for a layer without a container, because such a layer would ignore these flags. */
export const withoutImageFlags = refusing(({ container: { image, rootfs } }) => {
  const flag = image !== undefined ? "--image" : rootfs !== undefined ? "--rootfs" : undefined
  return (
    flag &&
    usage(
      `${flag} works only with --backend container, or with the command exec`,
      `Add --backend container, or leave out ${flag}.`
    )
  )
})

const realPathIfExists = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

const imageOf = (image: string | undefined, rootfs: string | undefined): ContainerOptions["image"] | undefined => {
  if ((image === undefined) === (rootfs === undefined)) return undefined
  return image ?? { rootfs: rootfs! }
}

const withGivenRoot =
  (root: string) =>
  (error: FsError.FsError): FsError.FsError =>
    error._tag === "Unavailable" || error._tag === "InvalidArgument"
      ? error
      : FsError.promote(FsError.toFault(error), openOperation, root)

export const containerLayer: Layer.Layer<Filesystem | Sandbox, FsError.FsError | Complaint, Settings | Screen> = Layer.unwrap(
  Effect.gen(function* () {
    const { container, directories, hardlinks, refusal, root } = yield* Settings
    if (refusal !== undefined) return yield* refusal
    if (directories !== undefined) return failInvalidOption("root", "a container holds only one directory")
    // A program in a container can access a file by any of its hard links.
    if (hardlinks === "reject") return yield* hardlinksUnsupported("with a container")
    const { directory } = yield* Screen
    if (!isDirectoryRoot(root, directory)) return yield* needsDirectory(root, "a container")
    const open = yield* ContainerOpener
    const { pids, rootfs } = container
    // The path of the engine is relative to the current directory.
    const engine = isPath(container.engine) ? resolve(directory, container.engine) : container.engine
    const image = imageOf(container.image, rootfs === undefined ? undefined : resolve(directory, rootfs))
    if (image === undefined) return failInvalidOption("image", "a container is made of either --image IMAGE or --rootfs DIR")
    const hostDirectory = realPathIfExists(resolve(directory, root))
    if (hostDirectory === undefined) {
      return Layer.effectContext(Effect.fail(FsError.promote({ _tag: "NotFound" }, openOperation, root)))
    }
    const openedContainer = open({ engine, image, hostDirectory, pids, ...containerUserOf(hostDirectory) })
    return Layer.catch(openedContainer, (error) => Layer.effectContext(Effect.fail(withGivenRoot(root)(error))))
  })
)
