import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { standard } from "../model/Limits.ts"
import type { Complaint } from "./exit.ts"

/** The limits of commands. A user may write, list and find any amount. All other limits are the standard ones. */
export const limits = {
  ...standard,
  maxFileSize: Number.POSITIVE_INFINITY,
  maxListEntries: Number.POSITIVE_INFINITY,
  maxGlobMatches: Number.POSITIVE_INFINITY,
  maxGrepMatches: Number.POSITIVE_INFINITY
}

/** The flags for the container, which may contradict each other. */
interface Container {
  readonly engine: string
  readonly image: string | undefined
  readonly rootfs: string | undefined
  readonly pids: number | undefined
}

/**
 * The files on the machine to copy, and their target in the copy of the root. If `target` is absent, the files keep their
 * path or name.
 */
export interface MountFlag {
  readonly source: string
  readonly target: string | undefined
}

/** An absolute directory on the machine, and the name it is mounted under. */
export interface Directory {
  readonly name: string
  readonly path: string
}

export const noContainer: Container = { engine: "podman", image: undefined, rootfs: undefined, pids: undefined }

export const program = "fs-algebra"

export class Settings extends Context.Service<
  Settings,
  {
    /** The name of the command, for error messages. */
    readonly command: string
    readonly root: string
    /**
     * Several directories, each mounted in the root under its name. If given, `root` is the first of these directories.
     * @default the root alone
     */
    readonly directories?: ReadonlyArray<Directory> | undefined
    readonly backend: "host" | "memory" | "container"
    readonly container: Container
    readonly hardlinks?: "allow" | "reject" | undefined
    readonly mounts: ReadonlyArray<MountFlag>
    readonly journal?: string | undefined
    /**
     * The file with the token of the server that `--root` names, or with the password of the store. In the command `serve`, the
     * token that clients must send.
     */
    readonly tokenFile?: string | undefined
    /** The value of `--store` without `--workspace`: the directory of snapshots, or the store of workspaces. */
    readonly store?: string | undefined
    /** The error of flags that contradict each other. */
    readonly refusal?: Complaint | undefined
    readonly json: boolean
  }
>()("fs-algebra/cli/Settings") {}

/** Makes the layer fail if `complaintOf` returns an error, for example for a flag that the layer would ignore. */
export const refusing =
  (complaintOf: (settings: Settings["Service"]) => Complaint | undefined) =>
  <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E | Complaint, R | Settings> =>
    Layer.unwrap(
      Effect.map(Settings, (settings): Layer.Layer<A, E | Complaint, R> => {
        const complaint = complaintOf(settings)
        return complaint === undefined ? layer : Layer.effectContext(Effect.fail(complaint))
      })
    )
