import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { withResolvedLock, mkdir, withParents } from "../../engine/directories.ts"
import { remove } from "../../engine/remove.ts"
import { leadsOutside, placeFault, resolve, resolveLink } from "../../engine/resolve.ts"
import * as Transfer from "../../engine/transfer.ts"
import type { TransferResult } from "../../model/Entry.ts"
import { type Fault, located, shownPath, type TransferError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { relativeTarget } from "../../port/absoluteLinks.ts"
import type { Algebra } from "../Filesystem.ts"
import {
  type Action,
  type Caller,
  createActions,
  deleteActions,
  invalidArgument,
  isWholeNumber,
  moveActions,
  notFound,
  readActions,
  readOnly,
  errorTags,
  unsupported,
  writeActions
} from "./call.ts"
import { checkPrecondition } from "./writing.ts"

const rootDeniedFault: Fault = { _tag: "AccessDenied", why: "root" }
const alreadyExistsFault: Fault = { _tag: "AlreadyExists" }
const changedMeanwhileFault: Fault = { _tag: "IoError", code: "ECHANGED", detail: "what has this name keeps changing" }
const escapeFault: Fault = { _tag: "AccessDenied", why: "escape" }

const checkTarget = (target: string): Fault | undefined =>
  typeof target !== "string" || target === "" || (FsPath.unfit(target) ?? FsPath.uncreatable(target)) !== undefined
    ? invalidArgument(
        "target",
        "it must be a path, without control characters, lone surrogates and names kept for temporary files"
      )
    : undefined

export const nameOperations = (
  self: Caller
): Pick<Algebra, "delete" | "mkdir" | "copy" | "move" | "readLink" | "symlink" | "setAttributes"> => {
  const { call, isPermitted: may, parse, port, run } = self

  const transfer = (
    operation: "copy" | "move",
    from: string,
    to: string,
    actions: ReadonlyArray<Action>,
    body: (source: FsPath.FsPath, target: FsPath.FsPath) => Effect.Effect<TransferResult, Fault>
  ) =>
    run<TransferResult, TransferError>(operation, from, errorTags.transfer, (limits) => {
      for (const action of actions) if (!may(action)) return Effect.fail(readOnly)
      const source = parse(from, limits)
      if (typeof source !== "string") return Effect.fail(located(source, shownPath(from)))
      const target = parse(to, limits)
      if (typeof target !== "string") return Effect.fail(located(target, shownPath(to)))
      const kept = FsPath.uncreatable(target)
      if (kept !== undefined) return Effect.fail(located(kept, shownPath(to)))
      if (operation === "move" && !may("delete", source)) return Effect.fail(located(readOnly, from))
      if (!may("write", target)) return Effect.fail(located(readOnly, to))
      if (operation === "move" && source === FsPath.root) return Effect.fail(located(rootDeniedFault, from))
      const fault = Transfer.checkNames(port, operation, source, target)
      if (fault !== undefined) return Effect.fail(located(fault, to))
      // Report the caller's own spelling if the fault concerns one of the two ends.
      return Effect.mapError(body(source, target), (fault) =>
        fault["path"] === source ? { ...fault, path: from } : fault["path"] === target ? { ...fault, path: to } : fault
      )
    })

  return {
    delete: (input, options) =>
      call("delete", input, errorTags.delete, deleteActions, (path) => {
        const fault = checkPrecondition(options)
        if (fault !== undefined) return Effect.fail(fault)
        return remove(port, path, {
          recursive: options?.recursive === true,
          missing: options?.missing === "ignore" ? "ignore" : "fail",
          ifMatch: options?.ifMatch
        })
      }),
    mkdir: (input, options) =>
      call("mkdir", input, errorTags.mkdir, createActions, (path) =>
        mkdir(port, path, { parents: options?.parents !== false, existOk: options?.existOk !== false })
      ),
    copy: (from, to, options) =>
      transfer("copy", from, to, writeActions, (source, target) =>
        Transfer.copy(port, source, target, options?.overwrite === true)
      ),
    move: (from, to, options) =>
      transfer("move", from, to, moveActions, (source, target) =>
        Transfer.move(port, source, target, options?.overwrite === true)
      ),
    readLink: (input) =>
      call("readLink", input, errorTags.attributes, readActions, (path) => {
        const links = port.links
        if (links === undefined) return Effect.fail(unsupported("symbolic links"))
        return Effect.flatMap(resolveLink(port, path), ({ path: at, stat }) =>
          stat === undefined
            ? Effect.fail(notFound)
            : stat.kind === "symlink"
              ? links.read(at)
              : Effect.fail(invalidArgument("path", "it is not a symbolic link"))
        )
      }),
    symlink: (input, target) =>
      call("symlink", input, errorTags.link, createActions, (path) => {
        const fault = checkTarget(target)
        if (fault !== undefined) return Effect.fail(fault)
        const links = port.links
        if (links === undefined) return Effect.fail(unsupported("symbolic links"))
        return withResolvedLock(port, path, resolveLink(port, path), (found): Effect.Effect<void, Fault> => {
          if (found.stat !== undefined) return Effect.fail(alreadyExistsFault)
          const fault = placeFault(found)
          if (fault !== undefined) return Effect.fail(fault)
          if (leadsOutside(FsPath.parent(found.path), relativeTarget(links, found.path, target)))
            return Effect.fail(escapeFault)
          return withParents<void, never, never>(port, found.path, links.make(found.path, target))
        })
      }),
    setAttributes: (input, attributes) =>
      call("setAttributes", input, errorTags.attributes, writeActions, (path) => {
        const { mode, modifiedAt } = attributes ?? {}
        if (mode !== undefined && !(isWholeNumber(mode, 0) && mode <= 0o777)) {
          return Effect.fail(invalidArgument("mode", "it must be permission bits, at most 0o777"))
        }
        if (modifiedAt !== undefined && !DateTime.isDateTime(modifiedAt)) {
          return Effect.fail(invalidArgument("modifiedAt", "it must be a DateTime"))
        }
        const attributesPort = port.attributes
        if (attributesPort === undefined) return Effect.fail(unsupported("attributes"))
        const values = { mode, modifiedAt: modifiedAt === undefined ? undefined : DateTime.toUtc(modifiedAt) }
        const set = withResolvedLock(port, path, resolve(port, path), ({ path: at, stat }) =>
          stat === undefined
            ? Effect.fail(notFound)
            : Effect.mapError(attributesPort.set(at, values), (fault) =>
                // The values are valid, so the path must have become a symlink meanwhile.
                fault._tag === "InvalidArgument" && stat.kind !== "symlink" ? changedMeanwhileFault : fault
              )
        )
        return Effect.retry(set, { times: 8, while: (fault) => fault["code"] === changedMeanwhileFault["code"] })
      })
  }
}
