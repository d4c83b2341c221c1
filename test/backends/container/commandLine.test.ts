import { assert, describe, it } from "@effect/vitest"
import * as CommandLine from "../../../src/backends/container/commandLine.ts"
import { keeper, wrapper } from "../../../src/backends/container/commandLine.ts"
import { type Caller, type ContainerOptions, plan, type Plan } from "../../../src/backends/container/options.ts"

const user: Caller = { uid: 1000, gid: 100 }
const root: Caller = { uid: 0, gid: 0 }

const planned = (options: ContainerOptions, caller: Caller = root): Plan => {
  const made = plan(options, caller)
  if ("_tag" in made) throw new Error(JSON.stringify(made))
  return made
}

const words = (line: string): ReadonlyArray<string> => line.split(" ")

const identity = { name: "fs-algebra-0123", owner: "a-1-2" }

const optionsOf = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.flatMap((argument, at) =>
    argument.startsWith("--") && args[at + 1] !== undefined ? [`${argument}=${args[at + 1]}`] : []
  )

describe("the command line of an engine", () => {
  it("contains every restriction of the profile for podman, a root filesystem and a host directory", () => {
    const args = CommandLine.run(planned({ image: { rootfs: "/srv/alpine" } }), { ...identity, directory: "/home/x/overlay" })
    assert.deepStrictEqual(args, [
      ...words("run --rm --interactive --name fs-algebra-0123"),
      ...words("--label fs-algebra=1 --label fs-algebra.owner=a-1-2"),
      ...words("--log-driver none --stop-timeout 0"),
      ...words("--network none --user 65534:65534"),
      ...words("--memory 1073741824 --memory-swap 1073741824 --cpus 1 --pids-limit 256"),
      ...words("--cap-drop all --security-opt no-new-privileges"),
      ...words("--tmpfs /tmp:rw,exec,size=268435456,mode=1777"),
      ...words("--mount type=bind,src=/home/x/overlay,dst=/workspace"),
      ...words("--workdir /workspace --env HOME=/tmp --env FS_ALGEBRA_EXEC=keeper"),
      ...words("--entrypoint /bin/sh --rootfs /srv/alpine:O -c"),
      keeper
    ])
  })

  it("mounts a workspace in memory, owned by the container's user, for docker and the exec strategy", () => {
    const args = CommandLine.run(planned({ engine: "docker", image: "alpine:3.20", strategy: "exec" }, user), identity)
    assert.deepStrictEqual(args, [
      ...words("run --rm --interactive --name fs-algebra-0123"),
      ...words("--label fs-algebra=1 --label fs-algebra.owner=a-1-2"),
      ...words("--log-driver none --stop-timeout 0"),
      ...words("--network none --user 65534:65534"),
      ...words("--memory 1073741824 --memory-swap 1073741824 --cpus 1 --pids-limit 256"),
      ...words("--cap-drop ALL --security-opt no-new-privileges"),
      ...words("--tmpfs /tmp:rw,exec,size=268435456,mode=1777"),
      ...words("--tmpfs /workspace:rw,exec,size=536870912,mode=0755,uid=65534,gid=65534"),
      ...words("--workdir /workspace --env HOME=/tmp --env FS_ALGEBRA_EXEC=keeper"),
      ...words("--entrypoint /bin/sh --pull missing alpine:3.20 -c"),
      keeper
    ])
  })

  it("mounts a volume that is removed with the container, for podman and the exec strategy", () => {
    const args = CommandLine.run(planned({ image: "alpine", strategy: "exec" }), identity)
    assert.include(optionsOf(args), "--mount=type=volume,dst=/workspace,U=true")
    assert.notInclude(args.join(" "), "type=bind")
  })

  const users: ReadonlyArray<
    readonly [what: string, options: Partial<ContainerOptions>, caller: Caller, user: string, userns: string | undefined]
  > = [
    ["podman, root", {}, root, "65534:65534", undefined],
    ["podman, not root", {}, user, "65534:65534", "keep-id:uid=65534,gid=65534"],
    ["podman, not root, a user given", { user: "7:8" }, user, "7:8", "keep-id:uid=7,gid=8"],
    ["podman, not root, no shared disk", { strategy: "exec" }, user, "65534:65534", undefined],
    ["docker, root", { engine: "docker" }, root, "65534:65534", undefined],
    ["docker, not root", { engine: "docker" }, user, "1000:100", undefined],
    ["docker, not root, no shared disk", { engine: "docker", strategy: "exec" }, user, "65534:65534", undefined],
    ["docker, a user given", { engine: "docker", user: "0:0" }, user, "0:0", undefined]
  ]
  for (const [what, options, caller, expected, userns] of users) {
    it(`has --user ${expected} ${userns === undefined ? "without --userns" : `and --userns ${userns}`} for ${what}`, () => {
      const args = CommandLine.run(planned({ image: "alpine", ...options }, caller), { ...identity, directory: "/d" })
      assert.strictEqual(args[args.indexOf("--user") + 1], expected)
      assert.strictEqual(args.includes("--userns") ? args[args.indexOf("--userns") + 1] : undefined, userns)
    })
  }

  it("has every limit of the options, and runArguments between our arguments and the image", () => {
    const args = CommandLine.run(
      planned({
        image: "alpine",
        workdir: "/srv/./work/",
        memoryBytes: 5e7,
        cpus: 0.5,
        pids: 9,
        tmpfsBytes: 4096,
        network: "slirp4netns",
        environment: { A: "x=y z" },
        runArguments: ["--memory", "1g", "--read-only"]
      }),
      { ...identity, directory: "/d" }
    )
    const options = optionsOf(args)
    for (const expected of [
      "--memory=50000000",
      "--memory-swap=50000000",
      "--cpus=0.5",
      "--pids-limit=9",
      "--tmpfs=/tmp:rw,exec,size=4096,mode=1777",
      "--network=slirp4netns",
      "--env=HOME=/tmp",
      "--env=A=x=y z",
      "--workdir=/srv/work",
      "--mount=type=bind,src=/d,dst=/srv/work"
    ]) {
      assert.include(options, expected)
    }
    assert.deepStrictEqual(
      args.slice(args.indexOf("FS_ALGEBRA_EXEC=keeper") + 1, -5),
      words("--memory 1g --read-only --entrypoint /bin/sh")
    )
  })

  for (const options of [{ readOnly: true }, { allowWrite: false }, { allowDelete: false }]) {
    it(`mounts the directory read-only unless every change is allowed: ${JSON.stringify(options)}`, () => {
      const args = CommandLine.run(planned({ image: "alpine", ...options }), { ...identity, directory: "/d" })
      assert.include(args, "type=bind,src=/d,dst=/workspace,readonly")
    })
  }

  it("passes a command as separate words that neither the engine nor a shell interprets", () => {
    const args = CommandLine.exec({
      name: "fs-algebra-0123",
      mark: "f00d",
      directory: "/workspace/a b",
      command: ["echo", "$(id)", "--privileged", ""],
      environment: { A: "1", FS_ALGEBRA_EXEC: "forged" },
      hasInput: true
    })
    assert.deepStrictEqual(args, [
      ...words("exec --interactive --env A=1 --env FS_ALGEBRA_EXEC=f00d fs-algebra-0123"),
      ...words("/bin/sh -c"),
      wrapper,
      ...words("sh"),
      "/workspace/a b",
      ...words("fed echo"),
      "$(id)",
      ...words("--privileged"),
      ""
    ])
    assert.notInclude(
      CommandLine.exec({ name: "n", mark: "m", directory: "/", command: ["x"], hasInput: false }),
      "--interactive"
    )
  })

  it("removes the volumes of a container too, and lists only containers with our label", () => {
    assert.deepStrictEqual(CommandLine.remove("x"), ["rm", "--force", "--volumes", "x"])
    assert.deepStrictEqual(CommandLine.version, ["--version"])
    assert.deepStrictEqual(CommandLine.listContainers.slice(0, 4), ["ps", "--all", "--filter", "label=fs-algebra=1"])
  })

  it("lists containers and reads their owners, and ignores foreign names and malformed owners", () => {
    assert.deepStrictEqual(
      CommandLine.parseNames("fs-algebra-0a\nother\nfs-algebra-zz\nx fs-algebra-0b\nfs-algebra-0c,other/x\n"),
      ["fs-algebra-0a"]
    )
    assert.strictEqual(CommandLine.owner('"x1-2-3"\n'), "x1-2-3")
    for (const forged of ['"x-1-2\\nfs-algebra-0a y-1-2"\n', "x-1-2\n", '""\n', '"x-1-2"\n"y-1-2"\n', ""]) {
      assert.isUndefined(CommandLine.owner(forged), forged)
    }
  })
})
