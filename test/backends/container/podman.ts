/**
 * Real podman for tests, with two root filesystems: one with busybox alone, one with dash and the GNU tools. Both are built
 * from programs of this machine and removed after the tests, even when the tests are killed.
 */
import { NodeServices } from "@effect/platform-node"
import { afterAll, describe } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Layer from "effect/Layer"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import * as Identity from "../../../src/runtime/processIdentity.ts"
import { onDisk } from "../../scratch.ts"

const install = "apt-get install podman runc busybox-static"

const busybox = ["/bin/busybox", "/usr/bin/busybox"].find((path) => Fs.existsSync(path))

/** The reason why containers cannot run here; `undefined` if they can. */
export const lacking: string | undefined =
  spawnSync("podman", ["--version"]).status !== 0
    ? `podman is not installed: ${install}`
    : busybox === undefined
      ? `busybox is not installed: ${install}`
      : undefined

let place: string | undefined

export const directory = (): string => (place ??= Fs.mkdtempSync(join(onDisk(), "podman-")))

const clear = (): void => {
  if (place !== undefined) Fs.rmSync(place, { recursive: true, force: true })
  place = undefined
  if (isConfigured) delete process.env["CONTAINERS_CONF"]
}

let isConfigured = false

const configure = (): void => {
  if (process.env["CONTAINERS_CONF"] !== undefined) return
  const file = join(directory(), "containers.conf")
  const runtime = spawnSync("runc", ["--version"]).status === 0 ? '[engine]\nruntime = "runc"\n' : ""
  Fs.writeFileSync(file, `[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n${runtime}`)
  process.env["CONTAINERS_CONF"] = file
  isConfigured = true
}

const skeleton = (name: string): string => {
  const root = join(directory(), name)
  for (const part of ["bin", "dev", "etc", "proc", "run", "sys", "tmp"]) Fs.mkdirSync(join(root, part), { recursive: true })
  Fs.chmodSync(join(root, "tmp"), 0o1777)
  return root
}

export const busyboxRoot = (): string => {
  const root = join(directory(), "busybox")
  if (Fs.existsSync(root)) return root
  skeleton("busybox")
  Fs.copyFileSync(busybox!, join(root, "bin/busybox"))
  for (const name of execFileSync(busybox!, ["--list"], { encoding: "utf8" }).trim().split("\n")) {
    if (name !== "busybox") Fs.symlinkSync("busybox", join(root, "bin", name))
  }
  return root
}

const tools =
  "[ base64 basename cat chmod chown cp cut date dd dirname du env expr false find grep head id kill ln ls mkdir mkfifo mktemp mv nproc od printf ps pwd readlink realpath rm rmdir sed seq setsid sleep sort stat stty sync tail tar tee test touch tr true truncate uname uniq wc xargs yes"

/** Returns a root filesystem with dash as its shell and the GNU tools, each with its libraries. */
export const gnuRoot = (): string => {
  const root = join(directory(), "gnu")
  if (Fs.existsSync(root)) return root
  skeleton("gnu")
  const take = (from: string, to = from): void => {
    const target = join(root, to)
    Fs.mkdirSync(dirname(target), { recursive: true })
    if (!Fs.existsSync(target)) Fs.copyFileSync(from, target)
  }
  const program = (name: string, as = name): void => {
    const found = ["/usr/bin", "/bin"].map((place) => join(place, name)).find((path) => Fs.existsSync(path))
    if (found === undefined) return
    take(Fs.realpathSync(found), `bin/${as}`)
    const { stdout } = spawnSync("ldd", [found], { encoding: "utf8" })
    for (const [library] of stdout.matchAll(/\/\S+(?= \()/g)) take(library)
  }
  program("dash", "sh")
  for (const name of tools.split(" ")) program(name)
  return root
}

export const containers = (owner: string = Identity.self()): ReadonlyArray<string> =>
  execFileSync("podman", ["ps", "--all", "--filter", `label=fs-algebra.owner=${owner}`, "--format", "{{.Names}}"], {
    encoding: "utf8"
  })
    .split("\n")
    .filter((name) => name !== "")

export const services = Layer.suspend(() =>
  Layer.merge(
    NodeServices.layer,
    ConfigProvider.layer(ConfigProvider.fromUnknown({ XDG_CACHE_HOME: join(directory(), "cache"), PATH: process.env["PATH"] }))
  )
)

/**
 * Tests whether containers can run here. If not, prints how to install podman and skips, or fails if no test may be skipped.
 */
export const use = (what: string): boolean => {
  if (lacking === undefined) {
    configure()
    afterAll(clear)
    return true
  }
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(lacking)
  describe.skip(`${what} (${lacking})`)
  return false
}

export const describePodman = (name: string, body: () => void): void => {
  if (use(name)) describe(name, body)
}
