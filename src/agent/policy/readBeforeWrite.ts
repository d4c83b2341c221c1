import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { withExclusiveLock } from "../../history/replace.ts"
import { Conflict } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { describeConflict, quotePath } from "../advice.ts"
import { listed } from "../../model/words.ts"
import { type Refused, refused, type Touch } from "../definition.ts"
import { plural } from "../text/words.ts"
import * as Result from "../ToolResult.ts"
import { type Invocation, layer, type Policy } from "./core.ts"
import { guardVersions } from "./guarded.ts"
import { maxJudgedEntries, unreadBelow } from "./unread.ts"

/** Tests whether the call restores a snapshot; the files that it replaces are kept. */
const isRestore = ({ past }: Pick<Invocation, "past">): boolean => past === "restores"

/** Tests whether the call cannot replace an existing file. The tool's own error is then better than a refusal here. */
const onlyCreates = ({ params, tool }: Invocation, { access }: Touch): boolean => {
  if (access !== "write") return false
  if (tool === "mkdir") return true
  if (tool === "move" || tool === "copy") return params["overwrite"] !== true
  return tool === "write_file" && (params["mode"] ?? "create") === "create"
}

type Finding = "free" | "unread" | Refused

const refuseTooMany = (path: string): Refused =>
  refused(
    `${quotePath(path)} holds more than ${maxJudgedEntries.toLocaleString("en")} entries, too many to tell whether each file was read, and nothing was changed.`,
    "Take smaller directories below it one by one, or ask the user to do it."
  )

const judgeDirectory = (invocation: Invocation, path: FsPath.FsPath): Effect.Effect<Finding> =>
  Effect.map(unreadBelow(invocation, path), (unread): Finding => {
    if (unread === "too many") return refuseTooMany(path)
    const { count, named } = unread
    if (count === 0) return "free"
    const rest = count - named.length
    const others = rest === 0 ? [] : [named.length === 0 ? `${rest} that cannot be shown` : plural(rest, "other")]
    return refused(
      `${quotePath(path)} holds files not read in this session as they are now: ${listed([...named.map(quotePath), ...others])}. Nothing was changed.`,
      "Read each with read_file first, then do this again; or ask the user to do it."
    )
  })

const judgeTouch = Effect.fnUntraced(function* (invocation: Invocation, touch: Touch): Effect.fn.Return<Finding> {
  const { memory, tool, view } = invocation
  const { access, path } = touch
  if (access === "read" || path === FsPath.root || onlyCreates(invocation, touch)) return "free"
  const stat = yield* Effect.orElseSucceed(view.stat(path), () => undefined)
  if (stat === undefined || (stat.isSymlink === true && access === "delete")) return "free"
  if (stat.isDirectory && access === "delete") return yield* judgeDirectory(invocation, path)
  if (!stat.isFile) return "free"
  const expected = memory.seen(path)
  if (expected === undefined) return "unread"
  const actual = yield* Effect.orElseSucceed(view.version(path), () => expected)
  if (actual === expected) return "free"
  const failure = new Conflict({ operation: tool, path, expected, actual })
  const { advice, happened } = yield* describeConflict(failure, { memory, filesystem: view })
  return refused(happened, advice)
})

const unread = (paths: ReadonlyArray<string>): Refused => {
  const names = listed([...new Set(paths)].map(quotePath))
  const [have, them] = paths.length === 1 ? ["has", "it"] : ["have", "them"]
  return refused(
    `${names} ${have} not been read in this session, and nothing was changed.`,
    `Read ${them} with read_file first, then do this again.`
  )
}

const checkTouches = Effect.fnUntraced(function* (invocation: Invocation): Effect.fn.Return<void, Refused> {
  const paths: Array<string> = []
  for (const touch of invocation.touches) {
    const found = yield* judgeTouch(invocation, touch)
    if (found === "unread") paths.push(touch.path)
    else if (found !== "free") return yield* Effect.fail(found)
  }
  if (paths.length > 0) yield* Effect.fail(unread(paths))
})

const mustCheck = (invocation: Invocation): boolean => invocation.mutates && !isRestore(invocation)

const policy: Policy = {
  name: "readBeforeWrite",
  guard: (self, memory, tool) => (isRestore(tool) ? self : guardVersions(self, memory, tool.does !== "reads")),
  before: (invocation) => (mustCheck(invocation) ? checkTouches(invocation) : Effect.void),
  // The removal of a file compares its version. A directory has none, so it is judged again under the lock, when no other call
  // can change it.
  around: (invocation, call) =>
    mustCheck(invocation) && invocation.touches.some(({ access }) => access === "delete")
      ? withExclusiveLock(
          invocation.filesystem.port,
          Effect.matchEffect(checkTouches(invocation), {
            onFailure: ({ advice, happened }) => Effect.succeed(Result.error(`${happened} ${advice}`)),
            onSuccess: () => call
          })
        )
      : call
}

/**
 * Allows a file to be overwritten, edited, removed or moved only after `read_file` has succeeded on its path in the same
 * session. The file must still be at that version. New files are free, and files that the session writes count as read.
 *
 * A directory can be removed or moved only if the same holds for every file below it. A file that the session cannot see or
 * read counts as not read. A directory with more than 10,000 entries is refused.
 *
 * @category policies
 * @since 0.1.0
 */
export const readBeforeWrite: Layer.Layer<never> = layer(policy)
