/** The limits of a command, checked before it runs. The sandbox itself may refuse more. */
import { InvalidArgument } from "../../model/FsError.ts"
import { codePoints, root } from "../../model/FsPath.ts"

export const maxCommand = 4096
export const maxVariables = 64
export const maxVariableName = 80
export const maxVariableValue = 512
export const maxSegments = 16
export const maxStdin = 48_000
export const maxCode = 4096
/** The limits of a timeout, in seconds. */
export const minTimeout = 1
export const maxTimeout = 120
export const evalTimeout = 5
/** The largest number of bytes that are returned of each output stream of a command. */
export const maxStream = 32 * 1024
export const maxEvalStream = 4096

type Finding = readonly [argument: string, detail: string] | undefined

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

const characters = (count: number): string => count.toLocaleString("en-US")

const commandFinding = (command: ReadonlyArray<string>): Finding => {
  if (command.length === 0 || command[0] === "") return ["command", "it must name a program"]
  for (const word of command) {
    if (word.includes("\0")) return ["command", "it must not hold a NUL character"]
    if (!word.isWellFormed()) return ["command", "it holds half of a surrogate pair"]
  }
  const length = command.reduce((sum, word) => sum + codePoints(word), 0)
  return length > maxCommand
    ? ["command", `it has ${characters(length)} characters where ${characters(maxCommand)} are allowed; put the rest in a file`]
    : undefined
}

const variablesFinding = (env: Readonly<Record<string, string>>): Finding => {
  const variables = Object.entries(env)
  if (variables.length > maxVariables) return ["env", `it has ${variables.length} variables where ${maxVariables} are allowed`]
  for (const [name, value] of variables) {
    if (!variableName.test(name) || name.length > maxVariableName) {
      return ["env", `a name is made of at most ${maxVariableName} letters, digits and _, and begins with no digit`]
    }
    if (value.includes("\0") || !value.isWellFormed()) return ["env", `the value of ${name} is no text`]
    if (codePoints(value) > maxVariableValue) {
      return ["env", `the value of ${name} has more than ${maxVariableValue} characters`]
    }
  }
  return undefined
}

const directoryFinding = (cwd: string): Finding => {
  if (cwd === root) return undefined
  const segments = cwd.split("/")
  if (segments.some((segment) => segment === "." || segment === "..")) {
    return ["cwd", 'it must be a path below the root without "." and ".."']
  }
  return segments.filter((segment) => segment !== "").length > maxSegments
    ? ["cwd", `it has more than ${maxSegments} segments`]
    : undefined
}

const stdinFinding = (stdin: string): Finding => {
  if (!stdin.isWellFormed()) return ["stdin", "it holds half of a surrogate pair"]
  const length = codePoints(stdin)
  return length > maxStdin
    ? ["stdin", `it has ${characters(length)} characters where ${characters(maxStdin)} are allowed; put it in a file`]
    : undefined
}

const timeoutFinding = (seconds: number): Finding =>
  Number.isNaN(seconds) ? ["timeout_seconds", "it must be a number"] : undefined

export interface Asked {
  readonly command?: ReadonlyArray<string> | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  readonly stdin?: string | undefined
  readonly timeout_seconds?: number | undefined
  readonly code?: string | undefined
}

// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/

const codeFinding = (code: string): Finding => {
  if (!code.isWellFormed()) return ["code", "it holds half of a surrogate pair"]
  if (control.test(code))
    return ["code", "of control characters it may hold newline, tab and carriage return; write others as escapes"]
  const length = codePoints(code)
  return length > maxCode
    ? [
        "code",
        `it has ${characters(length)} characters where ${characters(maxCode)} are allowed; write it to a file and run that`
      ]
    : undefined
}

export const check = (
  tool: string,
  { code, command, cwd, env, stdin, timeout_seconds: seconds }: Asked
): InvalidArgument | undefined => {
  const finding =
    (command && commandFinding(command)) ??
    (code === undefined ? undefined : codeFinding(code)) ??
    (env && variablesFinding(env)) ??
    (cwd === undefined ? undefined : directoryFinding(cwd)) ??
    (stdin === undefined ? undefined : stdinFinding(stdin)) ??
    (seconds === undefined ? undefined : timeoutFinding(seconds))
  return finding && new InvalidArgument({ operation: tool, path: cwd ?? root, argument: finding[0], detail: finding[1] })
}

export const clampedTimeout = (seconds: number): number => Math.min(maxTimeout, Math.max(minTimeout, seconds))
