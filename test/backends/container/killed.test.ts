import { assert, it } from "@effect/vitest"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { onDisk } from "../../scratch.ts"
import { busyboxRoot, describePodman } from "./podman.ts"

const project = fileURLToPath(new URL("../../..", import.meta.url))

const until = async (what: string, holds: () => boolean): Promise<void> => {
  for (let tries = 0; tries < 600; tries++) {
    if (holds()) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.fail(`timed out before ${what}`)
}

/** Returns the processes, also in containers, whose mounts, environment or command line name the directory. */
const processes = (directory: string): ReadonlyArray<string> =>
  Fs.readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) return false
    try {
      const told = Fs.readFileSync(`/proc/${pid}/cmdline`, "utf8") + Fs.readFileSync(`/proc/${pid}/environ`, "utf8")
      return told.includes(directory) || Fs.readFileSync(`/proc/${pid}/mountinfo`, "utf8").includes(directory)
    } catch {
      return false
    }
  })

const volumes = (): ReadonlyArray<string> =>
  execFileSync("podman", ["volume", "ls", "--format", "{{.Name}}"], { encoding: "utf8" }).split("\n").sort()

describePodman("with podman", () => {
  it("a killed run of tests leaves no container, volume, directory or process", async () => {
    busyboxRoot()
    const before = volumes()
    const place = Fs.mkdtempSync(join(onDisk(), "killed-"))
    const run = spawn("npx", ["vitest", "run", "--config", "test/vitest.config.ts", "test/history/containers.test.ts"], {
      cwd: project,
      detached: true,
      stdio: "ignore",
      env: { ...process.env, TMPDIR: place }
    })
    const ended = new Promise((resolve) => run.on("close", resolve))
    const containers = () =>
      execFileSync("podman", ["ps", "--all", "--format", "{{.Names}} {{.Mounts}} {{.ID}}", "--filter", "label=fs-algebra=1"], {
        encoding: "utf8"
      })
        .split("\n")
        .filter((line) => line !== "")
    const roots = () => Fs.readdirSync(place).filter((name) => name.startsWith("fs-algebra-"))
    await until("it has a directory", () => roots().length > 0)
    const others = new Set(containers())
    await until("it has a container", () => processes(place).length > 0 && containers().some((each) => !others.has(each)))
    process.kill(-run.pid!, "SIGKILL")
    await ended
    await until("its directories are gone", () => roots().length === 0)
    await until("its processes are gone", () => processes(place).length === 0)
    await until("its volumes are gone", () => volumes().every((name) => before.includes(name)))
    await until("its containers are gone", () => containers().every((each) => others.has(each)))
  })
})
