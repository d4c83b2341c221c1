/** The calls that take a path, as data, so that a law can cover all of them. */
import type * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FsError, Unsupported } from "../model/FsError.ts"
import type { Ability } from "./Law.ts"

export interface PathCall {
  readonly operation: string
  readonly parameter?: string
  readonly run: (fs: Algebra, path: string) => Effect.Effect<unknown, FsError | Unsupported>
  readonly needs: ReadonlyArray<Ability>
}

export const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const row = (operation: string, needs: ReadonlyArray<Ability>, run: PathCall["run"], parameter?: string): PathCall => ({
  operation,
  needs,
  run,
  ...(parameter !== undefined && { parameter })
})

/** The calls that only read. `exists` is excluded, because it never fails for a path. */
export const readingCalls: ReadonlyArray<PathCall> = [
  row("stat", [], (fs, path) => fs.stat(path)),
  row("list", [], (fs, path) => fs.list(path)),
  row("walk", [], (fs, path) => Stream.runCollect(fs.walk(path))),
  row("glob", [], (fs, path) => fs.glob("*", { path })),
  row("globStream", [], (fs, path) => Stream.runCollect(fs.globStream("*", { path }))),
  row("grep", [], (fs, path) => fs.grep("x", { path })),
  row("grepStream", [], (fs, path) => Stream.runCollect(fs.grepStream("x", { path }))),
  row("read", [], (fs, path) => fs.read(path)),
  row("readString", [], (fs, path) => fs.readString(path)),
  row("readBytes", [], (fs, path) => fs.readBytes(path)),
  row("version", [], (fs, path) => fs.version(path)),
  row("stream", [], (fs, path) => Stream.runCollect(fs.stream(path))),
  row("lines", [], (fs, path) => Stream.runCollect(fs.lines(path))),
  row("readLink", ["links"], (fs, path) => fs.readLink(path))
]

/** The calls that change something, with valid arguments except for the path. `source.txt` must be a file. */
export const changingCalls: ReadonlyArray<PathCall> = [
  row("write", ["write"], (fs, path) => fs.write(path, "new")),
  row("writeBytes", ["write"], (fs, path) => fs.writeBytes(path, utf8("new"))),
  row("sink", ["write"], (fs, path) => Stream.run(Stream.make(utf8("new")), fs.sink(path))),
  row("edit", ["write"], (fs, path) => fs.edit(path, { oldText: "a", newText: "b" })),
  row("delete", ["delete"], (fs, path) => fs.delete(path)),
  row("mkdir", ["write"], (fs, path) => fs.mkdir(path)),
  row("copy", ["write"], (fs, path) => fs.copy(path, "copied.txt"), "from"),
  row("copy", ["write"], (fs, path) => fs.copy("source.txt", path), "to"),
  row("move", ["write", "delete"], (fs, path) => fs.move(path, "moved.txt"), "from"),
  row("move", ["write", "delete"], (fs, path) => fs.move("source.txt", path), "to"),
  row("symlink", ["write", "links"], (fs, path) => fs.symlink(path, "source.txt")),
  row("setAttributes", ["write", "attributes"], (fs, path) => fs.setAttributes(path, { mode: 0o600 }))
]

export const pathCalls: ReadonlyArray<PathCall> = [...readingCalls, ...changingCalls]

export const possible = (calls: ReadonlyArray<PathCall>, able: ReadonlySet<Ability>): ReadonlyArray<PathCall> =>
  calls.filter((call) => call.needs.every((ability) => able.has(ability)))

export const collect = <A, E>(stream: Stream.Stream<A, E>): Effect.Effect<ReadonlyArray<A>, E> => Stream.runCollect(stream)

export const paths = (entries: ReadonlyArray<{ readonly path: string }>): ReadonlyArray<string> =>
  entries.map(({ path }) => path)
