import * as DateTime from "effect/DateTime"
import type { FilesystemMeta, SessionInfo, SliceInfo } from "../model.ts"
import type { SavedSession } from "../../workspace/session/saved.ts"
import type { Archive } from "./opened.ts"

export const sessionsOf = (sessions: ReadonlyArray<SavedSession>): ReadonlyArray<SessionInfo> =>
  sessions.map(({ createdAt, parentId, sessionId, slices, tags }) => ({
    session_id: sessionId,
    parent_id: parentId ?? null,
    created_at: DateTime.formatIso(createdAt),
    tags,
    slices: slices.length,
    items: slices.reduce((sum, { items }) => sum + items.length, 0)
  }))

export const slicesOf = (sessions: ReadonlyArray<SavedSession>): ReadonlyArray<SliceInfo> =>
  sessions.flatMap(({ sessionId, slices }) =>
    slices.map(({ items, name, policy }) => ({ session_id: sessionId, name, policy, items: items.length }))
  )

export interface Slice extends SliceInfo {
  readonly all: ReadonlyArray<unknown>
}

export const sliceOf = (
  sessions: ReadonlyArray<SavedSession>,
  name: string,
  session: string | undefined
): Slice | undefined => {
  for (const { sessionId, slices } of sessions) {
    if (session !== undefined && session !== sessionId) continue
    const found = slices.find((slice) => slice.name === name)
    if (found !== undefined) {
      return { session_id: sessionId, name, policy: found.policy, items: found.items.length, all: found.items }
    }
  }
  return undefined
}

export const manifestOf = ({ bytes, manifest }: Archive): FilesystemMeta => ({
  name: "Archive",
  created_at: DateTime.formatIso(manifest.createdAt),
  file_count: manifest.fileCount,
  total_bytes: manifest.totalBytes,
  archive_bytes: bytes,
  case_sensitive: true
})
