/**
 * How people and models name snapshots: by as much of an id as tells it from the others, by a tag that only one has, or as the latest.
 * What was kept only because something was put in its place is not the latest, or restoring twice would undo itself.
 */
import type { FilesystemSnapshot } from "./value.ts"

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
