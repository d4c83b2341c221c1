import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { binary, forWeb, timeoutMillis, scratch } from "./engines.ts"
import { isInstalled } from "./installed.ts"
import { expected } from "./expected.ts"

const worker = `import * as kit from "./kit.mjs"
export default {
  fetch: async (request) => {
    const memory = await kit.conformance(await request.json())
    return Response.json({ hasNode: typeof globalThis.process?.getBuiltinModule === "function", memory, features: await kit.features() })
  }
}`

/** Two services with the same program, without and with the Node modules of the runtime. */
const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "bare", worker = .bare), (name = "node", worker = .node)],
  sockets = [
    (name = "bare", address = "127.0.0.1:0", http = (), service = "bare"),
    (name = "node", address = "127.0.0.1:0", http = (), service = "node")
  ]
);
const modules :List(Workerd.Worker.Module) = [
  (name = "main.mjs", esModule = embed "main.mjs"),
  (name = "kit.mjs", esModule = embed "kit.mjs")
];
const bare :Workerd.Worker = (modules = .modules, compatibilityDate = "2025-01-01");
const node :Workerd.Worker = (modules = .modules, compatibilityDate = "2026-11-01");
`

describe.runIf(isInstalled("workerd"))("the library in workerd", () => {
  const ports = new Map<string, number>()
  let child: ChildProcess
  let remove: () => void

  beforeAll(async () => {
    const directory = scratch()
    remove = directory.remove
    writeFileSync(join(directory.path, "kit.mjs"), await forWeb("esm"))
    writeFileSync(join(directory.path, "main.mjs"), worker)
    writeFileSync(join(directory.path, "config.capnp"), config)
    child = spawn(binary("workerd"), ["serve", "--control-fd=3", join(directory.path, "config.capnp")], {
      stdio: ["ignore", "inherit", "inherit", "pipe"]
    })
    for await (const line of createInterface(child.stdio[3] as Readable)) {
      const event = JSON.parse(line) as { readonly event: string; readonly socket: string; readonly port: number }
      if (event.event === "listen") ports.set(event.socket, event.port)
      if (ports.size === 2) break
    }
  })
  afterAll(() => {
    child?.kill()
    remove?.()
  })

  for (const [service, hasNode] of [
    ["bare", false],
    ["node", true]
  ] as const) {
    it(
      `keeps every law in memory, and makes archives, snapshots and tools, ${hasNode ? "with" : "without"} Node's modules`,
      { timeout: timeoutMillis },
      async () => {
        const body = JSON.stringify({ programs: 20, hasThreads: false })
        const answer = await fetch(`http://127.0.0.1:${ports.get(service)}`, { method: "POST", body })
        assert.strictEqual(answer.status, 200)
        const { features, hasNode: found, memory } = (await answer.json()) as any
        assert.strictEqual(found, hasNode)
        assert.deepStrictEqual(memory.broken, [])
        assert.isAbove(memory.held, 800)
        assert.deepStrictEqual(features, expected)
      }
    )
  }
})
