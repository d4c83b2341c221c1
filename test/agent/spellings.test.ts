/** Calls by models that know the tools of other suites, with the expected results. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { define } from "../../src/agent/definition.ts"
import * as tools from "../../src/agent/tools.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Schema from "effect/Schema"
import { call, withTree } from "./looking.ts"

const script = "let port = 1\n"

const tree = {
  src: { "main.ts": "import a from 'a'\nconst Port = 80\nserve(port)\n\nexport {}\n", "a.js": script },
  "README.md": "# Port\n",
  ".gitignore": "dist\n",
  dist: { "out.js": "port\n" },
  docs: { guide: { "x.md": "x\n" } }
}

const all = [...tools.seven, ...tools.extras]

const invoke = (tool: string, args: object) =>
  call(
    all.find(({ name }) => name === tool)!,
    args
  )

type Row = readonly [suite: string, tool: string, args: object, expected: RegExp]

const looking: ReadonlyArray<Row> = [
  ["Claude Code", "read_file", { file_path: "src/main.ts" }, /1 \| import.*\nlines 1-5 of 5$/s],
  ["Claude Code", "read_file", { file_path: "src/main.ts", offset: "1", limit: "2" }, /^ {3}2 \| .*lines 2-3 of 5/s],
  ["Claude Code", "grep", { pattern: "port", output_mode: "files_with_matches", "-i": true }, /^README\.md\n.*3 files/s],
  ["Claude Code", "grep", { pattern: "port", output_mode: "count", head_limit: 0 }, /^src\/a\.js: 1 match\n/],
  ["Claude Code", "grep", { pattern: "serve", output_mode: "content", "-n": true, "-A": 1, "-B": 2 }, /1 - .*3 \| .*5 - /s],
  ["Claude Code", "grep", { pattern: "port", type: "js" }, /^src\/a\.js\n.*1 file/s],
  ["Claude Code", "grep", { pattern: "x", glob: "*.md", "-C": "1", head_limit: 5 }, /^docs\/guide\/x\.md\n/],
  ["Claude Code", "glob", { pattern: "**/*.ts", path: "" }, /^src\/main\.ts /],
  ["Claude Code", "ls", { path: "src", ignore: [] }, /^a\.js /],
  ["Codex", "read_file", { file_path: "src/main.ts", offset: 2, limit: 1 }, /^ {3}3 \| serve/],
  ["Codex", "ls", { dir_path: "src" }, /^a\.js /],
  ["Codex", "grep", { pattern: "port", include: "*.js", path: "src", limit: 10 }, /^src\/a\.js\n/],
  // The reference server of the protocol.
  ["server-filesystem", "read_file", { path: "src/main.ts", head: 2 }, /lines 1-2 of 5/],
  ["server-filesystem", "read_file", { path: "src/main.ts", tail: 2 }, /^ {3}4 \| \n {3}5 \| export \{\}\nlines 4-5 of 5$/],
  ["server-filesystem", "glob", { path: "src", pattern: "*.js", excludePatterns: [] }, /^src\/a\.js /],
  [
    "Cursor",
    "read_file",
    {
      target_file: "src/main.ts",
      should_read_entire_file: false,
      start_line_one_indexed: 2,
      end_line_one_indexed_inclusive: 3,
      explanation: "to see the port"
    },
    /lines 2-3 of 5/
  ],
  [
    "Cursor",
    "grep",
    { query: "PORT", case_sensitive: false, include_pattern: "*.ts", exclude_pattern: "", explanation: "looking" },
    /^src\/main\.ts\n/
  ],
  ["Cursor", "grep", { query: "PORT", case_sensitive: true }, /^0 matches/],
  ["Cursor", "ls", { relative_workspace_path: "src", explanation: "to see" }, /^a\.js /],
  ["Cursor", "glob", { glob_pattern: "*.md", target_directory: "docs" }, /^docs\/guide\/x\.md /],
  ["Gemini", "read_file", { absolute_path: "/src/main.ts" }, /lines 1-5 of 5/],
  ["Gemini", "glob", { pattern: "*.js", respect_git_ignore: false }, /^dist\/out\.js .*\nsrc\/a\.js /],
  ["the text editor of Anthropic", "read_file", { path: "src/main.ts", view_range: [2, 3] }, /lines 2-3 of 5/],
  ["the text editor of Anthropic", "read_file", { path: "src/main.ts", view_range: [4, -1] }, /lines 4-5 of 5/],
  [
    "camel case",
    "grep",
    { pattern: "PORT", ignoreCase: "true", maxMatches: "1" },
    /^README\.md\n.*1 match in 1 file, and more/s
  ],
  ["ripgrep", "grep", { pattern: "serve(", is_regex: false }, /^src\/main\.ts\n/],
  ["a list", "grep", { pattern: "port", include: ["*.js", "*.ts"] }, /^src\/a\.js\n.*src\/main\.ts\n/s],
  ["a shell", "tree", { path: "docs", max_depth: 1 }, /^guide\//],
  ["a shell", "ls", { path: "src", all: true, recursive: false }, /^a\.js /],
  ["an encoding", "read_file", { path: "README.md", encoding: "UTF-8" }, /# Port/]
]

/** The files that must exist after the call; null means that the file is absent. */
const changing: ReadonlyArray<
  readonly [suite: string, tool: string, args: object, after: Readonly<Record<string, string | null>>]
> = [
  ["Claude Code", "write_file", { file_path: "n.txt", content: "n\n" }, { "n.txt": "n\n" }],
  [
    "Claude Code",
    "edit_file",
    { file_path: "src/a.js", old_string: "port", new_string: "gate", replace_all: "false" },
    { "src/a.js": "let gate = 1\n" }
  ],
  [
    "server-filesystem",
    "edit_file",
    { path: "src/a.js", edits: [{ oldText: "let", newText: "const" }], dryRun: false },
    { "src/a.js": "const port = 1\n" }
  ],
  [
    "a list that is sent as text",
    "edit_file",
    { path: "src/a.js", edits: '[{"old_string":"let","new_string":"var"}]' },
    { "src/a.js": "var port = 1\n" }
  ],
  [
    "the text editor of Anthropic",
    "edit_file",
    { path: "src/a.js", old_str: "1", new_str: "2" },
    { "src/a.js": "let port = 2\n" }
  ],
  [
    "Gemini",
    "edit_file",
    { file_path: "src/a.js", old_string: "1", new_string: "3", expected_replacements: 1 },
    { "src/a.js": "let port = 3\n" }
  ],
  ["a flag", "write_file", { path: "README.md", content: "new\n", overwrite: true }, { "README.md": "new\n" }],
  ["a flag", "write_file", { path: "README.md", text: "more\n", append: true }, { "README.md": "# Port\nmore\n" }],
  ["a shell", "rm", { path: "docs", recursive: true, force: true }, { "docs/guide/x.md": null }],
  ["a shell", "mkdir", { path: "new/deep", parents: true }, {}],
  ["Cursor", "rm", { target_file: "README.md", explanation: "not needed" }, { "README.md": null }],
  ["server-filesystem", "move", { source: "README.md", destination: "R.md" }, { "README.md": null, "R.md": "# Port\n" }],
  ["Codex", "apply_patch", { input: "*** Begin Patch\n*** Add File: p.txt\n+p\n*** End Patch" }, { "p.txt": "p\n" }]
]

describe("arguments in the spelling of other tool suites are accepted", () => {
  for (const [suite, tool, args, expected] of looking) {
    it.effect(`${suite}: ${tool} ${JSON.stringify(args)}`, () =>
      Effect.gen(function* () {
        const { message, success } = yield* invoke(tool, args)
        assert.isTrue(success, message)
        assert.match(message, expected)
      }).pipe(withTree(tree))
    )
  }

  for (const [suite, tool, args, after] of changing) {
    it.effect(`${suite}: ${tool} ${JSON.stringify(args)}`, () =>
      Effect.gen(function* () {
        const { message, success } = yield* invoke(tool, args)
        assert.isTrue(success, message)
        const fs = yield* Filesystem
        for (const [path, content] of Object.entries(after)) {
          const read = (yield* fs.exists(path)) ? yield* fs.readString(path) : null
          assert.strictEqual(read, content, path)
        }
      }).pipe(withTree(tree))
    )
  }
})

describe("arguments are refused", () => {
  const refused: ReadonlyArray<readonly [claim: string, tool: string, args: object, expected: RegExp]> = [
    ["when two arguments set the same parameter", "read_file", { path: "a", file_path: "b" }, /"file_path" is not a parameter/],
    [
      "when the tool does not support the option",
      "edit_file",
      { path: "src/a.js", old_string: "1", new_string: "2", dry_run: true },
      /"dry_run"/
    ],
    [
      "when an exclusion would be ignored",
      "grep",
      { query: "x", exclude_pattern: "*.md" },
      /"exclude_pattern" is not a parameter/
    ],
    [
      "when rm must keep a directory that is not empty",
      "rm",
      { path: "docs", recursive: false },
      /"recursive" is not a parameter/
    ],
    [
      "when a number is invalid",
      "read_file",
      { file_path: "README.md", offset: "two" },
      /"offset" must be a number, and was "two"/
    ],
    [
      "when they request both an append and an overwrite",
      "write_file",
      { path: "README.md", content: "x", append: true, overwrite: true },
      /"overwrite" is not a parameter/
    ],
    [
      "when a flag contradicts the mode",
      "write_file",
      { path: "README.md", content: "x", mode: "overwrite", overwrite: false },
      /"overwrite" is not a parameter/
    ],
    [
      "when a flag contradicts the mode of another suite",
      "write_file",
      { path: "README.md", content: "x", mode: "w", append: true },
      /"append" is not a parameter/
    ],
    [
      "when one glob negates another",
      "grep",
      { pattern: "x", include: ["*.ts", "!*.test.ts"] },
      /must be a string|"include" is not a parameter/
    ],
    [
      "when a range of lines ends before it begins",
      "read_file",
      { path: "README.md", start_line: 9, end_line: 3 },
      /"end_line" is not a parameter/
    ],
    [
      "with a message that uses the tool's own names",
      "write_file",
      { file_path: 5, content: "x" },
      /"path" must be a string, and was 5/
    ]
  ]
  for (const [claim, tool, args, expected] of refused) {
    it.effect(claim, () =>
      Effect.gen(function* () {
        const { message, success } = yield* invoke(tool, args)
        assert.isFalse(success, message)
        assert.match(message, expected)
        const fs = yield* Filesystem
        assert.strictEqual(yield* fs.readString("src/a.js"), script)
        assert.strictEqual(yield* fs.readString("README.md"), "# Port\n")
      }).pipe(withTree(tree))
    )
  }
})

it.effect("arguments that decode stay unchanged, even if they mean something else in another tool suite", () => {
  const echo = define({
    name: "grep",
    description: "Answers what it was given.",
    parameters: Schema.Struct({ file_path: Schema.String, offset: Schema.String }),
    value: Schema.Struct({ got: Schema.String }),
    does: "reads",
    idempotent: true,
    examples: [{ file_path: "a", offset: "0" }],
    touches: () => Effect.succeed([]),
    handle: (params) => Effect.succeed({ message: JSON.stringify(params), value: { got: "" } })
  })
  return Effect.gen(function* () {
    const { message } = yield* call(echo, { file_path: "a", offset: "0" })
    assert.strictEqual(message, '{"file_path":"a","offset":"0"}')
  }).pipe(withTree({}))
})
