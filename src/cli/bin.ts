#!/usr/bin/env node
/** Starts the command line: checks the version of Node and enables the compile cache before it loads anything large. */
import * as NodeModule from "node:module"
import { homedir } from "node:os"
import { join } from "node:path"
import { makePrivateDirectory, stateDirectory } from "../runtime/privateDirectory.ts"
import { isTooOld } from "./nodeVersion.ts"

// A static import of node:fs would also load its streams. Old versions of Node lack `getBuiltinModule`.
const { readFileSync, writeSync } = process.getBuiltinModule?.("node:fs") ?? (await import("node:fs"))

const { engines, version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly engines: { readonly node: string }
  readonly version: string
}

if (isTooOld(process.version, engines.node)) {
  process.stderr.write(
    `error: fs-algebra needs Node ${engines.node}, but this is ${process.version}\nhint:  Install a newer Node.\n`
  )
  process.exit(9)
}

const args = process.argv.slice(2)

// Scripts request the version often, so print it without loading the modules below. If the output fails, the normal path
// reports the error.
if (args.length === 1 && (args[0] === "--version" || args[0] === "-v")) {
  try {
    writeSync(1, `fs-algebra v${version}\n`)
    process.exit(0)
  } catch {}
}

const home = (): string => {
  try {
    return homedir()
  } catch {
    return ""
  }
}

/**
 * Returns the directory for Node's compile cache, or `undefined` if there is no private directory. By default Node uses a fixed
 * name in the shared temporary directory. Another user could create this directory and put code there that Node would run.
 */
const compileCache = (): string | undefined => {
  const state = stateDirectory({ platform: process.platform, environment: process.env, home: home() })
  if (state === undefined) return undefined
  const directory = join(state, "fs-algebra")
  const cache = join(directory, "compile-cache")
  try {
    return makePrivateDirectory(directory) && makePrivateDirectory(cache) ? cache : undefined
  } catch {
    return undefined
  }
}

// Enable the cache before large modules are loaded, so that Node need not compile them again.
const cache = compileCache()
if (cache !== undefined) NodeModule.enableCompileCache(cache)

const { start } = await import("./start.ts")
await start(args, { home: home(), version })
