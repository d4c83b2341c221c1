/**
 * Another process changes the tree: before each primitive call of each operation a directory or file is removed, moved or
 * replaced with `node:fs`. The operation must not change anything outside of the root, moved out of it, or put there by the
 * other process.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { fastDirectory, host, losingNothing, picture, plantAt } from "./ground.ts"
import { failure, operations } from "./operations.ts"
import { isSoak } from "../runs.ts"

interface Ground {
  readonly top: string
  readonly root: string
  readonly outside: string
}

interface Act {
  readonly name: string
  readonly run: (ground: Ground) => void
  /** Tests whether the operation must leave this path alone after the act. */
  readonly spared?: (path: string) => boolean
}

const theirs = { f: "theirs", "e/g": "theirs", new: "theirs" }

const acts: ReadonlyArray<Act> = [
  { name: "the directory is removed", run: ({ root }) => Fs.rmSync(join(root, "d"), { recursive: true, force: true }) },
  { name: "the directory is moved out", run: ({ outside, root }) => move(join(root, "d"), join(outside, "taken")) },
  {
    name: "the directory is moved elsewhere",
    run: ({ root }) => move(join(root, "d"), join(root, "empty/taken")),
    spared: (path) => path.startsWith("empty/taken/")
  },
  {
    name: "the directory becomes a link that leads out",
    run: ({ outside, root }) => {
      move(join(root, "d"), join(outside, "taken"))
      Fs.symlinkSync("../outside", join(root, "d"))
    }
  },
  {
    name: "the directory becomes a file",
    run: ({ root }) => {
      Fs.rmSync(join(root, "d"), { recursive: true, force: true })
      Fs.writeFileSync(join(root, "d"), "theirs")
    }
  },
  {
    name: "the directory is replaced by another",
    run: ({ outside, root }) => {
      move(join(root, "d"), join(outside, "taken"))
      plantAt(join(root, "d"), theirs)
    }
  },
  { name: "the file is removed", run: ({ root }) => Fs.rmSync(join(root, "d/f"), { force: true }) },
  {
    name: "the file becomes a link that leads out",
    run: ({ root }) => {
      Fs.rmSync(join(root, "d/f"), { force: true })
      if (Fs.existsSync(join(root, "d"))) Fs.symlinkSync("../../outside/f", join(root, "d/f"))
    }
  },
  {
    name: "the file becomes a directory",
    run: ({ root }) => {
      Fs.rmSync(join(root, "d/f"), { force: true })
      plantAt(join(root, "d/f"), { inner: "theirs" })
    }
  },
  {
    name: "the file becomes a FIFO",
    run: ({ root }) => {
      if (!Fs.existsSync(join(root, "d/f"))) return
      Fs.rmSync(join(root, "d/f"))
      execFileSync("mkfifo", [join(root, "d/f")])
    }
  },
  {
    name: "the parents that were made are removed",
    run: ({ root }) => Fs.rmSync(join(root, "p"), { recursive: true, force: true })
  },
  {
    name: "the parents that were made become a link that leads out",
    run: ({ root }) => {
      if (!Fs.existsSync(join(root, "p"))) return
      Fs.rmSync(join(root, "p"), { recursive: true })
      Fs.symlinkSync("../outside", join(root, "p"))
    }
  }
]

const move = (from: string, to: string): void => {
  if (Fs.existsSync(from)) Fs.renameSync(from, to)
}

const ground: Effect.Effect<Ground, never, Scope.Scope> = Effect.map(fastDirectory, (top) => ({
  top,
  root: join(top, "root"),
  outside: join(top, "outside")
}))

const anew = ({ outside, root, top }: Ground): void => {
  for (const name of Fs.readdirSync(root)) Fs.rmSync(join(root, name), { recursive: true })
  for (const name of Fs.readdirSync(top)) if (name !== "root") Fs.rmSync(join(top, name), { recursive: true })
  plantAt(root)
  plantAt(outside, { f: "secret", "e/g": "secret", "q/r": "secret" })
}

/** Returns a filesystem that runs `act` before the `nth` primitive call. */
const disturbed = (fs: Algebra, nth: number, act: () => void) => {
  let count = 0
  const port = around(fs.port, (_, step) =>
    Effect.suspend(() => {
      if (++count === nth) act()
      return step
    })
  )
  return { fs: make(port), reached: () => count >= nth }
}

const isTemporary = (path: string): boolean => path.includes(".~fsa-")

/** Returns a picture of the entries that the operation must not change. A staged file in a moved directory may still be removed. */
const others = (self: Ground, spared: Act["spared"], isLeftOut: (path: string) => boolean = () => false): string =>
  JSON.stringify([
    Object.entries(picture(self.outside)).filter(([path]) => !isLeftOut(path)),
    Object.entries(picture(self.root)).filter(([path]) => spared?.(path) === true && !isLeftOut(path))
  ])

/** Tests whether to act before this call. The fast run skips some later calls. */
const turns = (nth: number): boolean => isSoak || nth <= 6 || nth % 3 === 0

describe("a change by another process between the steps of a call", () => {
  for (const { name, run, spared } of acts) {
    it.live(`is safe when ${name}: any error is declared, and no entry outside or of the other process changes`, () =>
      losingNothing(
        Effect.gen(function* () {
          const self = yield* ground
          Fs.mkdirSync(self.root)
          const fs = yield* host(self.root)
          const isHeld = fs.port.info.confinement === "race-free"
          const wrong: Array<string> = []
          for (const operation of operations) {
            for (let nth = 1, isReached = true; isReached; nth++) {
              if (!turns(nth)) continue
              anew(self)
              let before = ""
              const act = () => {
                run(self)
                before = others(self, spared, isTemporary)
              }
              const slow = disturbed(fs, nth, act)
              const failed = yield* failure(operation, slow.fs)
              isReached = slow.reached()
              if (!isReached) break
              const what = `${operation.name}, before step ${nth}`
              if (failed?.isDeclared === false) wrong.push(`${what}: ${JSON.stringify(failed)}`)
              // A host that keeps no directory open cannot find a staged file in a directory that was moved away.
              const after = others(self, spared, isHeld ? undefined : isTemporary)
              if (after !== before) wrong.push(`${what}: ${before} became ${after}`)
              if (JSON.stringify(picture(self.root)).includes(".~fsa-"))
                wrong.push(`${what}: left ${Object.keys(picture(self.root)).join()}`)
            }
          }
          assert.deepStrictEqual(wrong, [])
        })
      )
    )
  }
})

const rootActs: ReadonlyArray<Act> = [
  { name: "removed", run: ({ root }) => Fs.rmSync(root, { recursive: true }) },
  { name: "moved away", run: ({ root, top }) => Fs.renameSync(root, join(top, "away")) },
  {
    name: "replaced by another",
    run: ({ root, top }) => {
      Fs.renameSync(root, join(top, "away"))
      plantAt(join(root, "d"), theirs)
    }
  },
  {
    name: "replaced by a link",
    run: ({ root, top }) => {
      Fs.renameSync(root, join(top, "away"))
      Fs.symlinkSync("outside", root)
    }
  }
]

describe("the root itself", () => {
  for (const { name, run } of rootActs) {
    it.live(
      `${name} between the steps of a call makes the call fail with Unavailable or succeed, and nothing else changes`,
      () =>
        losingNothing(
          Effect.gen(function* () {
            const wrong: Array<string> = []
            for (const operation of operations.filter((_, i) => isSoak || i % 3 === 0)) {
              for (let nth = 1; nth <= (isSoak ? 50 : 5); nth++) {
                const isReached = yield* Effect.scoped(
                  Effect.gen(function* () {
                    const self = yield* ground
                    Fs.mkdirSync(self.root)
                    const fs = yield* host(self.root)
                    anew(self)
                    const impostor = () => (Fs.existsSync(self.root) ? picture(`${self.root}/`) : {})
                    let before: unknown = undefined
                    const act = () => {
                      run(self)
                      before = [picture(self.outside), impostor()]
                    }
                    const slow = disturbed(fs, nth, act)
                    const failed = yield* failure(operation, slow.fs)
                    if (!slow.reached()) return false
                    const what = `${operation.name}, before step ${nth}`
                    const after = [picture(self.outside), impostor()]
                    if (JSON.stringify(after) !== JSON.stringify(before)) wrong.push(`${what}: ${JSON.stringify(after)}`)
                    if (failed === undefined) return true
                    const isGone = failed._tag === "Unavailable" && failed.isDeclared
                    if (!isGone && name !== "removed") wrong.push(`${what}: ${JSON.stringify(failed)}`)
                    if (!failed.isDeclared) wrong.push(`${what}: ${JSON.stringify(failed)}`)
                    return true
                  })
                )
                if (!isReached) break
              }
            }
            assert.deepStrictEqual(wrong, [])
          })
        )
    )
  }
})
