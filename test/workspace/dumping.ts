/**
 * Helpers for the tests of dumps: distinguishable sessions with filesystems, the files on disk, and a process that ends
 * at a chosen call.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { basename, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make as derive } from "../../src/filesystem/Filesystem.ts"
import * as Slice from "../../src/model/Slice.ts"
import * as Session from "../../src/workspace/Session.ts"
import { real } from "../interruption/harness.ts"

export const Notes = Slice.make("Notes", Schema.String)
export const Log = Slice.make("Log", Schema.Int, { policy: "log" })
export const slices = [Notes, Log]

export const memory: Effect.Effect<Algebra> = Effect.map(InMemory.make(), derive)

export const sha256 = (path: string): string => createHash("sha256").update(real.readFileSync(path)).digest("hex")

/** Builds a session "abc" with the note, and a filesystem whose file contains the same note. */
export const pair = Effect.fnUntraced(function* (note: string) {
  const session = yield* Session.make({ id: note, slices, tags: { session_id: "abc" } })
  yield* session.set(Notes, note)
  const filesystem = yield* memory
  yield* filesystem.write("note", note)
  return { session, filesystem }
})

/** Loads the dump, and returns the note of its session and that of its archive, or `undefined` without a dump. */
export const found = Effect.fnUntraced(function* (top: string) {
  const path = join(top, "abc.jsonl")
  if (!real.existsSync(path)) return undefined
  const into = yield* memory
  const { archive, session } = yield* Session.loadSessionTree(path, { slices, into })
  const [note] = yield* session.all(Notes)
  const file = archive === undefined ? undefined : yield* into.readString("note")
  return [note, file] as const
})

const mutating =
  /^(open|write|writev|rename|unlink|rmdir|rm|mkdir|mkdtemp|fsync|fdatasync|link|symlink|chmod|fchmod|utimes|futimes|truncate|ftruncate|copyFile|cp|appendFile|writeFile)(Sync)?$/

const isWriting = (name: string, [, flags]: ReadonlyArray<unknown>): boolean =>
  !name.startsWith("open") || (typeof flags === "string" ? /[wa+]/.test(flags) : typeof flags === "number" && (flags & 3) !== 0)

/**
 * Simulates a process that ends at its nth changing system call. A write writes half of its bytes, and every other call does
 * nothing. All later changing calls fail too.
 */
export const dying = <A, E, R>(nth: number, effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    let calls = 0
    const names = Object.keys(fs).filter((name) => mutating.test(name))
    const put = (name: string, value: unknown): void => void ((fs as unknown as Record<string, unknown>)[name] = value)
    const gone = Object.assign(new Error("gone"), { code: "EIO", errno: -5 })
    for (const name of names) {
      const original = (real as unknown as Record<string, (...args: ReadonlyArray<unknown>) => unknown>)[name]!
      put(name, (...args: ReadonlyArray<unknown>) => {
        if (!isWriting(name, args) || ++calls < nth) return original(...args)
        if (calls === nth && name === "write") {
          const [descriptor, bytes, offset, length] = args as [number, Uint8Array, number, number]
          real.writeSync(descriptor, bytes, offset, Math.floor(length / 2), null)
        }
        const done = args.at(-1)
        if (typeof done !== "function") throw gone
        setImmediate(() => (done as (error: Error) => void)(gone))
        return undefined
      })
    }
    syncBuiltinESMExports()
    return Effect.ensuring(
      Effect.map(Effect.exit(effect), (exit) => ({ exit, died: calls >= nth })),
      Effect.sync(() => {
        for (const name of names) put(name, (real as unknown as Record<string, unknown>)[name])
        syncBuiltinESMExports()
      })
    )
  })

/** Returns the names in a directory, including hidden ones. */
export const names = (top: string): ReadonlyArray<string> => real.readdirSync(top).sort()

/** Parses the lines of a dump as any JSONL reader does. */
export const linesOf = (path: string): ReadonlyArray<Record<string, unknown>> => {
  const text = real.readFileSync(path, "utf8")
  assert.isTrue(text.endsWith("\n"), basename(path))
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}
