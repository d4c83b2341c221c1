/** The limits of a command, checked before it runs. The sandbox itself may refuse more. */
import { InvalidArgument } from "../../model/FsError.ts"
import { codePoints, root } from "../../model/FsPath.ts"

export const maxCommandCharacters = 4096
export const maxVariables = 64
export const maxVariableNameCharacters = 80
export const maxVariableValueCharacters = 512
export const maxSegments = 16
export const maxStdinCharacters = 48_000
export const maxCodeCharacters = 4096
/** The limits of a timeout, in seconds. */
export const minTimeoutSeconds = 1
export const maxTimeoutSeconds = 120
export const evalTimeoutSeconds = 5
/** The largest number of bytes that are returned of each output stream of a command. */
export const maxOutputBytes = 32 * 1024
export const maxEvalOutputCharacters = 4096

type Violation = readonly [argument: string, detail: string] | undefined

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

const formatCount = (count: number): string => count.toLocaleString("en-US")

const commandViolation = (command: ReadonlyArray<string>): Violation => {
  if (command.length === 0 || command[0] === "") return ["command", "it must name a program"]
  for (const word of command) {
    if (word.includes("\0")) return ["command", "it must not hold a NUL character"]
    if (!word.isWellFormed()) return ["command", "it holds half of a surrogate pair"]
  }
  const length = command.reduce((sum, word) => sum + codePoints(word), 0)
  return length > maxCommandCharacters
    ? [
        "command",
        `it has ${formatCount(length)} characters where ${formatCount(maxCommandCharacters)} are allowed; put the rest in a file`
      ]
    : undefined
}

const variablesViolation = (env: Readonly<Record<string, string>>): Violation => {
  const variables = Object.entries(env)
  if (variables.length > maxVariables) return ["env", `it has ${variables.length} variables where ${maxVariables} are allowed`]
  for (const [name, value] of variables) {
    if (!variableName.test(name) || name.length > maxVariableNameCharacters) {
      return ["env", `a name is made of at most ${maxVariableNameCharacters} letters, digits and _, and begins with no digit`]
    }
    if (value.includes("\0") || !value.isWellFormed()) return ["env", `the value of ${name} is no text`]
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
  if (!stdin.isWellFormed()) return ["stdin", "it holds half of a surrogate pair"]
  const length = codePoints(stdin)
  return length > maxStdinCharacters
    ? [
        "stdin",
        `it has ${formatCount(length)} characters where ${formatCount(maxStdinCharacters)} are allowed; put it in a file`
      ]
    : undefined
}

const timeoutViolation = (seconds: number): Violation =>
  Number.isNaN(seconds) ? ["timeout_seconds", "it must be a number"] : undefined

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
  if (!code.isWellFormed()) return ["code", "it holds half of a surrogate pair"]
  if (controlCharacters.test(code))
    return ["code", "of control characters it may hold newline, tab and carriage return; write others as escapes"]
  const length = codePoints(code)
  return length > maxCodeCharacters
    ? [
        "code",
        `it has ${formatCount(length)} characters where ${formatCount(maxCodeCharacters)} are allowed; write it to a file and run that`
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
    (seconds === undefined ? undefined : timeoutViolation(seconds))
  return violation && new InvalidArgument({ operation: tool, path: cwd ?? root, argument: violation[0], detail: violation[1] })
}

export const clampedTimeout = (seconds: number): number => Math.min(maxTimeoutSeconds, Math.max(minTimeoutSeconds, seconds))
