/** Starts MCP filesystem servers: the official server, and a hostile one. */
import { NodeServices } from "@effect/platform-node"
import * as McpClient from "effect/ai/McpClient"
import { v2025_11_25 } from "effect/ai/McpProtocol"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as ChildProcess from "effect/process/ChildProcess"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as McpFilesystem from "../../src/adapters/McpFilesystem.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { Bench } from "../../src/testing/Law.ts"
import { onDisk } from "../conformance/filesystems.ts"
import { inMemory } from "../scratch.ts"

const packageFile = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-filesystem/package.json")

export const installedVersion: string = JSON.parse(Fs.readFileSync(packageFile, "utf8")).version

export const official = (...directories: ReadonlyArray<string>): ChildProcess.Command =>
  ChildProcess.make(process.execPath, [join(dirname(packageFile), "dist/index.js"), ...directories])

const hostileProgram = fileURLToPath(new URL("hostileMcpServer.mjs", import.meta.url))

export const hostile = (...args: ReadonlyArray<string>): ChildProcess.Command =>
  ChildProcess.make(process.execPath, [hostileProgram, ...args])

export const overStdio = (
  command: ChildProcess.Command,
  options?: McpFilesystem.McpFilesystemOptions
): Layer.Layer<Filesystem, McpFilesystem.OpenError> =>
  Layer.provide(McpFilesystem.layerStdio({ command, ...options }), NodeServices.layer)

export const newDirectory = (): string => Fs.mkdtempSync(join(inMemory(), "mcp-"))

/**
 * Starts one official server, and returns layers over its directory. Each build of a layer removes all files first, so
 * a suite needs only one process.
 */
export const sharedServer = () => {
  const root = newDirectory()
  const client = McpClient.layerStdio({
    name: "test",
    version: "1.0.0",
    command: official(root),
    protocol: v2025_11_25,
    maxMessageBytes: 32 * 1024 * 1024
  })
  const disk = PosixHost.layer({ root })
  const runtime = ManagedRuntime.make(Layer.merge(Layer.provide(client, NodeServices.layer), disk))
  /** `prepare` gets the host's filesystem of the same directory. */
  const layer = <E>(
    options?: McpFilesystem.McpFilesystemOptions,
    prepare: Effect.Effect<void, E, Filesystem> = Effect.void
  ): Layer.Layer<Filesystem, unknown> =>
    Layer.unwrap(
      Effect.gen(function* () {
        execFileSync("find", [root, "-mindepth", "1", "-delete"])
        const services = yield* runtime.contextEffect
        yield* Effect.provideContext(prepare, services)
        const writable = yield* Effect.provideContext(Filesystem, services)
        return Layer.merge(
          Layer.provide(McpFilesystem.layer(options), Layer.succeedContext(services)),
          Layer.succeed(Bench, { ...onDisk(root), writable })
        )
      })
    )
  return { root, layer, close: () => runtime.dispose() }
}
