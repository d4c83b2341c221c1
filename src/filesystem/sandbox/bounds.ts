/** Checks the limits of a command before it runs, and cuts its output. The sandbox may have stricter limits. */
import { InvalidArgument } from "../../model/FsError.ts"
import { codePoints, root } from "../../model/FsPath.ts"
import { whole } from "../../model/words.ts"

const maxCommandCharacters = 4096
const maxVariables = 64
const maxVariableNameCharacters = 80
const maxVariableValueCharacters = 512
const maxSegments = 16
export const maxStdinCharacters = 48_000
const maxCodeCharacters = 4096
export const minTimeoutSeconds = 1
const maxTimeoutSeconds = 120
export const evalTimeoutSeconds = 5
/** The maximum number of bytes that the result of a command keeps of each output stream. */
export const maxOutputBytes = 32 * 1024
export const maxEvalOutputCharacters = 4096

type Violation = readonly [argument: string, detail: string] | undefined

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

const commandViolation = (command: ReadonlyArray<string>): Violation => {
  if (command.length === 0 || command[0] === "") return ["command", "it must name a program"]
  for (const word of command) {
    if (word.includes("\0")) return ["command", "it must not contain a NUL character"]
    if (!word.isWellFormed()) return ["command", "it contains a lone surrogate"]
  }
  const length = command.reduce((sum, word) => sum + codePoints(word), 0)
  return length > maxCommandCharacters
    ? [
        "command",
        `it has ${whole(length)} characters, but at most ${whole(maxCommandCharacters)} are allowed; put the rest in a file`
      ]
    : undefined
}

const variablesViolation = (env: Readonly<Record<string, string>>): Violation => {
  const variables = Object.entries(env)
  if (variables.length > maxVariables)
    return ["env", `it has ${variables.length} variables, but at most ${maxVariables} are allowed`]
  for (const [name, value] of variables) {
    if (!variableName.test(name) || name.length > maxVariableNameCharacters) {
      return [
        "env",
        `a variable name must have at most ${maxVariableNameCharacters} letters, digits and _, and must not begin with a digit`
      ]
    }
    if (value.includes("\0") || !value.isWellFormed()) return ["env", `the value of ${name} is not well-formed text`]
    if (codePoints(value) > maxVariableValueCharacters) {
      return ["env", `the value of ${name} has more than ${maxVariableValueCharacters} characters`]
    }
  }
  return undefined
}

const directoryViolation = (cwd: string): Violation => {
  if (cwd === root) return undefined
  const segments = cwd.split("/")
  if (segments.some((segment) => segment === "." || segment === "..")) {
    return ["cwd", 'it must be a path below the root without "." and ".."']
  }
  return segments.filter((segment) => segment !== "").length > maxSegments
    ? ["cwd", `it has more than ${maxSegments} segments`]
    : undefined
}

const stdinViolation = (stdin: string): Violation => {
  if (!stdin.isWellFormed()) return ["stdin", "it contains a lone surrogate"]
  const length = codePoints(stdin)
  return length > maxStdinCharacters
    ? ["stdin", `it has ${whole(length)} characters, but at most ${whole(maxStdinCharacters)} are allowed; put it in a file`]
    : undefined
}

export interface CommandRequest {
  readonly command?: ReadonlyArray<string> | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  readonly stdin?: string | undefined
  readonly timeout_seconds?: number | undefined
  readonly code?: string | undefined
}

// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/

const codeViolation = (code: string): Violation => {
  if (!code.isWellFormed()) return ["code", "it contains a lone surrogate"]
  if (controlCharacters.test(code))
    return ["code", "newline, tab and carriage return are the only control characters it may contain; escape all others"]
  const length = codePoints(code)
  return length > maxCodeCharacters
    ? [
        "code",
        `it has ${whole(length)} characters, but at most ${whole(maxCodeCharacters)} are allowed; put it in a file and run the file`
      ]
    : undefined
}

export const checkCommand = (
  tool: string,
  { code, command, cwd, env, stdin, timeout_seconds: seconds }: CommandRequest
): InvalidArgument | undefined => {
  const violation =
    (command && commandViolation(command)) ??
    (code === undefined ? undefined : codeViolation(code)) ??
    (env && variablesViolation(env)) ??
    (cwd === undefined ? undefined : directoryViolation(cwd)) ??
    (stdin === undefined ? undefined : stdinViolation(stdin)) ??
    (Number.isNaN(seconds) ? (["timeout_seconds", "it must be a number"] as const) : undefined)
  return violation && new InvalidArgument({ operation: tool, path: cwd ?? root, argument: violation[0], detail: violation[1] })
}

export const clampedTimeout = (seconds: number): number => Math.min(maxTimeoutSeconds, Math.max(minTimeoutSeconds, seconds))

export const cutMark = "\n[cut here]\n"

export interface CutText {
  readonly text: string
  readonly isCut: boolean
}

const withoutMark = (text: string): string | undefined => {
  const at = text.indexOf(cutMark)
  return at === -1 ? undefined : text.slice(0, at) + text.slice(at + cutMark.length)
}

type Ends = readonly [first: string, last: string]

const cutText = (text: string, fits: (text: string) => boolean, ends: (text: string) => Ends): CutText => {
  if (fits(text)) return { text, isCut: false }
  const textWithoutMark = withoutMark(text)
  if (textWithoutMark !== undefined && fits(textWithoutMark)) return { text, isCut: true }
  const [first, last] = ends(text)
  return { text: first + cutMark + last, isCut: true }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Returns the index of the first byte of the character that contains the byte `at`. Returns `at` in invalid UTF-8. */
const characterStartBefore = (bytes: Uint8Array, at: number): number => {
  let characterStart = at
  while (characterStart > at - 4 && characterStart > 0 && isContinuation(bytes[characterStart])) characterStart--
  return characterStart > at - 4 ? characterStart : at
}

/** Returns the index of the first byte of the next character at or after the byte `at`. Returns `at` in invalid UTF-8. */
const characterStartAfter = (bytes: Uint8Array, at: number): number => {
  let characterStart = at
  while (characterStart < at + 4 && isContinuation(bytes[characterStart])) characterStart++
  return characterStart < at + 4 ? characterStart : at
}

const encoder = new TextEncoder()
// A byte order mark is part of the output.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

export const textOf = (bytes: Uint8Array, max: number): string =>
  decoder.decode(bytes.length <= max ? bytes : bytes.subarray(0, characterStartBefore(bytes, max)))

export const textOfStart = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true })

/**
 * Returns the text of the last `max` bytes without incomplete characters. `isCut` tells whether the text may begin inside
 * a character.
 */
export const textOfEnd = (bytes: Uint8Array, max: number, isCut = bytes.length > max): string =>
  decoder.decode(isCut ? bytes.subarray(characterStartAfter(bytes, Math.max(0, bytes.length - max))) : bytes)

const splitBudget = (max: number): readonly [first: number, last: number] => [Math.ceil(max / 2), Math.floor(max / 2)]

export const cutBytes = (text: string, max: number): CutText =>
  cutText(
    text,
    (whole) => whole.length <= max / 3 || encoder.encode(whole).length <= max,
    (whole) => {
      const bytes = encoder.encode(whole)
      const [first, last] = splitBudget(max)
      return [textOf(bytes, first), textOfEnd(bytes, last)]
    }
  )

const firstCharacters = (text: string, max: number): string =>
  Array.from(text.slice(0, 2 * max))
    .slice(0, max)
    .join("")

const lastCharacters = (text: string, max: number): string =>
  max === 0
    ? ""
    : Array.from(text.slice(-2 * max))
        .slice(-max)
        .join("")

export const cutCharacters = (text: string, max: number): CutText =>
  cutText(
    text,
    (whole) => whole.length <= max || codePoints(whole) <= max,
    (whole) => {
      const [first, last] = splitBudget(max)
      return [firstCharacters(whole, first), lastCharacters(whole, last)]
    }
  )

export const cutToFit = (
  streams: readonly [stdout: string, stderr: string],
  fits: (stdout: string, stderr: string) => boolean
): readonly [stdout: string, stderr: string] => {
  if (fits(...streams)) return streams
  let [low, high] = [0, Math.max(...streams.map(({ length }) => length))]
  const at = (max: number) => streams.map((text) => cutCharacters(text, max).text) as unknown as typeof streams
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(...at(middle))) low = middle
    else high = middle - 1
  }
  return at(low)
}
