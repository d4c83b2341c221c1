/** Laws that an accelerated change has the same result, fault and tree as the same change without acceleration. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Algebra, type Edit, make } from "../../filesystem/Filesystem.ts"
import type { WriteMode } from "../../model/Entry.ts"
import { portable } from "../../port/Backend.ts"
import { performing, type Tag } from "../../port/Request.ts"
import { plantFiles, lawForms } from "../chapter.ts"
import { equal } from "../expect.ts"
import { capture, directory, type Files, type Picture } from "../Files.ts"
import type { Law } from "../Law.ts"
import { encodeUtf8 } from "../operations.ts"

const { law } = lawForms({ kind: "acceleration", needs: ["accelerations", "write", "delete"] })

const files: Files = {
  "text.txt": "one\r\ntwo\nthree two",
  "binary.bin": Uint8Array.of(0, 255, 1),
  empty: "",
  "d/e/f": "deep",
  "d/none": directory,
  none: directory
}

const paths = ["text.txt", "binary.bin", "empty", "d", "none", "d/e/f", "d/e/new", "far/away/new", "text.txt/below", "missing"]

type Outcome = Effect.Effect<unknown, { readonly _tag: string }>

type Call = (fs: Algebra, base: string) => Outcome

const onBothSides = (tree: Files): Files =>
  Object.fromEntries(
    Object.entries(tree).flatMap(([path, entry]) => [
      [`fast/${path}`, entry],
      [`slow/${path}`, entry]
    ])
  )

const below = (base: string, all: Picture): Picture =>
  Object.fromEntries(
    Object.entries(all).flatMap(([path, entry]) => (path.startsWith(`${base}/`) ? [[path.slice(base.length), entry]] : []))
  )

const outcome = (call: Outcome, base: string): Effect.Effect<string> =>
  Effect.match(call, {
    onSuccess: (value) => JSON.stringify(value ?? null).replaceAll(`${base}/`, ""),
    onFailure: (error) => `failed ${JSON.stringify(error)}`.replaceAll(`${base}/`, "")
  })

/** The number of calls between two comparisons of the whole tree. The tree keeps its state from call to call. */
const callsPerComparison = 10

const sameResultLaw = (tag: Tag, what: string, calls: () => ReadonlyArray<readonly [what: string, call: Call]>): Law =>
  law(`${what} comes to the same in one step and step by step`, "architecture: accelerations", function* (fs) {
    if (performing(fs.port, tag) === undefined) return
    const slow = make(portable(fs.port))
    yield* plantFiles(fs, onBothSides(files))
    const all = calls()
    for (const [index, [what, call]] of all.entries()) {
      yield* equal(yield* outcome(call(fs, "fast"), "fast"), yield* outcome(call(slow, "slow"), "slow"), what)
      if (index % callsPerComparison > 0 && index < all.length - 1) continue
      const treeNow = yield* capture(fs.port)
      yield* equal(below("fast", treeNow), below("slow", treeNow), `the tree after ${what}`)
    }
  })

const modes: ReadonlyArray<WriteMode> = ["create", "overwrite", "append", "replace", "appendExisting"]

const versionOf = (fs: Algebra, path: string): Effect.Effect<string> => Effect.orElseSucceed(fs.version(path), () => "none")

const conditions: ReadonlyArray<
  readonly [what: string, of: (fs: Algebra, path: string) => Effect.Effect<string | null | undefined>]
> = [
  ["", () => Effect.succeed(undefined)],
  [" if there is none", () => Effect.succeed(null)],
  [" if it is another", () => Effect.succeed("0".repeat(64))],
  [" if it is what it is", versionOf]
]

const writes = (mode: WriteMode, put: (fs: Algebra, path: string, content: string) => WriteCall) =>
  paths.flatMap((path) =>
    (mode === "create" ? conditions.slice(0, 1) : conditions).flatMap(([when, of]) =>
      [false, true].map((createParents) => {
        const content = `${mode} ${createParents}`
        const call: Call = (fs, base) =>
          Effect.flatMap(of(fs, `${base}/${path}`), (ifMatch) =>
            put(
              fs,
              `${base}/${path}`,
              content
            )({ mode, createParents, version: createParents, ...(ifMatch !== undefined && { ifMatch }) })
          )
        return [`${content} to ${path}${when}`, call] as const
      })
    )
  )

type WriteCall = (options: NonNullable<Parameters<Algebra["write"]>[2]>) => Outcome

const edits: ReadonlyArray<readonly [what: string, edits: ReadonlyArray<Edit>]> = [
  ["one that fits", [{ oldText: "one", newText: "1" }]],
  ["one that fits twice", [{ oldText: "two", newText: "2" }]],
  ["all that fit", [{ oldText: "two", newText: "2", match: "all" }]],
  [
    "two",
    [
      { oldText: "three", newText: "3" },
      { oldText: "deep", newText: "shallow" }
    ]
  ],
  ["one that does not fit", [{ oldText: "nowhere", newText: "" }]]
]

const editCalls: ReadonlyArray<readonly [string, Call]> = paths.flatMap((path) =>
  edits.flatMap(([which, all]) =>
    conditions.map(([when, of], index) => {
      const version = index % 2 === 0
      const call: Call = (fs, base) =>
        Effect.flatMap(of(fs, `${base}/${path}`), (ifMatch) =>
          fs.edit(`${base}/${path}`, all, { version, ...(ifMatch !== undefined && { ifMatch }) })
        )
      return [`an edit of ${path}, ${which}${when}`, call] as const
    })
  )
)

const deleteCalls: ReadonlyArray<readonly [string, Call]> = ["ignore", "fail"].flatMap((missing) =>
  [false, true].flatMap((recursive) =>
    [...conditions].reverse().flatMap(([when, of]) =>
      [...paths, "missing/below"].map((path) => {
        const call: Call = (fs, base) =>
          Effect.flatMap(of(fs, `${base}/${path}`), (ifMatch) =>
            fs.delete(`${base}/${path}`, {
              recursive,
              missing: missing as "ignore" | "fail",
              ...(ifMatch !== undefined && { ifMatch })
            })
          )
        return [`deleting ${path}${when}, missing: ${missing}, recursive: ${recursive}`, call] as const
      })
    )
  )
)

const mkdirCalls: ReadonlyArray<readonly [string, Call]> = [false, true].flatMap((parents) =>
  [false, true].flatMap((existOk) =>
    [...paths, "empty/below", "."].map((path) => {
      const call: Call = (fs, base) => fs.mkdir(`${base}/${path}`, { parents, existOk })
      return [`making ${path}, parents: ${parents}, existOk: ${existOk}`, call] as const
    })
  )
)

const moveCalls: ReadonlyArray<readonly [string, Call]> = [false, true].flatMap((overwrite) =>
  [...paths].reverse().flatMap((from) =>
    [...paths, "d/e/f/below", "none/here"].map((to) => {
      const call: Call = (fs, base) => fs.move(`${base}/${from}`, `${base}/${to}`, { overwrite })
      return [`moving ${from} to ${to}, overwrite: ${overwrite}`, call] as const
    })
  )
)

export const wholeChangeLaws: ReadonlyArray<Law> = [
  ...modes.flatMap((mode) => [
    sameResultLaw("Write", `a write in mode ${mode}`, () =>
      writes(mode, (fs, path, content) => (options) => fs.write(path, content, options))
    ),
    sameResultLaw("Write", `a sink in mode ${mode}`, () =>
      writes(mode, (fs, path, content) => (options) => Stream.run(Stream.make(encodeUtf8(content)), fs.sink(path, options)))
    )
  ]),
  sameResultLaw("Edit", "an edit", () => editCalls),
  sameResultLaw("Remove", "a delete", () => deleteCalls),
  sameResultLaw("MakeDirectory", "a mkdir", () => mkdirCalls),
  sameResultLaw("Move", "a move", () => moveCalls)
]
