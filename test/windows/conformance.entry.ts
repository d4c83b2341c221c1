/**
 * The program of the Windows Node: `node conformance.mjs JOB`, where JOB is the path of a file with a `Job`. It writes
 * each outcome as a line immediately.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Filesystem, layer, make } from "../../src/filesystem/Filesystem.ts"
import { agreement } from "../../src/testing/Agreement.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import { Bench, type Law } from "../../src/testing/Law.ts"
import { laws } from "../../src/testing/Laws.ts"
import { policyLaws, type PolicyOptions } from "../../src/testing/Policies.ts"
import * as WindowsHost from "../../src/backends/WindowsHost.ts"
import { differences, faultsOf, type Ground, type Row, run } from "../agent/everywhereRun.ts"
import { facts } from "./facts.ts"
import { abilitiesOf, drawn, type Job, judge, judgeCheck, type Outcome } from "./outcome.ts"
import { toolRows } from "./tools.ts"
import { noLinks, shortcomings } from "./wine.ts"

const job = JSON.parse(Fs.readFileSync(process.argv[2]!, "utf8")) as Job
const out = Fs.openSync(job.out, "a")
const note = (outcome: Outcome): void => void Fs.writeSync(out, `${JSON.stringify(outcome)}\n`)

// The parent may have been killed.
setInterval(() => {
  if (!Fs.existsSync(`Z:\\proc\\${job.parent}`)) process.exit(1)
}, 1000).unref()

let made = 0
const newDirectory = (): string => {
  const path = `${job.directory}\\${made++}`
  Fs.mkdirSync(path, { recursive: true })
  return path
}
const removed = (path: string): void => Fs.rmSync(path, { recursive: true, force: true, maxRetries: 5 })

const directory = Effect.acquireRelease(Effect.sync(newDirectory), (path) => Effect.sync(() => removed(path)))

const inDirectory = <A>(use: (path: string) => A): A => {
  const path = newDirectory()
  try {
    return use(path)
  } finally {
    removed(path)
  }
}

/** True if links work. Under Wine they do not, so the backend runs without them. */
const linksWork = !inDirectory(noLinks.isSo)

const host = (options: WindowsHost.WindowsHostOptions) =>
  layer(Effect.map(WindowsHost.make(options), (port) => (linksWork ? port : { ...port, links: undefined })))

const bench = (root: string): Bench => ({
  // The prefix allows a name that Windows reads as a device.
  makeUnaddressable: Effect.sync(() => Fs.writeFileSync(`\\\\?\\${root}\\con.txt`, "hit")),
  plainEnds: true
})

const windowsHost: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.map(directory, (root) => Layer.merge(host({ root }), Layer.succeed(Bench, bench(root))))
)

const windowsHostWith = (options: PolicyOptions, files: Files): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.scoped(Effect.flatMap(WindowsHost.make({ root }), (port) => plant(port, files)))
      return host({ root, ...options })
    })
  )

const memory = InMemory.layer({ caseInsensitive: true })

const ground: Ground = {
  name: "a Windows directory",
  caseless: true,
  modeless: true,
  make: (files) =>
    Effect.orDie(
      Effect.gen(function* () {
        const root = yield* directory
        const port = yield* WindowsHost.make({ root })
        yield* plant(port, files)
        return make(linksWork ? port : { ...port, links: undefined })
      })
    )
}

const holdsHere = (row: Row) =>
  Effect.gen(function* () {
    const inMemory: Ground = {
      name: "memory",
      make: (files) => Effect.orDie(Effect.tap(Effect.map(InMemory.make(), make), (fs) => plant(fs.port, files)))
    }
    const outcome = yield* run(row, ground)
    const faults = [...faultsOf(row, outcome), ...differences(outcome, yield* run(row, inMemory), ground)]
    if (faults.length > 0) return yield* Effect.die(new Error(faults.join("\n")))
  })

const judgeLaws = async (of: string, all: ReadonlyArray<readonly [Law, Layer.Layer<Filesystem, unknown>]>): Promise<void> => {
  for (const [law, layer] of all) {
    note({ of, name: law.name, verdict: "Begun", detail: "" })
    note(await judge(of, law, layer))
  }
}

const judgePrograms = async (of: string, layer: Layer.Layer<Filesystem, unknown>): Promise<void> => {
  note({ of, name: "programs", verdict: "Begun", detail: "" })
  note(await judgeCheck(of, "programs", agreement(layer, { runs: job.programs, seed: job.seed })))
}

const say = (of: string, name: string, detail: string): void => note({ of, name, verdict: "Held", detail })

const parts: Record<string, () => Promise<void>> = {
  WindowsHost: () =>
    judgeLaws(
      "WindowsHost",
      laws.map((law) => [law, windowsHost])
    ),
  "WindowsHost, its options": () =>
    judgeLaws(
      "WindowsHost, its options",
      policyLaws.flatMap(({ files, law, options }) =>
        options.symlinks === undefined ? [[law, windowsHostWith(options, files)] as const] : []
      )
    ),
  "WindowsHost, its abilities": async () => {
    const found = await Effect.runPromise(abilitiesOf(windowsHost))
    say("WindowsHost", "abilities", found.join(", "))
  },
  "WindowsHost, programs": async () => {
    say("WindowsHost", "programs drawn", await drawn(job.programs, job.seed))
    await judgePrograms("WindowsHost", windowsHost)
  },
  InMemory: () =>
    judgeLaws(
      "InMemory",
      laws.map((law) => [law, memory])
    ),
  "InMemory, programs": () => judgePrograms("InMemory", memory),
  facts: async () => {
    for (const { check, name } of facts) {
      note({ of: "facts", name, verdict: "Begun", detail: "" })
      note(await judgeCheck("facts", name, Effect.scoped(Effect.flatMap(directory, check))))
    }
  },
  "WindowsHost, tools": async () => {
    for (const { name, row } of toolRows) {
      note({ of: "WindowsHost, tools", name, verdict: "Begun", detail: "" })
      note(await judgeCheck("WindowsHost, tools", name, holdsHere(row)))
    }
  },
  Wine: async () => {
    for (const { isSo, name } of shortcomings) say("Wine", name, String(inDirectory(isSo)))
  }
}

for (const part of job.parts) await parts[part]!()
process.exit(0)
