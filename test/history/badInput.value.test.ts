/** Snapshot values from callers, and stores that an attacker prepared. Both are hostile input. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { deflateSync } from "node:zlib"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { read } from "./awkward.ts"
import { git, gitWith, hasGit, type Place, place, refusesRestoring, twoStates, within } from "./badInput.ts"

const { FilesystemSnapshot } = Snapshots

type Fields = ConstructorParameters<typeof FilesystemSnapshot>[0]

const fieldsOf = (snapshot: Snapshots.FilesystemSnapshot): Fields => ({ ...snapshot })

type Reason = Snapshots.SnapshotRestoreError["reason"]

const edits = (
  first: Snapshots.FilesystemSnapshot,
  here: Place
): ReadonlyArray<readonly [what: string, Partial<Fields>, Reason]> => [
  ["another commit that is there", { commitRef: first.commitRef }, "unknown"],
  ["a commit that is not there", { commitRef: "0".repeat(40) }, "unknown"],
  ["an option of git as its commit", { commitRef: "--output=/tmp/x" }, "incompatible"],
  ["an expression as its commit", { commitRef: `${first.commitRef}^{tree}` }, "incompatible"],
  ["a commit in capital letters", { commitRef: first.commitRef.toUpperCase().replace(/^./, "A") }, "incompatible"],
  ["no commit", { commitRef: "" }, "incompatible"],
  ["a commit with a line feed", { commitRef: `${first.commitRef}\n` }, "incompatible"],
  ["an archive's reference", { commitRef: `zip:${"0".repeat(64)}` }, "incompatible"],
  ["a memory's reference", { commitRef: "mem-1" }, "incompatible"],
  ["the id of another snapshot", { snapshotId: first.snapshotId }, "unknown"],
  ["an id that is not there", { snapshotId: "00000000-0000-4000-8000-000000000000" }, "unknown"],
  ["a path as its id", { snapshotId: "../heads/main" }, "incompatible"],
  ["a pattern as its id", { snapshotId: "*" }, "incompatible"],
  ["no id", { snapshotId: "" }, "incompatible"],
  ["an id with a line feed behind", { snapshotId: `${first.snapshotId}\n` }, "incompatible"],
  ["an id in capital letters", { snapshotId: first.snapshotId.toUpperCase() }, "incompatible"],
  ["another root", { rootPath: "/" }, "incompatible"],
  ["the root by another name", { rootPath: `${here.root}/` }, "incompatible"],
  ["another git directory", { gitDir: join(here.top, "elsewhere") }, "incompatible"],
  ["the git directory by another name", { gitDir: `${here.gitDir}/../store` }, "incompatible"],
  ["an option as its git directory", { gitDir: "--help" }, "incompatible"]
]

const notValues: ReadonlyArray<readonly [what: string, value: unknown]> = [
  ["undefined", undefined],
  ["null", null],
  ["a text", "snapshot"],
  ["an empty object", {}],
  ["an array", []]
]

describe.runIf(hasGit)("a snapshot as a value", () => {
  it.live("with an edited location is refused by every call, and nothing changes", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const { first, second } = yield* twoStates(here, snapshots)
          const listed = yield* snapshots.list
          for (const [what, edit, reason] of edits(first, here)) {
            const edited = new FilesystemSnapshot({ ...fieldsOf(second), ...edit })
            const error = yield* refusesRestoring(here, snapshots.restore(edited), reason).pipe(
              Effect.mapError((result) => new Error(`${what} was restored: ${JSON.stringify(result)}`))
            )
            assert.isAbove(error.detail.length, 5, what)
            for (const call of [
              snapshots.diff(edited),
              snapshots.view(edited),
              snapshots.details(edited),
              snapshots.forget(edited),
              snapshots.fork(edited)
            ]) {
              const { reason } = yield* Effect.flip<unknown, Snapshots.SnapshotError, never>(call)
              assert.include(["unknown", "refused"], reason, what)
            }
          }
          assert.deepStrictEqual(yield* snapshots.list, listed)
          assert.isFalse(Fs.existsSync(join(here.top, "elsewhere")))
        })
      )
    })
  )

  it.live("with an edited tag or time still refers to the same tree", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const { first, one, second } = yield* twoStates(here, snapshots)
          for (const edit of [{ tag: "--help\n\u0000" }, { createdAt: DateTime.makeUnsafe(0) }]) {
            yield* snapshots.restore(second)
            yield* snapshots.restore(new FilesystemSnapshot({ ...fieldsOf(first), ...edit }))
            assert.deepStrictEqual(read(here.root), one)
          }
        })
      )
    })
  )

  it.live("is refused as incompatible if it has another type", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          const { second } = yield* twoStates(here, snapshots)
          const twin = { ...fieldsOf(second), snapshotId: { toString: () => second.snapshotId } }
          for (const [, value] of [...notValues, ["an id that is not a string", twin]] as const) {
            yield* refusesRestoring(here, snapshots.restore(value as Snapshots.FilesystemSnapshot), "incompatible")
          }
        })
      )
    })
  )

  it.live("is refused as incompatible by another kind of store, and as unknown if its archive is missing", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { second } = yield* within(here, (snapshots) => twoStates(here, snapshots))
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const zipped = yield* snapshots.snapshot()
        yield* refusesRestoring(here, snapshots.restore(second), "incompatible")
        yield* within(here, (others) => refusesRestoring(here, others.restore(zipped), "incompatible"))
        const wrong = new FilesystemSnapshot({ ...fieldsOf(zipped), commitRef: `zip:${"0".repeat(64)}` })
        yield* refusesRestoring(here, snapshots.restore(wrong), "unknown")
      }).pipe(Effect.provide(Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root: here.root })))))
    })
  )
})

/** Returns a row of a tree as git stores it. */
const row = (mode: string, name: string | Buffer, id: string): Buffer =>
  Buffer.concat([Buffer.from(`${mode} `), Buffer.from(name), Buffer.from([0]), Buffer.from(id, "hex")])

/** Writes a loose object without the checks of git. */
const object = (here: Place, kind: "blob" | "tree", body: string | Uint8Array): string => {
  const bytes = Buffer.concat([Buffer.from(`${kind} ${Buffer.byteLength(body)}\0`), Buffer.from(body as string)])
  const id = createHash("sha1").update(bytes).digest("hex")
  const directory = join(here.gitDir, "objects", id.slice(0, 2))
  Fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
  Fs.writeFileSync(join(directory, id.slice(2)), deflateSync(bytes))
  return id
}

/** Commits a planted tree as a snapshot of this root in our format. */
const planted = (here: Place, like: Snapshots.FilesystemSnapshot, tree: string): Snapshots.FilesystemSnapshot => {
  const id = "11111111-2222-4333-8444-555555555555"
  const body = git(here, "cat-file", "commit", like.commitRef)
    .replace(/^tree .*/, `tree ${tree}`)
    .replace(like.snapshotId, id)
  const commitRef = gitWith(here, `${body}\n`, "hash-object", "-t", "commit", "-w", "--stdin")
  Fs.writeFileSync(join(here.gitDir, "refs/snapshots", id), `${commitRef}\n`)
  return new FilesystemSnapshot({ ...fieldsOf(like), commitRef, snapshotId: id })
}

type Plant = (here: Place, blob: string, empty: string) => string

type Rows = ReadonlyArray<readonly [mode: string, name: string | Buffer, id?: string]>

const tree =
  (...rows: Rows): Plant =>
  (here, blob, empty) =>
    object(
      here,
      "tree",
      Buffer.concat(rows.map(([mode, name, id]) => row(mode, name, id ?? (mode === "40000" ? empty : blob))))
    )

const modesOf =
  (text: string, ...rows: Rows): Plant =>
  (here, blob, empty) =>
    tree(["100644", "%fs-algebra%modes", object(here, "blob", text)], ...rows)(here, blob, empty)

const deep: Plant = (here, blob, empty) => {
  let id = empty
  for (let i = 0; i < 3000; i++) id = tree(["40000", "d", id])(here, blob, empty)
  return id
}

const hostile: ReadonlyArray<readonly [what: string, plant: Plant, reason: Reason]> = [
  ["..", tree(["40000", ".."]), "corrupt"],
  [".", tree(["100644", "."]), "corrupt"],
  ["a slash", tree(["100644", "../out"]), "corrupt"],
  ["an absolute name", tree(["100644", "/etc/out"]), "corrupt"],
  ["an empty name", tree(["100644", ""]), "corrupt"],
  [".git itself", tree(["40000", ".git"]), "corrupt"],
  [".GIT", tree(["40000", ".GIT"]), "corrupt"],
  ["git~1", tree(["40000", "git~1"]), "corrupt"],
  [".gitmodules", tree(["100644", ".gitmodules"]), "corrupt"],
  ["a backslash", tree(["100644", "..\\out"]), "corrupt"],
  ["a line feed", tree(["100644", "a\nb"]), "corrupt"],
  ["a name that is not UTF-8", tree(["100644", Buffer.from([0xff, 0xfe])]), "corrupt"],
  ["a commit of another repository", tree(["160000", "sub", "1".repeat(40)]), "corrupt"],
  ["an obsolete mode", tree(["100664", "f"]), "corrupt"],
  ["a set-uid mode", tree(["104755", "f"]), "corrupt"],
  ["a mode that is not a number", tree(["1006448", "f"]), "corrupt"],
  ["one name twice", tree(["100644", "f"], ["100644", "f"]), "corrupt"],
  ["a file and a directory of one name", tree(["100644", "f"], ["40000", "f"]), "corrupt"],
  ["one name twice after our prefix", tree(["100644", "%fs-algebra%=.git"], ["40000", "%fs-algebra%=.git"]), "corrupt"],
  ["a name after our prefix that needs no prefix", tree(["100644", "%fs-algebra%=f"]), "corrupt"],
  [".. after our prefix", tree(["100644", "%fs-algebra%=.."]), "corrupt"],
  [".. in hexadecimal", tree(["100644", "%fs-algebra%~2e2e"]), "corrupt"],
  ["a slash in hexadecimal", tree(["100644", "%fs-algebra%~612f62"]), "corrupt"],
  ["a NUL in hexadecimal", tree(["100644", "%fs-algebra%~ff00"]), "corrupt"],
  ["an unknown prefix of ours", tree(["100644", "%fs-algebra%else"]), "corrupt"],
  ["names out of order", tree(["100644", "b"], ["100644", "a"]), "corrupt"],
  ["a missing blob", tree(["100644", "f", "2".repeat(40)]), "corrupt"],
  ["a tree in place of a blob", (here, blob, empty) => tree(["100644", "f", empty])(here, blob, empty), "corrupt"],
  ["a blob in place of a tree", (here, blob, empty) => tree(["40000", "d", blob])(here, blob, empty), "corrupt"],
  ["a missing tree", tree(["40000", "d", "3".repeat(40)]), "corrupt"],
  [
    "a link with no target",
    (here, blob, empty) => tree(["120000", "l", object(here, "blob", "")])(here, blob, empty),
    "corrupt"
  ],
  [
    "a link with a NUL",
    (here, blob, empty) => tree(["120000", "l", object(here, "blob", "a\0b")])(here, blob, empty),
    "corrupt"
  ],
  ["recorded modes beyond the permission bits", modesOf("4755 f\n", ["100755", "f"]), "corrupt"],
  ["a recorded mode of a missing entry", modesOf("0600 g\n", ["100644", "f"]), "corrupt"],
  ["a mode that is recorded twice", modesOf("0600 f\n0640 f\n", ["100644", "f"]), "corrupt"],
  ["a recorded mode of ..", modesOf("0600 ..\n", ["100644", "f"]), "corrupt"],
  ["a recorded mode that is invalid", modesOf("rwx f\n", ["100644", "f"]), "corrupt"],
  ["a directory in place of the recorded modes", tree(["40000", "%fs-algebra%modes"]), "corrupt"]
]

describe.runIf(hasGit)("a store that an attacker prepared", () => {
  const scope = Effect.runSync(Scope.make())
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  /** One store for all hostile trees. Each test leaves the tree of the first snapshot. */
  const shared = Effect.runSync(
    Effect.cached(
      Effect.gen(function* () {
        const here = yield* Scope.provide(place, scope)
        const states = yield* within(here, (snapshots) => twoStates(here, snapshots))
        return { ...states, here, blob: object(here, "blob", "hostile\n"), empty: object(here, "tree", "") }
      })
    )
  )

  for (const [what, plant, reason] of hostile) {
    it.live(`restores nothing of a tree with ${what}, at the root or below`, () =>
      Effect.gen(function* () {
        const { blob, empty, first, here, one, second } = yield* shared
        const bad = plant(here, blob, empty)
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            for (const top of [bad, tree(["40000", "below", bad])(here, blob, empty)]) {
              const snapshot = planted(here, second, top)
              yield* refusesRestoring(here, snapshots.restore(snapshot), reason)
              const view = yield* snapshots.view(snapshot)
              assert.strictEqual((yield* Effect.result(view.readString(top === bad ? "f" : "below/f")))._tag, "Failure")
              yield* snapshots.restore(first)
              assert.deepStrictEqual(read(here.root), one)
              assert.deepStrictEqual(Fs.readdirSync(here.top).sort(), ["root", "store"])
            }
          })
        )
      })
    )
  }

  it.live("writes nothing outside the root if a tree has a symlink that leads outside, and an entry below the symlink", () =>
    Effect.gen(function* () {
      const here = yield* place
      const outside = join(here.top, "outside")
      Fs.mkdirSync(outside)
      const { second } = yield* within(here, (snapshots) => twoStates(here, snapshots))
      const blob = object(here, "blob", "hostile\n")
      const to = object(here, "blob", outside)
      const inside = tree(["100644", "f"])(here, blob, "")
      const both = tree(["120000", "x", to], ["40000", "x", inside])(here, blob, "")
      yield* within(here, (snapshots) => refusesRestoring(here, snapshots.restore(planted(here, second, both)), "corrupt"))
      // A link alone is restored as a link, and a later tree with a directory at the same path replaces it.
      const link = planted(here, second, tree(["120000", "x", to])(here, blob, ""))
      yield* within(here, (snapshots) => snapshots.restore(link))
      assert.strictEqual(Fs.readlinkSync(join(here.root, "x")), outside)
      const directory = planted(here, second, tree(["40000", "x", inside])(here, blob, ""))
      yield* within(here, (snapshots) => snapshots.restore(directory))
      assert.deepStrictEqual(Fs.readdirSync(outside), [])
      assert.strictEqual(Fs.readFileSync(join(here.root, "x/f"), "utf8"), "hostile\n")
    })
  )

  it.live("is refused if its directories are deeper than any path, and nothing changes", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { second } = yield* within(here, (snapshots) => twoStates(here, snapshots))
      const blob = object(here, "blob", "hostile\n")
      const empty = object(here, "tree", "")
      const deepest = planted(here, second, deep(here, blob, empty))
      yield* within(here, (snapshots) =>
        Effect.gen(function* () {
          yield* refusesRestoring(here, snapshots.restore(deepest), "io")
          yield* refusesRestoring(here, snapshots.restore(deepest, { dryRun: true }), "io")
        })
      )
    })
  )

  it.live("is refused if 40 nested trees expand to 2^40 files, because the tree exceeds the limit of entries", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { second } = yield* within(here, (snapshots) => twoStates(here, snapshots))
      let id = object(here, "blob", "bomb\n")
      for (let level = 0; level < 40; level++) {
        const mode = level === 0 ? "100644" : "40000"
        id = tree([mode, "a", id], [mode, "b", id])(here, "", "")
      }
      const bomb = planted(here, second, id)
      yield* within(
        here,
        (snapshots) =>
          Effect.gen(function* () {
            const { detail } = yield* refusesRestoring(here, snapshots.restore(bomb), "io")
            assert.include(detail, "entries")
            assert.strictEqual((yield* Effect.flip(snapshots.diff(bomb))).reason, "budget")
            const view = yield* snapshots.view(bomb)
            assert.strictEqual((yield* view.stat(Array.from({ length: 20 }, () => "a").join("/"))).kind, "directory")
          }),
        { maxFiles: 2000 }
      )
    })
  )

  it.live("does not list a commit whose message has a foreign root, a foreign id or an invalid number", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { second } = yield* within(here, (snapshots) => twoStates(here, snapshots))
      const body = git(here, "cat-file", "commit", second.commitRef)
      const id = "11111111-2222-4333-8444-555555555555"
      for (const [from, to] of [
        [here.root, "/"],
        [second.snapshotId, "99999999-2222-4333-8444-555555555555"],
        ['"version":1', '"version":2'],
        ['"files":', '"files":-'],
        ['"bytes":', '"bytes":1e999,"x":'],
        ['"createdAt":', '"createdAt":9e15,"x":']
      ] as const) {
        const forged = body.replace(second.snapshotId, from === second.snapshotId ? to : id).replace(from, to)
        assert.notStrictEqual(forged, body)
        const commitRef = gitWith(here, `${forged}\n`, "hash-object", "--literally", "-t", "commit", "-w", "--stdin")
        Fs.writeFileSync(join(here.gitDir, "refs/snapshots", id), `${commitRef}\n`)
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            assert.strictEqual((yield* snapshots.list).length, 2, to)
            const value = new FilesystemSnapshot({ ...fieldsOf(second), commitRef, snapshotId: id })
            yield* refusesRestoring(here, snapshots.restore(value), "unknown")
          })
        )
      }
    })
  )
})
