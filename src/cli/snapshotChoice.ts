/**
 * How people name snapshots: by as much of an id as tells it from the others, by a tag that only one has, or as the latest. What was
 * kept only because something was put in its place is not the latest, or restoring twice would undo itself.
 */
import * as Effect from "effect/Effect"
import type { FilesystemSnapshot } from "../history/snapshots/value.ts"
import { Complaint, exitCodeOf, wrongUsage } from "./exit.ts"
import * as humanise from "./humanise.ts"
import { printableName } from "./printable.ts"
import type { CommandLine } from "./shell.ts"
import { lineFor, type Store } from "./snapshotStore.ts"

type All = ReadonlyArray<FilesystemSnapshot>

export const latest = "latest"

/** The tag of one that is taken before something is put in the place of what is there. */
export const safetyTag = (doing: "restoring" | "importing", what: string): string => `before ${doing} ${what}`

export const isSafety = ({ tag }: FilesystemSnapshot): boolean =>
  tag !== undefined && /^before (restoring|importing) /.test(tag)

/** As much of each id as tells it from all others, and no less than eight digits. */
export const shortIds = (all: All): ((snapshot: FilesystemSnapshot) => string) => {
  const ids = all.map(({ snapshotId }) => snapshotId).sort()
  let length = 8
  for (let i = 1; i < ids.length; i++) {
    let same = 0
    while (same < 36 && ids[i]![same] === ids[i - 1]![same]) same++
    length = Math.max(length, same + 1)
  }
  return ({ snapshotId }) => snapshotId.slice(0, length)
}

/** Those that the text may mean. `all` is in the order in which they were taken. */
export const candidates = (all: All, text: string): All => {
  if (text === latest) {
    const newest = all.findLast((snapshot) => !isSafety(snapshot)) ?? all.at(-1)
    return newest === undefined ? [] : [newest]
  }
  const tagged = all.filter(({ tag }) => tag === text)
  // A whole tag is more than the beginning of an id, which it may look like.
  if (tagged.length > 0 || text === "") return tagged
  return all.filter(({ snapshotId }) => snapshotId.startsWith(text.toLowerCase()))
}

/** For programs it is the error that the service itself would fail with. */
const unknown = (detail: string, hint: string): Complaint =>
  new Complaint({
    error: { _tag: "SnapshotError", operation: "find", reason: "unknown", detail },
    message: detail,
    hint,
    code: exitCodeOf("NotFound")
  })

const ambiguous = (all: All, found: All, text: string): Complaint => {
  const short = shortIds(all)
  const shown = found
    .slice(-5)
    .map(
      (snapshot) =>
        `${short(snapshot)}${snapshot.tag === undefined ? "" : ` (${snapshot.tag})`}, ${humanise.time(snapshot.createdAt)}`
    )
  const message = `"${text}" may be each of ${found.length} snapshots`
  const hint = `Say which: ${found.length > shown.length ? "…; " : ""}${shown.map(printableName).join("; ")}`
  return new Complaint({ error: { _tag: "UsageError" }, message, hint, code: wrongUsage })
}

/** Where no snapshot has been taken of this root. */
export const noSnapshots = (store: string | undefined) =>
  Effect.flatMap(lineFor(store), (line) => Effect.fail(nothingKept(line)))

const nothingKept = (line: CommandLine): Complaint =>
  unknown("there is no snapshot of this root yet", `Take one: ${line("snapshot")}`)

/** The one that is meant. `instead`: what to say where the text seems to have been meant as something else. */
export const choose = Effect.fnUntraced(function* <R = never>(
  { line, snapshots }: Store,
  text: string,
  instead?: Effect.Effect<string | undefined, never, R>
) {
  const all = yield* snapshots.list
  if (all.length === 0) return yield* nothingKept(line)
  const found = candidates(all, text)
  if (found.length > 1) return yield* ambiguous(all, found, text)
  if (found.length === 1) return found[0]!
  const hint = (instead === undefined ? undefined : yield* instead) ?? `See which there are: ${line("snapshots")}`
  return yield* unknown(`there is no snapshot "${text}"`, hint)
})
