/** What is said of a content that is not there, or is another. */
import { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"

/** Bytes that a stream gives at a time. */
export const chunkSize = 65_536

const operation = "ContentStore.get"

export const missing = (ref: ContentRef): JournalError =>
  new JournalError({ operation, reason: "corrupt", detail: `there is no content ${ref.sha256}` })

export const damaged = (ref: ContentRef): JournalError =>
  new JournalError({ operation, reason: "corrupt", detail: `content ${ref.sha256} is not what its hash says` })
