/**
 * Temporary directories that are removed after the tests, even if the test process is killed: a child process waits for the end
 * of a pipe that the test process holds, and then removes them.
 */
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const memory = Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir())

const remover = 'cat >/dev/null; chmod -R u+rwX "$1" 2>/dev/null; rm -rf -- "$1"; sleep 1; rm -rf -- "$1"'

const make = (base: string): string => {
  const directory = Fs.mkdtempSync(join(base, "fs-algebra-scratch-"))
  // Tests run programs as other users, who must be able to enter the directory.
  Fs.chmodSync(directory, 0o755)
  const child = spawn("sh", ["-c", remover, "sh", directory], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
  child.unref()
  ;(child.stdin as unknown as { unref: () => void }).unref()
  return directory
}

const made = new Map<string, string>()

/** Makes a directory below an existing one, once for each test process. */
export const within = (base: string): string => {
  const known = made.get(base)
  if (known !== undefined && Fs.existsSync(known)) return known
  const directory = make(base)
  made.set(base, directory)
  return directory
}

/** Returns a directory in memory if possible. */
export const inMemory = (): string => within(memory)

/** Returns a directory on a disk that may hold programs and devices. */
export const onDisk = (): string => within(Fs.realpathSync(tmpdir()))
