/**
 * What every command takes: where the files are, what stands over them, and for whom the answer is.
 */
import * as Context from "effect/Context"

/** As it was asked for, which need not make sense. */
export interface Container {
  readonly engine: "podman" | "docker"
  readonly image: string | undefined
  readonly rootfs: string | undefined
  readonly pids: number | undefined
}

/** Files of the machine, and where they go in the copy of the root; where that is not said they keep their path. */
export interface MountFlag {
  readonly source: string
  readonly target: string | undefined
}

/** A directory of the machine, absolute, and the name that it is shown by. */
export interface Directory {
  readonly name: string
  readonly path: string
}

/** What it is made of where nobody has said. */
export const noContainer: Container = { engine: "podman", image: undefined, rootfs: undefined, pids: undefined }

export const program = "fs-algebra"

export class Settings extends Context.Service<
  Settings,
  {
    /** The command that was typed, under whose name errors are shown. */
    readonly command: string
    readonly root: string
    /** Several directories, each of which stands in the root by its name; `root` is then the first of them. @default the root alone */
    readonly directories?: ReadonlyArray<Directory> | undefined
    readonly backend: "host" | "memory" | "container"
    /** What the container is made of, where there is one. */
    readonly container: Container
    /** `reject` refuses to read or append to files that have several names. @default "allow" */
    readonly hardlinks?: "allow" | "reject" | undefined
    /** In the order in which they were typed. */
    readonly mounts: ReadonlyArray<MountFlag>
    /** The file in which changes are recorded, as it was typed. */
    readonly journal?: string | undefined
    readonly json: boolean
  }
>()("fs-algebra/cli/Settings") {}
