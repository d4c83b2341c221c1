import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { isBytes } from "../model/realms.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Fault } from "../model/FsError.ts"
import * as Limits from "../model/Limits.ts"
import { equal, fails, has } from "./expect.ts"
import { type Faulty, faulty, type Planned } from "./Faults.ts"
import { capture, type Files, type Picture, picture, plant } from "./Files.ts"
import { type Ability, Bench, type Kind, type Law, make, noted } from "./Law.ts"

/** Creates the tree in the filesystem under test, or through `Bench.writable` if the bench has this filesystem. */
export const plantFiles = (fs: Algebra, files: Files): Effect.Effect<void, Fault> =>
  Effect.flatMap(Bench, (bench) => plant((bench.writable ?? fs).port, files))

/** Returns a tree that contains the given tree twice, in the directories `fast` and `slow`. */
export const onBothSides = (tree: Files): Files =>
  Object.fromEntries(
    Object.entries(tree).flatMap(([path, entry]) => [
      [`fast/${path}`, entry],
      [`slow/${path}`, entry]
    ])
  )

const below = (path: string, all: Picture): Picture =>
  Object.fromEntries(
    Object.entries(all)
      .filter(([key]) => key === path || key.startsWith(`${path}/`))
      .map(([key, value]) => [key.slice(path.length), value])
  )

/** Checks that the directories `fast` and `slow` have the same content. `what` names the content in the failure. */
export const expectSameSides = (fs: Algebra, what?: string): Effect.Effect<void, unknown> =>
  Effect.flatMap(capture(fs.port), (all) => equal(below("fast", all), below("slow", all), what))

export const expectTree = (fs: Algebra, files: Files): Effect.Effect<void, unknown> =>
  Effect.flatMap(capture(fs.port), (found) => equal(found, picture(files), "the tree afterwards"))

/**
 * Returns the filesystem with planned faults at its port. The calls of this filesystem appear in the message of a
 * broken law.
 */
export const withFaults = (fs: Algebra, ...plan: ReadonlyArray<Planned>): Effect.Effect<Faulty> =>
  Effect.map(Bench, ({ derive }) => noted(fs, faulty(plan, { derive })(fs)))

export const withLimits =
  (limits: Partial<Limits.LimitsShape>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, Limits.Limits, { ...Limits.standard, ...limits })

type Tagged = { readonly _tag: string }

/** Functions that return laws. Each law creates its tree before it makes its call. */
export interface LawForms {
  readonly law: (name: string, body: (fs: Algebra) => Effect.fn.Return<void, unknown, Scope.Scope>) => Law
  /** Returns a law that requires the call to return the value. If the value is a record, only the given fields are compared. */
  readonly answers: <A, E>(
    name: string,
    call: (fs: Algebra) => Effect.Effect<A, E>,
    expected: A extends ReadonlyArray<unknown> | string | boolean | number ? A : { readonly [K in keyof A]?: A[K] | undefined }
  ) => Law
  /** Returns a law that requires the call to fail with an error of the tag and to change nothing. */
  readonly refuses: <A, E extends Tagged, const Tag extends E["_tag"]>(
    name: string,
    call: (fs: Algebra) => Effect.Effect<A, E>,
    tag: Tag | ReadonlyArray<Tag>,
    fields?: { readonly [field: string]: unknown }
  ) => Law
  /** Returns a law that requires the call to succeed and to leave the given tree. */
  readonly changes: <A, E>(
    name: string,
    call: (fs: Algebra) => Effect.Effect<A, E>,
    after: Files,
    expected?: { readonly [K in keyof A]?: A[K] | undefined }
  ) => Law
}

export const lawForms =
  (kind: Kind, ...needs: ReadonlyArray<Ability>) =>
  (ref: string, files: Files | ((fs: Algebra) => Files) = {}): LawForms => {
    const treeOf = (fs: Algebra): Files => (typeof files === "function" ? files(fs) : files)
    const law: LawForms["law"] = (name, body) =>
      make({ name, ref, kind, needs }, function* (fs) {
        yield* plantFiles(fs, treeOf(fs))
        yield* Effect.gen(() => body(fs))
      })
    return {
      law,
      answers: (name, call, expected) =>
        law(name, function* (fs) {
          const actual: unknown = yield* call(fs)
          const expectedValue: unknown = expected
          yield* isRecord(actual) && isRecord(expectedValue) ? has(actual, expectedValue) : equal(actual, expectedValue)
        }),
      refuses: (name, call, tag, fields) =>
        law(name, function* (fs) {
          yield* fails(call(fs), tag, fields)
          yield* expectTree(fs, treeOf(fs))
        }),
      changes: (name, call, after, expected) =>
        law(name, function* (fs) {
          const actual: unknown = yield* call(fs)
          if (expected !== undefined) yield* has(actual as object, expected)
          yield* expectTree(fs, after)
        })
    }
  }

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isBytes(value)
