import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import { describeWideRoot } from "../../runtime/wideRoots.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import type { Census } from "../scan.ts"
import type { LayerOptions } from "./options.ts"

const GiB = 1024 * 1024 * 1024

export const maxFiles = 1_000_000
export const maxBytes = 64 * GiB

/** Refuses to capture the whole machine or a home directory. `root` must have its symlinks resolved. */
export const refuseWideRoot = (root: string, options: LayerOptions): StoreFault | undefined => {
  const width = options.anyRoot === true ? undefined : describeWideRoot(root)
  return width === undefined ? undefined : storeFault("refused", `the root is ${width}; capture it only with anyRoot`)
}

const tooManyFiles = (limit: number): StoreFault =>
  storeFault("budget", `there are more than ${limit.toLocaleString("en")} files; raise maxFiles to capture them`)

const tooManyBytes = (limit: number): StoreFault =>
  storeFault("budget", `the files have more than ${limit.toLocaleString("en")} bytes; raise maxBytes to capture them`)

const freeBytes = (directory: string): number | undefined => {
  try {
    const { bavail, bsize } = Fs.statfsSync(directory)
    return bavail * bsize
  } catch {
    return undefined
  }
}

/** Checks the limits during the count of files, and once more before the first read, when nothing has been written. */
export const checkBudget = (
  { bytes, bytesToRead, files }: Census,
  isWhole: boolean,
  options: LayerOptions,
  directory: string | undefined
): Effect.Effect<void, StoreFault> => {
  if (files > (options.maxFiles ?? maxFiles)) return Effect.fail(tooManyFiles(options.maxFiles ?? maxFiles))
  if (bytes > (options.maxBytes ?? maxBytes)) return Effect.fail(tooManyBytes(options.maxBytes ?? maxBytes))
  if (!isWhole || directory === undefined) return Effect.void
  const free = freeBytes(directory)
  return free !== undefined && bytesToRead > free
    ? Effect.fail(
        storeFault(
          "budget",
          `${bytesToRead.toLocaleString("en")} bytes are to be kept, and the disk has room for ${free.toLocaleString("en")}`
        )
      )
    : Effect.void
}
