import * as Fs from "node:fs"

const clock = new Int32Array(new SharedArrayBuffer(4))

/**
 * Writes the text to standard output at once, so that a process that is killed next has written it. The pipe may be non-blocking: a
 * write then takes only a part, or fails with EAGAIN until the reader has caught up.
 */
export const writeOut = (text: string): void => {
  let rest: Uint8Array = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(Fs.writeSync(1, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error
      Atomics.wait(clock, 0, 0, 1)
    }
  }
}
