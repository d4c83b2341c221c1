/** A minimal read-only backend over a map of files, with implied directories and optional faults. */
import * as Effect from "effect/Effect"
import type { FileStat, Kind } from "../../src/model/Entry.ts"
import type { Fault } from "../../src/model/FsError.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import type { Backend, Child } from "../../src/port/Backend.ts"

export const path = (text: string): FsPath.FsPath => text as FsPath.FsPath

const notFound: Fault = { _tag: "NotFound" }
const refuse = () => Effect.die(new Error("searches change nothing"))

/** Makes the backend. `links` are names of kind "symlink"; `faults` maps a path to the error of every access. */
export const mapBackend = (
  files: Readonly<Record<string, string | Uint8Array>>,
  options: {
    readonly caseSensitive?: boolean
    readonly links?: ReadonlyArray<string>
    readonly faults?: Readonly<Record<string, Fault>>
  } = {}
): Backend => {
  const { caseSensitive = true, faults = {}, links = [] } = options
  const encoder = new TextEncoder()
  const kinds = new Map<string, Kind>([[".", "directory"]])
  const contents = new Map<string, Uint8Array>()
  for (const name of [...Object.keys(files), ...links]) {
    for (let at = FsPath.parent(path(name)); at !== "."; at = FsPath.parent(at)) kinds.set(at, "directory")
    kinds.set(name, links.includes(name) ? "symlink" : "file")
    const content = files[name]
    if (content !== undefined) contents.set(name, typeof content === "string" ? encoder.encode(content) : content)
  }
  const statOf = (at: FsPath.FsPath): FileStat | undefined => {
    const kind = kinds.get(at)
    return kind === undefined
      ? undefined
      : { path: at, kind, isFile: kind === "file", isDirectory: kind === "directory", sizeBytes: contents.get(at)?.length ?? 0 }
  }
  return {
    info: { name: "map", root: "/", caseSensitive, readOnly: true, confinement: "virtual" },
    stat: (at) => Effect.sync(() => statOf(at)),
    list: (at) =>
      Effect.suspend(() => {
        if (faults[at] !== undefined) return Effect.fail(faults[at])
        if (kinds.get(at) !== "directory") return Effect.fail(notFound)
        const children: Array<Child> = []
        for (const [name, kind] of kinds) {
          if (name !== "." && FsPath.parent(path(name)) === at) {
            children.push({ name: FsPath.name(path(name)), kind, addressable: true })
          }
        }
        return Effect.succeed(children.reverse())
      }),
    open: (at) =>
      Effect.suspend(() => {
        const bytes = contents.get(at)
        if (faults[at] !== undefined) return Effect.fail(faults[at])
        if (bytes === undefined) return Effect.fail(notFound)
        return Effect.succeed({
          stat: statOf(at)!,
          read: (offset: number, length: number) => Effect.succeed(bytes.slice(offset, offset + length))
        })
      }),
    write: refuse,
    makeDirectory: refuse,
    remove: refuse,
    rename: refuse
  }
}
