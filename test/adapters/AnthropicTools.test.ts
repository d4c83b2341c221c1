import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AnthropicTools from "../../src/adapters/AnthropicTools.ts"
import * as Policy from "../../src/agent/Policy.ts"
import { ToolEvents, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { ask } from "./anthropicRequests.ts"
import { randomOf } from "./random.ts"

const files = (tree: InMemory.Tree = {}) => InMemory.layer({ tree })

const primes = "def is_prime(n):\n    return n > 1\n\nprint(is_prime(2))\n"

const tree: InMemory.Tree = {
  "primes.py": primes,
  "twice.txt": "one\ntwo\none\n",
  "crlf.txt": "a\r\nb\r\n",
  "empty.txt": "",
  "bom.txt": "\uFEFFa\n",
  "data.bin": Uint8Array.of(0xff, 0xfe, 0x00, 0x80),
  src: { ".hidden": "x", lib: { deep: { "far.py": "x" }, "near.py": "x" }, "main.py": "x" }
}

const name = "str_replace_based_edit_tool"

/** Requests to the text editor tool and the answers that they must get, in this order. */
const editorTable: ReadonlyArray<readonly [title: string, input: unknown, answer: string]> = [
  [
    "a view numbers the lines",
    { command: "view", path: "primes.py" },
    "1: def is_prime(n):\n2:     return n > 1\n3: \n4: print(is_prime(2))"
  ],
  [
    "a view of a range numbers its lines",
    { command: "view", path: "/primes.py", view_range: [2, 3] },
    "2:     return n > 1\n3: "
  ],
  ["a range to -1 ends with the file", { command: "view", path: "primes.py", view_range: [4, -1] }, "4: print(is_prime(2))"],
  ["a view of an empty file has one empty line", { command: "view", path: "empty.txt" }, "1: "],
  ["a view of a CRLF file shows no CR", { command: "view", path: "crlf.txt" }, "1: a\n2: b"],
  [
    "a view of a directory lists two levels without hidden entries",
    { command: "view", path: "src/" },
    "Here's the files and directories up to 2 levels deep in src/, excluding hidden items:\nsrc\nsrc/lib\nsrc/lib/deep\nsrc/lib/near.py\nsrc/main.py\n"
  ],
  ["a view of a missing file fails", { command: "view", path: "none.py" }, "error: Error: File not found"],
  ["a view below a file fails", { command: "view", path: "primes.py/x" }, "error: Error: File not found"],
  [
    "a range before the first line fails",
    { command: "view", path: "primes.py", view_range: [0, 2] },
    "error: Error: Invalid `view_range`: [0, 2]. Its first element `0` should be within the range of lines of the file: [1, 4]"
  ],
  [
    "a range after the last line fails",
    { command: "view", path: "primes.py", view_range: [1, 9] },
    "error: Error: Invalid `view_range`: [1, 9]. Its second element `9` should be smaller than the number of lines in the file: `4`"
  ],
  [
    "a range that ends before it begins fails",
    { command: "view", path: "primes.py", view_range: [3, 2] },
    "error: Error: Invalid `view_range`: [3, 2]. Its second element `2` should be larger or equal than its first `3`"
  ],
  [
    "a range of a directory fails",
    { command: "view", path: "src", view_range: [1, 2] },
    "error: Error: The `view_range` parameter is not allowed when `path` points to a directory."
  ],
  [
    "a view of bytes fails",
    { command: "view", path: "data.bin" },
    "error: Error: The file data.bin is not UTF-8 text (4 bytes)."
  ],
  [
    "a replacement of one occurrence succeeds",
    { command: "str_replace", path: "primes.py", old_str: "n > 1", new_str: "n > 1 and n != 4" },
    "Successfully replaced text at exactly one location."
  ],
  [
    "a replacement of two occurrences fails",
    { command: "str_replace", path: "twice.txt", old_str: "one", new_str: "x" },
    "error: Error: Found 2 matches for replacement text. Please provide more context to make a unique match."
  ],
  [
    "a replacement of an absent text fails",
    { command: "str_replace", path: "twice.txt", old_str: "three", new_str: "x" },
    "error: Error: No match found for replacement. Please check your text and try again."
  ],
  [
    "a replacement of an empty text fails",
    { command: "str_replace", path: "twice.txt", old_str: "", new_str: "x" },
    "error: Error: No match found for replacement. Please check your text and try again."
  ],
  [
    "a replacement without a new text deletes",
    { command: "str_replace", path: "twice.txt", old_str: "two\n" },
    "Successfully replaced text at exactly one location."
  ],
  [
    "a text with LF is found in a CRLF file",
    { command: "str_replace", path: "crlf.txt", old_str: "a\nb", new_str: "c\nd" },
    "Successfully replaced text at exactly one location."
  ],
  [
    "a replacement in a missing file fails",
    { command: "str_replace", path: "none.py", old_str: "a", new_str: "b" },
    "error: Error: File not found"
  ],
  [
    "a replacement in a directory fails",
    { command: "str_replace", path: "src", old_str: "a", new_str: "b" },
    "error: Error: The path src is a directory and only the `view` command can be used on directories"
  ],
  [
    "a new file is created with its directories",
    { command: "create", path: "/new/a.py", file_text: "x\n" },
    "File created successfully at: /new/a.py"
  ],
  [
    "a file that exists is not created again",
    { command: "create", path: "primes.py", file_text: "x\n" },
    "error: Error: File already exists at: primes.py. Cannot overwrite files using command `create`."
  ],
  [
    "a directory is not replaced by a file",
    { command: "create", path: "src", file_text: "x\n" },
    "error: Error: File already exists at: src. Cannot overwrite files using command `create`."
  ],
  [
    "an insertion at 0 goes first",
    { command: "insert", path: "new/a.py", insert_line: 0, insert_text: "first\n" },
    "The file new/a.py has been edited."
  ],
  [
    "an insertion keeps CRLF",
    { command: "insert", path: "crlf.txt", insert_line: 1, insert_text: "e\nf" },
    "The file crlf.txt has been edited."
  ],
  [
    "an insertion keeps the byte order mark",
    { command: "insert", path: "bom.txt", insert_line: 1, insert_text: "b" },
    "The file bom.txt has been edited."
  ],
  [
    "an insertion after the end fails",
    { command: "insert", path: "new/a.py", insert_line: 4, insert_text: "x" },
    "error: Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the file: [0, 3]"
  ],
  [
    "an insertion before the beginning fails",
    { command: "insert", path: "new/a.py", insert_line: -1, insert_text: "x" },
    "error: Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the file: [0, 3]"
  ],
  [
    "an unknown command fails",
    { command: "undo_edit", path: "primes.py" },
    `error: Error: Unrecognized command undo_edit. The allowed commands for the ${name} tool are: view, create, str_replace, insert`
  ],
  [
    "a property of Object is an unknown command",
    { command: "constructor", path: "a" },
    `error: Error: Unrecognized command constructor. The allowed commands for the ${name} tool are: view, create, str_replace, insert`
  ],
  [
    "a request without a command fails",
    { path: "primes.py" },
    `error: Error: Unrecognized command undefined. The allowed commands for the ${name} tool are: view, create, str_replace, insert`
  ],
  [
    "a request that is a list fails",
    ["view"],
    `error: Error: Unrecognized command undefined. The allowed commands for the ${name} tool are: view, create, str_replace, insert`
  ],
  [
    "a request that is null fails",
    null,
    `error: Error: Unrecognized command undefined. The allowed commands for the ${name} tool are: view, create, str_replace, insert`
  ],
  ["a request without a path fails", { command: "view" }, "error: Error: Parameter `path` is required for command: view"],
  [
    "a request without its text fails",
    { command: "create", path: "b.py" },
    "error: Error: Parameter `file_text` is required for command: create"
  ],
  [
    "a text of the wrong type fails",
    { command: "create", path: "b.py", file_text: 7 },
    "error: Error: Invalid `file_text`. It should be a string."
  ],
  [
    "a line that is not whole fails",
    { command: "insert", path: "b.py", insert_line: 0.5, insert_text: "x" },
    "error: Error: Invalid `insert_line`. It should be an integer."
  ],
  [
    "a range of three lines fails",
    { command: "view", path: "primes.py", view_range: [1, 2, 3] },
    "error: Error: Invalid `view_range`. It should be a list of two integers."
  ],
  ["an unknown parameter is ignored", { command: "view", path: "empty.txt", colour: "red" }, "1: "],
  ["a null parameter is missing", { command: "view", path: "empty.txt", view_range: null }, "1: "]
]

describe("AnthropicTools.textEditor", () => {
  it.effect("answers typical requests as the provider specifies", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor()
      assert.deepStrictEqual([editor.type, editor.name], ["text_editor_20250728", name])
      for (const [title, input, answer] of editorTable) assert.strictEqual(yield* ask(editor, input), answer, title)
      const fs = yield* Filesystem
      assert.strictEqual(yield* fs.readString("primes.py"), primes.replace("n > 1", "n > 1 and n != 4"))
      assert.strictEqual(yield* fs.readString("twice.txt"), "one\none\n")
      assert.strictEqual(yield* fs.readString("crlf.txt"), "c\r\ne\r\nf\r\nd\r\n")
      assert.strictEqual(yield* fs.readString("bom.txt"), "\uFEFFa\nb\n")
      assert.strictEqual(yield* fs.readString("new/a.py"), "first\nx\n")
    }).pipe(Effect.provide(files(tree)))
  )

  for (const path of ["../x", "/../x", "src/../../x", "a\u0000b", "a\nb"]) {
    it.effect(`a path such as ${JSON.stringify(path)} returns an error result and changes nothing`, () =>
      Effect.gen(function* () {
        const editor = yield* AnthropicTools.textEditor()
        const requests = [
          { command: "view", path },
          { command: "create", path, file_text: "x" },
          { command: "insert", path, insert_line: 0, insert_text: "x" }
        ]
        for (const request of requests) assert.match(yield* ask(editor, request), /^error: Error: .*\S$/s)
        assert.deepStrictEqual(
          (yield* (yield* Filesystem).list()).map((entry) => entry.name),
          ["a.md"]
        )
      }).pipe(Effect.provide(files({ "a.md": "one" })))
    )
  }

  it.effect("random requests return results, and create no entry whose name contains two dots", () =>
    Effect.gen(function* () {
      const random = randomOf(11)
      const pick = <A>(list: ReadonlyArray<A>): A => list[random(list.length)]!
      const tools = [
        yield* AnthropicTools.textEditor(),
        yield* AnthropicTools.textEditor({ version: "text_editor_20250124" }),
        yield* AnthropicTools.memory()
      ]
      const commands = ["view", "create", "str_replace", "insert", "undo_edit", "delete", "rename", "toString", 1, null]
      const values = [
        "a.md",
        "/memories",
        "/memories/a",
        "..",
        "/",
        "",
        " ",
        "~",
        "a\\b",
        "\uD800",
        1,
        -1,
        1e99,
        null,
        [1, 2],
        [],
        {}
      ]
      const names = [
        "path",
        "file_text",
        "old_str",
        "new_str",
        "insert_line",
        "insert_text",
        "view_range",
        "old_path",
        "new_path"
      ]
      for (let step = 0; step < 1500; step++) {
        const input = Object.fromEntries(names.flatMap((key) => (random(3) === 0 ? [] : [[key, pick(values)]])))
        assert.isString(yield* ask(pick(tools), random(20) === 0 ? pick(values) : { command: pick(commands), ...input }))
      }
      const entries = yield* (yield* Filesystem).list()
      assert.isTrue(entries.every((entry) => !entry.name.includes("..")))
    }).pipe(Effect.provide(files({ "a.md": "one\n" })))
  )

  it.effect("undo_edit reverts the edits of a file, the latest first", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor({ version: "text_editor_20250124" })
      assert.deepStrictEqual([editor.type, editor.name], ["text_editor_20250124", "str_replace_editor"])
      const fs = yield* Filesystem
      yield* ask(editor, { command: "str_replace", path: "a.md", old_str: "one", new_str: "two" })
      yield* ask(editor, { command: "insert", path: "/a.md", insert_line: 1, new_str: "three" })
      assert.strictEqual(yield* fs.readString("a.md"), "two\nthree\n")
      assert.strictEqual(
        yield* ask(editor, { command: "undo_edit", path: "a.md" }),
        "Last edit to a.md undone successfully. Here's the result of running `cat -n` on a.md:\n     1\ttwo\n     2\t\n"
      )
      yield* ask(editor, { command: "undo_edit", path: "a.md" })
      assert.strictEqual(yield* fs.readString("a.md"), "one\n")
      assert.strictEqual(
        yield* ask(editor, { command: "undo_edit", path: "a.md" }),
        "error: Error: No edit history found for a.md."
      )
    }).pipe(Effect.provide(files({ "a.md": "one\n" })))
  )

  it.effect("undo_edit fails if another program has changed the file since the edit", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor({ version: "text_editor_20241022" })
      const fs = yield* Filesystem
      yield* ask(editor, { command: "str_replace", path: "a.md", old_str: "one", new_str: "two" })
      yield* fs.write("a.md", "theirs\n")
      assert.match(
        yield* ask(editor, { command: "undo_edit", path: "a.md" }),
        /^error: Error: Nothing was undone, because the file a.md has changed/
      )
      assert.strictEqual(yield* fs.readString("a.md"), "theirs\n")
    }).pipe(Effect.provide(files({ "a.md": "one\n" })))
  )

  it.effect("a view is cut at maxCharacters, but never within a character", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor({ maxCharacters: 4 })
      assert.strictEqual(editor.max_characters, 4)
      const answer = yield* ask(editor, { command: "view", path: "a.md" })
      assert.match(answer, /^1: abc\n<response clipped>/)
      assert.strictEqual(yield* ask(editor, { command: "view", path: "b.md" }), "1: abcd")
    }).pipe(Effect.provide(files({ "a.md": "abc😀def", "b.md": "abcd" })))
  )

  it.effect("a read-only policy permits a view and refuses a change", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor()
      assert.strictEqual(yield* ask(editor, { command: "view", path: "a.md" }), "1: one")
      const change = { command: "str_replace", path: "a.md", old_str: "one", new_str: "two" }
      assert.match(yield* ask(editor, change), /^error: Error: .*may be read but not changed/)
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "one")
    }).pipe(Effect.provide(Layer.mergeAll(files({ "a.md": "one" }), Policy.readOnly)))
  )

  it.effect("every change on a read-only filesystem fails with the provider's text for denied permission", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor()
      const requests = [
        { command: "str_replace", path: "a.md", old_str: "one", new_str: "two" },
        { command: "insert", path: "a.md", insert_line: 0, insert_text: "x" },
        { command: "create", path: "b.md", file_text: "x" }
      ]
      for (const request of requests)
        assert.strictEqual(yield* ask(editor, request), "error: Error: Permission denied. Cannot write to file.")
    }).pipe(
      Effect.provide(Layer.effect(Filesystem, Effect.map(Filesystem, readOnly)).pipe(Layer.provide(files({ "a.md": "one" }))))
    )
  )

  it.effect("a policy can require that a file is viewed before a change", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor()
      const change = { command: "str_replace", path: "a.md", old_str: "one", new_str: "two" }
      assert.match(yield* ask(editor, change), /^error: /)
      yield* ask(editor, { command: "view", path: "a.md" })
      assert.strictEqual(yield* ask(editor, change), "Successfully replaced text at exactly one location.")
    }).pipe(Effect.provide(Layer.mergeAll(files({ "a.md": "one" }), Policy.readBeforeWrite)))
  )

  it.effect("events contain the name of the tool, but not the texts", () => {
    const events: Array<ToolInvoked> = []
    return Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor()
      yield* ask(editor, { command: "create", path: "a.md", file_text: "secret" })
      yield* ask(editor, { command: "str_replace", path: "a.md", old_str: "secret", new_str: "secret2" })
      assert.deepStrictEqual(
        events.map(({ success, tool }) => [tool, success]),
        [
          [name, true],
          [name, true]
        ]
      )
      assert.notInclude(JSON.stringify(events), "secret")
    }).pipe(
      Effect.provide(
        Layer.merge(
          files(),
          Layer.succeed(ToolEvents, (event) => Effect.sync(() => void events.push(event)))
        )
      )
    )
  })

  it.effect("a call with an aborted signal rejects with the reason of the signal, and writes nothing", () =>
    Effect.gen(function* () {
      const editor = yield* AnthropicTools.textEditor()
      const abort = new AbortController()
      const reason = new Error("enough")
      abort.abort(reason)
      const use = { type: "tool_use", id: "1", name, input: { command: "create", path: "a.md", file_text: "x" } } as const
      const outcome = yield* Effect.promise(() =>
        AnthropicTools.toolResult(editor, use, abort.signal).catch((error: unknown) => error)
      )
      assert.strictEqual(outcome, reason)
      assert.isFalse(yield* (yield* Filesystem).exists("a.md"))
    }).pipe(Effect.provide(files()))
  )
})

/** Makes a client that answers each request with the next turn. Also returns a list that collects the bodies of the requests. */
const scriptedClient = (turns: ReadonlyArray<ReadonlyArray<object>>) => {
  const bodies: Array<{ readonly messages: ReadonlyArray<{ readonly content: unknown }>; readonly tools: unknown }> = []
  const client = new Anthropic({
    apiKey: "none",
    maxRetries: 0,
    fetch: (_, init) => {
      bodies.push(JSON.parse(String(init?.body)) as (typeof bodies)[number])
      const content = turns[bodies.length - 1] ?? [{ type: "text", text: "Done." }]
      const uses = content.some((block) => (block as { readonly type: string }).type === "tool_use")
      const message = {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude",
        content,
        stop_reason: uses ? "tool_use" : "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 }
      }
      return Promise.resolve(new Response(JSON.stringify(message), { headers: { "content-type": "application/json" } }))
    }
  })
  return { bodies, client }
}

describe("AnthropicTools with the tool runner of the SDK", () => {
  it.effect("both tools work through several turns, and errors become error results", () =>
    Effect.gen(function* () {
      const tools = [yield* AnthropicTools.textEditor({ maxCharacters: 1000 }), yield* AnthropicTools.memory()]
      const use = (id: string, toolName: string, input: object) => ({ type: "tool_use", id, name: toolName, input })
      const { bodies, client } = scriptedClient([
        [use("1", name, { command: "view", path: "a.md" }), use("2", "memory", { command: "view", path: "/memories" })],
        [
          use("3", name, { command: "str_replace", path: "a.md", old_str: "one", new_str: "two" }),
          use("4", "memory", { command: "create", path: "/memories/n.md", file_text: "Tea." }),
          use("5", name, { command: "view", path: "none.md" }),
          use("6", name, { command: "fly" })
        ]
      ])
      const last = yield* Effect.promise(async () =>
        client.beta.messages.toolRunner({
          model: "claude",
          max_tokens: 100,
          messages: [{ role: "user", content: "Work." }],
          tools
        })
      )
      assert.strictEqual(JSON.stringify(last.content), '[{"type":"text","text":"Done."}]')
      assert.deepStrictEqual(bodies[0]!.tools, [
        { type: "text_editor_20250728", name, max_characters: 1000 },
        { type: "memory_20250818", name: "memory" }
      ])
      const results = bodies.slice(1).flatMap(({ messages }) => messages.at(-1)!.content as ReadonlyArray<object>)
      const empty =
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n0B\t/memories"
      const allowed = `The allowed commands for the ${name} tool are: view, create, str_replace, insert`
      assert.deepStrictEqual(results, [
        { type: "tool_result", tool_use_id: "1", content: "1: one" },
        { type: "tool_result", tool_use_id: "2", content: empty },
        { type: "tool_result", tool_use_id: "3", content: "Successfully replaced text at exactly one location." },
        { type: "tool_result", tool_use_id: "4", content: "File created successfully at: /memories/n.md" },
        { type: "tool_result", tool_use_id: "5", content: "Error: File not found", is_error: true },
        { type: "tool_result", tool_use_id: "6", content: `Error: Unrecognized command fly. ${allowed}`, is_error: true }
      ])
      const fs = yield* Filesystem
      assert.strictEqual(yield* fs.readString("a.md"), "two")
      assert.strictEqual(yield* fs.readString("memories/n.md"), "Tea.")
    }).pipe(Effect.provide(files({ "a.md": "one" })))
  )
})

describe("AnthropicTools.memory", () => {
  const table: ReadonlyArray<readonly [title: string, input: unknown, answer: string]> = [
    [
      "a text of several lines is replaced",
      { command: "str_replace", path: "/memories/a.md", old_str: "one\ntwo", new_str: "x" },
      "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\tx\n     2\tone\n     3\t"
    ],
    [
      "two occurrences on one line are refused",
      { command: "str_replace", path: "/memories/b.md", old_str: "a", new_str: "x" },
      "error: Error: No replacement was performed. Multiple occurrences of old_str `a` in lines: 1. Please ensure it is unique"
    ],
    [
      "a path that only begins like the directory is refused",
      { command: "view", path: "/memoriesx/a.md" },
      "error: Error: Path must start with /memories, got: /memoriesx/a.md"
    ],
    [
      "a path that climbs out is refused",
      { command: "view", path: "/memories/../a.md" },
      "error: Error: Path /memories/../a.md would escape /memories directory"
    ],
    [
      "a path that climbs out and back is refused",
      { command: "view", path: "/memories/../memories/a.md" },
      "error: Error: Path /memories/../memories/a.md would escape /memories directory"
    ],
    [
      "a directory is deleted with everything in it",
      { command: "delete", path: "/memories/d" },
      "Successfully deleted /memories/d"
    ],
    [
      "the directory itself stays",
      { command: "delete", path: "/memories/d/.." },
      "error: Error: Cannot delete the /memories directory itself"
    ],
    [
      "a directory is not moved into itself",
      { command: "rename", old_path: "/memories/e", new_path: "/memories/e/f/g" },
      "error: Error: Cannot rename /memories/e to /memories/e/f/g, which is inside it"
    ],
    [
      "a rename without a destination fails",
      { command: "rename", old_path: "/memories/e" },
      "error: Error: Parameter `new_path` is required for command: rename"
    ],
    [
      "an unknown command fails",
      { command: "undo_edit", path: "/memories/e" },
      "error: Error: Unrecognized command undo_edit. The allowed commands for the memory tool are: view, create, str_replace, insert, delete, rename"
    ]
  ]

  it.effect("answers typical requests as the provider specifies", () =>
    Effect.gen(function* () {
      const memory = yield* AnthropicTools.memory({ directory: "store/notes" })
      for (const [title, input, answer] of table) assert.strictEqual(yield* ask(memory, input), answer, title)
      const fs = yield* Filesystem
      assert.isFalse(yield* fs.exists("store/notes/d"))
      assert.strictEqual(yield* fs.readString("store/secret.md"), "secret")
    }).pipe(
      Effect.provide(
        files({
          store: {
            "secret.md": "secret",
            notes: { "a.md": "one\ntwo\none\n", "b.md": "a a\n", d: { "x.md": "x" }, e: { "y.md": "y" } }
          }
        })
      )
    )
  )

  it.effect("a symlink out of /memories is neither listed nor followed", () =>
    Effect.gen(function* () {
      const memory = yield* AnthropicTools.memory()
      const listed = yield* ask(memory, { command: "view", path: "/memories" })
      assert.notMatch(listed, /\/(?:out|dir|gone)/)
      assert.include(listed, "/memories/same")
      const inputs = [
        { command: "view", path: "/memories/out" },
        { command: "view", path: "/memories/dir" },
        { command: "str_replace", path: "/memories/out", old_str: "secret", new_str: "public" },
        { command: "insert", path: "/memories/out", insert_line: 0, insert_text: "x" },
        { command: "create", path: "/memories/dir/new.md", file_text: "x" },
        { command: "create", path: "/memories/dir/sub/new.md", file_text: "x" },
        { command: "create", path: "/memories/gone", file_text: "x" },
        { command: "create", path: "/memories/gone/x", file_text: "x" },
        { command: "delete", path: "/memories/dir/b.txt" },
        { command: "rename", old_path: "/memories/a.md", new_path: "/memories/dir/a.md" },
        { command: "rename", old_path: "/memories/dir/b.txt", new_path: "/memories/b.txt" }
      ]
      for (const input of inputs) {
        const title = JSON.stringify(input)
        assert.match(yield* ask(memory, input), /^error: .*would escape \/memories directory via symlink/, title)
      }
      assert.match(yield* ask(memory, { command: "view", path: "/memories/same" }), /\tx$/)
      const fs = yield* Filesystem
      const names = (path: string) => Effect.map(fs.list(path), (entries) => entries.map(({ name }) => name).sort())
      assert.deepStrictEqual(yield* names("d"), ["b.txt"])
      assert.deepStrictEqual(yield* names("."), ["d", "memories", "secret.txt"])
      assert.strictEqual(yield* fs.readString("secret.txt"), "secret")
    }).pipe(
      Effect.provide(
        files({
          "secret.txt": "secret",
          d: { "b.txt": "b" },
          memories: {
            "a.md": "x",
            same: { link: "a.md" },
            out: { link: "../secret.txt" },
            dir: { link: "../d" },
            gone: { link: "../missing" }
          }
        })
      )
    )
  )

  it.effect("a symlink out of the root is neither listed nor read", () =>
    Effect.gen(function* () {
      const memory = yield* AnthropicTools.memory()
      assert.notInclude(yield* ask(memory, { command: "view", path: "/memories" }), "out")
      assert.match(yield* ask(memory, { command: "view", path: "/memories/out" }), /^error: /)
    }).pipe(Effect.provide(files({ memories: { "a.md": "x", out: { link: "../../etc/passwd" } } })))
  )
})
