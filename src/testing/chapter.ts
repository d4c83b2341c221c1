/** The four forms that laws take. Most are a row: a tree, a call, and what must come of it; the rest are small programs. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { isBytes } from "../model/bytes.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Fault } from "../model/FsError.ts"
import * as Limits from "../model/Limits.ts"
import { equal, fails, has } from "./expect.ts"
import { type Faulty, faulty, type Planned } from "./Faults.ts"
import { capture, type Files, picture, plant } from "./Files.ts"
import { type Ability, Bench, type Kind, type Law, make, noted } from "./Law.ts"

/** Puts the tree there, whatever the filesystem under test permits. */
export const arrange = (fs: Algebra, files: Files): Effect.Effect<void, Fault> =>
  Effect.flatMap(Bench, (bench) => plant((bench.writable ?? fs).port, files))

/** Expects the whole tree to be this. */
export const leaves = (fs: Algebra, files: Files): Effect.Effect<void, unknown> =>
  Effect.flatMap(capture(fs.port), (found) => equal(found, picture(files), "the tree afterwards"))

/** The filesystem with planned faults at its port. */
export const failing = (fs: Algebra, ...plan: ReadonlyArray<Planned>): Effect.Effect<Faulty> =>
  Effect.map(Bench, ({ derive }) => noted(fs, faulty(plan, { derive })(fs)))

/** Runs with some limits other than the standard ones. */
export const limited =
  (limits: Partial<Limits.LimitsShape>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, Limits.Limits, { ...Limits.standard, ...limits })

type Tagged = { readonly _tag: string }

/** What the rows of one chapter have in common. */
export interface Chapter {
  /** A program. */
  readonly law: (name: string, ref: string, body: (fs: Algebra) => Effect.fn.Return<void, unknown, Scope.Scope>) => Law
  /** The call answers the value; of a record, the fields that are given. */
  readonly answers: <A, E>(
    name: string,
    ref: string,
    files: Files,
    call: (fs: Algebra) => Effect.Effect<A, E>,
    expected: A extends ReadonlyArray<unknown> | string | boolean | number ? A : { readonly [K in keyof A]?: A[K] | undefined }
  ) => Law
  /** The call fails with the tag, and has changed nothing. */
  readonly refuses: <A, E extends Tagged, const Tag extends E["_tag"]>(
    name: string,
    ref: string,
    files: Files,
    call: (fs: Algebra) => Effect.Effect<A, E>,
    tag: Tag | ReadonlyArray<Tag>,
    fields?: { readonly [field: string]: unknown }
  ) => Law
  /** The call succeeds, and the whole tree is then this. */
  readonly changes: <A, E>(
    name: string,
    ref: string,
    before: Files,
    call: (fs: Algebra) => Effect.Effect<A, E>,
    after: Files,
    expected?: { readonly [K in keyof A]?: A[K] | undefined }
  ) => Law
}

export const chapter = (common: { readonly kind: Kind; readonly needs?: ReadonlyArray<Ability> }): Chapter => {
  const law: Chapter["law"] = (name, ref, body) => make({ name, ref, kind: common.kind, needs: common.needs ?? [] }, body)
  return {
    law,
    answers: (name, ref, files, call, expected) =>
      law(name, ref, function* (fs) {
        yield* arrange(fs, files)
        const actual: unknown = yield* call(fs)
        const wanted: unknown = expected
        yield* isRecord(actual) && isRecord(wanted) ? has(actual, wanted) : equal(actual, wanted)
      }),
    refuses: (name, ref, files, call, tag, fields) =>
      law(name, ref, function* (fs) {
        yield* arrange(fs, files)
        yield* fails(call(fs), tag, fields)
        yield* leaves(fs, files)
      }),
    changes: (name, ref, before, call, after, expected) =>
      law(name, ref, function* (fs) {
        yield* arrange(fs, before)
        const actual: unknown = yield* call(fs)
        if (expected !== undefined) yield* has(actual as object, expected)
        yield* leaves(fs, after)
      })
  }
}

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isBytes(value)
