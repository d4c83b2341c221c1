/**
 * The table of escapes for watching, the one operation that does not end. A watch starts inside the root, or fails with
 * a reason.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { WatchEvent } from "../../src/model/Entry.ts"
import { type Ground, type Kind, kinds } from "./escapes/grounds.ts"
import { base, type Layout, layouts, outside, type Row } from "./escapes/rows.ts"
import { join, normal } from "./escapes/tree.ts"
import { isSoak } from "../runs.ts"

const refusals: Partial<Record<Row["leads"]["is"], { readonly _tag: string; readonly why?: string }>> = {
  file: { _tag: "NotADirectory" },
  nothing: { _tag: "NotFound" },
  blocked: { _tag: "NotFound" },
  lost: { _tag: "NotFound" },
  escape: { _tag: "AccessDenied", why: "escape" },
  loop: { _tag: "InvalidPath" },
  invalid: { _tag: "InvalidPath" },
  tooLong: { _tag: "PathTooLong" }
}

/** Checks that a watch is refused. The timeout ends a watch that starts by mistake. */
const refused = Effect.fnUntraced(function* (ground: Ground, row: Row) {
  const error = yield* Effect.flip(Effect.timeout(Stream.runHead(ground.fs.watch(row.path)), "20 seconds"))
  const { _tag, why } = error as { readonly _tag: string; readonly why?: string }
  assert.deepStrictEqual(why === undefined ? { _tag } : { _tag, why }, refusals[row.leads.is], JSON.stringify(row.path))
  assert.notInclude(JSON.stringify(error), ground.hidden)
})

/** Writes where the path leads until the watch reports it, by the watched path. */
const watched = Effect.fnUntraced(function* (ground: Ground, row: Row, at: string) {
  const first = yield* Deferred.make<WatchEvent, unknown>()
  const watching = yield* Effect.forkChild(
    Stream.runForEach(ground.fs.watch(row.path), (event) => Deferred.succeed(first, event)).pipe(
      Effect.onError((cause) => Deferred.failCause(first, cause))
    )
  )
  let count = 0
  const poke = Effect.flatMap(
    Effect.suspend(() => ground.fs.write(join(at, `seen${count++}`), "x")),
    () => Effect.sleep(1)
  )
  const event = yield* Effect.raceFirst(Deferred.await(first), Effect.forever(poke))
  assert.match(event.path, /seen\d+$/)
  assert.strictEqual(event.path, join(normal(row.path)!, event.path.slice(event.path.lastIndexOf("seen"))))
  yield* Fiber.interrupt(watching)
})

const runLayout = Effect.fnUntraced(function* (kind: Kind, layout: Layout) {
  const ground = yield* kind.make({ ...base, ...layout.links }, outside)
  for (const row of layout.rows) {
    if (row.isExtra === true && !isSoak) continue
    const before = ground.outside()
    if (row.leads.is === "directory") yield* watched(ground, row, row.leads.at)
    else yield* refused(ground, row)
    assert.deepStrictEqual(ground.outside(), before)
    ground.reset()
  }
})

for (const kind of kinds.filter(({ symlinks }) => symlinks === undefined)) {
  describe(`watched paths on ${kind.name} lead where the table says, for`, () => {
    for (const layout of layouts) {
      if (layout.isHostOnly === true && !kind.isHost) continue
      it.live(layout.claim, () => Effect.scoped(runLayout(kind, layout)))
    }
  })
}
