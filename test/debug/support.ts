/** Dumps, a server over them, and requests to the server. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { request } from "node:http"
import { join } from "node:path"
import * as ToolEvents from "../../src/agent/ToolEvents.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Server from "../../src/debug/Server.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as Slice from "../../src/model/Slice.ts"
import * as Session from "../../src/workspace/Session.ts"
import { inMemory } from "../scratch.ts"

export const directory = (): string => Fs.mkdtempSync(join(inMemory(), "debug-"))

export const Plan = Slice.make("plan", Schema.Struct({ step: Schema.String }))

export const filesystem = (tree: InMemory.Tree): Effect.Effect<Algebra> =>
  Effect.map(Effect.orDie(InMemory.make({ tree })), make)

export interface Left {
  readonly name: string
  readonly steps?: ReadonlyArray<string>
  readonly calls?: ReadonlyArray<ToolEvents.ToolInvoked>
  readonly children?: ReadonlyArray<string>
  readonly files?: InMemory.Tree | Algebra
  readonly tags?: Readonly<Record<string, string>>
}

const isAlgebra = (files: InMemory.Tree | Algebra): files is Algebra => "port" in files && "walk" in files

/** Writes a dump with the library, and returns the path of the `.jsonl`. */
export const dump = (into: string, { calls = [], children = [], files, name, steps = ["one"], tags = {} }: Left) =>
  Effect.gen(function* () {
    const session = yield* Session.make({ id: name, slices: [Plan, ToolEvents.log], tags: { ...tags, session_id: name } })
    for (const step of steps) yield* session.dispatch(Plan, { step })
    for (const call of calls) yield* session.publish(call)
    for (const id of children) {
      const child = yield* session.child({ id, slices: [Plan] })
      yield* child.dispatch(Plan, { step: `of ${id}` })
    }
    const fs = files === undefined ? undefined : isAlgebra(files) ? files : yield* filesystem(files)
    return (yield* Session.dumpSessionTree(session, into, { filesystem: fs }))!
  }).pipe(Effect.orDie)

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body, parsed as JSON. */
  readonly body: any
}

export interface Asking {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** A raw body, sent instead of `body`. */
  readonly raw?: string
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Sends a request with any path and header unchanged. */
export const ask = (
  port: number,
  path: string,
  { body, headers = {}, method = "GET", raw }: Asking = {}
): Effect.Effect<Answer> =>
  Effect.promise(
    () =>
      new Promise<Answer>((resolve, reject) => {
        const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
        const typed = sent === undefined ? {} : { "content-type": "application/json" }
        const asked = request(
          { host: "127.0.0.1", port, path, method, agent: false, headers: { ...typed, ...headers } },
          (answer) => {
            let text = ""
            answer.setEncoding("utf8")
            answer.on("data", (part: string) => (text += part))
            answer.on("end", () =>
              resolve({
                status: answer.statusCode!,
                headers: answer.headers as Record<string, string>,
                text,
                body: parsed(text)
              })
            )
          }
        )
        asked.on("error", reject)
        asked.end(sent)
      })
  )

export interface Served {
  readonly port: number
  readonly get: (path: string, asking?: Asking) => Effect.Effect<Answer>
  readonly post: (path: string, body?: unknown) => Effect.Effect<Answer>
}

export const served = (options: Server.Options): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.map(Effect.orDie(Server.serve(options)), ({ port }) => ({
    port,
    get: (path, asking) => ask(port, path, asking),
    post: (path, body) => ask(port, path, { method: "POST", body })
  }))

const start = "data: "

/** Connects to the live events until the scope ends. Each call of the result returns the next event. */
export const listening = (port: number): Effect.Effect<() => Promise<any>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const abort = new AbortController()
        const answer = await fetch(`http://127.0.0.1:${port}/api/live`, { signal: abort.signal })
        return { abort, reader: answer.body!.pipeThrough(new TextDecoderStream()).getReader() }
      }),
      ({ abort }) => Effect.sync(() => abort.abort())
    ),
    ({ reader }) => {
      let rest = ""
      const next = async (): Promise<any> => {
        const end = rest.indexOf("\n\n")
        if (end === -1) {
          const { done, value } = await reader.read()
          if (done) throw new Error("the stream has ended")
          rest += value
          return next()
        }
        const block = rest.slice(0, end)
        rest = rest.slice(end + 2)
        if (block.startsWith("event: beat")) return { type: "beat" }
        return JSON.parse(
          block
            .split("\n")
            .find((line) => line.startsWith(start))!
            .slice(start.length)
        )
      }
      return next
    }
  )
