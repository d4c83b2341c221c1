/**
 * Determines which conditional requests a store supports. Some stores silently ignore a condition, and then a write overwrites an
 * object that it should have left alone.
 */
import * as Effect from "effect/Effect"
import { type Fault, unavailable } from "../../model/Fault.ts"
import { sha256 } from "../../runtime/hash.ts"
import { randomUUID } from "../../runtime/node.ts"
import { absent, type Condition, noCondition, type Objects, type TagForm } from "./objects.ts"

export interface Support {
  /** False if writes are sent without conditions. */
  readonly put: boolean
  readonly form: TagForm
  readonly remove: boolean
  readonly complete: boolean
}

export const unconditional: Support = { put: false, form: "quoted", remove: false, complete: false }

const encoder = new TextEncoder()

/** A condition that no object meets. */
export const otherTag = { _tag: "Match", etag: '"00000000000000000000000000000000"' } as const satisfies Condition

/** Tests the conditions of CompleteMultipartUpload on an existing object. */
const probeComplete = (objects: Objects, key: string, form: TagForm): Effect.Effect<boolean, Fault> =>
  Effect.gen(function* () {
    for (const condition of [absent, otherTag]) {
      const upload = yield* objects.startUpload(key)
      const part = yield* objects.putPart(upload, 1, encoder.encode("multipart"))
      const done = yield* objects.complete(upload, [part], condition, form)
      if (done._tag === "Stored") return false
      yield* objects.abort(upload)
    }
    return true
  })

/**
 * Writes and deletes an object below the prefix to test the conditions. Fails with Unavailable if the store ignores the
 * conditions of a plain write.
 */
export const probe = (objects: Objects, prefix: string): Effect.Effect<Support, Fault> => {
  const key = `${prefix}.fs-algebra-probe-${randomUUID()}`
  const put = (text: string, condition: Condition, form: TagForm) => {
    const bytes = encoder.encode(text)
    return objects.put(key, bytes, sha256(bytes), condition, form)
  }
  const ignores = (what: string): Fault =>
    unavailable(
      `the store ignores the condition ${what} of a write, so two programs could overwrite each other; ` +
        "use a store that obeys it, or give conditional: false to do without"
    )
  const run = Effect.gen(function* () {
    const first = yield* put("first", absent, "quoted")
    if (first._tag !== "Stored") return yield* Effect.fail(ignores("If-None-Match"))
    if ((yield* put("second", absent, "quoted"))._tag === "Stored") return yield* Effect.fail(ignores("If-None-Match"))
    if ((yield* put("second", otherTag, "bare"))._tag === "Stored") return yield* Effect.fail(ignores("If-Match"))
    let form: TagForm = "quoted"
    const right: Condition = { _tag: "Match", etag: first.etag }
    if ((yield* put("second", right, form))._tag !== "Stored") {
      form = "bare"
      if ((yield* put("second", right, form))._tag !== "Stored") return yield* Effect.fail(ignores("If-Match"))
    }
    const complete = yield* probeComplete(objects, key, form)
    const remove = !(yield* objects.remove(key, otherTag, form))
    return { put: true, form, remove, complete }
  })
  return Effect.ensuring(run, Effect.ignore(Effect.timeoutOption(objects.remove(key, noCondition, "quoted"), "10 seconds")))
}
