/**
 * Shared functions of the text editor tool and the memory tool. The functions check requests, and read and change lines of
 * text.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { type Call, type Definition, type Refused, refused, type ToolFailure } from "../../agent/definition.ts"
import * as Tool from "../../agent/Tool.ts"
import { formatSize as size } from "../../model/words.ts"

/** The type of each parameter that commands can have. `range` is a pair of line numbers. */
const types = {
  command: "string",
  file_text: "string",
  insert_line: "integer",
  insert_text: "string",
  new_path: "string",
  new_str: "string",
  old_path: "string",
  old_str: "string",
  path: "string",
  view_range: "range"
} as const

export type Parameter = keyof typeof types

/** The parameters of each command. A parameter with a question mark may be missing. */
export type Commands = Readonly<Record<string, ReadonlyArray<Parameter | `${Parameter}?`>>>

const isOf = (type: (typeof types)[Parameter], value: unknown): boolean =>
  type === "string"
    ? typeof value === "string"
    : type === "integer"
      ? Number.isSafeInteger(value)
      : Array.isArray(value) && value.length === 2 && value.every((line) => Number.isSafeInteger(line))

const words = { string: "a string", integer: "an integer", range: "a list of two integers" } as const

/** Returns the known arguments of a request. Throws an error with the provider's words if the request is malformed. */
export const checkRequest = (tool: string, commands: Commands, input: unknown): Readonly<Record<string, unknown>> => {
  const sent = (typeof input === "object" && input !== null ? input : {}) as Readonly<Record<string, unknown>>
  const command = sent["command"]
  if (typeof command !== "string" || !Object.hasOwn(commands, command)) {
    const allowed = Object.keys(commands).join(", ")
    const shown = typeof command === "string" ? command : JSON.stringify(command)
    throw new Error(`Unrecognized command ${shown}. The allowed commands for the ${tool} tool are: ${allowed}`)
  }
  const checked: Record<string, unknown> = { command }
  for (const parameter of commands[command]!) {
    const isOptional = parameter.endsWith("?")
    const name = (isOptional ? parameter.slice(0, -1) : parameter) as Parameter
    const value = Object.hasOwn(sent, name) ? sent[name] : undefined
    if (value === undefined || value === null) {
      if (isOptional) continue
      throw new Error(`Parameter \`${name}\` is required for command: ${command}`)
    }
    if (!isOf(types[name], value)) throw new Error(`Invalid \`${name}\`. It should be ${words[types[name]]}.`)
    checked[name] = value
  }
  return checked
}

const fields = {
  command: Schema.String,
  file_text: Schema.optionalKey(Schema.String),
  insert_line: Schema.optionalKey(Schema.Int),
  insert_text: Schema.optionalKey(Schema.String),
  new_path: Schema.optionalKey(Schema.String),
  new_str: Schema.optionalKey(Schema.String),
  old_path: Schema.optionalKey(Schema.String),
  old_str: Schema.optionalKey(Schema.String),
  path: Schema.optionalKey(Schema.String),
  view_range: Schema.optionalKey(Schema.Array(Schema.Int))
}

/** The arguments of a checked request. Each command has the arguments that `Commands` names. */
export type Request = Schema.Struct<typeof fields>["Type"]

export type CommandTool = Definition<string, typeof fields, typeof Schema.Null, never>

export interface CommandTools {
  readonly view: CommandTool
  readonly change: CommandTool
}

interface CommandToolOptions {
  readonly name: string
  readonly does: "reads" | "changes"
  readonly example: Schema.Struct<typeof fields>["Encoded"]
  readonly touches: CommandTool["touches"]
  readonly answer: (request: Request, call: Call) => Effect.Effect<string, ToolFailure>
}

/** Makes a tool whose message is the answer of a command. Policies see the tool under the provider's name. */
export const commandTool = ({ answer, does, example, name, touches }: CommandToolOptions): CommandTool =>
  Tool.make({
    name,
    description: `Carries out the commands of Anthropic's tool ${name}.`,
    parameters: Schema.Struct(fields),
    value: Schema.Null,
    does,
    needsFilesystem: true,
    examples: [example],
    touches,
    handle: (request, call) => Effect.map(answer(request, call), (message) => ({ message, value: null }))
  })

export const fail = (happened: string, advice = ""): Effect.Effect<never, Refused> => Effect.fail(refused(happened, advice))

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export interface TextFile {
  readonly text: string
  readonly version: string
}

/** Reads a UTF-8 file with its version. Records that the session has read this version. */
export const readText = (call: Call, path: FsPath, shown: string): Effect.Effect<TextFile, ToolFailure> =>
  Effect.flatMap(call.filesystem.readBytes(path, { version: true }), ({ content, version }) => {
    try {
      const text = decoder.decode(content)
      call.memory.saw(path, version, text)
      return Effect.succeed({ text, version })
    } catch {
      return fail(`The file ${shown} is not UTF-8 text (${size(content.length)}).`)
    }
  })

/** Replaces the text of a file that has the given version. */
export const replaceText = (call: Call, path: FsPath, text: string, ifMatch: string): Effect.Effect<string, ToolFailure> =>
  Effect.map(call.filesystem.write(path, text, { mode: "replace", ifMatch, version: true }), ({ version }) => {
    call.memory.saw(path, version, text)
    return version
  })

export const withLf = (text: string): string => text.replaceAll("\r\n", "\n")

/** Returns the 1-based lines on which a text occurs, without overlap. An empty text occurs nowhere. */
export const linesOf = (text: string, wanted: string): ReadonlyArray<number> => {
  const found: Array<number> = []
  let [line, counted] = [1, 0]
  for (let at = wanted === "" ? -1 : text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
    for (; counted < at; counted++) if (text.charCodeAt(counted) === 10) line++
    found.push(line)
  }
  return found
}

/** Replaces the only occurrence of a text. Keeps the line endings, the encoding and the byte order mark of the file. */
export const replaceOnly = (
  call: Call,
  path: FsPath,
  edit: { readonly oldText: string; readonly newText: string },
  ifMatch: string
): Effect.Effect<TextFile, ToolFailure> =>
  Effect.andThen(call.filesystem.edit(path, edit, { ifMatch }), readText(call, path, path))

/** Creates the file of the command `create`. Fails with `isTaken` if there is an entry at the path. */
export const createText = (
  { file_text: text = "", path: shown }: Request,
  call: Call,
  path: FsPath,
  isTaken: Effect.Effect<never, Refused>
): Effect.Effect<string, ToolFailure> =>
  call.filesystem.write(path, text, { mode: "create", version: true }).pipe(
    Effect.catchTags({ AlreadyExists: () => isTaken, NotAFile: () => isTaken }),
    Effect.map(({ version }) => {
      call.memory.saw(path, version, text)
      return `File created successfully at: ${shown}`
    })
  )

/** Inserts lines after the given number of lines. One line ending at the end of the new text is ignored. */
const insertLines = (text: string, after: number, inserted: string): string => {
  const ending = text.includes("\r\n") ? "\r\n" : "\n"
  const lines = text.split(ending)
  lines.splice(after, 0, withLf(inserted).replace(/\n$/, "").replaceAll("\n", ending))
  return lines.join(ending)
}

/** Inserts the text of the command `insert`, and returns the new version of the file. */
export const insertText = (
  { insert_line: line = 0, new_str, insert_text: inserted = new_str ?? "" }: Request,
  call: Call,
  path: FsPath,
  { text, version }: TextFile
): Effect.Effect<string, ToolFailure> => {
  const lines = withLf(text).split("\n").length
  return line < 0 || line > lines
    ? fail(`Invalid \`insert_line\` parameter: ${line}. It should be within the range of lines of the file: [0, ${lines}]`)
    : replaceText(call, path, insertLines(text, line, inserted), version)
}

/** Puts the number of each line before it, as `cat -n` does. */
export const numberLines = (lines: ReadonlyArray<string>, first: number): string =>
  lines.map((line, index) => `${String(first + index).padStart(6)}\t${line}`).join("\n")

interface Listed {
  /** The path below the listed directory. */
  readonly path: string
  readonly isDirectory: boolean
  readonly at: FsPath
}

/**
 * Lists the entries of a directory up to two levels deep, sorted by name. Omits the names that `isShown` rejects, the links
 * that `isFollowed` rejects, names that no path can express, and entries without a stat, such as broken links.
 */
export const listTwoLevels = Effect.fnUntraced(function* (
  fs: Algebra,
  top: FsPath,
  isShown: (name: string) => boolean,
  isFollowed: (link: FsPath) => Effect.Effect<boolean> = () => Effect.succeed(true),
  depth = 2
): Effect.fn.Return<ReadonlyArray<Listed>, ToolFailure> {
  const listed: Array<Listed> = []
  const entries = (yield* fs.list(top)).filter(({ addressable, name }) => addressable && isShown(name))
  for (const { kind, name, path } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const found = yield* Effect.option(fs.stat(path))
    const isKept = kind !== "symlink" || (yield* isFollowed(path))
    if (found._tag === "None" || !isKept) continue
    const { isDirectory } = found.value
    listed.push({ path: name, isDirectory, at: path })
    if (!isDirectory || depth === 1) continue
    const below = yield* Effect.orElseSucceed(listTwoLevels(fs, path, isShown, isFollowed, depth - 1), () => [])
    for (const child of below) listed.push({ ...child, path: `${name}/${child.path}` })
  }
  return listed
})
