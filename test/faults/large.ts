/** Operations that use the thread pool and write many bytes in several pieces, each of which may fail. */
import * as Stream from "effect/Stream"
import * as FsError from "../../src/model/FsError.ts"
import type { Operation } from "./operations.ts"

export const largeSize = 400_000

const content = new Uint8Array(largeSize).fill(110)

const one = (name: string, run: Operation["run"]): Operation => ({ name, kind: "one", errors: FsError.WriteError, run })

export const extra: ReadonlyArray<Operation> = [
  one("large overwrite, bytes", (fs) => fs.writeBytes("d/f", content)),
  one("large create, a stream", (fs) =>
    Stream.run(
      Stream.fromIterable([content.subarray(0, 150_000), content.subarray(150_000)]),
      fs.sink("p/q/new", { mode: "create" })
    )
  ),
  one("large append, bytes", (fs) => fs.writeBytes("d/f", content, { mode: "append" })),
  one("large append, a stream", (fs) =>
    Stream.run(
      Stream.fromIterable([content.subarray(0, 150_000), content.subarray(150_000)]),
      fs.sink("d/f", { mode: "append" })
    )
  )
]

/** Operations for a tree with a second disk at `m`. */
export const extraMoves: ReadonlyArray<Operation> = [
  { name: "move to the disk", kind: "one", errors: FsError.TransferError, run: (fs) => fs.move("d/f", "m/f") }
]
