/** Filesystems in memory and dumps of them, served by the real server, for the tests of the shell and the file view. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../../src/backends/InMemory.ts"
import * as Server from "../../../src/debug/Server.ts"
import { type Algebra, Filesystem, make as derive } from "../../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../../src/history/Snapshots.ts"
import * as Slice from "../../../src/model/Slice.ts"
import * as Session from "../../../src/workspace/Session.ts"
import { inMemory } from "../../scratch.ts"

/** The content by path; a link has a target. */
export type Files = Readonly<Record<string, string | Uint8Array | { readonly link: string }>>

type Branch = { [name: string]: Files[string] | Branch }

/** Builds a filesystem that holds these files. */
export const holding = (files: Files): Effect.Effect<Algebra> => {
  const tree: Branch = {}
  for (const [path, content] of Object.entries(files)) {
    const names = path.split("/")
    let at = tree
    for (const name of names.slice(0, -1)) at = (at[name] ??= {}) as Branch
    at[names.at(-1)!] = content
  }
  return Effect.map(Effect.orDie(InMemory.make({ tree: tree as InMemory.Tree })), derive)
}

const Note = Slice.make("Note", Schema.String)

/** Writes `{name}.jsonl` and its archive. */
export const dump = (directory: string, name: string, files: Files): Promise<string> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Note], tags: { session_id: name } })
      yield* session.set(Note, name)
      return (yield* Session.dumpSessionTree(session, directory, { filesystem: yield* holding(files) }))!
    })
  )

export const emptyDirectory = (): string => Fs.mkdtempSync(join(inMemory(), "debug-"))

/** Sets the modification time into the past, because the newest dump is shown first. */
export const age = (path: string, seconds: number): void => {
  const then = new Date(Date.now() - seconds * 1000)
  Fs.utimesSync(path, then, then)
}

export interface Served {
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
}

export const serve = async (options: Server.Options): Promise<Served> => {
  const scope = Scope.makeUnsafe()
  const { port, url } = await Effect.runPromise(Scope.provide(Server.serve(options), scope))
  return { url, port, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** Serves a workspace with snapshots, and returns its filesystem. */
export const serveWorkspace = async (
  files: Files
): Promise<Served & { readonly fs: Algebra; readonly snapshots: Snapshots.Snapshots["Service"] }> => {
  const scope = Scope.makeUnsafe()
  const fs = await Effect.runPromise(holding(files))
  const context = await Effect.runPromise(
    Scope.provide(Layer.build(Layer.provideMerge(Snapshots.layerWith({}), Layer.succeed(Filesystem, fs))), scope)
  )
  const snapshots = await Effect.runPromise(Effect.provide(Snapshots.Snapshots, context))
  const { port, url } = await Effect.runPromise(
    Scope.provide(Server.serve({ source: { filesystem: fs, snapshots, title: "workspace" } }), scope)
  )
  return { url, port, fs, snapshots, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** Builds a BMP image of three by two pixels. */
const bitmap = (): Uint8Array => {
  const bytes = Buffer.alloc(54 + 24)
  bytes.write("BM", 0)
  bytes.writeUInt32LE(bytes.length, 2)
  bytes.writeUInt32LE(54, 10)
  bytes.writeUInt32LE(40, 14)
  bytes.writeInt32LE(3, 18)
  bytes.writeInt32LE(2, 22)
  bytes.writeUInt16LE(1, 26)
  bytes.writeUInt16LE(24, 28)
  bytes.fill(0x7f, 54)
  return bytes
}

/** A PNG image of one pixel. */
export const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
  "base64"
)

/** Builds an ICO image that holds a PNG. */
const icon = (): Uint8Array => {
  const head = Buffer.alloc(22)
  head.writeUInt16LE(1, 2)
  head.writeUInt16LE(1, 4)
  head.writeUInt8(1, 6)
  head.writeUInt8(1, 7)
  head.writeUInt16LE(1, 10)
  head.writeUInt16LE(32, 12)
  head.writeUInt32LE(png.length, 14)
  head.writeUInt32LE(22, 18)
  return Buffer.concat([head, png])
}

const base64 = (text: string): Uint8Array => Buffer.from(text, "base64")

/** Images by name, with their size as text. */
export const images: Readonly<Record<string, readonly [bytes: Uint8Array | string, size: string]>> = {
  "a.png": [png, "1 × 1"],
  "a.gif": [base64("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"), "1 × 1"],
  "a.jpg": [
    base64(
      "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="
    ),
    "1 × 1"
  ],
  "a.webp": [base64("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"), "1 × 1"],
  "a.avif": [
    base64(
      "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADybWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aWYAAAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAABAAABGgAAAB0AAAAoaWluZgAAAAAAAQAAABppbmZlAgAAAAABAABhdjAxQ29sb3IAAAAAamlwcnAAAABLaXBjbwAAABRpc3BlAAAAAAAAAAIAAAACAAAAEHBpeGkAAAAAAwgICAAAAAxhdjFDgQ0MAAAAABNjb2xybmNseAACAAIAAYAAAAAXaXBtYQAAAAAAAAABAAEEAQKDBAAAACVtZGF0EgAKCBgANogQEAwgMg8f8D///8WfhwB8+ErK42A="
    ),
    "2 × 2"
  ],
  "a.svg": ['<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>', "30 × 20"],
  "a.bmp": [bitmap(), "3 × 2"],
  "a.ico": [icon(), "1 × 1"]
}
