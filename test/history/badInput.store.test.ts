/** Damaged, locked and removed stores. Each failure is typed, and other snapshots keep working. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { canMount, disk, isRoot, needs } from "../faults/ground.ts"
import { read } from "./awkward.ts"
import { fsck, git, gitWith, hasGit, type Place, place, refusesRestoring, type States, twoStates, within } from "./badInput.ts"

const flip = (path: string, at: number): void => {
  Fs.chmodSync(path, 0o600)
  const bytes = Fs.readFileSync(path)
  bytes[at]! ^= 0x55
  Fs.writeFileSync(path, bytes)
}

const cut = (path: string, size: number): void => {
  Fs.chmodSync(path, 0o600)
  Fs.truncateSync(path, size)
}

const refOf = ({ gitDir }: Place, { snapshotId }: Snapshots.FilesystemSnapshot): string =>
  join(gitDir, "refs/snapshots", snapshotId)

/** Returns the offset of an object in its pack. */
const offsetOf = (here: Place, pack: string, id: string): number => {
  const line = git(here, "verify-pack", "-v", `${pack}.idx`)
    .split("\n")
    .find((line) => line.startsWith(id))
  return Number(line!.split(/\s+/)[4])
}

const idAt = (here: Place, { commitRef }: Snapshots.FilesystemSnapshot, path: string): string =>
  git(here, "rev-parse", `${commitRef}:${path}`)

/** Removes the saved scan. Otherwise the library would use it instead of the damaged trees of the store. */
const forgetSeen = ({ gitDir }: Place): void => {
  for (const name of Fs.readdirSync(gitDir)) if (name.startsWith("seen-")) Fs.rmSync(join(gitDir, name))
}

interface Damage {
  readonly what: string
  readonly reason: Snapshots.SnapshotRestoreError["reason"]
  readonly run: (here: Place, states: States) => void
  /** True if the second snapshot is still listed. */
  readonly isListed?: boolean
}

const nothing = "1234567890123456789012345678901234567890"

/** Kinds of damage to the second snapshot alone. */
const damages: ReadonlyArray<Damage> = [
  {
    what: "whose pack has a changed byte in the middle of a file's content",
    reason: "corrupt",
    run: (here, { second, secondPack }) =>
      flip(`${secondPack}.pack`, offsetOf(here, secondPack, idAt(here, second, "changed.txt")) + 200),
    isListed: true
  },
  {
    what: "whose pack has a changed byte in a tree",
    reason: "corrupt",
    run: (here, { second, secondPack }) => {
      forgetSeen(here)
      flip(`${secondPack}.pack`, offsetOf(here, secondPack, idAt(here, second, "d")) + 12)
    },
    isListed: true
  },
  {
    what: "whose pack has a changed byte in the commit",
    reason: "corrupt",
    run: (here, { second, secondPack }) => flip(`${secondPack}.pack`, offsetOf(here, secondPack, second.commitRef) + 30)
  },
  { what: "whose pack is truncated", reason: "corrupt", run: (_, { secondPack }) => cut(`${secondPack}.pack`, 100) },
  { what: "whose pack is empty", reason: "corrupt", run: (_, { secondPack }) => cut(`${secondPack}.pack`, 0) },
  {
    what: "whose pack is missing while its index exists",
    reason: "corrupt",
    run: (_, { secondPack }) => Fs.rmSync(`${secondPack}.pack`)
  },
  {
    what: "whose pack and index are missing",
    reason: "corrupt",
    run: (_, { secondPack }) => {
      Fs.rmSync(`${secondPack}.idx`)
      Fs.rmSync(`${secondPack}.pack`)
    }
  },
  { what: "whose index is missing", reason: "corrupt", run: (_, { secondPack }) => Fs.rmSync(`${secondPack}.idx`) },
  {
    what: "whose reference points to a missing object",
    reason: "corrupt",
    run: (here, { second }) => Fs.writeFileSync(refOf(here, second), `${nothing}\n`)
  },
  {
    what: "whose reference points to a blob",
    reason: "corrupt",
    run: (here, { second }) => Fs.writeFileSync(refOf(here, second), `${idAt(here, second, "changed.txt")}\n`)
  },
  {
    what: "whose reference points to a tree",
    reason: "corrupt",
    run: (here, { second }) =>
      Fs.writeFileSync(refOf(here, second), `${git(here, "rev-parse", `${second.commitRef}^{tree}`)}\n`)
  },
  {
    what: "whose reference is garbage",
    reason: "unknown",
    run: (here, { second }) => Fs.writeFileSync(refOf(here, second), "garbage\n")
  },
  {
    what: "whose reference is empty",
    reason: "unknown",
    run: (here, { second }) => Fs.writeFileSync(refOf(here, second), "")
  },
  {
    what: "whose reference points to the first snapshot",
    reason: "unknown",
    run: (here, { first, second }) => Fs.writeFileSync(refOf(here, second), `${first.commitRef}\n`)
  },
  {
    what: "whose reference names another reference",
    reason: "unknown",
    run: (here, { first, second }) => Fs.writeFileSync(refOf(here, second), `ref: refs/snapshots/${first.snapshotId}\n`)
  },
  {
    what: "whose commit was replaced by one with another message",
    reason: "unknown",
    run: (here, { second }) => {
      const body = git(here, "cat-file", "commit", second.commitRef).replace('"tag":"second"', '"tag":"edited"')
      Fs.writeFileSync(refOf(here, second), `${gitWith(here, `${body}\n`, "hash-object", "-t", "commit", "-w", "--stdin")}\n`)
    },
    isListed: true
  },
  {
    what: "whose commit is not one of ours",
    reason: "corrupt",
    run: (here, { second }) => {
      const commit = gitWith(
        here,
        "mine",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x",
        "commit-tree",
        `${second.commitRef}^{tree}`
      )
      Fs.writeFileSync(refOf(here, second), `${commit}\n`)
    }
  }
]

/** Checks a store in which one snapshot is damaged. */
const examine = Effect.fnUntraced(function* (here: Place, snapshots: Snapshots.Operations, states: States, damage: Damage) {
  const { first, one, second } = states
  yield* snapshots.restore(first)
  assert.deepStrictEqual(read(here.root), one, "the other snapshot")
  const error = yield* refusesRestoring(here, snapshots.restore(second), damage.reason)
  assert.isAbove(error.detail.length, 10)
  yield* refusesRestoring(here, snapshots.restore(second, { paths: ["changed.txt"] }), damage.reason)
  const listed = (yield* snapshots.list).map(({ snapshotId }) => snapshotId)
  assert.include(listed, first.snapshotId)
  assert.strictEqual(listed.includes(second.snapshotId), damage.isListed === true, "listed")
  Fs.writeFileSync(join(here.root, "later.txt"), "later\n")
  const later = read(here.root)
  const third = yield* snapshots.snapshot({ tag: "third" })
  yield* snapshots.restore(first)
  assert.deepStrictEqual(read(here.root), one)
  yield* snapshots.restore(third)
  assert.deepStrictEqual(read(here.root), later)
})

describe.runIf(hasGit)("a snapshot", () => {
  for (const damage of damages) {
    it.live(`${damage.what} is reported as ${damage.reason}, and all other snapshots work`, () =>
      Effect.gen(function* () {
        const here = yield* place
        const states = yield* within(here, (snapshots) => twoStates(here, snapshots))
        damage.run(here, states)
        yield* within(here, (snapshots) => examine(here, snapshots, states, damage))
      })
    )
  }

  it.live("that is damaged while the layer runs is refused before anything changes", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const states = yield* twoStates(here, snapshots)
          const { first, one, second, secondPack } = states
          yield* snapshots.restore(first)
          flip(`${secondPack}.pack`, offsetOf(here, secondPack, idAt(here, second, "changed.txt")) + 200)
          yield* refusesRestoring(here, snapshots.restore(second), "corrupt")
          assert.deepStrictEqual(read(here.root), one)
        })
      )
    })
  )
})

const losses: ReadonlyArray<readonly [what: string, lose: (pack: string) => void]> = [
  ["missing together with its index", (pack) => [".idx", ".pack"].forEach((ending) => Fs.rmSync(pack + ending))],
  ["missing while its index exists", (pack) => Fs.rmSync(`${pack}.pack`)],
  ["truncated", (pack) => cut(`${pack}.pack`, Fs.statSync(`${pack}.pack`).size - 100)],
  ["empty", (pack) => cut(`${pack}.pack`, 0)]
]

describe.runIf(hasGit)("a pack that is", () => {
  for (const [what, lose] of losses) {
    for (const isRunning of [true, false]) {
      it.live(`${what} is not used by the next snapshot, taken ${isRunning ? "by the same layer" : "later"}`, () =>
        Effect.gen(function* () {
          const here = yield* place
          const after = Effect.fnUntraced(function* (snapshots: Snapshots.Operations, { two }: States) {
            const third = yield* snapshots.snapshot()
            for (const name of Fs.readdirSync(here.root)) Fs.rmSync(join(here.root, name), { recursive: true })
            yield* snapshots.restore(third)
            assert.deepStrictEqual(read(here.root), two)
          })
          const states = yield* within(here, (snapshots) =>
            Effect.tap(twoStates(here, snapshots), (states) => {
              lose(states.secondPack)
              return isRunning ? after(snapshots, states) : Effect.void
            })
          )
          if (!isRunning) yield* within(here, (snapshots) => after(snapshots, states))
        })
      )
    }
  }
})

const lockCases: ReadonlyArray<readonly [what: string, lock: (here: Place, states: States) => string]> = [
  ["the reference of a snapshot", ({ gitDir }, { second }) => join(gitDir, `refs/snapshots/${second.snapshotId}.lock`)],
  ["all packed references", ({ gitDir }) => join(gitDir, "packed-refs.lock")]
]

describe.runIf(hasGit)("a lock file for", () => {
  for (const [what, lockOf] of lockCases) {
    it.live(`${what} does not block snapshot and restore, and makes forget fail as unavailable with the name of the lock`, () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            const states = yield* twoStates(here, snapshots)
            const { first, one, second, two } = states
            git(here, "pack-refs", "--all")
            Fs.writeFileSync(lockOf(here, states), "")
            yield* snapshots.restore(first)
            assert.deepStrictEqual(read(here.root), one)
            yield* snapshots.restore(second)
            assert.deepStrictEqual(read(here.root), two)
            yield* snapshots.snapshot()
            const error = yield* Effect.flip(snapshots.forget(second))
            assert.strictEqual(error.reason, "unavailable", error.message)
            assert.include(error.detail, ".lock")
            assert.include(
              (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
              second.snapshotId
            )
            yield* snapshots.restore(second)
            Fs.rmSync(lockOf(here, states))
            yield* snapshots.forget(second)
          })
        )
      })
    )
  }
})

describe.runIf(hasGit)("a store", () => {
  it.live("that is removed under a running layer is unavailable to every call, and the tree stays unchanged", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const { first, second } = yield* twoStates(here, snapshots)
          Fs.rmSync(here.gitDir, { recursive: true })
          const before = read(here.root)
          yield* refusesRestoring(here, snapshots.restore(first), "unavailable")
          const asked: ReadonlyArray<Effect.Effect<unknown, Snapshots.SnapshotError>> = [
            snapshots.snapshot(),
            snapshots.list,
            snapshots.diff(first, second),
            snapshots.view(first),
            snapshots.forget(first),
            snapshots.details(first),
            snapshots.stats,
            snapshots.collect
          ]
          const reasons: Array<string> = []
          for (const one of asked) {
            const { _tag, detail, reason } = yield* Effect.flip(one)
            reasons.push(reason === "unavailable" ? _tag : `${reason}: ${detail}`)
          }
          assert.deepStrictEqual(
            reasons,
            asked.map(() => "SnapshotError")
          )
          assert.deepStrictEqual(read(here.root), before)
          assert.isFalse(Fs.existsSync(here.gitDir))
        })
      )
    })
  )

  it.live("that another layer re-created accepts and restores new snapshots of the old layer", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const { second, two } = yield* twoStates(here, snapshots)
          Fs.rmSync(here.gitDir, { recursive: true })
          yield* within({ ...here, root: Fs.mkdtempSync(join(here.top, "other-")) }, (others) => others.snapshot())
          yield* refusesRestoring(here, snapshots.restore(second), "unknown")
          const third = yield* snapshots.snapshot()
          fsck(here)
          for (const name of Fs.readdirSync(here.root)) Fs.rmSync(join(here.root, name), { recursive: true })
          yield* snapshots.restore(third)
          assert.deepStrictEqual(read(here.root), two)
        })
      )
    })
  )

  it.live("for another root does not list the snapshots of this root, and refuses them as incompatible", () =>
    Effect.gen(function* () {
      const here = yield* place
      const other = { ...here, root: join(here.top, "other") }
      Fs.mkdirSync(other.root)
      const { first, second } = yield* within(here, (snapshots) => twoStates(here, snapshots))
      yield* within(other, (snapshots) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* snapshots.list, [])
          yield* refusesRestoring(other, snapshots.restore(first), "incompatible")
          const moved = new Snapshots.FilesystemSnapshot({ ...second, rootPath: other.root })
          yield* refusesRestoring(other, snapshots.restore(moved), "unknown")
        })
      )
    })
  )

  it.live.runIf(needs("stores of others", () => isRoot, "it needs root"))("of another user is refused and left unchanged", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) => twoStates(here, snapshots))
      for (const part of ["", "objects", "refs", "objects/pack"]) {
        Fs.chownSync(join(here.gitDir, part), 12345, 12345)
        const before = read(here.gitDir)
        const error = yield* Effect.flip(within(here, (snapshots) => snapshots.list))
        assert.strictEqual((error as Snapshots.SnapshotError).reason, "refused", error.message)
        assert.deepStrictEqual(read(here.gitDir), before)
        Fs.chownSync(join(here.gitDir, part), 0, 0)
      }
    })
  )

  it.live.runIf(needs("disks that can only be read", canMount, "it needs root and a kernel that lets it mount a tmpfs"))(
    "on a read-only disk is unavailable for snapshot, forget and restore, and still lists",
    () =>
      Effect.gen(function* () {
        const top = yield* disk("size=100m")
        const here: Place = { ...(yield* place), gitDir: join(top, "store") }
        const { first } = yield* within(here, (snapshots) => twoStates(here, snapshots))
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            execFileSync("mount", ["-o", "remount,ro", top])
            assert.strictEqual((yield* Effect.flip(snapshots.snapshot())).reason, "unavailable")
            assert.strictEqual((yield* Effect.flip(snapshots.forget(first))).reason, "unavailable")
            assert.strictEqual((yield* snapshots.list).length, 2)
            yield* refusesRestoring(here, snapshots.restore(first), "unavailable")
          }).pipe(Effect.ensuring(Effect.sync(() => execFileSync("mount", ["-o", "remount,rw", top]))))
        )
      })
  )
})
