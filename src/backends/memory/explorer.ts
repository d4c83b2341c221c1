/**
 * Explores a tree in memory for a walk. One request reads many directories, and one call returns the bytes of many files.
 *
 * Each request looks up its directories by path, and so sees the tree at the time of the request.
 */
import * as Effect from "effect/Effect"
import { notADirectory, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath } from "../../model/FsPath.ts"
import type { SkipReason } from "../../model/search.ts"
import { type Child, keyOf } from "../../port/Backend.ts"
import type { DirectoryFiles, DirectoryReading, Explore, Explorer, Visit } from "../../port/explorer.ts"
import * as Content from "./content.ts"
import * as Children from "./hashTrie.ts"
import { type Directory, inOrder, ListedNode, type MemoryTree, type Node } from "./tree.ts"

/** The number of directories per request. A small number wastes little work if the walk ends early. */
const directoriesPerRequest = 64

export const makeExplore =
  (get: MemoryTree["get"], caseSensitive: boolean): Explore =>
  <V extends Visit>(pathOf: (visit: V) => FsPath) => {
    const listings = new WeakMap<V, ReadonlyArray<ListedNode>>()

    const childrenOf = (visit: V): ReadonlyArray<Child> | Fault => {
      const node = get(pathOf(visit))
      if (node === undefined) return notFound
      if (node.kind !== "directory") return notADirectory
      const children = inOrder(node, caseSensitive)
      listings.set(visit, children)
      return children
    }

    const lookUp = (directory: Directory, child: Child): Uint8Array | SkipReason => {
      const key = caseSensitive ? keyOf(child) : fold(keyOf(child))
      const node = Children.get<Node>(directory.children, key, 0, key.length)
      return node === undefined ? "gone" : node.kind === "file" ? Content.view(node.content) : "unreadable"
    }

    const lendFrom = ({ children, visit }: DirectoryFiles<V>, out: Array<Uint8Array | SkipReason>): void => {
      const directory = get(pathOf(visit))
      if (directory?.kind !== "directory") {
        for (const _ of children) out.push("gone")
        return
      }
      // While the directory has its listing, each listed entry has its node, so a look-up by name is unnecessary.
      const isUnchanged = directory.ordered !== undefined && directory.ordered === listings.get(visit)
      for (const child of children) {
        const content = isUnchanged && child instanceof ListedNode ? child.content : undefined
        out.push(content === undefined ? lookUp(directory, child) : Content.view(content))
      }
    }

    return Effect.sync((): Explorer<V> => {
      let read: Array<DirectoryReading<V>> = []
      return {
        availableReads: () => (read.length === 0 ? directoriesPerRequest : 0),
        read: (visits) => {
          for (const visit of visits) read.push({ visit, children: childrenOf(visit) })
        },
        take: () => {
          const taken = read
          read = []
          return taken
        },
        waitForReading: Effect.void,
        keepOpen: () => {},
        release: () => {},
        lend: (files) =>
          Effect.sync(() => {
            const out: Array<Uint8Array | SkipReason> = []
            for (const some of files) lendFrom(some, out)
            return out
          })
      }
    })
  }
