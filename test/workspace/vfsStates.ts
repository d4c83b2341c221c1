/** The filesystem of a session on an in-memory disk, for law suites and other tests. */
import { execFileSync } from "node:child_process"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import { Bench } from "../../src/testing/Law.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { inMemory } from "../scratch.ts"

/** A temporary directory that is removed with its scope. */
export const ground: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(inMemory(), "vfs-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

type Options = Omit<VfsState.Options, "directory">

const made = (options: Options, files: Files) =>
  Effect.gen(function* () {
    const directory = yield* ground
    const session = yield* Session.make()
    const { filesystem } = yield* VfsState.make({ session, directory, policy: "standard" })
    yield* plant(filesystem.port, files)
    const state = yield* VfsState.make({ session, ...options })
    const root = yield* state.rootPath
    const bench: Bench = {
      prunes: true,
      makeOther: (path) => Effect.sync(() => void execFileSync("mkfifo", [join(root, path)])),
      makeUnaddressable: Effect.sync(() =>
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "hit")
      )
    }
    return Layer.merge(Layer.succeed(Filesystem, state.filesystem), Layer.succeed(Bench, bench))
  })

/** Provides the filesystem with the files written first, because the options may forbid writing. */
export const vfsStateWith = (options: Options, files: Files): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(made(options, files))

/** The filesystem with standard paths, because the laws use names that its own path rules refuse. */
export const vfsState: Layer.Layer<Filesystem, unknown> = vfsStateWith({ policy: "standard" }, {})

/** Returns the directories of filesystems and of their copies. */
export const directoriesIn = (place: string): ReadonlyArray<string> =>
  Fs.readdirSync(place)
    .filter((name) => name.startsWith("fs-algebra-vfs-"))
    .sort()

/** Returns the session's records of the files. */
export const filesOf = (session: Session.Operations): Effect.Effect<ReadonlyArray<VfsState.VfsFile>> =>
  Effect.map(session.all(VfsState.VirtualFileSystem), (items) => items.at(-1)?.files ?? [])

/** Returns `path@version` of each file, in order. */
export const versionsOf = (session: Session.Operations): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(filesOf(session), (files) => files.map(({ path, version }) => `${path.join("/")}@${version}`))

/** Builds a session with a filesystem in a temporary directory. */
export const workspace = Effect.fnUntraced(function* (options: Options = {}) {
  const place = yield* ground
  const session = yield* Session.make()
  const state = yield* VfsState.make({ session, directory: place, ...options })
  return { place, session, state, fs: state.filesystem }
})
