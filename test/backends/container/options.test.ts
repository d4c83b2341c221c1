import { assert, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import { join } from "node:path"
import { afterAll } from "vitest"
import { type ContainerOptions, plan } from "../../../src/backends/container/options.ts"
import { onDisk } from "../../scratch.ts"

const top = Fs.mkdtempSync(join(onDisk(), "options-"))
afterAll(() => Fs.rmSync(top, { recursive: true, force: true }))
for (const name of ["allowed", "allowed/in", "other"]) Fs.mkdirSync(join(top, name))
Fs.symlinkSync(join(top, "other"), join(top, "allowed/out"))
Fs.symlinkSync(join(top, "allowed"), join(top, "link"))

const made = (options: unknown) => plan({ image: "alpine", ...(options as object) } as ContainerOptions, { uid: 0, gid: 0 })

const allowedRoots = [join(top, "allowed")]
const source = join(top, "allowed/in")

const refused: ReadonlyArray<readonly [argument: string, options: unknown]> = [
  ["engine", { engine: "runc" }],
  ["engine", { engine: "podman --remote" }],
  ["engine", { engine: "dockerd" }],
  ["engine", { engine: "/usr/bin/true" }],
  ["engine", { engine: "bin/podman" }],
  ["engine", { engine: "./podman" }],
  ["engine", { engine: "/opt/podman/" }],
  ["engine", { engine: "" }],
  ["engine", { engine: 7 }],
  ["engine", { engine: "/opt/pod\0man" }],
  ["image", { image: { rootfs: "/srv/alpine" }, engine: "/opt/bin/nerdctl" }],
  ["image", { image: "" }],
  ["image", { image: "--privileged" }],
  ["image", { image: "a b" }],
  ["image", { image: "a\nb" }],
  ["image", { image: undefined }],
  ["image", { image: { rootfs: "relative" } }],
  ["image", { image: { rootfs: "/srv/a:O,upperdir=/" } }],
  ["image", { image: { rootfs: "/srv/alpine" }, engine: "docker" }],
  ["strategy", { strategy: "ssh" }],
  ["start", { start: "never" }],
  ["start", { start: "lazy", strategy: "exec" }],
  ["workdir", { workdir: "/" }],
  ["workdir", { workdir: "/./" }],
  ["workdir", { workdir: "work" }],
  ["workdir", { workdir: "/a/../b" }],
  ["workdir", { workdir: "/a:b" }],
  ["workdir", { workdir: "/a,src=/etc" }],
  ["workdir", { workdir: '/a"b' }],
  ["workdir", { workdir: "/a\nb" }],
  ["workdir", { workdir: "/tmp/x" }],
  ["workdir", { workdir: "/proc" }],
  ["hostDirectory", { hostDirectory: "relative" }],
  ["hostDirectory", { hostDirectory: "/a,readonly=false" }],
  ["hostDirectory", { hostDirectory: "/a\0b" }],
  ["hostDirectory", { hostDirectory: "/srv", strategy: "exec" }],
  ["user", { user: "root" }],
  ["user", { user: "1000" }],
  ["user", { user: "1:1 --privileged" }],
  ["user", { user: "4294967295:0" }],
  ["memoryBytes", { memoryBytes: 0 }],
  ["memoryBytes", { memoryBytes: 1.5 }],
  ["memoryBytes", { memoryBytes: Number.NaN }],
  ["memoryBytes", { memoryBytes: "1g" }],
  ["cpus", { cpus: -1 }],
  ["cpus", { cpus: Number.POSITIVE_INFINITY }],
  ["pids", { pids: 0 }],
  ["tmpfsBytes", { tmpfsBytes: -1 }],
  ["network", { network: "" }],
  ["network", { network: "--privileged" }],
  ["network", { network: "a b" }],
  ["environment", { environment: { "A-B": "1" } }],
  ["environment", { environment: { "A*": "1" } }],
  ["environment", { environment: { A: "x\0y" } }],
  ["environment", { environment: { A: 1 } }],
  ["evalLanguage", { evalLanguage: "perl" }],
  ["runArguments", { runArguments: ["a\0b"] }],
  ["mounts", { mounts: [{ source, target: "/data" }] }],
  ["mounts", { mounts: [{ source, target: "/data" }], allowedRoots: [] }],
  ["mounts", { mounts: [{ source: join(top, "other"), target: "/data" }], allowedRoots }],
  ["mounts", { mounts: [{ source: join(top, "allowed/out"), target: "/data" }], allowedRoots }],
  ["mounts", { mounts: [{ source: join(top, "allowed/../other"), target: "/data" }], allowedRoots }],
  ["mounts", { mounts: [{ source: "relative", target: "/data" }], allowedRoots }],
  ["mounts", { mounts: [{ source: `${source},x`, target: "/data" }], allowedRoots }],
  ["mounts", { mounts: [{ source, target: "data" }], allowedRoots }],
  ["mounts", { mounts: [{ source, target: "/proc/1" }], allowedRoots }],
  ["mounts", { mounts: [{ source, target: "/workspace/data" }], allowedRoots }],
  ["mounts", { mounts: [{ source, target: "/a/b" }], allowedRoots, workdir: "/a/b/c" }]
]

describe("the options of a container:", () => {
  for (const [argument, options] of refused) {
    it(`${JSON.stringify(options).replaceAll(top, "")} is refused before anything runs`, () => {
      const fault = made(options)
      assert.deepInclude(fault, { _tag: "InvalidArgument", argument })
    })
  }

  it("a mount inside an allowed root is read-only by default, and its links are resolved", () => {
    const mounts = [
      { source: join(top, "link/in"), target: "/data/" },
      { source, target: "/more", readOnly: false }
    ]
    assert.deepInclude(made({ mounts, allowedRoots }), {
      mounts: [
        { source, target: "/data", readOnly: true },
        { source, target: "/more", readOnly: false }
      ]
    })
  })

  for (const [program, engine] of [
    ["nerdctl", "nerdctl"],
    ["podman-remote", "podman"],
    ["/opt/my engines/docker-28.2", "docker"],
    ["/usr/local/bin/podman", "podman"],
    ["/opt/podman.exe", "podman"]
  ] as const) {
    it(`${program} is recognised as ${engine}`, () => {
      assert.deepInclude(made({ engine: program }), { program, engine })
    })
  }

  it("the default profile has the documented limits, user, workdir and network", () => {
    assert.deepInclude(made({}), {
      engine: "podman",
      program: "podman",
      strategy: "overlay",
      workdir: "/workspace",
      start: "lazy",
      user: { uid: 65534, gid: 65534 },
      memoryBytes: 1073741824,
      cpus: 1,
      pids: 256,
      tmpfsBytes: 268435456,
      network: "none",
      evalLanguage: "javascript"
    })
    assert.deepInclude(made({ strategy: "exec" }), { start: "eager" })
  })
})
