/** The commands of the memory tool. The answers are those of the implementation in the provider's SDK. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Call, type ToolFailure, type Touch } from "../../agent/definition.ts"
import { removeDirectory } from "../../agent/tools/rm.ts"
import * as FsPath from "../../model/FsPath.ts"
import { whole } from "../../model/words.ts"
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
  type Request,
  withLf
} from "./commands.ts"

export const commands: Commands = {
  view: ["path", "view_range?"],
  create: ["path", "file_text"],
  str_replace: ["path", "old_str", "new_str"],
  insert: ["path", "insert_line", "insert_text"],
  delete: ["path"],
  rename: ["old_path", "new_path"]
}

const top = "/memories"
const maxLines = 999_999

/** Resolves `.` and `..` below /memories. Fails for a path that is not below it. */
const segmentsOf = (path: string): Effect.Effect<ReadonlyArray<string>, ToolFailure> => {
  if (path !== top && !path.startsWith(`${top}/`)) return fail(`Path must start with /memories, got: ${path}`)
  const segments: Array<string> = []
  for (const segment of path.slice(top.length).split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment !== "..") segments.push(segment)
    else if (segments.pop() === undefined) return fail(`Path ${path} would escape /memories directory`)
  }
  return Effect.succeed(segments)
}

const formatSize = (bytes: number): string => {
  if (bytes === 0) return "0B"
  const units = ["B", "K", "M", "G"]
  const unit = Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)))
  const size = bytes / 1024 ** unit
  return `${size % 1 === 0 ? size : size.toFixed(1)}${units[unit]}`
}

const noSuchPath = (path: string) => fail(`The path ${path} does not exist. Please provide a valid path.`)

/** Sums the sizes of the files below a directory. Returns 0 if the walk fails. */
const sizeBelow = ({ filesystem }: Call, path: FsPath.FsPath): Effect.Effect<number> =>
  Effect.orElseSucceed(
    Stream.runFold(
      filesystem.walk(path, { sizes: true }),
      () => 0,
      (sum, { sizeBytes = 0 }) => sum + sizeBytes
    ),
    () => 0
  )

const listing = (shown: string, size: number, lines: ReadonlyArray<string>): string => {
  const header = `Here're the files and directories up to 2 levels deep in ${shown}, excluding hidden items and node_modules:`
  return [header, `${formatSize(size)}\t${shown}`, ...lines].join("\n")
}

/**
 * Tests whether a path, with its links resolved, stays inside the directory of the memories. If the path does not exist, tests
 * its nearest parent that exists.
 */
const staysInside = Effect.fnUntraced(function* (
  { filesystem }: Call,
  base: FsPath.FsPath,
  path: FsPath.FsPath
): Effect.fn.Return<boolean, ToolFailure> {
  const realPath = (at: FsPath.FsPath) => Effect.catchTag(filesystem.realPath(at), "NotFound", () => Effect.undefined)
  const top = yield* realPath(base)
  if (top === undefined) return true
  for (let at = path; at !== base; at = FsPath.parent(at)) {
    const real = yield* realPath(at)
    if (real !== undefined) return FsPath.isWithin(top, real)
    // A write through a broken link would create its target.
    const isThere = Effect.match(filesystem.lstat(at), { onFailure: () => false, onSuccess: () => true })
    if (yield* isThere) return false
  }
  return true
})

const viewDirectory = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath.FsPath,
  shown: string,
  isInside: (path: FsPath.FsPath) => Effect.Effect<boolean, ToolFailure>
) {
  const { filesystem } = call
  const isShown = (name: string): boolean => !name.startsWith(".") && name !== "node_modules"
  const isFollowed = (link: FsPath.FsPath) => Effect.orElseSucceed(isInside(link), () => false)
  const entries = yield* listTwoLevels(filesystem, path, isShown, isFollowed)
  const lines = yield* Effect.forEach(entries, ({ at, isDirectory, path: below }) =>
    Effect.map(
      isDirectory ? sizeBelow(call, at) : Effect.map(filesystem.stat(at), ({ sizeBytes }) => sizeBytes),
      (size) => `${formatSize(size)}\t${shown}/${below}${isDirectory ? "/" : ""}`
    )
  )
  return listing(shown, yield* sizeBelow(call, path), lines)
})

const viewFile = Effect.fnUntraced(function* (call: Call, path: FsPath.FsPath, shown: string, range?: ReadonlyArray<number>) {
  const { text } = yield* readText(call, path, shown)
  const lines = text.split("\n")
  if (lines.length > maxLines)
    return yield* fail(`File ${shown} has too many lines (${lines.length}). Maximum is ${whole(maxLines)} lines.`)
  const [first = 1, last = -1] = range ?? []
  const from = Math.max(1, first)
  const wanted = lines.slice(from - 1, last === -1 ? lines.length : last)
  return `Here's the content of ${shown} with line numbers:\n${numberLines(wanted, from)}`
})

const replace = Effect.fnUntraced(function* (request: Request, call: Call, path: FsPath.FsPath) {
  const { new_str: newText = "", old_str: oldText = "", path: shown = "" } = request
  const { text, version } = yield* readText(call, path, shown)
  const found = linesOf(withLf(text), withLf(oldText))
  const [line] = found
  if (line === undefined)
    return yield* fail(`No replacement was performed, old_str \`${oldText}\` did not appear verbatim in ${shown}.`)
  if (found.length > 1) {
    const where = [...new Set(found)].join(", ")
    return yield* fail(
      `No replacement was performed. Multiple occurrences of old_str \`${oldText}\` in lines: ${where}. Please ensure it is unique`
    )
  }
  const lines = (yield* replaceOnly(call, path, { oldText, newText }, version)).text.split("\n")
  const from = Math.max(0, line - 3)
  const snippet = numberLines(lines.slice(from, line + 2), from + 1)
  return `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${snippet}`
})

const insert = Effect.fnUntraced(function* (request: Request, call: Call, path: FsPath.FsPath) {
  const { path: shown = "" } = request
  yield* insertText(request, call, path, yield* readText(call, path, shown))
  return `The file ${shown} has been edited.`
})

/** Makes the tools over a directory, which the model sees as /memories. Policies see the tool `view` as a tool that reads. */
export const makeMemory = (directory: string): CommandTools => {
  const parse = (segments: ReadonlyArray<string>, shown: string, call: Call): Effect.Effect<FsPath.FsPath, ToolFailure> =>
    Effect.catchTags(call.path([directory, ...segments].join("/"), { blank: "root" }), {
      InvalidPath: ({ detail }) => fail(`The path ${shown} is not valid: ${detail}.`),
      PathTooLong: () => fail(`The path ${shown} is too long.`)
    })
  const isInside = (path: FsPath.FsPath, call: Call) =>
    Effect.flatMap(parse([], top, call), (base) => staysInside(call, base, path))
  const pathOf = Effect.fnUntraced(function* (shown: string, call: Call): Effect.fn.Return<FsPath.FsPath, ToolFailure> {
    const path = yield* parse(yield* segmentsOf(shown), shown, call)
    if (yield* isInside(path, call)) return path
    return yield* fail(`Path ${shown} would escape /memories directory via symlink`)
  })
  const isTop = (shown: string) => Effect.map(segmentsOf(shown), ({ length }) => length === 0)

  const view = Effect.fnUntraced(function* (
    { path: shown = "", view_range: range }: Request,
    call: Call
  ): Effect.fn.Return<string, ToolFailure> {
    const path = yield* pathOf(shown, call)
    // A store without memories is an empty directory, even before its directory exists.
    if ((yield* isTop(shown)) && !(yield* call.filesystem.exists(path))) return listing(shown, 0, [])
    const { isDirectory, isFile } = yield* Effect.catchTag(call.filesystem.stat(path), "NotFound", () => noSuchPath(shown))
    if (isDirectory) return yield* viewDirectory(call, path, shown, (at) => isInside(at, call))
    return yield* isFile ? viewFile(call, path, shown, range) : fail(`Unsupported file type for ${shown}`)
  })

  const create = (request: Request, call: Call) =>
    Effect.flatMap(pathOf(request.path ?? "", call), (path) =>
      createText(request, call, path, fail(`File ${request.path} already exists`))
    )

  const edit = Effect.fnUntraced(function* (request: Request, call: Call) {
    const { path: shown = "" } = request
    const path = yield* pathOf(shown, call)
    const { isFile } = yield* Effect.catchTag(call.filesystem.stat(path), "NotFound", () => noSuchPath(shown))
    if (!isFile) return yield* fail(`The path ${shown} is not a file.`)
    return yield* request.command === "insert" ? insert(request, call, path) : replace(request, call, path)
  })

  const remove = Effect.fnUntraced(function* ({ path: shown = "" }: Request, call: Call) {
    if (yield* isTop(shown)) return yield* fail("Cannot delete the /memories directory itself")
    const path = yield* pathOf(shown, call)
    yield* Effect.catchTags(removeDirectory(call.filesystem, path, "fail"), {
      NotFound: () => fail(`The path ${shown} does not exist`),
      NotADirectory: () => fail(`The path ${shown} does not exist`)
    })
    call.memory.forget(path)
    return `Successfully deleted ${shown}`
  })

  const rename = Effect.fnUntraced(function* ({ new_path: to = "", old_path: from = "" }: Request, call: Call) {
    const [fromPath, toPath] = [yield* pathOf(from, call), yield* pathOf(to, call)]
    if (yield* isTop(from)) return yield* fail("Cannot rename the /memories directory itself")
    const isTaken = fail(`The destination ${to} already exists`)
    if (yield* call.filesystem.exists(toPath)) return yield* isTaken
    if (!(yield* call.filesystem.exists(fromPath))) return yield* fail(`The path ${from} does not exist`)
    if (toPath.startsWith(`${fromPath}/`)) return yield* fail(`Cannot rename ${from} to ${to}, which is inside it`)
    yield* call.filesystem.mkdir(FsPath.parent(toPath))
    yield* Effect.catchTag(call.filesystem.move(fromPath, toPath), "AlreadyExists", () => isTaken)
    call.memory.carry(fromPath, toPath)
    call.memory.forget(fromPath)
    return `Successfully renamed ${from} to ${to}`
  })

  const change = (request: Request, call: Call): Effect.Effect<string, ToolFailure> => {
    switch (request.command) {
      case "create":
        return create(request, call)
      case "delete":
        return remove(request, call)
      case "rename":
        return rename(request, call)
      default:
        return edit(request, call)
    }
  }

  const changes = (request: Request, call: Call): Effect.Effect<ReadonlyArray<Touch>, ToolFailure> => {
    if (request.command !== "rename")
      return Effect.map(pathOf(request.path ?? "", call), (path) => [
        { access: request.command === "delete" ? "delete" : "write", path }
      ])
    return Effect.map(
      Effect.all([pathOf(request.old_path ?? "", call), pathOf(request.new_path ?? "", call)]),
      ([from, to]) => [
        { access: "delete", path: from },
        { access: "write", path: to }
      ]
    )
  }

  return {
    view: commandTool({
      name: "memory",
      does: "reads",
      example: { command: "view", path: "/memories" },
      touches: ({ path = "" }, call) => Effect.map(pathOf(path, call), (at) => [{ access: "read", path: at }]),
      answer: view
    }),
    change: commandTool({
      name: "memory",
      does: "changes",
      example: { command: "create", path: "/memories/notes.md", file_text: "Tea.\n" },
      touches: changes,
      answer: change
    })
  }
}
