/**
 * The program that each runtime runs: the laws on InMemory and its combinators, archives, snapshots and tools. It uses only
 * features that every runtime has.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as FilesystemToolkit from "../../src/agent/FilesystemToolkit.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { changes, overlay } from "../../src/filesystem/Overlay.ts"
import { agreement } from "../../src/testing/Agreement.ts"
import { verdict } from "../../src/testing/Law.ts"
import { laws } from "../../src/testing/Laws.ts"

/** The result of a run. `broken` names each broken law with its filesystem and error. */
export interface Report {
  readonly held: number
  readonly broken: ReadonlyArray<string>
}

export interface Settings {
  readonly programs: number
  /** True if threads can stop a pattern that backtracks endlessly. Without threads the laws of such patterns would never end. */
  readonly hasThreads: boolean
  readonly filesystems?: ReadonlyArray<keyof typeof inMemory> | undefined
}

const hostile = new Set([
  "a grep with a slow pattern fails with a Timeout that names the file",
  "a grep with a slow pattern does not block other calls",
  "an interrupted grep with a slow pattern ends",
  "greps work after a grep with a slow pattern has failed"
])

/** The seed of the random programs, fixed for equal runs. */
const seed = 19

const another = Effect.map(InMemory.make(), make)

const inMemory = {
  InMemory: InMemory.layer(),
  overlay: decorate((lower: Algebra) => Effect.map(another, (upper) => overlay(upper)(lower)))(InMemory.layer()),
  mount: decorate((outer: Algebra) =>
    Effect.gen(function* () {
      return yield* subdirectory("mounted")(yield* mount("mounted", yield* another)(outer))
    })
  )(InMemory.layer())
} satisfies Readonly<Record<string, Layer.Layer<Filesystem, unknown>>>

export const check = async <E>(
  filesystems: Readonly<Record<string, Layer.Layer<Filesystem, E>>>,
  { hasThreads, programs }: Pick<Settings, "hasThreads" | "programs">
): Promise<Report> => {
  let held = 0
  const broken: Array<string> = []
  for (const [name, layer] of Object.entries(filesystems)) {
    for (const law of laws) {
      if (!hasThreads && hostile.has(law.name)) continue
      const found = await Effect.runPromiseExit(Effect.provide(verdict(law), layer))
      if (found._tag === "Failure") broken.push(`${name}, ${law.name}: ${String(found.cause)}`)
      else if (found.value._tag === "Broken") broken.push(`${name}, ${law.name}: ${String(found.value.error)}`)
      else if (found.value._tag === "Held") held++
    }
    const agreed = await Effect.runPromiseExit(Effect.scoped(agreement(layer, { runs: programs, seed })))
    if (agreed._tag === "Failure") broken.push(`${name}, random programs: ${String(agreed.cause)}`)
  }
  return { held, broken }
}

export const conformance = ({ filesystems = ["InMemory"], ...settings }: Settings): Promise<Report> =>
  check(Object.fromEntries(filesystems.map((name) => [name, inMemory[name]])), settings)

interface Handlers {
  readonly handle: (name: string, params: unknown, id: string) => Effect.Effect<Stream.Stream<{ readonly result: unknown }>>
}

const text = "a line that comes again and again, so that it can be packed\n".repeat(2000)

/** Returns the archive with an invalid deflate block in the content of its first file. */
const spoilt = (zip: Uint8Array): Uint8Array => {
  const out = new Uint8Array(zip)
  const at = 30 + out[26]! + out[27]! * 256 + out[28]! + out[29]! * 256
  return out.fill(0xff, at, at + 8)
}

/** Runs archives, combinators, a snapshot and a tool on a small tree. Returns the result of each step. */
export const features = (): Promise<unknown> =>
  Effect.gen(function* () {
    const fs = yield* Filesystem
    const tree = yield* Stream.runCollect(Archive.exportTarOf(fs))
    const zipped = yield* Archive.exportBytesOf(fs)
    const fromZip = yield* another
    const fromTar = yield* another
    const counts = [
      yield* Archive.importBytesOf(fromZip, zipped),
      yield* Archive.importTarOf(fromTar, Stream.fromIterable(tree))
    ]
    const refused = yield* Effect.flip(Archive.importBytesOf(fromZip, spoilt(zipped)))
    const draft = overlay(yield* another)(fs)
    const whole = yield* mount("mounted", yield* another)(draft)
    yield* whole.write("notes/a.md", "draft\n")
    yield* whole.write("mounted/b.md", "alpha, mounted\n")
    const layered = {
      alpha: (yield* whole.grep("alpha|draft")).matches.map(({ path }) => path),
      below: yield* fs.readString("notes/a.md"),
      changes: (yield* changes(draft)).map(({ _tag, path }) => `${_tag} ${path}`)
    }
    const snapshots = yield* Snapshots.Snapshots
    const taken = yield* snapshots.snapshot()
    const tools = yield* FilesystemToolkit.toolkit
    const edit = { path: "notes/a.md", old_string: "alpha", new_string: "beta" }
    const answers = yield* Stream.runCollect(yield* (tools as unknown as Handlers).handle("edit_file", edit, "call_1"))
    const edited = yield* fs.readString("notes/a.md")
    yield* snapshots.restore(taken)
    return {
      counts,
      refused: refused._tag,
      layered,
      isSmaller: zipped.length < text.length,
      same: (yield* fromZip.readString("large.txt")) === text && (yield* fromTar.readString("large.txt")) === text,
      isRefused: JSON.stringify(answers.at(-1)!.result).includes('isFailure":true'),
      edited,
      restored: yield* fs.readString("notes/a.md"),
      version: yield* fs.version("notes/a.md"),
      found: (yield* fs.grep("ALPHA", { ignoreCase: true })).matches.map(({ path }) => path)
    }
  }).pipe(
    Effect.provide(Layer.mergeAll(FilesystemToolkit.layer, Snapshots.layer)),
    Effect.provide(InMemory.layer({ tree: { "large.txt": text, notes: { "a.md": "alpha\n" } } })),
    Effect.runPromise
  )
