interface Kept<V> {
  readonly values: V
  readonly cost: number
  isUsed: boolean
}

export interface Cache<V extends object> {
  readonly get: (key: string) => V | undefined
  /** Merges `values` into the values of the key, and adds `cost` to its cost. */
  readonly set: (key: string, values: V, cost: number) => void
  readonly cost: () => number
}

/**
 * Makes a cache of immutable values with a limit on their total cost. Evicts the oldest value first, but gives a value a second
 * chance if it was used since it was last considered.
 */
export const make = <V extends object>(maxCost: number): Cache<V> => {
  const all = new Map<string, Kept<V>>()
  // A new iterator would pass over all the removed values before the oldest one.
  let oldest = all.entries()
  let total = 0
  return {
    cost: () => total,
    get: (key) => {
      const found = all.get(key)
      if (found === undefined) return undefined
      found.isUsed = true
      return found.values
    },
    set: (key, values, cost) => {
      const old = all.get(key)
      const kept: Kept<V> =
        old === undefined
          ? { values, cost, isUsed: false }
          : { values: { ...old.values, ...values }, cost: cost + old.cost, isUsed: false }
      // A value above the limit would only evict all others.
      if (kept.cost > maxCost) return
      total += cost
      all.delete(key)
      all.set(key, kept)
      while (total > maxCost) {
        const next = oldest.next()
        if (next.done === true) {
          oldest = all.entries()
          continue
        }
        const [key, found] = next.value
        all.delete(key)
        if (found.isUsed) {
          found.isUsed = false
          all.set(key, found)
        } else total -= found.cost
      }
    }
  }
}
