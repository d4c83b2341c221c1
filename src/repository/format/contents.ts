/** The contents of files: inline, one chunk, or a tree of indexes over chunks. Writes use bounded memory. */
import * as Effect from "effect/Effect"
import * as Eager from "../../engine/eager.ts"
import { type Hasher, hasher, sha256 } from "../../runtime/hash.ts"
import type { StoreError } from "../errors.ts"
import * as Chunker from "./chunker.ts"
import { type ChunkRef, type Content, maxIndexSize, maxInlineBytes, sizeOf } from "./nodes.ts"
import type { Objects } from "./objects.ts"

export { sizeOf } from "./nodes.ts"

export const empty: Content = { _tag: "Inline", bytes: new Uint8Array() }

const inlineVersions = new WeakMap<Uint8Array, string>()

/** Returns the SHA-256 of the content. */
export const versionOf = (content: Content): string => {
  if (content._tag === "Chunks") return content.sha256
  const known = inlineVersions.get(content.bytes)
  if (known !== undefined) return known
  const version = sha256(content.bytes)
  inlineVersions.set(content.bytes, version)
  return version
}

/** Visits the chunks that overlap a range, in order. */
export const forEachChunk = (
  objects: Objects,
  content: Extract<Content, { _tag: "Chunks" }>,
  from: number,
  to: number,
  visit: (chunk: ChunkRef, at: number) => Effect.Effect<void, StoreError>
): Effect.Effect<void, StoreError> => {
  const below = (level: number, ref: ChunkRef, at: number): Effect.Effect<void, StoreError> => {
    if (at >= to || at + ref.size <= from) return Effect.void
    if (level === 0) return visit(ref, at)
    return Effect.flatMap(objects.index(ref.hash, level, ref.size), ({ children }) => {
      let next = at
      return Effect.forEach(
        children,
        (child) => {
          const start = next
          next += child.size
          return below(level - 1, child, start)
        },
        { discard: true }
      )
    })
  }
  return below(content.level, content, 0)
}

/** Returns the bytes of a range that exist, in a new array. */
export const read = (
  objects: Objects,
  content: Content,
  offset: number,
  length: number
): Effect.Effect<Uint8Array, StoreError> => {
  const end = Math.min(offset + length, sizeOf(content))
  if (offset >= end) return Effect.succeed(new Uint8Array())
  if (content._tag === "Inline") return Effect.succeed(new Uint8Array(content.bytes.subarray(offset, end)))
  if (content.level === 0) {
    return Eager.map(objects.chunk(content.hash, content.size), (bytes) => new Uint8Array(bytes.subarray(offset, end)))
  }
  return Effect.suspend(() => {
    const out = new Uint8Array(end - offset)
    const copy = (chunk: ChunkRef, at: number) =>
      Effect.map(objects.chunk(chunk.hash, chunk.size), (bytes) => {
        const from = Math.max(offset - at, 0)
        out.set(bytes.subarray(from, Math.min(end - at, bytes.length)), at + from - offset)
      })
    return Effect.as(forEachChunk(objects, content, offset, end, copy), out)
  })
}

/** A writer that takes content part by part. */
export interface Writer {
  /** Adds bytes, which the writer copies. Stores the chunks that are complete. */
  readonly push: (bytes: Uint8Array) => Effect.Effect<void, StoreError>
  readonly end: Effect.Effect<Content, StoreError>
}

interface Assembly extends Writer {
  /** Adds a chunk that is already stored. All calls of `keep` must come before the first `push`. */
  readonly keep: (chunk: ChunkRef) => Effect.Effect<void, StoreError>
}

/** Assembles content. `version` returns the hash of the whole content at the end. */
const assemble = (objects: Objects, version: () => string): Assembly => {
  const chunker = Chunker.make()
  /** The references that are not in an index yet, by level. Each list has at most `maxIndexSize` references. */
  const levels: Array<Array<ChunkRef>> = [[]]
  let size = 0
  const addRef = (level: number, ref: ChunkRef): Effect.Effect<void, StoreError> =>
    Effect.suspend(() => {
      const add = Effect.sync(() => void (levels[level] ??= []).push(ref))
      return (levels[level]?.length ?? 0) < maxIndexSize ? add : Effect.andThen(flush(level), add)
    })
  const flush = (level: number): Effect.Effect<void, StoreError> =>
    Effect.suspend(() => {
      const children = levels[level]!
      levels[level] = []
      const size = children.reduce((sum, { size }) => sum + size, 0)
      return Effect.flatMap(objects.putNode({ kind: "index", level: level + 1, children }), ({ hash }) =>
        addRef(level + 1, { hash, size })
      )
    })
  const addChunk = (chunk: Uint8Array): Effect.Effect<void, StoreError> =>
    Effect.flatMap(objects.put(chunk), (hash) => addRef(0, { hash, size: chunk.length }))
  const top = (level: number): Effect.Effect<Content, StoreError> =>
    Effect.suspend(() => {
      const refs = levels[level]!
      return level === levels.length - 1 && refs.length === 1
        ? Effect.succeed<Content>({ _tag: "Chunks", size, sha256: version(), level, hash: refs[0]!.hash })
        : Effect.andThen(refs.length === 0 ? Effect.void : flush(level), top(level + 1))
    })
  return {
    keep: (chunk) => {
      size += chunk.size
      return addRef(0, chunk)
    },
    push: (bytes) =>
      Effect.suspend(() => {
        size += bytes.length
        return Effect.forEach(chunker.push(bytes), addChunk, { discard: true })
      }),
    end: Effect.suspend(() => {
      const rest = chunker.end()
      if (size <= maxInlineBytes) return Effect.succeed<Content>({ _tag: "Inline", bytes: rest })
      return Effect.andThen(rest.length === 0 ? Effect.void : addChunk(rest), top(0))
    })
  }
}

export const makeWriter = (objects: Objects): Writer => {
  const hash = hasher()
  const { end, push } = assemble(objects, hash.digest)
  return {
    push: (bytes) =>
      Effect.suspend(() => {
        hash.update(bytes)
        return push(bytes)
      }),
    end
  }
}

/** Makes content of bytes, and stores its chunks. The caller may reuse the bytes afterwards. */
export const fromBytes = (objects: Objects, bytes: Uint8Array): Effect.Effect<Content, StoreError> =>
  Effect.suspend(() => {
    if (bytes.length <= maxInlineBytes) return Effect.succeed<Content>({ _tag: "Inline", bytes: new Uint8Array(bytes) })
    if (bytes.length <= Chunker.minChunkBytes) {
      // Content of at most `minChunkBytes` is always one chunk, so the chunk and the content have the same hash.
      const chunk = new Uint8Array(bytes)
      return Effect.map(objects.put(chunk), (hash): Content => ({
        _tag: "Chunks",
        size: chunk.length,
        sha256: hash,
        level: 0,
        hash
      }))
    }
    const writer = makeWriter(objects)
    return Effect.andThen(writer.push(bytes), writer.end)
  })

/**
 * Returns `content` with `bytes` appended. Stores only the last chunk again. `known` is the state of the hash after `content`;
 * the caller must not use it afterwards. Without `known`, reads the whole content to compute the hash.
 */
export const append = (
  objects: Objects,
  content: Content,
  bytes: Uint8Array,
  known: Hasher | undefined
): Effect.Effect<{ readonly content: Content; readonly hash: Hasher }, StoreError> =>
  Effect.gen(function* () {
    const hash = known ?? hasher()
    const { end, keep, push } = assemble(objects, hash.digest)
    if (content._tag === "Inline") {
      if (known === undefined) hash.update(content.bytes)
      yield* push(content.bytes)
    } else {
      let last: ChunkRef | undefined
      yield* forEachChunk(objects, content, 0, content.size, (chunk) =>
        Effect.gen(function* () {
          if (known === undefined) hash.update(yield* objects.chunk(chunk.hash, chunk.size))
          if (last !== undefined) yield* keep(last)
          last = chunk
        })
      )
      // The boundaries before the last chunk stay, because a chunk depends only on the bytes since its start.
      yield* push(yield* objects.chunk(last!.hash, last!.size))
    }
    hash.update(bytes)
    yield* push(bytes)
    return { content: yield* end, hash }
  })

/** Stores the parts of content again, so that the store updates their `storedAt`. Fails with `missing` if a part is missing. */
export const refresh = (objects: Objects, content: Content): Effect.Effect<void, StoreError> => {
  const below = (level: number, { hash, size }: ChunkRef): Effect.Effect<void, StoreError> =>
    level === 0
      ? Effect.flatMap(objects.chunk(hash, size), (bytes) => Effect.asVoid(objects.put(bytes)))
      : Effect.flatMap(objects.index(hash, level, size), (index) =>
          Effect.andThen(
            Effect.forEach(index.children, (child) => below(level - 1, child), { discard: true }),
            Effect.asVoid(objects.putNode(index))
          )
        )
  return content._tag === "Inline" ? Effect.void : below(content.level, content)
}
