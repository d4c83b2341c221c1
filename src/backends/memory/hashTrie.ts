/**
 * Stores the entries of a directory as a trie over the hashes of their names.
 *
 * A change copies only the few small nodes above the changed entry. So the cost of the first change after a capture
 * does not depend on the size of the directory. A `Map` would be copied as a whole.
 *
 * Nodes created since the last capture carry the `owner` of the tree and are changed in place, so plain writes copy
 * nothing.
 */

export interface Entry {
  readonly key: string
  readonly hash: number
}

interface Leaf<E> {
  readonly kind: "leaf"
  readonly owner: object
  readonly items: Array<E>
}

interface Branch<E> {
  readonly kind: "branch"
  readonly owner: object
  readonly items: Array<Children<E> | undefined>
}

interface Bucket<E> {
  readonly kind: "bucket"
  readonly owner: object
  readonly items: Map<string, E>
}

export type Children<E> = Leaf<E> | Branch<E> | Bucket<E>

const leafSize = 16
const bitsPerLevel = 5
const branchSize = 1 << bitsPerLevel
const slotMask = branchSize - 1
const maxShift = 35

/** An empty trie that belongs to no tree, so the first change copies it. */
export const empty: Children<never> = { kind: "leaf", owner: {}, items: [] }

/** Hashes a part of a text, so that a path can be followed without splitting it into names. */
export const hashOf = (text: string, start: number, end: number): number => {
  let hash = 0x811c9dc5
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) | 0
}

const indexIn = <E extends Entry>(items: ReadonlyArray<E>, hash: number, text: string, start: number, end: number): number => {
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!
    if (item.hash === hash && item.key === text.slice(start, end)) return i
  }
  return -1
}

export const get = <E extends Entry>(self: Children<E>, text: string, start: number, end: number): E | undefined =>
  find(self, hashOf(text, start, end), text, start, end, 0)

const find = <E extends Entry>(
  self: Children<E>,
  hash: number,
  text: string,
  start: number,
  end: number,
  shift: number
): E | undefined => {
  let at = self
  for (let rest = shift; at.kind === "branch"; rest += bitsPerLevel) {
    const next = at.items[(hash >>> rest) & slotMask]
    if (next === undefined) return undefined
    at = next
  }
  if (at.kind === "bucket") return at.items.get(text.slice(start, end))
  const index = indexIn(at.items, hash, text, start, end)
  return index === -1 ? undefined : at.items[index]
}

const ownCopy = <E>(self: Children<E>, owner: object): Children<E> => {
  if (self.owner === owner) return self
  switch (self.kind) {
    case "leaf":
      return { kind: "leaf", owner, items: self.items.slice() }
    case "branch":
      return { kind: "branch", owner, items: self.items.slice() }
    case "bucket":
      return { kind: "bucket", owner, items: new Map(self.items) }
  }
}

const split = <E extends Entry>(full: Leaf<E>, owner: object, shift: number): Children<E> => {
  if (shift >= maxShift) return { kind: "bucket", owner, items: new Map(full.items.map((item) => [item.key, item])) }
  let branch: Children<E> = { kind: "branch", owner, items: Array.from<undefined>({ length: branchSize }).fill(undefined) }
  for (const item of full.items) branch = set(branch, item, owner, shift)
  return branch
}

export const set = <E extends Entry>(self: Children<E>, entry: E, owner: object, shift = 0): Children<E> => {
  if (self.kind === "leaf" && self.items.length === leafSize) {
    const { hash, key } = entry
    if (indexIn(self.items, hash, key, 0, key.length) === -1) return set(split(self, owner, shift), entry, owner, shift)
  }
  const own = ownCopy(self, owner)
  switch (own.kind) {
    case "leaf": {
      const index = indexIn(own.items, entry.hash, entry.key, 0, entry.key.length)
      if (index === -1) own.items.push(entry)
      else own.items[index] = entry
      break
    }
    case "branch": {
      const slot = (entry.hash >>> shift) & slotMask
      const child = own.items[slot]
      own.items[slot] =
        child === undefined ? { kind: "leaf", owner, items: [entry] } : set(child, entry, owner, shift + bitsPerLevel)
      break
    }
    case "bucket":
      own.items.set(entry.key, entry)
  }
  return own
}

export const remove = <E extends Entry>(self: Children<E>, entry: E, owner: object, shift = 0): Children<E> => {
  const own = ownCopy(self, owner)
  switch (own.kind) {
    case "leaf":
      own.items.splice(indexIn(own.items, entry.hash, entry.key, 0, entry.key.length), 1)
      break
    case "branch": {
      const slot = (entry.hash >>> shift) & slotMask
      own.items[slot] = remove(own.items[slot]!, entry, owner, shift + bitsPerLevel)
      break
    }
    case "bucket":
      own.items.delete(entry.key)
  }
  return own
}

export const forEach = <E>(self: Children<E>, visit: (entry: E) => void): void => {
  if (self.kind === "branch") {
    for (const child of self.items) if (child !== undefined) forEach(child, visit)
  } else for (const entry of self.items.values()) visit(entry)
}

/** Calls `visit` for each key whose entries in the two tries are different objects. Skips nodes that both tries share. */
export const forEachDifference = <E extends Entry>(
  before: Children<E>,
  after: Children<E>,
  visit: (before: E | undefined, after: E | undefined) => void,
  shift = 0
): void => {
  if (before === after) return
  if (before.kind === "branch" && after.kind === "branch") {
    for (let slot = 0; slot < branchSize; slot++) {
      forEachDifference(before.items[slot] ?? empty, after.items[slot] ?? empty, visit, shift + bitsPerLevel)
    }
    return
  }
  const findCounterpart = (entry: E, children: Children<E>): E | undefined =>
    find(children, entry.hash, entry.key, 0, entry.key.length, shift)
  forEach(before, (entry) => {
    const other = findCounterpart(entry, after)
    if (other !== entry) visit(entry, other)
  })
  forEach(after, (entry) => {
    if (findCounterpart(entry, before) === undefined) visit(undefined, entry)
  })
}
