/**
 * Another program moves or replaces a directory after the shell has read its names and before the stat of these names.
 * The read returns one complete tree or fails; only removed entries may be missing.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Port from "../../../src/backends/container/shell/port.ts"
import { makeSession } from "../../../src/backends/container/shell/session.ts"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import { bash, dash, directory, missing, start } from "./shells.ts"

type Read = (fs: Algebra) => Effect.Effect<ReadonlyArray<string>, unknown>

const walk =
  (path: string): Read =>
  (fs) =>
    Effect.map(Stream.runCollect(fs.walk(path)), (all) => all.map((entry) => entry.path))
const list =
  (path: string): Read =>
  (fs) =>
    Effect.map(fs.list(path), (all) => all.map((entry) => entry.path))

interface Ground {
  readonly fs: Algebra
  readonly root: string
  /** Runs commands in the root before and after each stat of the names that were read. `$n` is the number of the stat, from 1. */
  readonly beside: (before: string, after?: string) => void
  readonly looks: () => number
}

const exchange = "{ mv d old; mv new d; }"

for (const shell of [dash, bash]) {
  const lacks = missing(shell)

  const ground = (functions: string) =>
    Effect.gen(function* () {
      const bin = yield* directory
      const root = yield* directory
      const counter = join(bin, "count")
      for (const file of ["d/sub/1.txt", "d/sub/2.txt", "new/sub/3.txt", "z.txt"]) {
        Fs.mkdirSync(join(root, file, ".."), { recursive: true })
        Fs.writeFileSync(join(root, file), "")
      }
      const session = yield* makeSession(start({ ...shell, path: `${bin}:${shell.path}` }, { functions }))
      const port = yield* Port.make({ session, root, name: "shell" })
      const beside = (before: string, after = ":"): void => {
        Fs.writeFileSync(counter, "0")
        const script = `#!/bin/sh
PATH=${shell.path}
case "$*" in
  *//*) ;;
  *) exec stat "$@" ;;
esac
n=$(($(cat ${counter}) + 1))
echo $n >${counter}
(cd ${root} && ${before})
stat "$@"
e=$?
(cd ${root} && ${after})
exit $e
`
        Fs.writeFileSync(join(bin, "stat"), script, { mode: 0o755 })
      }
      const looks = () => Number(Fs.readFileSync(counter, "utf8"))
      return { fs: make(port), root, beside, looks } satisfies Ground
    })

  const live = (name: string, run: (ground: Ground) => Effect.Effect<void, unknown>, functions = "") =>
    it.live(name, () => Effect.flatMap(ground(functions), run))

  describe.skipIf(lacks !== undefined)(`a listing by ${shell.name} beside another program${lacks ?? ""}`, () => {
    for (let nth = 1; nth <= 2; nth++) {
      live(`returns one whole tree when a directory is replaced before stat call ${nth} of a walk`, ({ beside, fs }) =>
        Effect.gen(function* () {
          beside(`{ [ $n != ${nth} ] || ${exchange}; }`)
          assert.deepStrictEqual(yield* walk("d")(fs), ["d/sub", "d/sub/3.txt"])
        })
      )
    }

    live("contains a directory that was moved away only for a moment", ({ beside, fs }) =>
      Effect.gen(function* () {
        const whole = yield* walk(".")(fs)
        for (let nth = 1; nth <= 3; nth++) {
          beside(`{ [ $n != ${nth} ] || mv d away; }`, `{ [ ! -d away ] || mv away d; }`)
          assert.deepStrictEqual(yield* walk(".")(fs), whole)
        }
        beside("{ [ $n != 1 ] || mv d away; }", "{ [ ! -d away ] || mv away d; }")
        assert.deepStrictEqual(yield* list(".")(fs), ["d", "new", "z.txt"])
      })
    )

    live("contains an entry that is always listed but never found by stat", ({ beside, fs, looks }) =>
      Effect.gen(function* () {
        const whole = yield* walk(".")(fs)
        beside("mv d away", "mv away d")
        assert.deepStrictEqual(yield* list(".")(fs), ["d", "new", "z.txt"])
        assert.strictEqual(looks(), 4)
        assert.deepStrictEqual(yield* walk(".")(fs), whole)
      })
    )

    live("fails with Unavailable when entries keep disappearing and reappearing", ({ beside, fs }) =>
      Effect.gen(function* () {
        const act = "case $(($n % 4)) in 1|0) mv d away ;; *) mv z.txt away ;; esac"
        const undo = "case $(($n % 4)) in 1|0) mv away d ;; *) mv away z.txt ;; esac"
        beside(act, undo)
        assert.include(String(yield* Effect.flip(list(".")(fs))), "moved or replaced this directory")
      })
    )

    live("silently omits a removed file", ({ beside, fs, looks }) =>
      Effect.gen(function* () {
        beside("rm -f z.txt")
        assert.deepStrictEqual(yield* list(".")(fs), ["d", "new"])
        assert.strictEqual(looks(), 2)
      })
    )

    live(
      "lists only a few directories again when a file is removed in one of many directories",
      ({ beside, fs, looks, root }) =>
        Effect.gen(function* () {
          for (let i = 0; i < 64; i++) {
            Fs.mkdirSync(join(root, "new", `m${i}`))
            Fs.writeFileSync(join(root, "new", `m${i}`, "f"), "")
          }
          const whole = yield* walk("new")(fs)
          beside("{ [ $n != 2 ] || rm new/m7/f; }")
          const left = whole.filter((path) => path !== "new/m7/f")
          assert.deepStrictEqual(yield* walk("new")(fs), left)
          assert.isAtMost(looks(), 4)
          // The file is listed but never found, so the shell looks for it alone until it gives up.
          beside("mv new/m9/f new/m9/g", "mv new/m9/g new/m9/f")
          assert.deepStrictEqual(yield* walk("new")(fs), left)
          assert.isAtMost(looks(), 32)
        })
    )

    live("treats a directory removed during a walk as empty", ({ beside, fs }) =>
      Effect.gen(function* () {
        beside("{ [ $n != 2 ] || rm -r d; }")
        assert.deepStrictEqual(yield* walk(".")(fs), ["d", "new", "new/sub", "new/sub/3.txt", "z.txt"])
      })
    )

    live("silently omits files that are created and removed all the time", ({ beside, fs, root }) =>
      Effect.gen(function* () {
        Fs.writeFileSync(join(root, "temporary-0"), "")
        beside("rm -f temporary-*", ": >temporary-$n")
        assert.deepStrictEqual(yield* list(".")(fs), ["d", "new", "z.txt"])
      })
    )

    live(
      "fails with NotFound when the directory is moved before it is entered",
      ({ fs }) =>
        Effect.gen(function* () {
          assert.include(String(yield* Effect.flip(list("d")(fs))), "NotFound")
        }),
      'cd() { [ "$*" != "-P -- ./d" ] || mv d away; command cd "$@"; }\n'
    )
  })
}
