/**
 * Gives every test run its own state directory, so that tests do not see or change the files of the user's programs. Also gives
 * the run its own cache of bundled and compiled code, so that child processes start faster.
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
