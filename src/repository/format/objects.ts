/** Reads nodes and chunks through a cache, and stores them. */
import * as Effect from "effect/Effect"
import * as Eager from "../../engine/eager.ts"
import { sha256 } from "../../runtime/hash.ts"
import type { Operations as Blobs } from "../BlobStore.ts"
import { StoreError } from "../errors.ts"
import { type OwnOperations, putHashed } from "../stores/blobs.ts"
import * as Cache from "./cache.ts"
import {
  type AnswerList,
  type AnswersRef,
  type Branch,
  type Child,
  corruptNode,
  decode,
  encode,
  type Index,
  maxChunkBytes,
  maxNodeBytes,
  type Node,
  type Root,
  type Tree,
  type TreeNode
} from "./nodes.ts"

export interface Objects {
  /**
   * Returns the node of a tree. Fails with `corrupt` unless the node has `prefix`, which follows from its position in the
   * directory.
   */
  readonly tree: (tree: string | TreeNode, prefix: string) => Effect.Effect<TreeNode, StoreError>
  readonly child: (parent: Branch, child: Child, digit: number) => Effect.Effect<TreeNode, StoreError>
  readonly index: (hash: string, level: number, size: number) => Effect.Effect<Index, StoreError>
  readonly root: (hash: string) => Effect.Effect<Root, StoreError>
  readonly answers: (ref: AnswersRef) => Effect.Effect<AnswerList, StoreError>
  /** Returns a chunk, which the caller must not modify. */
  readonly chunk: (hash: string, size: number) => Effect.Effect<Uint8Array, StoreError>
  /** Stores bytes and returns their hash. The caller must not modify the bytes afterwards. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<string, StoreError>
  /** Stores a node, and returns its hash and its size in bytes. All nodes below this node must already be stored. */
  readonly putNode: (node: Node) => Effect.Effect<{ readonly hash: string; readonly size: number }, StoreError>
  /** Stores the nodes of the trees that are not stored yet, and returns the hash of each tree. */
  readonly store: (trees: ReadonlyArray<Tree>) => Effect.Effect<ReadonlyArray<string | undefined>, StoreError>
}

/** The estimated memory of a decoded node, as a multiple of its encoded size. */
const decodedFactor = 4

/** The cached forms of a blob. A blob can be a node and a chunk, because a file may contain the bytes of a node. */
interface Cached {
  readonly node?: Node
  readonly chunk?: Uint8Array
}

const putConcurrency = 16

const digits = "0123456789abcdef"

const isNode = (tree: Tree): tree is TreeNode => typeof tree === "object"

export const make = (blobs: Blobs, options: { readonly cacheBytes: number }): Objects => {
  const cache = Cache.make<Cached>(options.cacheBytes)
  const keepNode = (hash: string, node: Node, size: number): void => {
    if (cache.get(hash)?.node === undefined) cache.set(hash, { node }, decodedFactor * size)
  }

  /** Reads a blob and checks its hash, because a store may be forged. Reads at most one byte more than `maxBytes`. */
  const read = (hash: string, what: string, maxBytes: number): Effect.Effect<Uint8Array, StoreError> =>
    Effect.flatMap(
      Effect.mapError(blobs.get(hash, { offset: 0, length: maxBytes + 1 }), (error) =>
        error.reason === "missing" || error.reason === "corrupt"
          ? new StoreError({ reason: error.reason, detail: `the ${what} ${hash} is ${error.reason}: ${error.detail}` })
          : error
      ),
      (bytes) => {
        if (bytes.length <= maxBytes && sha256(bytes) === hash) return Effect.succeed(bytes)
        const why = bytes.length > maxBytes ? `it has more than ${maxBytes} bytes` : "its bytes have a different hash"
        return Effect.fail(new StoreError({ reason: "corrupt", detail: `the ${what} ${hash} is corrupt: ${why}` }))
      }
    )

  const checked = <N>(hash: string, result: N | string): Effect.Effect<N, StoreError> =>
    typeof result === "string" ? Effect.fail(corruptNode(hash, result)) : Effect.succeed(result)

  /** Returns a node that `check` accepts. If the node is in the cache, returns a completed effect. */
  const node = <N extends object>(hash: string, check: (node: Node) => N | string): Effect.Effect<N, StoreError> => {
    const known = cache.get(hash)?.node
    if (known !== undefined) return checked(hash, check(known))
    return Effect.flatMap(read(hash, "node", maxNodeBytes), (bytes) => {
      const found = decode(hash, bytes)
      if (found instanceof StoreError) return Effect.fail(found)
      keepNode(hash, found, bytes.length)
      return checked(hash, check(found))
    })
  }

  const tree: Objects["tree"] = (tree, prefix) =>
    isNode(tree)
      ? Effect.succeed(tree)
      : node(tree, (found) =>
          found.kind === "leaf" || found.kind === "branch"
            ? found.prefix === prefix
              ? found
              : "it belongs to another place in a directory"
            : "it is not a part of a directory"
        )

  const own: Partial<OwnOperations> = blobs
  const wrongHash = new StoreError({
    reason: "corrupt",
    detail: "the store of blobs returned a wrong hash for new content"
  })
  /** Stores bytes with a known hash. The stores of this library need not compute the hash again. */
  const putAs = (hash: string, bytes: Uint8Array): Effect.Effect<string, StoreError> =>
    own[putHashed] !== undefined
      ? Effect.as(own[putHashed](hash, bytes), hash)
      : Effect.flatMap(blobs.put(bytes), (stored) => (stored === hash ? Effect.succeed(hash) : Effect.fail(wrongHash)))

  const put: Objects["put"] = (bytes) => Effect.suspend(() => putAs(sha256(bytes), bytes))

  return {
    tree,
    child: (parent, child, digit) =>
      Eager.flatMap(tree(child.tree, parent.prefix + digits[digit]!), (found) =>
        found.weight === child.weight
          ? Effect.succeed(found)
          : Effect.fail(corruptNode(String(child.tree), "its weight differs from the weight that the node above states"))
      ),
    index: (hash, level, size) =>
      node(hash, (found) => {
        if (found.kind !== "index") return "it is not an index of chunks"
        if (found.level !== level) return "its level differs from the level that the node above states"
        return found.children.reduce((sum, child) => sum + child.size, 0) === size
          ? found
          : "its size differs from the size that the node above states"
      }),
    root: (hash) => node(hash, (found) => (found.kind === "root" ? found : "it is not the root of a commit")),
    answers: ({ hash }) => node(hash, (found) => (found.kind === "answers" ? found : "it is not a list of answers")),
    chunk: (hash, size) => {
      const known = cache.get(hash)?.chunk
      const found =
        known !== undefined
          ? Effect.succeed(known)
          : Effect.tap(read(hash, "chunk", maxChunkBytes), (bytes) =>
              Effect.sync(() => {
                if (cache.get(hash)?.chunk === undefined) cache.set(hash, { chunk: bytes }, bytes.length)
              })
            )
      return Eager.flatMap(found, (bytes) =>
        bytes.length === size
          ? Effect.succeed(bytes)
          : Effect.fail(
              new StoreError({
                reason: "corrupt",
                detail: `the chunk ${hash} has ${bytes.length} bytes, but its index says ${size}`
              })
            )
      )
    },
    put,
    putNode: (node) =>
      Effect.suspend(() => {
        const bytes = encode(node)
        const hash = sha256(bytes)
        keepNode(hash, node, bytes.length)
        return Effect.as(putAs(hash, bytes), { hash, size: bytes.length })
      }),
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
          keepNode(hash, below, bytes.length)
          return hash
        }
        const out = trees.map((tree) => (tree === undefined ? undefined : hashOf(tree)))
        return Effect.as(
          Effect.forEach(pending, ([hash, bytes]) => putAs(hash, bytes), {
            // Several fibers would only cost time for a single node.
            concurrency: pending.size === 1 ? 1 : putConcurrency,
            discard: true
          }),
          out
        )
      })
  }
}
