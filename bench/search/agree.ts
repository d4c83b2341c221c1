/** Finds whether two peers give the same answers, and otherwise which answers only one of them has. */
import { readdirSync, readFileSync } from "node:fs"
import type { Peer } from "./peer.ts"

const named = 5

const some = (who: string, all: ReadonlyArray<string>): ReadonlyArray<string> =>
  all.length === 0 ? [] : [`only ${who} (${all.length}): ${all.slice(0, named).join(", ")}${all.length > named ? ", …" : ""}`]

const without = (all: ReadonlyArray<string>, others: ReadonlySet<string>) => all.filter((one) => !others.has(one))

/** Returns the differences, or nothing if the peers agree. A result that is given twice is a difference too. */
export const differences = (
  reference: Pick<Peer, "name">,
  expected: ReadonlyArray<string>,
  peer: Pick<Peer, "name" | "lacks">,
  actual: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const [left, right] = [new Set(expected), new Set(actual)]
  return [
    ...some(
      reference.name,
      without(expected, right).filter((result) => peer.lacks?.is(result) !== true)
    ),
    ...some(peer.name, without(actual, left)),
    ...(right.size === actual.length ? [] : [`${peer.name} gives ${actual.length - right.size} results twice`])
  ]
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

const isText = (bytes: Uint8Array): boolean => {
  if (bytes.includes(0)) return false
  try {
    utf8.decode(bytes)
    return true
  } catch {
    return false
  }
}

/**
 * Finds the files whose contents may be searched differently for a reason; they are left out on all sides. ripgrep
 * stops at a NUL anywhere. We look for one in the first 8,192 bytes, and treat a file with a match as binary if it is
 * not UTF-8.
 */
export const notText = (root: string): ReadonlySet<string> => {
  const found = new Set<string>()
  const visit = (directory: string, prefix: string): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = prefix + entry.name
      if (entry.isDirectory()) visit(`${directory}/${entry.name}`, `${path}/`)
      else if (entry.isFile() && !isText(readFileSync(`${directory}/${entry.name}`))) found.add(path)
    }
  }
  visit(root, "")
  return found
}

/** Removes the results in these files. */
export const linesOutside = (left: ReadonlySet<string>, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  left.size === 0 ? lines : lines.filter((line) => !left.has(line.slice(0, line.lastIndexOf(":"))))
