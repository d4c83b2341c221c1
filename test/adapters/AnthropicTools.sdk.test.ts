import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory"
import { BetaLocalFilesystemMemoryTool } from "@anthropic-ai/sdk/tools/memory/node"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AnthropicTools from "../../src/adapters/AnthropicTools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { ask } from "./anthropicRequests.ts"
import { randomOf } from "./random.ts"

/** Replaces the sizes of directories, which depend on the backend. */
const withoutDirectorySizes = (answer: string): string =>
  answer.replace(/^(Here're the files [^\n]*\n)[^\t]*/, "$1SIZE").replaceAll(/^[\d.]+[BKMG]\t(\S+\/)$/gm, "SIZE\t$1")

const contentsBelow = (directory: string, prefix = ""): Record<string, string> =>
  Object.assign(
    {},
    ...readdirSync(directory).map((entry) => {
      const path = join(directory, entry)
      return statSync(path).isDirectory()
        ? { [`${prefix}${entry}/`]: "", ...contentsBelow(path, `${prefix}${entry}/`) }
        : { [`${prefix}${entry}`]: readFileSync(path, "utf8") }
    })
  ) as Record<string, string>

describe("AnthropicTools.memory and the SDK's own implementation", () => {
  const names = ["a.md", "b.txt", "d1", "d2", "d1/a.md", "d1/d2", "d1/d2/c.md", "d2/d1/deep.md", ".hidden", "node_modules/x"]
  const texts = ["one\ntwo\nthree\n", "", "tea", "x\n\ny", "$& $1\n", "ä😀\n", "one\n".repeat(400)]
  const words = ["one", "two", "tea", "absent", "x", "$&", "ä", "three\n".trim()]

  const requestOf = (random: (limit: number) => number): Record<string, unknown> => {
    const pick = <A>(list: ReadonlyArray<A>): A => list[random(list.length)]!
    const path = (): string =>
      random(12) === 0
        ? pick(["/memories", "/memories/", "/memories/../x", "/etc/passwd", "a.md", ""])
        : `/memories/${pick(names)}`
    switch (random(7)) {
      case 0:
        return { command: "view", path: path(), ...(random(3) === 0 && { view_range: [random(4), pick([-1, 0, 1, 2, 9])] }) }
      case 1:
      case 2:
        return { command: "create", path: path(), file_text: pick(texts) }
      case 3:
        return { command: "str_replace", path: path(), old_str: pick(words), new_str: pick([...words, "", "a\nb"]) }
      case 4:
        return {
          command: "insert",
          path: path(),
          insert_line: random(7) - 1,
          insert_text: pick(["new", "new\n", "a\nb\n", ""])
        }
      case 5:
        return random(3) === 0 ? { command: "delete", path: path() } : { command: "view", path: "/memories" }
      default:
        return { command: "rename", old_path: path(), new_path: path() }
    }
  }

  /** Tests for the cases that end a session: the SDK returns an error of Node, or leaves directories behind after an error. */
  const differs = (theirs: string, { command, new_path: to, old_path: from }: Record<string, unknown>): boolean =>
    /E[A-Z]{3,}|no longer exists/.test(theirs) ||
    (command === "rename" && (String(to).startsWith(`${String(from)}/`) || theirs.includes("does not exist")))

  it.effect("return the same answers and leave the same files in random sessions, up to a case in which the SDK errs", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 40; seed++) {
        const directory = mkdtempSync(join(tmpdir(), "memory-"))
        yield* Effect.gen(function* () {
          const ours = yield* AnthropicTools.memory()
          const theirs = betaMemoryTool(yield* Effect.promise(() => BetaLocalFilesystemMemoryTool.init(directory)))
          yield* (yield* Filesystem).mkdir("memories")
          const random = randomOf(seed)
          const log: Array<string> = []
          for (let step = 0; step < 40; step++) {
            const request = requestOf(random)
            const expected = withoutDirectorySizes(yield* ask(theirs, request))
            if (differs(expected, request)) break
            const actual = withoutDirectorySizes(yield* ask(ours, request))
            log.push(`${JSON.stringify(request)}\n  ${expected}`)
            assert.strictEqual(actual, expected, `seed ${seed}:\n${log.join("\n")}`)
          }
          const fs = yield* Filesystem
          const found = yield* Stream.runCollect(fs.walk("memories"))
          const contents: Record<string, string> = {}
          for (const { isFile, path } of found)
            if (isFile) contents[path.slice("memories/".length)] = yield* fs.readString(path)
          const expected = Object.entries(contentsBelow(join(directory, "memories"))).filter(([path]) => !path.endsWith("/"))
          assert.deepStrictEqual(contents, Object.fromEntries(expected), `seed ${seed}:\n${log.join("\n")}`)
        }).pipe(
          Effect.provide(InMemory.layer()),
          Effect.ensuring(Effect.sync(() => rmSync(directory, { recursive: true, force: true })))
        )
      }
    })
  )
})
