/**
 * A server process on a Unix socket, compared with the same directory in this process, and with a bare server of effect/rpc that
 * answers the same. The comparison with the bare server is meaningful under load too, because load slows both.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Remote from "../../src/remote/Remote.ts"
import type { Case } from "../harness.ts"
import { Bare } from "../bareRpc.ts"
import { check, effects } from "../harness.ts"

const bareServer = fileURLToPath(new URL("../bareRpc.ts", import.meta.url))
const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url))

/** Starts `fs-algebra serve`, and returns when it listens. */
const startServer = (root: string, socket: string): Promise<ChildProcess> =>
  new Promise((resolve, reject) => {
    const args = [bin, "serve", "--root", root, "--listen", `unix:${socket}`, "--json"]
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
    child.stdout!.once("data", () => resolve(child))
    child.once("exit", () => reject(new Error("the server ended")))
  })

const prepared = async (fill: (root: string) => void) => {
  const top = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  const root = join(top, "files")
  mkdirSync(root)
  fill(root)
  const socket = join(top, "a.sock")
  const server = await startServer(root, socket)
  const local = ManagedRuntime.make(Layer.fresh(PosixHost.layer({ root })))
  const remote = ManagedRuntime.make(Layer.fresh(Remote.layerUrl(`unix:${socket}`)))
  return {
    root,
    local: await local.runPromise(Filesystem.Filesystem),
    remote: await remote.runPromise(Filesystem.Filesystem),
    close: async () => {
      await remote.dispose()
      await local.dispose()
      server.kill()
      rmSync(top, { recursive: true })
    }
  }
}

/** Starts the bare server of effect/rpc on the same directory, and returns its client. */
const bare = async (root: string, socket: string) => {
  const child = spawn(process.execPath, [bareServer, root, socket], { stdio: ["ignore", "pipe", "inherit"] })
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve())
    child.once("exit", () => reject(new Error("the bare server ended")))
  })
  const protocol = RpcClient.layerProtocolSocket().pipe(
    Layer.provide(NodeSocket.layerNet({ path: socket })),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )
  const scope = Scope.makeUnsafe()
  const client = await Effect.runPromise(
    Effect.flatMap(Layer.build(protocol), (context) =>
      Effect.provideContext(RpcClient.make(Bare, { disableTracing: true }), context)
    ).pipe(Scope.provide(scope))
  )
  return {
    client,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      child.kill()
    }
  }
}

const besideBare = async () => {
  const { close, remote, root } = await prepared(fillSmall)
  const other = await bare(root, `${root}.sock`)
  return {
    remote,
    client: other.client,
    close: async () => {
      await other.close()
      await close()
    }
  }
}

const mebibyte = 1024 ** 2
const streamMebibytes = 256

const fillSmall = (root: string): void => writeFileSync(join(root, "a.bin"), Buffer.alloc(4096, 97))

const fillMany = (root: string): void => {
  for (let directory = 0; directory < 300; directory++) {
    mkdirSync(join(root, `d${directory}`))
    for (let file = 0; file < 100; file++) {
      const isMatch = directory % 50 === 0 && file === 0
      writeFileSync(join(root, `d${directory}`, `${file}.txt`), `${"a line of text\n".repeat(60)}${isMatch ? "needle\n" : ""}`)
    }
  }
}

export const cases: ReadonlyArray<Case> = [
  {
    name: "remote: stat",
    target: "≤ 220 µs beyond the local one",
    bound: 220,
    figure: "overhead µs",
    count: 300,
    samples: 21,
    make: async () => {
      const { close, local, remote } = await prepared(fillSmall)
      check((await Effect.runPromise(remote.stat("a.bin"))).sizeBytes === 4096)
      return {
        ours: { name: "Remote", run: effects(remote.stat("a.bin")) },
        baseline: { name: "PosixHost", run: effects(local.stat("a.bin")) },
        close
      }
    }
  },
  {
    name: "remote: readBytes of 4 KiB",
    target: "≤ 260 µs beyond the local one",
    bound: 260,
    figure: "overhead µs",
    count: 300,
    samples: 21,
    make: async () => {
      const { close, local, remote } = await prepared(fillSmall)
      check(Buffer.compare((await Effect.runPromise(remote.readBytes("a.bin"))).content, Buffer.alloc(4096, 97)) === 0)
      return {
        ours: { name: "Remote", run: effects(remote.readBytes("a.bin")) },
        baseline: { name: "PosixHost", run: effects(local.readBytes("a.bin")) },
        close
      }
    }
  },
  {
    name: "remote: stat beside a bare server",
    target: "≤ 2 of a bare server of effect/rpc",
    bound: 2,
    figure: "ratio",
    count: 300,
    samples: 21,
    make: async () => {
      const { client, close, remote } = await besideBare()
      const [ours, theirs] = await Effect.runPromise(Effect.all([remote.stat("a.bin"), client.stat({ path: "a.bin" })]))
      check(ours.sizeBytes === theirs.size)
      return {
        ours: { name: "Remote", run: effects(remote.stat("a.bin")) },
        baseline: { name: "effect/rpc", run: effects(client.stat({ path: "a.bin" })) },
        close
      }
    }
  },
  {
    name: "remote: readBytes of 4 KiB beside a bare server",
    target: "≤ 2 of a bare server of effect/rpc",
    bound: 2,
    figure: "ratio",
    count: 300,
    samples: 21,
    make: async () => {
      const { client, close, remote } = await besideBare()
      const [ours, theirs] = await Effect.runPromise(Effect.all([remote.readBytes("a.bin"), client.read({ path: "a.bin" })]))
      check(Buffer.compare(ours.content, theirs) === 0)
      return {
        ours: { name: "Remote", run: effects(remote.readBytes("a.bin")) },
        baseline: { name: "effect/rpc", run: effects(client.read({ path: "a.bin" })) },
        close
      }
    }
  },
  {
    name: `remote: stream of ${streamMebibytes} MiB`,
    target: "≥ 300 MB/s: at most 895,000 µs beyond the local one",
    bound: 895_000,
    figure: "overhead µs",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const { close, local, remote } = await prepared((root) =>
        writeFileSync(join(root, "big.bin"), Buffer.alloc(streamMebibytes * mebibyte, 97))
      )
      const read = (fs: typeof local) =>
        Stream.runFold(
          fs.stream("big.bin"),
          () => 0,
          (sum, chunk) => sum + chunk.length
        )
      check((await Effect.runPromise(read(remote))) === streamMebibytes * mebibyte)
      return {
        ours: { name: "Remote", run: effects(read(remote)) },
        baseline: { name: "PosixHost", run: effects(read(local)) },
        close
      }
    }
  },
  {
    name: "remote: grep over 30,000 files",
    target: "≤ 1.2 of the local one",
    bound: 1.2,
    figure: "ratio",
    count: 1,
    samples: 7,
    warmups: 2,
    make: async () => {
      const { close, local, remote } = await prepared(fillMany)
      const found = await Effect.runPromise(remote.grep("needle"))
      check(found.matches.length === 6 && found.filesSearched === 30_000)
      return {
        ours: { name: "Remote", run: effects(remote.grep("needle")) },
        baseline: { name: "PosixHost", run: effects(local.grep("needle")) },
        close
      }
    }
  }
]
