/** Stands in for the filesystem of a tool that runs without one; every operation fails with Unavailable and says why. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../filesystem/Filesystem.ts"
import type { Fault } from "../model/FsError.ts"

export const unavailableFilesystem = (detail: string): Algebra => {
  const fault: Fault = { _tag: "Unavailable", detail }
  const failUnavailable = () => Effect.fail(fault)
  return make({
    info: { name: "none", root: "", caseSensitive: true, readOnly: false, confinement: "virtual" },
    stat: failUnavailable,
    list: failUnavailable,
    open: failUnavailable,
    write: failUnavailable,
    makeDirectory: failUnavailable,
    remove: failUnavailable,
    rename: failUnavailable,
    links: { read: failUnavailable, make: failUnavailable },
    attributes: { set: failUnavailable },
    watch: () => Stream.fail(fault)
  })
}
