/** Gives every test run a state directory of its own, so that tests neither see nor change what the user's programs keep. */
import * as Fs from "node:fs"
import { join } from "node:path"
import { onDisk } from "./scratch.ts"

export const setup = (): (() => void) => {
  const directory = Fs.mkdtempSync(join(onDisk(), "state-"))
  process.env["XDG_STATE_HOME"] = directory
  return () => Fs.rmSync(directory, { recursive: true, force: true })
}
