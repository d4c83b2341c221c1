/** Nothing is changed that was not looked at: what a model believes to be in a file is what it has read, and what is there still. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { Conflict } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { conflicting, shown } from "../advice.ts"
import { listed } from "../changedLines.ts"
import { type Refused, refused, type Touch } from "../definition.ts"
import { type Invocation, layer, type Policy } from "./core.ts"
import { guarded } from "./guarded.ts"

/** What it brings back has been kept, and what it replaces is kept too. */
const isOfThePast = ({ past }: Pick<Invocation, "past">): boolean => past === "restores"

/** A call that cannot replace what is there says so itself, better than could be said here. */
const onlyCreates = ({ params, tool }: Invocation, { access }: Touch): boolean => {
  if (access !== "write") return false
  if (tool === "mkdir") return true
  if (tool === "move" || tool === "copy") return params["overwrite"] !== true
  return tool === "write_file" && (params["mode"] ?? "create") === "create"
}

type Finding = "free" | "unread" | Refused

const finding = Effect.fnUntraced(function* (invocation: Invocation, touch: Touch): Effect.fn.Return<Finding> {
  const { memory, tool, view } = invocation
  const { access, path } = touch
  if (access === "read" || path === FsPath.root || onlyCreates(invocation, touch)) return "free"
  const stat = yield* Effect.orElseSucceed(view.stat(path), () => undefined)
  if (stat === undefined || !stat.isFile || (stat.isSymlink === true && access === "delete")) return "free"
  const expected = memory.seen(path)
  if (expected === undefined) return "unread"
  const actual = yield* Effect.orElseSucceed(view.version(path), () => expected)
  if (actual === expected) return "free"
  const failure = new Conflict({ operation: tool, path, expected, actual })
  const { advice, happened } = yield* conflicting(failure, { memory, filesystem: view })
  return refused(happened, advice)
})

const unread = (paths: ReadonlyArray<string>): Refused => {
  const names = listed([...new Set(paths)].map(shown), "and")
  const [have, them] = paths.length === 1 ? ["has", "it"] : ["have", "them"]
  return refused(
    `${names} ${have} not been read in this session, and nothing was changed.`,
    `Read ${them} with read_file first, then do this again.`
  )
}

const policy: Policy = {
  name: "readBeforeWrite",
  guard: (self, memory, tool) => (isOfThePast(tool) ? self : guarded(self, memory, tool.does !== "reads")),
  before: (invocation) =>
    Effect.gen(function* () {
      if (!invocation.mutates || isOfThePast(invocation)) return
      const paths: Array<string> = []
      for (const touch of invocation.touches) {
        const found = yield* finding(invocation, touch)
        if (found === "unread") paths.push(touch.path)
        else if (found !== "free") return yield* Effect.fail(found)
      }
      if (paths.length > 0) yield* Effect.fail(unread(paths))
    })
}

/**
 * A file that is there can be overwritten, edited, removed or moved only after `read_file` has succeeded on the same path in the same
 * session, and only while it still is what was read. New files are free, and what the session writes itself counts as read. Removing
 * a directory needs no reading of what is in it.
 *
 * @since 0.1.0
 */
export const readBeforeWrite: Layer.Layer<never> = layer(policy)
