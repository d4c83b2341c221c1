/**
 * Files of a container: apart, compared with one `podman exec` per call, and shared, compared with a directory on the
 * host. Needs podman and a static busybox, and has no cases without them.
 */
import { NodeServices } from "@effect/platform-node"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import * as Container from "../../src/backends/Container.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import type { Backend } from "../../src/port/Backend.ts"
import type { Case, Side } from "../harness.ts"
import { awaited, check, effects, times } from "../harness.ts"
import * as Request from "../../src/port/Request.ts"

const busybox = ["/bin/busybox", "/usr/bin/busybox"].find((path) => existsSync(path))
const isPossible = busybox !== undefined && spawnSync("podman", ["--version"]).status === 0

const configure = (directory: string): void => {
  if (process.env["CONTAINERS_CONF"] !== undefined || spawnSync("runc", ["--version"]).status !== 0) return
  const file = join(directory, "containers.conf")
  const limits = 'default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]'
  writeFileSync(file, `[containers]\n${limits}\n[engine]\nruntime = "runc"\n`)
  process.env["CONTAINERS_CONF"] = file
}

const rootfsIn = (directory: string): string => {
  const root = join(directory, "rootfs")
  for (const part of ["bin", "dev", "etc", "proc", "run", "sys", "tmp"]) mkdirSync(join(root, part), { recursive: true })
  chmodSync(join(root, "tmp"), 0o1777)
  copyFileSync(busybox!, join(root, "bin/busybox"))
  for (const name of execFileSync(busybox!, ["--list"], { encoding: "utf8" }).trim().split("\n")) {
    if (name !== "busybox") symlinkSync("busybox", join(root, "bin", name))
  }
  return root
}

const opened = async (strategy: "overlay" | "exec") => {
  const directory = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  configure(directory)
  const scope = Effect.runSync(Scope.make())
  const hostDirectory = join(directory, "shared")
  mkdirSync(hostDirectory)
  const image = { rootfs: rootfsIn(directory) }
  const options = strategy === "overlay" ? { image, hostDirectory } : { image, strategy }
  const container = await Effect.runPromise(
    Scope.provide(Container.make(options), scope).pipe(Effect.provide(NodeServices.layer))
  )
  const close = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(directory, { recursive: true })
  }
  return { directory, scope, close, fs: container.filesystem, ...container }
}

/** Returns the name of the latest container that this library has started. */
const running = (): string =>
  execFileSync("podman", ["ps", "--latest", "--filter", "label=fs-algebra=1", "--format", "{{.Names}}"], {
    encoding: "utf8"
  }).trim()

const content = Buffer.alloc(4096, "text of some length\n")

const apart = async () => {
  const { close, fs } = await opened("exec")
  await Effect.runPromise(fs.writeBytes("file", content))
  return { close, fs, name: running() }
}

/** Runs `podman exec` with the given input, and returns the hash of its output. */
const through = (name: string, command: ReadonlyArray<string>, input?: ReadonlyArray<Uint8Array>): Promise<string> => {
  const child = spawn("podman", ["exec", ...(input ? ["-i"] : []), name, ...command], { stdio: ["pipe", "pipe", "inherit"] })
  const hash = createHash("sha256")
  child.stdout.on("data", (bytes: Buffer) => hash.update(bytes))
  void pipeline(Readable.from(input ?? []), child.stdin)
  return new Promise((resolve, reject) => {
    child.on("close", (code) => (code === 0 ? resolve(hash.digest("hex")) : reject(new Error(`podman ended with ${code}`))))
  })
}

const bigBlock = randomBytes(64 * 1024)
const big = Array.from({ length: 3052 }, () => bigBlock)

const writeBig = (fs: Algebra) => Stream.run(Stream.fromIterable(big), fs.sink("big"))

const hashBig = (fs: Algebra) =>
  Effect.suspend(() => {
    const hash = createHash("sha256")
    return Effect.map(
      Stream.runForEach(fs.stream("big"), (bytes) => Effect.sync(() => void hash.update(bytes))),
      () => hash.digest("hex")
    )
  })

const apartWithBig = async () => {
  const opened = await apart()
  await Effect.runPromise(writeBig(opened.fs))
  check((await Effect.runPromise(hashBig(opened.fs))) === (await through(opened.name, ["cat", "/workspace/big"])))
  return opened
}

const copying = async () => {
  const { close, fs, name } = await apart()
  const sh = (script: string): string =>
    execFileSync("podman", ["exec", name, "sh", "-c", `cd /workspace && ${script}`], { encoding: "utf8" })
  sh(`for i in $(seq 0 549); do d=src/$((i / 50)); [ -d $d ] || mkdir -p $d; echo "export const value$i = $i" >$d/$i.ts; done`)
  const copy = Effect.andThen(fs.copy("src", "copy"), fs.delete("copy", { recursive: true }))
  const copyInside = () => sh("cp -R src copy && rm -r copy")
  await Effect.runPromise(fs.copy("src", "ours"))
  sh("cp -R src theirs")
  const [one, other] = ["ours", "theirs"].map((at) => sh(`cd ${at} && find . -type f | sort | xargs sha256sum`))
  check(one !== "" && one === other)
  return {
    ours: { name: "exec", run: effects(copy) },
    baseline: { name: "podman exec cp", run: times(copyInside) },
    close
  }
}

const beside = async (call: (fs: Algebra) => Effect.Effect<unknown, unknown>) => {
  const { close, directory, fs, scope } = await opened("overlay")
  const root = join(directory, "host")
  mkdirSync(root)
  const host = make(await Effect.runPromise(Scope.provide(PosixHost.make({ root }), scope)))
  for (const each of [fs, host]) await Effect.runPromise(each.writeBytes("file", content))
  check((await Effect.runPromise(fs.version("file"))) === (await Effect.runPromise(host.version("file"))))
  return {
    ours: { name: "overlay", run: effects(call(fs)) },
    baseline: { name: "PosixHost", run: effects(call(host)) },
    close
  }
}

const [files, inDirectory] = [5000, 50]

/** Removes the tree and restores it, with the request that makes many files at once and without it. */
const restoring = async () => {
  const { close, fs, sandbox, scope } = await opened("exec")
  const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect)
  const fill = `for i in $(seq 0 ${files - 1}); do d=src/$((i / ${inDirectory})); [ -d $d ] || mkdir -p $d; echo "export const value$i = $i" >$d/$i.ts; done`
  await run(sandbox.exec(["sh", "-c", fill], { timeout: "2 minutes" }))
  const sideOf = async (name: string, port: Backend): Promise<Side & { readonly check: () => Promise<string> }> => {
    const files = Layer.succeed(Filesystem, make(port))
    const context = await run(Scope.provide(Layer.build(Layer.provide(Snapshots.layerArchive, files)), scope))
    const { restore, snapshot } = Context.get(context, Snapshots.Snapshots)
    const taken = await run(snapshot())
    const again = Effect.andThen(sandbox.exec(["rm", "-r", "src"]), restore(taken))
    const digest = "find src -type f | sort | xargs sha256sum | sha256sum"
    return {
      name,
      run: effects(again),
      check: async () => {
        await run(again)
        return (await run(sandbox.exec(["sh", "-c", digest], { timeout: "2 minutes" }))).stdout
      }
    }
  }
  const ours = await sideOf("makeMany", fs.port)
  const { perform } = fs.port
  const others = new Set([...(perform?.tags ?? [])].filter((tag) => tag !== "MakeMany"))
  const baseline = await sideOf("file by file", { ...fs.port, perform: Request.only(perform, others) })
  check((await ours.check()) === (await baseline.check()))
  return { ours, baseline, close }
}

const all: ReadonlyArray<Case> = [
  {
    name: "container, apart: readBytes of 4 KiB",
    target: "≥ 10 times as fast as one `podman exec cat` each",
    bound: 10,
    figure: "baseline ÷ ours",
    count: 5,
    samples: 7,
    make: async () => {
      const { close, fs, name } = await apart()
      const cat = () => execFileSync("podman", ["exec", name, "cat", "/workspace/file"])
      check(content.equals(cat()) && content.equals((await Effect.runPromise(fs.readBytes("file"))).content))
      return {
        ours: { name: "exec", run: effects(fs.readBytes("file")) },
        baseline: { name: "podman exec", run: times(cat) },
        close
      }
    }
  },
  {
    name: "container, apart: write of 4 KiB",
    target: "≥ 10 times as fast as one `podman exec` each",
    bound: 10,
    figure: "baseline ÷ ours",
    count: 5,
    samples: 7,
    make: async () => {
      const { close, fs, name } = await apart()
      const write = () =>
        execFileSync("podman", ["exec", "-i", name, "sh", "-c", "cat >/workspace/new && mv /workspace/new /workspace/file"], {
          input: content
        })
      write()
      check(content.equals((await Effect.runPromise(fs.readBytes("file"))).content))
      return {
        ours: { name: "exec", run: effects(fs.writeBytes("file", content)) },
        baseline: { name: "podman exec", run: times(write) },
        close
      }
    }
  },
  {
    name: "container, apart: stream of 200 MB",
    target: "≤ 1.25 of `podman exec cat`",
    bound: 1.25,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const { close, fs, name } = await apartWithBig()
      return {
        ours: { name: "exec", run: effects(hashBig(fs)) },
        baseline: { name: "podman exec", run: awaited(() => through(name, ["cat", "/workspace/big"])) },
        close
      }
    }
  },
  {
    name: "container, apart: write of a stream of 200 MB",
    target: "≤ 1.25 of `podman exec cat`",
    bound: 1.25,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const { close, fs, name } = await apartWithBig()
      const command = ["sh", "-c", "cat >/workspace/new && mv /workspace/new /workspace/big"]
      return {
        ours: { name: "exec", run: effects(writeBig(fs)) },
        baseline: { name: "podman exec", run: awaited(() => through(name, command, big)) },
        close
      }
    }
  },
  {
    name: "container, apart: copy and removal of 550 files",
    target: "≤ 1 of `podman exec cp`",
    bound: 1,
    figure: "ratio",
    count: 1,
    samples: 7,
    warmups: 1,
    make: copying
  },
  {
    name: "container, apart: restore of 5,000 files",
    target: "≥ 5 times as fast as file by file",
    bound: 5,
    figure: "baseline ÷ ours",
    count: 1,
    samples: 3,
    warmups: 0,
    make: restoring
  },
  {
    name: "container, shared: readBytes of 4 KiB",
    target: "≤ 1.15 of PosixHost",
    bound: 1.15,
    figure: "ratio",
    count: 2000,
    samples: 15,
    make: () => beside((fs) => fs.readBytes("file"))
  },
  {
    name: "container, shared: write of 4 KiB",
    target: "≤ 1.15 of PosixHost",
    bound: 1.15,
    figure: "ratio",
    count: 1000,
    samples: 15,
    make: () => beside((fs) => fs.writeBytes("file", content))
  }
]

export const cases: ReadonlyArray<Case> = isPossible ? all : []
