/** Trees with unusual names and contents, and a common form in which trees of all backends can be compared. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"

/** The kind, the mode, and the SHA-256 of the content or the target of a link, for each path. */
export type Shape = Readonly<Record<string, readonly [kind: string, mode: number | undefined, content: string]>>

const sha = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

export const shapeOf = Effect.fnUntraced(function* (fs: Algebra) {
  const out: Record<string, readonly [string, number | undefined, string]> = {}
  for (const { kind, path } of yield* Stream.runCollect(fs.walk())) {
    if (kind === "symlink") {
      out[path] = [kind, undefined, yield* fs.readLink(path)]
      continue
    }
    const { mode } = yield* fs.stat(path)
    const content = kind === "file" ? sha(Buffer.concat(yield* Stream.runCollect(fs.stream(path)))) : ""
    out[path] = [kind, mode, content]
  }
  return out as Shape
})

/** Returns the shape of a directory on disk, read by Node. */
export const shapeOnDisk = (top: string): Shape => {
  const out: Record<string, readonly [string, number | undefined, string]> = {}
  const visit = (at: string, path: string): void => {
    for (const name of Fs.readdirSync(at)) {
      const child = join(at, name)
      const key = path === "" ? name : `${path}/${name}`
      const stats = Fs.lstatSync(child)
      if (stats.isSymbolicLink()) out[key] = ["symlink", undefined, Fs.readlinkSync(child)]
      else if (stats.isDirectory()) {
        out[key] = ["directory", stats.mode & 0o777, ""]
        visit(child, key)
      } else out[key] = ["file", stats.mode & 0o777, sha(Fs.readFileSync(child))]
    }
  }
  visit(top, "")
  return out
}

export const withoutModes = (shape: Shape): Shape =>
  Object.fromEntries(Object.entries(shape).map(([path, [kind, , content]]) => [path, [kind, undefined, content]]))

/** Returns incompressible bytes, which are the same in each run. */
export const noise = (length: number): Uint8Array =>
  new Uint8Array(createHash("shake256", { outputLength: length }).update("noise").digest())

/**
 * Creates empty, large, compressible and incompressible files, unusual names, modes, and links to files, to directories and to
 * nothing.
 */
export const plantAwkward = Effect.fnUntraced(function* (fs: Algebra) {
  yield* fs.write("README.md", "# read me\r\n\r\nCRLF stays\r\n")
  yield* fs.write("empty.txt", "")
  yield* fs.write("one", "1")
  yield* fs.write(".gitignore", "*\n")
  yield* fs.write(".git/config", "[core]\n")
  yield* fs.write("nested/.git/HEAD", "ref: refs/heads/main\n")
  yield* fs.write("-dash/--rf", "-")
  yield* fs.write("spaces in  names/ a ", "space")
  yield* fs.write("日本/語/😀", "unicode")
  yield* fs.write("e\u0301", "decomposed")
  yield* fs.write("'$(quote)' *?[", "shell")
  yield* fs.write("a/b/c/d/e/f/g/h", "deep")
  yield* fs.write("a.b", "stands between a and what is in it")
  yield* fs.writeBytes(
    "binary",
    Uint8Array.from({ length: 256 }, (_, i) => i)
  )
  yield* fs.writeBytes("large/packable", new Uint8Array(Buffer.alloc(1_500_001, "abcdefgh\n")))
  yield* fs.writeBytes("large/noise", noise(700_001))
  yield* fs.writeBytes("large/limit", noise(256 * 1024))
  yield* fs.writeBytes("large/above", noise(256 * 1024 + 1))
  yield* fs.mkdir("nothing/in/here")
  yield* fs.symlink("links/file", "../one")
  yield* fs.symlink("links/directory", "../a/b")
  yield* fs.symlink("links/nowhere", "not there")
  yield* fs.symlink("links/日本", "../日本/語/😀")
  for (const [path, mode] of [
    ["one", 0o600],
    ["binary", 0o755],
    ["large/noise", 0o444],
    ["empty.txt", 0o640],
    ["a/b", 0o700],
    ["nothing/in/here", 0o711],
    ["nothing", 0o750]
  ] as const) {
    yield* fs.setAttributes(path, { mode })
  }
})

/** The number of files and links that `plantAwkward` makes. */
export const awkwardFiles = 22

const demanded = process.env["FS_ALGEBRA_NO_SKIP"] !== undefined

const runs = (command: string): boolean => {
  try {
    execFileSync(command, ["--help"], { stdio: "ignore" })
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT"
  }
}

/** Tests whether the programs are installed, and logs the skipped tests if not. */
export const needs = (what: string, ...commands: ReadonlyArray<string>): boolean => {
  const missing = commands.filter((command) => !runs(command))
  if (missing.length === 0 || demanded) return true
  console.log(`skipped: ${what}, for which ${missing.join(" and ")} must be there; apt-get install ${missing.join(" ")}`)
  return false
}

/** Runs a command in an environment in which names are UTF-8. */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly input?: string } = {}
): string =>
  execFileSync(command, args, {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8", PYTHONUTF8: "1", HOME: "/nonexistent" },
    ...options
  })
