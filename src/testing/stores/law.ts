import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as BlobStore from "../../repository/BlobStore.ts"
import * as HeadStore from "../../repository/HeadStore.ts"
import { type LawBroken, LawTimeout, recordCalls, toLawBroken } from "../Law.ts"

export type StoreServices = BlobStore.BlobStore | HeadStore.HeadStore

export interface StoreSizes {
  /** The number of blobs and of workspaces in the laws about long lists. @default 2600 */
  readonly count?: number | undefined
  /** The size of the largest content in bytes. @default 17 MiB */
  readonly largestBytes?: number | undefined
  /**
   * True if each build of the layer opens the same place, as on a disk or a server. False if each build makes new stores, as in
   * memory. Then the laws that open the stores twice are skipped.
   * @default true
   */
  readonly isShared?: boolean | undefined
}

/** The stores under test, as one program opens them. */
export interface Opened {
  readonly blobs: BlobStore.Operations
  readonly heads: HeadStore.Operations
}

export interface Subject extends Opened {
  /** Opens the same place again, as another program would. If `isShared` is false, returns the first stores again. */
  readonly reopen: Effect.Effect<Opened, unknown, Scope.Scope>
  readonly count: number
  readonly largestBytes: number
}

/**
 * A statement that every store of blobs and heads must satisfy.
 *
 * @category models
 * @since 0.1.0
 */
export interface StoreLaw {
  /** The title of the law: a statement about the store. */
  readonly name: string
  /** True if the law opens the place twice, so that it does not apply to stores in memory. */
  readonly needsSharing: boolean
  /** Checks the stores of the layer. The stores must be empty, and no other code may use them. */
  readonly check: <E>(layer: Layer.Layer<StoreServices, E>, sizes?: StoreSizes) => Effect.Effect<void, LawBroken>
}

const open = <E>(layer: Layer.Layer<StoreServices, E>): Effect.Effect<Opened, E, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => ({
    blobs: Context.get(context, BlobStore.BlobStore),
    heads: Context.get(context, HeadStore.HeadStore)
  }))

const defaultCount = 2_600
const defaultLargestBytes = 17 * 1024 * 1024

const law =
  (needsSharing: boolean) =>
  (name: string, body: (subject: Subject) => Effect.fn.Return<void, unknown, Scope.Scope>): StoreLaw => ({
    name,
    needsSharing,
    check: (layer, sizes = {}) =>
      Effect.flatMap(LawTimeout, (timeout) => {
        const calls: Array<string> = []
        const recorded = ({ blobs, heads }: Opened, prefix: string): Opened => ({
          blobs: recordCalls(blobs, calls, `${prefix}blobs.`),
          heads: recordCalls(heads, calls, `${prefix}heads.`)
        })
        const run = Effect.gen(function* () {
          const first = yield* open(layer)
          yield* Effect.gen(() =>
            body({
              ...recorded(first, ""),
              reopen: Effect.map(sizes.isShared === false ? Effect.succeed(first) : open(layer), (other) =>
                recorded(other, "other.")
              ),
              count: sizes.count ?? defaultCount,
              largestBytes: sizes.largestBytes ?? defaultLargestBytes
            })
          )
        })
        return Effect.catchCause(Effect.timeout(Effect.scoped(run), timeout), (cause): Effect.Effect<never, LawBroken> =>
          Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(toLawBroken(name, "stores", calls, cause))
        )
      })
  })

export const storeLaw = law(false)
export const sharedLaw = law(true)
