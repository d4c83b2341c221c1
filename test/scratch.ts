/**
 * Directories for tests that are gone when the tests are, also when these were killed: a process of its own waits for the end of a pipe that
 * this one holds, and removes them then.
 */
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const memory = Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir())

const remover = 'cat >/dev/null; chmod -R u+rwX "$1" 2>/dev/null; rm -rf -- "$1"; sleep 1; rm -rf -- "$1"'

const make = (base: string): string => {
  const directory = Fs.mkdtempSync(join(base, "fs-algebra-scratch-"))
  // Whoever the tests run something as must get through.
  Fs.chmodSync(directory, 0o755)
  const child = spawn("sh", ["-c", remover, "sh", directory], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
  child.unref()
  ;(child.stdin as unknown as { unref: () => void }).unref()
  return directory
}

const made = new Map<string, string>()

/** Below a directory that is there. */
export const within = (base: string): string => {
  const known = made.get(base)
  if (known !== undefined && Fs.existsSync(known)) return known
  const directory = make(base)
  made.set(base, directory)
  return directory
}

/** In memory where there is a disk of it. */
export const inMemory = (): string => within(memory)

/** On a disk that may hold programs and devices. */
export const onDisk = (): string => within(Fs.realpathSync(tmpdir()))
