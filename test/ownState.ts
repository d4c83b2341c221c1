/** Gives every test run a state directory of its own, so that tests neither see nor change what the user's programs keep. */
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const setup = (): (() => void) => {
  const directory = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-state-"))
  process.env["XDG_STATE_HOME"] = directory
  return () => Fs.rmSync(directory, { recursive: true, force: true })
}
