/** Performs operations with the library, or with plain `node:fs` as the control. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import { edits, record, text } from "./content.ts"
import type { Op } from "./model.ts"

const streamed = (bytes: Uint8Array): Stream.Stream<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += 65_536) pieces.push(bytes.subarray(at, at + 65_536))
  return Stream.rechunk(Stream.fromIterable(pieces), 4)
}

export const perform = (fs: Algebra, op: Op): Effect.Effect<unknown, unknown> => {
  switch (op.kind) {
    case "write": {
      const bytes = record(op.id, op.size)
      return op.how === "bytes"
        ? fs.writeBytes(op.path, bytes, { mode: op.mode })
        : Stream.run(streamed(bytes), fs.sink(op.path, { mode: op.mode }))
    }
    case "text":
      return fs.write(op.path, text(op.id, op.lines))
    case "edit":
      return fs.edit(op.path, edits(op.from, op.id))
    case "move":
    case "copy":
      return fs[op.kind](op.from, op.to, { overwrite: op.overwrite })
    case "delete":
      return fs.delete(op.path, { recursive: op.recursive })
    case "mkdir":
      return fs.mkdir(op.path)
    case "link":
      return fs.symlink(op.path, op.target)
  }
}

/** Writes a file in place. Kills must tear such a file, which shows that the checks work. */
export const naively = (root: string, op: Op): Effect.Effect<unknown> =>
  Effect.sync(() => {
    if (op.kind === "write") Fs.writeFileSync(join(root, op.path), record(op.id, op.size))
  })
