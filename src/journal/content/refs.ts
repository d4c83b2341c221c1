import { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"

/** The size in bytes of the chunks that a stream emits. */
export const chunkSize = 65_536

const operation = "ContentStore.get"

export const missingContentError = (ref: ContentRef): JournalError =>
  new JournalError({ operation, reason: "corrupt", detail: `there is no content ${ref.sha256}` })

export const damagedContentError = (ref: ContentRef): JournalError =>
  new JournalError({ operation, reason: "corrupt", detail: `content ${ref.sha256} is not what its hash says` })
