/**
 * Random programs of calls, and captures of a tree, to compare a filesystem with a reference. Each step takes a millisecond of
 * the test's clock, so that times can be compared too.
 */
import { Arbitrary, type DateTime, Effect, Exit, Schema, Stream } from "effect"
import * as Cause from "effect/Cause"
import { TestClock } from "effect/testing"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"

const Path = Schema.Literals([
  "a",
  "a/x",
  "a/y",
  "a/d",
  "a/d/z",
  "b",
  "b/x",
  "c",
  "d/e",
  "d/e/f",
  "l",
  "ld",
  "ld/z",
  "n",
  "A/X",
  "B",
  "C",
  "a/D/z"
])
const Text = Schema.Literals(["", "1", "two", "three hundred"])

const Step = Schema.TaggedUnion({
  write: { path: Path, text: Text, mode: Schema.Literals(["create", "overwrite", "append", "replace", "appendExisting"]) },
  sink: {
    path: Path,
    texts: Schema.Array(Text),
    mode: Schema.Literals(["create", "overwrite", "append"]),
    fails: Schema.Boolean
  },
  mkdir: { path: Path, parents: Schema.Boolean, existOk: Schema.Boolean },
  delete: { path: Path, recursive: Schema.Boolean },
  move: { from: Path, to: Path, overwrite: Schema.Boolean },
  copy: { from: Path, to: Path, overwrite: Schema.Boolean },
  symlink: { path: Path, target: Schema.Literals(["x", "../a/d", "d", "nowhere"]) },
  setMode: { path: Path, mode: Schema.Literals([0o600, 0o755]) },
  edit: { path: Path },
  readString: { path: Path },
  list: { path: Path },
  stat: { path: Path }
})
export type Step = typeof Step.Type

export const step = Arbitrary.schema(Step)
export const program = Arbitrary.array(step, { maxLength: 24 })

export const tree = {
  a: { x: "ax", y: "a longer text", d: { z: "adz", deep: { w: "w" } } },
  b: { x: "bx" },
  c: "content of c",
  l: { link: "a/x" },
  ld: { link: "a/d" }
}

const bytes = (text: string) => new TextEncoder().encode(text)

const call = (fs: Algebra, step: Step): Effect.Effect<unknown, unknown> => {
  switch (step._tag) {
    case "write":
      return fs.write(step.path, step.text, { mode: step.mode, version: true })
    case "sink":
      return Stream.fromIterable(step.texts.map(bytes)).pipe(
        Stream.concat(step.fails ? Stream.fail("the source") : Stream.empty),
        Stream.run(fs.sink(step.path, { mode: step.mode }))
      )
    case "mkdir":
      return fs.mkdir(step.path, { parents: step.parents, existOk: step.existOk })
    case "delete":
      return fs.delete(step.path, { recursive: step.recursive })
    case "move":
      return fs.move(step.from, step.to, { overwrite: step.overwrite })
    case "copy":
      return fs.copy(step.from, step.to, { overwrite: step.overwrite })
    case "symlink":
      return fs.symlink(step.path, step.target)
    case "setMode":
      return fs.setAttributes(step.path, { mode: step.mode })
    case "edit":
      return fs.edit(step.path, { oldText: "t", newText: "T", match: "first" })
    case "readString":
      return fs.readString(step.path)
    case "list":
      return fs.list(step.path)
    case "stat":
      return Effect.map(fs.stat(step.path), ({ isSymlink, kind, mode, sizeBytes }) => ({ isSymlink, kind, mode, sizeBytes }))
  }
}

const described = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "_tag" in error
    ? { tag: error._tag, why: "why" in error ? error.why : undefined, path: "path" in error ? error.path : undefined }
    : error

/** Returns the result or the error of a step. If the source of a sink fails too, either failure is allowed. */
export const run = (fs: Algebra, step: Step): Effect.Effect<unknown> =>
  Effect.map(Effect.exit(call(fs, step)), (exit) =>
    Exit.isSuccess(exit)
      ? { answer: exit.value }
      : { failure: step._tag === "sink" && step.fails ? "some" : described(Cause.squash(exit.cause)) }
  )

export const tick = TestClock.adjust(1)

const read = (port: Backend, path: FsPath.FsPath) =>
  Effect.scoped(
    Effect.flatMap(port.open(path), (handle) =>
      Effect.map(handle.read(0, handle.stat.sizeBytes), (content) => new TextDecoder().decode(content))
    )
  )

const millis = (time: DateTime.Utc | undefined) => time?.epochMilliseconds

/** Returns every entry that the port lists, with its content. Includes hidden entries of running writes. */
export const capture = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Record<string, unknown>, Fault> {
  const out: Record<string, unknown> = {}
  const stack = [FsPath.root]
  while (stack.length > 0) {
    const here = stack.pop()!
    for (const child of yield* port.list(here)) {
      const path = FsPath.join(here, child.name)
      const stat = yield* port.stat(path)
      out[path] =
        child.kind === "file"
          ? { text: yield* read(port, path), mode: stat?.mode, at: millis(stat?.modifiedAt) }
          : child.kind === "symlink"
            ? { link: yield* port.links!.read(path) }
            : { kind: child.kind, mode: stat?.mode }
      if (child.kind === "directory") stack.push(path)
    }
  }
  return Object.fromEntries(Object.entries(out).sort(([a], [b]) => FsPath.compare(a, b)))
})

/** Removes the times. A commit renews the times of links and keeps the times of unchanged lower files. */
export const timeless = (captured: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(captured).map(([path, entry]) => [path, { ...(entry as object), at: undefined }]))
