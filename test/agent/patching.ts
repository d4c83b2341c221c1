/** Applies patches with the tool and returns the resulting tree. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { applyPatch } from "../../src/agent/tools/applyPatch.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { agent } from "../../src/model/Limits.ts"
import { capture, type Files, type Picture, picture } from "../../src/testing/Files.ts"
import { type Ground, memory } from "./changing.ts"

export interface Result {
  readonly success: boolean
  readonly message: string
  readonly value?: { readonly files: ReadonlyArray<Record<string, unknown>> }
}

export const patchOn = (fs: Algebra, patch: unknown, seen = Memory.make(), limits = agent): Effect.Effect<Result> =>
  invokeUnknown(applyPatch, { patch }, { memory: seen }).pipe(
    Effect.provideService(Filesystem, fs),
    Effect.provideService(ToolSettings, { ...defaults, limits })
  ) as unknown as Effect.Effect<Result>

export interface Patched extends Result {
  readonly becomes: Picture
}

export const patched = (files: Files, patch: string, ground: Ground = memory, limits = agent): Effect.Effect<Patched> =>
  Effect.gen(function* () {
    const fs = yield* ground(files)
    const result = yield* patchOn(fs, patch, Memory.make(), limits)
    return { ...result, becomes: yield* capture(fs.port) }
  }).pipe(Effect.scoped, Effect.orDie)

export const isApplied = (files: Files, patch: string, becomes: Files): Effect.Effect<void> =>
  Effect.map(patched(files, patch), (result) => {
    assert.isTrue(result.success, result.message)
    assert.deepStrictEqual(result.becomes, picture(becomes))
  })

export const isRefused = (files: Files, patch: string, message: RegExp): Effect.Effect<void> =>
  Effect.map(patched(files, patch), (result) => {
    assert.isFalse(result.success)
    assert.match(result.message, message)
    assert.deepStrictEqual(result.becomes, picture(files))
  })

/** Builds a patch in the V4A format. */
export const v4a = (...lines: ReadonlyArray<string>): string => ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n")

/** Returns a generator of pseudo-random numbers, the same in every run. */
export const randomOf = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >> 8) % below
  }
}
