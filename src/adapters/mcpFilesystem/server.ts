/** Calls the tools of an MCP filesystem server, and reads their answers. */
import type { McpClient } from "effect/ai/McpClient"
import type { McpClientError } from "effect/ai/McpClientError"
import type { CallToolResult } from "effect/ai/McpSchema"
import * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Entry from "../../model/Entry.ts"
import * as Fault from "../../model/Fault.ts"
import * as FsPath from "../../model/FsPath.ts"
import { faultOfCode } from "../../runtime/host.ts"
import { randomUUID } from "../../runtime/node.ts"

type Content = CallToolResult["content"]

type Answer =
  | { readonly content: Content; readonly error?: never; readonly path?: never }
  /** `path` is the real path that the server tried to list. */
  | { readonly error: string; readonly path: string | undefined }

export interface Found {
  /** The metadata of the entry. Absent if no entry has exactly this path. */
  readonly stat?: Entry.FileStat
  /** True if the server resolves the name to an entry whose name differs in case or Unicode form. */
  readonly isOtherName?: boolean
}

export interface Server {
  readonly base: string
  /** Returns the path of an entry on the server. */
  readonly at: (path: FsPath.FsPath) => string
  readonly call: (tool: string, args: Readonly<Record<string, string>>) => Effect.Effect<Answer, Fault.Fault>
  readonly look: (path: FsPath.FsPath) => Effect.Effect<Found, Fault.Fault>
}

const invalidAnswer: Fault.Fault = Fault.ioError("the answer of the MCP server is not valid", "EPROTO")

/** Returns a fault with a detail, which a call shows in an IoError if its errors do not include Unsupported. */
export const unsupported = (feature: string): Fault.Fault => ({
  ...Fault.unsupported(feature),
  detail: `there is no ${feature}`
})

export const faultOfClient = (error: McpClientError): Fault.Fault => {
  const tag = error.reason._tag
  const fault =
    tag === "TimeoutError"
      ? Fault.unavailable("its MCP server did not answer in time")
      : tag === "TransportError" || tag === "ClosedError" || tag === "HttpError"
        ? Fault.unavailable("its MCP server cannot be started, or has closed the connection")
        : tag === "LimitError"
          ? Fault.ioError("a message from or to the MCP server is too large", "EMSGSIZE")
          : invalidAnswer
  return { ...fault, cause: error }
}

/** Returns the fault for the error of a tool. The text may begin with the code of an error of Node. */
export const faultOfText = (text: string): Fault.Fault => {
  const code = /^[A-Z][A-Z0-9]*(?=: )/.exec(text)?.[0]
  const fault =
    code !== undefined
      ? faultOfCode(code)
      : text.startsWith("Access denied")
        ? Fault.accessDenied("escape")
        : Fault.ioError("the MCP server reported an error")
  return { ...fault, cause: text }
}

const isGone = (error: string): boolean => /^(?:ENOENT|ENOTDIR): /.test(error)

/** Tests for errors about a symlink that is broken or leads out, or about a name that matches several entries. */
const isUnresolved = (error: string): boolean =>
  /^(?:ELOOP: |Parent directory does not exist|Access denied - symlink target|Ambiguous Unicode)/.test(error)

const contentOf = (answer: Answer): Effect.Effect<Content, Fault.Fault> =>
  answer.error === undefined ? Effect.succeed(answer.content) : Effect.fail(faultOfText(answer.error))

export const textOf = (answer: Answer): Effect.Effect<string, Fault.Fault> =>
  Effect.flatMap(contentOf(answer), ([block]) =>
    block?.type === "text" ? Effect.succeed(block.text) : Effect.fail(invalidAnswer)
  )

/** Returns the bytes in an answer of `read_media_file`. */
export const bytesOf = (answer: Answer): Effect.Effect<Uint8Array, Fault.Fault> =>
  Effect.flatMap(contentOf(answer), ([block]) =>
    block?.type === "image" || block?.type === "audio"
      ? Effect.succeed(block.data)
      : block?.type === "resource" && "blob" in block.resource
        ? Effect.succeed(block.resource.blob)
        : Effect.fail(invalidAnswer)
  )

/** Returns the names in an answer of `list_directory`, each with its mark for a directory or a file. */
export const namesOf = Effect.fnUntraced(function* (
  answer: Answer
): Effect.fn.Return<ReadonlyMap<string, "DIR" | "FILE">, Fault.Fault> {
  const names = new Map<string, "DIR" | "FILE">()
  const text = yield* textOf(answer)
  // A line without a mark continues a name that contains a line feed.
  for (const line of text === "" ? [] : text.split(/\n(?=\[(?:DIR|FILE)\] )/)) {
    const [, mark, name] = /^\[(DIR|FILE)\] ([^/]+)$/.exec(line) ?? []
    if (name === undefined || name === "." || name === "..") return yield* Effect.fail(invalidAnswer)
    names.set(name, mark as "DIR" | "FILE")
  }
  return names
})

const statOf = (path: FsPath.FsPath, text: string): Effect.Effect<Entry.FileStat, Fault.Fault> => {
  const fields = new Map(text.split("\n", 20).map((line) => line.split(/: (.*)/, 2) as [string, string]))
  const [size, isFile, isDirectory, mode] = ["size", "isFile", "isDirectory", "permissions"].map((key) => fields.get(key) ?? "")
  const [createdAt, modifiedAt] = ["created", "modified"].map((key) => DateTime.make(fields.get(key) ?? ""))
  if (!/^\d{1,15}$/.test(size!) || !/^(?:true|false) (?:true|false)$/.test(`${isFile} ${isDirectory}`)) {
    return Effect.fail(invalidAnswer)
  }
  const kind = isDirectory === "true" ? "directory" : isFile === "true" ? "file" : "other"
  return Effect.succeed(
    Entry.stat({
      path,
      kind,
      sizeBytes: kind === "file" ? Number(size) : 0,
      ...(Option.isSome(createdAt!) && { createdAt: DateTime.toUtc(createdAt.value) }),
      ...(Option.isSome(modifiedAt!) && { modifiedAt: DateTime.toUtc(modifiedAt.value) }),
      ...(/^[0-7]{3}$/.test(mode!) && { mode: Number.parseInt(mode!, 8) })
    })
  )
}

export interface ServerOptions {
  readonly root?: string | undefined
  readonly timeout?: Duration.Input | undefined
}

/** The number of allowed directories that an error names. */
const maxNamed = 10

/** Finds the tools and the root of a server. */
export const open = Effect.fnUntraced(function* (
  client: McpClient,
  { root, timeout = "30 seconds" }: ServerOptions
): Effect.fn.Return<Server, Fault.Fault> {
  const found = yield* Effect.mapError(client.listTools({ timeout }), faultOfClient)
  const tools = new Map(found.map((tool) => [tool.name, tool] as const))

  const call: Server["call"] = (name, args) => {
    const tool = tools.get(name)
    if (tool === undefined) return Effect.fail(unsupported(`tool ${name} on the MCP server`))
    const result = Effect.mapError(client.callTool({ tool, arguments: args }, { timeout }), faultOfClient)
    return Effect.flatMap(result, ({ content, isError }): Effect.Effect<Answer, Fault.Fault> => {
      if (isError !== true) return Effect.succeed({ content })
      if (content[0]?.type !== "text") return Effect.fail(invalidAnswer)
      const error = content[0].text.slice(0, 20_000)
      return Effect.succeed({ error, path: /^E[A-Z]+: [a-z ]+, scandir '([^]*)'$/.exec(error)?.[1] })
    })
  }

  const allowed = (yield* Effect.flatMap(call("list_allowed_directories", {}), textOf)).split("\n").slice(1)
  const given = root ?? (allowed.length === 1 ? allowed[0]! : "")
  if (!allowed.includes(given)) {
    const names = allowed.slice(0, maxNamed).map((name) => JSON.stringify(name))
    const others = allowed.length > maxNamed ? ", …" : ""
    const detail =
      allowed.length === 0
        ? "the MCP server allows no directory"
        : `it must be a directory that the MCP server allows: ${names.join(", ")}${others}`
    return yield* Effect.fail(Fault.invalidArgument("root", detail))
  }
  const info = yield* Effect.flatMap(call("get_file_info", { path: given }), textOf)
  if (!(yield* statOf(FsPath.root, info)).isDirectory) return yield* Effect.fail(Fault.notADirectory)
  // No entry has this name. The error of the server about it contains the real path of the directory.
  const absent = `/.~fsa-${randomUUID()}`
  const { path: real } = yield* call("list_directory", { path: given + absent })
  if (real?.startsWith("/") !== true || !real.endsWith(absent)) {
    return yield* Effect.fail(unsupported("support for an MCP server on Windows, or one whose errors do not tell real paths"))
  }
  const base = real.slice(0, -absent.length)
  if (!allowed.includes(base || "/")) return yield* Effect.fail(Fault.accessDenied("escape"))
  const hostPath = (path: FsPath.FsPath): string => (path === FsPath.root ? base : `${base}/${path}`)
  const at = (path: FsPath.FsPath): string => hostPath(path) || "/"

  /** Returns the real path that the server resolves a path to, or `undefined` if the entry no longer exists. */
  const realPath = Effect.fnUntraced(function* (
    path: FsPath.FsPath,
    kind: Entry.Kind
  ): Effect.fn.Return<string | undefined, Fault.Fault> {
    const suffix = kind === "directory" ? absent : ""
    const { error, path: real } = yield* call("list_directory", { path: hostPath(path) + suffix })
    if (error === undefined) return undefined
    if (real?.endsWith(suffix) === true) return real.slice(0, real.length - suffix.length)
    return isGone(error) ? undefined : yield* Effect.fail(faultOfText(error))
  })

  const look = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<Found, Fault.Fault> {
    const answer = yield* call("get_file_info", { path: at(path) })
    let isOtherName = false
    if (answer.error === undefined) {
      const stat = yield* statOf(path, yield* textOf(answer))
      const real = yield* realPath(path, stat.kind)
      if (real === hostPath(path)) return { stat }
      if (real === undefined) return {}
      isOtherName = FsPath.fold(real.normalize()) === FsPath.fold(hostPath(path).normalize())
    } else {
      // U+FFFD stands for bytes that are not UTF-8, and no path leads to such a name.
      if (isGone(answer.error) || path.includes("\ufffd")) return {}
      if (!isUnresolved(answer.error)) return yield* Effect.fail(faultOfText(answer.error))
      isOtherName = answer.error.startsWith("Ambiguous")
    }
    // The entry is a symlink, or the path leads through one.
    const parent = FsPath.parent(path)
    if (path === FsPath.root || (yield* realPath(parent, "directory")) !== hostPath(parent)) return {}
    return isOtherName ? { isOtherName } : { stat: Entry.stat({ path, kind: "symlink", sizeBytes: 0, isSymlink: true }) }
  })

  return { base: base || "/", at, call, look }
})
