/** The attacker in Node, for machines without a compiler. It takes the arguments of `attacker.c` and is slower. */
import * as Fs from "node:fs"

const [counter, gap, mode, a, b, c] = process.argv.slice(2) as [string, string, string, string, string, string]

const descriptor = Fs.openSync(counter, "r+")
const count = new BigUint64Array(1)
const bytes = new Uint8Array(count.buffer)
const longest = Number(gap)
const parent = process.ppid
const end = performance.now() + 36_000_000
let failures = 0
let isNapping = false
const never = new Int32Array(new SharedArrayBuffer(4))

/**
 * Tests for the end of the attack: the counter or the parent is gone. A signal would not be seen in a loop that never yields.
 */
const isStopped = (): boolean => process.ppid !== parent || !Fs.existsSync(counter) || performance.now() > end

const done = (change: () => unknown): boolean => {
  try {
    change()
    return true
  } catch {
    return false
  }
}

const did = (change: () => unknown): void => {
  if (done(change)) {
    count[0]!++
    Fs.writeSync(descriptor, bytes, 0, 8, 0)
  } else failures++
  if (Math.random() < 1 / 64) isNapping = Math.random() < 0.5
  if (isNapping) {
    Atomics.wait(never, 0, 0, (Math.random() * 3 * longest) / 1e6)
    return
  }
  const until = performance.now() + (Math.random() * 2 ** (Math.random() * Math.log2(longest + 1))) / 1e6
  while (performance.now() < until);
}

const exchange = (): void => {
  Fs.renameSync(a, `${a}.aside`)
  if (!done(() => Fs.renameSync(b, a))) {
    Fs.renameSync(`${a}.aside`, a)
    throw new Error("not exchanged")
  }
  Fs.renameSync(`${a}.aside`, b)
}

const bury = (): void => {
  if (!done(() => Fs.rmdirSync(a))) done(() => Fs.renameSync(a, `${c}/${count[0]}`))
}

const flip = (make: () => void): void => {
  done(() => Fs.unlinkSync(`${a}.next`))
  did(() => {
    make()
    Fs.renameSync(`${a}.next`, a)
  })
}

const rounds: Record<string, () => void> = {
  exchange: () => did(exchange),
  bounce: () => {
    did(() => Fs.renameSync(a, b))
    did(() => Fs.renameSync(b, a))
  },
  recreate: () => {
    bury()
    did(() => Fs.symlinkSync(b, a))
    done(() => Fs.unlinkSync(a))
    did(() => Fs.mkdirSync(a))
  },
  flip: () => {
    flip(() => Fs.symlinkSync(b, `${a}.next`))
    flip(() => Fs.linkSync(c, `${a}.next`))
  }
}

for (;;) {
  for (let left = 100; left > 0; left--) rounds[mode]!()
  // The number of rounds is even, so that an exchange ends where it began.
  if (isStopped()) break
}
process.stdout.write(`${JSON.stringify({ swaps: Number(count[0]), failures })}\n`)
