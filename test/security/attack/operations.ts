/**
 * Every operation of a backend's port, with the entries that it needs and the results that it must not have. `n` is the
 * number of the attempt; concurrent attempts use different names.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Algebra } from "../../../src/filesystem/Filesystem.ts"
import type { FileStat } from "../../../src/model/Entry.ts"
import type { Backend, Child } from "../../../src/port/Backend.ts"
import { bytes, p } from "../../backends/posixHost.ts"
import {
  fileText,
  type Ground,
  largeText,
  linkText,
  makeTree,
  type Mark,
  names,
  type Place,
  removeAttacked,
  secretName,
  slots
} from "./ground.ts"
import { performed } from "../../performed.ts"

export interface Subject {
  readonly port: Backend
  readonly fs: Algebra
}

export interface Failure {
  readonly _tag: string
}

export type Outcome =
  | { readonly _tag: "Success"; readonly success: unknown }
  | { readonly _tag: "Failure"; readonly failure: Failure }

export interface Verdict {
  /**
   * `escape`: the outside was changed or seen. `wrong`: the result fits the path at no moment of the call. `undeclared`: the
   * call failed and acted all the same. `partial`: some entries were missing at a step of a longer call, which succeeded
   * without them.
   */
  readonly kind: "escape" | "wrong" | "undeclared" | "partial"
  readonly why: string
}

export interface Operation {
  readonly name: string
  /** Runs before the call and restores the entries that an attempt uses up. */
  readonly prepare?: (ground: Ground, n: number) => void
  readonly run: (subject: Subject, ground: Ground, n: number) => Effect.Effect<unknown, Failure>
  readonly judge?: (ground: Ground, n: number, outcome: Outcome) => Verdict | undefined
  /** True if the operation creates one entry `new-<n>` in the attacked directory and needs no other entry. */
  readonly makes?: boolean
  /** True if the operation may take the attacked name while it is free, which would block an attacker in several steps. */
  readonly mayTake?: boolean
  /** True if the entry at the path can temporarily have a kind for which the call is an InvalidArgument. */
  readonly mayBlame?: boolean
  /** True if the operation reports by Unavailable that a directory moved while it was listed. */
  readonly tellsMoves?: boolean
}

export const wrong = (why: string): Verdict => ({ kind: "wrong", why })
export const escaped = (why: string): Verdict => ({ kind: "escape", why })

const slot = (name: string, n: number): string => `${name}-${n % slots}`

export const below = (ground: Ground, name: string) => p(`${ground.at}/${name}`)

export const isThere = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined

export const textAt = (path: string): string | undefined => {
  try {
    return Fs.readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

const gone: Failure = { _tag: "absent" }

const present = <A>(effect: Effect.Effect<A | undefined, Failure>): Effect.Effect<A, Failure> =>
  Effect.flatMap(effect, (value) => (value === undefined ? Effect.fail(gone) : Effect.succeed(value)))

const shown = (text: string): string => JSON.stringify(text.slice(0, 80))

/** Accepts only the whole text of one of the places, never a mixture or the secret. */
export const isText =
  (text: (mark: Mark) => string) =>
  (ground: Ground, _n: number, outcome: Outcome): Verdict | undefined => {
    if (outcome._tag === "Failure") return undefined
    const answer = outcome.success as string
    if (ground.places.some(({ mark }) => text(mark) === answer)) return undefined
    return answer.includes("s".repeat(8)) || answer === linkText("s")
      ? escaped(`answered the secret ${shown(answer)}`)
      : wrong(`answered ${shown(answer)} (${answer.length}), which never stood there`)
  }

export const isSized = (ground: Ground, _n: number, outcome: Outcome): Verdict | undefined => {
  if (outcome._tag === "Failure") return undefined
  const { isFile, sizeBytes } = outcome.success as FileStat
  if (isFile && ground.places.some(({ mark }) => fileText(mark).length === sizeBytes)) return undefined
  return sizeBytes === fileText("s").length
    ? escaped("answered the size of what is outside")
    : wrong(`answered a size of ${sizeBytes}`)
}

const isPassing = /-\d+$/

export const isListing = (ground: Ground, _n: number, outcome: Outcome): Verdict | undefined => {
  if (outcome._tag === "Failure") return undefined
  const found = (outcome.success as ReadonlyArray<Child>)
    .map(({ name }) => name)
    .filter((name) => !isPassing.test(name))
    .sort()
  if (found.includes(secretName) || found.includes("mark-s")) return escaped(`listed the outside: ${found.join(" ")}`)
  if (ground.places.length === 0 && found.length === 0) return undefined
  return ground.places.some(({ mark }) => names(mark).join() === found.join()) ? undefined : wrong(`listed ${found.join(" ")}`)
}

/** Accepts no success, because only the outside has the entry. */
const neverSucceeds = (_ground: Ground, _n: number, outcome: Outcome): Verdict | undefined =>
  outcome._tag === "Success" ? escaped(`found what stands only outside: ${JSON.stringify(outcome.success)}`) : undefined

/** Accepts a success that acted in exactly one place, and a failure that acted in none. */
export const once =
  (isDone: (place: Place, n: number) => boolean) =>
  (ground: Ground, n: number, outcome: Outcome): Verdict | undefined => {
    if (ground.places.length === 0) return undefined
    const done = ground.places.filter((place) => isDone(place, n)).length
    if (outcome._tag === "Success") return done === 1 ? undefined : wrong(`succeeded, and was done in ${done} places`)
    return done === 0
      ? undefined
      : { kind: "undeclared", why: `failed (${outcome.failure._tag}), and was done in ${done} places` }
  }

export const each =
  (make: (place: Place, n: number) => void) =>
  (ground: Ground, n: number): void => {
    for (const place of ground.places) make(place, n)
  }

const ensure = (path: string, make: (path: string) => void): void => {
  if (!isThere(path)) make(path)
}

const file = (name: string) =>
  each(({ at, mark }, n) => ensure(at(slot(name, n)), (path) => Fs.writeFileSync(path, fileText(mark))))

const takenAway =
  (judge: NonNullable<Operation["judge"]>): NonNullable<Operation["judge"]> =>
  (ground, n, outcome) => {
    const verdict = judge(ground, n, outcome)
    for (const { at } of ground.places) removeAttacked(at(`new-${n}`))
    return verdict
  }

const lineOf = (n: number): string => `line ${n}\n`

/** Streams the text with a yield between its pieces, so that other calls and swaps can run. */
export const slowly = (text: string): Stream.Stream<Uint8Array> =>
  Stream.mapEffect(Stream.make(text.slice(0, 3), text.slice(3, 4), text.slice(4)), (piece) =>
    Effect.as(Effect.yieldNow, bytes(piece))
  )

const makes = (name: string, run: Operation["run"], isDone: (place: Place, n: number) => boolean): Operation => ({
  name,
  makes: true,
  run,
  judge: takenAway(once(isDone))
})

const writes = (
  how: "create" | "replace" | "append",
  kind: string,
  content: (n: number) => Uint8Array | Stream.Stream<Uint8Array>
) =>
  makes(
    `write ${how} ${kind}`,
    ({ port }, ground, n) => port.write<never, never>(below(ground, `new-${n}`), content(n), how),
    ({ at }, n) => textAt(at(`new-${n}`)) === lineOf(n)
  )

const overwrites = (
  how: "replace" | "append",
  kind: string,
  content: (n: number) => Uint8Array | Stream.Stream<Uint8Array>
): Operation => ({
  name: `write ${how} ${kind} over a file`,
  prepare: each(({ at, mark }, n) => Fs.writeFileSync(at(slot("old", n)), fileText(mark))),
  run: ({ port }, ground, n) => port.write<never, never>(below(ground, slot("old", n)), content(n), how),
  judge: (ground, n, outcome) => {
    const text = (mark: Mark): string => (how === "append" ? fileText(mark) : "") + lineOf(n)
    const torn = ground.places.find(({ at, mark }) => ![text(mark), fileText(mark)].includes(textAt(at(slot("old", n))) ?? ""))
    if (torn !== undefined && how === "append") return wrong(`left ${shown(textAt(torn.at(slot("old", n))) ?? "nothing")}`)
    return once(({ at, mark }) => textAt(at(slot("old", n))) === text(mark))(ground, n, outcome)
  }
})

const ofBytes = (n: number): Uint8Array => bytes(lineOf(n))
const ofStream = (n: number): Stream.Stream<Uint8Array> => slowly(lineOf(n))

const readWhole = ({ port }: Subject, ground: Ground, name: string): Effect.Effect<string, Failure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { read, stat } = yield* port.open(below(ground, name))
      // The bytes must belong to the opened file, even if another file is at its path now.
      yield* Effect.yieldNow
      const half = Math.floor(stat.sizeBytes / 2)
      const pieces = [yield* read(0, half), yield* read(half, stat.sizeBytes - half)]
      return Buffer.concat(pieces).toString()
    })
  )

const reading: ReadonlyArray<Operation> = [
  { name: "stat", run: ({ port }, ground) => present(port.stat(below(ground, "file"))), judge: isSized },
  {
    name: "stat of what stands only outside",
    run: ({ port }, ground) => present(port.stat(below(ground, secretName))),
    judge: neverSucceeds
  },
  { name: "list", run: ({ port }, ground) => port.list(p(ground.at)), judge: isListing },
  { name: "open and read", run: (subject, ground) => readWhole(subject, ground, "file"), judge: isText(fileText) },
  {
    name: "open and read a large file",
    run: (subject, ground) => readWhole(subject, ground, "large"),
    judge: isText(largeText)
  },
  { name: "open and read deeper", run: (subject, ground) => readWhole(subject, ground, "sub/file"), judge: isText(fileText) },
  {
    name: "read in one go",
    run: ({ port }, ground) =>
      Effect.map(present(performed(port, { _tag: "Read", path: below(ground, "file"), maxBytes: 10_000 })), (whole) =>
        Buffer.from(whole.bytes).toString()
      ),
    judge: isText(fileText)
  },
  {
    name: "links.read",
    mayBlame: true,
    run: ({ port }, ground) => port.links!.read(below(ground, "ln")),
    judge: isText(linkText)
  }
]

const making: ReadonlyArray<Operation> = [
  writes("create", "bytes", ofBytes),
  writes("create", "a stream", ofStream),
  writes("replace", "bytes", ofBytes),
  writes("replace", "a stream", ofStream),
  writes("append", "bytes", ofBytes),
  writes("append", "a stream", ofStream),
  makes(
    "makeDirectory",
    ({ port }, ground, n) => port.makeDirectory(below(ground, `new-${n}`)),
    ({ at }, n) => isThere(at(`new-${n}`))
  ),
  makes(
    "links.make",
    ({ port }, ground, n) => port.links!.make(below(ground, `new-${n}`), "file"),
    ({ at }, n) => isThere(at(`new-${n}`))
  ),
  {
    ...makes(
      "rename into it",
      ({ port }, ground, n) => port.rename(p(slot("plain", n)), below(ground, `new-${n}`), { replace: n % 2 === 0 }),
      ({ at }, n) => textAt(at(`new-${n}`)) === "plain"
    ),
    prepare: ({ root }, n) => ensure(join(root, slot("plain", n)), (path) => Fs.writeFileSync(path, "plain"))
  }
]

const treeIn = (ground: Ground, n: number): ReadonlyArray<Place> =>
  ground.places.filter(({ at }) => isThere(at(slot("tree", n))))

const changing: ReadonlyArray<Operation> = [
  overwrites("replace", "bytes", ofBytes),
  overwrites("replace", "a stream", ofStream),
  overwrites("append", "bytes", ofBytes),
  overwrites("append", "a stream", ofStream),
  {
    name: "remove a file",
    prepare: file("victim"),
    run: ({ port }, ground, n) => port.remove(below(ground, slot("victim", n))),
    judge: once(({ at }, n) => !isThere(at(slot("victim", n))))
  },
  {
    name: "remove a directory",
    prepare: each(({ at }, n) => ensure(at(slot("hollow", n)), (path) => Fs.mkdirSync(path))),
    run: ({ port }, ground, n) => port.remove(below(ground, slot("hollow", n))),
    judge: once(({ at }, n) => !isThere(at(slot("hollow", n))))
  },
  {
    name: "removeTree",
    prepare: each(({ at, mark }, n) => {
      const path = at(slot("tree", n))
      // A call that failed may leave an incomplete tree.
      if (isThere(join(path, "deep", "er", "leaf")) && isThere(join(path, "leaf")) && isThere(join(path, "deep", "leaf")))
        return
      makeTree(path, mark)
    }),
    run: ({ port }, ground, n) => performed(port, { _tag: "RemoveTree", path: below(ground, slot("tree", n)) }),
    judge: (ground, n, outcome) => {
      if (outcome._tag === "Failure") return undefined
      const left = treeIn(ground, n)
      if (left.length !== ground.places.length - 1) return wrong(`succeeded, and left ${left.length} trees`)
      const torn = left.find(
        ({ at }) => !["leaf", "deep/leaf", "deep/er/leaf"].every((leaf) => isThere(at(`${slot("tree", n)}/${leaf}`)))
      )
      return torn && wrong("removed one tree, and something of the other")
    }
  },
  {
    name: "rename out of it",
    prepare: file("moving"),
    run: ({ port }, ground, n) => port.rename(below(ground, slot("moving", n)), p(slot("landed", n)), { replace: true }),
    judge: (ground, n, outcome) => {
      const landed = join(ground.root, slot("landed", n))
      const text = textAt(landed)
      if (text !== undefined) Fs.unlinkSync(landed)
      if (text?.startsWith("s")) return escaped("moved the secret in")
      if ((text !== undefined) !== (outcome._tag === "Success"))
        return wrong(`${outcome._tag}, and ${text === undefined ? "nothing" : "a file"} landed`)
      const verdict = once(({ at }, n) => !isThere(at(slot("moving", n))))(ground, n, outcome)
      const from = ground.places.find(({ at }) => !isThere(at(slot("moving", n))))
      return (
        verdict ?? (from !== undefined && text !== fileText(from.mark) ? wrong("another file landed than went") : undefined)
      )
    }
  },
  {
    name: "rename within it",
    prepare: file("moving"),
    run: ({ port }, ground, n) => port.rename(below(ground, slot("moving", n)), below(ground, `new-${n}`), { replace: false }),
    judge: takenAway((ground, n, outcome) => {
      const verdict = once(({ at }, n) => !isThere(at(slot("moving", n))))(ground, n, outcome)
      return verdict ?? once(({ at }, n) => isThere(at(`new-${n}`)))(ground, n, outcome)
    })
  },
  {
    name: "attributes.set mode",
    prepare: each(({ at }) => Fs.chmodSync(at("file"), 0o644)),
    run: ({ port }, ground) => port.attributes!.set(below(ground, "file"), { mode: 0o600 }),
    judge: (ground, _n, outcome) => {
      const done = ground.places.filter(({ at }) => (Fs.statSync(at("file")).mode & 0o777) === 0o600).length
      return outcome._tag === "Success" && done === 0 ? wrong("succeeded, and was not done") : undefined
    }
  },
  {
    name: "attributes.set time",
    prepare: each(({ at }) => Fs.utimesSync(at("file"), 1, 1)),
    run: ({ port }, ground) => port.attributes!.set(below(ground, "file"), { modifiedAt: DateTime.makeUnsafe(9000) }),
    judge: (ground, _n, outcome) => {
      const done = ground.places.filter(({ at }) => Fs.statSync(at("file")).mtimeMs === 9000).length
      return outcome._tag === "Success" && done === 0 ? wrong("succeeded, and was not done") : undefined
    }
  }
]

/** The operations on the attacked name itself that do not remove it. */
const onTheName: ReadonlyArray<Operation> = [
  {
    name: "stat of the name",
    run: ({ port }, ground) => present(port.stat(p(ground.at))),
    judge: (_ground, _n, outcome) =>
      outcome._tag === "Success" && (outcome.success as FileStat).kind === "file" ? wrong("answered a file") : undefined
  },
  { name: "makeDirectory of the name", mayTake: true, run: ({ port }, ground) => port.makeDirectory(p(ground.at)) },
  {
    name: "write create of the name",
    mayTake: true,
    run: ({ port }, ground) => port.write<never, never>(p(ground.at), bytes("x"), "create")
  },
  {
    name: "write append of the name",
    mayTake: true,
    run: ({ port }, ground) => port.write<never, never>(p(ground.at), bytes("x"), "append")
  },
  {
    name: "open of the name",
    run: ({ port }, ground) => Effect.scoped(port.open(p(ground.at))),
    judge: (_ground, _n, outcome) => (outcome._tag === "Success" ? wrong("opened a directory or a link") : undefined)
  },
  {
    name: "attributes.set mode of the name",
    mayBlame: true,
    run: ({ port }, ground, n) => port.attributes!.set(p(ground.at), { mode: 0o700 + (n % 8) })
  },
  {
    name: "attributes.set time of the name",
    run: ({ port }, ground, n) => port.attributes!.set(p(ground.at), { modifiedAt: DateTime.makeUnsafe(n * 1000) })
  }
]

export const onPort: ReadonlyArray<Operation> = [...reading, ...making, ...changing]
export const onNames = onTheName
export const makingOnPort = making
