/** A model of the port's contract as a map from paths to entries, and random programs that run on model and backend. */
import { assert } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Fault } from "../../../src/model/FsError.ts"
import { fold, type FsPath, name, parent } from "../../../src/model/FsPath.ts"
import type { Backend } from "../../../src/port/Backend.ts"

const at = (path: string) => path as FsPath
const textOf = (port: Backend, path: string) =>
  Effect.scoped(
    Effect.flatMap(port.open(at(path)), (handle) =>
      Effect.map(handle.read(0, handle.stat.sizeBytes), (bytes) => new TextDecoder().decode(bytes))
    )
  )

type Thing =
  | { readonly kind: "file"; readonly text: string }
  | { readonly kind: "directory" }
  | { readonly kind: "symlink"; readonly text: string }
/** The entries by path; keys are folded where case is ignored. */
export class Model {
  readonly folds: boolean
  things = new Map<string, { readonly name: string; readonly thing: Thing }>([
    [".", { name: "", thing: { kind: "directory" } }]
  ])
  constructor(folds: boolean) {
    this.folds = folds
  }
  key(path: string): string {
    return this.folds ? fold(path) : path
  }
  at(path: string): Thing | undefined {
    return this.things.get(this.key(path))?.thing
  }
  set(path: string, thing: Thing): undefined {
    const name_ = this.things.get(this.key(path))?.name ?? name(at(path))
    this.things.set(this.key(path), { name: name_, thing })
  }
  parentFault(path: string): Fault["_tag"] | undefined {
    for (let up = parent(at(path)); ; up = parent(up)) {
      const thing = this.at(up)
      if (thing === undefined) continue
      if (thing.kind !== "directory") return "NotADirectory"
      return up === parent(at(path)) ? undefined : "NotFound"
    }
  }
  below(path: string): ReadonlyArray<string> {
    return [...this.things.keys()].filter((key) => key !== "." && key.startsWith(`${this.key(path)}/`))
  }
  add(path: string, thing: Thing): Fault["_tag"] | undefined {
    return this.parentFault(path) ?? (this.at(path) === undefined ? this.set(path, thing) : "AlreadyExists")
  }
  write(path: string, text: string, mode: "create" | "replace" | "append"): Fault["_tag"] | undefined {
    const found = this.at(path)
    if (found === undefined || mode === "create") return this.add(path, { kind: "file", text })
    if (found.kind !== "file") return "NotAFile"
    return this.set(path, { kind: "file", text: mode === "append" ? found.text + text : text })
  }
  remove(path: string): Fault["_tag"] | undefined {
    const found = this.at(path)
    if (found === undefined) return "NotFound"
    if (this.below(path).length > 0) return "DirectoryNotEmpty"
    this.things.delete(this.key(path))
    return undefined
  }
  rename(from: string, to: string, replace: boolean): Fault["_tag"] | undefined {
    const source = this.at(from)
    if (source === undefined) return "NotFound"
    const same = this.key(from) === this.key(to)
    if (source.kind === "directory" && this.key(to).startsWith(`${this.key(from)}/`)) return "InvalidArgument"
    const target = this.at(to)
    if (same) {
      if (this.things.get(this.key(from))!.name === name(at(to))) return replace ? undefined : "AlreadyExists"
    } else if (target === undefined) {
      const fault = this.parentFault(to)
      if (fault !== undefined) return fault
    } else {
      if (!replace) return "AlreadyExists"
      if (source.kind === "directory" && target.kind !== "directory") return "NotADirectory"
      if (source.kind !== "directory" && target.kind === "directory") return "NotAFile"
      if (this.below(to).length > 0) return "DirectoryNotEmpty"
    }
    // A replaced entry keeps the spelling of its name.
    const spelt = !same && target !== undefined ? this.things.get(this.key(to))!.name : name(at(to))
    const moved = [this.key(from), ...this.below(from)].map((key) => [key, this.things.get(key)!] as const)
    for (const [key] of moved) this.things.delete(key)
    for (const [key, entry] of moved) this.things.set(this.key(to) + key.slice(from.length), entry)
    this.things.set(this.key(to), { name: spelt, thing: source })
    return undefined
  }
}

const Path = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals(["a", "A", "b"])), { minLength: 1, maxLength: 3 }),
  (names) => names.join("/")
)
export const Step = Arbitrary.all({
  operation: Arbitrary.schema(
    Schema.Literals(["create", "replace", "append", "makeDirectory", "makeDirectory", "link", "remove", "rename", "rename"])
  ),
  path: Path,
  to: Path,
  text: Arbitrary.schema(Schema.Literals(["", "x", "yy"])),
  replace: Arbitrary.schema(Schema.Boolean)
})
export type Step = typeof Step extends Arbitrary.Arbitrary<infer A> ? A : never

export const runStep = (port: Backend, { operation, path, to, text, replace }: Step): Effect.Effect<unknown, Fault> => {
  switch (operation) {
    case "makeDirectory":
      return port.makeDirectory(at(path))
    case "link":
      return port.links!.make(at(path), text)
    case "remove":
      return port.remove(at(path))
    case "rename":
      return port.rename(at(path), at(to), { replace })
    default:
      return port.write<never, never>(at(path), new TextEncoder().encode(text), operation)
  }
}
export const modelStep = (model: Model, { operation, path, to, text, replace }: Step): Fault["_tag"] | undefined => {
  switch (operation) {
    case "makeDirectory":
      return model.add(path, { kind: "directory" })
    case "link":
      return model.add(path, { kind: "symlink", text })
    case "remove":
      return model.remove(path)
    case "rename":
      return model.rename(path, to, replace)
    default:
      return model.write(path, text, operation)
  }
}

export const show = (port: Backend) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const pending = ["."]
    while (pending.length > 0) {
      const here = pending.pop()!
      for (const child of yield* port.list(at(here))) {
        const path = here === "." ? child.name : `${here}/${child.name}`
        const stat = (yield* port.stat(at(path)))!
        assert.deepStrictEqual([stat.kind, stat.sizeBytes], [child.kind, child.sizeBytes!])
        if (child.kind === "directory") pending.push(path)
        const text =
          child.kind === "file" ? yield* textOf(port, path) : child.kind === "symlink" ? yield* port.links!.read(at(path)) : ""
        lines.push(`${path} ${child.kind} ${text}`)
      }
    }
    return lines.sort()
  })
export const showModel = (model: Model): ReadonlyArray<string> =>
  [...model.things]
    .filter(([key]) => key !== ".")
    .map(([key, { thing }]) => {
      const parts = key.split("/").map((_, i, all) => model.things.get(all.slice(0, i + 1).join("/"))!.name)
      return `${parts.join("/")} ${thing.kind} ${thing.kind === "directory" ? "" : thing.text}`
    })
    .sort()
