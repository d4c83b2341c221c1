/**
 * Builds prompts, runs and sections for tests: sections from literals, tools with handlers of the test, and a session
 * that tests can inspect.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Adapter from "../../src/agent/Adapter.ts"
import { type AnyDefinition, type Call, define, type ToolFailure } from "../../src/agent/definition.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import type { Section } from "../../src/agent/Section.ts"
import { log, ToolEvents, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import * as Slice from "../../src/model/Slice.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"

export const Notes: Slice.Slice<string> = Slice.make("notes", Schema.String)

/** Builds a section as a plain object, without the library's constructor. */
export const section = <R = never>(key: string, fields: Partial<Section<R>> = {}): Section<R> => ({
  key,
  title: `The ${key}`,
  template: `About ${key}.`,
  tools: [],
  children: [],
  acceptsOverrides: false,
  ...fields
})

export const Value = Schema.Struct({})
export const done = { message: "done", value: {} }

/** Builds a tool that takes a path without touching it, and runs the given handler. */
export const tool = <R = never>(
  name: string,
  handle: (call: Call, path: string | undefined) => Effect.Effect<{ message: string; value: {} }, ToolFailure, R>,
  more: { readonly does?: "reads" | "adds" | "changes"; readonly needsFilesystem?: boolean } = {}
): AnyDefinition<R> =>
  define({
    name,
    description: "Does what the test says.",
    parameters: Schema.Struct({ path: Schema.optionalKey(Schema.String.annotate({ description: "A path." })) }),
    value: Value,
    does: more.does ?? "changes",
    idempotent: false,
    needsFilesystem: more.needsFilesystem,
    examples: [{ path: "a.txt" }],
    touches: () => Effect.succeed([]),
    handle: ({ path }, call) => handle(call, path)
  })

export interface Started {
  readonly run: Adapter.Run
  readonly session: Session.Operations
  /** The events that the listener around the run received. */
  readonly events: ReadonlyArray<ToolInvoked>
  /** The events that the session has recorded. */
  readonly logged: Effect.Effect<ReadonlyArray<ToolInvoked>>
}

export interface Starting extends Partial<Adapter.Options> {
  readonly promptDeadline?: Prompt.Options["deadline"]
  readonly overrides?: Prompt.Options["overrides"]
  readonly policies?: Layer.Layer<never>
  readonly listener?: (event: ToolInvoked) => Effect.Effect<void>
}

export const makeSession = Session.make({ slices: [Notes, log] })

export const start = Effect.fnUntraced(function* <R = never>(
  sections: ReadonlyArray<Section<R>>,
  { listener, overrides, policies = Layer.empty, promptDeadline, ...options }: Starting = {}
) {
  const session = options.session ?? (yield* makeSession)
  const prompt = yield* Prompt.make({ ns: "tests", key: "prompt", sections, overrides, deadline: promptDeadline })
  const events: Array<ToolInvoked> = []
  const around = Context.merge(
    yield* Layer.build(policies),
    Context.make(ToolEvents, (event: ToolInvoked) =>
      Effect.andThen(
        Effect.sync(() => void events.push(event)),
        listener?.(event) ?? Effect.void
      )
    )
  )
  const run = yield* Effect.provideContext(Adapter.run(Adapter.make("test"), prompt, { ...options, session }), around)
  return { run, session, events, logged: session.all(log) } satisfies Started
})

/** Builds a checkpoint of a session and a filesystem, with the filesystem's snapshots. */
export const checkpointOf = (
  session: Session.Operations,
  fs: Algebra
): Effect.Effect<
  { readonly checkpoint: Checkpoint.Operations; readonly snapshots: Snapshots.Operations },
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const built = yield* Layer.build(Snapshots.layer.pipe(Layer.provide(Layer.succeed(Filesystem, fs))))
    const snapshots = Context.get(built, Snapshots.Snapshots)
    return { checkpoint: yield* Checkpoint.make({ session, snapshots }), snapshots }
  }).pipe(Effect.orDie)
