/**
 * Operations of the service, which make several calls of the port each. They follow links inside the root, so the attack tests
 * both the port and the engine's resolution of links.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { directoriesKeepChanging } from "../../../src/backends/faults.ts"
import { bytes } from "../../backends/posixHost.ts"
import {
  fileText,
  type Ground,
  growBranch,
  linkText,
  makeTree,
  type Mark,
  names,
  removeAttacked,
  secretName,
  slots
} from "./ground.ts"
import {
  type Failure,
  each,
  escaped,
  isListing,
  isSized,
  isText,
  isThere,
  once,
  type Operation,
  type Outcome,
  slowly,
  type Subject,
  textAt,
  type Verdict,
  wrong
} from "./operations.ts"
import { performed } from "../../performed.ts"

const at = (ground: Ground, name: string): string => `${ground.at}/${name}`
const slot = (name: string, n: number): string => `${name}-${n % slots}`

/** Judges only scenes with a single place, because two directories may each see some of the steps. */
const ifAlone =
  (judge: NonNullable<Operation["judge"]>): NonNullable<Operation["judge"]> =>
  (ground, n, outcome) =>
    ground.places.length === 1 && outcome._tag === "Success" ? judge(ground, n, outcome) : undefined

const clearing =
  (judge: NonNullable<Operation["judge"]>, ...passing: ReadonlyArray<(n: number) => string>): NonNullable<Operation["judge"]> =>
  (ground, n, outcome) => {
    const verdict = judge(ground, n, outcome)
    for (const name of passing) {
      for (const place of ground.places) removeAttacked(place.at(name(n)))
    }
    return verdict
  }

const fresh = (n: number): string => `new-${n}`

const secret = "s".repeat(8)

const isInside =
  (found: (answer: any) => ReadonlyArray<string>) =>
  (_ground: Ground, _n: number, outcome: Outcome): Verdict | undefined => {
    if (outcome._tag === "Failure") return undefined
    const stray = found(outcome.success).find((text) => /(?:^|\/)(?:secret|mark-s)$/.test(text) || text.includes(secret))
    return stray === undefined ? undefined : escaped(`found ${stray.slice(0, 100)}`)
  }

const collected = (stream: Stream.Stream<Uint8Array, Failure>): Effect.Effect<string, Failure> =>
  Effect.map(Stream.runCollect(stream), (chunks) => Buffer.concat([...chunks]).toString())

const pathsOf = (entries: ReadonlyArray<{ readonly path: string }>): ReadonlyArray<string> => entries.map(({ path }) => path)

const hashOf = (mark: Mark): string => createHash("sha256").update(fileText(mark)).digest("hex")
const hashes = { x: hashOf("x"), y: hashOf("y"), s: hashOf("s") }

/** Accepts a partial list: the engine stats each entry after the listing, and leaves out entries that are gone. */
const orPartial =
  (judge: NonNullable<Operation["judge"]>, all: (mark: Mark) => ReadonlyArray<string>): NonNullable<Operation["judge"]> =>
  (ground, n, outcome) => {
    const verdict = judge(ground, n, outcome)
    if (verdict?.kind !== "wrong" || outcome._tag === "Failure") return verdict
    const found = (outcome.success as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name)
    const isPart = ground.places.some(({ mark }) => found.every((name) => all(mark).includes(name) || /-\d+$/.test(name)))
    return isPart ? { kind: "partial", why: verdict.why } : verdict
  }

const reading: ReadonlyArray<Operation> = [
  { name: "service readString", run: ({ fs }, ground) => fs.readString(at(ground, "file")), judge: isText(fileText) },
  {
    name: "service read",
    run: ({ fs }, ground) => Effect.map(fs.read(at(ground, "file")), ({ content }) => content),
    judge: isText(fileText)
  },
  {
    name: "service readBytes",
    run: ({ fs }, ground) => Effect.map(fs.readBytes(at(ground, "file")), ({ content }) => Buffer.from(content).toString()),
    judge: isText(fileText)
  },
  {
    name: "service stream",
    run: ({ fs }, ground) => collected(fs.stream(at(ground, "file"), { chunkSize: 300 })),
    judge: isText(fileText)
  },
  {
    name: "service version",
    run: ({ fs }, ground) => fs.version(at(ground, "file")),
    judge: (ground, _n, outcome) => {
      if (outcome._tag === "Failure" || ground.places.some(({ mark }) => hashes[mark] === outcome.success)) return undefined
      return outcome.success === hashes.s ? escaped("answered the version of the secret") : wrong("a version that never was")
    }
  },
  { name: "service stat", run: ({ fs }, ground) => fs.stat(at(ground, "file")), judge: isSized },
  { name: "service list", tellsMoves: true, run: ({ fs }, ground) => fs.list(ground.at), judge: orPartial(isListing, names) },
  {
    name: "service exists",
    run: ({ fs }, ground) => fs.exists(at(ground, secretName)),
    judge: (_ground, _n, outcome) => {
      if (outcome._tag === "Failure") {
        const { _tag, detail } = outcome.failure as Failure & { readonly detail?: string }
        // Every attempt can meet a swap, most easily on a busy machine.
        if (_tag === "IoError" && detail === directoriesKeepChanging["detail"]) return undefined
        return wrong(`exists failed with ${_tag} (${detail}), although the directories only change places`)
      }
      return outcome.success === true ? escaped("what stands only outside exists") : undefined
    }
  },
  { name: "service readLink", mayBlame: true, run: ({ fs }, ground) => fs.readLink(at(ground, "ln")), judge: isText(linkText) },
  {
    name: "service walk",
    tellsMoves: true,
    run: ({ fs }) => Effect.map(Stream.runCollect(fs.walk(".", { sizes: true })), pathsOf),
    judge: isInside((paths) => paths)
  },
  {
    name: "service glob",
    run: ({ fs }) => Effect.map(fs.glob("**/*", { sizes: true }), ({ matches }) => pathsOf(matches)),
    judge: isInside((paths) => paths)
  },
  {
    name: "service grep",
    run: ({ fs }, ground) => fs.grep(/s{8}|x{8}|y{8}/, { path: ground.at, maxFileSize: 5000 }),
    judge: isInside(({ matches }) => matches.map(({ lineContent }: { readonly lineContent: string }) => lineContent))
  }
]

const line = (n: number): string => `line ${n}\n`

const creates = (name: string, run: Operation["run"], text: (n: number) => string = line): Operation => ({
  name,
  makes: true,
  run,
  judge: clearing(ifAlone(once((place, n) => textAt(place.at(fresh(n))) === text(n))), fresh)
})

const making: ReadonlyArray<Operation> = [
  creates("service write", ({ fs }, ground, n) => fs.write(at(ground, fresh(n)), line(n), { createParents: false })),
  creates("service writeBytes create", ({ fs }, ground, n) =>
    fs.writeBytes(at(ground, fresh(n)), bytes(line(n)), { mode: "create", createParents: false })
  ),
  creates("service sink", ({ fs }, ground, n) =>
    Stream.run(slowly(line(n)), fs.sink(at(ground, fresh(n)), { createParents: false }))
  ),
  {
    ...creates("service mkdir", ({ fs }, ground, n) => fs.mkdir(at(ground, fresh(n)), { parents: false })),
    judge: clearing(ifAlone(once((place, n) => isThere(place.at(fresh(n))))), fresh)
  }
]

/** The operations that create missing parents, which could block a directory that comes back. */
export const makingParents: ReadonlyArray<Operation> = (
  [
    {
      name: "service symlink",
      run: ({ fs }, ground, n) => fs.symlink(at(ground, fresh(n)), "file"),
      judge: clearing(ifAlone(once((place, n) => isThere(place.at(fresh(n))))), fresh)
    },
    {
      name: "service write with parents",
      run: ({ fs }, ground, n) => fs.write(at(ground, `${fresh(n)}/deep/file`), line(n)),
      judge: clearing(ifAlone(once((place, n) => textAt(place.at(`${fresh(n)}/deep/file`)) === line(n))), fresh)
    },
    {
      name: "service mkdir with parents",
      run: ({ fs }, ground, n) => fs.mkdir(at(ground, `${fresh(n)}/deep/er`)),
      judge: clearing(ifAlone(once((place, n) => isThere(place.at(`${fresh(n)}/deep/er`)))), fresh)
    },
    {
      name: "service copy into it",
      prepare: ({ root }, n) => Fs.writeFileSync(join(root, slot("plain", n)), line(n)),
      run: ({ fs }, ground, n) => fs.copy(slot("plain", n), at(ground, fresh(n))),
      judge: clearing(ifAlone(once((place, n) => textAt(place.at(fresh(n))) === line(n))), fresh)
    },
    {
      name: "service move into it",
      prepare: ({ root }, n) => Fs.writeFileSync(join(root, slot("plain", n)), line(n)),
      run: ({ fs }, ground, n) => fs.move(slot("plain", n), at(ground, fresh(n))),
      judge: clearing(ifAlone(once((place, n) => textAt(place.at(fresh(n))) === line(n))), fresh)
    },
    {
      name: "service copy of a tree into it",
      prepare: ({ root }, n) => {
        if (!isThere(join(root, slot("twigs", n)))) makeTree(join(root, slot("twigs", n)), "x")
      },
      run: ({ fs }, ground, n) => fs.copy(slot("twigs", n), at(ground, fresh(n))),
      judge: clearing(ifAlone(once((place, n) => textAt(place.at(`${fresh(n)}/deep/er/leaf`)) === fileText("x"))), fresh)
    }
  ] satisfies ReadonlyArray<Operation>
).map((operation) => ({ ...operation, mayTake: true }))

/** Judges and removes the entries that came out of the attacked directory, without following links. */
const landed = (ground: Ground, n: number, outcome: Outcome, leaf: string): Verdict | undefined => {
  const path = join(ground.root, slot("landed", n))
  const texts = isThere(path) ? leavesOf(path) : []
  removeAttacked(path)
  if (texts.some((text) => text.includes(secret) || text.includes(secretName)))
    return escaped(`brought the secret in: ${texts[0]?.slice(0, 80)}`)
  if (outcome._tag === "Failure") return undefined
  if (texts.length === 0) return { kind: "partial", why: "nothing came" }
  const isWhole = texts.every((text) => ground.places.some(({ mark }) => text === fileText(mark) + leaf))
  return isWhole ? undefined : wrong(`what came is not what stood there: ${texts.map((text) => text.slice(0, 40)).join("|")}`)
}

/**
 * Returns the texts and link targets in a tree that came out of the attacked directory. The attacker may still exchange
 * one name in it, so each directory is read through its descriptor, and no link is followed.
 */
const leavesOf = (path: string): ReadonlyArray<string> => {
  for (;;) {
    try {
      return leavesOnce(path)
    } catch (error) {
      const { code } = error as { readonly code?: string }
      // EINVAL: a link became a directory after it was tested.
      if (code !== "ENOENT" && code !== "EINVAL") throw error
      if (!isThere(path)) return []
    }
  }
}

const leavesOnce = (path: string): ReadonlyArray<string> => {
  if (Fs.lstatSync(path).isSymbolicLink()) return [Fs.readlinkSync(path)]
  let descriptor: number
  try {
    descriptor = Fs.openSync(path, Fs.constants.O_RDONLY | Fs.constants.O_NOFOLLOW | Fs.constants.O_NONBLOCK)
  } catch (error) {
    if ((error as { readonly code?: string }).code === "ELOOP") return [Fs.readlinkSync(path)]
    throw error
  }
  try {
    if (Fs.fstatSync(descriptor).isFile()) return [Fs.readFileSync(descriptor, "utf8")]
    const directory = `/proc/self/fd/${descriptor}`
    return Fs.readdirSync(directory).flatMap((name) => (name === secretName ? [secretName] : leavesOf(join(directory, name))))
  } finally {
    Fs.closeSync(descriptor)
  }
}

const changing: ReadonlyArray<Operation> = [
  {
    name: "service write over a file",
    prepare: each((place, n) => Fs.writeFileSync(place.at(slot("old", n)), fileText(place.mark))),
    run: ({ fs }, ground, n) => fs.write(at(ground, slot("old", n)), line(n), { mode: "replace" }),
    judge: ifAlone(once((place, n) => textAt(place.at(slot("old", n))) === line(n)))
  },
  {
    name: "service append",
    prepare: each((place, n) => Fs.writeFileSync(place.at(slot("old", n)), fileText(place.mark))),
    run: ({ fs }, ground, n) => fs.write(at(ground, slot("old", n)), line(n), { mode: "appendExisting" }),
    judge: ifAlone(once((place, n) => textAt(place.at(slot("old", n))) === fileText(place.mark) + line(n)))
  },
  {
    name: "service edit",
    prepare: each((place, n) => Fs.writeFileSync(place.at(slot("old", n)), `${place.mark} here\n`)),
    run: ({ fs }, ground, n) => fs.edit(at(ground, slot("old", n)), { oldText: " here", newText: " there" }),
    judge: (ground, n, outcome) => {
      const mixed = ground.places
        .map((place) => textAt(place.at(slot("old", n))))
        .find((text) => !/^[xy] t?here\n$/.test(text ?? ""))
      if (ground.places.length > 0 && mixed !== undefined) return wrong(`an edit left ${mixed}`)
      return ifAlone(once((place) => textAt(place.at(slot("old", n))) === `${place.mark} there\n`))(ground, n, outcome)
    }
  },
  {
    name: "service delete",
    prepare: each((place, n) => Fs.writeFileSync(place.at(slot("victim", n)), place.mark)),
    run: ({ fs }, ground, n) => fs.delete(at(ground, slot("victim", n))),
    judge: once((place, n) => !isThere(place.at(slot("victim", n))))
  },
  {
    name: "service delete recursive",
    prepare: each((place, n) => {
      if (!isThere(place.at(`${slot("tree", n)}/deep/er/leaf`))) makeTree(place.at(slot("tree", n)), place.mark)
    }),
    run: ({ fs }, ground, n) => fs.delete(at(ground, slot("tree", n)), { recursive: true }),
    judge: ifAlone(once((place, n) => !isThere(place.at(slot("tree", n)))))
  },
  {
    name: "service copy out of it",
    run: ({ fs }, ground, n) => fs.copy(at(ground, "file"), slot("landed", n)),
    judge: (ground, n, outcome) => landed(ground, n, outcome, "")
  },
  {
    name: "service copy of a tree out of it",
    run: ({ fs }, ground, n) => fs.copy(at(ground, "sub"), slot("landed", n)),
    judge: (ground, n, outcome) => landed(ground, n, outcome, "")
  },
  {
    name: "service move out of it",
    prepare: each((place, n) => Fs.writeFileSync(place.at(slot("moving", n)), fileText(place.mark))),
    run: ({ fs }, ground, n) => fs.move(at(ground, slot("moving", n)), slot("landed", n)),
    judge: (ground, n, outcome) => landed(ground, n, outcome, "")
  },
  {
    name: "service setAttributes",
    prepare: each((place) => Fs.chmodSync(place.at("file"), 0o644)),
    run: ({ fs }, ground) => fs.setAttributes(at(ground, "file"), { mode: 0o600 }),
    judge: ifAlone(once((place) => (Fs.statSync(place.at("file")).mode & 0o777) === 0o600))
  }
]

/** Restores the tree in which a branch is swapped for a link to the outside. */
const regrow = (ground: Ground): void => growBranch(ground.root, join(ground.root, "..", "out"))

const onTree = (
  name: string,
  run: (subject: Subject, n: number) => Effect.Effect<unknown, Failure>,
  judge?: Operation["judge"]
) => ({
  name,
  prepare: regrow,
  run: (subject: Subject, _ground: Ground, n: number) => run(subject, n),
  ...(judge && { judge })
})

/** Accepts a link that was copied as a link, but no content of its target. */
const carried = (ground: Ground, n: number): Verdict | undefined => {
  const path = join(ground.root, slot("landed", n))
  const texts = isThere(path) ? leavesOf(path) : []
  removeAttacked(path)
  return texts.some((text) => text.includes(secret) || text === secretName) ? escaped("brought the secret in") : undefined
}

export const onBranch: ReadonlyArray<Operation> = [
  onTree("removeTree of a tree with it", ({ port }) => performed(port, { _tag: "RemoveTree", path: "outer" as never })),
  onTree("service delete recursive of a tree with it", ({ fs }) => fs.delete("outer", { recursive: true })),
  {
    ...onTree(
      "service walk of a tree with it",
      ({ fs }) => Effect.map(Stream.runCollect(fs.walk("outer")), pathsOf),
      isInside((paths) => paths)
    ),
    tellsMoves: true
  },
  onTree(
    "service glob of a tree with it",
    ({ fs }) => Effect.map(fs.glob("**", { path: "outer" }), ({ matches }) => pathsOf(matches)),
    isInside((paths) => paths)
  ),
  onTree(
    "service grep of a tree with it",
    ({ fs }) => fs.grep("x", { path: "outer" }),
    isInside(({ matches }) => matches.map(({ lineContent }: { readonly lineContent: string }) => lineContent))
  ),
  onTree("service copy of a tree with it", ({ fs }, n) => fs.copy("outer", slot("landed", n)), carried),
  onTree("service move of a tree with it", ({ fs }, n) => fs.move("outer", slot("landed", n)), carried)
]

export const onService: ReadonlyArray<Operation> = [...reading, ...making, ...changing]
export const makingOnService = making
