import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import NodeFs, * as Fs from "node:fs"
import { join } from "node:path"
import { collect } from "../../../src/history/git/collect.ts"
import { open } from "../../../src/history/git/store.ts"
import { isRoot, needs } from "../../faults/ground.ts"
import { allObjects, children, commit, directory, fresh, fsck, git, hasGit, hasProc, snapshot } from "./support.ts"

const modeOf = (path: string): number => Fs.statSync(path).mode & 0o777

const withUmask = <A, E, R>(umask: number, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => process.umask(umask)),
    () => effect,
    (before) => Effect.sync(() => process.umask(before))
  )

const idOf = (fill: string): string => fill.repeat(40)

describe.runIf(hasGit)("a store", () => {
  for (const umask of [0, 0o022, 0o777]) {
    it.effect(`is private to its owner, under umask ${umask.toString(8)}`, () =>
      Effect.gen(function* () {
        const base = yield* directory
        const store = yield* withUmask(umask, open(join(base, "store")))
        for (const name of ["", "objects", "objects/pack", "refs", "refs/snapshots"]) {
          assert.strictEqual(modeOf(join(store.directory, name)), 0o700, name)
        }
        assert.strictEqual(store.packDirectory, join(store.directory, "objects", "pack"))
      })
    )
  }

  it.effect("is a bare repository for git, with a description", () =>
    Effect.gen(function* () {
      const { directory } = yield* fresh
      assert.strictEqual(git(directory, "rev-parse", "--is-bare-repository"), "true")
      assert.strictEqual(git(directory, "config", "--get", "gc.auto"), "0")
      assert.strictEqual(fsck(directory), "")
      assert.include(Fs.readFileSync(join(directory, "description"), "utf8"), "fs-algebra")
      assert.isFalse(Fs.existsSync(join(directory, "hooks")))
    })
  )

  it.effect("is created in an empty directory or below missing directories, and opened again", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const path = join(base, "a", "b", "store")
      Fs.mkdirSync(path, { recursive: true, mode: 0o755 })
      const first = yield* open(path)
      const taken = yield* snapshot(first, { a: "1" })
      assert.strictEqual(modeOf(path), 0o700)
      assert.strictEqual(yield* (yield* open(path)).snapshots.get(taken.id), taken.commit)
      yield* open(join(base, "c", "d"))
    })
  )

  it.effect("has complete files even if the system writes only a few bytes at a time", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const { writeSync } = NodeFs
      const short = (descriptor: number, content: unknown, at: number = 0, ...rest: ReadonlyArray<unknown>): number => {
        const bytes = typeof content === "string" ? Buffer.from(content) : (content as Uint8Array)
        return writeSync(descriptor, bytes, at, Math.min(3, bytes.length - at), (rest[1] as number | undefined) ?? null)
      }
      const store = yield* Effect.acquireUseRelease(
        Effect.sync(() => void Object.assign(NodeFs, { writeSync: short })),
        () => open(join(base, "store")),
        () => Effect.sync(() => void Object.assign(NodeFs, { writeSync }))
      )
      assert.strictEqual(Fs.readFileSync(join(store.directory, "HEAD"), "utf8"), "ref: refs/heads/snapshots\n")
      assert.strictEqual(git(store.directory, "rev-parse", "--is-bare-repository"), "true")
    })
  )

  it.effect("that was created only in part is completed", () =>
    Effect.gen(function* () {
      const base = yield* directory
      for (const missing of [
        ["config"],
        ["config", "HEAD"],
        ["config", "HEAD", "description", "refs/heads"],
        ["config", "turns"]
      ]) {
        const path = join(base, missing.length.toString() + missing.at(-1)!.replace("/", "-"))
        yield* open(path)
        for (const name of missing) Fs.rmSync(join(path, name), { recursive: true })
        Fs.writeFileSync(join(path, "tmp_0123456789abcdef01"), "half")
        const store = yield* open(path)
        yield* snapshot(store, { a: "1" })
        assert.strictEqual(fsck(path), "")
      }
    })
  )

  it.effect("may be created by two callers concurrently", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const [a, b] = yield* Effect.all([open(join(base, "s")), open(join(base, "s"))], { concurrency: 2 })
      const taken = yield* snapshot(a, { a: "1" })
      assert.strictEqual(yield* b.snapshots.get(taken.id), taken.commit)
    })
  )

  it.effect("reports the same size as du, and the numbers of packs and snapshots", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      for (let i = 0; i < 3; i++) yield* snapshot(store, { a: "x".repeat(100_000), b: `${i}` }, i)
      yield* store.git.run(["hash-object", "-w", "--stdin"], { input: "loose" })
      const du = Number(execFileSync("du", ["-s", "-B1", store.directory], { encoding: "utf8" }).split("\t")[0])
      const { bytes, objects, packs, snapshots } = yield* store.stats
      assert.deepStrictEqual({ bytes, packs, snapshots }, { bytes: du, packs: 3, snapshots: 3 })
      // The unchanged blob is in each of the three packs, because fast-import writes each pack separately.
      assert.isAtLeast(objects, allObjects(store).length)
    })
  )
})

const foreignUser = 65534

/** Changes to a store, and the message of the refusal. */
const tampered: ReadonlyArray<readonly [what: string, change: (store: string) => void, words: string]> = [
  ["an include in its config", append("config", "[include]\n\tpath = /tmp/evil\n"), "include.path"],
  ["a conditional include", append("config", '[includeIf "gitdir:/"]\n\tpath = /tmp/evil\n'), "includeif.gitdir:/.path"],
  ["another hooks directory in its config", edit("config", "/dev/null", "/tmp/evil"), "core.hookspath"],
  ["a second hooksPath", append("config", "[core]\n\thooksPath = /tmp/evil\n"), "core.hookspath"],
  ["a filter", append("config", '[filter "x"]\n\tclean = evil\n'), "filter.x.clean"],
  ["a file system monitor", append("config", "[core] fsmonitor = evil\n"), "core.fsmonitor"],
  ["an extension", append("config", "[extensions]\n\tpartialClone = evil\n"), "extensions.partialclone"],
  ["a work tree", append("config", "[core]\n\tworktree = /\n"), "core.worktree"],
  ["a comment in its config", append("config", "# hello\n"), "config"],
  ["a link in place of its config", linked("config"), "config"],
  ["a link in place of its HEAD", linked("HEAD"), "HEAD"],
  ["another HEAD", edit("HEAD", "refs/heads/snapshots", "refs/heads/other"), "HEAD"],
  ["a HEAD of many megabytes", append("HEAD", " ".repeat(5_000_000)), "HEAD"],
  ["alternates", put("objects/info/alternates", "/tmp/evil/objects\n"), "objects/info/alternates"],
  ["http alternates", put("objects/info/http-alternates", "http://evil\n"), "objects/info/http-alternates"],
  ["a common directory", put("commondir", "/tmp/evil\n"), "commondir"],
  ["a config.worktree file", put("config.worktree", "[core]\n"), "config.worktree"],
  ["grafts", put("info/grafts", `${idOf("1")}\n`), "info/grafts"],
  ["a shallow file", put("shallow", `${idOf("1")}\n`), "shallow"],
  ["replaced objects", put(`refs/replace/${idOf("1")}`, `${idOf("2")}\n`), "refs/replace"],
  ["replaced objects, packed", put("packed-refs", `${idOf("2")} refs/replace/${idOf("1")}\n`), "refs/replace"],
  ["a link in place of its objects", linked("objects"), "objects"],
  ["a link in place of its packs", linked("objects/pack"), "objects/pack"],
  ["a link in place of a directory of objects", link("objects/ab"), "objects/ab"],
  ["a link in place of a pack", link("objects/pack/pack-1.pack"), "objects/pack/pack-1.pack"],
  ["a link in place of its references", linked("refs"), "refs"],
  ["a link in place of its snapshot references", linked("refs/snapshots"), "refs/snapshots"],
  ["a link in place of a snapshot reference", link(`refs/snapshots/${randomUUID()}`), "refs/snapshots/"],
  ["a link in place of packed references", link("packed-refs"), "packed-refs"],
  ["a link in place of its lock directory", linked("turns"), "turns"],
  ["a link in place of its count of removals", link("forgotten"), "forgotten"],
  ["a link in place of a cache of file stamps", link("seen-0123456789abcdef"), "seen-0123456789abcdef"],
  ["a pipe in place of its count of removals", pipe("forgotten"), "forgotten"],
  ["a pipe in place of a pack", pipe("objects/pack/pack-1.pack"), "objects/pack/pack-1.pack"],
  ["a pipe in place of an index", pipe("objects/pack/pack-1.idx"), "objects/pack/pack-1.idx"],
  ["a pipe in place of an object", pipe(`objects/ab/${"c".repeat(38)}`), "objects/ab/"],
  ["a link in place of an object", link(`objects/ab/${"c".repeat(38)}`), "objects/ab/"],
  ["a pipe in place of a snapshot reference", pipe(`refs/snapshots/${randomUUID()}`), "refs/snapshots/"],
  ["a directory that other users may write to", (store) => Fs.chmodSync(store, 0o777), "other users may write"],
  [
    "packs that other users may write to",
    (store) => Fs.chmodSync(join(store, "objects", "pack"), 0o770),
    "other users may write"
  ]
]

function append(name: string, text: string) {
  return (store: string): void => Fs.appendFileSync(join(store, name), text)
}

function edit(name: string, from: string, to: string) {
  return (store: string): void => {
    const path = join(store, name)
    Fs.writeFileSync(path, Fs.readFileSync(path, "utf8").replace(from, to))
  }
}

function put(name: string, text: string) {
  return (store: string): void => {
    Fs.mkdirSync(join(store, name, ".."), { recursive: true })
    Fs.writeFileSync(join(store, name), text)
  }
}

function link(name: string) {
  return (store: string): void => {
    Fs.mkdirSync(join(store, name, ".."), { recursive: true })
    Fs.symlinkSync("/tmp", join(store, name))
  }
}

function pipe(name: string) {
  return (store: string): void => {
    Fs.mkdirSync(join(store, name, ".."), { recursive: true })
    execFileSync("mkfifo", [join(store, name)])
  }
}

/** Moves the entry away and puts a link to it in its place. */
function linked(name: string) {
  return (store: string): void => {
    const moved = `${store}-moved`
    Fs.renameSync(join(store, name), moved)
    Fs.symlinkSync(moved, join(store, name))
  }
}

describe.runIf(hasGit)("a store that an attacker prepared", () => {
  for (const [what, change, words] of tampered) {
    it.effect(`is refused with ${what}`, () =>
      Effect.gen(function* () {
        const base = yield* directory
        const path = join(base, "store")
        yield* Effect.scoped(open(path))
        change(path)
        const fault = yield* Effect.flip(open(path))
        assert.strictEqual(fault.reason, "refused", fault.detail)
        assert.include(fault.detail, words)
      })
    )
  }

  it.effect("is refused if it is a link or not a directory", () =>
    Effect.gen(function* () {
      const base = yield* directory
      yield* open(join(base, "store"))
      Fs.symlinkSync(join(base, "store"), join(base, "link"))
      Fs.writeFileSync(join(base, "file"), "")
      Fs.symlinkSync(join(base, "nowhere"), join(base, "dangling"))
      for (const name of ["link", "file", "dangling"]) {
        assert.strictEqual((yield* Effect.flip(open(join(base, name)))).reason, "refused", name)
      }
      assert.isFalse(Fs.existsSync(join(base, "nowhere")))
    })
  )

  it.effect("is refused and left unchanged if it is a foreign directory or repository", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const theirs = join(base, "theirs")
      Fs.mkdirSync(theirs, { mode: 0o755 })
      Fs.writeFileSync(join(theirs, "notes.txt"), "mine")
      const repository = join(base, "repository")
      execFileSync("git", ["init", "--quiet", "--bare", repository])
      for (const path of [theirs, repository]) {
        const before = Fs.readdirSync(path, { recursive: true })
        const mode = modeOf(path)
        assert.strictEqual((yield* Effect.flip(open(path))).reason, "refused")
        assert.deepStrictEqual([Fs.readdirSync(path, { recursive: true }), modeOf(path)], [before, mode])
      }
    })
  )

  it.runIf(needs("stores of other users", () => isRoot, "run as root"))("is refused if it belongs to another user", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const base = yield* directory
          for (const name of ["", "objects/pack", "refs/snapshots"]) {
            const path = join(base, `store-${name.replace("/", "-")}`)
            yield* Effect.scoped(open(path))
            Fs.chownSync(join(path, name), foreignUser, foreignUser)
            const fault = yield* Effect.flip(open(path))
            assert.deepStrictEqual([fault.reason, fault.detail.includes("another user")], ["refused", true])
          }
        })
      )
    )
  )

  it.effect("becomes private if other users could read it", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const path = join(base, "store")
      yield* Effect.scoped(open(path))
      Fs.chmodSync(path, 0o755)
      yield* open(path)
      assert.strictEqual(modeOf(path), 0o700)
    })
  )

  it.effect("lists only well-formed references to commits as snapshots", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { commit: id, id: own } = yield* snapshot(store, { a: "1" })
      for (const name of [
        "refs/heads/main",
        "refs/snapshots/main",
        `refs/snapshots/deep/${randomUUID()}`,
        `refs/snapshots/${randomUUID().toUpperCase()}`
      ]) {
        git(store.directory, "update-ref", name, id)
      }
      git(store.directory, "symbolic-ref", `refs/snapshots/${randomUUID()}`, "refs/heads/main")
      assert.deepStrictEqual(
        (yield* store.snapshots.list).map((entry) => entry.id),
        [own]
      )
      assert.strictEqual((yield* store.stats).snapshots, 1)
    })
  )

  it.effect("lists intact snapshots, and reports as damaged each reference to a tree or to a missing object", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { commit: id, id: intact } = yield* snapshot(store, { a: "1" })
      const tree = git(store.directory, "rev-parse", `${id}^{tree}`)
      const [ofTree, ofNothing] = [randomUUID(), randomUUID()]
      git(store.directory, "update-ref", `refs/snapshots/${ofTree}`, tree)
      Fs.writeFileSync(join(store.directory, "refs", "snapshots", ofNothing), `${idOf("1")}\n`)
      const list = Effect.map(store.snapshots.list, (all) => all.map((each) => each.id))
      assert.deepStrictEqual(yield* list, [intact])
      assert.deepStrictEqual((yield* store.snapshots.damaged).map((each) => each.id).sort(), [ofTree, ofNothing].sort())
      assert.strictEqual((yield* Effect.flip(store.commit(idOf("1")))).reason, "corrupt")
      assert.strictEqual((yield* Effect.flip(collect(store))).reason, "corrupt")
      for (const name of [ofTree, ofNothing]) assert.isTrue(yield* store.snapshots.remove(name))
      assert.deepStrictEqual(yield* store.snapshots.damaged, [])
      yield* collect(store)
      assert.deepStrictEqual(yield* list, [intact])
    })
  )
})

describe.runIf(hasGit)("snapshots in a store", () => {
  it.effect("are listed by time of creation, with their messages", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const times = [5, 1, 3, 1_900_000_000, 3]
      const taken: Array<readonly [number, string]> = []
      for (const seconds of times) {
        const { id } = yield* snapshot(store, { a: `${seconds}` }, seconds, `at ${seconds}\n\n{"größe":"€ ${seconds}"}`)
        taken.push([seconds, id])
      }
      const expected = taken.sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1))
      const list = yield* store.snapshots.list
      assert.deepStrictEqual(
        list.map(({ id, message }) => [id, message]),
        expected.map(([seconds, id]) => [id, `at ${seconds}\n\n{"größe":"€ ${seconds}"}`])
      )
      const said = yield* store.commit(list[0]!.commit)
      assert.strictEqual(said.tree, git(store.directory, "rev-parse", `${list[0]!.commit}^{tree}`))
      assert.strictEqual(said.createdAt, 1000)
    })
  )

  it.effect("are never overwritten", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { commit: first, id } = yield* snapshot(store, { a: "1" })
      const second = yield* commit(store, { a: "2" })
      assert.strictEqual((yield* Effect.flip(store.snapshots.put(id, second))).reason, "refused")
      assert.strictEqual(yield* store.snapshots.get(id), first)
    })
  )

  it.effect("are stored only for existing commits", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const made = yield* commit(store, { a: "1" })
      const tree = git(store.directory, "rev-parse", `${made}^{tree}`)
      for (const target of [idOf("1"), tree, "HEAD", `${made}\ndelete refs/heads/x`, ""]) {
        assert.strictEqual((yield* Effect.flip(store.snapshots.put(randomUUID(), target))).reason, "corrupt", target)
      }
      assert.deepStrictEqual(yield* store.snapshots.list, [])
    })
  )

  it.effect("have UUIDs, and every other name is refused or unknown", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { commit: made, id } = yield* snapshot(store, { a: "1" })
      for (const name of ["", "..", "*", `../snapshots/${id}`, `${id}*`, id.toUpperCase(), `${id}\n`, `${id} x`, "--all"]) {
        assert.strictEqual((yield* Effect.flip(store.snapshots.put(name, made))).reason, "refused", name)
        assert.isUndefined(yield* store.snapshots.get(name), name)
        assert.isFalse(yield* store.snapshots.remove(name), name)
      }
      assert.strictEqual(git(store.directory, "for-each-ref", "--format=%(refname)"), `refs/snapshots/${id}`)
    })
  )

  it.effect("are removed only once", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { id } = yield* snapshot(store, { a: "1" })
      yield* store.git.run(["pack-refs", "--all", "--prune"])
      const removals = yield* Effect.all([store.snapshots.remove(id), store.snapshots.remove(id)], { concurrency: 2 })
      assert.deepStrictEqual(removals.toSorted(), [false, true])
      assert.isUndefined(yield* store.snapshots.get(id))
      assert.isFalse(yield* store.snapshots.remove(id))
      assert.isFalse(yield* store.snapshots.remove(randomUUID()))
    })
  )

  it.effect("can be read but not changed while a leftover lock exists, and the failure of put names the lock", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const id = randomUUID()
      const made = yield* commit(store, { a: "1" })
      const lock = join(store.directory, "refs", "snapshots", `${id}.lock`)
      Fs.writeFileSync(lock, "")
      const fault = yield* Effect.flip(store.snapshots.put(id, made))
      assert.deepStrictEqual([fault.reason, fault.detail.includes(`${id}.lock`)], ["unavailable", true])
      Fs.unlinkSync(lock)
      yield* store.snapshots.put(id, made)
      Fs.writeFileSync(join(store.directory, "packed-refs.lock"), "")
      assert.strictEqual((yield* Effect.flip(store.snapshots.remove(id))).reason, "unavailable")
      assert.strictEqual(yield* store.snapshots.get(id), made)
    })
  )
})

describe.runIf(hasGit)("objects in a store", () => {
  it.effect("have the kind, size and content that git reports", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const large = Buffer.alloc(3_000_000, "line\n")
      const { commit: made } = yield* snapshot(store, { a: "", b: "\0\r\n\ufffd", "d/c": large })
      const ids = allObjects(store)
      const found = yield* Effect.forEach(ids, store.reader.object, { concurrency: "unbounded" })
      const sizes = yield* store.reader.sizes(ids)
      for (const [i, id] of ids.entries()) {
        const kind = git(store.directory, "cat-file", "-t", id)
        const body = execFileSync("git", ["--git-dir", store.directory, "cat-file", kind, id], { maxBuffer: 2 ** 28 })
        assert.strictEqual(found[i]!.kind, kind)
        assert.isTrue(found[i]!.body.equals(body))
        assert.deepStrictEqual([sizes[i]!.kind, sizes[i]!.size], [found[i]!.kind, body.length])
      }
      assert.include(ids, made)
    })
  )

  it.effect("that are missing, or have an invalid id, fail without effect on other reads", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const { commit: made } = yield* snapshot(store, { a: "1" })
      const ids = [idOf("1"), made, "HEAD", "--batch", `${made}\n${made}`, made.toUpperCase(), made, "", made.slice(1)]
      const found = yield* Effect.forEach(ids, (id) => Effect.exit(store.reader.object(id)), { concurrency: "unbounded" })
      assert.deepStrictEqual(found.map(Exit.isSuccess), [false, true, false, false, false, false, true, false, false])
      assert.strictEqual((yield* Effect.flip(store.reader.object(idOf("1")))).reason, "corrupt")
      assert.strictEqual((yield* Effect.flip(store.reader.sizes([made, "HEAD"]))).reason, "corrupt")
      const [unknown, known] = yield* store.reader.sizes([idOf("1"), made])
      assert.deepStrictEqual([unknown, known?.kind], [undefined, "commit"])
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(store.reader.stream(made)))).reason, "corrupt")
    })
  )

  it.effect("that are damaged fail, and all other objects can be read", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const write = (text: string) =>
        Effect.map(store.git.run(["hash-object", "-w", "--stdin"], { input: text }), ({ stdout }) => stdout.toString().trim())
      const pathOf = (id: string): string => join(store.directory, "objects", id.slice(0, 2), id.slice(2))
      const [good, garbled, exchanged, cut] = yield* Effect.all(["good", "garbled", "exchanged", "cut".repeat(5000)].map(write))
      Fs.chmodSync(pathOf(garbled!), 0o600)
      Fs.writeFileSync(pathOf(garbled!), "no zlib")
      Fs.rmSync(pathOf(exchanged!))
      Fs.copyFileSync(pathOf(good!), pathOf(exchanged!))
      Fs.chmodSync(pathOf(cut!), 0o600)
      Fs.truncateSync(pathOf(cut!), 30)
      const ids = [good!, garbled!, good!, exchanged!, good!, cut!, good!]
      const found = yield* Effect.forEach(ids, (id) => Effect.result(store.reader.object(id)), { concurrency: "unbounded" })
      assert.deepStrictEqual(
        found.map((each) => (each._tag === "Success" ? each.success.body.toString() : each.failure.reason)),
        ["good", "corrupt", "good", "corrupt", "good", "corrupt", "good"]
      )
      for (const id of [garbled!, exchanged!, cut!]) {
        assert.strictEqual((yield* Effect.flip(Stream.runDrain(store.reader.stream(id)))).reason, "corrupt", id)
      }
    })
  )

  it.effect("are read for the remaining callers when other callers are interrupted", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      yield* snapshot(store, Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, `${i} `.repeat(20_000)])))
      const ids = allObjects(store)
      yield* store.reader.object(ids[0]!)
      const processes = hasProc ? children() : []
      const asked = Array.from({ length: 400 }, (_, i) => ids[i % ids.length]!)
      const fibers = yield* Effect.forEach(asked, (id) => Effect.forkChild(store.reader.object(id), { startImmediately: true }))
      yield* Effect.forEach(
        fibers.filter((_, i) => i % 2 === 1),
        Fiber.interrupt
      )
      // The reader checks each body against its id.
      for (const [i, fiber] of fibers.entries()) if (i % 2 === 0) yield* Fiber.join(fiber)
      yield* store.reader.object(ids[0]!)
      // The process was not restarted.
      if (hasProc) assert.deepStrictEqual(children(), processes)
    })
  )

  it.effect("of kind blob are streamed, whole or in part", () =>
    Effect.gen(function* () {
      const store = yield* fresh
      const bytes = Buffer.alloc(20_000_000, "0123456789abc\n")
      yield* snapshot(store, { large: bytes, empty: "" })
      const large = allObjects(store).find((id) => git(store.directory, "cat-file", "-s", id) === `${bytes.length}`)
      const all = yield* Stream.runCollect(store.reader.stream(large!))
      assert.isTrue(Buffer.concat(all).equals(bytes))
      assert.isAbove(all.length, 50)
      const first = yield* Stream.runCollect(Stream.take(store.reader.stream(large!), 1))
      assert.isTrue(bytes.subarray(0, first[0]!.length).equals(first[0]!))
      assert.deepStrictEqual(yield* Stream.runCollect(store.reader.stream("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")), [])
    })
  )

  it.runIf(needs("processes that read", () => hasProc, "it looks at them in /proc"))(
    "are read by one process, which is replaced when killed and ends with the scope",
    () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const before = children()
          const ours = (): ReadonlyArray<number> => children().filter((pid) => !before.includes(pid))
          yield* Effect.scoped(
            Effect.gen(function* () {
              const store = yield* fresh
              const { commit: made } = yield* snapshot(store, { a: "1" })
              yield* store.reader.object(made)
              yield* store.reader.object(made)
              const batches = ours().filter((pid) =>
                Fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").endsWith("cat-file\0--batch\0")
              )
              assert.strictEqual(batches.length, 1)
              for (const pid of ours()) process.kill(pid, "SIGKILL")
              const found = yield* Effect.forEach(
                Array.from({ length: 50 }, () => made),
                store.reader.object,
                { concurrency: 50 }
              )
              assert.strictEqual(found.length, 50)
              yield* Stream.runCollect(Stream.take(store.reader.stream(git(store.directory, "rev-parse", `${made}:a`)), 1))
              assert.isAbove(ours().length, 0)
            })
          )
          assert.deepStrictEqual(ours(), [])
        })
      )
  )
})
