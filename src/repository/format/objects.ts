/** Reads nodes and chunks through a cache, and stores them. */
import * as Effect from "effect/Effect"
import { sha256 } from "../../runtime/hash.ts"
import type { Operations as Blobs } from "../BlobStore.ts"
import { StoreError } from "../errors.ts"
import {
  type Branch,
  type Child,
  corruptNode,
  decode,
  encode,
  type Index,
  maxChunkBytes,
  maxNodeBytes,
  type Root,
  type Tree,
  type TreeNode
} from "./nodes.ts"

export interface Objects {
  /** Returns the node of a tree. The node is at this place in its directory: all its names have hashes with this prefix. */
  readonly tree: (tree: string | TreeNode, prefix: string) => Effect.Effect<TreeNode, StoreError>
  readonly child: (parent: Branch, child: Child, digit: number) => Effect.Effect<TreeNode, StoreError>
  readonly index: (hash: string, level: number, size: number) => Effect.Effect<Index, StoreError>
  readonly root: (hash: string) => Effect.Effect<Root, StoreError>
  /** Returns a chunk, which the caller must not modify. */
  readonly chunk: (hash: string, size: number) => Effect.Effect<Uint8Array, StoreError>
  readonly put: (bytes: Uint8Array) => Effect.Effect<string, StoreError>
  /** Stores the nodes of a tree that are not stored yet, and returns the tree by its hash. */
  readonly store: (trees: ReadonlyArray<Tree>) => Effect.Effect<ReadonlyArray<string | undefined>, StoreError>
}

/** The decoded form of a node takes a few times the memory of its bytes. */
const decodedFactor = 4

interface Cached {
  readonly value: unknown
  readonly cost: number
}

/** Makes a cache of immutable values with a bound on their total cost. The value that was not used for the longest time leaves first. */
const makeCache = (maxCost: number) => {
  const all = new Map<string, Cached>()
  let total = 0
  return {
    get: (key: string): unknown => {
      const found = all.get(key)
      if (found === undefined) return undefined
      all.delete(key)
      all.set(key, found)
      return found.value
    },
    set: (key: string, value: unknown, cost: number): void => {
      const old = all.get(key)
      if (old !== undefined) total -= old.cost
      all.delete(key)
      all.set(key, { value, cost })
      total += cost
      for (const [key, { cost }] of all) {
        if (total <= maxCost) break
        all.delete(key)
        total -= cost
      }
    }
  }
}

const putConcurrency = 16

const isNode = (tree: Tree): tree is TreeNode => typeof tree === "object"

export const make = (blobs: Blobs, options: { readonly cacheBytes: number }): Objects => {
  const cache = makeCache(options.cacheBytes)

  /** Reads a blob and checks its hash, because a store may be forged. Reads no more than the largest blob of its kind has. */
  const read = (hash: string, what: string, maxBytes: number): Effect.Effect<Uint8Array, StoreError> =>
    Effect.flatMap(
      Effect.mapError(blobs.get(hash, { offset: 0, length: maxBytes + 1 }), (error) =>
        error.reason === "missing" || error.reason === "corrupt"
          ? new StoreError({ reason: error.reason, detail: `the ${what} ${hash} is ${error.reason}: ${error.detail}` })
          : error
      ),
      (bytes) => {
        if (bytes.length <= maxBytes && sha256(bytes) === hash) return Effect.succeed(bytes)
        const why = bytes.length > maxBytes ? `it has more than ${maxBytes} bytes` : "its bytes have another hash"
        return Effect.fail(new StoreError({ reason: "corrupt", detail: `the ${what} ${hash} is corrupt: ${why}` }))
      }
    )

  const node = <N>(hash: string, check: (node: ReturnType<typeof decode>) => N | string): Effect.Effect<N, StoreError> =>
    Effect.suspend(() => {
      const checked = (node: ReturnType<typeof decode>): Effect.Effect<N, StoreError> => {
        if (node instanceof StoreError) return Effect.fail(node)
        const result = check(node)
        return typeof result === "string" ? Effect.fail(corruptNode(hash, result)) : Effect.succeed(result)
      }
      const known = cache.get(`n${hash}`) as ReturnType<typeof decode> | undefined
      if (known !== undefined) return checked(known)
      return Effect.flatMap(read(hash, "node", maxNodeBytes), (bytes) => {
        const found = decode(hash, bytes)
        if (!(found instanceof StoreError)) cache.set(`n${hash}`, found, decodedFactor * bytes.length)
        return checked(found)
      })
    })

  const tree: Objects["tree"] = (tree, prefix) =>
    isNode(tree)
      ? Effect.succeed(tree)
      : node(tree, (found) =>
          "kind" in found && (found.kind === "leaf" || found.kind === "branch")
            ? found.prefix === prefix
              ? found
              : "it belongs to another place in a directory"
            : "it is not a part of a directory"
        )

  const put: Objects["put"] = (bytes) =>
    Effect.flatMap(blobs.put(bytes), (hash) =>
      hash === sha256(bytes)
        ? Effect.succeed(hash)
        : Effect.fail(new StoreError({ reason: "corrupt", detail: "the store of blobs returned a wrong hash for new content" }))
    )

  return {
    tree,
    child: (parent, child, digit) =>
      Effect.flatMap(tree(child.tree, parent.prefix + digit.toString(16)), (found) =>
        found.weight === child.weight
          ? Effect.succeed(found)
          : Effect.fail(corruptNode(String(child.tree), "it has another weight than the node above says"))
      ),
    index: (hash, level, size) =>
      node(hash, (found) => {
        if (!("kind" in found) || found.kind !== "index") return "it is not an index of chunks"
        if (found.level !== level) return "it has another level than the node above says"
        return found.children.reduce((sum, child) => sum + child.size, 0) === size
          ? found
          : "it has another size than the node above says"
      }),
    root: (hash) =>
      node(hash, (found) => ("kind" in found && found.kind === "root" ? found : "it is not the root of a commit")),
    chunk: (hash, size) =>
      Effect.suspend(() => {
        const known = cache.get(`c${hash}`) as Uint8Array | undefined
        return Effect.flatMap(known === undefined ? read(hash, "chunk", maxChunkBytes) : Effect.succeed(known), (bytes) => {
          if (bytes.length !== size) {
            return Effect.fail(
              new StoreError({
                reason: "corrupt",
                detail: `the chunk ${hash} has ${bytes.length} bytes, but its index says ${size}`
              })
            )
          }
          if (known === undefined) cache.set(`c${hash}`, bytes, bytes.length)
          return Effect.succeed(bytes)
        })
      }),
    put,
    store: (trees) =>
      Effect.suspend(() => {
        const pending = new Map<string, Uint8Array>()
        const hashes = new Map<TreeNode, string>()
        const hashOf = (tree: string | TreeNode): string => {
          if (!isNode(tree)) return tree
          const known = hashes.get(tree)
          if (known !== undefined) return known
          const below: TreeNode =
            tree.kind === "leaf"
              ? {
                  ...tree,
                  entries: tree.entries.map((entry) =>
                    entry.kind === "directory" && isNode(entry.tree) ? { ...entry, tree: hashOf(entry.tree) } : entry
                  )
                }
              : {
                  ...tree,
                  children: tree.children.map((child) =>
                    child && isNode(child.tree) ? { ...child, tree: hashOf(child.tree) } : child
                  )
                }
          const bytes = encode(below)
          const hash = sha256(bytes)
          hashes.set(tree, hash)
          pending.set(hash, bytes)
          cache.set(`n${hash}`, below, decodedFactor * bytes.length)
          return hash
        }
        const out = trees.map((tree) => (tree === undefined ? undefined : hashOf(tree)))
        return Effect.as(Effect.forEach(pending.values(), put, { concurrency: putConcurrency, discard: true }), out)
      })
  }
}
