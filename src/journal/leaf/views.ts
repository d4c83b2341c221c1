/**
 * How a leaf shows what it serves to a branch that follows links itself. The branch resolves them in the whole tree, of which this leaf may
 * serve a part only, so nothing is followed here: a link is refused, or stands for itself.
 */
import * as Effect from "effect/Effect"
import { make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import type { Backend, Links } from "../../port/Backend.ts"
import type { Efferent } from "../FileSystemEntry.ts"
import type { Serving } from "./model.ts"

export interface Views {
  /** Returns what carries the request out. */
  readonly of: (intent: Efferent) => Serving
}

const over = (self: Serving, port: Backend): Serving => ({ ...self, fs: makeAlgebra(port), caller: Caller.make(port) })

const refusing = (self: Serving): Serving =>
  over(self, { ...self.fs.port, rules: { ...self.fs.port.rules, symlinks: "refuse" } })

const leaving = (self: Serving): Serving => {
  const { links, rules } = self.fs.port
  const follow: Links["follow"] =
    rules?.symlinks === "refuse" ? () => Effect.fail({ _tag: "AccessDenied", why: "link" }) : links?.follow
  return { ...over(self, { ...self.fs.port, links: undefined }), isLeaving: true, links: links && { ...links, follow } }
}

/** Makes the views, each when it is first needed. A leaf of the thirteen has only its own. */
export const make = (self: Serving): Views => {
  let refuse: Serving | undefined
  let leave: Serving | undefined
  return {
    of: (intent) => {
      if (!self.settings.extended || intent.links === undefined) return self
      return intent.links === "refuse" ? (refuse ??= refusing(self)) : (leave ??= leaving(self))
    }
  }
}
