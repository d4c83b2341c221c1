/**
 * What every command takes: where the files are, what stands over them, and for whom the answer is.
 */
import * as Context from "effect/Context"

export const program = "fs-algebra"

export class Settings extends Context.Service<
  Settings,
  {
    /** The command that was typed, under whose name errors are shown. */
    readonly command: string
    readonly root: string
    readonly backend: "host" | "memory"
    readonly json: boolean
  }
>()("fs-algebra/cli/Settings") {}
