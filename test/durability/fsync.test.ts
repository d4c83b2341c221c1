import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { clean, scratch } from "./children.ts"
import { parseTrace, type SystemCall } from "./systemCalls.ts"

afterAll(clean)

const isThere = spawnSync("strace", ["-f", "-y", "-o", "/dev/null", "true"]).status === 0
const wanted = isThere || process.env["FS_ALGEBRA_NO_SKIP"] !== undefined
if (!wanted) console.log("skipped: flushes to the disk, which need strace; apt-get install strace")

const program = fileURLToPath(new URL("settling.ts", import.meta.url))
const renamings = ["rename", "link", "unlink", "mkdir", "rmdir", "symlink"]
const watched = ["access", "faccessat", "faccessat2", "open", "openat", "write", "pwrite64", "writev", "pwritev", "ftruncate"]
const flushing = ["fsync", "fdatasync", "sync_file_range", "syncfs", "sync"]
const variants = ["renameat", "renameat2", "linkat", "unlinkat", "mkdirat", "symlinkat"]

/** Returns the system calls of each operation on the root, with paths relative to the root. */
const watch = (durability: "none" | "file" | "full"): ReadonlyMap<string, ReadonlyArray<SystemCall>> => {
  const at = scratch()
  const root = join(at, "root")
  Fs.mkdirSync(join(root, "d"), { recursive: true })
  Fs.mkdirSync(join(root, "e"))
  Fs.writeFileSync(join(root, "d/f"), "f")
  Fs.writeFileSync(join(root, "d/text"), "old")
  Fs.writeFileSync(join(root, "d/target"), "t")
  Fs.symlinkSync("d/target", join(root, "link"))
  const calls = [...watched, ...flushing, ...renamings, ...variants].map((name) => `?${name}`).join(",")
  const { status, stderr } = spawnSync(
    "strace",
    [
      "-f",
      "-y",
      "-s",
      "4096",
      "-e",
      "signal=none",
      "-e",
      `trace=${calls}`,
      "-o",
      join(at, "trace"),
      process.execPath,
      program,
      root,
      durability
    ],
    { encoding: "utf8" }
  )
  assert.strictEqual(status, 0, stderr)
  const operations = new Map<string, Array<SystemCall>>()
  const lines = Fs.readFileSync(join(at, "trace"), "utf8").split("\n")
  const marks = lines.flatMap((text, line) => {
    const name = /fs-algebra-mark\/(\w+)"/.exec(text)?.[1]
    return name === undefined ? [] : [{ name, line }]
  })
  for (const { name } of marks) operations.set(name, [])
  for (const call of parseTrace(lines.join("\n"))) {
    const name = marks.findLast(({ line }) => line < call.began)?.name
    const paths = call.paths.filter((path) => path === root || path.startsWith(`${root}/`))
    if (name === undefined || paths.length === 0) continue
    operations.get(name)!.push({ ...call, paths: paths.map((path) => path.slice(root.length + 1) || ".") })
  }
  operations.delete("end")
  return operations
}

const isHidden = (path: string): boolean => path.includes(".~fsa-")
const isFlush = ({ name }: SystemCall): boolean => flushing.includes(name)
const isWrite = ({ name }: SystemCall): boolean => /^p?write|^ftruncate/.test(name)
/** Tests whether a call makes content visible under a name. */
const isPublication = ({ name, paths }: SystemCall): boolean =>
  (name === "rename" || name === "link") && paths.length === 2 && isHidden(paths[0]!) && !isHidden(paths[1]!)
/** Returns all hidden names that one file had. */
const namesBefore = (calls: ReadonlyArray<SystemCall>, path: string): ReadonlyArray<string> => {
  const before = calls.find(({ name, paths }) => (name === "rename" || name === "link") && paths[1] === path)
  return before === undefined ? [path] : [path, ...namesBefore(calls, before.paths[0]!)]
}
/** Returns the visible names that a call creates or removes. */
const namesOf = ({ name, paths }: SystemCall): ReadonlyArray<string> =>
  !renamings.includes(name) ? [] : (name === "symlink" ? paths.slice(-1) : paths).filter((path) => !isHidden(path))

/** The calls that each operation must make, so that no check below passes on an empty list. */
const expected: Record<string, ReadonlyArray<string>> = {
  replace: ["rename"],
  large: ["rename"],
  create: ["link"],
  sink: ["rename"],
  through: ["rename"],
  edit: ["rename"],
  guarded: ["rename"],
  append: ["write"],
  appendLarge: ["write"],
  appendNew: ["write"],
  appendSink: ["write"],
  appendNewSink: ["link"],
  parents: ["mkdir", "rename"],
  mkdir: ["mkdir"],
  symlink: ["symlink"],
  move: ["rename"],
  moveOver: ["rename"],
  moveDirectory: ["rename"],
  copy: ["link"],
  copyTree: ["mkdir", "link"],
  copyOverLink: ["rename"],
  remove: ["unlink"],
  removeTree: ["unlink", "rmdir"]
}

describe.runIf(wanted)("durability, seen in the system calls", () => {
  for (const durability of ["none", "file", "full"] as const) {
    describe(`durability ${durability}`, () => {
      let operations: ReadonlyMap<string, ReadonlyArray<SystemCall>> = new Map()
      beforeAll(() => {
        assert.isTrue(isThere, "strace is missing: apt-get install strace")
        operations = watch(durability)
      })

      it("makes the expected system calls in every operation", () => {
        assert.deepStrictEqual([...operations.keys()], Object.keys(expected))
        for (const [name, calls] of operations) {
          const seen = calls.map((call) => (isWrite(call) ? "write" : call.name))
          for (const one of expected[name]!) assert.include(seen, one, name)
        }
      })

      if (durability === "none") {
        it("flushes nothing", () => {
          assert.deepStrictEqual(
            [...operations].filter(([, calls]) => calls.some(isFlush)),
            []
          )
        })
        return
      }

      it("flushes each file after its last byte and before it gets its name", () => {
        for (const [name, calls] of operations) {
          for (const call of calls.filter(isPublication)) {
            const names = namesBefore(calls, call.paths[0]!)
            const from = names.join(", ")
            const flush = calls.findLast((other) => isFlush(other) && names.includes(other.paths[0]!))
            assert.isDefined(flush, `${name}: ${from} is not flushed`)
            assert.isBelow(flush!.ended, call.began, `${name}: flushed too late`)
            for (const write of calls.filter((other) => isWrite(other) && names.includes(other.paths[0]!))) {
              assert.isBelow(write.ended, flush!.began, `${name}: flushed too early`)
            }
          }
        }
      })

      it("flushes each file after appending to it", () => {
        for (const [name, calls] of operations) {
          for (const write of calls.filter((call) => isWrite(call) && !isHidden(call.paths[0]!))) {
            const flush = calls.find((call) => isFlush(call) && call.paths[0] === write.paths[0] && call.began > write.ended)
            assert.isDefined(flush, `${name}: ${write.paths[0]} is not flushed after ${write.name}`)
          }
        }
      })

      if (durability === "file") {
        it("flushes no directory", () => {
          for (const [name, calls] of operations) {
            for (const { paths } of calls.filter(isFlush)) assert.match(paths[0]!, /\.tmp$|^d\/f$|^d\/appended2?$/, name)
          }
        })
        return
      }

      it("flushes each directory after a name in it is created, changed or removed", () => {
        for (const [operation, calls] of operations) {
          const gone = new Set(calls.filter(({ name }) => name === "rmdir").flatMap(({ paths }) => paths))
          // A directory that the operation removes needs no flush.
          const isGone = (path: string): boolean => [...gone].some((top) => path === top || path.startsWith(`${top}/`))
          for (const call of calls) {
            for (const directory of namesOf(call).map(dirname)) {
              if (isGone(directory)) continue
              const flush = calls.find((other) => isFlush(other) && other.paths[0] === directory && other.began > call.ended)
              assert.isDefined(flush, `${operation}: ${directory} is not flushed after ${call.name} ${call.paths.join(" ")}`)
            }
          }
        }
      })

      it("flushes the directory of a file that an append creates", () => {
        for (const name of ["appendNew", "appendNewSink"]) {
          const calls = operations.get(name)!
          const written = calls.findLastIndex((call) => isWrite(call) || isPublication(call))
          assert.isTrue(
            calls.slice(written).some((call) => isFlush(call) && call.paths[0] === "d"),
            name
          )
        }
      })
    })
  }
})
