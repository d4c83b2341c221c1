/** The options of a leaf, validated and in one form. Times are in milliseconds. */
import * as Duration from "effect/Duration"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { InvalidArgument, promote } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Limits from "../../model/Limits.ts"
import type { LeafOptions } from "../Leaf.ts"
import { defaultGraceMillis } from "./registry.ts"

export interface Settings {
  readonly name: string
  readonly prefix: FsPath.FsPath
  readonly allowWrite: boolean
  readonly allowDelete: boolean
  readonly chunkSize: number
  readonly streamingThreshold: number
  readonly windowsNames: boolean
  readonly concurrency: number
  readonly timeoutMillis: number
  readonly idleMillis: number
  readonly graceMillis: number
  readonly resumesChanges: boolean
  readonly extended: boolean
  readonly limits: Limits.LimitsShape
  readonly lockedRetries: number
}

const operation = "Leaf.make"

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: FsPath.root, argument, detail })

const isWholeNumber = (value: unknown, minimum: number): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= minimum

/** Returns the number or its default. Throws InvalidArgument, which the parser of the options returns, so that only the first problem is reported. */
const wholeNumber = (argument: string, value: number | undefined, defaultValue: number, minimum: number): number => {
  if (value === undefined) return defaultValue
  if (isWholeNumber(value, minimum)) return value
  throw invalid(argument, `it must be a whole number of at least ${minimum}`)
}

const millis = (argument: string, value: Duration.Input | undefined, defaultValue: number, minimum: number): number => {
  if (value === undefined) return defaultValue
  let time: number
  try {
    time = Duration.toMillis(Duration.fromInputUnsafe(value))
  } catch {
    throw invalid(argument, "it is not a duration")
  }
  if (time >= minimum) return time
  throw invalid(argument, `it must be at least ${minimum} ms`)
}

const flag = (argument: string, value: boolean | undefined, defaultValue: boolean): boolean => {
  if (value === undefined) return defaultValue
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

const readOptions = (fs: Algebra, options: LeafOptions): Settings => {
  const prefix = prefixOf(options.prefix)
  return {
    name: nameOf(fs, prefix, options.name),
    prefix,
    allowWrite: flag("allowWrite", options.allowWrite, true),
    allowDelete: flag("allowDelete", options.allowDelete, true),
    chunkSize: wholeNumber("chunkSize", options.chunkSize, 65_536, 1),
    streamingThreshold: wholeNumber("streamingThreshold", options.streamingThreshold, 1_048_576, 0),
    windowsNames: choice("names", options.names, ["posix", "windows"]) === "windows",
    concurrency: wholeNumber("concurrency", options.concurrency, 16, 1),
    timeoutMillis: millis("timeout", options.timeout, 30_000, 1),
    idleMillis: millis("idle", options.idle, 60_000, 1),
    // The grace is announced in the journal, which accepts only whole numbers.
    graceMillis: Math.min(Math.ceil(millis("grace", options.grace, defaultGraceMillis, 0)), Number.MAX_SAFE_INTEGER),
    resumesChanges: choice("resume", options.resume, ["reads", "all"]) === "all",
    extended: flag("extended", options.extended, false),
    limits: options.limits ?? Limits.standard,
    lockedRetries: wholeNumber("lockedRetries", options.lockedRetries, 5, 0)
  }
}

export const parseOptions = (fs: Algebra, options: LeafOptions): Settings | InvalidArgument => {
  try {
    return readOptions(fs, options)
  } catch (error) {
    if (error instanceof InvalidArgument) return error
    throw error
  }
}

/**
 * Returns the filesystem with these options applied. A filesystem that refuses links keeps refusing them. Without options, all of the
 * caller's own methods are kept except `copy`.
 */
export const applyOptions = (fs: Algebra, { followSymlinks, preservePermissions }: LeafOptions): Algebra => {
  const { rules } = fs.port
  const showsLinks = followSymlinks === false && rules?.symlinks !== "refuse" && rules?.symlinks !== "report"
  const configured = makeAlgebra({
    ...fs.port,
    rules: {
      ...rules,
      ...(showsLinks ? { symlinks: "report" as const } : {}),
      preservePermissions: preservePermissions ?? rules?.preservePermissions === true
    }
  })
  return showsLinks || preservePermissions !== undefined ? configured : { ...fs, port: configured.port, copy: configured.copy }
}
