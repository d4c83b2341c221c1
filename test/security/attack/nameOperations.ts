/** Operations that create, remove or replace the attacked names themselves. The attacker restores the names. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { FileStat } from "../../../src/model/Entry.ts"
import { bytes, p } from "../../backends/posixHost.ts"
import { fileText, type Ground, removeAttacked, slots } from "./ground.ts"
import { escaped, isThere, type Operation, type Outcome, slowly, type Verdict, wrong } from "./operations.ts"
import { performed } from "../../performed.ts"

const slot = (name: string, n: number): string => `${name}-${n % slots}`

/** Removes a directory that blocks the attacker's own renames. */
const cleared = ({ at, root }: Ground): void => {
  try {
    if (Fs.lstatSync(join(root, at)).isDirectory()) Fs.rmdirSync(join(root, at))
  } catch {
    // The entry is not a directory, or no longer one.
  }
}

const plain = (ground: Ground, n: number): void => {
  cleared(ground)
  Fs.writeFileSync(join(ground.root, slot("plain", n)), `plain ${n}`)
}

/** Truncates the spare file, because appends go to it over and over. */
const cutBack = (ground: Ground): void => {
  cleared(ground)
  if (Fs.statSync(join(ground.root, "spare")).size > 100_000) Fs.writeFileSync(join(ground.root, "spare"), fileText("x"))
}

const isClean = (_ground: Ground, _n: number, outcome: Outcome): Verdict | undefined => {
  if (outcome._tag === "Failure") return undefined
  const text = String(outcome.success)
  if (text.includes("ssssssss")) return escaped("answered the secret")
  return /^(?:x*(?:line \d+\n)*|line \d+\n|plain \d+)$/.test(text) ? undefined : wrong(`answered ${text.slice(0, 80)}`)
}

const gone = (ground: Ground, n: number): Verdict | undefined => {
  const path = join(ground.root, slot("landed", n))
  if (!isThere(path)) return undefined
  const stats = Fs.lstatSync(path)
  const text = stats.isFile() ? Fs.readFileSync(path, "utf8") : ""
  removeAttacked(path)
  return text.includes("ssssssss") ? escaped("brought the secret in") : undefined
}

const line = (n: number): string => `line ${n}\n`

export const onFile: ReadonlyArray<Operation> = [
  {
    name: "stat of a file",
    run: ({ port }, { at }) => port.stat(p(at)),
    judge: (_ground, _n, outcome) => {
      const stat = outcome._tag === "Success" ? (outcome.success as FileStat | undefined) : undefined
      return stat?.isFile === true && stat.sizeBytes === fileText("s").length
        ? escaped("answered the size of the secret")
        : undefined
    }
  },
  {
    name: "open and read of a file",
    run: ({ port }, { at }) =>
      Effect.scoped(
        Effect.flatMap(port.open(p(at)), ({ read, stat }) =>
          Effect.map(Effect.andThen(Effect.yieldNow, read(0, stat.sizeBytes)), (found) => Buffer.from(found).toString())
        )
      ),
    judge: isClean
  },
  {
    name: "read in one go of a file",
    run: ({ port }, { at }) =>
      Effect.map(performed(port, { _tag: "Read", path: p(at), maxBytes: 1_000_000 }), (whole) =>
        Buffer.from(whole?.bytes ?? []).toString()
      ),
    judge: isClean
  },
  {
    name: "links.read of a file",
    mayBlame: true,
    run: ({ port }, { at }) => port.links!.read(p(at)),
    judge: (_ground, _n, outcome) =>
      outcome._tag === "Failure" || /\/out\/file$|^file$/.test(String(outcome.success))
        ? undefined
        : wrong(`answered ${outcome.success}`)
  },
  {
    name: "write create of a file",
    prepare: cleared,
    run: ({ port }, { at }, n) => port.write<never, never>(p(at), bytes(line(n)), "create")
  },
  {
    name: "write replace of a file",
    prepare: cleared,
    run: ({ port }, { at }, n) => port.write<never, never>(p(at), bytes(line(n)), "replace")
  },
  {
    name: "write replace of a file with a stream",
    prepare: cleared,
    run: ({ port }, { at }, n) => port.write<never, never>(p(at), slowly(line(n)), "replace")
  },
  {
    name: "write append of a file",
    prepare: cutBack,
    run: ({ port }, { at }, n) => port.write<never, never>(p(at), bytes(line(n)), "append")
  },
  {
    name: "write append of a file with a stream",
    prepare: cutBack,
    run: ({ port }, { at }, n) => port.write<never, never>(p(at), slowly(line(n)), "append")
  },
  { name: "remove of a file", prepare: cleared, run: ({ port }, { at }) => port.remove(p(at)) },
  {
    name: "removeTree of a file",
    prepare: cleared,
    run: ({ port }, { at }) => performed(port, { _tag: "RemoveTree", path: p(at) })
  },
  { name: "makeDirectory of a file", prepare: cleared, run: ({ port }, { at }) => port.makeDirectory(p(at)) },
  { name: "links.make of a file", prepare: cleared, run: ({ port }, { at }) => port.links!.make(p(at), "file") },
  {
    name: "rename of a file away",
    prepare: cleared,
    run: ({ port }, { at }, n) => port.rename(p(at), p(slot("landed", n)), { replace: true }),
    judge: gone
  },
  {
    name: "rename onto a file",
    prepare: plain,
    run: ({ port }, { at }, n) => port.rename(p(slot("plain", n)), p(at), { replace: true })
  },
  {
    name: "attributes.set mode of a file",
    mayBlame: true,
    run: ({ port }, { at }, n) => port.attributes!.set(p(at), { mode: 0o600 + (n % 8) })
  },
  {
    name: "attributes.set time of a file",
    run: ({ port }, { at }, n) => port.attributes!.set(p(at), { modifiedAt: DateTime.makeUnsafe(n * 1000) })
  },
  { name: "service readString of a file", run: ({ fs }, { at }) => fs.readString(at), judge: isClean },
  { name: "service write of a file", prepare: cleared, run: ({ fs }, { at }, n) => fs.write(at, line(n)) },
  {
    name: "service edit of a file",
    prepare: cutBack,
    run: ({ fs }, { at }, n) => fs.edit(at, { oldText: "x", newText: `x`, match: n % 2 ? "first" : "all" })
  },
  { name: "service delete of a file", prepare: cleared, run: ({ fs }, { at }) => fs.delete(at) },
  {
    name: "service copy of a file",
    prepare: cleared,
    run: ({ fs }, { at }, n) => fs.copy(at, slot("landed", n)),
    judge: gone
  },
  {
    name: "service copy onto a file",
    prepare: plain,
    run: ({ fs }, { at }, n) => fs.copy(slot("plain", n), at, { overwrite: true })
  },
  { name: "service setAttributes of a file", run: ({ fs }, { at }) => fs.setAttributes(at, { mode: 0o644 }) }
]

export const onDirectory: ReadonlyArray<Operation> = [
  { name: "remove of a directory", run: ({ port }, { at }) => port.remove(p(at)) },
  { name: "removeTree of a directory", run: ({ port }, { at }) => performed(port, { _tag: "RemoveTree", path: p(at) }) },
  { name: "makeDirectory of a directory", run: ({ port }, { at }) => port.makeDirectory(p(at)) },
  { name: "links.make of a directory", run: ({ port }, { at }) => port.links!.make(p(at), "bystander") },
  {
    name: "rename of a directory away",
    run: ({ port }, { at }, n) => port.rename(p(at), p(slot("landed", n)), { replace: false }),
    judge: gone
  },
  {
    name: "rename onto a directory",
    prepare: ({ root }, n) => Fs.mkdirSync(join(root, slot("hollow", n)), { recursive: true }),
    run: ({ port }, { at }, n) => port.rename(p(slot("hollow", n)), p(at), { replace: true })
  },
  { name: "service delete recursive of a directory", run: ({ fs }, { at }) => fs.delete(at, { recursive: true }) },
  { name: "service mkdir of a directory", run: ({ fs }, { at }, n) => fs.mkdir(`${at}/new-${n}`) },
  { name: "service write in a directory", run: ({ fs }, { at }, n) => fs.write(`${at}/new-${n}/file`, line(n)) }
]
