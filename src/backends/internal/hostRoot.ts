/**
 * The root is what its path leads to when the filesystem is built, and it stays that directory. Which walk confines to it is decided
 * before, by trying what the machine can do, so that nothing need be made for whoever requires more.
 */
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import type { Info } from "../../port/Backend.ts"
import * as CheckedWalk from "./checkedWalk.ts"
import { type Confined, holding, isSameFile, look, notADirectory, notFound } from "./confined.ts"
import * as DescriptorWalk from "./descriptorWalk.ts"
import { closeQuietly } from "./hostBytes.ts"
import { below, fromBytes, type HostPath } from "./hostNames.ts"

type Level = Info["confinement"]

/** What this machine can promise, of any directory. */
export const level = (): Level => {
  // Elsewhere it may not even be opened.
  if (process.platform !== "linux") return "best-effort"
  const descriptor = Fs.openSync("/", holding)
  try {
    return DescriptorWalk.isPossible(descriptor) ? "race-free" : "best-effort"
  } finally {
    closeQuietly(descriptor)
  }
}

/** Pins a directory that exists. It can be had with less than the machine can promise. */
export const open = (directory: string, promised: Level = level()): Confined | Fault => {
  const top = fromBytes(Fs.realpathSync.native(directory, { encoding: "buffer" }))
  const found = look(top)
  if (found === undefined) return notFound
  if (!found.isDirectory()) return notADirectory
  const caseSensitive = isCaseSensitive(top)
  const descriptor = Fs.openSync(top, holding)
  try {
    return promised === "race-free"
      ? DescriptorWalk.make(descriptor, caseSensitive)
      : CheckedWalk.make(top, descriptor, caseSensitive)
  } catch (error) {
    closeQuietly(descriptor)
    throw error
  }
}

const swapped = (name: string): string =>
  name.replace(/[a-z]/gi, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase()))

/** Asked of a name that is there, since nothing may be written to find out. */
const isCaseSensitive = (top: HostPath): boolean => {
  const sample = sampleName(top) ?? top
  if (typeof sample !== "string") return true
  const name = sample.slice(sample.lastIndexOf("/") + 1)
  const other = swapped(name)
  if (other === name) return process.platform !== "darwin"
  const found = look(sample)
  const twin = look(sample.slice(0, sample.length - name.length) + other)
  return found === undefined || twin === undefined || !isSameFile(found, twin)
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

/** A root that may be entered but not listed is still a root. */
const openQuietly = (top: HostPath): Fs.Dir | undefined => {
  try {
    return Fs.opendirSync(top as string)
  } catch {
    return undefined
  }
}
