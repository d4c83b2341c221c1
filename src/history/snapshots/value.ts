/** The value that identifies a snapshot. The value does not contain the tree. Values from outside are not trusted. */
import * as Schema from "effect/Schema"

/**
 * A snapshot as a value, which a program can save and send. Another process with the same store can restore the snapshot.
 *
 * @since 0.1.0
 */
export class FilesystemSnapshot extends Schema.Class<FilesystemSnapshot>("fs-algebra/FilesystemSnapshot")({
  /** The id of the snapshot, a UUID. */
  snapshotId: Schema.String,
  createdAt: Schema.DateTimeUtc,
  /**
   * The reference to the stored tree: 40 hexadecimal digits for git, `mem-<n>` for memory, `zip:<sha256>` for archives,
   * `sha256:<hash>` for repositories.
   */
  commitRef: Schema.String,
  /** The root of the filesystem. For a directory on the host, its path without symlinks. */
  rootPath: Schema.String,
  /** The git directory of the store. */
  gitDir: Schema.optionalKey(Schema.String),
  tag: Schema.optionalKey(Schema.String)
}) {}

// A user names a snapshot by a short id, by a unique tag, or by the word `latest`. `latest` ignores safety snapshots, because
// otherwise a second restore would undo the first restore.

type All = ReadonlyArray<FilesystemSnapshot>

export const latest = "latest"

export const safetyTag = (action: "restoring" | "importing", subject: string): string => `before ${action} ${subject}`

export const isSafety = ({ tag }: { readonly tag?: string | undefined }): boolean =>
  tag !== undefined && /^before (restoring|importing) /.test(tag)

/** Returns a function that shortens ids to a unique prefix of at least eight digits. */
export const makeShortIds = (all: All): ((snapshot: FilesystemSnapshot) => string) => {
  const ids = all.map(({ snapshotId }) => snapshotId).sort()
  let length = 8
  for (let i = 1; i < ids.length; i++) {
    let same = 0
    while (same < 36 && ids[i]![same] === ids[i - 1]![same]) same++
    length = Math.max(length, same + 1)
  }
  return ({ snapshotId }) => snapshotId.slice(0, length)
}

/** Returns the snapshots that match the text. `all` must be in the order of creation. */
export const findCandidates = (all: All, text: string): All => {
  if (text === latest) {
    const newest = all.findLast((snapshot) => !isSafety(snapshot)) ?? all.at(-1)
    return newest === undefined ? [] : [newest]
  }
  const tagged = all.filter(({ tag }) => tag === text)
  // A tag that equals the text takes precedence over ids that begin with it.
  if (tagged.length > 0 || text === "") return tagged
  return all.filter(({ snapshotId }) => snapshotId.startsWith(text.toLowerCase()))
}
