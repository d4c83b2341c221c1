/** Runs programs in runtimes other than Node. */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build, type BuildOptions } from "esbuild"
import { kit } from "./bundle.ts"
import type { Names } from "./hosts.ts"
import { programs } from "./installed.ts"
import type { Report } from "./kit.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

const arm = process.arch === "arm64"
const binaries = {
  bun: arm ? "@oven/bun-linux-aarch64/bin/bun" : "@oven/bun-linux-x64/bin/bun",
  deno: arm ? "@deno/linux-arm64-glibc/deno" : "@deno/linux-x64-glibc/deno",
  workerd: arm ? "@cloudflare/workerd-linux-arm64/bin/workerd" : "@cloudflare/workerd-linux-64/bin/workerd"
} as const

/** Returns the path of the program. The package's own script would only copy it from there. */
export const binary = (name: keyof typeof binaries): string => join(programs, binaries[name])

/** Bundles the program for the web, minified, with the names of functions kept. */
export const forWeb = (format: "esm" | "iife"): Promise<string> =>
  bundle({ entryPoints: [kit], minify: true, keepNames: true, platform: "browser", format })

/**
 * Bundles the program for a runtime with Node's modules. It is not minified, because the program of the workers is built from
 * source text.
 */
export const forHost = (): Promise<string> =>
  bundle({ entryPoints: [join(here, "hostKit.ts")], platform: "node", format: "esm" })

/** Bundles the laws on a host as a script for a realm with Node's modules. */
export const forRealm = (): Promise<string> =>
  bundle({ entryPoints: [join(here, "hosts.ts")], platform: "node", format: "iife" })

const bundle = async (options: BuildOptions): Promise<string> => {
  const { outputFiles } = await build({
    ...options,
    bundle: true,
    globalName: "kit",
    logLevel: "silent",
    write: false
  })
  return outputFiles[0]!.text
}

/** Makes a directory, in memory if possible, and returns it with a function that removes it. */
export const scratch = (): { readonly path: string; readonly remove: () => void } => {
  const path = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "fs-algebra-runtime-"))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** The timeout of a run in milliseconds. A run takes seconds, but minutes on a busy machine. */
export const timeoutMillis = 400_000

const run = (program: string, args: ReadonlyArray<string>, env: Record<string, string>): Promise<unknown> =>
  new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { env: { ...process.env, ...env }, maxBuffer: 1e8, timeout: timeoutMillis - 10_000, killSignal: "SIGKILL" },
      (error, out, err) => {
        if (error === null) resolve(JSON.parse(out))
        else reject(new Error(`${error.message}\n${out}\n${err}`))
      }
    )
  })

interface HostReport {
  readonly memory: Report
  readonly host: Report
  readonly features: unknown
}

/** Runs the program for hosts. `names` tells whether the runtime handles names on disk as bytes or as text. */
export const runOnHost = async (
  name: "bun" | "deno",
  { args, names }: { readonly args: ReadonlyArray<string>; readonly names: Names }
): Promise<HostReport> => {
  const { path, remove } = scratch()
  try {
    const main = join(path, "main.mjs")
    writeFileSync(main, await forHost())
    // Without these variables the runtimes write to the user's home or look for updates.
    const env = { HOME: path, DENO_DIR: join(path, "cache"), DENO_NO_UPDATE_CHECK: "1", DO_NOT_TRACK: "1" }
    return (await run(binary(name), [...args, main, path, names], env)) as HostReport
  } finally {
    remove()
  }
}
