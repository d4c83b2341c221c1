/** Random requests on a few paths, so that requests interfere with each other. */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import { bytes, many } from "./leafBench.ts"

const below = (count: number): Arbitrary.Arbitrary<number> =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: count - 1 })))

const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(below(values.length), (i) => values[i]!)

const among = <A>(choices: ReadonlyArray<Arbitrary.Arbitrary<A>>): Arbitrary.Arbitrary<A> =>
  Arbitrary.flatMap(oneOf(choices), (choice) => choice)

export interface Names {
  readonly names: ReadonlyArray<string>
  /** Whole paths, some of them invalid. */
  readonly odd: ReadonlyArray<string>
}

/** Names that differ on every disk. */
export const plainNames: Names = { names: ["a", "b", "c"], odd: ["/", "a/../b", "a//b", "./a", "b/", "..", "a\u0001"] }

/** Names that may differ only in case. */
export const casedNames: Names = { names: ["a", "A", "b", "B"], odd: plainNames.odd }

/** The streaming threshold of the leaves that serve these requests, in bytes. */
export const threshold = 200

const content = Arbitrary.map(oneOf([0, 1, 5, 199, 200, 201, 700, 5_000]), (size) => many(size, size))

/** A function that makes the entries of a request for an id. A write in parts has several entries. */
export type Made = (correlationId: string) => ReadonlyArray<Entry.Efferent>

const parts =
  (path: string, content: Uint8Array, size: number, createMode: Entry.CreateMode): Made =>
  (correlationId) => {
    const out: Array<Entry.FileWriteChunk> = []
    for (let offset = 0; offset === 0 || offset < content.length; offset += size) {
      const data = content.slice(offset, offset + size)
      const isFinal = offset + size >= content.length
      out.push(
        new Entry.FileWriteChunk({
          correlationId,
          offset,
          data,
          isFinal,
          ...(offset === 0 ? { path, createMode } : {})
        })
      )
    }
    return out
  }

export const intents = ({ names, odd }: Names, options: { readonly extended: boolean; readonly length: number }) => {
  const path = among([
    Arbitrary.map(Arbitrary.array(oneOf(names), { minLength: 1, maxLength: 3 }), (all) => all.join("/")),
    Arbitrary.map(Arbitrary.array(oneOf(names), { minLength: 1, maxLength: 2 }), (all) => `/${all.join("/")}`),
    Arbitrary.map(Arbitrary.array(oneOf(names), { minLength: 1, maxLength: 1 }), (all) => all.join("/")),
    oneOf(odd)
  ])
  const mode = oneOf(Object.values(Entry.CreateMode))
  const flag = oneOf([undefined, false, true])
  const some = <Key extends string, A>(key: Key, value: A | undefined): { [K in Key]?: A } =>
    (value === undefined ? {} : { [key]: value }) as { [K in Key]?: A }
  const write = Arbitrary.map(Arbitrary.all([path, content, mode]), ([path, content, createMode]): Made => (correlationId) => [
    new Entry.FileWrite({ correlationId, path, content, createMode })
  ])
  const thirteen: ReadonlyArray<Arbitrary.Arbitrary<Made>> = [
    write,
    write,
    Arbitrary.map(
      Arbitrary.all([path, oneOf([undefined, 0, 3, 100, 900]), oneOf([undefined, 0, 4, 200, 201])]),
      ([path, offset, length]): Made =>
        (correlationId) => [new Entry.FileRead({ correlationId, path, ...some("offset", offset), ...some("length", length) })]
    ),
    Arbitrary.map(Arbitrary.all([path, content, oneOf([1_000, 64, 5_000]), mode]), ([path, content, size, mode]) =>
      parts(path, content, size, mode)
    ),
    Arbitrary.map(
      Arbitrary.all([path, flag, oneOf([undefined, "*", "a", "b/*", "**/c", "["])]),
      ([path, recursive, pattern]): Made =>
        (correlationId) => [
          new Entry.FileList({ correlationId, path, ...some("recursive", recursive), ...some("pattern", pattern) })
        ]
    ),
    Arbitrary.map(Arbitrary.all([path, flag]), ([path, recursive]): Made => (correlationId) => [
      new Entry.FileDelete({ correlationId, path, ...some("recursive", recursive) })
    ]),
    Arbitrary.map(path, (path): Made => (correlationId) => [new Entry.FileStat({ correlationId, path })])
  ]
  const further: ReadonlyArray<Arbitrary.Arbitrary<Made>> = [
    Arbitrary.map(Arbitrary.all([path, flag, flag]), ([path, parents, existOk]): Made => (correlationId) => [
      new Entry.FileMakeDirectory({ correlationId, path, ...some("parents", parents), ...some("existOk", existOk) })
    ]),
    Arbitrary.map(Arbitrary.all([path, path, flag]), ([path, to, overwrite]): Made => (correlationId) => [
      new Entry.FileMove({ correlationId, path, to, ...some("overwrite", overwrite) })
    ]),
    Arbitrary.map(path, (path): Made => (correlationId) => [
      new Entry.FileEdit({ correlationId, path, edits: [{ oldText: "\u0000", newText: "zero", match: "first" }] })
    ]),
    Arbitrary.map(path, (path): Made => (correlationId) => [
      new Entry.FileWrite({ correlationId, path, content: bytes("x"), createMode: "overwrite", ifMatch: null, version: true })
    ])
  ]
  return Arbitrary.array(among(options.extended ? [...thirteen, ...further] : thirteen), {
    minLength: options.length,
    maxLength: options.length
  })
}
