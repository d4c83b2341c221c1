/**
 * Encodes a snapshot as a commit without parents. `decodeCommit` accepts only this one form, so it rejects commits of
 * other programs.
 */
import { isUtf8 } from "../../runtime/node.ts"
import * as Result from "effect/Result"
import { storeFault, type StoreFault } from "../errors.ts"

export interface Commit {
  readonly tree: string
  /** Whole milliseconds since 1970. */
  readonly createdAt: number
  /** Any text without NUL, because git ends a message at NUL. */
  readonly message: string
}

const author = "fs-algebra <fs-algebra@localhost>"

/** The header with the milliseconds. Git stores whole seconds, and it keeps and ignores unknown headers. */
const millisecondsHeader = "fs-algebra-milliseconds"

const commitPattern = new RegExp(
  `^tree ([0-9a-f]{40})\nauthor ${author} (\\d{1,13}) \\+0000\ncommitter ${author} \\2 \\+0000\n(?:${millisecondsHeader} (\\d{3})\n)?\n`
)

export const encodeCommit = ({ createdAt, message, tree }: Commit): Buffer => {
  const time = Math.max(0, Math.floor(createdAt))
  const rest = time % 1000
  const signature = `${author} ${Math.floor(time / 1000)} +0000`
  const millisecondsLine = rest === 0 ? "" : `${millisecondsHeader} ${String(rest).padStart(3, "0")}\n`
  return Buffer.from(
    `tree ${tree}\nauthor ${signature}\ncommitter ${signature}\n${millisecondsLine}\n${message.replaceAll("\0", "\ufffd")}`
  )
}

const corrupt: Result.Result<never, StoreFault> = Result.fail(storeFault("corrupt", "it is no snapshot of this library"))

export const decodeCommit = (body: Buffer): Result.Result<Commit, StoreFault> => {
  if (!isUtf8(body) || body.includes(0)) return corrupt
  const text = body.toString()
  const match = commitPattern.exec(text)
  if (match === null) return corrupt
  const [header, tree, seconds, milliseconds = "0"] = match
  const createdAt = Number(seconds) * 1000 + Number(milliseconds)
  return createdAt > 8.64e15 ? corrupt : Result.succeed({ tree: tree!, createdAt, message: text.slice(header.length) })
}
