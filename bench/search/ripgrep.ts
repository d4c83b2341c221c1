/**
 * ripgrep as a process, in two ways. Its output goes to a file, which is the least work for it, and not to /dev/null,
 * which some tools detect. Or it runs as the tools of agents use it, with `--json` parsed by the client.
 */
import { rgPath } from "@vscode/ripgrep"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Peer, Question } from "./peer.ts"

export interface Ripgrep {
  readonly id: "rg" | "npm-rg"
  readonly name: string
  readonly path: string
}

const known = (id: Ripgrep["id"], origin: string, path: string): ReadonlyArray<Ripgrep> => {
  if (!existsSync(path)) return []
  const version = /ripgrep (\S+)/.exec(spawnSync(path, ["--version"], { encoding: "utf8" }).stdout)?.[1] ?? "?"
  return [{ id, name: `ripgrep ${version} (${origin})`, path }]
}

/** The system's ripgrep, if there is one, comes first and is the baseline. */
export const installed: ReadonlyArray<Ripgrep> = [...known("rg", "system", "/usr/bin/rg"), ...known("npm-rg", "npm", rgPath)]

interface How {
  /** Flags beside the fixed ones. @default everything: hidden and ignored files too */
  readonly which?: ReadonlyArray<string>
  /** @default 2 */
  readonly threads?: 1 | 2
}

const everything = ["-uu"]

/** A directory in memory if the system has one, so no disk is measured. */
const outputs = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

let serial = 0
/** Runs with the output in a file, and returns it on request. */
const toFile = (rg: Ripgrep, root: string, flags: ReadonlyArray<string>) => {
  const path = join(outputs, `fs-algebra-bench-${process.pid}-${serial++}.txt`)
  const file = openSync(path, "a+")
  process.once("exit", () => {
    closeSync(file)
    rmSync(path, { force: true })
  })
  const run = async (more: ReadonlyArray<string> = []): Promise<void> => {
    ftruncateSync(file, 0)
    const child = spawn(rg.path, ["--no-config", ...flags, ...more], { cwd: root, stdio: ["ignore", file, "inherit"] })
    const [code] = (await once(child, "exit")) as [number | null]
    if (code !== 0 && code !== 1) throw new Error(`${rg.name} ended with ${code}`)
  }
  return { run, text: () => readFileSync(path, "utf8") }
}

const counted = (threads: number): string => `${threads} thread${threads === 1 ? "" : "s"}`

const split = (text: string, separator: string): ReadonlyArray<string> => text.split(separator).filter((part) => part !== "")

/** Lists with `--files`: all files, or those that match a glob. */
export const files = (rg: Ripgrep, root: string, { threads = 2, which = everything }: How, glob?: string): Peer => {
  const flags = ["--files", ...which, "--threads", `${threads}`, ...(glob === undefined ? [] : ["-g", glob])]
  const { run, text } = toFile(rg, root, flags)
  return {
    id: threads === 1 ? `${rg.id}1` : rg.id,
    name: `${rg.name} --files, ${counted(threads)}`,
    run: () => run().then(() => ({})),
    answer: () => run(["--null"]).then(() => split(text(), "\0"))
  }
}

/** Returns the arguments of a question. `\w` and `\b` mean ASCII in JavaScript, so ripgrep is told the same. */
const asked = ({ ignoreCase, literal, pattern }: Question): ReadonlyArray<string> => [
  ...(ignoreCase === true ? ["-i"] : []),
  ...(literal === true ? ["-F"] : []),
  ...(/\\[wb]/.test(pattern) ? ["--no-unicode"] : []),
  "-e",
  pattern,
  "./"
]

const withoutDot = (path: string): string => path.replace(/^\.\//, "")

/** Returns the `path:number` of a line; notes about binary files have no NUL. */
const place = (line: string): ReadonlyArray<string> => {
  const end = line.indexOf("\0")
  return end < 0 ? [] : [`${withoutDot(line.slice(0, end))}:${Number.parseInt(line.slice(end + 1), 10)}`]
}

const searching = [...everything, "--threads", "2"]

export const lines = (rg: Ripgrep, root: string, question: Question): Peer => {
  const { run, text } = toFile(rg, root, ["-n", ...searching])
  const flags = asked(question)
  const answer = async () => {
    await run(["--null", ...flags])
    return split(text(), "\n").flatMap(place)
  }
  return {
    id: rg.id,
    name: `${rg.name} -n, ${counted(2)}`,
    run: () => run(flags).then(() => ({})),
    answer
  }
}

interface Match {
  readonly path: string
  readonly line: number
  readonly text: string
}

interface Event {
  readonly type: string
  readonly data: {
    readonly path: { readonly text?: string; readonly bytes?: string }
    readonly line_number: number
    readonly lines: { readonly text?: string; readonly bytes?: string }
  }
}

const string = ({ bytes, text }: { readonly text?: string; readonly bytes?: string }): string =>
  text ?? Buffer.from(bytes ?? "", "base64").toString()

/** Runs ripgrep as a client does: starts it, reads, parses, and holds every match in the end. */
const client = async (rg: Ripgrep, root: string, flags: ReadonlyArray<string>): Promise<ReadonlyArray<Match>> => {
  const child = spawn(rg.path, ["--no-config", "--json", ...flags], { cwd: root, stdio: ["ignore", "pipe", "inherit"] })
  const matches: Array<Match> = []
  const take = (line: string): void => {
    const { data, type } = JSON.parse(line) as Event
    if (type === "match") matches.push({ path: string(data.path), line: data.line_number, text: string(data.lines) })
  }
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    // A match on a line of megabytes comes in many chunks, which must not all be searched again for each new one.
    const parts = chunk.split("\n")
    parts[0] = rest + parts[0]!
    rest = parts.pop()!
    parts.forEach(take)
  })
  await once(child, "close")
  return matches
}

export const json = (rg: Ripgrep, root: string, question: Question): Peer => {
  const ask = () => client(rg, root, [...searching, ...asked(question)])
  return {
    id: `${rg.id}-json`,
    name: `${rg.name} --json, parsed by its client`,
    run: () => ask().then((matches) => ({ results: matches.length })),
    answer: () => ask().then((matches) => matches.map(({ line, path }) => `${withoutDot(path)}:${line}`))
  }
}
