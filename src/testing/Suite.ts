/**
 * The laws as tests of vitest: one call makes a filesystem's conformance a test file. Only this module needs `@effect/vitest`, and only
 * when it is called, so that the rest of the kit can be used where another test runner is installed, or none.
 *
 * @since 0.1.0
 */
import type * as Vitest from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import { agreement } from "./Agreement.ts"
import type { Files } from "./Files.ts"
import { type Law, verdict } from "./Law.ts"
import { laws } from "./Laws.ts"
import { policyLaws, type PolicyOptions } from "./Policies.ts"

/**
 * Which laws and how many random programs a suite has.
 *
 * @since 0.1.0
 */
export interface SuiteOptions {
  /** Random programs that are held against the model; 0 where the filesystem cannot be written to. @default 200 */
  readonly programs?: number | undefined
  /** Of the random programs, for one that they shall be the same each time. @default random */
  readonly seed?: number | undefined
  /** `downwards` for a filesystem that lets no link be made that leads out, copied ones included. @default "any" */
  readonly links?: "any" | "downwards" | undefined
  /** @default all */
  readonly laws?: ReadonlyArray<Law> | undefined
}

/**
 * Returns the test runner. It is required, not imported, since a suite is declared in one synchronous step and a module that waits for an
 * import cannot be required itself.
 */
const runner = (): typeof Vitest => {
  try {
    const { createRequire } = process.getBuiltinModule("node:module")
    return createRequire(import.meta.url)("@effect/vitest")
  } catch (cause) {
    throw new Error("a suite of fs-algebra/testing needs the package @effect/vitest to be installed, and Node to run it", {
      cause
    })
  }
}

const patience = 120_000

const lawTest = <E>(law: Law, layer: Layer.Layer<Filesystem, E>): void =>
  runner().it(law.name, { timeout: patience }, async (context) => {
    const found = await Effect.runPromise(Effect.provide(verdict(law), layer))
    if (found._tag === "NotApplicable") context.skip(`not applicable, it needs: ${found.missing.join(", ")}`)
    if (found._tag === "Broken") throw found.error
  })

/**
 * Tests that the filesystem of the layer keeps every law, and agrees with the model on random programs. The layer is built anew for
 * each, and each time must give an empty filesystem; provide `Bench` beside it where the laws need a hand. A law of an ability that
 * the filesystem lacks is skipped, and says so.
 *
 * @since 0.1.0
 */
export const suite = <E>(name: string, layer: Layer.Layer<Filesystem, E>, options?: SuiteOptions): void => {
  runner().describe(name, () => {
    for (const law of options?.laws ?? laws) lawTest(law, layer)
    const runs = options?.programs ?? 200
    if (runs > 0) {
      runner().it.live(
        `${runs} random programs come to what the model says`,
        () => agreement(layer, { runs, seed: options?.seed, links: options?.links }),
        {
          timeout: patience * 5
        }
      )
    }
  })
}

/**
 * Tests what a backend's options do. `make` answers a layer with these options in force, whose filesystem holds the files; an option
 * that the backend does not have may be left aside, its laws are then skipped.
 *
 * @since 0.1.0
 */
export const policySuite = <E>(
  name: string,
  make: (options: PolicyOptions, files: Files) => Layer.Layer<Filesystem, E> | undefined
): void => {
  runner().describe(`${name}, its options`, () => {
    for (const { files, law, options } of policyLaws) {
      const layer = make(options, files)
      if (layer === undefined) runner().it.skip(`${law.name} (not applicable: ${JSON.stringify(options)})`)
      else lawTest(law, layer)
    }
  })
}
