/** The calls that take a path, as data, so that one law can test all these calls. */
import type * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { WriteResult } from "../model/Entry.ts"
import type { FsError, Unsupported, WriteError } from "../model/FsError.ts"
import type { Ability } from "./Law.ts"

export interface PathCall {
  readonly operation: string
  readonly parameter?: string
  readonly run: (fs: Algebra, path: string) => Effect.Effect<unknown, FsError | Unsupported>
  readonly needs: ReadonlyArray<Ability>
}

export const toBytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

export const encodeUtf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** The version of a file with the content "abc". */
export const hashOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

export const writeThroughSink = (
  fs: Algebra,
  path: string,
  texts: ReadonlyArray<string>,
  options?: Parameters<Algebra["sink"]>[1]
): Effect.Effect<WriteResult, WriteError> => Stream.run(Stream.fromIterable(texts.map(encodeUtf8)), fs.sink(path, options))

export const streamThen = <E, R>(text: string, effect: Effect.Effect<unknown, E, R>): Stream.Stream<Uint8Array, E, R> =>
  Stream.concat(Stream.make(encodeUtf8(text)), Stream.drain(Stream.fromEffect(effect)))

export const concatBytes = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

const pathCall = (operation: string, needs: ReadonlyArray<Ability>, run: PathCall["run"], parameter?: string): PathCall => ({
  operation,
  needs,
  run,
  ...(parameter !== undefined && { parameter })
})

/** The calls that only read, without `exists`, which never fails for a path. */
export const readingCalls: ReadonlyArray<PathCall> = [
  pathCall("stat", [], (fs, path) => fs.stat(path)),
  pathCall("lstat", [], (fs, path) => fs.lstat(path)),
  pathCall("realPath", [], (fs, path) => fs.realPath(path)),
  pathCall("list", [], (fs, path) => fs.list(path)),
  pathCall("walk", [], (fs, path) => Stream.runCollect(fs.walk(path))),
  pathCall("glob", [], (fs, path) => fs.glob("*", { path })),
  pathCall("globStream", [], (fs, path) => Stream.runCollect(fs.globStream("*", { path }))),
  pathCall("grep", [], (fs, path) => fs.grep("x", { path })),
  pathCall("grepStream", [], (fs, path) => Stream.runCollect(fs.grepStream("x", { path }))),
  pathCall("read", [], (fs, path) => fs.read(path)),
  pathCall("readString", [], (fs, path) => fs.readString(path)),
  pathCall("readBytes", [], (fs, path) => fs.readBytes(path)),
  pathCall("version", [], (fs, path) => fs.version(path)),
  pathCall("stream", [], (fs, path) => Stream.runCollect(fs.stream(path))),
  pathCall("lines", [], (fs, path) => Stream.runCollect(fs.lines(path))),
  pathCall("readLink", ["links"], (fs, path) => fs.readLink(path))
]

/** The calls that change something. All arguments except the path are valid if `source.txt` is a file. */
export const changingCalls: ReadonlyArray<PathCall> = [
  pathCall("write", ["write"], (fs, path) => fs.write(path, "new")),
  pathCall("writeBytes", ["write"], (fs, path) => fs.writeBytes(path, encodeUtf8("new"))),
  pathCall("sink", ["write"], (fs, path) => writeThroughSink(fs, path, ["new"])),
  pathCall("edit", ["write"], (fs, path) => fs.edit(path, { oldText: "a", newText: "b" })),
  pathCall("delete", ["delete"], (fs, path) => fs.delete(path)),
  pathCall("mkdir", ["write"], (fs, path) => fs.mkdir(path)),
  pathCall("copy", ["write"], (fs, path) => fs.copy(path, "copied.txt"), "from"),
  pathCall("copy", ["write"], (fs, path) => fs.copy("source.txt", path), "to"),
  pathCall("move", ["write", "delete"], (fs, path) => fs.move(path, "moved.txt"), "from"),
  pathCall("move", ["write", "delete"], (fs, path) => fs.move("source.txt", path), "to"),
  pathCall("symlink", ["write", "links"], (fs, path) => fs.symlink(path, "source.txt")),
  pathCall("setAttributes", ["write", "attributes"], (fs, path) => fs.setAttributes(path, { mode: 0o600 }))
]

export const pathCalls: ReadonlyArray<PathCall> = [...readingCalls, ...changingCalls]

export const supportedCalls = (
  calls: ReadonlyArray<PathCall>,
  availableAbilities: ReadonlySet<Ability>
): ReadonlyArray<PathCall> => calls.filter((call) => call.needs.every((ability) => availableAbilities.has(ability)))

export const collect = <A, E>(stream: Stream.Stream<A, E>): Effect.Effect<ReadonlyArray<A>, E> => Stream.runCollect(stream)

export const paths = (entries: ReadonlyArray<{ readonly path: string }>): ReadonlyArray<string> =>
  entries.map(({ path }) => path)

export const names = (entries: ReadonlyArray<{ readonly name: string }>): ReadonlyArray<string> =>
  entries.map(({ name }) => name)
