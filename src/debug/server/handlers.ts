import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import { Api } from "../Api.ts"
import * as Content from "../content.ts"
import { type DebugError, makeDebugError } from "../errors.ts"
import * as Journal from "../journal.ts"
import { historyOf, pathsOfCall } from "../journal.ts"
import type * as Model from "../model.ts"
import type { Source } from "../source.ts"
import * as Tree from "../tree.ts"
import { type BadRequest, Checked, defaultLimit, type Forbidden, type NotFound, type Unreadable } from "./failures.ts"

type Failure = typeof BadRequest.Type | typeof Forbidden.Type | typeof NotFound.Type | typeof Unreadable.Type

const names = { missing: "NotFound", unreadable: "Unreadable", invalid: "BadRequest", forbidden: "Forbidden" } as const

const failureOf = ({ message, path, reason }: DebugError): Failure => ({
  error: names[reason],
  message,
  ...(path !== undefined && { path })
})

const withFailures = <A, R>(effect: Effect.Effect<A, DebugError, R>): Effect.Effect<A, Failure, R> =>
  Effect.mapError(effect, failureOf)

const noFiles = makeDebugError("missing", "the dump has no archive, so there are no files")
const noJournal = makeDebugError("missing", "no journal is open; open one with --journal FILE")

const pageOf = <A>(all: ReadonlyArray<A>, offset = 0, limit = defaultLimit) => ({
  total: all.length,
  offset,
  items: all.slice(offset, offset + limit)
})

/** The interval of heartbeats. A heartbeat fails if the client has disconnected. */
const heartbeatInterval = "15 seconds"

const heartbeats = Stream.map(Stream.fromSchedule(Schedule.spaced(heartbeatInterval)), () => heartbeat)
const heartbeat = { event: "beat" as const, data: "" }

const metaOf = Effect.fnUntraced(function* (source: Source, version: string): Effect.fn.Return<Model.Meta, DebugError> {
  const { problems, ...about } = yield* source.about
  const all = {
    sessions: yield* source.sessions,
    slices: yield* source.slices,
    events: yield* source.events,
    snapshots: yield* source.snapshotCount
  }
  const journalProblems =
    source.journal === undefined
      ? []
      : yield* Effect.match(source.journal.last, {
          onFailure: ({ message }) => [`The journal cannot be shown: ${message}.`],
          onSuccess: () => []
        })
  return {
    ...about,
    generation: source.generation(),
    sessions: all.sessions.length,
    slices: all.slices.length,
    events: all.events.length,
    snapshots: all.snapshots,
    has_journal: source.journal !== undefined,
    is_live: true,
    problems: [...problems, ...journalProblems],
    version
  }
})

/** Returns the JSON of a tree from the cache, or encodes the tree and caches the text. */
const textOf = (cache: WeakMap<Tree.Tree, string>, tree: Tree.Tree, make: (tree: Tree.Tree) => unknown): string => {
  const known = cache.get(tree)
  if (known !== undefined) return known
  const text = JSON.stringify(make(tree))
  cache.set(tree, text)
  return text
}

export const layer = (source: Source, version: string) => {
  const meta = withFailures(metaOf(source, version))
  const [flat, nested] = [new WeakMap<Tree.Tree, string>(), new WeakMap<Tree.Tree, string>()]
  const withJournal = <A>(use: (journal: Journal.FileJournal) => Effect.Effect<A, DebugError>) =>
    withFailures(source.journal === undefined ? Effect.fail(noJournal) : use(source.journal))

  const shown = HttpApiBuilder.group(Api, "shown", (handlers) =>
    handlers
      .handle("meta", () => meta)
      .handle("files", () => withFailures(source.dumps))
      .handle("reload", () => Effect.andThen(withFailures(source.reload), meta))
      .handle("switchTo", ({ payload: { path } }) => Effect.andThen(withFailures(source.switchTo(path)), meta))
      .handle("snapshots", () => withFailures(source.snapshots))
      .handle("live", () =>
        Effect.succeed(
          Stream.concat(
            Stream.make(heartbeat),
            Stream.merge(
              Stream.map(source.live, (data) => ({ event: "message" as const, data })),
              heartbeats,
              { haltStrategy: "left" }
            )
          )
        )
      )
  )

  const sessions = HttpApiBuilder.group(Api, "sessions", (handlers) =>
    handlers
      .handle("sessions", () => withFailures(source.sessions))
      .handle("slices", () => withFailures(source.slices))
      .handle("slice", ({ params: { name }, query: { limit, offset, session } }) =>
        withFailures(
          Effect.flatMap(source.slice(name, session), (found) => {
            if (found === undefined) {
              return Effect.fail(makeDebugError("missing", `there is no slice ${JSON.stringify(name.slice(0, 200))}`))
            }
            const { all, policy, session_id } = found
            return Effect.succeed({ session_id, name, policy, ...pageOf(all, offset, limit) })
          })
        )
      )
      .handle("events", ({ query: { limit, offset, path, session, tool } }) =>
        withFailures(
          Effect.map(source.events, (all) => {
            const lowerCasePath = path?.toLowerCase()
            const matchingEvents = all.filter(
              (event) =>
                (session === undefined || event.session_id === session) &&
                (tool === undefined || event.name === tool) &&
                (lowerCasePath === undefined || pathsOfCall(event).some((text) => text.toLowerCase().includes(lowerCasePath)))
            )
            return pageOf(matchingEvents, offset, limit)
          })
        )
      )
  )

  const treeText = (at: string | undefined, isNested: boolean) =>
    Effect.gen(function* () {
      // If the source cannot be read, return an empty tree, because the metadata contains the problem.
      const look = yield* at === undefined ? Effect.catch(source.look(at), () => Effect.succeed(undefined)) : source.look(at)
      const tree = look === undefined ? [] : yield* look.tree
      return isNested ? textOf(nested, tree, Tree.nested) : textOf(flat, tree, (tree) => tree)
    }).pipe(Effect.scoped, withFailures)

  const filesystem = HttpApiBuilder.group(Api, "filesystem", (handlers) =>
    handlers
      .handle("filesystem", ({ query: { at } }) =>
        Effect.gen(function* () {
          const look = yield* source.look(at)
          if (look === undefined) return yield* noFiles
          const { bytes, files } = Tree.count(yield* look.tree)
          return { ...look.about, file_count: files, total_bytes: bytes, ...(at !== undefined && { at }) }
        }).pipe(Effect.scoped, withFailures)
      )
      // Return text, because one call of `JSON.stringify` encodes 50,000 files faster than their schema does.
      .handle("tree", ({ query: { at, nested } }) =>
        Effect.map(treeText(at, nested === "true"), (text) =>
          HttpServerResponse.text(text, { contentType: "application/json" })
        )
      )
      .handle("file", ({ query: { at, line, part, path } }) =>
        Effect.gen(function* () {
          const look = yield* source.look(at)
          if (look === undefined) return yield* noFiles
          return yield* Content.describePath(look.filesystem, path ?? "", { line, part, tree: look.identity })
        }).pipe(Effect.scoped, withFailures)
      )
      .handle("diff", ({ query: { at, with: from } }) => withFailures(source.diff(from, at)))
      .handle("history", ({ query: { path } }) =>
        withFailures(Effect.flatMap(source.events, (events) => historyOf(path ?? "", events, source.journal)))
      )
  )

  const journal = HttpApiBuilder.group(Api, "journal", (handlers) =>
    handlers
      .handle("journal", ({ query }) => withJournal(Journal.page({ ...query, limit: query.limit ?? defaultLimit })))
      .handle("changes", ({ query }) => withJournal(Journal.changesPage({ ...query, limit: query.limit ?? defaultLimit })))
      .handle("entry", ({ params: { position } }) => withJournal(Journal.entryAt(position)))
  )

  const checked = HttpApiMiddleware.layerSchemaErrorTransform(Checked, ({ cause }) =>
    Effect.fail({
      error: "BadRequest" as const,
      message: `the request is invalid: ${cause.message.replace(/\s*\n\s*/g, " ")}`
    })
  )

  return HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }).pipe(
    Layer.provide([shown, sessions, filesystem, journal]),
    Layer.provide(checked)
  )
}
