/**
 * Laws as values. A law has a title, the ids of its rules, and a program that fails if a filesystem breaks the law. Laws can
 * be listed and filtered, and run under any test runner or without a test runner.
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
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { Broken, show } from "./expect.ts"

/**
 * A property of some filesystems. If there are laws for filesystems without the property, its opposite is an ability too.
 *
 * @since 0.1.0
 */
export type Ability =
  | "write"
  | "delete"
  | "links"
  | "no links"
  | "absolute links"
  | "absolute texts"
  | "attributes"
  | "no attributes"
  | "times to the millisecond"
  | "rename"
  | "no rename"
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
 * The subject of a law. `port`: the seven primitive operations. `service`: the calls of the filesystem. `ability`: calls that
 * only some backends support. `acceleration`: calls with the same result with and without an acceleration.
 *
 * @since 0.1.0
 */
export type Kind = "port" | "service" | "ability" | "acceleration"

/**
 * A statement that every filesystem with the needed abilities must satisfy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Law {
  /** The title of the law: a statement about the filesystem. */
  readonly name: string
  /** The ids of the rules that the law checks, separated by commas. The guide `src/guides/laws.md` explains the ids. */
  readonly ref: string
  readonly kind: Kind
  readonly needs: ReadonlyArray<Ability>
  /** The program of the law, which requires an empty filesystem that no other code uses. */
  readonly check: Effect.Effect<void, LawBroken, Filesystem>
}

/**
 * The error of a broken law, with the expected and the actual result, and the calls of the law.
 *
 * @since 0.1.0
 */
export class LawBroken extends Data.TaggedError("LawBroken")<{
  readonly law: string
  readonly ref: string
  readonly expected: string
  readonly actual: string
  /** The law's calls in order, as source text. */
  readonly calls: ReadonlyArray<string>
}> {
  override get message(): string {
    const [operation = "none", ...earlier] = this.calls.slice(-12).reverse()
    const before = earlier.length === 0 ? "" : `\n  after:     ${earlier.reverse().join("\n             ")}`
    return `${this.law} (${this.ref})\n  operation: ${operation}\n  expected:  ${this.expected}\n  actual:    ${this.actual}${before}`
  }
}

/**
 * The support that laws need in addition to the filesystem under test.
 *
 * @since 0.1.0
 */
export interface Bench {
  /** A filesystem to create trees with, if the filesystem under test rejects writes. */
  readonly writable?: Algebra | undefined
  /** The function that makes a filesystem from a port, if it is not `Filesystem.make`. */
  readonly derive?: ((port: Backend) => Algebra) | undefined
  /** Creates a FIFO, a socket or a device at the path. */
  readonly makeOther?: ((path: string) => Effect.Effect<void>) | undefined
  /** Creates a file in the root with a name that no path can express. */
  readonly makeUnaddressable?: Effect.Effect<void> | undefined
  /**
   * True if the filesystem can set modification times only to whole seconds, although it reports milliseconds.
   * @default false
   */
  readonly wholeSeconds?: boolean | undefined
  /** True if names that end in a dot or a space are rejected, as on Windows. @default false */
  readonly plainEnds?: boolean | undefined
  /**
   * True if the filesystem removes a directory that a removal or a move leaves empty, as VfsState does.
   * @default false
   */
  readonly prunes?: boolean | undefined
}

/** @since 0.1.0 */
export const Bench: Context.Reference<Bench> = Context.Reference<Bench>("fs-algebra/testing/Bench", {
  defaultValue: () => ({})
})

/**
 * Returns the root as an absolute link target. The result has slashes, even for a root on a Windows drive.
 *
 * @since 0.1.0
 */
export const absoluteRoot = ({ port }: Algebra): string => {
  const { root } = port.info
  return /^[a-z]:/i.test(root) ? `/${root.replaceAll("\\", "/")}` : root
}

/**
 * Returns the abilities of a filesystem, as its port, its permissions and the bench determine them.
 *
 * @since 0.1.0
 */
export const abilities = (fs: Algebra, bench: Bench): ReadonlySet<Ability> => {
  const { attributes, explore, info, links, locks, perform, rules, watch } = fs.port
  const permits = (action: "write" | "delete"): boolean => !info.readOnly && rules?.permits?.(action) !== false
  const root = absoluteRoot(fs)
  const hasAbsoluteLinks = links?.relative?.("x" as FsPath, root) !== undefined
  const found: ReadonlyArray<readonly [boolean, Ability, Ability?]> = [
    [permits("write"), "write"],
    [permits("delete"), "delete"],
    [links !== undefined, "links", "no links"],
    [hasAbsoluteLinks, "absolute links"],
    [hasAbsoluteLinks && root === info.root, "absolute texts"],
    [attributes !== undefined, "attributes", "no attributes"],
    [attributes !== undefined && bench.wholeSeconds !== true, "times to the millisecond"],
    [info.rename !== "copy", "rename", "no rename"],
    [watch !== undefined, "watch", "no watch"],
    [locks !== undefined, "locks"],
    [perform !== undefined || explore !== undefined, "accelerations"],
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
 * The result of a law on a filesystem.
 *
 * @since 0.1.0
 */
export type Verdict =
  | { readonly _tag: "Held" }
  | { readonly _tag: "NotApplicable"; readonly missing: ReadonlyArray<Ability> }
  | { readonly _tag: "Broken"; readonly error: LawBroken }

/**
 * Runs the law on the filesystem, which must be empty. Returns NotApplicable if an ability is missing.
 *
 * @category testing
 * @since 0.1.0
 */
export const verdict = (law: Law): Effect.Effect<Verdict, never, Filesystem> =>
  Effect.gen(function* () {
    const availableAbilities = abilities(yield* Filesystem, yield* Bench)
    const missing = law.needs.filter((ability) => !availableAbilities.has(ability))
    if (missing.length > 0) return { _tag: "NotApplicable", missing }
    return yield* Effect.match(law.check, {
      onFailure: (error): Verdict => ({ _tag: "Broken", error }),
      onSuccess: (): Verdict => ({ _tag: "Held" })
    })
  })

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

/**
 * Returns a copy of the record. Each function of the copy first appends its call to `calls`, as source text.
 *
 * @internal
 */
export const recordCalls = <Self extends object>(self: Self, calls: Array<string>, prefix = ""): Self => {
  const out: Record<string, unknown> = { ...(self as object) }
  for (const [name, value] of Object.entries(self)) {
    if (typeof value === "function") {
      out[name] = (...args: ReadonlyArray<unknown>): unknown => {
        calls.push(`${prefix}${name}(${args.map(show).join(", ")})`)
        return value(...args)
      }
    } else if (prefix !== "" && name !== "info" && isPlain(value)) out[name] = recordCalls(value, calls, `${prefix}${name}.`)
  }
  return out as Self
}

/**
 * Converts the cause of a failed law to the error of the law.
 *
 * @internal
 */
export const toLawBroken = (law: string, ref: string, calls: ReadonlyArray<string>, cause: Cause.Cause<unknown>): LawBroken => {
  const error = Cause.squash(cause)
  return error instanceof Broken
    ? new LawBroken({ law, ref, calls, expected: error.expected, actual: error.actual })
    : new LawBroken({ law, ref, calls, expected: Cause.isTimeoutError(error) ? "an end" : "success", actual: show(error) })
}

const unrecordedPorts = new WeakMap<Backend, Backend>()

/**
 * Returns the port without call recording, for reads that must not appear in the message of a broken law.
 *
 * @since 0.1.0
 */
export const unnoted = (port: Backend): Backend => unrecordedPorts.get(port) ?? port

const recordedCalls = new WeakMap<Algebra, Array<string>>()

/**
 * Returns `self` with call recording: its calls are recorded together with the calls of the filesystem `of`.
 *
 * @since 0.1.0
 */
export const noted = <Self extends Algebra>(of: Algebra, self: Self): Self => recordCalls(self, recordedCalls.get(of) ?? [])

/**
 * The time after which a running law counts as broken. `suite`, `policySuite` and `storeSuite` give each law 110 seconds.
 * @default 30 seconds
 *
 * @since 0.1.0
 */
export const LawTimeout: Context.Reference<Duration.Input> = Context.Reference<Duration.Input>(
  "fs-algebra/testing/LawTimeout",
  {
    defaultValue: () => "30 seconds"
  }
)

/**
 * Returns a law from a program on a filesystem. The law is broken if the program fails, dies or does not end in time.
 *
 * @since 0.1.0
 */
export const make = (
  head: Pick<Law, "name" | "ref" | "kind" | "needs">,
  body: (fs: Algebra, port: Backend) => Effect.fn.Return<void, unknown, Scope.Scope>
): Law => ({
  ...head,
  check: Effect.flatMap(Effect.all([Filesystem, LawTimeout]), ([self, timeout]) => {
    const calls: Array<string> = []
    const fs = recordCalls(self, calls)
    const port = recordCalls(self.port, calls, "port.")
    recordedCalls.set(fs, calls)
    unrecordedPorts.set(port, self.port)
    return Effect.catchCause(
      Effect.timeout(Effect.scoped(Effect.gen(() => body(fs, port))), timeout),
      (cause): Effect.Effect<never, LawBroken> =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(toLawBroken(head.name, head.ref, calls, cause))
    )
  })
})
