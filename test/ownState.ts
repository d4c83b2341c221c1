/**
 * Gives every test run its own state directory, so that tests do not see or change the files of the user's programs, and its own cache
 * of bundled and compiled code, because most of the start-up time of a child process is loading and compilation.
 */
import * as Fs from "node:fs"
import { join } from "node:path"
import { onDisk } from "./scratch.ts"

export const setup = (): (() => void) => {
  const directory = Fs.mkdtempSync(join(onDisk(), "state-"))
  process.env["XDG_STATE_HOME"] = directory
  process.env["NODE_COMPILE_CACHE"] = join(directory, "compiled")
  process.env["FS_ALGEBRA_BUNDLES"] = directory
  return () => Fs.rmSync(directory, { recursive: true, force: true })
}
