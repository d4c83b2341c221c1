/**
 * Reports changes by their effect on visible names. A transaction stages entries under hidden names. A rename from a hidden name creates
 * the staged entry, and a rename to a hidden name removes an entry.
 */
import * as FsPath from "../../model/FsPath.ts"
import type { Operation } from "./operations.ts"
import { Hidden } from "./paths.ts"
import type { Change } from "./values.ts"

interface Prepared {
  kind: "FileWrite" | "FileMakeDirectory" | "FileMakeLink"
  bytes?: number | undefined
  version?: string | undefined
  readonly entries: Map<string, Prepared>
}

const prepared = (kind: Prepared["kind"], fields: Pick<Prepared, "bytes" | "version"> = {}): Prepared => ({
  kind,
  ...fields,
  entries: new Map()
})

const kinds: ReadonlySet<string> = new Set<Prepared["kind"]>(["FileWrite", "FileMakeDirectory", "FileMakeLink"])
const isMaking = (kind: Change["kind"]): kind is Prepared["kind"] => kinds.has(kind)

const moved = ({ answered }: Operation): Prepared => {
  const answer = answered?.answer
  return answer?._tag === "FileMoved" && answer.directories > 0
    ? prepared("FileMakeDirectory")
    : prepared("FileWrite", answer?._tag === "FileMoved" ? { bytes: answer.bytes } : {})
}

/** Translates changes, which must come in their order. */
export class Visible {
  readonly #top = prepared("FileMakeDirectory")
  readonly #hidden = new Hidden()

  take(change: Change, operation: Operation): ReadonlyArray<Change> {
    const { outcome, path, to } = change
    this.#hidden.note(operation)
    if (to === undefined) {
      if (!this.#hidden.has(path)) return [change]
      if (outcome === "done") this.#prepare(change)
      return []
    }
    if (this.#hidden.has(path)) {
      const node = outcome === "done" ? this.#remove(path) : this.#at(path)
      if (!this.#hidden.has(to)) return this.#made(change, to, node ?? moved(operation))
      if (outcome === "done") this.#set(to, node ?? moved(operation))
      return []
    }
    if (!this.#hidden.has(to)) return [change]
    if (outcome === "done") this.#set(to, moved(operation))
    const { bytes: _, to: __, ...rest } = change
    return [{ ...rest, kind: "FileDelete" }]
  }

  #prepare({ bytes, kind, path, version }: Change): void {
    if (kind === "FileDelete") this.#remove(path)
    else if (isMaking(kind)) this.#set(path, prepared(kind, { bytes, version }))
  }

  #made({ answered, at, correlationId, fault, message, outcome, position }: Change, to: FsPath.FsPath, top: Prepared) {
    const out: Array<Change> = []
    const pending: Array<readonly [path: FsPath.FsPath, node: Prepared]> = [[to, top]]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const [path, { bytes, entries, kind, version }] = next
      out.push({
        position,
        ...(answered === undefined ? {} : { answered }),
        at,
        correlationId,
        kind,
        path,
        outcome,
        ...(fault === undefined ? {} : { fault }),
        ...(message === undefined ? {} : { message }),
        ...(bytes === undefined ? {} : { bytes }),
        ...(version === undefined ? {} : { version })
      })
      for (const [name, node] of [...entries].reverse()) pending.push([FsPath.join(path, name), node])
    }
    return out
  }

  #at(path: FsPath.FsPath): Prepared | undefined {
    let node: Prepared | undefined = this.#top
    for (const name of FsPath.segments(path)) node = node?.entries.get(name)
    return node
  }

  #set(path: FsPath.FsPath, node: Prepared): void {
    const names = [...FsPath.segments(path)]
    const last = names.pop()!
    let here = this.#top
    for (const name of names) {
      const next = here.entries.get(name) ?? prepared("FileMakeDirectory")
      here.entries.set(name, next)
      here = next
    }
    here.entries.set(last, node)
  }

  #remove(path: FsPath.FsPath): Prepared | undefined {
    const node = this.#at(path)
    this.#at(FsPath.parent(path))?.entries.delete(FsPath.name(path))
    return node
  }
}
