/**
 * Bundles programs of child processes, each once in a test run. A bundle starts faster than the sources, because Node loads a
 * few files instead of hundreds and strips no types.
 */
import { buildSync } from "esbuild"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { onDisk } from "./scratch.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const ssh2 = join(root, "node_modules/ssh2/lib/index.js")

/** Returns the path of the bundled program. */
export const bundled = (source: URL): string => {
  const file = fileURLToPath(source)
  const top = process.env["FS_ALGEBRA_BUNDLES"] ?? onDisk()
  const name = `${basename(file, ".ts")}-${createHash("sha256").update(file).digest("hex").slice(0, 8)}`
  const directory = join(top, "bundles", name)
  const program = join(directory, `${basename(file, ".ts")}.js`)
  if (Fs.existsSync(program)) return program
  // The command line reads the manifest two directories above itself. The manifest also makes the bundles modules.
  Fs.mkdirSync(join(top, "bundles"), { recursive: true })
  Fs.copyFileSync(join(root, "package.json"), join(top, "package.json"))
  const fresh = Fs.mkdtempSync(join(top, "bundles", "fresh-"))
  buildSync({
    entryPoints: [file],
    outdir: fresh,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    // ssh2 reads its own directory, so it is loaded from there.
    alias: { ssh2 },
    external: [ssh2],
    // Libraries in CommonJS require the modules of Node.
    banner: { js: 'import { createRequire as requireFor } from "node:module"; const require = requireFor(import.meta.url);' }
  })
  try {
    Fs.renameSync(fresh, directory)
  } catch (error) {
    // Another worker has built the same program.
    if (!Fs.existsSync(program)) throw error
    Fs.rmSync(fresh, { recursive: true })
  }
  return program
}

/** Returns the command line as a program. */
export const commandLine = (): string => bundled(new URL("../src/cli/bin.ts", import.meta.url))
