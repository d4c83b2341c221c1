/**
 * Conformance tests for vitest: one call turns all laws into tests.
 *
 * Only this module needs `@effect/vitest`. The package is loaded when one of the functions is called. So the other modules
 * of the kit work with any test runner.
 *
 * @since 0.1.0
 */
import type * as Vitest from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import { agreement } from "./Agreement.ts"
import type { Files } from "./Files.ts"
import { type Law, LawTimeout, verdict } from "./Law.ts"
import { laws } from "./Laws.ts"
import { policyLaws, type PolicyOptions } from "./Policies.ts"
import { storeLaws, type StoreLaw, type StoreServices, type StoreSizes } from "./StoreLaws.ts"

/**
 * The laws and the number of random programs of a suite.
 *
 * @since 0.1.0
 */
export interface SuiteOptions {
  /** The number of random programs to compare with the model. Use 0 for a read-only filesystem. @default 200 */
  readonly programs?: number | undefined
  /** The seed of the random programs. The same seed gives the same programs. @default random */
  readonly seed?: number | undefined
  /**
   * The links in random programs. Use `downwards` for a filesystem that cannot copy links that lead out of the root.
   * @default "any"
   */
  readonly links?: "any" | "downwards" | undefined
  /** @default all */
  readonly laws?: ReadonlyArray<Law> | undefined
}

/**
 * Loads the test runner with `require`, because a suite is declared synchronously. With a top-level `await import`, other
 * modules could not `require` this module.
 */
const loadVitest = (): typeof Vitest => {
  try {
    const { createRequire } = process.getBuiltinModule("node:module")
    return createRequire(import.meta.url)("@effect/vitest")
  } catch (cause) {
    throw new Error("a suite of fs-algebra/testing needs Node and the package @effect/vitest; install @effect/vitest", {
      cause
    })
  }
}

const lawTimeoutMillis = 120_000

/** Gives a law almost the whole time of its test, because a law on a server may take long on a busy machine. */
const withLawTimeout = <A, E, R>(check: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(check, LawTimeout, lawTimeoutMillis - 10_000)

/** The time that each random program may take on average. A program has up to 40 calls, and a server may be slow. */
const programTimeoutMillis = 10_000

const lawTest = <E>(law: Law, layer: Layer.Layer<Filesystem, E>): void =>
  loadVitest().it(law.name, { timeout: lawTimeoutMillis }, async (context) => {
    const found = await Effect.runPromise(withLawTimeout(Effect.provide(verdict(law), layer)))
    if (found._tag === "NotApplicable") context.skip(`the law does not apply, because it needs: ${found.missing.join(", ")}`)
    if (found._tag === "Broken") throw found.error
  })

/**
 * Declares tests that check every law on the filesystem of the layer, and compare random programs with the model.
 *
 * The layer is built again for each test, and must provide an empty filesystem each time. If laws need further support, the
 * layer must also provide `Bench`. If the filesystem lacks an ability that a law needs, the law is skipped with a reason.
 *
 * @example
 * ```ts
 * suite("my backend", InMemory.layer())
 * ```
 * @category testing
 * @since 0.1.0
 */
export const suite = <E>(name: string, layer: Layer.Layer<Filesystem, E>, options?: SuiteOptions): void => {
  loadVitest().describe(name, () => {
    for (const law of options?.laws ?? laws) lawTest(law, layer)
    const runs = options?.programs ?? 200
    if (runs > 0) {
      loadVitest().it.live(
        `${runs} random programs${options?.seed === undefined ? "" : ` with the seed ${options.seed}`} agree with the model`,
        () => agreement(layer, { runs, seed: options?.seed, links: options?.links }),
        { timeout: Math.max(lawTimeoutMillis * 5, runs * programTimeoutMillis) }
      )
    }
  })
}

/**
 * Declares tests of a backend's options. `make` returns a layer of a filesystem with the given options and files. If the
 * backend does not have these options, `make` must return `undefined`, so that the law is skipped.
 *
 * @category testing
 * @since 0.1.0
 */
export const policySuite = <E>(
  name: string,
  make: (options: PolicyOptions, files: Files) => Layer.Layer<Filesystem, E> | undefined
): void => {
  loadVitest().describe(`${name}, its options`, () => {
    for (const { files, law, options } of policyLaws) {
      const layer = make(options, files)
      if (layer === undefined) loadVitest().it.skip(`${law.name} (not applicable: ${JSON.stringify(options)})`)
      else lawTest(law, layer)
    }
  })
}

/**
 * The sizes and the laws of a suite of stores.
 *
 * @since 0.1.0
 */
export interface StoreSuiteOptions extends StoreSizes {
  /** @default all */
  readonly laws?: ReadonlyArray<StoreLaw> | undefined
}

/**
 * Declares tests that check every law of stores. `makePlace` makes a new, empty place, such as a directory, and returns the
 * layer of its stores. Each build of the layer opens the same place. The scope of `makePlace` closes at the end of the law.
 *
 * @example
 * ```ts
 * storeSuite("my stores", Effect.succeed(Stores.layerMemory), { isShared: false })
 * ```
 * @category testing
 * @since 0.1.0
 */
export const storeSuite = <E, E2>(
  name: string,
  makePlace: Effect.Effect<Layer.Layer<StoreServices, E>, E2, Scope.Scope>,
  { laws: chosen = storeLaws, ...sizes }: StoreSuiteOptions = {}
): void => {
  const { describe, it } = loadVitest()
  describe(name, () => {
    for (const law of chosen) {
      it(law.name, { timeout: lawTimeoutMillis }, async (context) => {
        if (law.needsSharing && sizes.isShared === false) return context.skip("each build of the layer makes new stores")
        const check = Effect.flatMap(makePlace, (layer) => law.check(layer, sizes))
        await Effect.runPromise(Effect.scoped(withLawTimeout(check)))
      })
    }
  })
}
