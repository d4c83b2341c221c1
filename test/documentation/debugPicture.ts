/**
 * Makes the picture of the debug view: an agent changed a small project with its tools, and its session was dumped
 * before and after.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { Adapter, Prompt, Section, Session, Slice, ToolEvents } from "../../src/index.ts"
import { Server } from "../../src/debug/index.ts"
import { launch } from "../debug/browser/chromium.ts"
import { onDisk } from "../scratch.ts"
import { root } from "./markdown.ts"
import { save } from "./palette.ts"

const store = `import { randomUUID } from "node:crypto"
import type { Task, TaskInput } from "./task.ts"

/** Tasks in memory, the newest first. */
export class TaskStore {
  readonly #tasks = new Map<string, Task>()

  add(input: TaskInput): Task {
    const task: Task = { id: randomUUID(), title: input.title, done: false }
    this.#tasks.set(task.id, task)
    return task
  }

  list(): ReadonlyArray<Task> {
    return [...this.#tasks.values()].reverse()
  }

  // TODO: finish a task
}
`

const project: Readonly<Record<string, string>> = {
  "README.md": "# tasks\n\nA small API for a list of tasks.\n\n- `GET /tasks`\n- `POST /tasks`\n",
  "package.json": `{\n  "name": "tasks",\n  "type": "module",\n  "scripts": { "test": "node --test" }\n}\n`,
  "docs/api.md":
    "# API\n\n| method | path | answers |\n|---|---|---|\n| GET | /tasks | all tasks |\n| POST | /tasks | the new task |\n",
  "src/server.ts": `import { createServer } from "node:http"
import { route } from "./routes.ts"

createServer(route).listen(Number(process.env.PORT ?? 3000))
`,
  "src/routes.ts": `import type { IncomingMessage, ServerResponse } from "node:http"
import { TaskStore } from "./store.ts"

const store = new TaskStore()

export const route = (request: IncomingMessage, response: ServerResponse): void => {
  response.setHeader("content-type", "application/json")
  if (request.url === "/tasks") response.end(JSON.stringify(store.list()))
  else response.writeHead(404).end()
}
`,
  "src/store.ts": store,
  "src/task.ts": `export interface Task {
  readonly id: string
  readonly title: string
  readonly done: boolean
}

export type TaskInput = Pick<Task, "title">
`,
  "test/store.test.ts": `import assert from "node:assert/strict"
import { test } from "node:test"
import { TaskStore } from "../src/store.ts"

test("what was added is listed", () => {
  const store = new TaskStore()
  store.add({ title: "write" })
  assert.equal(store.list().length, 1)
})
`
}

const Plan = Slice.make("plan", Schema.Struct({ step: Schema.Int, text: Schema.String, done: Schema.Boolean }))

/** The calls of the agent, in order. */
const calls: ReadonlyArray<Adapter.ScriptedCall> = [
  { tool: "grep", input: { pattern: "TODO" } },
  { tool: "read_file", input: { path: "src/store.ts" } },
  {
    tool: "edit_file",
    input: {
      path: "src/store.ts",
      old_string: "  // TODO: finish a task\n",
      new_string: `  /** The task as it is now; \`undefined\` where there is none. */
  finish(id: string): Task | undefined {
    const task = this.#tasks.get(id)
    if (task === undefined) return undefined
    const finished = { ...task, done: true }
    this.#tasks.set(id, finished)
    return finished
  }
`
    }
  },
  { tool: "read_file", input: { path: "src/routes.ts" } },
  {
    tool: "edit_file",
    input: {
      path: "src/routes.ts",
      old_string: "  else response.writeHead(404).end()\n",
      new_string: `  else if (finish.test(request.url ?? "")) {
    const task = store.finish(finish.exec(request.url!)![1]!)
    response.writeHead(task === undefined ? 404 : 200).end(JSON.stringify(task ?? {}))
  } else response.writeHead(404).end()
`
    }
  },
  {
    tool: "edit_file",
    input: {
      path: "src/routes.ts",
      old_string: "const store = new TaskStore()\n",
      new_string: "const store = new TaskStore()\nconst finish = /^\\/tasks\\/([0-9a-f-]+)\\/finish$/\n"
    }
  },
  { tool: "edit_file", input: { path: "src/store.ts", old_string: "newest frist", new_string: "oldest first" } },
  {
    tool: "edit_file",
    input: {
      path: "src/store.ts",
      old_string: "/** Tasks in memory, the newest first. */",
      new_string: "/** Tasks in memory, the newest first; each can be finished once. */"
    }
  },
  { tool: "read_file", input: { path: "test/store.test.ts" } },
  {
    tool: "edit_file",
    input: {
      path: "test/store.test.ts",
      old_string: "  assert.equal(store.list().length, 1)\n})\n",
      new_string: `  assert.equal(store.list().length, 1)
})

test("what is finished is done", () => {
  const store = new TaskStore()
  const { id } = store.add({ title: "write" })
  assert.equal(store.finish(id)?.done, true)
  assert.equal(store.finish("nobody"), undefined)
})
`
    }
  },
  { tool: "write_file", input: { path: "docs/finish.md", content: "# Finishing a task\n\n`POST /tasks/:id/finish`\n" } }
]

const steps = ["Find what is left to do", "Let a task be finished", "Serve it", "Test it", "Write it down"]

/** Makes two dumps in a directory: the project before and after the agent. */
const left = Effect.fnUntraced(function* (ground: string) {
  const [dumps, host] = [join(ground, "runs"), join(ground, "tasks")]
  for (const [path, text] of Object.entries(project)) {
    Fs.mkdirSync(dirname(join(host, path)), { recursive: true })
    Fs.writeFileSync(join(host, path), text)
  }
  const begin = Effect.fnUntraced(function* (id: string, tags: Readonly<Record<string, string>>) {
    const session = yield* Session.make({ id, slices: [Plan, ToolEvents.log], tags })
    const files = yield* Section.VfsSection({ session, mounts: [{ hostPath: host, mountPath: [] }], allowedRoots: [ground] })
    return { session, files, filesystem: yield* files.filesystem }
  })
  const before = yield* begin("tasks-before", { session_id: "tasks-before" })
  const first = yield* Session.dumpSessionTree(before.session, dumps, { filesystem: before.filesystem })
  const earlier = new Date(Date.now() - 60_000)
  Fs.utimesSync(first!, earlier, earlier)

  const { files, filesystem, session } = yield* begin("tasks-agent", { session_id: "tasks-agent", project: "tasks" })
  const prompt = yield* Prompt.make({ ns: "agents/coder", key: "tasks", sections: [files] })
  for (const [index, call] of calls.entries()) {
    if (index % 2 === 0 && index / 2 < steps.length) {
      yield* session.dispatch(Plan, { step: index / 2 + 1, text: steps[index / 2]!, done: true })
    }
    yield* Adapter.scripted([{ ...call, callId: `call-${index + 1}` }]).run(prompt, { session })
    // A pause makes the timeline visible.
    yield* Effect.sleep(300 + 170 * (index % 4))
  }
  yield* Session.dumpSessionTree(session, dumps, { filesystem })
  return dumps
})

const { version } = JSON.parse(Fs.readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string }

/** Writes the picture to the file. */
export const makeDebugPicture = async (file: string): Promise<void> => {
  const ground = Fs.mkdtempSync(join(onDisk(), "picture-"))
  const drawn = Effect.gen(function* () {
    const { url } = yield* Server.serve({ source: { dump: yield* left(ground) }, version })
    yield* Effect.promise(async () => {
      const browser = await launch()
      try {
        const tab = await browser.newPage({
          colorScheme: "dark",
          deviceScaleFactor: 2,
          viewport: { width: 1280, height: 740 },
          locale: "en-GB",
          timezoneId: "UTC"
        })
        await tab.goto(`${url}#/files/src/store.ts`)
        await tab.getByText("TaskStore").first().waitFor()
        const history = tab.getByRole("button", { name: "Who changed the file" })
        if ((await history.getAttribute("aria-pressed")) !== "true") await history.click()
        await tab.getByRole("complementary", { name: "Who changed the file" }).getByText("edit_file").first().waitFor()
        await tab.mouse.move(0, 0)
        await tab.waitForLoadState("networkidle")
        const picture = await tab.screenshot()
        await save(await browser.newPage(), picture, file)
      } finally {
        await browser.close()
      }
    })
  })
  await Effect.runPromise(Effect.scoped(drawn))
}
