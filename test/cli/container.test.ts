/** Tests the command line with a real container: exec, and the tools of an agent. */
import { afterAll, assert, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { call } from "../agent/mcpSessions.ts"
import { busyboxRoot, describePodman } from "../backends/container/podman.ts"
import { onDisk } from "../scratch.ts"
import { commandLine } from "../bundled.ts"

const bin = commandLine()

describePodman("with podman", () => {
  const root = Fs.mkdtempSync(join(onDisk(), "cli-"))
  afterAll(() => Fs.rmSync(root, { recursive: true, force: true }))
  const env = () => ({
    PATH: process.env["PATH"] ?? "",
    HOME: onDisk(),
    XDG_STATE_HOME: `${root}.state`,
    ...(process.env["CONTAINERS_CONF"] === undefined ? {} : { CONTAINERS_CONF: process.env["CONTAINERS_CONF"] })
  })
  afterAll(() => Fs.rmSync(`${root}.state`, { recursive: true, force: true }))

  interface Ended {
    readonly code: number | null
    readonly out: string
    readonly err: string
  }

  const run = (args: ReadonlyArray<string>, then?: (child: ReturnType<typeof spawn>) => void) =>
    new Promise<Ended>((resolve) => {
      const child = spawn(process.execPath, [bin, ...args], { cwd: root, env: env() })
      let [out, err] = ["", ""]
      then?.(child)
      child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
      child.stdin.end("from outside")
      child.on("close", (code) => resolve({ code, out, err }))
    })

  const none = () =>
    assert.strictEqual(
      execFileSync("podman", ["ps", "--all", "--filter", `volume=${root}`, "--format", "{{.Names}}"], { encoding: "utf8" }),
      ""
    )

  it("exec accepts a path to podman as --engine, even under another name", async () => {
    const podman = execFileSync("sh", ["-c", "command -v podman"], { encoding: "utf8" }).trim()
    const engines = `${root}.engines`
    afterAll(() => Fs.rmSync(engines, { recursive: true, force: true }))
    Fs.mkdirSync(engines)
    Fs.symlinkSync(podman, join(engines, "podman-test"))
    for (const engine of [podman, join(engines, "podman-test")]) {
      const ran = await run(["exec", "--engine", engine, "--rootfs", busyboxRoot(), "--", "echo", "ran"])
      assert.deepStrictEqual(ran, { code: 0, out: "ran\n", err: "" })
    }
    none()
  })

  it("exec runs as the owner of the files, and leaves no container", async () => {
    Fs.writeFileSync(join(root, "in.txt"), "inside\n")
    const script = "cat in.txt - > out.txt; echo done; echo oops >&2; exit 3"
    const ran = await run(["exec", "--rootfs", busyboxRoot(), "--stdin", "--", "sh", "-c", script])
    assert.deepStrictEqual(ran, { code: 3, out: "done\n", err: "oops\n" })
    assert.strictEqual(Fs.readFileSync(join(root, "out.txt"), "utf8"), "inside\nfrom outside")
    const { gid, uid } = Fs.statSync(root)
    const made = Fs.statSync(join(root, "out.txt"))
    assert.deepStrictEqual([made.uid, made.gid], [uid, gid])
    none()
  })

  it("exec has no network, and exits with code 127 for a missing program", async () => {
    const interfaces = await run(["exec", "--rootfs", busyboxRoot(), "--", "ls", "/sys/class/net"])
    assert.deepStrictEqual(interfaces, { code: 0, out: "lo\n", err: "" })
    const missing = await run(["exec", "--rootfs", busyboxRoot(), "--", "no-such-program"])
    assert.strictEqual(missing.code, 127)
    assert.match(missing.err, /no-such-program/)
  })

  it("exec prints while its command runs, and exits with code 128 plus the number of a fatal signal", async () => {
    const script = "echo early; while [ ! -e printed ]; do sleep 0.1; done; rm printed; kill -TERM $$"
    const ran = await run(["exec", "--rootfs", busyboxRoot(), "--timeout", "100", "--", "sh", "-c", script], (child) => {
      child.stdout!.on("data", () => Fs.writeFileSync(join(root, "printed"), ""))
    })
    assert.deepStrictEqual([ran.code, ran.out], [143, "early\n"])
    none()
  })

  it("exec ends when the reader of its output exits, and when its command exits before standard input ends", async () => {
    const program = `"${process.execPath}" "${bin}" exec --rootfs "${busyboxRoot()}"`
    const script = `${program} -- yes | head -n 2; yes no | ${program} --stdin -- head -n 1`
    assert.strictEqual(execFileSync("sh", ["-c", script], { cwd: root, env: env(), encoding: "utf8" }), "y\ny\nno\n")
    none()
  })

  it("exec exits with code 130 if its process group is interrupted, and stops its command and the container", async () => {
    const script = "trap '' TERM INT; echo > started.txt; sleep 60; echo > late.txt"
    const child = spawn(process.execPath, [bin, "exec", "--rootfs", busyboxRoot(), "--", "sh", "-c", script], {
      cwd: root,
      env: env(),
      detached: true,
      stdio: "ignore"
    })
    const ended = new Promise((resolve) => child.on("close", resolve))
    while (!Fs.existsSync(join(root, "started.txt"))) await new Promise((resolve) => setTimeout(resolve, 20))
    process.kill(-child.pid!, "SIGINT")
    assert.strictEqual(await ended, 130)
    assert.isFalse(Fs.existsSync(join(root, "late.txt")))
    Fs.rmSync(join(root, "started.txt"))
    none()
  })

  it("exec stops its command and the container after SIGINT", async () => {
    const script = "trap '' TERM INT; echo > started.txt; sleep 60; echo > late.txt"
    const ran = await run(["exec", "--rootfs", busyboxRoot(), "--timeout", "60", "--", "sh", "-c", script], (child) => {
      const watching = setInterval(() => {
        if (!Fs.existsSync(join(root, "started.txt"))) return
        clearInterval(watching)
        child.kill("SIGINT")
      }, 20)
    })
    assert.strictEqual(ran.code, 130, ran.err)
    assert.isFalse(Fs.existsSync(join(root, "late.txt")))
    none()
  })

  it("a filesystem command with --backend container reads the files of the directory, and leaves no container", async () => {
    const ran = await run(["cat", "in.txt", "--backend", "container", "--rootfs", busyboxRoot()])
    assert.deepStrictEqual([ran.code, ran.err], [0, ""])
    assert.match(ran.out, /inside/)
    none()
  })

  it("mcp with a container has the tools shell and eval, which share files with the other tools", async () => {
    const args = [bin, "mcp", "--root", root, "--backend", "container", "--rootfs", busyboxRoot()]
    const client = new Client({ name: "test", version: "1" })
    await client.connect(new StdioClientTransport({ command: process.execPath, args, env: env(), stderr: "pipe" }))
    try {
      const { tools } = await client.listTools()
      assert.includeMembers(
        tools.map(({ name }) => name),
        ["shell", "eval", "read_file", "snapshot"]
      )
      const ran = await call(client, "shell", { command: ["sh", "-c", "echo made > by-agent.txt; id -u"] })
      assert.match(
        ran.text,
        new RegExp(`^exit code 0 .*\nstdout:\n${Fs.statSync(root).uid}\nCheckpoint \\w+ contains all files`)
      )
      const read = await call(client, "read_file", { path: "by-agent.txt" })
      assert.include(read.text, "| made\n")
    } finally {
      await client.close()
    }
    none()
  })
})
