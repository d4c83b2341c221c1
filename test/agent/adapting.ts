/** A prompt at work: sections that are as they are written here, tools that do what a test says, and a session that can be looked into. */
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
import { Filesystem, type Algebra } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"

export const Notes: Slice.Slice<string> = Slice.make("notes", Schema.String)

/** Also a structural section: nothing here was made by a constructor. */
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

/** Takes a path that it does not touch, and does what the test says. */
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
  /** Of the listener around the run. */
  readonly events: ReadonlyArray<ToolInvoked>
  /** What the session has kept of them. */
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

/** A checkpoint of a session and a filesystem, and the snapshots of that. */
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
