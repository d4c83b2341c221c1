/**
 * A law is a value: a name, the statement it stands for, and a program that fails where a filesystem breaks it. Values can be listed,
 * filtered, run against a broken filesystem to see that they bite, and run under any test runner or none.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { Backend } from "../port/Backend.ts"
import { Broken, show } from "./expect.ts"

/**
 * What a filesystem can do, or is like, beyond what all can. Each comes with its opposite where that has laws of its own.
 *
 * @since 0.1.0
 */
export type Ability =
  | "write"
  | "delete"
  | "links"
  | "no links"
  | "attributes"
  | "no attributes"
  | "times to the millisecond"
  | "watch"
  | "no watch"
  | "locks"
  | "accelerations"
  | "case sensitive"
  | "case insensitive"
  | "names ending in dots or spaces"
  | "no names ending in dots or spaces"
  | "directories outlive their content"
  | "directories go with their content"
  | "a place on a machine"
  | "others"
  | "unaddressable names"

/**
 * `port`: what the seven primitives promise. `service`: what the calls mean. `ability`: the same, of what not every backend has.
 * `acceleration`: that the fast way answers what the derived one does.
 *
 * @since 0.1.0
 */
export type Kind = "port" | "service" | "ability" | "acceleration"

/**
 * A statement that every filesystem with the abilities that it needs must keep.
 *
 * @since 0.1.0
 */
export interface Law {
  /** Unique. */
  readonly name: string
  /** The decision, or the part of the contract, that it stands for. */
  readonly ref: string
  readonly kind: Kind
  readonly needs: ReadonlyArray<Ability>
  /** Expects a filesystem that is empty and nobody else's. */
  readonly check: Effect.Effect<void, LawBroken, Filesystem>
}

/**
 * What was expected, what there was instead, and the calls that led there.
 *
 * @since 0.1.0
 */
export class LawBroken extends Data.TaggedError("LawBroken")<{
  readonly law: string
  readonly ref: string
  readonly expected: string
  readonly actual: string
  /** Of the law, in order, as they were written. */
  readonly calls: ReadonlyArray<string>
}> {
  override get message(): string {
    const calls = this.calls.length === 0 ? "no call" : this.calls.slice(-12).join("\n            ")
    return `${this.law} (${this.ref})\n  expected: ${this.expected}\n  actual:   ${this.actual}\n  calls:    ${calls}`
  }
}

/**
 * What a law cannot do through the filesystem under test. Provide it beside the filesystem.
 *
 * @since 0.1.0
 */
export interface Bench {
  /** Where a tree is planted, when the filesystem under test refuses writes. */
  readonly writable?: Algebra | undefined
  /** What makes a filesystem of a port, where it is not `Filesystem.make`. */
  readonly derive?: ((port: Backend) => Algebra) | undefined
  /** Puts a FIFO, a socket or a device at the path. */
  readonly makeOther?: ((path: string) => Effect.Effect<void>) | undefined
  /** Puts a file with a name that no path can express into the root. */
  readonly makeUnaddressable?: Effect.Effect<void> | undefined
  /** It tells times of modification to the millisecond, and can set them only to the second. @default false */
  readonly wholeSeconds?: boolean | undefined
  /** It takes no name that ends in a dot or a space, as Windows does not. @default false */
  readonly plainEnds?: boolean | undefined
  /** A directory that a removal or a move leaves empty goes, as VfsState has it. @default false */
  readonly prunes?: boolean | undefined
}

/** @since 0.1.0 */
export const Bench: Context.Reference<Bench> = Context.Reference<Bench>("fs-algebra/testing/Bench", {
  defaultValue: () => ({})
})

/**
 * What this filesystem can do.
 *
 * @since 0.1.0
 */
export const abilities = (fs: Algebra, bench: Bench): ReadonlySet<Ability> => {
  const { accelerations, attributes, info, links, locks, rules, watch } = fs.port
  const permits = (action: "write" | "delete"): boolean => !info.readOnly && rules?.permits?.(action) !== false
  const found: ReadonlyArray<readonly [boolean, Ability, Ability?]> = [
    [permits("write"), "write"],
    [permits("delete"), "delete"],
    [links !== undefined, "links", "no links"],
    [attributes !== undefined, "attributes", "no attributes"],
    [attributes !== undefined && bench.wholeSeconds !== true, "times to the millisecond"],
    [watch !== undefined, "watch", "no watch"],
    [locks !== undefined, "locks"],
    [accelerations !== undefined, "accelerations"],
    [info.caseSensitive, "case sensitive", "case insensitive"],
    [bench.plainEnds !== true, "names ending in dots or spaces", "no names ending in dots or spaces"],
    [bench.prunes !== true, "directories outlive their content", "directories go with their content"],
    [info.root.length > 2, "a place on a machine"],
    [bench.makeOther !== undefined, "others"],
    [bench.makeUnaddressable !== undefined, "unaddressable names"]
  ]
  return new Set(found.flatMap(([has, ability, opposite]) => (has ? [ability] : opposite === undefined ? [] : [opposite])))
}

/**
 * How a law stands to a filesystem.
 *
 * @since 0.1.0
 */
export type Verdict =
  | { readonly _tag: "Held" }
  | { readonly _tag: "NotApplicable"; readonly missing: ReadonlyArray<Ability> }
  | { readonly _tag: "Broken"; readonly error: LawBroken }

/**
 * Runs the law on the filesystem, which must be empty, unless it needs an ability that there is not.
 *
 * @since 0.1.0
 */
export const verdict = (law: Law): Effect.Effect<Verdict, never, Filesystem> =>
  Effect.gen(function* () {
    const able = abilities(yield* Filesystem, yield* Bench)
    const missing = law.needs.filter((ability) => !able.has(ability))
    if (missing.length > 0) return { _tag: "NotApplicable", missing }
    return yield* Effect.match(law.check, {
      onFailure: (error): Verdict => ({ _tag: "Broken", error }),
      onSuccess: (): Verdict => ({ _tag: "Held" })
    })
  })

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** The same functions, each noting in `calls` what it was called with. */
const noting = <Self extends object>(self: Self, calls: Array<string>, prefix = ""): Self => {
  const out: Record<string, unknown> = { ...(self as object) }
  for (const [name, value] of Object.entries(self)) {
    if (typeof value === "function") {
      out[name] = (...args: ReadonlyArray<unknown>): unknown => {
        calls.push(`${prefix}${name}(${args.map(show).join(", ")})`)
        return value(...args)
      }
    } else if (prefix !== "" && name !== "info" && isPlain(value)) out[name] = noting(value, calls, `${prefix}${name}.`)
  }
  return out as Self
}

const broken = (law: string, ref: string, calls: ReadonlyArray<string>, cause: Cause.Cause<unknown>): LawBroken => {
  const error = Cause.squash(cause)
  return error instanceof Broken
    ? new LawBroken({ law, ref, calls, expected: error.expected, actual: error.actual })
    : new LawBroken({ law, ref, calls, expected: Cause.isTimeoutError(error) ? "an end" : "success", actual: show(error) })
}

const ports = new WeakMap<Backend, Backend>()

/**
 * The port itself, where a look at it is not one of the law's calls.
 *
 * @since 0.1.0
 */
export const unnoted = (port: Backend): Backend => ports.get(port) ?? port

const notes = new WeakMap<Algebra, Array<string>>()

/**
 * Another filesystem made out of a law's own, its calls noted with the others.
 *
 * @since 0.1.0
 */
export const noted = <Self extends Algebra>(of: Algebra, self: Self): Self => noting(self, notes.get(of) ?? [])

/**
 * How long a law may take before it counts as broken. @default 30 seconds
 *
 * @since 0.1.0
 */
export const Patience: Context.Reference<Duration.Input> = Context.Reference<Duration.Input>("fs-algebra/testing/Patience", {
  defaultValue: () => "30 seconds"
})

/**
 * A law out of a program that looks at a filesystem, and at its port. Whatever it fails or dies with breaks the law, and so does not
 * ending.
 *
 * @since 0.1.0
 */
export const make = (
  head: Pick<Law, "name" | "ref" | "kind" | "needs">,
  body: (fs: Algebra, port: Backend) => Effect.fn.Return<void, unknown, Scope.Scope>
): Law => ({
  ...head,
  check: Effect.flatMap(Effect.all([Filesystem, Patience]), ([self, patience]) => {
    const calls: Array<string> = []
    const fs = noting(self, calls)
    const port = noting(self.port, calls, "port.")
    notes.set(fs, calls)
    ports.set(port, self.port)
    return Effect.catchCause(
      Effect.timeout(Effect.scoped(Effect.gen(() => body(fs, port))), patience),
      (cause): Effect.Effect<never, LawBroken> =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(broken(head.name, head.ref, calls, cause))
    )
  })
})
