import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layer } from "../../src/filesystem/Filesystem.ts"
import type * as Journal from "../../src/journal/Journal.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { host as windowsHost } from "../backends/windows/windowsHost.ts"
import { asked, freshDirectory, journaled, plain } from "./leafBench.ts"
import { casedNames, intents, type Made, plainNames, threshold } from "./leafIntents.ts"

const settings = { streamingThreshold: threshold, chunkSize: 64 }

type ALeaf = () => Layer.Layer<never, unknown, Journal.Journal>

const kinds = (extended: boolean) =>
  ({
    mock: () => Leaf.mockFS(settings, { extended }),
    posix: () => Leaf.posixFS({ ...settings, rootPath: freshDirectory() }, { extended }),
    // The rules of Windows on a case-insensitive memory.
    windows: () => Leaf.mockFS({ ...settings, caseInsensitive: true }, { names: "windows", extended }),
    // A simulated disk of Windows.
    disk: () =>
      Layer.unwrap(
        Effect.map(windowsHost(), ({ port }) =>
          Layer.provide(Leaf.layer({ ...settings, names: "windows", extended }), layer(Effect.succeed(port)))
        )
      )
  }) satisfies Record<string, ALeaf>

/** The fields that differ between two disks or two moments. */
const without = ["modified", "created", "permissions", "stat", "error"]

const idOf = (index: number): string => `i${index}`

/** Returns the answers of the leaf, request by request. */
const story = (leaf: Layer.Layer<never, unknown, Journal.Journal>, program: ReadonlyArray<Made>) =>
  journaled(
    Effect.scoped(
      Effect.provide(
        Effect.gen(function* () {
          const { append, told } = yield* asked
          for (const [index, made] of program.entries()) {
            for (const intent of made(idOf(index))) yield* append(intent)
          }
          return (yield* told(program.map((_, index) => idOf(index)))).map((all) =>
            all.filter(({ _tag }) => _tag !== "FileStarted").map((answer) => plain(answer, without))
          )
        }),
        leaf
      )
    )
  ).pipe(Effect.orDie)

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"

describe("the same requests", () => {
  for (const extended of [false, true]) {
    const { disk, mock, posix, windows } = kinds(extended)
    it.effect.prop(
      `get the same answers in memory, on a host, and under the rules of Windows (extended: ${extended})`,
      [intents(plainNames, { extended, length: 40 })],
      ([program]) =>
        Effect.gen(function* () {
          const first = yield* story(mock(), program)
          for (const leaf of [posix, windows, disk]) assert.deepStrictEqual(yield* story(leaf(), program), first)
        }),
      { arbitrary: { runs: soak ? 400 : 10 } }
    )
    it.effect.prop(
      `get the same answers from all leaves with the same case rule (extended: ${extended})`,
      [intents(casedNames, { extended, length: 40 })],
      ([program]) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* story(posix(), program), yield* story(mock(), program))
          assert.deepStrictEqual(yield* story(disk(), program), yield* story(windows(), program))
        }),
      { arbitrary: { runs: soak ? 400 : 6 } }
    )
  }

  it.effect("get different answers for names in another case if one leaf is case-insensitive and the other is not", () =>
    Effect.gen(function* () {
      const { mock, windows } = kinds(false)
      const write =
        (path: string): Made =>
        (correlationId) => [new Entry.FileWrite({ correlationId, path, content: new Uint8Array(1), createMode: "create" })]
      const program = [write("a"), write("A")]
      const tags = (told: ReadonlyArray<ReadonlyArray<unknown>>) =>
        told.map(([answer]) => (answer as { readonly _tag: string })._tag)
      assert.deepStrictEqual(tags(yield* story(mock(), program)), ["FileWritten", "FileWritten"])
      assert.deepStrictEqual(tags(yield* story(windows(), program)), ["FileWritten", "FileFault"])
    })
  )
})
