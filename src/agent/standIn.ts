/** Stands in for the filesystem of a tool that runs without one; every operation fails with Unavailable and says why. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../filesystem/Filesystem.ts"
import type { Fault } from "../model/FsError.ts"

export const standIn = (detail: string): Algebra => {
  const fault: Fault = { _tag: "Unavailable", detail }
  const gone = () => Effect.fail(fault)
  return make({
    info: { name: "none", root: "", caseSensitive: true, readOnly: false, confinement: "virtual" },
    stat: gone,
    list: gone,
    open: gone,
    write: gone,
    makeDirectory: gone,
    remove: gone,
    rename: gone,
    links: { read: gone, make: gone },
    attributes: { set: gone },
    watch: () => Stream.fail(fault)
  })
}
