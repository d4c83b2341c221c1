/** Invalid mounts: outside of the roots, over budget or unreadable, and sources that change while they are copied. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual } from "node:util"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import { around, type Backend } from "../../src/port/Backend.ts"
import * as OpenRoots from "../../src/runtime/openRoots.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { picture } from "../../src/testing/Files.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"
import { host, memory } from "../agent/changing.ts"
import { machine, pictureOf, plant, refused, through } from "./mounting.ts"

/** Returns the fields that identify a MountError. */
const mountError = (reason: string, hostPath: string): object => ({ _tag: "MountError", reason, hostPath })

const has = (error: object, part: object, message?: string): void => assert.deepInclude({ ...error }, part, message)

describe("a mount of a source outside of the allowed roots", () => {
  it.live("is refused, even if its path has a prefix in common with a root or leads through a link in a root", () =>
    Effect.gen(function* () {
      const top = yield* machine({
        "a/b/in": "in",
        "a/bc/out": "out",
        "a/b/link": ["../bc"],
        "a/b/file-link": ["../bc/out"],
        "a/b/chain": ["link/out"],
        "a/b/dangling": ["missing"]
      })
      const root = join(top, "a/b")
      const fs = make(yield* InMemory.make())
      const cases: ReadonlyArray<readonly [hostPath: string, reason: string]> = [
        ["../bc", "invalid"],
        ["in/../../bc/out", "invalid"],
        ["link/..", "invalid"],
        [`${root}/../bc`, "invalid"],
        ["", "invalid"],
        [" \t", "invalid"],
        ["in\0", "invalid"],
        ["in\n", "invalid"],
        ["in\ud800", "invalid"],
        [join(top, "a/bc"), "outside"],
        [join(top, "a/bc/out"), "outside"],
        [join(top, "a/bc/not-there"), "outside"],
        [join(top, "a"), "outside"],
        [top, "outside"],
        ["/", "outside"],
        ["link", "outside"],
        ["link/out", "outside"],
        ["file-link", "outside"],
        ["chain", "outside"],
        [join(root, "link/out"), "outside"],
        ["dangling", "missing"],
        ["not-there", "missing"],
        ["in/below-a-file", "missing"],
        [join(root, "not-there/at-all"), "missing"]
      ]
      for (const [hostPath, reason] of cases) {
        for (const followSymlinks of [false, true]) {
          const error = yield* refused(fs, [{ hostPath, followSymlinks }], [root])
          has(error, mountError(reason, hostPath), hostPath)
          assert.deepStrictEqual(yield* Effect.flip(HostMount.plan([{ hostPath }], { allowedRoots: [root] })), error)
        }
      }
      const none = yield* refused(fs, [{ hostPath: "in" }], [])
      has(none, mountError("outside", "in"))
      // An argument that violates the types.
      const untyped = yield* refused(fs, [{ hostPath: 7 as unknown as string }], [root])
      has(untyped, mountError("invalid", "7"))
    })
  )

  it.live("is refused, as is any mount, if an allowed root is not the absolute path of a directory", () =>
    Effect.gen(function* () {
      const top = yield* machine({ "root/in": "in", file: "" })
      const root = join(top, "root")
      const fs = make(yield* InMemory.make())
      for (const [bad, reason] of [
        [join(top, "missing"), "missing"],
        [join(top, "file"), "invalid"],
        ["root", "invalid"],
        [`${root}/..`, "invalid"],
        ["", "invalid"]
      ] as const) {
        const error = yield* refused(fs, [{ hostPath: "in" }], [root, bad])
        has(error, mountError(reason, bad))
        has(yield* refused(fs, [], [bad]), mountError(reason, bad))
      }
    })
  )
})

describe("a mount of a source in a snapshot store", () => {
  it.live("is refused in an allowed root too, even through a link", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "store/secret": "s", "store/deep/secret": "s", "d/a": "a", "d/link": ["../store/deep"] })
      yield* Effect.acquireRelease(
        Effect.sync(() => OpenRoots.registerStore(join(root, "store"))),
        (unregister) => Effect.sync(unregister)
      )
      const fs = make(yield* InMemory.make())
      for (const hostPath of ["store", "store/deep", "store/secret", "d/link"]) {
        has(yield* refused(fs, [{ hostPath }], [root]), mountError("outside", hostPath))
      }
      const [made] = yield* HostMount.hydrate(fs, [{ hostPath: "d", followSymlinks: true }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/a": "a" }))
      assert.deepStrictEqual(made!.leftOut.entries, [{ path: "link", why: "outside" }])
    })
  )
})

describe("a mount with an invalid option", () => {
  it.live("fails with `invalid` and the name of the option", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a" })
      const fs = make(yield* InMemory.make())
      const cases: ReadonlyArray<readonly [Partial<HostMount.HostMount>, RegExp]> = [
        [{ mountPath: "../x" }, /mountPath/],
        [{ mountPath: "x\0" }, /mountPath/],
        [{ mountPath: ["a/b"] }, /mountPath/],
        [{ mountPath: [".."] }, /mountPath/],
        [{ mountPath: ["", "a"] }, /mountPath/],
        [{ maxBytes: -1 }, /maxBytes/],
        [{ maxBytes: 1.5 }, /maxBytes/],
        [{ maxBytes: Number.NaN }, /maxBytes/],
        [{ include: ["../*"] }, /include/],
        [{ exclude: [".env,*.pem"] }, /exclude/],
        [{ exclude: ["secrets\\key"] }, /exclude/],
        [{ exclude: ["{*.pem,secrets/*}"] }, /exclude/],
        [{ include: ["*", "!.env"] }, /include/],
        [{ exclude: ["a\0"] }, /exclude/],
        [{ include: ["x".repeat(1001)] }, /include/]
      ]
      for (const [part, named] of cases) {
        const error = yield* refused(fs, [{ hostPath: "d", ...part }], [root])
        has(error, mountError("invalid", "d"), JSON.stringify(part))
        assert.match(error.message, named)
      }
    })
  )
})

describe("a mount with a budget", () => {
  it.live("copies a source of exactly the budget, and nothing from a larger source", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "12345", "d/b/c": "678", "e/none": "" })
      for (const ground of [memory, host]) {
        const fs = yield* ground({ "d/a": "old" })
        for (const maxBytes of [0, 1, 7]) {
          const error = yield* refused(fs, [{ hostPath: "d", maxBytes }], [root])
          has(error, mountError("budget", "d"))
          assert.match(error.message, new RegExp(`\\b${maxBytes}\\b`))
        }
        yield* HostMount.hydrate(fs, [{ hostPath: "d", maxBytes: 8 }], { allowedRoots: [root] })
        yield* HostMount.hydrate(fs, [{ hostPath: "e", maxBytes: 0 }], { allowedRoots: [root] })
        yield* HostMount.hydrate(fs, [{ hostPath: "d", maxBytes: 5, exclude: ["b"] }], { allowedRoots: [root] })
        assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/a": "12345", "d/b/c": "678", "e/none": "" }))
      }
    })
  )
})

describe("an entry that is not a regular file, or that has an invalid name", () => {
  it.live("is never opened: a FIFO is skipped and reported, and is refused as a source", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a" })
      execFileSync("mkfifo", [join(root, "d/pipe")])
      const fs = make(yield* InMemory.make())
      const [made] = yield* HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/a": "a" }))
      assert.deepStrictEqual(made!.leftOut, { count: 1, entries: [{ path: "pipe", why: "other" }] })
      const error = yield* refused(fs, [{ hostPath: "d/pipe" }], [root])
      has(error, mountError("unreadable", "d/pipe"))
    })
  )

  it.live("is refused if the globs match a name that no path can express", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a", "d/bad\nname": "x" })
      const fs = make(yield* InMemory.make())
      const error = yield* refused(fs, [{ hostPath: "d" }], [root])
      has(error, { _tag: "MountError", reason: "unreadable" })
      yield* HostMount.hydrate(fs, [{ hostPath: "d", include: ["a"] }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/a": "a" }))
    })
  )
})

describe("an unreadable file or directory", () => {
  const script = fileURLToPath(new URL("unreadableMount.ts", import.meta.url))

  it.live.skipIf(process.platform === "win32")("fails the mount and is named in the error", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a", "d/secret": "s", "e/shut/x": "x", "f/x": "x" })
      for (const path of [root, join(root, "d"), join(root, "e"), join(root, "f")]) Fs.chmodSync(path, 0o755)
      Fs.chmodSync(join(root, "d/secret"), 0)
      Fs.chmodSync(join(root, "e/shut"), 0)
      const out = execFileSync(process.execPath, [script, root], { encoding: "utf8" })
      const seen = JSON.parse(out) as unknown
      assert.deepStrictEqual(seen, [
        { reason: "unreadable", hostPath: "d", path: "secret", left: [] },
        { reason: "unreadable", hostPath: "e", path: "shut", left: [] },
        { reason: "unreadable", hostPath: "d/secret", left: [] },
        { files: 1, left: ["f/x"] }
      ])
    })
  )
})

describe("a source file that changes while it is copied", () => {
  const big = "x".repeat(600_000)

  /** Calls `act` once, when the file is opened or read for the nth time. */
  const when = (operation: "Open" | "Read", path: string, nth: number, act: () => void) => {
    let left = nth
    const count = (at: FsPath) => {
      if (at === path && --left === 0) act()
    }
    return through((port): Backend => {
      const seen = around(port, (step, next) =>
        operation === "Open" && step._tag === "Open"
          ? Effect.suspend(() => {
              count(step.path)
              return next
            })
          : next
      )
      return operation === "Open"
        ? seen
        : {
            ...seen,
            open: (at) =>
              Effect.map(seen.open(at), (handle) => ({
                ...handle,
                read: (offset, length) =>
                  Effect.suspend(() => {
                    count(at)
                    return handle.read(offset, length)
                  })
              }))
          }
    })
  }

  const cases: ReadonlyArray<readonly [what: string, act: (root: string) => void, reasons: ReadonlyArray<string>]> = [
    ["vanishes", (root) => Fs.rmSync(join(root, "d/big")), ["missing", "changed"]],
    ["grows", (root) => Fs.appendFileSync(join(root, "d/big"), "more"), ["changed"]],
    ["shrinks", (root) => Fs.truncateSync(join(root, "d/big"), 100_000), ["changed"]],
    ["is emptied", (root) => Fs.truncateSync(join(root, "d/big"), 0), ["changed"]],
    [
      "is written to in the middle",
      (root) => {
        const descriptor = Fs.openSync(join(root, "d/big"), "r+")
        for (const at of [0, 590_000]) Fs.writeSync(descriptor, "torn", at)
        Fs.closeSync(descriptor)
      },
      ["changed"]
    ],
    [
      "is replaced by a link to outside",
      (root) => {
        Fs.rmSync(join(root, "d/big"))
        Fs.symlinkSync(join(root, "../secret"), join(root, "d/big"))
      },
      ["changed", "missing"]
    ],
    [
      "lies in a directory that is replaced by a link to outside",
      (root) => {
        Fs.renameSync(join(root, "d"), join(root, "gone"))
        Fs.symlinkSync(join(root, "../other"), join(root, "d"))
      },
      ["changed", "missing"]
    ]
  ]

  for (const [what, act, reasons] of cases) {
    it.live(`is copied with one complete content, or makes the mount fail without a change, if it ${what}`, () =>
      Effect.gen(function* () {
        let seen = 0
        for (const [operation, nth] of [
          ["Open", 1],
          ["Open", 2],
          ["Read", 2],
          ["Read", 3],
          ["Read", 4]
        ] as const) {
          const top = yield* machine({
            "root/d/big": big,
            "root/d/first": "first",
            "root/d/second": "second",
            secret: "s".repeat(big.length),
            "other/big": "s".repeat(big.length)
          })
          const root = join(top, "root")
          for (const ground of [memory, host]) {
            const fs = yield* ground({ "d/big": "old" })
            const before = yield* pictureOf(fs)
            const hydrated = HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
            const exit = yield* Effect.result(hydrated.pipe(when(operation, "d/big", nth, () => act(root))))
            const after = yield* pictureOf(fs)
            if (exit._tag === "Success") {
              // A copy that succeeds must have one complete content that the file had.
              const now = `torn${big.slice(4, 590_000)}torn${big.slice(590_004)}`
              const had = [big, ...(what === "is written to in the middle" ? [now] : [])]
              assert.isTrue(had.some((text) => after["d/big"] === `file ${JSON.stringify(text)}`))
            } else {
              seen++
              assert.isTrue(isDeepStrictEqual(after, before))
              assert.strictEqual(exit.failure._tag, "MountError")
              if (exit.failure._tag === "MountError") assert.include(reasons, exit.failure.reason, `${operation} ${nth}`)
            }
            Fs.rmSync(root, { recursive: true })
            plant(root, { "d/big": big, "d/first": "first", "d/second": "second" })
          }
        }
        assert.isAtLeast(seen, 4)
      })
    )
  }
})

describe("a filesystem that refuses the mounted files", () => {
  it.live("makes the mount fail with its own errors and paths, and is unchanged", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a", "d/ä": "ä", [`deep/${"x/".repeat(20)}y`]: "y", "long/aaaaaaaaaa": "" })
      const readOnly = make(yield* InMemory.make({ readOnly: true }))
      const denied = yield* refused(readOnly, [{ hostPath: "d" }], [root])
      has(denied, { _tag: "AccessDenied", operation: "hydrate", why: "readOnly" })
      const unwritable = make(yield* PosixHost.make({ root, allowWrite: false }))
      has(yield* refused(unwritable, [{ hostPath: "d" }], [root]), { _tag: "AccessDenied" })

      const vfs = make(yield* InMemory.make({ policy: "vfs" }))
      const foreign = yield* refused(vfs, [{ hostPath: "d", mountPath: "m" }], [root])
      has(foreign, { _tag: "InvalidPath", operation: "hydrate", path: "m/ä" })
      yield* HostMount.hydrate(vfs, [{ hostPath: "d", mountPath: "m", exclude: ["ä"] }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(vfs), picture({ "m/a": "a" }))

      const fs = make(yield* InMemory.make())
      const tooDeep = yield* Effect.provideService(refused(fs, [{ hostPath: "deep" }], [root]), Limits.Limits, Limits.agent)
      has(tooDeep, { _tag: "PathTooLong", path: `deep/${"x/".repeat(20)}y` })
    })
  )

  it.live("makes the mount fail if an existing entry prevents a path", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a", "d/sub/b": "b" })
      for (const ground of [memory, host]) {
        for (const [files, expected] of [
          [{ d: "a file" }, { _tag: "NotADirectory", path: "d/a" }],
          [{ "d/sub": "a file" }, { _tag: "NotADirectory", path: "d/sub/b" }],
          [{ "d/a/x": "in a directory" }, { _tag: "NotAFile", path: "d/a" }],
          [{ d: { link: ".." } }, { _tag: "AccessDenied", why: "escape", path: "d/a" }],
          [{ d: { link: "d" } }, { _tag: "InvalidPath", path: "d/a" }]
        ] as const) {
          const error = yield* refused(yield* ground(files), [{ hostPath: "d" }], [root])
          has(error, { operation: "hydrate", ...expected })
        }
      }
      const fifo = yield* machine({ d: null })
      execFileSync("mkfifo", [join(fifo, "d/a")])
      const fs = make(yield* PosixHost.make({ root: fifo }))
      has(yield* refused(fs, [{ hostPath: "d" }], [root]), { _tag: "NotAFile", path: "d/a" })
    })
  )

  it.live("makes the mount fail if its disk is full, with the path that the caller gave, even through a link", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "a" })
      const sound = yield* host({ "real/a": "old", d: { link: "real" } })
      const full = faulty([{ operation: "Write", path: /\/new\//, fault: { _tag: "DiskFull" } }])(sound)
      has(yield* refused(full, [{ hostPath: "d" }], [root]), { _tag: "DiskFull", operation: "hydrate", path: "d/a" })
    })
  )

  it.live("makes the mount fail if it ignores case and two names differ only in case", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/Read": "1", "d/read": "2", "e/READ": "3" })
      const fs = make(yield* InMemory.make({ caseInsensitive: true }))
      const error = yield* refused(fs, [{ hostPath: "d" }], [root])
      has(error, { _tag: "AlreadyExists", path: "d/read" })
      const mounts = ["d", "e"].map((hostPath) => ({ hostPath, mountPath: "m", exclude: ["read"] }))
      yield* HostMount.hydrate(fs, mounts, { allowedRoots: [root] })
      assert.strictEqual(yield* fs.readString("m/read"), "3")
      assert.strictEqual((yield* fs.list("m")).length, 1)
    })
  )

  it.live("does not need the permission to delete", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "new", "d/sub/b": "b" })
      const top = yield* machine({ "d/a": "old" })
      const fs = make(yield* PosixHost.make({ root: top, allowDelete: false }))
      yield* HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/a": "new", "d/sub/b": "b" }))
    })
  )
})
