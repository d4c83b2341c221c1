import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Policy from "../../src/agent/Policy.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import { capture, directory, type Entry, type Files, link, type Picture } from "../../src/testing/Files.ts"
import { type Ground, host, memory, oneOf } from "./changing.ts"
import { session, snapshotsOf } from "./policing.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const runs = soak ? 2000 : 60

const secret = "S3CR3T"

/** Entries that may be in the tree. The policies hide every name that begins with `hid`, and everything in `d/sub`. */
const candidates: ReadonlyArray<readonly [path: string, entry: Entry]> = [
  ["a.txt", "open a\n"],
  ["b.txt", "open b\n"],
  ["hid1", `${secret} 1`],
  ["d/c.txt", "open c\n"],
  ["d/hid2", `${secret} 2`],
  ["d/sub/inner3", `${secret} 3`],
  ["d/sub/deep/inner4", `${secret} 4`],
  ["d/ro1", "kept 1\n"],
  ["e/hid5/plain", `${secret} 5`],
  ["e/f.txt", "open f\n"],
  ["ro2/g.txt", "kept 2\n"],
  ["e/sub", directory],
  ["to1", link("hid1")],
  ["to2", link("d/sub")],
  ["to3", link("d/../hid1")],
  ["to4", link("d")],
  ["e/to5", link("hid5/plain")],
  ["e/to6", link("../d/sub/inner3")],
  ["to7", link("to2/inner3")],
  ["to8", link("d/ro1")],
  [".gitignore", "b.txt\n"]
]

const places = [
  ...candidates.map(([path]) => path),
  "d",
  "e",
  "d/sub",
  "d/sub/deep",
  "e/hid5",
  "ro2",
  ".",
  "to2/inner3",
  "to4/hid2",
  "to4/sub/inner3",
  "to4/ro1",
  "to3/x",
  "new",
  "new/deep/x",
  "hid9",
  "d/sub/new",
  "e/sub/x1",
  "new/hid9",
  "ro9",
  "e/sub/sub",
  "d/../hid1",
  "to4/new"
]

const patches: ReadonlyArray<(a: string, b: string) => string> = [
  (a) => `*** Update File: ${a}\n-open a\n+changed`,
  (a) => `*** Delete File: ${a}`,
  (a) => `*** Add File: ${a}\n+added`,
  (a, b) => `*** Update File: ${a}\n*** Move to: ${b}\n-open c\n+moved`
]

const calls: ReadonlyArray<(a: string, b: string, flag: boolean) => readonly [tool: string, params: object]> = [
  (path) => ["ls", { path }],
  (path, _, flag) => ["read_file", { path, ...(flag && { encoding: "base64" }) }],
  (path) => ["stat", { path }],
  (path) => ["tree", { path }],
  (path, _, flag) => ["glob", { path, pattern: flag ? "**" : "*" }],
  (path, _, flag) => ["grep", { path, pattern: flag ? "." : "S3", mode: flag ? "files" : "matches" }],
  (path, _, flag) => ["write_file", { path, content: "written\n", mode: flag ? "overwrite" : "append" }],
  (path) => ["write_file", { path, content: "written\n" }],
  (path) => ["edit_file", { path, old_string: "open", new_string: "shut" }],
  (a, b) => [
    "edit_file",
    {
      edits: [
        { path: a, old_string: "open", new_string: "shut" },
        { path: b, old_string: "open", new_string: "shut" }
      ]
    }
  ],
  (path) => ["rm", { path }],
  (from, to, overwrite) => ["move", { from, to, overwrite }],
  (from, to, overwrite) => ["copy", { from, to, overwrite }],
  (path) => ["mkdir", { path }],
  (a, b, flag) => [
    "apply_patch",
    { patch: `*** Begin Patch\n${patches[flag ? 0 : 3]!(a, b)}\n${patches[flag ? 1 : 2]!(b, a)}\n*** End Patch` }
  ],
  () => ["diff", { snapshot_id: "start" }],
  (path, _, flag) => ["restore", { snapshot_id: "start", ...(flag && { paths: [path] }) }]
]

const globs = [
  { read: ["hid*", "d/sub/**"], write: "ro*", delete: "ro*" },
  { read: ["**/hid*", "d/sub/*"], write: ["**/ro*", "hid1"], delete: ["ro[0-9]", "**"] },
  { read: ["{hid,none}*", "/d/sub/**/*"], write: ["ro?"], delete: ["ro?", "**/ro?/**"] }
]

const isHidden = (path: string): boolean => path.split("/").some((name) => name.startsWith("hid")) || path.startsWith("d/sub/")
const isKept = (path: string): boolean => isHidden(path) || path.split("/").some((name) => /^ro\d$/.test(name))
const only = (all: Picture, which: (path: string) => boolean): Picture =>
  Object.fromEntries(Object.entries(all).filter(([path]) => which(path)))

const tree = Arbitrary.map(
  Arbitrary.array(oneOf([true, true, false]), { minLength: candidates.length, maxLength: candidates.length }),
  (isIn): Files => Object.fromEntries(candidates.filter((_, index) => isIn[index]))
)
const step = Arbitrary.all({ call: oneOf(calls), a: oneOf(places), b: oneOf(places), flag: oneOf([true, false]) })

const tokens = ["hid1", "hid2", "hid5", "inner3", "inner4", "deep/inner4"]

for (const [name, ground, times] of [
  ["memory", memory, runs],
  ["a host", host, runs / 4]
] as ReadonlyArray<readonly [string, Ground, number]>) {
  describe(`random calls under access policies in ${name}`, () => {
    it.live.prop(
      "never reveal hidden contents or names, and never change protected files",
      [tree, oneOf(globs), Arbitrary.array(step, { minLength: 5, maxLength: 15 })],
      ([files, deny, steps]) =>
        Effect.scoped(
          Effect.gen(function* () {
            const fs = yield* ground(files)
            // Snapshots are taken in memory only: git is slow, and the policy is the same there.
            const services = name === "memory" ? yield* snapshotsOf(fs) : Context.empty()
            if (name === "memory") {
              yield* Context.getUnsafe(services as Context.Context<Snapshots>, Snapshots).snapshot({ tag: "start" })
              yield* Effect.ignore(fs.write("hid1", `${secret} since`, { mode: "replace" }))
              yield* Effect.ignore(fs.write("d/sub/inner9", `${secret} 9`, { createParents: false }))
            }
            const { call } = yield* session(fs, Policy.access({ deny }), services)
            const before = yield* capture(fs.port)
            // Paths of visible files, whose names may contain the name of a hidden file.
            const open = new Set<string>()
            for (const { a, b, call: make, flag } of steps) {
              const [tool, params] = make(a, b, flag)
              const answer = yield* call(tool, params)
              const sent = JSON.stringify(params)
              const told = JSON.stringify(answer)
              assert.notInclude(told, secret, sent)
              assert.notInclude(told, Buffer.from(secret).toString("base64").slice(0, 7), sent)
              const after = yield* capture(fs.port)
              for (const path of Object.keys(after)) if (!isHidden(path)) open.add(path)
              const known = [sent, ...open].join("\n")
              for (const token of tokens) if (!known.includes(token)) assert.notInclude(told, token, `${tool} ${sent}`)
              assert.deepStrictEqual(only(after, isKept), only(before, isKept), `${tool} ${sent}: ${answer.message}`)
              for (const [path, what] of Object.entries(after)) {
                if (!isHidden(path)) assert.notInclude(what, secret, `${tool} ${sent}: ${path}`)
              }
            }
          })
        ),
      { arbitrary: { runs: times } }
    )
  })
}
