/**
 * An agent with its own files and a plan, from the parts to the dump: `node test/examples/vfs_tools_example.ts` shows
 * the steps.
 *
 * The agent is a script, so it is free and always the same; a model in its place would change nothing else.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Adapter, Prompt, Section, Session, Slice, Tool, ToolContext, ToolEvents, VfsState } from "../../src/index.ts"

/* The state of the session. A slice is typed and defines how dispatched items are added. */

const Step = Schema.Struct({ number: Schema.Int, text: Schema.String, isDone: Schema.Boolean })

export const Plan = Slice.make("Plan", Step, { reduce: Slice.upsert((step: typeof Step.Type) => step.number) })

/* Two tools of our own. The context of a call holds its session. These tools need no files. */

const planned = Effect.fnUntraced(function* (step: typeof Step.Type) {
  const { session } = yield* ToolContext.ToolContext
  yield* session.dispatch(Plan, step)
  return { message: `${step.isDone ? "[x]" : "[ ]"} ${step.number}. ${step.text}`, value: step }
})

const addStep = Tool.make({
  name: "add_step",
  description: "Add a step to the end of the plan.",
  parameters: Schema.Struct({ text: Schema.String.annotate({ description: "What is to be done." }) }),
  value: Step,
  does: "adds",
  needsFilesystem: false,
  examples: [{ text: "Read the guide" }],
  handle: Effect.fnUntraced(function* ({ text }) {
    const { session } = yield* ToolContext.ToolContext
    const { length } = yield* session.all(Plan)
    return yield* planned({ number: length + 1, text, isDone: false })
  })
})

const finishStep = Tool.make({
  name: "finish_step",
  description: "Mark a step of the plan as done.",
  parameters: Schema.Struct({ number: Schema.Int.annotate({ description: "Its number in the plan." }) }),
  value: Step,
  idempotent: true,
  needsFilesystem: false,
  examples: [{ number: 1 }],
  handle: Effect.fnUntraced(function* ({ number }) {
    const { session } = yield* ToolContext.ToolContext
    const step = (yield* session.all(Plan)).find((step) => step.number === number)
    // A failure is for the model: one sentence says what happened, another what to do.
    if (step === undefined) return yield* Effect.fail(Tool.refused(`The plan has no step ${number}.`, "Add it with add_step."))
    return yield* planned({ ...step, isDone: true })
  })
})

/* Helpers that read the results of earlier calls, newest first. */

const valueOf = (turns: ReadonlyArray<Adapter.ScriptedTurn>, tool: string): Record<string, unknown> =>
  turns.findLast((turn) => turn.tool === tool && turn.result.success)?.result.value as Record<string, unknown>

const versionIn = (turns: ReadonlyArray<Adapter.ScriptedTurn>): string =>
  (valueOf(turns, "read_file")["file"] as { readonly version: string }).version

const summary = "notes/summary.md"

const looksAndWrites = Adapter.scripted([
  { tool: "add_step", input: { text: "Read the guide" } },
  { tool: "add_step", input: { text: "Summarise it" } },
  { tool: "list_directory", input: {} },
  { tool: "list_directory", input: { path: "docs" } },
  { tool: "read_file", input: { path: "docs/guide.md" } },
  { tool: "finish_step", input: { number: 1 } },
  { tool: "write_file", input: { path: summary, content: "# Summary\n\nWrite first.\n" } }
])

const goesAstray = Adapter.scripted([
  { tool: "write_file", input: { path: summary, content: "Who needs a guide?\n", mode: "overwrite" } },
  { tool: "delete_file", input: { path: "docs" } },
  { tool: "add_step", input: { text: "Do everything again" } }
])

/** A script may use earlier answers, as a model does. */
const editsByVersion = Adapter.scripted((turns) => {
  const overwrite = (content: string) => ({
    tool: "write_file",
    input: { path: summary, content, mode: "overwrite", if_version: versionIn(turns) }
  })
  switch (turns.length) {
    case 0:
      return { tool: "read_file", input: { path: summary } }
    case 1:
      return overwrite("# Summary\n\nLook first, then write.\n")
    case 2:
      // The version that was read is outdated, so the present content is not lost.
      return overwrite("# Summary\n\nWrite twice.\n")
    case 3:
      return { tool: "write_file", input: { path: summary, content: "\nSee docs/guide.md.\n", mode: "append" } }
    case 4:
      return { tool: "delete_file", input: { path: "docs/old.md" } }
    case 5:
      return { tool: "finish_step", input: { number: 2 } }
    case 6:
      return { tool: "finish_step", input: { number: 3 } }
    default:
      return undefined
  }
})

/* The whole program. */

/** A directory on the machine with files to mount and a place for the dump. */
const place = Effect.acquireRelease(
  Effect.sync(() => {
    const root = Fs.mkdtempSync(join(Fs.realpathSync(tmpdir()), "fs-algebra-example-"))
    Fs.mkdirSync(join(root, "project/docs"), { recursive: true })
    Fs.writeFileSync(join(root, "project/docs/guide.md"), "# Guide\n\n1. Look.\n2. Write.\n")
    Fs.writeFileSync(join(root, "project/docs/old.md"), "Nobody needs this.\n")
    Fs.writeFileSync(join(root, "project/docs/logo.png"), new Uint8Array([137, 80, 78, 71]))
    return root
  }),
  (root) => Effect.sync(() => Fs.rmSync(root, { recursive: true, force: true }))
)

const heading = (text: string) => Console.log(`\n=== ${text}`)

const indented = (text: string): string => text.replaceAll(/^/gm, "  ")

const told = (turns: ReadonlyArray<Adapter.ScriptedTurn>) =>
  Effect.forEach(
    turns,
    ({ input, result, tool }) =>
      Console.log(`${result.success ? "+" : "-"} ${tool} ${JSON.stringify(input)}\n${indented(result.message)}`),
    { discard: true }
  )

export const main = Effect.gen(function* () {
  const root = yield* place
  const session = yield* Session.make({ slices: [Plan, ToolEvents.log], tags: { session_id: "writer" } })

  const files = yield* Section.VfsToolsSection({
    session,
    mounts: [{ hostPath: "docs/", mountPath: ["docs"], include: ["*.md"] }],
    allowedRoots: [join(root, "project")]
  })
  const prompt = yield* Prompt.make({
    ns: "agents/writer",
    key: "workspace",
    name: "workspace-tools",
    sections: [
      Section.MarkdownSection({ title: "Behaviour", template: "Stage what you write in the virtual filesystem." }),
      Section.MarkdownSection({
        title: "Planning",
        template: "Keep a plan, and mark what is done.",
        tools: [addStep, finishStep]
      }),
      files
    ]
  })

  yield* heading("What the model is told")
  const rendered = yield* Prompt.render(prompt)
  yield* Console.log(rendered.text)
  yield* Console.log(`\nTools: ${rendered.tools.map(({ definition }) => definition.name).join(", ")}`)

  yield* heading("It looks, plans and writes")
  yield* told(yield* looksAndWrites.run(prompt, { session }))
  const draft = yield* session.snapshot("draft")

  yield* heading("It goes astray")
  yield* told(yield* goesAstray.run(prompt, { session }))
  const fs = yield* files.filesystem
  const astray = { hasGuide: yield* fs.exists("docs/guide.md"), steps: (yield* session.all(Plan)).length }

  yield* heading("Plan and files are taken back, as one")
  yield* session.restore(draft)
  const back = { hasGuide: yield* fs.exists("docs/guide.md"), summary: yield* fs.readString(summary) }
  yield* Console.log(back.summary)

  yield* heading("It goes on from there")
  const turns = yield* editsByVersion.run(prompt, { session })
  yield* told(turns)

  yield* heading("What the session knows")
  const plan = yield* session.all(Plan)
  yield* Console.log(plan.map(({ isDone, number, text }) => `${isDone ? "[x]" : "[ ]"} ${number}. ${text}`).join("\n"))
  const known = Option.getOrThrow(yield* session.latest(VfsState.VirtualFileSystem))
  for (const { path, sizeBytes, version } of known.files) {
    yield* Console.log(`${path.join("/")}: ${sizeBytes} bytes, written ${version === 1 ? "once" : `${version} times`}`)
  }
  // The log survives a rollback.
  const events = yield* session.all(ToolEvents.log)
  yield* Console.log(
    events
      .map(({ mode, path, sizeBytes, success, tool }) =>
        [success ? "ok  " : "FAIL", tool, path, mode, sizeBytes === undefined ? undefined : `${sizeBytes} B`]
          .filter((part) => part !== undefined)
          .join(" ")
      )
      .join("\n")
  )

  yield* heading("Dumped, and resumed on files of another kind")
  const dumped = yield* Session.dumpSessionTree(session, join(root, "dumps"), { filesystem: files })
  const names = Fs.readdirSync(join(root, "dumps")).sort()
  yield* Console.log(names.join("\n"))
  const elsewhere = yield* Section.WorkspaceSection()
  const { session: resumed } = yield* Session.loadSessionTree(dumped!, {
    slices: [Plan, ToolEvents.log, VfsState.VirtualFileSystem],
    into: elsewhere
  })
  const there = yield* elsewhere.filesystem
  yield* Console.log(`${resumed.id === session.id ? "The same session" : "Another session"}, in ${there.name}:`)
  yield* Console.log(indented(yield* there.readString(summary)))

  return {
    astray,
    back,
    answers: turns.map(({ result }) => result),
    plan,
    events,
    names,
    resumed: {
      plan: yield* resumed.all(Plan),
      calls: (yield* resumed.all(ToolEvents.log)).length,
      summary: yield* there.readString(summary),
      docs: (yield* there.list("docs")).map(({ name }) => name)
    }
  }
}).pipe(Effect.scoped)

if (import.meta.main) await Effect.runPromise(main)
