/**
 * Views of a leaf's filesystem for a branch that follows links itself. The branch resolves links in the whole tree, and this leaf may serve
 * only a part of it. So the leaf follows no link: it refuses a link, or treats it as an entry of its own.
 */
import * as Effect from "effect/Effect"
import { make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import type { Backend, Links } from "../../port/Backend.ts"
import type { Efferent } from "../FileSystemEntry.ts"
import type { LeafContext } from "./model.ts"

export interface Views {
  readonly viewFor: (intent: Efferent) => LeafContext
}

const contextOver = (self: LeafContext, port: Backend): LeafContext => ({
  ...self,
  fs: makeAlgebra(port),
  caller: Caller.make(port)
})

const refuseLinks = (self: LeafContext): LeafContext =>
  contextOver(self, { ...self.fs.port, rules: { ...self.fs.port.rules, symlinks: "refuse" } })

const showLinks = (self: LeafContext): LeafContext => {
  const { links, rules } = self.fs.port
  const follow: Links["follow"] =
    rules?.symlinks === "refuse" ? () => Effect.fail({ _tag: "AccessDenied", why: "link" }) : links?.follow
  return { ...contextOver(self, { ...self.fs.port, links: undefined }), showsLinks: true, links: links && { ...links, follow } }
}

/** Returns the views, each created on first use. A leaf that is not extended has only its plain view. */
export const make = (self: LeafContext): Views => {
  let refusingView: LeafContext | undefined
  let leavingView: LeafContext | undefined
  return {
    viewFor: (intent) => {
      if (!self.settings.extended || intent.links === undefined) return self
      return intent.links === "refuse" ? (refusingView ??= refuseLinks(self)) : (leavingView ??= showLinks(self))
    }
  }
}
