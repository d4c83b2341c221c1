/**
 * Captures while other processes change the directory as fast as they can. Each file in a snapshot must have a content that the
 * file really had. Unreadable files must be reported, and a snapshot must contain nothing from outside.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import type * as Snapshots from "../../src/history/Snapshots.ts"
import { has, needs } from "../faults/ground.ts"
import { fsck, hasGit, isSoak, type Place, place, within } from "./badInput.ts"
import { isOverwritten, overwritten } from "./concurrentContents.ts"
import type { Orders } from "./concurrentWriter.ts"

const rounds = isSoak ? 200 : 12

const writer = fileURLToPath(new URL("concurrentWriter.ts", import.meta.url))

/** Starts a writer that works until the scope ends; waits for its first step. */
const writing = (orders: Orders): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<ChildProcess>((resolve, reject) => {
          const child = spawn(process.execPath, [writer, JSON.stringify(orders)], { stdio: ["ignore", "pipe", "inherit"] })
          child.stdout.once("data", () => resolve(child))
          child.once("exit", (code) => reject(new Error(`the writer ended with ${code}`)))
        })
    ),
    (child) =>
      Effect.promise(() => {
        const gone = new Promise<void>((resolve) => void child.once("exit", () => resolve()))
        if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
        child.kill("SIGKILL")
        return gone
      })
  )

const isSummed = (bytes: Uint8Array): boolean => {
  const text = Buffer.from(bytes)
  const sum = text.toString("latin1", 0, 40)
  return createHash("sha1").update(text.subarray(41)).digest("hex") === sum
}

/** Tests whether every line is complete. The last line may be cut off if the capture saw a part of one write. */
const isLog = (bytes: Uint8Array): boolean => {
  let last = -1
  for (const line of Buffer.from(bytes).toString("latin1").split("\n").slice(0, -1)) {
    const [number, length, text = ""] = line.split(" ")
    if (!(Number(number) > last) || text.length !== Number(length)) return false
    last = Number(number)
  }
  return true
}

const isWhole = (path: string, bytes: Uint8Array): boolean => {
  if (path.startsWith("replaced-")) return isSummed(bytes)
  if (path.startsWith("blocks-")) return isOverwritten(Buffer.from(bytes))
  if (path.startsWith("log-")) return isLog(bytes)
  // The file is empty between its creation and its only write.
  if (/^(?:kind|comes)-/.test(path)) return ["", "here\n", "a file\n"].includes(Buffer.from(bytes).toString())
  return Buffer.from(bytes).toString() === `inside ${path}\n`
}

const secret = "a secret from outside"

const torn = Effect.fnUntraced(function* (view: Algebra) {
  const out: Array<string> = []
  let files = 0
  for (const { path } of (yield* view.glob("**/*")).matches) {
    const stat = yield* view.stat(path)
    if (stat.kind !== "file") continue
    files++
    const { content: bytes } = yield* view.readBytes(path)
    if (Buffer.from(bytes).includes(secret)) out.push(`${path} is from outside`)
    else if (!isWhole(path, bytes)) out.push(`${path} is torn`)
  }
  return { out, files }
})

const plantAround = (here: Place): string => {
  const outside = join(here.top, "outside")
  for (const directory of ["d/e/f", "d/g"]) {
    Fs.mkdirSync(join(here.root, directory), { recursive: true })
    Fs.mkdirSync(join(outside, "like", directory), { recursive: true })
  }
  for (const path of ["d/1", "d/e/1", "d/e/f/1", "d/e/f/2", "d/g/1"]) {
    Fs.writeFileSync(join(here.root, path), `inside ${path}\n`)
    Fs.writeFileSync(join(outside, "like", path), secret)
  }
  Fs.writeFileSync(join(outside, "in"), secret)
  execFileSync("mkfifo", [join(outside, "fifo")])
  return outside
}

interface Tally {
  taken: number
  files: number
  unsteady: number
  readonly complaints: Array<string>
}

/** Takes snapshots while the writers work. Checks that only the expected failures occur. */
const capturing = (what: ReadonlyArray<Orders["what"]>, permits: (error: Snapshots.SnapshotError) => boolean) =>
  Effect.gen(function* () {
    const here = yield* place
    const outside = plantAround(here)
    const tally: Tally = { taken: 0, files: 0, unsteady: 0, complaints: [] }
    const taken: Array<Snapshots.FilesystemSnapshot> = []
    yield* within(here, (snapshots) =>
      Effect.gen(function* () {
        for (const [i, one] of what.entries()) yield* writing({ root: here.root, outside, what: one, seed: 7919 * (i + 1) })
        for (let round = 0; round < rounds; round++) {
          const result = yield* Effect.result(snapshots.snapshot({ tag: `${round}` }))
          if (result._tag === "Success") taken.push(result.success)
          else if (permits(result.failure)) tally.unsteady++
          else tally.complaints.push(`${round}: ${result.failure.message}`)
        }
      })
    )
    yield* within(here, (snapshots) =>
      Effect.gen(function* () {
        for (const snapshot of taken) {
          const { files, out } = yield* torn(yield* snapshots.view(snapshot))
          tally.taken++
          tally.files += files
          tally.complaints.push(...out.map((complaint) => `${snapshot.tag}: ${complaint}`))
        }
      })
    )
    fsck(here)
    return tally
  })

const never = (): boolean => false
const isUnsteady = ({ detail, reason }: Snapshots.SnapshotError): boolean =>
  reason === "io" && detail.includes("changes each time")

const ready = hasGit && needs("captures under other writers", () => has("mkfifo"), "apt-get install coreutils")

/** Checks that `isOverwritten` accepts one version, or the beginning of a version with the rest of the previous version. */
const checkIsOverwritten = (): void => {
  const mixed = (first: number, second: number, at: number): Buffer =>
    Buffer.concat([overwritten(first).subarray(0, at), overwritten(second).subarray(at)])
  const size = overwritten(1).length
  for (const at of [7, 8, 65_536, size - 2]) {
    assert.isTrue(isOverwritten(mixed(10, 9, at)))
    assert.isFalse(isOverwritten(mixed(9, 10, at)))
    assert.isFalse(isOverwritten(mixed(10, 8, at)))
  }
  assert.isTrue(isOverwritten(overwritten(1)))
  assert.isFalse(isOverwritten(overwritten(1).subarray(9)))
  assert.isFalse(isOverwritten(Buffer.concat([mixed(8, 7, 65_536).subarray(0, 131_072), overwritten(8).subarray(131_072)])))
}

describe.runIf(ready)("a snapshot that is taken while other processes", () => {
  it.live("replace files contains a whole version of each file", () =>
    Effect.gen(function* () {
      const { complaints, files, taken } = yield* capturing(["replaced", "replaced"], isUnsteady)
      assert.deepStrictEqual(complaints, [])
      assert.isAbove(taken, 0)
      assert.isAbove(files, 10)
    })
  )

  it.live("append to files contains an earlier state of each file", () =>
    Effect.gen(function* () {
      const { complaints, taken } = yield* capturing(["logs"], never)
      assert.deepStrictEqual(complaints, [])
      assert.strictEqual(taken, rounds)
    })
  )

  it.live("overwrite files in place contains an earlier state of each file, or fails because a file keeps changing", () =>
    Effect.gen(function* () {
      checkIsOverwritten()
      const { complaints, taken, unsteady } = yield* capturing(["blocks"], isUnsteady)
      assert.deepStrictEqual(complaints, [])
      assert.strictEqual(taken + unsteady, rounds)
    })
  )

  it.live("turn paths into directories, links and files contains whole contents and follows no link", () =>
    Effect.gen(function* () {
      const { complaints, taken } = yield* capturing(["kinds"], never)
      assert.deepStrictEqual(complaints, [])
      assert.strictEqual(taken, rounds)
    })
  )

  it.live("replace directories with links to the outside contains nothing from outside", () =>
    Effect.gen(function* () {
      const { complaints, taken } = yield* capturing(["swaps", "kinds"], never)
      assert.deepStrictEqual(complaints, [])
      assert.strictEqual(taken, rounds)
    })
  )

  it.live("make and remove directories contains only contents that existed", () =>
    Effect.gen(function* () {
      const { complaints, taken } = yield* capturing(["comes"], never)
      assert.deepStrictEqual(complaints, [])
      assert.strictEqual(taken, rounds)
    })
  )
})
