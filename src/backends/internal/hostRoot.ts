/**
 * Opens the root of a host filesystem, which stays the directory that the path leads to at creation.
 *
 * The confinement level is determined first, so that nothing is created if the caller requires more.
 */
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import type { Info } from "../../port/Backend.ts"
import * as CheckedWalk from "./checkedWalk.ts"
import { type Confined, holdFlags, isSameFile, lstatEntry, notADirectory, notFound } from "./confined.ts"
import * as DescriptorWalk from "./descriptorWalk.ts"
import { closeQuietly } from "../../runtime/host.ts"
import { below, fromBytes, type HostPath } from "./hostNames.ts"

type Level = Info["confinement"]

export const level = (): Level => {
  // On other systems, even opening "/" may be impossible.
  if (process.platform !== "linux") return "best-effort"
  const descriptor = Fs.openSync("/", holdFlags)
  try {
    return DescriptorWalk.isPossible(descriptor) ? "race-free" : "best-effort"
  } finally {
    closeQuietly(descriptor)
  }
}

/** Opens and pins an existing directory. `promised` may be lower than the machine's level. */
export const open = (directory: string, confinement: Level = level()): Confined | Fault => {
  const top = fromBytes(Fs.realpathSync.native(directory, { encoding: "buffer" }))
  const found = lstatEntry(top)
  if (found === undefined) return notFound
  if (!found.isDirectory()) return notADirectory
  const caseSensitive = isCaseSensitive(top)
  const descriptor = Fs.openSync(top, holdFlags)
  try {
    return confinement === "race-free"
      ? DescriptorWalk.make(descriptor, caseSensitive)
      : CheckedWalk.make(top, descriptor, caseSensitive)
  } catch (error) {
    closeQuietly(descriptor)
    throw error
  }
}

const swapCase = (name: string): string =>
  name.replace(/[a-z]/gi, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase()))

/** Tests case sensitivity with an existing name, because the test must not write. */
const isCaseSensitive = (top: HostPath): boolean => {
  const sample = sampleName(top) ?? top
  if (typeof sample !== "string") return true
  const name = sample.slice(sample.lastIndexOf("/") + 1)
  const other = swapCase(name)
  if (other === name) return process.platform !== "darwin"
  const found = lstatEntry(sample)
  const otherCaseStats = lstatEntry(sample.slice(0, sample.length - name.length) + other)
  return found === undefined || otherCaseStats === undefined || !isSameFile(found, otherCaseStats)
}

const sampleName = (top: HostPath): HostPath | undefined => {
  const directory = openQuietly(top)
  if (directory === undefined) return undefined
  try {
    for (let left = 32; left > 0; left--) {
      const entry = directory.readSync()
      if (entry === null) return undefined
      if (/[a-z]/i.test(entry.name)) return below(top, entry.name)
    }
    return undefined
  } finally {
    directory.closeSync()
  }
}

/** Returns `undefined` on failure, because a root that can be entered but not listed is valid. */
const openQuietly = (top: HostPath): Fs.Dir | undefined => {
  try {
    return Fs.opendirSync(top as string)
  } catch {
    return undefined
  }
}
