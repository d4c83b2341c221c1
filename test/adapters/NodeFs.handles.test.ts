/** Compares calls with signals, iterables and closed handles to the same calls of `node:fs` on the host. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as NodeFileSystem from "node:fs"
import { mkdtempSync } from "node:fs"
import * as NodePromises from "node:fs/promises"
import { join } from "node:path"
import * as NodeFs from "../../src/adapters/NodeFs.ts"
import { InMemory } from "../../src/index.ts"
import { inMemory } from "../scratch.ts"

type Promises = typeof NodePromises

interface Subject {
  readonly fs: Pick<typeof NodeFileSystem, "readFile">
  readonly promises: Promises
  readonly at: (name: string) => string
}

type Case = (subject: Subject) => Promise<unknown>

const using = async <A>(
  { at, promises }: Subject,
  flags: string,
  use: (handle: NodePromises.FileHandle) => Promise<A>
): Promise<A> => {
  const handle = await promises.open(at("file"), flags)
  try {
    return await use(handle)
  } finally {
    await handle.close()
  }
}

const cases: Record<string, Case> = {}

const signals: Record<string, any> = {
  "a string": "x",
  "a number": 5,
  null: null,
  "an empty object": {},
  "an object like a signal": { aborted: false },
  "an aborted object": { aborted: true },
  "a signal": new AbortController().signal,
  "an aborted signal": AbortSignal.abort()
}

for (const [name, signal] of Object.entries(signals)) {
  const options = { signal }
  Object.assign(cases, {
    [`readFile with ${name} as signal`]: ({ at, promises }) => promises.readFile(at("file"), options),
    [`writeFile with ${name} as signal`]: ({ at, promises }) => promises.writeFile(at("file"), "new", options),
    [`appendFile with ${name} as signal`]: ({ at, promises }) => promises.appendFile(at("file"), "more", options as object),
    [`a handle's readFile with ${name} as signal`]: (subject) => using(subject, "r", (handle) => handle.readFile(options)),
    [`a handle's writeFile with ${name} as signal`]: (subject) =>
      using(subject, "w", (handle) => handle.writeFile("new", options)),
    [`readFile with a callback and ${name} as signal`]: ({ at, fs }) =>
      new Promise((resolve, reject) => {
        fs.readFile(at("file"), options, (error, bytes) => (error === null ? resolve(bytes) : reject(error)))
      })
  } satisfies Record<string, Case>)
}

Object.assign(cases, {
  "appendFile with an array": ({ at, promises }) => promises.appendFile(at("file"), ["1", "2"] as never),
  "appendFile with a generator": ({ at, promises }) =>
    promises.appendFile(
      at("file"),
      (async function* () {
        yield "3"
        yield Buffer.from("4")
      })() as never
    )
} satisfies Record<string, Case>)

const methods: Record<string, ReadonlyArray<unknown>> = {
  appendFile: ["x"],
  chmod: [0o644],
  chown: [0, 0],
  close: [],
  datasync: [],
  read: [],
  readFile: [],
  readableWebStream: [],
  readv: [[Buffer.alloc(1)]],
  stat: [],
  sync: [],
  truncate: [],
  utimes: [1, 1],
  write: ["x"],
  writeFile: ["x"],
  writev: [[Buffer.alloc(1)]]
}

for (const [name, args] of Object.entries(methods)) {
  cases[`${name} of a closed handle`] = async ({ at, promises }) => {
    const handle = await promises.open(at("file"), "r+")
    await handle.close()
    return (handle as any)[name](...args)
  }
}

const shown = async (run: () => Promise<unknown>): Promise<unknown> => {
  try {
    const value = await run()
    return value instanceof Uint8Array ? Buffer.from(value).toString() : value
  } catch (thrown) {
    const { code, message, name, syscall } = thrown as NodeJS.ErrnoException
    return { code, message, name, syscall }
  }
}

/** Runs a case on a file with the content `old`. Returns the result of the case and the content afterwards. */
const outcome = async (subject: Subject, run: Case) => {
  await subject.promises.writeFile(subject.at("file"), "old")
  const result = await shown(() => run(subject))
  return { result, content: await subject.promises.readFile(subject.at("file"), "utf8") }
}

describe("NodeFs and node:fs have the same result for", () => {
  for (const [name, run] of Object.entries(cases)) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const directory = mkdtempSync(join(inMemory(), "handles-"))
        const real: Subject = { fs: NodeFileSystem, promises: NodePromises, at: (file) => join(directory, file) }
        const fs = yield* NodeFs.make()
        const ours = { fs, promises: fs.promises, at: (file: string) => `/${file}` } as unknown as Subject
        const expected = yield* Effect.promise(() => outcome(real, run))
        assert.deepStrictEqual(yield* Effect.promise(() => outcome(ours, run)), expected)
      }).pipe(Effect.provide(InMemory.layer({})))
    )
  }
})
