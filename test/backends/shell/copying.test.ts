import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { copyTree } from "../../../src/backends/container/shell/copy.ts"
import * as Port from "../../../src/backends/container/shell/port.ts"
import { makeSession, type Session } from "../../../src/backends/container/shell/session.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { ShellRoot } from "../../../src/backends/container/shell/shellRoot.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import { portable } from "../../../src/port/Backend.ts"
import { directory, type Kind, missing, shells, start } from "./shells.ts"

const bytes = (...parts: ReadonlyArray<string | number>): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part]))))

/** Returns every entry below a directory with its kind, mode and content, whatever bytes its name has. */
const pictureOf = (top: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  const look = (at: Buffer): void => {
    const stat = Fs.lstatSync(at)
    const shown = at.subarray(top.length).toString("latin1")
    if (stat.isSymbolicLink()) out.push(`${shown} -> ${Fs.readlinkSync(at)}`)
    else if (!stat.isDirectory()) out.push(`${shown} ${stat.mode.toString(8)} ${stat.nlink} ${Fs.readFileSync(at, "latin1")}`)
    else {
      out.push(`${shown} ${stat.mode.toString(8)}`)
      for (const name of Fs.readdirSync(at, { encoding: "buffer" })) look(Buffer.concat([at, bytes("/"), name]))
    }
  }
  look(Buffer.from(top))
  return out.sort()
}

const plant = (root: string): void => {
  const at = join(root, "src")
  Fs.mkdirSync(join(at, "deep/er"), { recursive: true })
  Fs.mkdirSync(join(at, "empty"))
  for (let i = 0; i < 24; i++) {
    Fs.mkdirSync(join(at, `${i % 9}`), { recursive: true })
    Fs.writeFileSync(join(at, `${i % 9}`, `${i}.ts`), `// ${i}`)
  }
  for (const name of ["-r", "--", "a\nb", "it's", '"', "\\", "$(x)", " ", "*", "é", "..."]) {
    Fs.writeFileSync(join(at, "deep/er", name), name)
  }
  Fs.writeFileSync(bytes(`${at}/deep/`, 0x61, 0xff), "bytes")
  Fs.writeFileSync(join(at, "run"), "x", { mode: 0o755 })
  Fs.writeFileSync(join(at, "own"), "x", { mode: 0o600 })
  Fs.writeFileSync(join(at, "all"), "x")
  Fs.chmodSync(join(at, "all"), 0o666)
  Fs.linkSync(join(at, "own"), join(at, "twin"))
  Fs.symlinkSync("../nowhere", join(at, "lost"))
  Fs.symlinkSync("deep", join(at, "found"))
  Fs.writeFileSync(join(at, "large"), Buffer.alloc(3_000_000, "abc"))
  Fs.chmodSync(join(at, "deep/er"), 0o555)
  Fs.chmodSync(join(at, "deep"), 0o700)
}

const ground = (kind: Kind, functions = "") =>
  Effect.gen(function* () {
    const root = yield* directory
    const session = yield* makeSession(start(kind, { functions }))
    const asked: Array<string> = []
    const counting: Session = {
      request: (request) =>
        Effect.suspend(() => {
          asked.push(String(request.arguments[2]))
          return session.request(request)
        })
    }
    const port = yield* Port.make({ session: counting, root, name: "Container" })
    return { root, asked, fs: make(port), stepwise: make(portable(port)) }
  })

const isCopy = (root: string, copy: string): void =>
  assert.deepStrictEqual(pictureOf(join(root, copy)), pictureOf(join(root, "src")))

for (const kind of shells) {
  const lacks = missing(kind)
  if (lacks !== undefined) {
    describe.skip(lacks)
    continue
  }
  describe(`a copy of a tree by ${kind.name}`, () => {
    it.live("equals a copy step by step, and takes few requests, whatever the names, modes and links", () =>
      Effect.gen(function* () {
        const { asked, fs, root, stepwise } = yield* ground(kind)
        plant(root)
        const expected = yield* stepwise.copy("src", "slow")
        asked.length = 0
        assert.deepStrictEqual(yield* fs.copy("src", "new/fast"), expected)
        assert.isAtMost(asked.length, 20, asked.join(" "))
        assert.deepStrictEqual(pictureOf(join(root, "new/fast")), pictureOf(join(root, "slow")))
        assert.deepStrictEqual(Fs.readdirSync(join(root, "new")), ["fast"])
        Fs.writeFileSync(join(root, "new/fast/own"), "changed")
        assert.strictEqual(Fs.readFileSync(join(root, "new/fast/twin"), "utf8"), "x")
      })
    )

    it.live("fails as a copy step by step does, and leaves nothing", () =>
      Effect.gen(function* () {
        const { fs, root, stepwise } = yield* ground(kind)
        plant(root)
        execFileSync("mkfifo", [join(root, "src/deep/fifo")])
        Fs.mkdirSync(join(root, "taken"))
        for (const to of ["new", "taken", "src/deep/in", "src/run/in"]) {
          const expected = yield* Effect.flip(stepwise.copy("src", to))
          assert.deepStrictEqual({ ...(yield* Effect.flip(fs.copy("src", to))) }, { ...expected }, to)
        }
        assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["src", "taken"])
      })
    )

    it.live("drops the same permission bits as a copy step by step", () =>
      Effect.gen(function* () {
        const { fs, root, stepwise } = yield* ground(kind)
        Fs.mkdirSync(join(root, "src/d"), { recursive: true })
        Fs.writeFileSync(join(root, "src/d/f"), "x")
        Fs.chmodSync(join(root, "src/d/f"), 0o4755)
        Fs.chmodSync(join(root, "src/d"), 0o1777)
        yield* stepwise.copy("src", "slow")
        yield* fs.copy("src", "fast")
        assert.deepStrictEqual(pictureOf(join(root, "fast")), pictureOf(join(root, "slow")))
      })
    )

    it.live("is complete even if the tool that copies fails halfway", () =>
      Effect.gen(function* () {
        const { asked, fs, root } = yield* ground(kind, 'cp() { command cp "$@"; return 1; }')
        Fs.mkdirSync(join(root, "src/d"), { recursive: true })
        for (const name of ["1", "2", "d/3"]) Fs.writeFileSync(join(root, "src", name), name)
        assert.strictEqual((yield* fs.copy("src", "copy")).files, 3)
        isCopy(root, "copy")
        assert.include(asked, "bulk_discard")
        assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["copy", "src"])
      })
    )

    for (const [what, forged] of [
      ["a name above the tree", "printf '41ed 2 40 ./src//\\n81a4 1 1 ./src/../a//\\n'"],
      ["an entry of another tree", "printf '41ed 2 40 ./src//\\n81a4 1 1 ./srca//\\n'"],
      ["a file without its directory", "printf '41ed 2 40 ./src//\\n81a4 1 1 ./src/d/a//\\n'"],
      ["another file", "printf '41ed 2 40 ./src//\\n81a4 1 1 ./src/2//\\n'"],
      [
        "fewer files",
        "case $1 in ./src) printf '41ed 2 40 ./src//\\n' ;; *) printf '41ed 2 40 %s//\\n81a4 1 1 %s/1//\\n' \"$1\" \"$1\" ;; esac"
      ],
      // A copy of a large file by one program has no output, so it would look like a shell that has stopped.
      ["a file of more than 64 MiB", 'printf "41ed 2 40 $1//\\n81a4 1 67108865 $1/1//\\n"'],
      ["an endless list", "yes '41ed 2 40 ./src//' | head -c 70000000"],
      ["nothing", ":"]
    ] as const) {
      it.live(`is made step by step if the list of the tree contains ${what}`, () =>
        Effect.gen(function* () {
          const { fs, root } = yield* ground(kind, `bulk_survey() { ${forged}; }`)
          Fs.mkdirSync(join(root, "src"))
          Fs.writeFileSync(join(root, "src/1"), "1")
          assert.deepStrictEqual(yield* fs.copy("src", "copy"), { files: 1, directories: 1, bytes: 1 })
          isCopy(root, "copy")
          assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["copy", "src"])
        })
      )
    }

    it.live("is made step by step if the list of the tree has more than 4 MiB", () =>
      Effect.gen(function* () {
        const { asked, fs, root } = yield* ground(
          kind,
          `bulk_survey() { echo "41ed 2 40 $1//"; yes "81a4 1 1 $1/${"a".repeat(250)}//" | head -n 20000 | head -c "$2"; }`
        )
        Fs.mkdirSync(join(root, "src"))
        Fs.writeFileSync(join(root, "src/1"), "1")
        assert.deepStrictEqual(yield* fs.copy("src", "copy"), { files: 1, directories: 1, bytes: 1 })
        isCopy(root, "copy")
        assert.notInclude(asked, "bulk_taken")
      })
    )

    it.live("leaves nothing when it is interrupted, and when the shell is killed", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground(
          kind,
          'cp() { command cp "$@"; : >waiting; if [ -e fatal ]; then kill -9 $$; fi; while [ ! -e go ]; do sleep 0.05; done; }'
        )
        Fs.mkdirSync(join(root, "src"))
        Fs.writeFileSync(join(root, "src/1"), "1")
        const copying = yield* Effect.forkChild(fs.copy("src", "copy"))
        while (!Fs.existsSync(join(root, "waiting"))) yield* Effect.sleep(5)
        const stopping = yield* Effect.forkChild(Fiber.interrupt(copying))
        yield* Effect.sleep(20)
        Fs.writeFileSync(join(root, "go"), "")
        yield* Fiber.join(stopping)
        assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["go", "src", "waiting"])
        Fs.writeFileSync(join(root, "fatal"), "")
        assert.strictEqual((yield* Effect.flip(fs.copy("src", "copy")))._tag, "Unavailable")
        assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["fatal", "go", "src", "waiting"])
      })
    )
  })
}

describe("a copy of a tree with many entries", () => {
  for (const [what, mode] of [
    ["files", "81a4"],
    ["directories", "41c0"]
  ] as const) {
    it.live(`lets other fibers run while it reads the list of ${what}, makes the commands, and compares the copy`, () =>
      Effect.gen(function* () {
        const records = Array.from({ length: 30_000 }, (_, i) => `${mode} 1 1 TOP/${i}//\n`).join("")
        const listOf = (top: string) => Buffer.from(`41c0 2 4096 TOP//\n${records}`.replaceAll("TOP", top))
        let turns = 0
        let turnsAtAnswer = 0
        const waits: Array<readonly [call: string, turns: number]> = []
        const place: ShellRoot = {
          directory: "/",
          sendRequest: ({ arguments: [first], call }) =>
            Effect.sync(() => {
              waits.push([call === "bulk_taken" ? String(first) : call, turns - turnsAtAnswer])
              const output = call === "bulk_survey" ? listOf(Buffer.from(first as Uint8Array).toString()) : Buffer.alloc(0)
              turnsAtAnswer = turns
              return { status: 0, errors: "", output }
            })
        }
        const others = yield* Effect.forkChild(
          Effect.forever(Effect.andThen(Effect.yieldNow, () => Effect.sync(() => void turns++))),
          { startImmediately: true }
        )
        const copied = yield* copyTree(place)({ _tag: "CopyTree", path: "a" as FsPath, to: "b" as FsPath })
        yield* Fiber.interrupt(others)
        assert.isTrue(Option.isSome(copied))
        const firstWaitFor = (call: string): number => waits.find(([made]) => made === call)?.[1] ?? 0
        // The last request is the rename, after the comparison.
        assert.isAtLeast(waits.at(-1)![1], 5)
        for (const call of ["mkdir --", what === "files" ? "bulk_copy" : "chmod"]) assert.isAtLeast(firstWaitFor(call), 5, call)
      })
    )
  }
})
