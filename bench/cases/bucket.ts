/**
 * Files of a bucket of Ceph's radosgw on this machine, beside `rclone` doing the same. Needs rclone, radosgw, ceph-mon and
 * ceph-osd, and has no cases without them.
 */
import { AwsClient } from "aws4fetch"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Bucket from "../../src/backends/Bucket.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Case } from "../harness.ts"
import { check, effects, times } from "../harness.ts"

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0

const script = fileURLToPath(new URL("../../test/backends/bucket/radosgw.sh", import.meta.url))
const keys = { accessKeyId: "TESTKEY", secretAccessKey: "TESTSECRET" }
const mebibyte = 1024 ** 2

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      server.close(() => resolve(port))
    })
  })

/** Starts a store and makes a bucket. The store ends when its input closes. */
const startStore = async (directory: string) => {
  const port = await freePort()
  const endpoint = `http://127.0.0.1:${port}`
  const guard = spawn("bash", [script, directory, String(port)], { stdio: ["pipe", "ignore", "ignore"] })
  const aws = new AwsClient({ ...keys, service: "s3", region: "us-east-1", retries: 0 })
  for (;;) {
    if (guard.exitCode !== null) throw new Error("radosgw does not start")
    const made = await aws.fetch(`${endpoint}/bench`, { method: "PUT" }).catch(() => undefined)
    if (made?.status === 200) return { endpoint, guard }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

interface Ground {
  readonly fs: Algebra
  readonly local: string
  readonly rclone: (...args: ReadonlyArray<string>) => string
  readonly close: () => Promise<void>
}

const prepared = async (): Promise<Ground> => {
  const top = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  const local = join(top, "local")
  mkdirSync(local)
  mkdirSync(join(top, "store"))
  const { endpoint, guard } = await startStore(join(top, "store"))
  const credentials = { ...keys, secretAccessKey: Redacted.make(keys.secretAccessKey) }
  const port = await Effect.runPromise(Bucket.make({ bucket: "bench", endpoint, credentials }))
  const env = {
    PATH: process.env["PATH"],
    HOME: top,
    RCLONE_CONFIG_S_TYPE: "s3",
    RCLONE_CONFIG_S_PROVIDER: "Ceph",
    RCLONE_CONFIG_S_ACCESS_KEY_ID: keys.accessKeyId,
    RCLONE_CONFIG_S_SECRET_ACCESS_KEY: keys.secretAccessKey,
    RCLONE_CONFIG_S_ENDPOINT: endpoint
  }
  return {
    fs: make(port),
    local,
    rclone: (...args) => {
      const ran = spawnSync("rclone", args, { cwd: local, env, encoding: "utf8", maxBuffer: 512 * mebibyte })
      if (ran.status !== 0) throw new Error(ran.stderr)
      return ran.stdout
    },
    close: async () => {
      const ended = new Promise((resolve) => guard.once("exit", resolve))
      guard.stdin.end()
      await ended
      rmSync(top, { recursive: true })
    }
  }
}

const files = 1000

const fillLocal = (local: string): string => {
  const from = join(local, "from")
  for (let nth = 0; nth < files; nth++) {
    const file = join(from, `d${nth % 10}`, `${nth}.txt`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${"a line of text\n".repeat(60)}${nth % 100 === 0 ? "needle\n" : ""}`)
  }
  return from
}

const withTree = async () => {
  const ground = await prepared()
  fillLocal(ground.local)
  ground.rclone("copy", "from", "s:bench/tree", "--transfers", "32")
  return ground
}

const fetchAll = ({ local, rclone }: Ground): number => {
  rmSync(join(local, "got"), { recursive: true, force: true })
  rclone("copy", "s:bench/tree", "got", "--transfers", "32")
  return readdirSync(join(local, "got"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".txt") && readFileSync(join(local, "got", name), "utf8").includes("needle")
  ).length
}

const all: ReadonlyArray<Case> = [
  {
    name: `bucket: grep over ${files} small files`,
    target: "≤ 1 of fetching them with rclone and searching",
    bound: 1,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const ground = await withTree()
      check((await Effect.runPromise(ground.fs.grep("needle"))).matches.length === 10 && fetchAll(ground) === 10)
      return {
        ours: { name: "Bucket", run: effects(ground.fs.grep("needle")) },
        baseline: { name: "rclone", run: times(() => fetchAll(ground)) },
        close: ground.close
      }
    }
  },
  {
    name: `bucket: glob over ${files} files`,
    target: "≤ 1 of rclone lsf",
    bound: 1,
    figure: "ratio",
    count: 1,
    samples: 9,
    make: async () => {
      const ground = await withTree()
      const listed = () => ground.rclone("lsf", "-R", "--include", "*7.txt", "--files-only", "s:bench/tree")
      const globbed = ground.fs.glob("tree/**/*7.txt")
      check((await Effect.runPromise(globbed)).matches.length === listed().trim().split("\n").length)
      return {
        ours: { name: "Bucket", run: effects(globbed) },
        baseline: { name: "rclone", run: times(listed) },
        close: ground.close
      }
    }
  },
  {
    name: `bucket: write and removal of ${files} small files`,
    target: "≤ 3 of rclone copy and rclone delete, which check nothing before a write",
    bound: 3,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const ground = await prepared()
      const from = fillLocal(ground.local)
      const names = readdirSync(from, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".txt"))
      const contents = names.map((name) => [`ours/${name}`, readFileSync(join(from, name))] as const)
      const ours = Effect.andThen(
        Effect.forEach(contents, ([path, bytes]) => ground.fs.writeBytes(path, bytes, { createParents: true }), {
          concurrency: 32,
          discard: true
        }),
        ground.fs.delete("ours", { recursive: true })
      )
      check((await Effect.runPromise(ours)).deleted === files)
      return {
        ours: { name: "Bucket", run: effects(ours) },
        baseline: {
          name: "rclone",
          run: times(() => {
            ground.rclone("copy", "from", "s:bench/theirs", "--transfers", "32", "--no-check-dest")
            ground.rclone("delete", "s:bench/theirs", "--checkers", "32")
          })
        },
        close: ground.close
      }
    }
  },
  {
    name: "bucket: copy of 128 MiB within the store",
    target: "≤ 1 of rclone copyto",
    bound: 1,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const ground = await prepared()
      writeFileSync(join(ground.local, "big"), Buffer.alloc(128 * mebibyte, 97))
      ground.rclone("copyto", "big", "s:bench/big")
      const copied = ground.fs.copy("big", "ours", { overwrite: true })
      check((await Effect.runPromise(copied)).bytes === 128 * mebibyte)
      return {
        ours: { name: "Bucket", run: effects(copied) },
        baseline: {
          name: "rclone",
          run: times(() => ground.rclone("copyto", "--no-check-dest", "s:bench/big", "s:bench/theirs"))
        },
        close: ground.close
      }
    }
  },
  {
    name: "bucket: stream of 128 MiB",
    target: "≤ 1.5 of rclone copyto a file",
    bound: 1.5,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const ground = await prepared()
      writeFileSync(join(ground.local, "big"), Buffer.alloc(128 * mebibyte, 97))
      ground.rclone("copyto", "big", "s:bench/big")
      const read = Stream.runFold(
        ground.fs.stream("big"),
        () => 0,
        (sum, chunk) => sum + chunk.length
      )
      check((await Effect.runPromise(read)) === 128 * mebibyte)
      return {
        ours: { name: "Bucket", run: effects(read) },
        baseline: {
          name: "rclone",
          run: times(() => ground.rclone("copyto", "s:bench/big", join(ground.local, "got"), "--ignore-times"))
        },
        close: ground.close
      }
    }
  }
]

export const cases: ReadonlyArray<Case> = ["rclone", "radosgw", "ceph-mon", "ceph-osd"].every(has) ? all : []
