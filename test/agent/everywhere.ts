/** One table for every filesystem: calls, what each of them answers, and what is there afterwards, whatever keeps the files. */
import { NodeFileSystem } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import * as Tools from "../../src/agent/tools.ts"
import { defaults, ToolSettings, type ToolSettingsShape } from "../../src/agent/ToolSettings.ts"
import * as Container from "../../src/backends/Container.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly, subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { fromFileSystem } from "../../src/filesystem/Platform.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { capture, type Files, type Picture, picture, plant } from "../../src/testing/Files.ts"
import * as Podman from "../backends/container/podman.ts"
import { apart } from "../conformance/containers.ts"
import { has, needs } from "../faults/ground.ts"
import { inMemory } from "../scratch.ts"

/** The tools by name; those of the four-tool kit, which shares names with the other, as `four/read_file`. */
export const tools: Readonly<Record<string, AnyDefinition>> = Object.fromEntries([
  ...[...Tools.seven, ...Tools.extras, ...Tools.snapshotTools].map((tool) => [tool.name, tool] as const),
  ...Tools.four.map((tool) => [`four/${tool.name}`, tool] as const)
])

export interface Call {
  readonly tool: string
  readonly arguments: unknown
  readonly success: boolean
  readonly message: string | RegExp
  /** As much of it as matters; lists have as many items as here. */
  readonly value?: unknown
  /** Another session, which has seen nothing of what this one has. */
  readonly by?: "another"
}

export interface Row {
  readonly name: string
  readonly tree: Files
  readonly calls: ReadonlyArray<Call>
  /** @default the tree as it was */
  readonly left?: Files
  readonly settings?: Partial<ToolSettingsShape>
  /** Names that differ only in case. */
  readonly cases?: true
  /** On memory, a host and an overlay alone: it is slow, and the others keep their snapshots as the overlay does. */
  readonly few?: true
  /** Snapshots are provided. */
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

/** The files without those at these paths and below. */
export const without = (files: Files, ...gone: ReadonlyArray<string>): Files =>
  Object.fromEntries(Object.entries(files).filter(([path]) => !gone.some((one) => path === one || path.startsWith(`${one}/`))))

type Place<A> = Effect.Effect<A, never, Scope.Scope>

/** A root of its own, with something beside it for links to lead to. */
const root: Place<string> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(inMemory(), "everywhere-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  ),
  (path) => {
    Fs.writeFileSync(join(path, "outside.txt"), "secret\n")
    Fs.mkdirSync(join(path, "root"))
    return join(path, "root")
  }
)

const memoryOf = (files: Files, options: InMemory.InMemoryOptions = {}): Place<Algebra> =>
  Effect.orDie(Effect.flatMap(InMemory.make(options), (port) => Effect.as(plant(port, files), make(port))))

const plantedRoot = (files: Files): Place<string> =>
  Effect.gen(function* () {
    const path = yield* root
    yield* Effect.scoped(Effect.flatMap(PosixHost.make({ root: path }), (port) => plant(port, files)))
    return path
  }).pipe(Effect.orDie)

const hostOf = (files: Files): Place<Algebra> =>
  Effect.orDie(Effect.flatMap(plantedRoot(files), (root) => Effect.map(PosixHost.make({ root }), make)))

const below = (path: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, entry]) => [`${path}/${name}`, entry]))

const within = (path: string, whole: Place<Algebra>): Place<Algebra> =>
  Effect.orDie(
    Effect.gen(function* () {
      const fs = yield* whole
      yield* fs.mkdir(path)
      return yield* subdirectory(path)(fs)
    })
  )

const mounted = (at: string, inner: Place<Algebra>, outer: Place<Algebra>): Place<Algebra> =>
  Effect.orDie(
    Effect.gen(function* () {
      return yield* mount(at, yield* inner)(yield* outer)
    })
  )

const outside: Files = { "outside.txt": "secret\n" }

export interface Ground {
  readonly name: string
  readonly make: (files: Files) => Place<Algebra>
  /** How Snapshots are kept; a host has git keep them. */
  readonly git?: true
}

export const memory: Ground = { name: "memory", make: memoryOf }
export const host: Ground = { name: "a host", make: hostOf, git: true }
/** Read only below, so that what would be written there by mistake fails. */
export const anOverlay: Ground = {
  name: "an overlay on a host",
  make: (files) => Effect.map(Effect.all([memoryOf({}), hostOf(files)]), ([upper, lower]) => overlay(upper)(readOnly(lower)))
}

export const caseless: Ground = {
  name: "memory that does not distinguish case",
  make: (files) => memoryOf(files, { caseInsensitive: true })
}

const container = Podman.use("tools in containers") ? apart(Podman.gnuRoot) : undefined

const apartOf = (files: Files): Place<Algebra> =>
  Effect.map(Effect.orDie(Layer.build(container!.with({}, files))), (built) => Context.get(built, Filesystem))

const sharedOf = (files: Files): Place<Algebra> =>
  Effect.gen(function* () {
    const hostDirectory = yield* plantedRoot(files)
    const layer = Container.layer({ image: { rootfs: Podman.gnuRoot() }, hostDirectory })
    return Context.get(yield* Layer.build(Layer.provide(layer, Podman.services)), Filesystem)
  }).pipe(Effect.orDie)

const containers: ReadonlyArray<Ground> =
  container === undefined
    ? []
    : [
        { name: "a container, apart", make: apartOf },
        { name: "a directory shared with a container", make: sharedOf, git: true }
      ]

/** The first is what the others are compared with. */
export const grounds: ReadonlyArray<Ground> = [
  memory,
  host,
  anOverlay,
  {
    name: "an overlay on memory",
    make: (files) => Effect.map(Effect.all([hostOf({}), memoryOf(files)]), ([upper, lower]) => overlay(upper)(readOnly(lower)))
  },
  { name: "a subdirectory of a host", make: (files) => within("side", hostOf({ ...below("side", files), ...outside })) },
  {
    name: "what is mounted",
    make: (files) => within("mount", mounted("mount", hostOf(files), memoryOf(outside)))
  },
  {
    name: "what is mounted on",
    make: (files) => within("around", mounted("mount", memoryOf({}), memoryOf({ ...below("around", files), ...outside })))
  },
  {
    name: "Node's FileSystem",
    make: (files) =>
      Effect.gen(function* () {
        const path = yield* plantedRoot(files)
        const built = yield* Layer.build(Layer.provide(fromFileSystem({ root: path }), NodeFileSystem.layer))
        return Context.get(built, Filesystem)
      }).pipe(Effect.orDie)
  },
  caseless,
  ...containers
]

export interface Answer {
  readonly message: string
  readonly success: boolean
  readonly value?: unknown
}

const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g
const instant = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g

/** Every string in the value. */
const eachText = (value: unknown, f: (text: string) => string): unknown =>
  typeof value === "string"
    ? f(value)
    : Array.isArray(value)
      ? value.map((item) => eachText(item, f))
      : typeof value === "object" && value !== null
        ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, eachText(item, f)]))
        : value

/** What no two runs have in common, named by what it is: instants, and snapshots by the order in which they are met. */
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

const hasGit = needs("snapshot tools on a host", () => has("git"), "apt-get install git")

const historyOf = (fs: Algebra, { git }: Ground): Place<Context.Context<Snapshots.Snapshots>> =>
  Effect.orDie(
    Layer.build(
      Layer.provide(git === true && !hasGit ? Snapshots.layerArchive : Snapshots.layer, Layer.succeed(Filesystem, fs))
    )
  )

/** So that the row goes on, and says which call it was. */
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

/** The first place where the value is not what is expected of it, with what it is. */
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

const faultsOf = (row: Row, { answers, left }: Outcome): ReadonlyArray<string> => {
  const faults = row.calls.flatMap((call, index) => {
    const fault = faultOf(answers[index]!, call)
    return fault === undefined ? [] : [`call ${index + 1}, ${call.tool}: ${fault}`]
  })
  const expected = JSON.stringify(picture(row.left ?? row.tree))
  return JSON.stringify(left) === expected ? faults : [...faults, `left: ${JSON.stringify(left)}, not ${expected}`]
}

const differences = (outcome: Outcome, first: Outcome): ReadonlyArray<string> =>
  outcome.answers.flatMap((answer, index) => {
    const [here, there] = [JSON.stringify(answer), JSON.stringify(first.answers[index])]
    return here === there ? [] : [`call ${index + 1} answers ${here}, and ${there} in memory`]
  })

const suits = (ground: Ground, { cases, few }: Row): boolean =>
  (ground !== caseless || cases !== true) && (few !== true || ground === memory || ground === host || ground === anOverlay)

/** The row on every filesystem, against what it says and against each other. */
export const holds = (row: Row): Effect.Effect<void> =>
  Effect.gen(function* () {
    const faults = new Map<string, Array<string>>()
    let first: Outcome | undefined
    for (const ground of grounds) {
      if (!suits(ground, row)) continue
      const outcome = yield* run(row, ground)
      first ??= outcome
      for (const fault of [...faultsOf(row, outcome), ...differences(outcome, first)]) {
        faults.set(fault, [...(faults.get(fault) ?? []), ground.name])
      }
    }
    assert.deepStrictEqual(Object.fromEntries(faults), {})
  })
