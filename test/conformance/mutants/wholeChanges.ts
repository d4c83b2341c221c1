import * as Effect from "effect/Effect"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { Accelerations } from "../../../src/port/Backend.ts"
import { type Changes, wholly } from "../../engine/wholly.ts"
import type { Mutant } from "./mutant.ts"

const whole = (name: string, change: (right: Changes) => Partial<Accelerations>): Mutant => ({
  name: `${name}, in one step`,
  of: ({ port }) => make(wholly(port, change))
})

export const wholeChangeMutants: ReadonlyArray<Mutant> = [
  whole("a write or sink looks at no precondition", ({ write }) => ({
    write: (path, bytes, plan, how) => write(path, bytes, { ...plan, ifMatch: undefined }, how)
  })),
  whole("a write or sink in mode create replaces", ({ write }) => ({
    write: (path, bytes, plan, how) =>
      write(path, bytes, { ...plan, mode: plan.mode === "create" ? "overwrite" : plan.mode }, how)
  })),
  whole("a write or sink makes parents that it may not", ({ write }) => ({
    write: (path, bytes, plan, how) => write(path, bytes, { ...plan, createParents: true }, how)
  })),
  whole("a sink leaves its stream where it is", ({ write }) => ({
    write: (path, bytes, plan, how) =>
      bytes instanceof Uint8Array ? write(path, bytes, plan, how) : write(path, new Uint8Array(0), plan, how)
  })),
  whole("an edit looks at no precondition", ({ edit }) => ({
    edit: (path, edits, plan) => edit(path, edits, { ...plan, ifMatch: undefined })
  })),
  whole("an edit tells no version", ({ edit }) => ({
    edit: (path, edits, plan) => edit(path, edits, { ...plan, version: false })
  })),
  whole("a delete of nothing is a success", ({ remove }) => ({
    remove: (path, plan) => remove(path, { ...plan, missing: "ignore" })
  })),
  whole("a delete takes what is below too", ({ remove }) => ({
    remove: (path, plan) => remove(path, { ...plan, recursive: true })
  })),
  whole("a delete looks at no precondition", ({ remove }) => ({
    remove: (path, plan) => remove(path, { ...plan, ifMatch: undefined })
  })),
  whole("a mkdir takes what is there", ({ makeDirectory }) => ({
    makeDirectory: (path, plan) => makeDirectory(path, { ...plan, existOk: true })
  })),
  whole("a mkdir makes parents that it may not", ({ makeDirectory }) => ({
    makeDirectory: (path, plan) => makeDirectory(path, { ...plan, parents: true })
  })),
  whole("a move replaces what it may not", ({ move }) => ({
    move: (from, to, plan) => move(from, to, { ...plan, overwrite: true })
  })),
  whole("a move counts nothing", ({ move }) => ({
    move: (from, to, plan) => Effect.map(move(from, to, plan), (moved) => moved && { files: 0, directories: 0, bytes: 0 })
  }))
]
