/**
 * Runs the common part of all operations: checks the permissions and the path, passes the caller's limits, and turns faults
 * into errors with an operation and a path.
 */
import { accessDenied, invalidPath, invalidArgument } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Eager from "../../engine/eager.ts"
import * as FsError from "../../model/FsError.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits, type LimitsShape } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"
import type { Versioning } from "../Filesystem.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

export const readOnly = accessDenied("readOnly")

const inProgress: Fault = invalidPath("it is the temporary name of an unfinished write")

export type ErrorTags = ReadonlySet<string>

export const errorTags = {
  exists: FsError.tagsOf(FsError.BackendError),
  stat: FsError.tagsOf(FsError.StatError),
  list: FsError.tagsOf(FsError.ListError),
  glob: FsError.tagsOf(FsError.GlobError),
  grep: FsError.tagsOf(FsError.GrepError),
  read: FsError.tagsOf(FsError.ReadError),
  readBytes: FsError.tagsOf(FsError.ReadBytesError),
  stream: FsError.tagsOf(FsError.StreamError),
  lines: new Set([...FsError.tagsOf(FsError.StreamError), "NotText"]),
  write: FsError.tagsOf(FsError.WriteError),
  edit: FsError.tagsOf(FsError.EditError),
  delete: FsError.tagsOf(FsError.DeleteError),
  mkdir: FsError.tagsOf(FsError.MkdirError),
  transfer: FsError.tagsOf(FsError.TransferError),
  link: FsError.tagsOf(FsError.LinkError),
  attributes: new Set([...FsError.tagsOf(FsError.StatError), "InvalidArgument", "Unsupported"]),
  watch: new Set([...FsError.tagsOf(FsError.StatError), "NotADirectory", "Unsupported"])
} satisfies Record<string, ErrorTags>

export type Action = "read" | "write" | "delete"

export const readActions: ReadonlyArray<Action> = ["read"]
export const writeActions: ReadonlyArray<Action> = ["write"]
/** The actions of changes that may create an entry. Such a change refuses reserved names. */
export const createActions: ReadonlyArray<Action> = ["write"]
export const deleteActions: ReadonlyArray<Action> = ["delete"]
export const moveActions: ReadonlyArray<Action> = ["write", "delete"]

export const isWholeNumber = (value: unknown, minimum: number): value is number =>
  typeof value === "number" && (Number.isSafeInteger(value) || value === Number.POSITIVE_INFINITY) && value >= minimum

export const checkWholeNumber = (argument: string, value: number | undefined, minimum = 0): Fault | undefined =>
  value === undefined || isWholeNumber(value, minimum)
    ? undefined
    : invalidArgument(argument, `it must be a whole number of at least ${minimum}`)

export const versioning = <Arguments extends ReadonlyArray<unknown>, Options, Result, Error>(
  call: (...args: [...Arguments, options?: Options]) => Effect.Effect<Result, Error>
): Versioning<Arguments, Options, Result, Error> => call as Versioning<Arguments, Options, Result, Error>

export interface Caller {
  readonly port: Backend
  /**
   * Tests whether an action is permitted on a path. Without a path, tests whether the action is permitted on at least
   * one path.
   */
  readonly isPermitted: (action: Action, path?: FsPath.FsPath) => boolean
  readonly parse: (input: string, limits: LimitsShape) => FsPath.FsPath | Fault
  /** Runs an operation. `expected` must list the tags of `E`. */
  readonly run: <A, E>(
    operation: string,
    input: string,
    expected: ErrorTags,
    body: (limits: LimitsShape) => Effect.Effect<A, Fault>
  ) => Effect.Effect<A, E>
  readonly call: <A, E>(
    operation: string,
    input: string,
    expected: ErrorTags,
    actions: ReadonlyArray<Action>,
    body: (path: FsPath.FsPath, limits: LimitsShape) => Effect.Effect<A, Fault>
  ) => Effect.Effect<A, E>
  readonly callStream: <A, E>(
    operation: string,
    input: string,
    expected: ErrorTags,
    body: (path: FsPath.FsPath, limits: LimitsShape) => Effect.Effect<Stream.Stream<A, Fault>, Fault>
  ) => Stream.Stream<A, E>
}

export const make = (port: Backend): Caller => {
  const { calls, info, rules } = port
  const permits = rules?.permits
  const policy = rules?.policy

  const isPermitted = (action: Action, path?: FsPath.FsPath): boolean =>
    action === "read" || (!info.readOnly && (permits === undefined || permits(action, path)))

  const parse = (input: string, limits: LimitsShape): FsPath.FsPath | Fault => {
    const path = FsPath.parse(input, policy)
    if (typeof path !== "string") return path
    return FsPath.checkLimits(path, limits) ?? (TemporaryNames.hasNameInProgress(path) ? inProgress : path)
  }

  const failWithError = (fault: Fault, operation: string, input: string, expected: ErrorTags) => {
    const error = Effect.fail(FsError.promote(fault, operation, input, expected))
    const cause = fault["cause"]
    return cause === undefined ? error : Effect.andThen(Effect.logDebug(`fs-algebra: ${operation} failed`, cause), error)
  }

  const run: Caller["run"] = (operation, input, expected, body) => {
    const effect = Effect.withFiber((fiber) =>
      Eager.catch(body(fiber.getRef(Limits)), (fault) => failWithError(fault, operation, input, expected))
    ) as ReturnType<typeof body> & Effect.Effect<never, never>
    return calls === undefined ? effect : calls.effect({ operation, path: input }, effect)
  }

  const call: Caller["call"] = (operation, input, expected, actions, body) =>
    run(operation, input, expected, (limits) => {
      const reads = actions === readActions
      if (!reads && !actions.every((action) => isPermitted(action))) return Effect.fail(readOnly)
      const path = parse(input, limits)
      if (typeof path !== "string") return Effect.fail(path)
      const fault = actions === createActions ? FsPath.uncreatable(path) : undefined
      if (fault !== undefined) return Effect.fail(fault)
      if (!reads && !actions.every((action) => isPermitted(action, path))) return Effect.fail(readOnly)
      return body(path, limits)
    })

  const callStream: Caller["callStream"] = (operation, input, expected, body) => {
    const made = Effect.withFiber<Effect.Success<ReturnType<typeof body>>, Fault>((fiber) => {
      const limits = fiber.getRef(Limits)
      const path = parse(input, limits)
      return typeof path === "string" ? body(path, limits) : Effect.fail(path)
    })
    const stream = Stream.catch(Stream.unwrap(made), (fault) =>
      Stream.fromEffect(failWithError(fault, operation, input, expected))
    ) as Stream.Stream<never>
    return calls === undefined ? stream : calls.stream({ operation, path: input }, stream)
  }

  return { port, isPermitted, parse, run, call, callStream }
}
