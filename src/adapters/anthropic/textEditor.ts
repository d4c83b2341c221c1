/**
 * The commands of the text editor tool. The answers are those of the provider's documentation and, where it states none, of the
 * provider's reference implementation.
 */
import * as Effect from "effect/Effect"
import { type Call, type ToolFailure, type Touch } from "../../agent/definition.ts"
import { splitsPair } from "../../agent/text/fit.ts"
import type { FsPath } from "../../model/FsPath.ts"
import {
  type Commands,
  commandTool,
  type CommandTools,
  createText,
  fail,
  insertText,
  linesOf,
  listTwoLevels,
  numberLines,
  readText,
  replaceOnly,
  replaceText,
  type Request,
  type TextFile,
  withLf
} from "./commands.ts"

/** The commands of the versions without `undo_edit`. */
export const commands: Commands = {
  view: ["path", "view_range?"],
  create: ["path", "file_text"],
  str_replace: ["path", "old_str", "new_str?"],
  insert: ["path", "insert_line", "insert_text"]
}

export const commandsWithUndo: Commands = {
  ...commands,
  insert: ["path", "insert_line", "new_str"],
  undo_edit: ["path"]
}

interface Edit {
  readonly path: FsPath
  readonly before: string
  readonly after: string
}

const maxHistory = 100
const maxHistoryLength = 8 * 1024 * 1024

const clippedNote =
  "<response clipped><NOTE>Only a part of the file is shown. Use `view_range` to read the lines that you are looking for.</NOTE>"

/** Replaces the text of errors for which the provider's documentation states a text. */
const inProvidersWords = <A>(answer: Effect.Effect<A, ToolFailure>, does: "read" | "write"): Effect.Effect<A, ToolFailure> =>
  Effect.catch(answer, (failure): Effect.Effect<never, ToolFailure> => {
    switch (failure._tag) {
      case "NotFound":
      case "NotADirectory":
        return fail("File not found")
      case "AccessDenied":
        return fail("Permission denied.", `Cannot ${does} ${does === "read" ? "" : "to "}file.`)
      default:
        return Effect.fail(failure)
    }
  })

const checkRange = (range: ReadonlyArray<number>, lines: number): string | undefined => {
  const [first, last] = range as [number, number]
  const what = `Invalid \`view_range\`: [${first}, ${last}].`
  if (first < 1 || first > Math.max(1, lines))
    return `${what} Its first element \`${first}\` should be within the range of lines of the file: [1, ${lines}]`
  if (last > lines)
    return `${what} Its second element \`${last}\` should be smaller than the number of lines in the file: \`${lines}\``
  if (last !== -1 && last < first)
    return `${what} Its second element \`${last}\` should be larger or equal than its first \`${first}\``
  return undefined
}

const clip = (text: string, max: number | undefined): string =>
  max === undefined || text.length <= max ? text : text.slice(0, splitsPair(text, max) ? max - 1 : max)

const shownLines = (text: string): ReadonlyArray<string> => withLf(text).replace(/\n$/, "").split("\n")

const viewFile = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  { path: shown = "", view_range: range }: Request,
  max?: number
) {
  const { text } = yield* readText(call, path, shown)
  const lines = shownLines(text)
  const problem = range && checkRange(range, lines.length)
  if (problem !== undefined) return yield* fail(problem)
  const [first = 1, last = -1] = range ?? []
  const wanted = lines.slice(first - 1, last === -1 ? undefined : last).join("\n")
  const clipped = clip(wanted, max)
  const numbered = clipped.split("\n").map((line, index) => `${first + index}: ${line}`)
  return [...numbered, ...(clipped.length < wanted.length ? [clippedNote] : [])].join("\n")
})

const viewDirectory = Effect.fnUntraced(function* (call: Call, path: FsPath, { path: shown = "", view_range: range }: Request) {
  if (range !== undefined) return yield* fail("The `view_range` parameter is not allowed when `path` points to a directory.")
  const entries = yield* listTwoLevels(call.filesystem, path, (name) => !name.startsWith("."))
  const top = shown.replace(/(?<=[^/])\/+$/, "")
  const below = entries.map((entry) => (top.endsWith("/") ? `${top}${entry.path}` : `${top}/${entry.path}`))
  return `Here's the files and directories up to 2 levels deep in ${shown}, excluding hidden items:\n${[top, ...below].join("\n")}\n`
})

const pathOf = ({ path = "" }: Request, call: Call) => call.path(path, { blank: "root" })

const touching =
  (access: Touch["access"]) =>
  (request: Request, call: Call): Effect.Effect<ReadonlyArray<Touch>, ToolFailure> =>
    Effect.map(
      Effect.catchTag(pathOf(request, call), "InvalidPath", ({ detail }) =>
        fail(`The path ${request.path} is not valid: ${detail}.`, "Please provide a valid path below the root.")
      ),
      (path) => [{ access, path }]
    )

/** Makes the tools of one session, with a history for `undo_edit`. Policies see the tool `view` as a tool that reads. */
export const makeTextEditor = (name: string, maxCharacters?: number): CommandTools => {
  const history: Array<Edit> = []
  const remember = (edit: Edit): void => {
    history.push(edit)
    let length = history.reduce((sum, { before }) => sum + before.length, 0)
    while (history.length > maxHistory || length > maxHistoryLength) length -= history.shift()!.before.length
  }

  const create = (request: Request, call: Call, path: FsPath) => {
    const isTaken = fail(`File already exists at: ${request.path}.`, "Cannot overwrite files using command `create`.")
    return createText(request, call, path, isTaken)
  }

  const replace = Effect.fnUntraced(function* (request: Request, call: Call, path: FsPath, { text, version }: TextFile) {
    const { new_str: newText = "", old_str: oldText = "" } = request
    const { length } = linesOf(withLf(text), withLf(oldText))
    if (length === 0) return yield* fail("No match found for replacement.", "Please check your text and try again.")
    if (length > 1)
      return yield* fail(`Found ${length} matches for replacement text.`, "Please provide more context to make a unique match.")
    const { version: after } = yield* replaceOnly(call, path, { oldText, newText }, version)
    remember({ path, before: text, after })
    return "Successfully replaced text at exactly one location."
  })

  const insert = Effect.fnUntraced(function* (request: Request, call: Call, path: FsPath, file: TextFile) {
    const after = yield* insertText(request, call, path, file)
    remember({ path, before: file.text, after })
    return `The file ${request.path} has been edited.`
  })

  const undo = Effect.fnUntraced(function* ({ path: shown }: Request, call: Call, path: FsPath, { version }: TextFile) {
    const index = history.findLastIndex((edit) => edit.path === path)
    const edit = history[index]
    if (edit === undefined) return yield* fail(`No edit history found for ${shown}.`)
    if (edit.after !== version)
      return yield* fail(
        `Nothing was undone, because the file ${shown} has changed since the last edit with this tool.`,
        "View the file again."
      )
    yield* replaceText(call, path, edit.before, version)
    history.splice(index, 1)
    return `Last edit to ${shown} undone successfully. Here's the result of running \`cat -n\` on ${shown}:\n${numberLines(withLf(edit.before).split("\n"), 1)}\n`
  })

  const view = (request: Request, call: Call) =>
    Effect.flatMap(pathOf(request, call), (path) =>
      Effect.flatMap(call.filesystem.stat(path), ({ isDirectory }) =>
        isDirectory ? viewDirectory(call, path, request) : viewFile(call, path, request, maxCharacters)
      )
    )

  const change = Effect.fnUntraced(function* (request: Request, call: Call): Effect.fn.Return<string, ToolFailure> {
    const path = yield* pathOf(request, call)
    if (request.command === "create") return yield* create(request, call, path)
    if ((yield* call.filesystem.stat(path)).isDirectory)
      return yield* fail(`The path ${request.path} is a directory and only the \`view\` command can be used on directories`)
    const file = yield* readText(call, path, request.path ?? "")
    if (request.command === "str_replace") return yield* replace(request, call, path, file)
    return yield* request.command === "insert" ? insert(request, call, path, file) : undo(request, call, path, file)
  })

  return {
    view: commandTool({
      name,
      does: "reads",
      example: { command: "view", path: "src/main.ts", view_range: [1, 20] },
      touches: touching("read"),
      answer: (request, call) => inProvidersWords(view(request, call), "read")
    }),
    change: commandTool({
      name,
      does: "changes",
      example: { command: "str_replace", path: "src/main.ts", old_str: "one", new_str: "two" },
      touches: touching("write"),
      answer: (request, call) => inProvidersWords(change(request, call), "write")
    })
  }
}
