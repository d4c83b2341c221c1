/** Mutants, which are filesystems with one defect each, and functions that make them. */
import * as Effect from "effect/Effect"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../../src/model/FsError.ts"
import { around, type Backend } from "../../../src/port/Backend.ts"
import type { Operations } from "../../../src/testing/MockFilesystem.ts"

export interface Mutant {
  readonly name: string
  readonly of: (self: Algebra) => Algebra
  /** True if the defect is that a call never ends. */
  readonly hangs?: boolean
}

export const hanging = (mutant: Mutant): Mutant => ({ ...mutant, hangs: true })

export type Operation = keyof Operations

export const streaming: ReadonlySet<string> = new Set(["walk", "globStream", "grepStream", "stream", "lines", "watch"])

export const call = (name: string, operation: Operation, f: (original: any, self: Algebra) => any): Mutant => ({
  name,
  of: (self) => ({ ...self, [operation]: f(self[operation], self) })
})

/** Makes a mutant that changes the effect or the stream of one operation. */
export const outcome = (
  name: string,
  operation: Operation,
  f: (result: any, self: Algebra, args: ReadonlyArray<any>) => any
): Mutant =>
  call(
    name,
    operation,
    (original, self) =>
      (...args: ReadonlyArray<any>) =>
        f(original(...args), self, args)
  )

/** Makes a mutant that changes the result of one operation. The result of a stream is the array of its elements. */
export const answer = (name: string, operation: Operation, f: (value: any, args: ReadonlyArray<any>) => any): Mutant =>
  outcome(name, operation, (result, _, args) =>
    streaming.has(operation)
      ? Stream.unwrap(Effect.map(Stream.runCollect(result), (all) => Stream.fromIterable(f(all, args))))
      : Effect.map(result, (value) => f(value, args))
  )

export const given = (name: string, operation: Operation, f: (args: ReadonlyArray<any>) => ReadonlyArray<any>): Mutant =>
  call(
    name,
    operation,
    (original) =>
      (...args: ReadonlyArray<any>) =>
        original(...f(args))
  )

const optionsAt: Partial<Record<Operation, number>> = {
  write: 2,
  writeBytes: 2,
  edit: 2,
  copy: 2,
  move: 2
}

export const option = (operation: Operation, key: string, value?: unknown): Mutant =>
  given(`${operation} treats ${key} as ${value === undefined ? "its default" : JSON.stringify(value)}`, operation, (args) => {
    const at = optionsAt[operation] ?? 1
    const out = [...args]
    while (out.length <= at) out.push(undefined)
    out[at] = { ...out[at], [key]: value }
    return out
  })

const everyOperation = (self: Algebra): ReadonlyArray<Operation> =>
  Object.entries(self).flatMap(([key, value]) => (typeof value === "function" ? [key as Operation] : []))

export const errors = (name: string, f: (error: any, self: Algebra) => any): Mutant => ({
  name,
  of: (self) => {
    const out: Record<string, unknown> = { ...self }
    for (const operation of everyOperation(self)) {
      const original = self[operation] as (...args: ReadonlyArray<unknown>) => any
      const told = (error: any): any => f(error, self)
      out[operation] = (...args: ReadonlyArray<unknown>) =>
        operation === "sink"
          ? Sink.mapError(original(...args), told)
          : streaming.has(operation)
            ? Stream.mapError(original(...args), told)
            : Effect.mapError(original(...args), told)
    }
    return out as unknown as Algebra
  }
})

/** Makes a mutant with one change of the port. It has no accelerations, because these would bypass the defect. */
export const port = (name: string, f: (self: Backend) => Partial<Backend>): Mutant => ({
  name,
  of: ({ port }) => make({ ...port, perform: undefined, explore: undefined, ...f(port) })
})

export const faults = (name: string, f: (fault: Fault) => Fault): Mutant => ({
  name,
  of: ({ port }) =>
    make(around(port, (_, next) => Effect.mapError(next, (error) => (isFault(error) ? f(error) : error)) as typeof next))
})

const isFault = (error: unknown): error is Fault => typeof error === "object" && error !== null && "_tag" in error

export const spelling = (name: string, f: (path: string) => string): Mutant => ({
  name,
  of: (self) => {
    const out: Record<string, unknown> = { ...self }
    for (const operation of everyOperation(self)) {
      const original = self[operation] as (...args: ReadonlyArray<unknown>) => any
      const read = (value: unknown): unknown => (typeof value === "string" ? f(value) : value)
      out[operation] = (first: unknown, ...rest: ReadonlyArray<unknown>) => {
        if (operation === "copy" || operation === "move") return original(read(first), read(rest[0]), ...rest.slice(1))
        if (operation.startsWith("gl") || operation.startsWith("gr")) return original(first, ...rest)
        return original(read(first), ...rest)
      }
    }
    return out as unknown as Algebra
  }
})
