/**
 * Scripts that a client runs with a server over any transport, through the official SDK. Results are checked with
 * node:fs and by counting.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { assert } from "@effect/vitest"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { commandLine } from "../bundled.ts"

export const bin = commandLine()

export interface Ground {
  readonly top: string
  readonly root: string
  /** The environment of the server's process, which keeps it away from the user's files. */
  readonly env: Record<string, string>
}

const base = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

/** Creates a directory with the files that the scripts need. */
export const ground = (): Ground & { readonly remove: () => void } => {
  const top = Fs.mkdtempSync(join(Fs.realpathSync(base), "fs-algebra-mcp-"))
  const root = join(top, "root")
  Fs.mkdirSync(join(root, "logs"), { recursive: true })
  Fs.writeFileSync(join(root, "long.txt"), longLines.map((line) => `${line}\n`).join(""))
  Fs.writeFileSync(join(root, "crlf.txt"), "a\r\nb\r\nc\r\n")
  Fs.writeFileSync(join(root, "shared.txt"), "first\nsecond\nthird\n")
  Fs.writeFileSync(join(top, "outside.txt"), "not yours\n")
  for (let i = 0; i < 5; i++) Fs.writeFileSync(join(root, "logs", `${i}.log`), "needle\nhay\n".repeat(7))
  const cache = join(tmpdir(), "node-compile-cache")
  const env = { PATH: process.env["PATH"] ?? "", HOME: top, XDG_STATE_HOME: join(top, "state"), NODE_COMPILE_CACHE: cache }
  return { top, root, env, remove: () => Fs.rmSync(top, { recursive: true, force: true }) }
}

export const longLines = Array.from({ length: 5000 }, (_, i) => `line ${i} of many`)

interface Answer {
  readonly text: string
  readonly isError: boolean
}

export const call = async (client: Client, name: string, args: Record<string, unknown>): Promise<Answer> => {
  const { content, isError } = await client.callTool({ name, arguments: args })
  const [{ text }] = content as [{ text: string }]
  return { text, isError: isError === true }
}

/** Returns the version that stat shows. */
export const versionOf = async (client: Client, path: string): Promise<string> =>
  /^version (\w+)$/m.exec((await call(client, "stat", { path })).text)![1]!

export const scripts: Readonly<Record<string, (client: Client, root: string) => Promise<void>>> = {
  "reads a long file to its end by following the hints, each line once": async (client) => {
    const lines: Array<string> = []
    for (let offset: string | undefined = "0"; offset !== undefined;) {
      const { text } = await call(client, "read_file", { path: "long.txt", offset: Number(offset) })
      lines.push(...[...text.matchAll(/^ *\d+ \| (.*)$/gm)].map((match) => match[1]!))
      offset = /continue with offset=(\d+)/.exec(text)?.[1]
    }
    assert.deepStrictEqual(lines, longLines)
  },

  "edits a file and keeps its line endings": async (client, root) => {
    const { isError } = await call(client, "edit_file", { path: "crlf.txt", old_string: "b", new_string: "beta" })
    assert.isFalse(isError)
    assert.strictEqual(Fs.readFileSync(join(root, "crlf.txt"), "utf8"), "a\r\nbeta\r\nc\r\n")
  },

  "gets a conflict with the changed lines, and can edit after reading again": async (client, root) => {
    const path = "shared.txt"
    await call(client, "read_file", { path })
    const version = await versionOf(client, path)
    Fs.writeFileSync(join(root, path), "first\nsomebody else was here\nthird\n")
    const edit = { path, old_string: "third", new_string: "3rd" }
    const conflict = await call(client, "edit_file", { ...edit, if_match: version })
    assert.isTrue(conflict.isError)
    assert.include(conflict.text, "line 2")
    assert.strictEqual(Fs.readFileSync(join(root, path), "utf8"), "first\nsomebody else was here\nthird\n")
    await call(client, "read_file", { path })
    const done = await call(client, "edit_file", { ...edit, if_match: await versionOf(client, path) })
    assert.isFalse(done.isError)
    assert.strictEqual(Fs.readFileSync(join(root, path), "utf8"), "first\nsomebody else was here\n3rd\n")
  },

  "continues a truncated search, and gets every match once": async (client) => {
    const places: Array<string> = []
    for (let after: string | undefined = ""; after !== undefined;) {
      const { text } = await call(client, "grep", { pattern: "needle", path: "logs", max_matches: 4, after })
      const lines = text.split("\n")
      let path = ""
      for (const line of lines.slice(0, -1)) {
        const number = /^ *(\d+) \| /.exec(line)?.[1]
        if (number === undefined) path = line
        else places.push(`${path}:${number}`)
      }
      after = /continue with after="(.*)"$/.exec(lines.at(-1)!)?.[1]
    }
    const expected = Array.from({ length: 5 }, (_, i) => [1, 3, 5, 7, 9, 11, 13].map((line) => `logs/${i}.log:${line}`)).flat()
    assert.deepStrictEqual(places, expected)
  },

  "undoes its changes with a snapshot": async (client, root) => {
    const { text } = await call(client, "snapshot", { tag: "before" })
    const id = /^Took snapshot (\S+):/.exec(text)?.[1]
    assert.isDefined(id, text)
    await call(client, "rm", { path: "logs" })
    assert.isFalse(Fs.existsSync(join(root, "logs")))
    const restored = await call(client, "restore", { snapshot_id: id })
    assert.isFalse(restored.isError, restored.text)
    assert.strictEqual(Fs.readFileSync(join(root, "logs", "3.log"), "utf8"), "needle\nhay\n".repeat(7))
  },

  "cannot read outside of the root": async (client) => {
    for (const path of ["../outside.txt", "/etc/passwd", "logs/../../outside.txt"]) {
      const { isError, text } = await call(client, "read_file", { path })
      assert.isTrue(isError, path)
      assert.notInclude(text, "not yours")
      assert.notInclude(text, "root:")
    }
  },

  "may use absolute paths below the root": async (client, root) => {
    assert.isFalse((await call(client, "read_file", { path: join(root, "crlf.txt") })).isError)
  }
}
