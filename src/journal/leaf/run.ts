/** Runs a leaf: surveys the journal once, then processes it until another leaf takes its place. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import { Limits } from "../../model/Limits.ts"
import type { DaemonOptions, Running } from "../Daemon.ts"
import type { JournalError } from "../errors.ts"
import { type Entry, Journal, type Recorded } from "../Journal.ts"
import type { Answered } from "./answered.ts"
import * as Checkpoints from "./checkpoints.ts"
import * as Dispatch from "./dispatch.ts"
import * as Executor from "./hands.ts"
import type { LeafContext } from "./model.ts"
import type { Settings } from "./settings.ts"
import * as Survey from "./survey.ts"

const superseded = Symbol()

interface LeafState {
  readonly dispatch: Dispatch.Dispatch
  readonly answered: Answered
  readonly checkpoints: Checkpoints.Checkpoints
}

/** Processes the entries one at a time, and waits for an entry's effect before the next entry. */
const processPage = (
  state: LeafState,
  page: ReadonlyArray<Recorded<Entry>>,
  from = 0
): Effect.Effect<void, typeof superseded> =>
  Effect.suspend(() => {
    for (let i = from; i < page.length; i++) {
      state.answered.advanceTo(page[i]!)
      state.checkpoints.observe(page[i]!)
      const action = state.dispatch.processEntry(page[i]!)
      if (action === "superseded") return Effect.fail(superseded)
      if (action !== undefined) return Effect.flatMap(action, () => processPage(state, page, i + 1))
    }
    const [decided, due] = [state.dispatch.runPostponed(), state.checkpoints.appendIfDue()]
    return Effect.andThen(decided ?? Effect.void, due ?? Effect.void)
  })

export const make = (fs: Algebra, settings: Settings): DaemonOptions<JournalError, Journal> => {
  let executor: Executor.Executor | undefined

  const run = Effect.fnUntraced(function* ({ instance, position }: Running): Effect.fn.Return<void, JournalError, Journal> {
    const journal = yield* Journal
    const { extended, graceMillis: grace, name, prefix } = settings
    const me = { daemon: name, instance, prefix, extended, grace, position }
    // An ending leaf drops the requests that have not begun after one timeout. A request that began just before may take another timeout.
    const survey = yield* Survey.make(journal, me, 2 * settings.timeoutMillis)
    if (survey === undefined) return
    const clock = yield* Clock.Clock
    const context = Context.add(yield* Effect.context<never>(), Limits, settings.limits)
    const activeExecutor = (executor = Executor.make({
      journal,
      settings,
      caseSensitive: fs.port.info.caseSensitive,
      clock,
      context,
      answered: survey.answered
    }))
    const serving: LeafContext = { fs, caller: Caller.make(fs.port), journal, settings, instance, tell: activeExecutor.tell }
    const dispatch = Dispatch.make(serving, activeExecutor, survey, me, clock)
    const { answered, checkpoint: from } = survey
    const state = { dispatch, answered, checkpoints: Checkpoints.make(journal, me, answered, from) }
    const reading = Effect.catchIf(
      Stream.runForEachArray(journal.tail(from.position), (page) => processPage(state, page)),
      (error) => error === superseded,
      () => Effect.void
    ) as Effect.Effect<void, JournalError>
    yield* Effect.raceAllFirst([reading, activeExecutor.journalFailure, activeExecutor.watch, dispatch.watch])
  })

  return {
    name: settings.name,
    says: { prefix: settings.prefix, extended: settings.extended, grace: settings.graceMillis },
    run,
    stop: Effect.suspend(() =>
      executor === undefined
        ? Effect.void
        : Effect.raceAllFirst([executor.waitUntilIdle, executor.journalFailure, executor.watch])
    )
  }
}
