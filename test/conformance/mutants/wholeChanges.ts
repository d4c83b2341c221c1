import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { Handlers } from "../../../src/port/Request.ts"
import { type Changes, wholly } from "../../engine/wholly.ts"
import type { Mutant } from "./mutant.ts"

const whole = (name: string, change: (right: Changes) => Handlers): Mutant => ({
  name: `${name}, in one step`,
  of: ({ port }) => make(wholly(port, change))
})

export const wholeChangeMutants: ReadonlyArray<Mutant> = [
  whole("a write or sink ignores its precondition", ({ Write }) => ({
    Write: (request) => Write({ ...request, plan: { ...request.plan, ifMatch: undefined } })
  })),
  whole("a write or sink in mode create replaces", ({ Write }) => ({
    Write: (request) =>
      Write({ ...request, plan: { ...request.plan, mode: request.plan.mode === "create" ? "overwrite" : request.plan.mode } })
  })),
  whole("a write or sink makes parents without createParents", ({ Write }) => ({
    Write: (request) => Write({ ...request, plan: { ...request.plan, createParents: true } })
  })),
  whole("a sink does not read its stream", ({ Write }) => ({
    Write: (request) => Write(request.bytes instanceof Uint8Array ? request : { ...request, bytes: new Uint8Array(0) })
  })),
  whole("an edit ignores its precondition", ({ Edit }) => ({
    Edit: (request) => Edit({ ...request, plan: { ...request.plan, ifMatch: undefined } })
  })),
  whole("an edit returns no version", ({ Edit }) => ({
    Edit: (request) => Edit({ ...request, plan: { ...request.plan, version: false } })
  })),
  whole("a delete of a missing entry succeeds", ({ Remove }) => ({
    Remove: (request) => Remove({ ...request, plan: { ...request.plan, missing: "ignore" } })
  })),
  whole("a delete removes the entries below a directory too", ({ Remove }) => ({
    Remove: (request) => Remove({ ...request, plan: { ...request.plan, recursive: true } })
  })),
  whole("a delete ignores its precondition", ({ Remove }) => ({
    Remove: (request) => Remove({ ...request, plan: { ...request.plan, ifMatch: undefined } })
  })),
  whole("a mkdir accepts an existing entry", ({ MakeDirectory }) => ({
    MakeDirectory: (request) => MakeDirectory({ ...request, plan: { ...request.plan, existOk: true } })
  })),
  whole("a mkdir makes parents without the option parents", ({ MakeDirectory }) => ({
    MakeDirectory: (request) => MakeDirectory({ ...request, plan: { ...request.plan, parents: true } })
  })),
  whole("a move replaces without overwrite", ({ Move }) => ({
    Move: (request) => Move({ ...request, plan: { ...request.plan, overwrite: true } })
  })),
  whole("a move returns wrong counts", ({ Move }) => ({
    Move: (request) =>
      Effect.map(
        Move(request),
        Option.map(() => ({ files: 0, directories: 0, bytes: 0 }))
      )
  }))
]
