/** Helpers for the tests of the reading tools: calls, and messages parsed as a model would. */
import * as Effect from "effect/Effect"
import type { AnyDefinition, Image } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { defaults, ToolSettings, type ToolSettingsShape } from "../../src/agent/ToolSettings.ts"
import type * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- each tool has its own
export type Result = ToolResult<any>

export const memory = Memory.make

export const call = (
  definition: AnyDefinition,
  input: unknown,
  session: Memory.Memory = Memory.make()
): Effect.Effect<Result, never, Filesystem.Filesystem> =>
  invokeUnknown(definition, input, { memory: session }) as Effect.Effect<Result, never, Filesystem.Filesystem>

export const withTree = (tree: InMemory.Tree) => Effect.provide(InMemory.layer({ tree }))

export const withSettings = (settings: Partial<ToolSettingsShape>) =>
  Effect.provideService(ToolSettings, { ...defaults, ...settings })

/** Calls the tool on a new tree and returns only the message. */
export const message = (definition: AnyDefinition, input: unknown, tree: InMemory.Tree): Effect.Effect<string> =>
  call(definition, input).pipe(
    Effect.map((result) => result.message),
    withTree(tree),
    Effect.orDie
  )

export const imagesOf = (definition: AnyDefinition, result: Result): ReadonlyArray<Image> =>
  definition.images?.(result.value) ?? []

/**
 * Splits a text into lines as C-10 defines them: a line ends at LF or CRLF, and a final terminator starts no new line.
 */
export const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split(/\r?\n/)
  return lines[lines.length - 1] === "" ? lines.slice(0, -1) : lines
}

/** Returns the value of `word=` in the last line of a message. */
export const hint = (message: string, word: string): string | undefined => {
  const found = new RegExp(`continue with .*?\\b${word}=("(?:[^"\\\\]|\\\\.)*"|\\d+)`).exec(
    message.slice(message.lastIndexOf("\n") + 1)
  )
  return found?.[1] === undefined ? undefined : (JSON.parse(found[1]) as string | number).toString()
}
