/**
 * A process that changes a directory as fast as possible until it is killed. Its files carry checksums, so that
 * `isWhole` in concurrent.test.ts detects torn files. The only argument is a JSON text of its tasks.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { writeOut } from "../writeOut.ts"
import { overwritten } from "./concurrentContents.ts"

export interface Orders {
  readonly root: string
  readonly outside: string
  readonly what: "replaced" | "logs" | "blocks" | "kinds" | "swaps" | "comes"
  readonly seed: number
}

const { outside, root, seed, what } = JSON.parse(process.argv[2]!) as Orders

let state = seed >>> 0 || 1
const below = (bound: number): number => {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  state >>>= 0
  return state % bound
}

const quietly = (run: () => void): void => {
  try {
    run()
  } catch {
    // The next step may succeed.
  }
}

let count = 0
const clock = new Int32Array(new SharedArrayBuffer(4))

/** Returns a block of the given size that begins with its checksum. */
const summed = (size: number): Buffer => {
  const body = Buffer.alloc(size, `${count++} ${seed} `)
  return Buffer.concat([Buffer.from(`${createHash("sha1").update(body).digest("hex")}\n`), body])
}

/** The number of the latest version of each file that is overwritten in place. */
const versions = new Map<string, number>()

const steps: Record<Orders["what"], () => void> = {
  replaced: () => {
    const aside = join(outside, `aside-${seed}`)
    Fs.writeFileSync(aside, summed(1 + below(400_000)))
    Fs.renameSync(aside, join(root, `replaced-${below(4)}`))
  },
  logs: () => {
    // Each line is one write and begins with its number.
    const log = join(root, `log-${below(3)}`)
    const text = `${"x".repeat(below(3000))}`
    Fs.appendFileSync(log, `${count++} ${text.length} ${text}\n`)
    // Logs only grow, so a pause keeps them small enough for many captures.
    Atomics.wait(clock, 0, 0, 1)
  },
  blocks: () => {
    const path = join(root, `blocks-${below(2)}`)
    const version = (versions.get(path) ?? 0) + 1
    versions.set(path, version)
    const content = overwritten(version)
    if (!Fs.existsSync(path)) {
      Fs.writeFileSync(join(outside, "blocks"), content)
      Fs.renameSync(join(outside, "blocks"), path)
      return
    }
    const descriptor = Fs.openSync(path, "r+")
    for (let at = 0; at < content.length; at += 65_536)
      Fs.writeSync(descriptor, content, at, Math.min(65_536, content.length - at), at)
    Fs.closeSync(descriptor)
  },
  kinds: () => {
    const path = join(root, `kind-${below(3)}`)
    quietly(() => Fs.rmSync(path, { recursive: true, force: true }))
    const kind = below(4)
    quietly(() => {
      if (kind === 0) Fs.writeFileSync(path, "a file\n")
      else if (kind === 1) Fs.symlinkSync(outside, path)
      else if (kind === 2) {
        Fs.mkdirSync(path)
        Fs.writeFileSync(join(path, "in"), "a file\n")
      } else Fs.symlinkSync(join(outside, "fifo"), path)
    })
  },
  swaps: () => {
    // Replaces a directory deep in the tree with a link to a directory of the same structure outside the root, and puts the
    // directory back.
    const name = ["d", "d/e", "d/e/f"][below(3)]!
    const path = join(root, name)
    const aside = join(outside, "aside")
    quietly(() => {
      Fs.renameSync(path, aside)
      Fs.symlinkSync(join(outside, "like", name), path)
      Fs.unlinkSync(path)
      Fs.renameSync(aside, path)
    })
  },
  comes: () => {
    const path = join(root, `comes-${below(8)}`, "x")
    quietly(() => {
      Fs.mkdirSync(path, { recursive: true })
      for (let i = 0; i < 5; i++) Fs.writeFileSync(join(path, `${i}`), "here\n")
    })
    quietly(() => Fs.rmSync(join(root, `comes-${below(8)}`), { recursive: true, force: true }))
  }
}

steps[what]()
writeOut(".")
for (;;) steps[what]()
