/**
 * S3 servers for tests, on free ports of the loopback address: moto, which keeps objects in memory and obeys most conditions,
 * and Ceph's radosgw, which checks signatures and obeys fewer. Both end with the tests, even if the tests are killed.
 */
import { afterAll, describe } from "@effect/vitest"
import { AwsClient } from "aws4fetch"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { createServer } from "node:net"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type BucketOptions, open, type Tuning } from "../../../src/backends/bucket/open.ts"
import { layer } from "../../../src/filesystem/Filesystem.ts"
import { Bench } from "../../../src/testing/Law.ts"
import { inMemory } from "../../scratch.ts"

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0

const lackingMoto: string | undefined = has("moto_server")
  ? undefined
  : "moto_server is not installed: pip install 'moto[server]'"

const lackingRadosgw: string | undefined = ["radosgw", "ceph-mon", "ceph-osd"].every(has)
  ? undefined
  : "radosgw is not installed: apt-get install --no-install-recommends radosgw ceph-mon ceph-osd"

const describeWith = (lacking: string | undefined, name: string, body: () => void): void => {
  if (lacking === undefined) return void describe(name, body)
  const mayLack = lacking === lackingMoto && process.env["FS_ALGEBRA_WITHOUT_MOTO"] === "1"
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1" && !mayLack) throw new Error(lacking)
  describe.skip(`${name} (${lacking})`)
}

/**
 * Runs `describe` if the server can run. Fails if no test may be skipped, except for moto with FS_ALGEBRA_WITHOUT_MOTO=1,
 * because moto is not a package of Debian.
 */
export const describeMoto = (name: string, body: () => void): void => describeWith(lackingMoto, name, body)
export const describeRadosgw = (name: string, body: () => void): void => describeWith(lackingRadosgw, name, body)

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      server.close(() => resolve(port))
    })
  })

export interface Server {
  readonly endpoint: string
  readonly bucket: string
}

const keys = { accessKeyId: "TESTKEY", secretAccessKey: "TESTSECRET" }

/** A client that can read and store objects that the library cannot. */
export const aws = new AwsClient({ ...keys, service: "s3", region: "us-east-1", retries: 0 })

export const credentials = { accessKeyId: keys.accessKeyId, secretAccessKey: Redacted.make(keys.secretAccessKey) }

/** Returns the address of an object. */
export const urlOf = ({ bucket, endpoint }: Server, key: string): string =>
  `${endpoint}/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`

/** Stores an object as another program would. */
export const putForeign = async (server: Server, key: string, body: string): Promise<void> => {
  const answer = await aws.fetch(urlOf(server, key), { method: "PUT", body })
  if (answer.status !== 200) throw new Error(`the server answered ${answer.status}`)
}

/** Returns the keys of all objects below a prefix. */
export const keysBelow = async ({ bucket, endpoint }: Server, prefix: string): Promise<ReadonlyArray<string>> => {
  const answer = await aws.fetch(`${endpoint}/${bucket}?list-type=2&prefix=${encodeURIComponent(prefix)}`)
  const text = (await answer.text()).replaceAll("&amp;", "&").replaceAll("&apos;", "'")
  return [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map((match) => match[1]!.slice(prefix.length)).sort()
}

const guards: Array<ChildProcess> = []

/** Starts a script in its own session. The script ends when the pipe from this process closes. */
const startGuarded = (script: string, args: ReadonlyArray<string>): ChildProcess => {
  const guard = spawn("bash", [script, ...args], { stdio: ["pipe", "ignore", "ignore"] })
  guards.push(guard)
  return guard
}

const answers = async (endpoint: string): Promise<boolean> => {
  try {
    await (await fetch(endpoint)).arrayBuffer()
    return true
  } catch {
    return false
  }
}

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const here = dirname(fileURLToPath(import.meta.url))

/** The directory of each started server. A server contains only options of a bucket, which tests copy. */
const directories = new WeakMap<Server, string>()

/** Starts a server and makes a bucket in it, once. */
const started = (script: string): (() => Promise<Server>) => {
  let server: Promise<Server> | undefined
  const start = async (): Promise<Server> => {
    const port = await freePort()
    const directory = Fs.mkdtempSync(join(inMemory(), "s3-"))
    const guard = startGuarded(join(here, script), [directory, String(port)])
    const endpoint = `http://127.0.0.1:${port}`
    while (!(await answers(endpoint))) {
      if (guard.exitCode !== null) throw new Error(`${script} ended with ${guard.exitCode}`)
      await pause(50)
    }
    const made = { endpoint, bucket: "tests" }
    directories.set(made, directory)
    for (;;) {
      const { status } = await aws.fetch(`${endpoint}/${made.bucket}`, { method: "PUT" })
      if (status === 200) return made
      // radosgw listens before the user of the tests exists.
      if (guard.exitCode !== null) throw new Error(`${script} ended with ${guard.exitCode}`)
      await pause(50)
    }
  }
  return () => (server ??= start())
}

export const moto = started("moto.sh")
export const radosgw = started("radosgw.sh")

/** Kills radosgw with SIGKILL. It starts again at once. The test must not share it with other tests. */
export const killRadosgw = (server: Server): void => {
  process.kill(Number(Fs.readFileSync(join(directories.get(server)!, "radosgw.pid"), "utf8")), "SIGKILL")
}

/** Waits until a server answers that was killed. */
export const isBack = async ({ bucket, endpoint }: Server): Promise<void> => {
  for (;;) {
    const answer = await aws.fetch(`${endpoint}/${bucket}?list-type=2&max-keys=1`).catch(() => undefined)
    await answer?.arrayBuffer()
    if (answer?.status === 200) return
    await pause(20)
  }
}

let count = 0

/** Returns a prefix that no other test uses. */
export const freshPrefix = (): string => `${process.pid}-${count++}/`

const timings = { attempts: 6, requestMillis: 30_000, pauseMillis: 5 }

export const openAt = (server: Server, options: Partial<BucketOptions> & { readonly prefix: string }, tuning: Tuning = {}) =>
  open({ ...server, credentials, ...options }, { ...tuning, timings: { ...timings, ...tuning.timings } })

/** A layer on a fresh prefix of a server, with a bench that stores a key that no path can express. */
export const layerOn = (
  server: () => Promise<Server>,
  options: Omit<Partial<BucketOptions>, "prefix"> = {},
  tuning: Tuning = {}
) =>
  Layer.unwrap(
    Effect.map(Effect.promise(server), (server) => {
      const prefix = freshPrefix()
      return Layer.merge(
        layer(openAt(server, { prefix, ...options }, tuning)),
        Layer.succeed(Bench, { makeUnaddressable: Effect.promise(() => putForeign(server, `${prefix}a\u0001`, "hit")) })
      )
    })
  )

afterAll(async () => {
  await Promise.all(
    guards.splice(0).map(
      (guard) =>
        new Promise<void>((resolve) => {
          if (guard.exitCode !== null) return resolve()
          guard.once("exit", () => resolve())
          guard.stdin!.end()
        })
    )
  )
})
