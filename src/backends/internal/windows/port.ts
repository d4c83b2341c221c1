/**
 * The port over a directory of a Windows disk.
 *
 * There are no attributes to set: Windows keeps one bit of a mode, and the port must not claim to set others.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Fault } from "../../../model/FsError.ts"
import { root } from "../../../model/FsPath.ts"
import type { Backend, Rules } from "../../../port/Backend.ts"
import * as Request from "../../../port/Request.ts"
import { fromOptions, isReadOnly } from "../../../port/Rules.ts"
import * as Locks from "../../../runtime/locks.ts"
import type { WindowsHostOptions } from "../options.ts"
import { attempt } from "./attempt.ts"
import * as File from "./file.ts"
import * as Handles from "./handles.ts"
import * as Links from "./links.ts"
import * as Naming from "./naming.ts"
import type { Walker } from "./walk.ts"
import { append, replaceFile } from "./write.ts"

export const backend = (walker: Walker, options: WindowsHostOptions): Backend => {
  const rules: Rules = fromOptions(options)
  const maySweep = rules.permits?.("delete") !== false
  const handles = Handles.make(walker)
  const writer = { walker, handles, durability: options.durability ?? "none" }
  return {
    info: {
      name: "WindowsHost",
      root: options.root,
      caseSensitive: false,
      readOnly: isReadOnly(rules),
      confinement: "best-effort"
    },
    stat: (path) => attempt(() => File.stat(walker, path)),
    list: (path) => File.list(walker, path, maySweep),
    open: (path) => File.open(walker, handles, path),
    write: (path, content, mode, how) =>
      path === root
        ? Effect.fail<Fault>({ _tag: mode === "create" ? "AlreadyExists" : "NotAFile" })
        : mode === "append"
          ? append(writer, path, content, how?.commit)
          : replaceFile(writer, path, content, mode, how?.commit),
    makeDirectory: (path) => Naming.makeDirectory(walker, path),
    remove: (path) => Naming.remove(walker, handles, path),
    rename: (from, to, { replace }) => Naming.rename(walker, handles, from, to, replace),
    links: {
      read: (path) => attempt(() => Links.readLink(walker, path)),
      relative: Links.relative(walker),
      make: (path, target) => attempt(() => Links.makeLink(walker, path, target))
    },
    rules,
    locks: Locks.make({ caseSensitive: false }),
    perform: Request.handlers({
      Read: ({ maxBytes, path }) => Effect.map(File.readSmall(walker, path, maxBytes), Option.fromUndefinedOr)
    })
  }
}
