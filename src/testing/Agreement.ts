/**
 * Runs random programs on the model and on a filesystem, and compares each outcome and the final tree.
 *
 * @since 0.1.0
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem, type Precondition } from "../filesystem/Filesystem.ts"
import type { FsError, Unsupported } from "../model/FsError.ts"
import * as Arbitraries from "./Arbitraries.ts"
import { show } from "./expect.ts"
import { capture } from "./Files.ts"
import { Bench } from "./Law.ts"
import { type Command, empty, type Match, type Outcome, picture, print, step } from "./Model.ts"

/**
 * A difference between a filesystem and the model, with the program that caused it.
 *
 * @since 0.1.0
 */
export class Disagreement extends Data.TaggedError("Disagreement")<{
  /** The calls up to the call whose outcome differs, or all calls if only the final tree differs. */
  readonly program: ReadonlyArray<string>
  readonly expected: string
  readonly actual: string
}> {
  override get message(): string {
    return `\n  ${this.program.join("\n  ")}\n  model:      ${this.expected}\n  filesystem: ${this.actual}`
  }
}

type Call = Effect.Effect<unknown, FsError | Unsupported>

const staleVersion = "0".repeat(64)

const preconditionOf = (fs: Algebra, path: string, match: Match | undefined): Effect.Effect<Precondition> =>
  match === undefined
    ? Effect.succeed({})
    : match === "absent"
      ? Effect.succeed({ ifMatch: null })
      : match === "stale"
        ? Effect.succeed({ ifMatch: staleVersion })
        : Effect.map(
            Effect.catch(fs.version(path), () => Effect.succeed(staleVersion)),
            (ifMatch) => ({ ifMatch })
          )

const run = (fs: Algebra, command: Command): Call => {
  switch (command._tag) {
    case "Write": {
      const { createParents, mode, path, text, via } = command
      return Effect.flatMap(preconditionOf(fs, path, command.ifMatch), (expected) => {
        const options = { mode, createParents, ...expected }
        const bytes = new TextEncoder().encode(text)
        const written =
          via === "write"
            ? fs.write(path, text, options)
            : via === "writeBytes"
              ? fs.writeBytes(path, bytes, options)
              : Stream.run(Stream.make(bytes.subarray(0, 3), bytes.subarray(3)), fs.sink(path, options))
        return Effect.map(written, ({ bytesWritten, mode }) => ({ bytesWritten, mode }))
      })
    }
    case "Edit": {
      const { match, newText, oldText, path } = command
      return Effect.flatMap(preconditionOf(fs, path, command.ifMatch), (expected) =>
        Effect.map(fs.edit(path, { oldText, newText, match }, expected), ({ replacements }) => ({ replacements }))
      )
    }
    case "Delete": {
      const { missing, path, recursive } = command
      return Effect.flatMap(preconditionOf(fs, path, command.ifMatch), (expected) =>
        fs.delete(path, { recursive, missing: missing, ...expected })
      )
    }
    case "Mkdir":
      return fs.mkdir(command.path, { parents: command.parents, existOk: command.existOk })
    case "Transfer":
      return fs[command.via](command.from, command.to, { overwrite: command.overwrite })
    case "Symlink":
      return fs.symlink(command.path, command.target)
    case "Walk":
      return Effect.map(Stream.runCollect(fs.walk()), (entries) => entries.map(({ path }) => path))
    case "Look":
      return runLook(fs, command.via, command.path)
  }
}

const runLook = (fs: Algebra, via: Extract<Command, { _tag: "Look" }>["via"], path: string): Call => {
  switch (via) {
    case "stat":
      return Effect.map(fs.stat(path), ({ kind, sizeBytes }) => ({ kind, sizeBytes }))
    case "lstat":
      return Effect.map(fs.lstat(path), ({ kind }) => kind)
    case "realPath":
      return fs.realPath(path)
    case "list":
      return Effect.map(fs.list(path), (all) => all.map(({ kind, name }) => `${name} ${kind}`))
    case "exists":
      return fs.exists(path)
    case "readString":
      return fs.readString(path)
    case "readLink":
      return fs.readLink(path)
    case "glob":
      return Effect.map(fs.glob("**", { path }), ({ matches }) => matches.map(({ path }) => path))
    case "grep":
      return Effect.map(fs.grep("x", { path }), ({ matches }) => matches.map((match) => `${match.path}:${match.lineNumber}`))
  }
}

const outcomeOf = (call: Call): Effect.Effect<Outcome> =>
  Effect.match(call, {
    onSuccess: (value) => ({ tag: "success", value }),
    onFailure: (error) => ({ tag: error._tag === "AccessDenied" ? `AccessDenied ${error.why}` : error._tag })
  }).pipe(Effect.catchDefect((defect) => Effect.succeed({ tag: "defect", value: show(defect) })))

/** Sorts an array, because a case-insensitive filesystem lists names in the order of their folded forms, but the model does not. */
const sortListing = (outcome: Outcome): Outcome =>
  Array.isArray(outcome.value) ? { ...outcome, value: [...outcome.value].sort() } : outcome

/**
 * Runs the program on the filesystem, which must be empty, and on the empty model. Fails if an outcome or the final tree
 * differs.
 *
 * @since 0.1.0
 */
export const agrees = Effect.fnUntraced(function* (
  program: ReadonlyArray<Command>
): Effect.fn.Return<void, Disagreement, Filesystem> {
  const fs = yield* Filesystem
  const { caseSensitive } = fs.port.info
  const normalizeOutcome = caseSensitive ? (outcome: Outcome): Outcome => outcome : sortListing
  const { prunes } = yield* Bench
  let model = empty({ caseSensitive, prunes })
  for (const [i, command] of program.entries()) {
    const expected = step(model, command)
    model = expected.model
    const actual = yield* outcomeOf(Effect.suspend(() => run(fs, command)))
    if (!Equal.equals(normalizeOutcome(actual), normalizeOutcome(expected.outcome))) {
      const upTo = program.slice(0, i + 1).map(print)
      const shown = actual.tag === "defect" ? `a defect, ${String(actual.value)}` : show(actual)
      return yield* new Disagreement({ program: upTo, expected: show(expected.outcome), actual: shown })
    }
  }
  const finalTree = yield* Effect.orDie(capture(fs.port))
  if (!Equal.equals(finalTree, picture(model))) {
    return yield* new Disagreement({ program: program.map(print), expected: show(picture(model)), actual: show(finalTree) })
  }
})

/**
 * Runs random programs, each on the model and on a new filesystem, and compares the results. If the results differ, fails with
 * the shortest such program that shrinking finds. Calls with the same `seed` run the same programs.
 * @default runs: 200, seed: random, links: "any"
 *
 * @category testing
 * @since 0.1.0
 */
export const agreement = Effect.fnUntraced(function* <E>(
  layer: Layer.Layer<Filesystem, E>,
  options?: {
    readonly runs?: number | undefined
    readonly seed?: number | undefined
    readonly links?: Exclude<Arbitraries.Links, "none"> | undefined
  }
): Effect.fn.Return<void, Disagreement | E> {
  const links = yield* Effect.provide(
    Filesystem.useSync((fs) => (fs.port.links === undefined ? "none" : (options?.links ?? "any"))),
    layer
  )
  const result = yield* Arbitrary.checkEffect(
    Arbitraries.program({ links }),
    (program) => Effect.as(Effect.provide(agrees(program), layer, { local: true }), true),
    { runs: options?.runs ?? 200, size: 40, maxShrinks: 2000, seed: options?.seed }
  )
  if (result._tag !== "Falsified") return
  if (result.failure._tag === "PropertyError") return yield* Effect.fail(result.failure.error)
})
