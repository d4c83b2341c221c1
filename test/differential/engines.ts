/** Finds and runs the reference programs, ripgrep and git. They run without the settings of the machine. */
import { assert } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { devNull } from "node:os"

const demanded = process.env["FS_ALGEBRA_NO_SKIP"] !== undefined

const versionOf = (command: string): string | undefined => {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" })
  return status === 0 ? stdout.split("\n")[0]!.replace(/ \(.*/, "") : undefined
}

const bundled = async (): Promise<string | undefined> => {
  try {
    return (await import("@vscode/ripgrep")).rgPath
  } catch {
    return undefined
  }
}

export interface Ripgrep {
  readonly name: string
  /** Returns the standard output. No match is not a failure. */
  readonly run: (cwd: string, args: ReadonlyArray<string>) => Buffer
}

const ripgrepAt = (command: string, name: string): Ripgrep => ({
  name,
  run: (cwd, args) => {
    const all = ["--no-config", ...args]
    const { error, status, stderr, stdout } = spawnSync(command, all, {
      cwd,
      maxBuffer: 2 ** 30,
      stdio: ["ignore", "pipe", "pipe"]
    })
    if (status === 0 || status === 1) return stdout
    throw error ?? new Error(`${name} ${all.join(" ")}: ${stderr.toString()}`)
  }
})

/** The ripgreps of the PATH and of @vscode/ripgrep. If there is none and FS_ALGEBRA_NO_SKIP is set, one entry always fails. */
export const ripgreps: ReadonlyArray<Ripgrep> = await (async () => {
  const found: Array<Ripgrep> = []
  for (const [command, from] of [
    ["rg", "PATH"],
    [await bundled(), "@vscode/ripgrep"]
  ] as const) {
    const version = command && versionOf(command)
    if (command && version) found.push(ripgrepAt(command, `${version} (${from})`))
  }
  return found.length === 0 && demanded ? [ripgrepAt("rg", "ripgrep")] : found
})()

export const saysNoRipgrep = (what: string): void => {
  if (ripgreps.length === 0) console.log(`skipped: ${what}, which needs ripgrep: apt-get install ripgrep`)
}

const gitVersion = versionOf("git")

export const hasGit: boolean = gitVersion !== undefined || demanded

export const saysNoGit = (what: string): void => {
  if (!hasGit) console.log(`skipped: ${what}, which needs git: apt-get install git`)
}

/** Runs git in a directory, with the settings and ignore rules of that directory alone. */
export const git = (cwd: string, args: ReadonlyArray<string>, input = ""): string => {
  const env = {
    PATH: process.env["PATH"],
    HOME: cwd,
    LC_ALL: "C",
    GIT_CONFIG_GLOBAL: devNull,
    GIT_CONFIG_SYSTEM: devNull,
    GIT_CONFIG_NOSYSTEM: "1"
  }
  return execFileSync("git", ["-c", "core.excludesFile=", "-c", "core.quotePath=false", ...args], {
    cwd,
    env,
    input,
    encoding: "utf8",
    maxBuffer: 2 ** 28
  })
}

export const names = (output: string | Buffer): Array<string> => output.toString().split("\0").slice(0, -1)

/**
 * Asserts equal names in equal order. Otherwise it reports the first five missing and extra names instead of thousands of
 * lines.
 */
export const same = (ours: ReadonlyArray<string>, theirs: ReadonlyArray<string>, what: string): void => {
  const [mine, others] = [new Set(ours), new Set(theirs)]
  const missing = theirs.filter((one) => !mine.has(one)).slice(0, 5)
  const extra = ours.filter((one) => !others.has(one)).slice(0, 5)
  assert.deepStrictEqual({ missing, extra }, { missing: [], extra: [] }, what)
  const at = ours.findIndex((one, index) => one !== theirs[index])
  assert.deepStrictEqual([ours[at], ours.length], [at === -1 ? undefined : theirs[at], theirs.length], `order of ${what}`)
}
