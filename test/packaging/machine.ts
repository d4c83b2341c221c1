/** A temporary machine with its own home directory, on which the package is installed as by `npm install --global`. */
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { commandLine } from "../bundled.ts"
import { onDisk } from "../scratch.ts"

export const bin = commandLine()

/** Returns an empty directory to work in, and an environment in which a shell and `npx` find `fs-algebra`. */
export const machine = () => {
  const home = mkdtempSync(join(onDisk(), "machine-"))
  const [work, tools] = [join(home, "work"), join(home, "bin")]
  mkdirSync(work)
  mkdirSync(tools)
  writeFileSync(join(tools, "fs-algebra"), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`)
  chmodSync(join(tools, "fs-algebra"), 0o755)
  const env = {
    PATH: `${tools}${delimiter}${process.env["PATH"] ?? ""}`,
    HOME: home,
    XDG_STATE_HOME: join(home, "state"),
    npm_config_prefix: home,
    // A package that npx would have to fetch is an error at once.
    npm_config_offline: "true"
  }
  return { work, env }
}
