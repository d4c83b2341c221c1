/**
 * A process that works until it is killed: it restores two snapshots in turn, takes snapshots, or imports archives.
 * Each finished step is one character on its standard output.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import { writeOut } from "../writeOut.ts"

export interface Orders {
  readonly root: string
  /** The directory of git or of the named archives. */
  readonly store: string
  readonly what: "restores" | "snapshots" | "imports" | "rollbacks"
  /** The two snapshots as JSON, the two paths of archives, or the two names. */
  readonly two: readonly [string, string]
}

const say = (text: string): void => writeOut(text)

// Commands come on standard input, so that the process has started before it gets them.
const orders = JSON.parse(Fs.readFileSync(0, "utf8")) as Orders
const { root, store, two, what } = orders

const byGit = Snapshots.layerGit({ gitDir: store }).pipe(Layer.provideMerge(PosixHost.layer({ root })))
const byName = SnapshotStore.layer({ directory: store }).pipe(Layer.provideMerge(PosixHost.layer({ root })))

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(Snapshots.FilesystemSnapshot)))

const forever = <E, R>(step: (turn: number) => Effect.Effect<unknown, E, R>): Effect.Effect<void, E, R> =>
  Effect.gen(function* () {
    say("+")
    for (let turn = 0; ; turn++) {
      yield* step(turn)
      say(".")
    }
  })

const works: Record<Orders["what"], () => Effect.Effect<void, unknown>> = {
  restores: () =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      const both = [yield* decode(two[0]), yield* decode(two[1])] as const
      yield* forever((turn) => snapshots.restore(both[turn % 2]!))
    }).pipe(Effect.provide(byGit)),
  snapshots: () =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      yield* forever((turn) =>
        Effect.suspend(() => {
          Fs.writeFileSync(join(root, `f${turn % 20}`), `${process.pid} ${turn}`.repeat(5000))
          return turn % 7 === 6 ? snapshots.collect : snapshots.snapshot()
        })
      )
    }).pipe(Effect.provide(byGit)),
  imports: () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      yield* forever((turn) =>
        turn % 4 < 2
          ? Archive.importZipOf(fs, Stream.make(new Uint8Array(Fs.readFileSync(two[turn % 2]!))))
          : Archive.importArchiveOf(fs, two[turn % 2]!)
      )
    }).pipe(Effect.provide(byName)),
  rollbacks: () =>
    Effect.gen(function* () {
      const named = yield* SnapshotStore.SnapshotStore
      yield* forever((turn) => named.rollback(two[turn % 2]!))
    }).pipe(Effect.provide(byName))
}

const exit = await Effect.runPromise(Effect.exit(works[what]()))
if (Exit.isFailure(exit)) say(`\nfailed: ${JSON.stringify(exit.cause)}\n`)
