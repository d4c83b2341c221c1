import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Port from "../../../src/backends/container/shell/port.ts"
import type { Session } from "../../../src/backends/container/shell/session.ts"
import { layer } from "../../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../../src/history/Snapshots.ts"
import type { NewEntry } from "../../../src/port/Backend.ts"
import { p } from "../posixHost.ts"
import { directory, missing, shared, shells } from "./shells.ts"
import { performed } from "../../performed.ts"

const isRoot = process.getuid?.() === 0
if (!isRoot && process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error("some of these tests need root; run them as root")

const file = (path: string, content: string, mode?: number): NewEntry => ({ path: p(path), bytes: Buffer.from(content), mode })

const range = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

const pictureOf = (root: string): ReadonlyArray<string> =>
  Fs.readdirSync(root, { recursive: true, encoding: "utf8" })
    .sort()
    .map((path) => {
      const stat = Fs.statSync(join(root, path))
      const content = stat.isFile() ? Fs.readFileSync(join(root, path), "utf8") : ""
      return `${path} ${(stat.mode & 0o777).toString(8)} ${content}`
    })

const counted = (session: Session) => {
  let requests = 0
  const counting: Session = {
    request: (request) =>
      Effect.suspend(() => {
        requests++
        return session.request(request)
      })
  }
  return { session: counting, requests: () => requests }
}

const smallDisk = Effect.flatMap(directory, (at) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", at])
      return at
    }),
    () => Effect.sync(() => execFileSync("umount", ["-l", at]))
  )
)

for (const kind of shells) {
  const lacks = missing(kind)
  if (lacks !== undefined) {
    describe.skip(lacks)
    continue
  }
  describe(`makeMany by ${kind.name}`, () => {
    const theirs = shared(kind)
    const portAt = (root: string, session: Session = theirs) => Port.make({ session, root, name: "Container" })

    it.live("creates 1,500 files in at most four requests", () =>
      Effect.gen(function* () {
        const root = yield* directory
        const { requests, session } = counted(theirs)
        const port = yield* portAt(root, session)
        const before = requests()
        const entries = [{ path: p("d") }, ...range(1500).map((n) => file(`d/${n}`, `content of ${n}\n`))]
        const made = yield* performed(port, { _tag: "MakeMany", entries })
        assert.deepStrictEqual(
          made,
          entries.map(() => true)
        )
        assert.isAtMost(requests() - before, 4)
        for (const n of range(1500)) assert.strictEqual(Fs.readFileSync(join(root, "d", `${n}`), "utf8"), `content of ${n}\n`)
      })
    )

    it.live("keeps the shell's umask and its ability to append", () =>
      Effect.gen(function* () {
        const root = yield* directory
        const port = yield* portAt(root)
        const entries = [file("own", "1", 0o600), file("run", "2", 0o755), file("closed", "3", 0o040), file("all", "4", 0o777)]
        assert.deepStrictEqual(yield* performed(port, { _tag: "MakeMany", entries }), [true, true, true, true])
        const modeOf = (name: string): number => Fs.statSync(join(root, name)).mode & 0o777
        assert.deepStrictEqual(["own", "run", "closed", "all"].map(modeOf), [0o600, 0o755, 0o040, 0o777])
        yield* port.write<never, never>(p("plain"), Buffer.from("a"), "create")
        yield* port.write<never, never>(p("plain"), Buffer.from("b"), "append")
        yield* port.makeDirectory(p("d"))
        assert.deepStrictEqual([modeOf("plain"), modeOf("d")], [0o644, 0o755])
        assert.strictEqual(Fs.readFileSync(join(root, "plain"), "utf8"), "ab")
      })
    )

    it.live("reports a FIFO as not created, and neither writes to the FIFO nor waits for a reader", () =>
      Effect.gen(function* () {
        const root = yield* directory
        execFileSync("mkfifo", [join(root, "fifo")])
        const port = yield* portAt(root)
        assert.deepStrictEqual(yield* performed(port, { _tag: "MakeMany", entries: [file("fifo", "x"), file("f", "x")] }), [
          false,
          true
        ])
      })
    )

    it.live.skipIf(!isRoot)("leaves nothing of a file that does not fit on the disk, and reports the file as not created", () =>
      Effect.gen(function* () {
        const root = yield* smallDisk
        const port = yield* portAt(root)
        const content = "0123456789abcdef".repeat(4000)
        const entries = range(30).map((n) => file(`${n}`, content))
        const made = (yield* performed(port, { _tag: "MakeMany", entries }))!
        assert.isTrue(made.includes(true) && made.includes(false))
        for (const [n, isMade] of made.entries()) {
          const at = join(root, `${n}`)
          assert.strictEqual(Fs.existsSync(at) ? Fs.readFileSync(at, "utf8") : undefined, isMade ? content : undefined)
        }
      })
    )

    it.live("lets a snapshot of 120 files be restored in at most 60 requests", () =>
      Effect.gen(function* () {
        const root = yield* directory
        const { requests, session } = counted(theirs)
        const files = Layer.fresh(layer(Effect.orDie(portAt(root, session))))
        yield* Effect.gen(function* () {
          const snapshots = yield* Snapshots.Snapshots
          for (const n of range(120)) {
            Fs.mkdirSync(join(root, `src/${n % 10}`), { recursive: true })
            Fs.writeFileSync(join(root, `src/${n % 10}/${n}.ts`), `// ${n}`)
          }
          Fs.writeFileSync(join(root, "src/run"), "x", { mode: 0o755 })
          Fs.chmodSync(join(root, "src/9"), 0o555)
          const before = pictureOf(root)
          const taken = yield* snapshots.snapshot()
          Fs.chmodSync(join(root, "src/9"), 0o755)
          Fs.rmSync(join(root, "src"), { recursive: true })
          let asked = requests()
          yield* snapshots.restore(taken)
          assert.isAtMost(requests() - asked, 60)
          assert.deepStrictEqual(pictureOf(root), before)
          Fs.writeFileSync(join(root, "src/0/0.ts"), "changed")
          asked = requests()
          yield* snapshots.restore(taken)
          assert.isAtMost(requests() - asked, 60)
          assert.deepStrictEqual(pictureOf(root), before)
          Fs.chmodSync(join(root, "src/9"), 0o755)
        }).pipe(Effect.provide(Layer.provideMerge(Snapshots.layerArchive, files)))
      })
    )
  })
}
