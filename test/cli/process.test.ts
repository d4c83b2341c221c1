import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { watch } from "node:fs"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import { commandLine } from "../bundled.ts"

const bin = commandLine()

/** The program as a shell command. */
const program = `'${process.execPath}' '${bin}'`

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

const env = { PATH: process.env["PATH"], HOME: tmpdir(), TMPDIR: tmpdir() }

const start = (command: string, args: ReadonlyArray<string>, cwd: string) => {
  const child = spawn(command, args, { cwd, env })
  const ended = new Promise<Ended>((resolve, reject) => {
    let out = ""
    let err = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal, out, err }))
  })
  return { child, ended }
}

const run = (cwd: string, args: ReadonlyArray<string>, input = "") =>
  Effect.promise(() => {
    const { child, ended } = start(process.execPath, [bin, ...args], cwd)
    child.stdin.end(input)
    return ended
  })

const sh = (cwd: string, script: string) =>
  Effect.promise(() => {
    const { child, ended } = start("bash", ["-c", `set -o pipefail; ${script}; echo "codes \${PIPESTATUS[*]}"`], cwd)
    child.stdin.end()
    return ended
  })

const directory = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const root = await mkdtemp(join(tmpdir(), "fs-algebra-cli-"))
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(root, path)), { recursive: true })
        await writeFile(join(root, path), text)
      }
      return root
    }),
    (root) => Effect.promise(() => rm(root, { recursive: true, force: true }))
  )

/** Returns every path below the root with its content. */
const fingerprint = (root: string) =>
  Effect.promise(async () => {
    const entries = await readdir(root, { recursive: true, withFileTypes: true })
    const lines = entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name)
      return `${path} ${
        entry.isFile()
          ? createHash("sha256")
              .update(await readFile(path))
              .digest("hex")
          : "-"
      }`
    })
    return (await Promise.all(lines)).sort()
  })

const project = {
  "README.md": "# A project\n\nWith a line to change.\nTODO: more\n",
  "src/main.ts": "export const a = 1\n",
  "src/other.ts": "export const b = 2 // TODO\n",
  ".gitignore": "out\n",
  "out/built.js": "TODO\n"
}

describe("the program", () => {
  it.live("shows the tour without arguments, changes nothing and prints ASCII only", () =>
    Effect.gen(function* () {
      const root = yield* directory(project)
      const before = yield* fingerprint(root)
      const ran = yield* run(root, [])
      assert.strictEqual(ran.code, 0, ran.err)
      assert.strictEqual(ran.err, "")
      assert.match(ran.out, /^[\n\x20-\x7e]*$/)
      for (const said of [
        "4 files",
        "fs.glob",
        "fs.grep",
        "fs.edit",
        "Conflict",
        "NotFound",
        "true: the file on disk is unchanged",
        "--help"
      ]) {
        assert.include(ran.out, said)
      }
      assert.include(ran.out, "-# A project\n   +# A project (edited)")
      assert.isBelow(ran.out.split("\n").length, 80)
      assert.deepStrictEqual(yield* fingerprint(root), before)
    }).pipe(Effect.scoped)
  )
  it.live("shows the tour in an empty directory", () =>
    Effect.gen(function* () {
      const root = yield* directory({})
      const ran = yield* run(root, ["tour"])
      assert.strictEqual(ran.code, 0, ran.err)
      assert.include(ran.out, "four files of its own")
      assert.include(ran.out, "Conflict")
      assert.deepStrictEqual(yield* fingerprint(root), [])
    }).pipe(Effect.scoped)
  )
  it.live("prints the tour as JSON, one step per line", () =>
    Effect.gen(function* () {
      const root = yield* directory(project)
      const { out } = yield* run(root, ["tour", "--json"])
      const steps = out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { step: number; code: string; millis: number })
      assert.deepStrictEqual(
        steps.map(({ step }) => step),
        steps.map((_, index) => index + 1)
      )
      assert.isAtLeast(steps.length, 8)
    }).pipe(Effect.scoped)
  )
  it.live("ends quietly when the reader of its output has exited", () =>
    Effect.gen(function* () {
      const root = yield* directory({ "big.txt": "needle in a line of some length\n".repeat(200_000) })
      const ran = yield* sh(root, `${program} grep needle | head -n 1`)
      assert.strictEqual(ran.out, "big.txt:1:needle in a line of some length\ncodes 0 0\n")
      assert.strictEqual(ran.err, "")
    }).pipe(Effect.scoped)
  )
  it.live("writes bytes from a pipe, and prints these bytes unchanged", () =>
    Effect.gen(function* () {
      const root = yield* directory({})
      const ran = yield* sh(
        root,
        `head -c 300000 /dev/urandom | tee raw | ${program} write a/b.bin && ${program} cat a/b.bin | cmp - raw`
      )
      assert.match(ran.out, /^Wrote a\/b\.bin, 293 KiB\nversion [0-9a-f]{64}\ncodes 0 0\n$/)
      assert.strictEqual(ran.err, "")
    }).pipe(Effect.scoped)
  )
  it.live("exits with the code of its failure, and prints the failure to standard error", () =>
    Effect.gen(function* () {
      const root = yield* directory(project)
      const cases = [
        [["ls", "--root", "nope"], 3, "--root DIR"],
        [["ls", "--root", "README.md"], 7, "--root DIR"],
        [["cat", "REAMDE.md"], 3, "Did you mean README.md?"],
        [["cat", "../x"], 2, "--root"],
        [["grep", "("], 2, "--literal"],
        [["glob", "a/../b"], 2, "pattern"],
        [["grep", "nowhere to be found"], 1, ""],
        [["write", "README.md", "--text", "x", "--mode", "create"], 4, "--mode overwrite"],
        [["rm", "src"], 7, "--recursive"],
        [["frobnicate"], 2, "--help"]
      ] as const
      const results = yield* Effect.forEach(cases, ([args]) => run(root, args), { concurrency: 2 })
      for (const [index, [args, code, said]] of cases.entries()) {
        const ran = results[index]!
        assert.strictEqual(ran.code, code, `${args.join(" ")}\n${ran.err}`)
        assert.strictEqual(ran.out, "")
        assert.include(ran.err, said)
      }
    }).pipe(Effect.scoped)
  )
  it.live("reports errors as JSON with --json", () =>
    Effect.gen(function* () {
      const root = yield* directory(project)
      const ran = yield* run(root, ["stat", "nope", "--json"])
      assert.strictEqual(ran.code, 3)
      assert.deepInclude(JSON.parse(ran.err) as object, { error: { _tag: "NotFound", operation: "stat", path: "nope" } })
    }).pipe(Effect.scoped)
  )
  it.live("changes only a copy with --backend memory", () =>
    Effect.gen(function* () {
      const root = yield* directory(project)
      const before = yield* fingerprint(root)
      const ran = yield* run(root, ["rm", "-r", "src", "--backend", "memory"])
      assert.deepStrictEqual([ran.code, ran.out], [0, "Removed src, 2 files and 1 directory\n"])
      assert.deepStrictEqual(yield* fingerprint(root), before)
    }).pipe(Effect.scoped)
  )
  it.live("exits with code 130 after an interruption during a write, and keeps only the old file", () =>
    Effect.gen(function* () {
      const root = yield* directory({ "f.txt": "old" })
      const ended = yield* Effect.promise(async () => {
        const staged = new Promise<void>((resolve) => {
          const watcher = watch(root, () => {
            watcher.close()
            resolve()
          })
        })
        const { child, ended } = start(process.execPath, [bin, "write", "f.txt"], root)
        child.stdin.write("the first part of something new")
        await staged
        child.kill("SIGINT")
        return await ended
      })
      assert.deepStrictEqual([ended.code, ended.signal], [130, null])
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(root)), ["f.txt"])
      assert.strictEqual(yield* Effect.promise(() => readFile(join(root, "f.txt"), "utf8")), "old")
    }).pipe(Effect.scoped)
  )
})

describe("bash completions", () => {
  it.live("complete commands and flags", () =>
    Effect.gen(function* () {
      const root = yield* directory({})
      const complete = (words: string) => `
        COMP_LINE='${words}' COMP_POINT=${words.length} COMP_WORDS=(${words} ${words.endsWith(" ") ? "''" : ""})
        COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
        $(complete -p fs-algebra | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        echo "\${COMPREPLY[*]}"`
      const ran = yield* sh(
        root,
        `source <(${program} --completions bash); ${complete("fs-algebra gr")}; ${complete("fs-algebra grep --ign")}`
      )
      assert.include(ran.out, "grep")
      assert.include(ran.out, "--ignore-case")
    }).pipe(Effect.scoped)
  )
})
