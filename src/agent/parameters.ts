/**
 * Rewrites arguments that have the names of other agents' tools, and describes the errors in arguments. A description has the
 * names and the expected types of wrong parameters, and one correct call. For a long value that was sent, it states only the kind.
 */
import { isReadonlyObject as isRecord } from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { nameDistance } from "../engine/nearest.ts"
import { listed } from "../model/words.ts"
import type { AnyDefinition } from "./definition.ts"

// Accepts the argument names of Claude Code, Codex, Cursor, Gemini and the reference servers, because models send these names
// even if the schema has others. Only arguments that do not decode are rewritten, and only if their meaning is certain.

type SentArguments = Readonly<Record<string, unknown>>
type SchemaNode = Readonly<Record<string, unknown>>

const documents = new WeakMap<AnyDefinition<unknown>, ReturnType<typeof Schema.toJsonSchemaDocument>>()

const documentOf = (definition: AnyDefinition<unknown>) => {
  const document = documents.get(definition) ?? Schema.toJsonSchemaDocument(definition.parameters as Schema.Top)
  documents.set(definition, document)
  return document
}

/** The accepted aliases of each parameter, in snake case. */
const aliases: Readonly<Record<string, ReadonlyArray<string>>> = {
  path: [
    "file_path",
    "filepath",
    "file",
    "filename",
    "file_name",
    "absolute_path",
    "target_file",
    "target_directory",
    "relative_workspace_path",
    "relative_path",
    "dir",
    "directory",
    "dir_path",
    "directory_path",
    "folder"
  ],
  old_string: ["old_str", "old_text", "old", "search", "find", "original"],
  new_string: ["new_str", "new_text", "new", "replace", "replacement", "updated"],
  content: ["contents", "text", "data", "body", "file_text", "file_content"],
  pattern: ["query", "regex", "regexp", "search", "glob_pattern", "search_pattern"],
  glob: ["include", "file_glob", "file_pattern", "include_pattern", "file_filter", "includes"],
  max_matches: ["max_results", "max", "max_count", "head_limit", "limit"],
  ignore_case: ["case_insensitive", "i", "_i"],
  context: ["_c", "context_lines", "lines_of_context"],
  literal: ["fixed_strings", "fixed_string", "_f"],
  whole_word: ["word", "_w", "match_whole_word"],
  include_ignored: ["no_ignore", "no_gitignore", "include_gitignored"],
  depth: ["max_depth", "level", "levels", "_l"],
  from: ["source", "src", "old_path", "source_path", "from_path"],
  to: ["destination", "dest", "dst", "target", "new_path", "destination_path", "to_path"],
  overwrite: ["force", "replace_existing"],
  allow_missing: ["force", "missing_ok", "ignore_missing"],
  patch: ["diff", "input", "patch_text"],
  command: ["cmd", "argv"],
  cwd: ["workdir", "working_directory", "work_dir", "directory", "dir"],
  code: ["script", "source", "program"],
  replace_all: ["all", "global", "allow_multiple"],
  limit: ["count", "num_lines", "max_lines", "line_count"],
  line: ["start_line", "start_line_one_indexed", "line_start", "line_number", "from_line"],
  snapshot_id: ["snapshot", "id", "ref", "from"],
  tag: ["name", "label", "message"],
  paths: ["path", "files", "file_paths"]
}

const toSnakeCase = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase()

const maxNameLength = 60

const parameterFor = (name: string, known: ReadonlyArray<string>): string | undefined => {
  if (name.length > maxNameLength) return undefined
  const word = toSnakeCase(name)
  return known.includes(word)
    ? word
    : known.find((parameter) => Object.hasOwn(aliases, parameter) && aliases[parameter]!.includes(word))
}

/**
 * The arguments sent to a tool, with names in snake case. A rewriting rule takes the arguments that it understands, and sets
 * the corresponding parameters.
 */
class Arguments {
  readonly remaining: Map<string, unknown>
  #taken: readonly [name: string, value: unknown] | undefined
  constructor(sent: SentArguments, known: ReadonlyArray<string>) {
    this.remaining = new Map()
    for (const [name, value] of Object.entries(sent)) {
      const word = known.includes(name) || name.length > maxNameLength ? name : toSnakeCase(name)
      this.remaining.set(this.remaining.has(word) ? name : word, value)
    }
  }
  take<A>(names: ReadonlyArray<string>, read: (value: unknown) => A | undefined): A | undefined {
    for (const name of names) {
      const value = this.remaining.has(name) ? read(this.remaining.get(name)) : undefined
      if (value === undefined) continue
      this.#taken = [name, this.remaining.get(name)]
      this.remaining.delete(name)
      return value
    }
    return undefined
  }
  restoreTaken(): void {
    if (this.#taken !== undefined) this.remaining.set(...this.#taken)
  }
  drop(names: ReadonlyArray<string>, isIdle: (value: unknown) => boolean = () => true): void {
    for (const name of names) if (this.remaining.has(name) && isIdle(this.remaining.get(name))) this.remaining.delete(name)
  }
  /**
   * Sets a parameter to a value derived from the argument taken last. If the parameter already has another value, nothing is
   * set and the taken argument is put back.
   */
  setParameter(name: string, value: unknown): void {
    if (value === undefined || this.remaining.get(name) === value) return
    if (this.remaining.has(name)) this.restoreTaken()
    else this.remaining.set(name, value)
  }
}

const asNumber = (value: unknown): number | undefined =>
  typeof value === "number"
    ? value
    : typeof value === "string" && /^\s*-?\d+(?:\.\d+)?\s*$/.test(value)
      ? Number(value)
      : undefined

const asBoolean = (value: unknown): boolean | undefined =>
  typeof value === "boolean"
    ? value
    : typeof value === "string" && /^\s*(?:true|false)\s*$/i.test(value)
      ? value.trim().toLowerCase() === "true"
      : undefined

const asNatural = (value: unknown): number | undefined => {
  const n = asNumber(value)
  return n !== undefined && Number.isInteger(n) && n >= 0 ? n : undefined
}

const asString = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)
const asStrings = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined
const asPair = (value: unknown): readonly [number, number] | undefined =>
  Array.isArray(value) && value.length === 2 && value.every((item) => asNumber(item) !== undefined)
    ? [asNumber(value[0])!, asNumber(value[1])!]
    : undefined
const oneOf =
  <A>(table: Readonly<Record<string, A>>) =>
  (value: unknown): A | undefined =>
    typeof value === "string" && Object.hasOwn(table, value) ? table[value] : undefined

const isTrue = (value: unknown): boolean => asBoolean(value) === true
const isFalse = (value: unknown): boolean => asBoolean(value) === false
const isEmptyValue = (value: unknown): boolean => value === "" || (Array.isArray(value) && value.length === 0)
const isUtf8 = (value: unknown): boolean => typeof value === "string" && /^utf-?8$/i.test(value)

const wordsForUser = ["explanation", "description", "justification", "instructions", "instruction"]

/** The globs of the ripgrep file types whose glob is not `*.<type>`. Any other type is treated as a file extension. */
const ripgrepTypes: Readonly<Record<string, string>> = {
  c: "*.{c,h}",
  cpp: "*.{cc,cpp,cxx,hh,hpp,hxx,h,inl}",
  csharp: "*.cs",
  docker: "*Dockerfile*",
  elixir: "*.{ex,exs}",
  haskell: "*.hs",
  html: "*.{htm,html}",
  js: "*.{js,jsx,cjs,mjs,vue}",
  kotlin: "*.{kt,kts}",
  make: "{Makefile,makefile,GNUmakefile,*.mk}",
  markdown: "*.{md,markdown,mdx}",
  md: "*.{md,markdown,mdx}",
  perl: "*.{pl,pm}",
  py: "*.{py,pyi}",
  python: "*.{py,pyi}",
  ruby: "*.rb",
  rust: "*.rs",
  sh: "*.{sh,bash,zsh}",
  ts: "*.{ts,tsx,cts,mts}",
  typescript: "*.{ts,tsx,cts,mts}",
  yaml: "*.{yaml,yml}"
}

const globOfType = (value: unknown): string | undefined =>
  oneOf(ripgrepTypes)(value) ?? (typeof value === "string" && /^[a-z0-9]{1,12}$/.test(value) ? `*.${value}` : undefined)

const outputModes = { content: "matches", lines: "matches", files_with_matches: "files", files: "files", count: "count" }
const writeModes = { w: "overwrite", write: "overwrite", rewrite: "overwrite", a: "append", x: "create" }

const readFile = (args: Arguments): void => {
  args.drop(["should_read_entire_file"])
  const range = args.take(["view_range", "line_range", "range"], asPair)
  const start = range?.[0] ?? args.take(aliases["line"]!, asNumber)
  const end = range?.[1] ?? args.take(["end_line", "end_line_one_indexed_inclusive", "line_end", "to_line"], asNatural)
  args.setParameter("line", start)
  // Anthropic's text editor uses -1 for the end of the file.
  if (end !== undefined && end >= (start ?? 1)) args.setParameter("limit", end - (start ?? 1) + 1)
  else if (end !== undefined && end >= 0) args.restoreTaken()
  args.setParameter("limit", args.take(["head"], asNatural))
  const tail = args.take(["tail"], asNatural)
  args.setParameter("line", tail === undefined || tail === 0 ? undefined : -tail)
}

/**
 * Returns the globs if they can be joined in braces without a change of meaning. A negated glob cannot be joined. Several globs
 * cannot be joined if one of them has braces or commas.
 */
const joinable = (value: unknown): ReadonlyArray<string> | undefined => {
  const globs = asStrings(value)
  const isPlain = globs?.every((glob) => !glob.startsWith("!") && (globs.length === 1 || !/[{},]/.test(glob)))
  return isPlain === true ? globs : undefined
}

const grep = (args: Arguments): void => {
  args.setParameter("mode", args.take(["output_mode"], oneOf(outputModes)))
  args.drop(["_n", "n", "line_numbers", "show_line_numbers", "_h"])
  args.drop(["_r", "recursive", "is_regex", "is_regexp", "regex"], isTrue)
  args.drop(["exclude_pattern", "exclude_patterns", "exclude", "multiline_dotall"], isEmptyValue)
  args.drop(["head_limit", "offset"], (value) => asNumber(value) === 0)
  const isCaseSensitive = args.take(["case_sensitive"], asBoolean)
  args.setParameter("ignore_case", isCaseSensitive === undefined ? undefined : !isCaseSensitive)
  const isRegex = args.take(["is_regex", "is_regexp", "regex"], asBoolean)
  args.setParameter("literal", isRegex === false ? true : undefined)
  const [before, after] = [
    args.take(["_b", "before", "before_context", "context_before"], asNatural),
    args.take(["_a", "after_context", "context_after"], asNatural)
  ]
  if (before !== undefined || after !== undefined) args.setParameter("context", Math.max(before ?? 0, after ?? 0))
  const globs = args.take(aliases["glob"]!, joinable)
  args.setParameter(
    "glob",
    globs === undefined || globs.length === 0 ? undefined : globs.length === 1 ? globs[0] : `{${globs.join(",")}}`
  )
  if (!args.remaining.has("glob")) args.setParameter("glob", args.take(["type", "file_type"], globOfType))
}

const glob = (args: Arguments): void => {
  args.drop(["exclude_pattern", "exclude_patterns", "exclude", "ignore"], isEmptyValue)
  args.drop(["case_sensitive", "recursive"], isTrue)
  const respectsGitignore = args.take(["respect_git_ignore", "respect_gitignore"], asBoolean)
  args.setParameter("include_ignored", respectsGitignore === undefined ? undefined : !respectsGitignore)
}

const listing = (args: Arguments): void => {
  args.drop(["ignore", "exclude_patterns", "file_filtering_options"], isEmptyValue)
  args.drop(["recursive"], isFalse)
  args.drop(["all", "long", "show_hidden", "hidden", "_a", "_l", "_la"], isTrue)
}

const writeFile = (args: Arguments): void => {
  args.drop(["create_parents", "create_directories", "create_dirs", "parents", "mkdir"], isTrue)
  args.drop(["encoding"], isUtf8)
  args.setParameter("mode", args.take(["mode"], oneOf(writeModes)))
  args.drop(["append"], isFalse)
  args.setParameter(
    "mode",
    args.take(["append"], (value) => (isTrue(value) ? "append" : undefined))
  )
  const isOverwriting = args.take(["overwrite"], asBoolean)
  args.setParameter("mode", isOverwriting === undefined ? undefined : isOverwriting ? "overwrite" : "create")
}

const editFile = (args: Arguments): void => {
  args.drop(["dry_run"], isFalse)
  args.drop(["expected_replacements"], (value) => asNumber(value) === 1)
}

const rm = (args: Arguments): void => args.drop(["recursive", "_r", "_rf"], isTrue)

const mkdir = (args: Arguments): void => args.drop(["parents", "recursive", "exist_ok", "_p"], isTrue)

const minMilliseconds = 1000

const shell = (args: Arguments): void => {
  args.drop(["is_background", "run_in_background", "with_escalated_permissions", "login"], isFalse)
  const millis = args.take(["timeout_ms", "timeout_millis", "timeout_milliseconds"], asNumber)
  const time = args.take(["timeout"], asNumber)
  args.setParameter("timeout_seconds", millis === undefined ? undefined : millis / 1000)
  args.setParameter("timeout_seconds", time === undefined ? undefined : time >= minMilliseconds ? time / 1000 : time)
  const program = asString(args.remaining.get("command"))
  const more = program === undefined ? undefined : args.take(["args", "arguments"], asStrings)
  if (more !== undefined) args.remaining.set("command", [program, ...more])
}

const rules: ReadonlyMap<string, (args: Arguments) => void> = new Map([
  ["read_file", readFile],
  ["grep", grep],
  ["glob", glob],
  ["ls", listing],
  ["tree", listing],
  ["list_directory", listing],
  ["write_file", writeFile],
  ["edit_file", editFile],
  ["rm", rm],
  ["delete_file", rm],
  ["mkdir", mkdir],
  ["shell", shell]
])

/** Replaces aliases by the names of parameters, except where a parameter would get two values. */
const withParameterNames = (sent: SentArguments, known: ReadonlyArray<string>): SentArguments => {
  const out = new Map(Object.entries(sent).filter(([name]) => known.includes(name)))
  for (const [name, value] of Object.entries(sent)) {
    if (known.includes(name)) continue
    const parameter = parameterFor(name, known)
    if (parameter === undefined || (out.has(parameter) && out.get(parameter) !== value)) out.set(name, value)
    else out.set(parameter, value)
  }
  return Object.fromEntries(out)
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const propertiesOf = (node: SchemaNode): SentArguments => (isRecord(node["properties"]) ? node["properties"] : {})

const hasSomeOf = (value: SentArguments, node: SchemaNode): boolean => {
  const known = Object.keys(propertiesOf(node))
  return Object.keys(value).some((name) => parameterFor(name, known) !== undefined)
}

const asList = (value: unknown, item: SchemaNode): unknown => {
  if (typeof value === "string") {
    const list = parseJson(value)
    return Array.isArray(list) ? list : item["type"] === "string" ? [value] : value
  }
  return isRecord(value) && item["type"] === "object" && hasSomeOf(value, item) ? [value] : value
}

const asChoice = (value: unknown, choices: ReadonlyArray<unknown>): unknown => {
  const plain = (text: unknown): string => String(text).trim().toLowerCase().replaceAll(/[-_]/g, "")
  return choices.includes(value) ? value : (choices.find((choice) => plain(choice) === plain(value)) ?? value)
}

const convertToSchema = (value: unknown, node: SchemaNode): unknown => {
  if (Array.isArray(node["enum"]) && typeof value === "string") return asChoice(value, node["enum"])
  const { type } = node
  if (type === "integer" || type === "number") return asNumber(value) ?? value
  if (type === "boolean") return asBoolean(value) ?? value
  if (type === "array") {
    const item = isRecord(node["items"]) ? node["items"] : {}
    const list = asList(value, item)
    return Array.isArray(list) ? list.map((each) => convertToSchema(each, item)) : list
  }
  if (type !== "object" || !isRecord(value)) return value
  const properties = propertiesOf(node)
  return Object.fromEntries(
    Object.entries(withParameterNames(value, Object.keys(properties))).map(([name, item]) => [
      name,
      isRecord(properties[name]) ? convertToSchema(item, properties[name]) : item
    ])
  )
}

export const rewriteArguments = (definition: AnyDefinition<unknown>, sent: unknown): unknown => {
  if (!isRecord(sent)) return sent
  const { schema } = documentOf(definition)
  const known = Object.keys(propertiesOf(schema))
  const rule = rules.get(definition.name)
  if (rule === undefined) return convertToSchema(sent, { ...schema, type: "object" })
  const args = new Arguments(sent, known)
  args.drop(wordsForUser.filter((name) => !known.includes(name)))
  rule(args)
  return convertToSchema(Object.fromEntries(args.remaining), { ...schema, type: "object" })
}

const maxFaults = 8

const similarNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  path: ["uri"],
  content: ["code_edit"],
  ignore_case: ["case_sensitive"],
  limit: ["lines"],
  offset: ["start", "skip"],
  max_matches: ["top", "n"]
}

const suggestedName = (name: string, known: ReadonlyArray<string>): string | undefined => {
  if (name.length > maxNameLength) return undefined
  const alias =
    parameterFor(name, known) ??
    known.find((candidate) => Object.hasOwn(similarNames, candidate) && similarNames[candidate]!.includes(name))
  if (alias !== undefined) return alias
  const word = name.toLowerCase()
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: nameDistance(word, candidate) }))
    .filter(({ distance }) => distance < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.distance - b.distance)
  return nearest?.candidate
}

const describeSent = (value: unknown): string =>
  (typeof value === "string" && value.length <= maxNameLength) || typeof value === "number" || typeof value === "boolean"
    ? JSON.stringify(value)
    : kindOf(value)

const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "a list"
  const kind = typeof value
  return kind === "object" || kind === "undefined" ? (kind === "object" ? "an object" : "nothing") : `a ${kind}`
}

const quoted = (name: string): string => JSON.stringify(name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name)

const valueAt = (input: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Record<PropertyKey, unknown>)[key]
        : undefined,
    input
  )

const argumentPath = (path: ReadonlyArray<PropertyKey>): string =>
  cutName(
    path.map((key, index) => (typeof key === "number" ? `[${key}]` : index === 0 ? String(key) : `.${String(key)}`)).join("")
  )

const cutName = (name: string): string => (name.length > 2 * maxNameLength ? `${name.slice(0, 2 * maxNameLength)}…` : name)

const kinds: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  array: "a list",
  object: "an object"
}

const describeType = (expected: string): string =>
  listed(
    expected.split(" | ").map((part) => (Object.hasOwn(kinds, part) ? kinds[part]! : part)),
    "or"
  )

const missingMark = "\u0000missing"
const unexpectedMark = "\u0000unexpected"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "MissingKey"
      ? missingMark
      : issue._tag === "UnexpectedKey"
        ? unexpectedMark
        : SchemaIssue.defaultLeafHook(issue)
})

const namesAt = (definition: AnyDefinition<unknown>, path: ReadonlyArray<PropertyKey>): ReadonlyArray<string> => {
  const document = documentOf(definition)
  const resolved = (node: unknown): SchemaNode => {
    const ref = isRecord(node) ? node["$ref"] : undefined
    const found = typeof ref === "string" ? document.definitions[ref.split("/").at(-1)!] : node
    return isRecord(found) ? found : {}
  }
  const inside = path.reduce((node, key) => {
    const properties = propertiesOf(node)
    return resolved(
      typeof key === "number" ? node["items"] : Object.hasOwn(properties, key) ? properties[String(key)] : undefined
    )
  }, resolved(document.schema))
  return Object.keys(propertiesOf(inside))
}

const faultsOf = (definition: AnyDefinition<unknown>, input: unknown, error: Schema.SchemaError) => {
  const { issues } = issuesOf(error.issue)
  const out = new Map<string, string>()
  let more = 0
  const keys = (path: ReadonlyArray<unknown>) =>
    path.map((key) => (isRecord(key) ? (key["key"] as PropertyKey) : (key as PropertyKey)))
  for (const { message, path: raw = [] } of issues) {
    const path = keys(raw)
    const place = argumentPath(path)
    const before = out.get(place)
    if (before === undefined && out.size === maxFaults) more++
    else out.set(place, faultOf(definition, valueAt(input, path), { message, path, place }, before))
  }
  return { all: [...out.values()], more }
}

interface Issue {
  readonly message: string
  readonly path: ReadonlyArray<PropertyKey>
  readonly place: string
}

const faultOf = (
  definition: AnyDefinition<unknown>,
  value: unknown,
  { message, path, place }: Issue,
  before: string | undefined
): string => {
  if (message === missingMark) return `${JSON.stringify(place)} is missing`
  if (message === unexpectedMark) {
    const known = namesAt(definition, path.slice(0, -1))
    const instead = suggestedName(String(path.at(-1)), known)
    const hint = instead === undefined ? `; the parameters are ${listed(known)}` : `; did you mean ${JSON.stringify(instead)}?`
    return `${quoted(String(path.at(-1)))} is not a parameter${hint}`
  }
  if (path.length === 1 && namesAt(definition, []).length === 0)
    return `${quoted(place)} is not a parameter; the tool has no parameters`
  const expected = cutName(describeType(message.replace(/^Expected /, "").replace(/, got [^]*$/, "")))
  return before === undefined
    ? `${JSON.stringify(place)} must be ${expected}, and was ${describeSent(value)}`
    : before.replace(/, and was/, `, or ${expected}, and was`)
}

const exampleOf = ({ examples, name }: AnyDefinition<unknown>): string => {
  const example = JSON.stringify(examples[0])
  return `Send a JSON object such as ${example} to ${name}.`
}

const isJsonObject = (text: string): boolean =>
  text.length < 10_000_000 &&
  Result.getOrElse(
    Result.try(() => isRecord(JSON.parse(text))),
    () => false
  )

export const describeDecodeError = (definition: AnyDefinition<unknown>, input: unknown, error: Schema.SchemaError): string => {
  const { name } = definition
  if (typeof input === "string") {
    const what = isJsonObject(input) ? "as a string that contains JSON" : "as a string"
    return `The arguments of ${name} were sent ${what}, not as an object. ${exampleOf(definition)}`
  }
  if (!isRecord(input)) return `The arguments of ${name} must be an object, and were ${kindOf(input)}. ${exampleOf(definition)}`
  const { all, more } = faultsOf(definition, input, error)
  const rest = more > 0 ? `; and ${more} more` : ""
  const faults = `${all.join("; ")}${rest}`
  return `${name} cannot take these arguments: ${faults}${faults.endsWith("?") ? "" : "."} ${exampleOf(definition)}`
}
