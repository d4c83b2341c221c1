/** `--hardlinks reject` hides a denied file also under its second name, from every command and over MCP. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { onDisk } from "../scratch.ts"
import { commandLine } from "../bundled.ts"

const bin = commandLine()

const reject = ["--hardlinks", "reject"]

/** Runs the command line in a new directory, where `public.txt` is a second name of `.env`. */
const run = (args: ReadonlyArray<string>, input = "") => {
  const root = Fs.mkdtempSync(join(onDisk(), "hardlinks-"))
  try {
    Fs.writeFileSync(join(root, ".env"), "SECRET\n")
    Fs.linkSync(join(root, ".env"), join(root, "public.txt"))
    Fs.writeFileSync(join(root, "a.txt"), "one name\n")
    const env = { PATH: process.env["PATH"], HOME: `${root}/none`, XDG_STATE_HOME: `${root}.state` }
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, ...args], { cwd: root, env, input, encoding: "utf8" })
    return { code: status, out: stdout, err: stderr, secret: Fs.readFileSync(join(root, ".env"), "utf8") }
  } finally {
    Fs.rmSync(root, { recursive: true, force: true })
    Fs.rmSync(`${root}.state`, { recursive: true, force: true })
  }
}

const initialize = {
  id: "init",
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
}

/** Runs an MCP client that reads the file under its second name, searches and changes it, and returns the answers. */
const asked = (args: ReadonlyArray<string>) => {
  const calls: ReadonlyArray<readonly [string, object]> = [
    ["read_file", { path: "public.txt" }],
    ["grep", { pattern: "SECRET" }],
    ["copy", { from: "public.txt", to: "copied.txt" }],
    ["edit_file", { path: "public.txt", old_string: "SECRET", new_string: "x" }],
    ["write_file", { path: "public.txt", content: "x", mode: "append" }],
    ["read_file", { path: "a.txt" }]
  ]
  const messages = [
    initialize,
    ...calls.map(([name, input], id) => ({ id, method: "tools/call", params: { name, arguments: input } }))
  ]
  const lines = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("")
  return run(["mcp", "--no-snapshots", "--deny", ".env", ...args], lines)
}

const isHardlinkless = process.platform === "win32"

describe.skipIf(isHardlinkless)("--hardlinks:", () => {
  for (const args of [
    ["cat", "public.txt"],
    ["grep", "SECRET"],
    ["edit", "public.txt", "--old", "SECRET", "--new", "x"],
    ["cp", "public.txt", "copied.txt"],
    ["cat", "public.txt", "--backend", "memory"]
  ]) {
    it(`reject hides the content of a file with several names from ${args.join(" ")}`, () => {
      const { code, err, out, secret } = run([...args, ...reject])
      assert.notStrictEqual(code, 0, out)
      assert.notInclude(out + err, "SECRET")
      assert.strictEqual(secret, "SECRET\n")
    })
  }

  it("reject reports the flag and the reason for the refusal", () => {
    const { err } = run(["cat", "public.txt", ...reject])
    assert.include(err, "several names")
    assert.include(err, "--hardlinks reject")
  })

  it("allow is the default, and permits the read of a file with several names", () => {
    for (const args of [[], ["--hardlinks", "allow"]]) assert.strictEqual(run(["cat", "public.txt", ...args]).out, "SECRET\n")
  })

  for (const [how, args] of [
    ["with the flag read by the fast parser", []],
    ["with the flag read by the full parser", ["--json"]]
  ] as const) {
    it(`reject hides the second name of a denied file from MCP clients, ${how}`, () => {
      const { out, secret } = asked([...reject, ...args])
      assert.notInclude(out, "SECRET\\n")
      assert.include(out, "one name")
      assert.strictEqual(secret, "SECRET\n")
    })
  }

  it("the default permits MCP clients to read a denied file under its second name", () => {
    assert.include(asked([]).out, "SECRET")
  })

  it("reject is refused for a container, because a container cannot enforce it", () => {
    for (const args of [
      ["exec", "--image", "x", ...reject, "--", "cat", "public.txt"],
      ["ls", "--backend", "container", "--image", "x", ...reject]
    ]) {
      const { code, err } = run(args)
      assert.strictEqual(code, 2, err)
      assert.include(err, "--hardlinks reject cannot be enforced with a container")
    }
  })
})
