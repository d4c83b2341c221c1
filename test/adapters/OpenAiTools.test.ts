import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { ResponseInputItem, ResponseOutputItem } from "openai/resources/responses/responses"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as OpenAiTools from "../../src/adapters/OpenAiTools.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { type ExecOptions, type ExecResult, Sandbox } from "../../src/filesystem/Sandbox.ts"
import { randomOf } from "./random.ts"

const files = (tree: InMemory.Tree = {}) => InMemory.layer({ tree })

/** Runs the items, which may be malformed. */
const run = (tools: OpenAiTools.OpenAiTools, items: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<ResponseInputItem>> =>
  Effect.promise(() => tools.run(items as ReadonlyArray<ResponseOutputItem>))

const functionCall = (name: string, input: unknown, rest: object = {}) => ({
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name,
  arguments: typeof input === "string" ? input : JSON.stringify(input),
  status: "completed",
  ...rest
})

const patchCall = (operation: unknown, rest: object = {}) => ({
  type: "apply_patch_call",
  id: "apc_1",
  call_id: "call_p",
  status: "completed",
  operation,
  ...rest
})

const shellCall = (action: object, rest: object = {}) => ({
  type: "shell_call",
  id: "sh_1",
  call_id: "call_s",
  status: "completed",
  action: { max_output_length: null, timeout_ms: null, ...action },
  environment: { type: "local" },
  ...rest
})

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

describe("OpenAiTools with function calls", () => {
  it.effect("the definitions are function tools with JSON schemas", () =>
    Effect.gen(function* () {
      const { definitions, functions } = yield* OpenAiTools.tools({ tools: "seven" })
      assert.strictEqual(definitions.length, 7)
      for (const definition of definitions) {
        assert.isTrue(definition.type === "function" && definition.strict === false)
        assert.strictEqual(definition.type === "function" ? definition.parameters?.["type"] : "", "object")
      }
      assert.deepStrictEqual(
        functions.map(({ tool }) => tool),
        definitions
      )
    }).pipe(Effect.provide(files()))
  )

  it.effect("the output of a call has the call id and the caller", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: "seven" })
      const caller = { type: "program", caller_id: "p1" } as const
      const [written, message] = yield* run(tools, [
        functionCall("write_file", { path: "a.md", content: "x" }, { caller }),
        { type: "message", id: "m1", role: "assistant", status: "completed", content: [] },
        functionCall("own_function", {})
      ])
      assert.isUndefined(message)
      assert.deepInclude(written, { type: "function_call_output", call_id: "call_1", caller })
      assert.match(JSON.stringify(written), /created a\.md/)
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "x")
    }).pipe(Effect.provide(files()))
  )

  it.effect("an image in a result becomes an input image", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: ["read_file"] })
      const [item] = yield* run(tools, [functionCall("read_file", { path: "dot.png", encoding: "base64" })])
      const output = item?.type === "function_call_output" ? item.output : ""
      assert.deepStrictEqual((output as ReadonlyArray<unknown>).slice(1), [
        { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "auto" }
      ])
    }).pipe(Effect.provide(files({ "dot.png": Uint8Array.from(Buffer.from(png, "base64")) })))
  )

  for (const [title, call, message] of [
    ["are not JSON", functionCall("write_file", '{"path":'), /not valid JSON/],
    ["are a list", functionCall("write_file", [1]), /./],
    ["are of the wrong type", functionCall("write_file", { path: 1, content: "x" }), /path/],
    ["climb out of the root", functionCall("write_file", { path: "../a", content: "x" }), /\.\.\/a/],
    ["are incomplete", functionCall("write_file", { path: "a", content: "x" }, { status: "incomplete" }), /incomplete/]
  ] as const) {
    it.effect(`a call whose arguments ${title} returns an error for the model, and changes nothing`, () =>
      Effect.gen(function* () {
        const tools = yield* OpenAiTools.tools({ tools: "seven" })
        const [item] = yield* run(tools, [call])
        assert.match(item?.type === "function_call_output" ? String(item.output) : "", message)
        assert.deepStrictEqual(yield* (yield* Filesystem).list(), [])
      }).pipe(Effect.provide(files()))
    )
  }
})

describe("OpenAiTools with apply_patch calls", () => {
  const outcome = (item: ResponseInputItem | undefined) =>
    item?.type === "apply_patch_call_output" ? `${item.call_id} ${item.status}: ${item.output}` : "no output"

  it.effect("a call that is not complete changes nothing", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: ["apply_patch"] })
      const operation = { type: "create_file", path: "half.txt", diff: "+the first ha" }
      const [cut] = yield* run(tools, [patchCall(operation, { status: "in_progress" })])
      assert.match(outcome(cut), /^call_p failed: The call is incomplete/)
      assert.deepStrictEqual(yield* (yield* Filesystem).list(), [])
    }).pipe(Effect.provide(files()))
  )

  it.effect("files are created, updated and deleted", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: ["apply_patch"] })
      assert.deepStrictEqual(tools.definitions, [{ type: "apply_patch" }])
      assert.deepStrictEqual(tools.functions, [])
      const outputs = yield* run(tools, [
        patchCall({ type: "create_file", path: "lib/new.py", diff: "+def one():\n+    return 1\n" }),
        patchCall({
          type: "update_file",
          path: "fib.py",
          diff: "@@ def fib(n):\n-    return fib(n-1) + fib(n-2)\n+    return fib(n - 1) + fib(n - 2)\n"
        }),
        patchCall({ type: "update_file", path: "end.txt", diff: "@@\n a\n-b\n+c\n*** End of File" }),
        patchCall({ type: "delete_file", path: "old.txt" })
      ])
      for (const item of outputs) assert.match(outcome(item), /^call_p completed: applied the patch/)
      const fs = yield* Filesystem
      assert.strictEqual(yield* fs.readString("lib/new.py"), "def one():\n    return 1\n")
      assert.strictEqual(yield* fs.readString("fib.py"), "def fib(n):\n    return fib(n - 1) + fib(n - 2)\n")
      assert.strictEqual(yield* fs.readString("end.txt"), "a\nc\n")
      assert.isFalse(yield* fs.exists("old.txt"))
    }).pipe(
      Effect.provide(files({ "fib.py": "def fib(n):\n    return fib(n-1) + fib(n-2)\n", "end.txt": "a\nb\n", "old.txt": "x" }))
    )
  )

  const diff = "@@\n-one\n+two\n"
  for (const [title, operation] of [
    ["has a context that is absent", { type: "update_file", path: "a.md", diff: "@@\n-three\n+four\n" }],
    ["names a missing file", { type: "update_file", path: "none.md", diff }],
    ["creates a file that exists", { type: "create_file", path: "a.md", diff: "+x\n" }],
    ["deletes a missing file", { type: "delete_file", path: "none.md" }],
    ["climbs out of the root", { type: "create_file", path: "../x", diff: "+x\n" }],
    ["has another file in its diff", { type: "update_file", path: "a.md", diff: `${diff}*** Delete File: secret.md\n` }],
    ["moves its file", { type: "update_file", path: "a.md", diff: `*** Move to: b.md\n${diff}` }],
    ["has another file in its path", { type: "delete_file", path: "none.md\n*** Delete File: secret.md" }],
    ["has lines without a sign", { type: "create_file", path: "b.md", diff: "x\n" }],
    ["has no diff", { type: "update_file", path: "a.md" }],
    ["has a diff of the wrong type", { type: "create_file", path: "b.md", diff: 7 }],
    ["has no path", { type: "delete_file" }],
    ["has an unknown type", { type: "rename_file", path: "a.md" }],
    ["is missing", undefined],
    ["is a text", "delete a.md"]
  ] as const) {
    it.effect(`an operation that ${title} fails with a reason and changes nothing`, () =>
      Effect.gen(function* () {
        const tools = yield* OpenAiTools.tools()
        const [item] = yield* run(tools, [patchCall(operation)])
        assert.match(outcome(item), /^call_p failed: .{10}/)
        const fs = yield* Filesystem
        assert.strictEqual(yield* fs.readString("a.md"), "one\n")
        assert.strictEqual(yield* fs.readString("secret.md"), "secret")
        assert.strictEqual((yield* fs.list()).length, 2)
      }).pipe(Effect.provide(files({ "a.md": "one\n", "secret.md": "secret" })))
    )
  }

  it.effect("a policy refuses an operation by its path", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools()
      const [item] = yield* run(tools, [patchCall({ type: "delete_file", path: "secret.md" })])
      assert.match(outcome(item), /^call_p failed: /)
      assert.isTrue(yield* (yield* Filesystem).exists("secret.md"))
    }).pipe(Effect.provide([files({ "secret.md": "x" }), Policy.access({ deny: { delete: "secret.md" } })]))
  )

  it.effect("apply_patch is a function tool if native is false", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: ["apply_patch"], native: false })
      assert.strictEqual(tools.definitions[0]!.type, "function")
      const patch = "*** Begin Patch\n*** Add File: a.md\n+x\n*** End Patch"
      assert.strictEqual((yield* run(tools, [patchCall({ type: "delete_file", path: "a" })])).length, 0)
      yield* run(tools, [functionCall("apply_patch", { patch })])
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "x\n")
    }).pipe(Effect.provide(files()))
  )
})

/** Makes a sandbox that records its commands and answers with the last word of each command. */
const recordingSandbox = (seen: Array<readonly [ReadonlyArray<string>, ExecOptions | undefined]>) => {
  const exec = (command: ReadonlyArray<string>, options?: ExecOptions): Effect.Effect<ExecResult> =>
    Effect.sync(() => {
      seen.push([command, options])
      const last = command.at(-1)!.split(" ").at(-1)!
      const timedOut = last === "forever"
      const stdoutBytes = new TextEncoder().encode(`${last}\n`)
      const exitCode = timedOut ? 124 : last === "false" ? 1 : 0
      return { exitCode, stdout: `${last}\n`, stderr: "", stdoutBytes, durationMillis: 1, timedOut, truncated: false }
    })
  return Layer.succeed(Sandbox, { exec, eval: (code, options) => exec([code], options) })
}

describe("OpenAiTools with shell calls", () => {
  it.effect("without a sandbox there is no shell tool, and shell calls have no output", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools()
      assert.isUndefined(tools.definitions.find(({ type }) => type === "shell"))
      assert.deepStrictEqual(yield* run(tools, [shellCall({ commands: ["ls"] })]), [])
    }).pipe(Effect.provide(files()))
  )

  it.effect("the commands of a call run in order, each with its outcome", () => {
    const seen: Array<readonly [ReadonlyArray<string>, ExecOptions | undefined]> = []
    return Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools()
      assert.deepInclude(tools.definitions, { type: "shell", environment: { type: "local" } })
      const commands = ["echo one", "false", "sleep forever"]
      const [item] = yield* run(tools, [shellCall({ commands, timeout_ms: 5000, max_output_length: 4096 })])
      assert.deepStrictEqual(item, {
        type: "shell_call_output",
        call_id: "call_s",
        output: [
          { stdout: "one\n", stderr: "", outcome: { type: "exit", exit_code: 0 } },
          { stdout: "false\n", stderr: "", outcome: { type: "exit", exit_code: 1 } },
          { stdout: "forever\n", stderr: "", outcome: { type: "timeout" } }
        ],
        max_output_length: 4096
      })
      assert.deepStrictEqual(
        seen.map(([command, options]) => [command.at(-1), options?.timeout]),
        commands.map((command) => [command, "5000 millis"])
      )
    }).pipe(Effect.provide([files(), recordingSandbox(seen)]))
  })

  it.effect("calls for the API's containers and incomplete calls run no command", () => {
    const seen: Array<readonly [ReadonlyArray<string>, ExecOptions | undefined]> = []
    return Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools()
      const environment = { type: "container_reference", container_id: "c1" }
      assert.deepStrictEqual(yield* run(tools, [shellCall({ commands: ["ls"] }, { environment })]), [])
      const [cut] = yield* run(tools, [shellCall({ commands: ["rm -rf"] }, { status: "incomplete" })])
      assert.match(JSON.stringify(cut), /incomplete/)
      assert.deepStrictEqual(seen, [])
    }).pipe(Effect.provide([files(), recordingSandbox(seen)]))
  })

  it.effect("the standard error of a refused command states the reason", () => {
    const seen: Array<readonly [ReadonlyArray<string>, ExecOptions | undefined]> = []
    return Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools()
      const [item] = yield* run(tools, [shellCall({ commands: ["x".repeat(5000), 7, ""] })])
      const output = item?.type === "shell_call_output" ? item.output : []
      assert.strictEqual(output.length, 3)
      for (const { outcome, stderr } of output) {
        assert.deepStrictEqual(outcome, { type: "exit", exit_code: 1 })
        assert.isAbove(stderr.length, 10)
      }
      assert.deepStrictEqual(yield* run(tools, [shellCall({ commands: "ls" })]), [
        { type: "shell_call_output", call_id: "call_s", output: [] }
      ])
      assert.deepStrictEqual(seen, [])
    }).pipe(Effect.provide([files(), recordingSandbox(seen)]))
  })
})

describe("OpenAiTools with forged items", () => {
  it.effect("items with random fields change no file", () => {
    const seen: Array<readonly [ReadonlyArray<string>, ExecOptions | undefined]> = []
    return Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools()
      const random = randomOf(7)
      const value = (depth: number): unknown => {
        const leaves = [undefined, null, true, -1, 0.5, "", "x", "../x", "*** End Patch", "\uD800", "__proto__"]
        const kind = random(depth > 2 ? 1 : 3)
        if (kind === 0) return leaves[random(leaves.length)]
        if (kind === 1) return Array.from({ length: random(3) }, () => value(depth + 1))
        const names = ["type", "path", "diff", "commands", "timeout_ms", "content", "environment", "constructor"]
        return Object.fromEntries(Array.from({ length: random(4) }, () => [names[random(names.length)], value(depth + 1)]))
      }
      for (let step = 0; step < 600; step++) {
        const type = ["function_call", "apply_patch_call", "shell_call", "message", "x"][step % 5]
        const name = ["read_file", "rm", "constructor", "edit_file"][random(4)]
        const fields = { arguments: random(2) === 0 ? value(0) : (JSON.stringify(value(0)) ?? "") }
        const item = { type, name, call_id: "c", operation: value(0), action: value(0), status: value(0), ...fields }
        const outputs = yield* run(tools, [item])
        if (step % 5 > 2) assert.deepStrictEqual(outputs, [])
        else for (const output of outputs) assert.match(String((output as { readonly type: string }).type), /_output$/)
      }
      assert.deepStrictEqual(
        (yield* (yield* Filesystem).list()).map((entry) => entry.name),
        ["keep.md"]
      )
      assert.strictEqual(yield* (yield* Filesystem).readString("keep.md"), "x")
    }).pipe(Effect.provide([files({ "keep.md": "x" }), recordingSandbox(seen)]))
  })
})

describe("OpenAiTools with the client of the SDK", () => {
  it.effect("a conversation of three requests reads and changes a file", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: ["read_file", "apply_patch"] })
      const bodies: Array<{ readonly input: ReadonlyArray<Record<string, unknown>>; readonly tools: unknown }> = []
      const turns = [
        [functionCall("read_file", { path: "a.md" })],
        [patchCall({ type: "update_file", path: "a.md", diff: "@@\n-one\n+two\n" })],
        []
      ]
      const client = new OpenAI({
        apiKey: "none",
        maxRetries: 0,
        fetch: (_, init) => {
          bodies.push(JSON.parse(String(init?.body)) as (typeof bodies)[number])
          const response = { id: "r", object: "response", status: "completed", output: turns[bodies.length - 1] }
          return Promise.resolve(new Response(JSON.stringify(response), { headers: { "content-type": "application/json" } }))
        }
      })
      yield* Effect.promise(async () => {
        const input: Array<ResponseInputItem> = [{ role: "user", content: "Work." }]
        for (;;) {
          const { output } = await client.responses.create({ model: "gpt", input, tools: tools.definitions })
          const outputs = await tools.run(output)
          if (outputs.length === 0) return
          input.push(...(output as ReadonlyArray<ResponseInputItem>), ...outputs)
        }
      })
      assert.deepStrictEqual(
        bodies.at(-1)!.input.map(({ call_id: id, status, type }) => [type, id, status]),
        [
          [undefined, undefined, undefined],
          ["function_call", "call_1", "completed"],
          ["function_call_output", "call_1", undefined],
          ["apply_patch_call", "call_p", "completed"],
          ["apply_patch_call_output", "call_p", "completed"]
        ]
      )
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "two\n")
    }).pipe(Effect.provide(files({ "a.md": "one\n" })))
  )

  it.effect("a run with an aborted signal rejects with the reason of the signal, and writes nothing", () =>
    Effect.gen(function* () {
      const tools = yield* OpenAiTools.tools({ tools: "seven" })
      const reason = new Error("enough")
      const item = functionCall("write_file", { path: "a.md", content: "x" }) as ResponseOutputItem
      const outcome = yield* Effect.promise(() => tools.run([item], AbortSignal.abort(reason)).catch((error: unknown) => error))
      assert.strictEqual(outcome, reason)
      assert.isFalse(yield* (yield* Filesystem).exists("a.md"))
    }).pipe(Effect.provide(files()))
  )
})
