/** Functions to read, change and forge the records of transactions, and to open a root with such records. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { Recovery, type TransactionOutcome } from "../../src/port/hostRoots.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import * as Transactions from "../../src/runtime/transactions.ts"

/** Returns the identity of a dead process: our pid with another start time. */
export const dead = (): string => Identity.self().replace(/[^-]+$/, "1")

export const recordsDirectory = (): string => {
  const directory = Transactions.directory()!
  Fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}

export interface Kept {
  readonly state: string
  readonly header: { readonly owner: string; readonly token: string; readonly roots: ReadonlyArray<Transactions.Root> }
  readonly body: string
}

/** Reads a record, if it is still there: concurrent tests keep and remove records in the same directory. */
const read = (name: string): Kept | undefined => {
  const [, state] = /^[0-9a-f]{18}\.(preparing|forward|back|done)$/.exec(name) ?? []
  if (state === undefined) return undefined
  try {
    const [header, ...body] = Fs.readFileSync(join(recordsDirectory(), name), "utf8").split("\n")
    return { state, header: JSON.parse(header!) as Kept["header"], body: body.join("\n") }
  } catch {
    return undefined
  }
}

/** Returns the records of transactions in this root, without locks. */
export const recordsOf = (root: string): ReadonlyArray<Kept> => {
  const path = Fs.existsSync(root) ? Fs.realpathSync(root) : root
  return Fs.readdirSync(recordsDirectory()).flatMap((name) => {
    const kept = read(name)
    return kept !== undefined && kept.header.roots.some((each) => each.path === path) ? [kept] : []
  })
}

let count = 0

/** Writes a record as if a dead process had made it for this directory. */
export const write = (root: string, { body, header, state }: Kept, owner = dead()): string => {
  const id = (++count)
    .toString(16)
    .padStart(18, "0")
    .replace(/^000000/, process.pid.toString(16).padStart(6, "0"))
  const [draft, file] = [join(recordsDirectory(), `${id}.draft`), join(recordsDirectory(), `${id}.${state}`)]
  const roots = [Transactions.rootAt(Fs.realpathSync(root))!]
  // Opening any root moves incomplete records aside, so the record gets its name only when complete.
  Fs.writeFileSync(draft, `${JSON.stringify({ ...header, owner, roots })}\n${body}`, { mode: 0o600 })
  Fs.renameSync(draft, file)
  return file
}

/** Opens the root and returns the reports about unfinished transactions. */
export const openingWith = <E>(
  open: Effect.Effect<Backend, E, Scope.Scope>,
  permits: Recovery["permits"] = () => true
): Effect.Effect<ReadonlyArray<TransactionOutcome>, E> =>
  Effect.suspend(() => {
    const said: Array<TransactionOutcome> = []
    return Effect.scoped(open).pipe(
      Effect.provideService(Recovery, { permits, report: (settled) => Effect.sync(() => void said.push(settled)) }),
      Effect.map(() => said)
    )
  })

export const opening = (root: string, permits?: Recovery["permits"]) => openingWith(PosixHost.make({ root }), permits)

/** Opens the root and returns the outcome of its only unfinished transaction. */
export const recovered = (root: string) =>
  Effect.map(opening(root), (said): TransactionOutcome["outcome"] | "none" => said[0]?.outcome ?? "none")
