/** The kernel as an oracle: `beneath.c`, compiled once, answers many questions in one run. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export type Answer = { readonly ok: string; readonly kind: string } | { readonly no: string }

export interface Question {
  readonly root: string
  readonly path: string
  readonly follow: boolean
}

export type Oracle = (questions: ReadonlyArray<Question>) => ReadonlyArray<Answer>

const errnoNames = new Map(Object.entries(constants.errno).map(([name, number]) => [String(number), name]))

const answerOf = (line: string): Answer => {
  const [verdict, first, second, kind] = line.split(" ")
  return verdict === "ok" ? { ok: `${first}:${second}`, kind: kind! } : { no: errnoNames.get(first!) ?? first! }
}

const ask =
  (program: string): Oracle =>
  (questions) => {
    let root: string | undefined
    const records: Array<string> = []
    for (const question of questions) {
      if (question.root !== root) records.push(`R${question.root}`)
      root = question.root
      records.push(`${question.follow ? "F" : "N"}${question.path}`)
    }
    const { status, stdout } = spawnSync(program, {
      input: records.map((record) => `${record}\0`).join(""),
      encoding: "utf8",
      maxBuffer: 1e9
    })
    if (status !== 0) throw new Error(`the oracle ended with ${status}`)
    const answers = stdout.trimEnd().split("\n").map(answerOf)
    if (answers.length !== questions.length) throw new Error(`${answers.length} answers to ${questions.length} questions`)
    return answers
  }

/** Returns the oracle, or the reason why there is none here. */
export const compile = (directory: string): Oracle | string => {
  const program = join(directory, "beneath")
  const source = fileURLToPath(new URL("beneath.c", import.meta.url))
  const compiled = spawnSync("gcc", ["-O1", "-Wall", "-Werror", "-o", program, source], { encoding: "utf8" })
  if (compiled.error !== undefined) return "there is no gcc; apt-get install gcc libc6-dev linux-libc-dev"
  if (compiled.status !== 0) throw new Error(compiled.stderr)
  const probe = spawnSync(program, { input: "" })
  if (probe.status === 3) return "the system refuses openat2; run it without that seccomp profile, on Linux 5.6 or newer"
  if (probe.status !== 0) throw new Error(`the oracle ended with ${probe.status}`)
  return ask(program)
}

export const inodeOf = (path: string): string => {
  const { dev, ino } = Fs.lstatSync(path, { bigint: true })
  return `${dev}:${ino}`
}
