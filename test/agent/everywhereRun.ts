/**
 * Runs a table of calls on any filesystem, and collects the answers and the resulting files. This module needs no test
 * runner.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import * as Tools from "../../src/agent/tools.ts"
import { defaults, ToolSettings, type ToolSettingsShape } from "../../src/agent/ToolSettings.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { capture, type Files, type Picture, picture, plant } from "../../src/testing/Files.ts"

/**
 * The tools by name. The tools of the four-tool kit, which shares names with the other kit, are named like
 * `four/read_file`.
 */
export const tools: Readonly<Record<string, AnyDefinition>> = Object.fromEntries([
  ...[...Tools.seven, ...Tools.extras, ...Tools.snapshotTools].map((tool) => [tool.name, tool] as const),
  ...Tools.four.map((tool) => [`four/${tool.name}`, tool] as const)
])

export interface Call {
  readonly tool: string
  readonly arguments: unknown
  readonly success: boolean
  readonly message: string | RegExp
  /** The relevant part of the value; lists must have the same length. */
  readonly value?: unknown
  /** Present if another session, which has read nothing, makes the call. */
  readonly by?: "another"
}

export interface Row {
  readonly name: string
  readonly tree: Files
  readonly calls: ReadonlyArray<Call>
  /** The files after the calls. @default the initial tree */
  readonly left?: Files
  readonly settings?: Partial<ToolSettingsShape>
  /** True if the row needs names that differ only in case. */
  readonly cases?: true
  /**
   * True if the row is slow. The table of everywhere.test.ts then runs it only on memory, a host and an overlay, because
   * the other filesystems keep snapshots as the overlay does.
   */
  readonly few?: true
  /** True if snapshots are provided. */
  readonly snapshots?: true
  readonly readOnly?: true
}

export const ok = (tool: string, args: unknown, message: string | RegExp, value?: unknown): Call => ({
  tool,
  arguments: args,
  success: true,
  message,
  value
})

export const fails = (tool: string, args: unknown, message: string | RegExp): Call => ({
  tool,
  arguments: args,
  success: false,
  message
})

/** Returns the files without the given paths and everything below them. */
export const without = (files: Files, ...gone: ReadonlyArray<string>): Files =>
  Object.fromEntries(Object.entries(files).filter(([path]) => !gone.some((one) => path === one || path.startsWith(`${one}/`))))

export type Place<A> = Effect.Effect<A, never, Scope.Scope>

export interface Ground {
  readonly name: string
  readonly make: (files: Files) => Place<Algebra>
  /** True if snapshots are archives, because there is no git. */
  readonly archives?: true
  /** Returns the snapshots of a filesystem that keeps them itself. @default none */
  readonly historyOf?: (fs: Algebra) => Context.Context<Snapshots.Snapshots>
  /** True if names that differ only in case are equal. */
  readonly caseless?: true
  /** True if entries have no time of their creation, as in SFTP and S3. */
  readonly birthless?: true
  /** True if the root has no time of its last change. */
  readonly hasTimelessRoot?: true
  /** True if entries have no modes. */
  readonly modeless?: true
}

export interface Answer {
  readonly message: string
  readonly success: boolean
  readonly value?: unknown
}

export const memoryOf = (files: Files, options: InMemory.InMemoryOptions = {}): Place<Algebra> =>
  Effect.orDie(Effect.flatMap(InMemory.make(options), (port) => Effect.as(plant(port, files), make(port))))

/** The filesystem that all others are compared with. */
export const memory: Ground = { name: "memory", make: memoryOf }

const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g
const instant = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g

/** Applies the function to every string in the value. */
const eachText = (value: unknown, f: (text: string) => string): unknown =>
  typeof value === "string"
    ? f(value)
    : Array.isArray(value)
      ? value.map((item) => eachText(item, f))
      : typeof value === "object" && value !== null
        ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, eachText(item, f)]))
        : value

/**
 * Replaces the values that differ between runs: instants by a name, and snapshot ids by the order in which they occur.
 */
const settled = (answers: ReadonlyArray<Answer>): ReadonlyArray<Answer> => {
  const ids = [...new Set(JSON.stringify(answers).match(uuid) ?? [])]
  const named = (text: string): string =>
    ids.reduce(
      (all, id, index) =>
        all
          .replaceAll(id, `<snapshot ${index + 1}>`)
          .replace(new RegExp(`\\b${id.slice(0, 8)}\\b`, "g"), `<short ${index + 1}>`),
      text
    )
  return eachText(answers, (text) => named(text).replace(instant, "<time>")) as ReadonlyArray<Answer>
}

const historyOf = (fs: Algebra, { archives, historyOf }: Ground): Place<Context.Context<Snapshots.Snapshots>> =>
  historyOf === undefined
    ? Effect.orDie(
        Layer.build(Layer.provide(archives === true ? Snapshots.layerArchive : Snapshots.layer, Layer.succeed(Filesystem, fs)))
      )
    : Effect.sync(() => historyOf(fs))

/** Turns a defect into an answer, so that the row goes on and names the call. */
const orDefect = (answer: Effect.Effect<Answer>): Effect.Effect<Answer> =>
  Effect.catchDefect(answer, (defect) => Effect.succeed({ message: `a defect: ${String(defect)}`, success: false }))

export interface Outcome {
  readonly answers: ReadonlyArray<Answer>
  readonly left: Picture
}

export const run = (
  row: Pick<Row, "tree" | "calls" | "settings" | "snapshots" | "readOnly">,
  ground: Ground
): Effect.Effect<Outcome> =>
  Effect.scoped(
    Effect.gen(function* () {
      const whole = yield* ground.make(row.tree)
      const fs = row.readOnly === true ? readOnly(whole) : whole
      const sessions = { one: Memory.make(), another: Memory.make() }
      const services = row.snapshots === true ? yield* historyOf(fs, ground) : Context.empty()
      const context = services.pipe(
        Context.add(Filesystem, fs),
        Context.add(ToolSettings, { ...defaults, ...row.settings })
      ) as Context.Context<unknown>
      const answers: Array<Answer> = []
      for (const [index, { arguments: args, by = "one", tool }] of row.calls.entries()) {
        const options = { memory: sessions[by], callId: `call_${index + 1}` }
        const answer = Effect.provideContext(invokeUnknown(tools[tool]!, args, options), context) as Effect.Effect<Answer>
        answers.push(yield* orDefect(answer))
      }
      return { answers: settled(answers), left: yield* Effect.orDie(capture(fs.port)) }
    })
  )

/** Returns the first difference between the value and the expectation, as its path and the value there. */
const unlike = (value: unknown, expected: unknown, place = "value"): string | undefined => {
  if (expected instanceof RegExp) {
    return typeof value === "string" && expected.test(value)
      ? undefined
      : `${place}: ${JSON.stringify(value)} is not like ${expected}`
  }
  if (typeof expected !== "object" || expected === null) {
    return Object.is(value, expected) ? undefined : `${place}: ${JSON.stringify(value)}, not ${JSON.stringify(expected)}`
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) {
      return `${place}: ${JSON.stringify(value)}, not ${JSON.stringify(expected)}`
    }
    return expected.map((item, index) => unlike(value[index], item, `${place}[${index}]`)).find((found) => found !== undefined)
  }
  if (typeof value !== "object" || value === null) return `${place}: ${JSON.stringify(value)}, not an object`
  return Object.entries(expected)
    .map(([key, item]) => unlike((value as Record<string, unknown>)[key], item, `${place}.${key}`))
    .find((found) => found !== undefined)
}

const faultOf = ({ message, success, value }: Answer, call: Call): string | undefined => {
  if (success !== call.success) return `success is ${success}: ${message}`
  if (!success && value !== undefined) return `it failed and has a value: ${JSON.stringify(value)}`
  const fault = unlike(message, call.message, "message")
  return fault ?? (call.value === undefined ? undefined : unlike(value, call.value))
}

export const faultsOf = (row: Row, { answers, left }: Outcome): ReadonlyArray<string> => {
  const faults = row.calls.flatMap((call, index) => {
    const fault = faultOf(answers[index]!, call)
    return fault === undefined ? [] : [`call ${index + 1}, ${call.tool}: ${fault}`]
  })
  const expected = JSON.stringify(picture(row.left ?? row.tree))
  return JSON.stringify(left) === expected ? faults : [...faults, `left: ${JSON.stringify(left)}, not ${expected}`]
}

/** Removes the mode from the answer, as a filesystem without modes would. */
const withoutMode = ({ message, success, value }: Answer): Answer => {
  const told = message.replace(/^mode [0-7]{4}\n?/gm, "").trimEnd()
  if (typeof value !== "object" || value === null || !("mode" in value) || !/^0[0-7]{3}$/.test(String(value.mode))) {
    return value === undefined ? { message: told, success } : { message: told, success, value }
  }
  const { mode: _, ...rest } = value
  return { message: told, success, value: rest }
}

export const differences = (outcome: Outcome, first: Outcome, { modeless }: Ground): ReadonlyArray<string> =>
  outcome.answers.flatMap((answer, index) => {
    const told = modeless === true ? withoutMode : (answer: Answer) => answer
    const [here, there] = [JSON.stringify(told(answer)), JSON.stringify(told(first.answers[index]!))]
    return here === there ? [] : [`call ${index + 1} answers ${here}, and ${there} in memory`]
  })

/** Removes the times of creation from an answer or an expectation, as a filesystem without these times would. */
const withoutCreation = <A>(value: A): A => {
  const strip = (value: unknown): unknown =>
    typeof value === "string"
      ? value.replaceAll(/^created <time>\n/gm, "").replaceAll("created <time>, ", "")
      : Array.isArray(value)
        ? value.map(strip)
        : typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
          ? Object.fromEntries(
              Object.entries(value).flatMap(([key, item]) => (key === "created_at" ? [] : [[key, strip(item)]]))
            )
          : value
  // Times that end a text have a line of their own.
  const trimmed = strip(value)
  return (
    typeof trimmed === "object" && trimmed !== null && "message" in trimmed && typeof trimmed.message === "string"
      ? { ...trimmed, message: trimmed.message.replace(/\ncreated <time>$/, "") }
      : trimmed
  ) as A
}

/** Removes the time of the root from an answer of `stat`. */
const withoutTimeOfRoot = (answer: Answer): Answer => {
  if (!answer.message.startsWith(".: directory\n")) return answer
  const { modified_at: _, ...rest } = answer.value as Record<string, unknown>
  return { ...answer, message: answer.message.replace("modified <time>\n", ""), value: rest }
}

/** Runs a row of the table on a filesystem, and returns what differs from the expectation and from memory. */
export const faultsOn = (ground: Ground, row: Row): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const told = ({ answers, left }: Outcome): Outcome => ({
      answers: answers
        .map((answer) => (ground.birthless === true ? withoutCreation(answer) : answer))
        .map((answer) => (ground.hasTimelessRoot === true ? withoutTimeOfRoot(answer) : answer)),
      left
    })
    const calls = ground.birthless === true ? row.calls.map(withoutCreation) : row.calls
    const first = told(yield* run(row, memory))
    const outcome = told(yield* run(row, ground))
    return [...faultsOf({ ...row, calls }, outcome), ...differences(outcome, first, ground)]
  })
