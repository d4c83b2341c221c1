/** The options of a leaf, validated and in one form. Times are in milliseconds. */
import * as Duration from "effect/Duration"
import { make as makeAlgebra, type Algebra } from "../../filesystem/Filesystem.ts"
import { InvalidArgument, promote } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Limits from "../../model/Limits.ts"
import type { LeafOptions } from "../Leaf.ts"
import { defaultGrace } from "./registry.ts"

export interface Settings {
  readonly name: string
  readonly prefix: FsPath.FsPath
  readonly allowWrite: boolean
  readonly allowDelete: boolean
  readonly chunkSize: number
  readonly streamingThreshold: number
  readonly windowsNames: boolean
  readonly concurrency: number
  readonly timeout: number
  readonly idle: number
  readonly grace: number
  readonly resumesChanges: boolean
  readonly extended: boolean
  readonly limits: Limits.LimitsShape
  readonly lockedRetries: number
}

const operation = "Leaf.make"

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: FsPath.root, argument, detail })

const isWhole = (value: unknown, least: number): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= least

/** Returns the number or its default. Throws InvalidArgument, which the parser of the options returns, so that only the first problem is reported. */
const whole = (argument: string, value: number | undefined, otherwise: number, least: number): number => {
  if (value === undefined) return otherwise
  if (isWhole(value, least)) return value
  throw invalid(argument, `it must be a whole number of at least ${least}`)
}

const millis = (argument: string, value: Duration.Input | undefined, otherwise: number, least: number): number => {
  if (value === undefined) return otherwise
  let time: number
  try {
    time = Duration.toMillis(Duration.fromInputUnsafe(value))
  } catch {
    throw invalid(argument, "it is not a duration")
  }
  if (time >= least) return time
  throw invalid(argument, `it must be at least ${least} ms`)
}

const flag = (argument: string, value: boolean | undefined, otherwise: boolean): boolean => {
  if (value === undefined) return otherwise
  if (typeof value === "boolean") return value
  throw invalid(argument, "it must be true or false")
}

const choice = <Value extends string>(argument: string, value: Value | undefined, values: readonly [Value, Value]): Value => {
  if (value === undefined) return values[0]
  if (values.includes(value)) return value
  throw invalid(argument, `it must be ${values[0]} or ${values[1]}`)
}

const prefixOf = (input: string | undefined): FsPath.FsPath => {
  if (input === undefined) return FsPath.root
  const prefix = FsPath.parse(input, "branch")
  if (typeof prefix === "string") return prefix
  throw invalid("prefix", promote(prefix, operation, input).message)
}

const nameOf = (fs: Algebra, prefix: FsPath.FsPath, name: string | undefined): string => {
  if (name === undefined) return prefix === FsPath.root ? fs.name : `${fs.name}:${prefix}`
  if (typeof name === "string" && name !== "") return name
  throw invalid("name", "it must be a text that is not empty")
}

const read = (fs: Algebra, options: LeafOptions): Settings => {
  const prefix = prefixOf(options.prefix)
  return {
    name: nameOf(fs, prefix, options.name),
    prefix,
    allowWrite: flag("allowWrite", options.allowWrite, true),
    allowDelete: flag("allowDelete", options.allowDelete, true),
    chunkSize: whole("chunkSize", options.chunkSize, 65_536, 1),
    streamingThreshold: whole("streamingThreshold", options.streamingThreshold, 1_048_576, 0),
    windowsNames: choice("names", options.names, ["posix", "windows"]) === "windows",
    concurrency: whole("concurrency", options.concurrency, 16, 1),
    timeout: millis("timeout", options.timeout, 30_000, 1),
    idle: millis("idle", options.idle, 60_000, 1),
    // The grace is announced in the journal, which accepts only whole numbers.
    grace: Math.min(Math.ceil(millis("grace", options.grace, defaultGrace, 0)), Number.MAX_SAFE_INTEGER),
    resumesChanges: choice("resume", options.resume, ["reads", "all"]) === "all",
    extended: flag("extended", options.extended, false),
    limits: options.limits ?? Limits.standard,
    lockedRetries: whole("lockedRetries", options.lockedRetries, 5, 0)
  }
}

export const of = (fs: Algebra, options: LeafOptions): Settings | InvalidArgument => {
  try {
    return read(fs, options)
  } catch (error) {
    if (error instanceof InvalidArgument) return error
    throw error
  }
}

/**
 * Returns the filesystem with these options applied. A filesystem that refuses links keeps refusing them. Without options, all of the
 * caller's own methods are kept except `copy`.
 */
export const seen = (fs: Algebra, { followSymlinks, preservePermissions }: LeafOptions): Algebra => {
  const { rules } = fs.port
  const reports = followSymlinks === false && rules?.symlinks !== "refuse" && rules?.symlinks !== "report"
  const ruled = makeAlgebra({
    ...fs.port,
    rules: {
      ...rules,
      ...(reports ? { symlinks: "report" as const } : {}),
      preservePermissions: preservePermissions ?? rules?.preservePermissions === true
    }
  })
  return reports || preservePermissions !== undefined ? ruled : { ...fs, port: ruled.port, copy: ruled.copy }
}
