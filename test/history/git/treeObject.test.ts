import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  decodeCommit,
  decodeTree,
  emptyTreeId,
  encodeCommit,
  encodeName,
  encodeTree,
  type TreeEntry,
  withModes
} from "../../../src/history/git/codec.ts"
import { hasGit, saysNoGit } from "../../differential/engines.ts"

const between = (minimum: number, maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(between(0, values.length - 1), (i) => values[i]!)

/** Names of few characters, so that the slash after the name of a directory often changes the order. */
const segment = Arbitrary.map(
  Arbitrary.array(oneOf(["a", "b", "-", ".", "0", "é", "😀", "\uffee", " ", ".git", "%fs-algebra%", "modes"]), {
    minLength: 1,
    maxLength: 3
  }),
  (parts) => (/^\.\.?$/.test(parts.join("")) ? "\0ff2e" : parts.join(""))
)
const mode = oneOf([undefined, 0o644, 0o755, 0o644, 0o755, 0o600, 0o700, 0o000, 0o777, 0o444, 0o100, 0o655])
const id = Arbitrary.map(between(1, 2 ** 31), (n) => createHash("sha1").update(String(n)).digest("hex"))
const entry = Arbitrary.map(
  Arbitrary.all([oneOf(["file", "file", "directory", "symlink"]), mode, id]),
  ([kind, mode, id]): TreeEntry => (kind === "file" && mode !== undefined ? { kind, mode, id } : { kind, id })
)
const entries = Arbitrary.map(Arbitrary.array(Arbitrary.all([segment, entry]), { maxLength: 12 }), (all) => new Map(all))

const sha1 = (kind: string, body: Buffer) => createHash("sha1").update(`${kind} ${body.length}\0`).update(body).digest("hex")

const read = (body: Buffer, modes: Buffer | undefined) =>
  Result.flatMap(decodeTree(body), (decoded) => withModes(decoded, decoded.modes === undefined ? undefined : modes))

const reasonOf = <A>(result: Result.Result<A, { readonly reason: string }>) =>
  Result.isFailure(result) ? result.failure.reason : "none"

const idA = "a".repeat(40)
const row = (mode: string, name: string, id = idA) => Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")])
const file = (mode: number): TreeEntry => ({ kind: "file", mode, id: idA })

describe("directories as git trees", () => {
  it("encode the empty directory as git's empty tree", () => {
    const { body, modes } = encodeTree(new Map())
    assert.strictEqual(sha1("tree", body), "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    assert.strictEqual(emptyTreeId, "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    assert.isUndefined(modes)
  })

  it("have no modes entry for usual modes", () =>
    assert.isUndefined(
      encodeTree(
        new Map([
          ["a", file(0o644)],
          ["b", file(0o755)],
          ["c", { kind: "file", id: idA }]
        ]),
        0o755
      ).modes
    ))

  it("store other modes as lines of a separate entry, in the order of the stored names", () => {
    const { body, modes } = encodeTree(
      new Map([
        ["b", file(0o600)],
        [".git", file(0o700)],
        ["a", file(0o7)],
        ["c", file(0o755)]
      ]),
      0o1700
    )
    assert.strictEqual(modes?.toString(), "0700 .\n0700 %fs-algebra%=.git\n0007 a\n0600 b\n")
    const rows = [
      row("100755", "%fs-algebra%=.git"),
      row("100644", "%fs-algebra%modes", sha1("blob", modes!)),
      row("100644", "a"),
      row("100644", "b"),
      row("100755", "c")
    ]
    assert.deepStrictEqual(body, Buffer.concat(rows))
  })

  it.prop(
    "are decoded with all names, kinds, modes and ids",
    [entries, mode],
    ([entries, mode]) => {
      const { body, modes } = encodeTree(entries, mode)
      const back = Result.getOrThrow(read(body, modes))
      assert.strictEqual(back.mode, mode ?? 0o755)
      const expected = new Map([...entries].map(([name, e]) => [name, e.kind === "file" ? { ...e, mode: e.mode ?? 0o644 } : e]))
      assert.deepStrictEqual(new Map([...back.entries].sort()), new Map([...expected].sort()))
    },
    { arbitrary: { runs: 500 } }
  )

  const position = between(0, 2000)
  const mutation = Arbitrary.all({
    at: position,
    byte: oneOf([0, 10, 32, 46, 47, 48, 49, 52, 54, 97, 255]),
    take: between(0, 30)
  })
  const damaged = (
    bytes: Buffer,
    { at, byte, take }: { readonly at: number; readonly byte: number; readonly take: number }
  ) => {
    if (bytes.length === 0) return Buffer.from([byte])
    const out = Buffer.from(bytes)
    out[at % out.length] = byte
    return take > 20 ? out.subarray(0, out.length - take + 20) : out
  }

  it.prop(
    "that are damaged are refused as corrupt, or decode to a tree with exactly this encoding",
    [entries, mode, mutation, oneOf([true, false])],
    ([entries, mode, mutation, inModes]) => {
      const whole = encodeTree(entries, mode)
      const body = inModes ? whole.body : damaged(whole.body, mutation)
      const modes = inModes && whole.modes ? damaged(whole.modes, mutation) : whole.modes
      const back = read(body, modes)
      if (Result.isFailure(back)) {
        assert.strictEqual(back.failure._tag, "StoreFault")
        assert.strictEqual(back.failure.reason, "corrupt")
        return
      }
      const decoded = Result.getOrThrow(decodeTree(body))
      const again = encodeTree(back.success.entries, back.success.mode)
      if (decoded.modes === undefined) assert.deepStrictEqual(again, { body, modes: undefined })
      else {
        assert.deepStrictEqual(again.modes, modes)
        // The reader compares the id of the modes entry.
        const at = body.indexOf("100644 %fs-algebra%modes\0") + 25
        const expected = Buffer.from(body)
        Buffer.from(sha1("blob", modes!), "hex").copy(expected, at)
        assert.deepStrictEqual(again.body, expected)
      }
    },
    { arbitrary: { runs: 2000 } }
  )

  it.each<[string, Buffer]>([
    ["a gitlink", row("160000", "a")],
    ["an obsolete mode", row("100664", "a")],
    ["a mode with a leading zero", row("040000", "a")],
    ["a set-user-ID mode", row("104755", "a")],
    ["no mode", row("", "a")],
    ["a mode without an end", Buffer.from("1".repeat(100))],
    ["the name ..", row("40000", "..")],
    ["the name .", row("40000", ".")],
    ["a name with a slash", row("100644", "a/b")],
    ["an empty name", row("100644", "")],
    ["an empty name of a directory", row("40000", "")],
    ["a raw .git", row("40000", ".git")],
    ["an unknown name with the prefix of this library", row("100644", "%fs-algebra%other")],
    ["the same name twice", Buffer.concat([row("100644", "a"), row("100644", "a")])],
    ["a file and a directory of the same name", Buffer.concat([row("100644", "a"), row("100644", "a-"), row("40000", "a")])],
    ["names out of order", Buffer.concat([row("100644", "b"), row("100644", "a")])],
    ["a directory sorted as a file", Buffer.concat([row("40000", "a"), row("100644", "a-")])],
    ["a directory in place of the file of modes", row("40000", "%fs-algebra%modes")],
    ["two files of modes", Buffer.concat([row("100644", "%fs-algebra%modes"), row("100644", "%fs-algebra%modes")])],
    ["a link in place of the file of modes", row("120000", "%fs-algebra%modes")],
    ["half of an id", row("100644", "a").subarray(0, -10)],
    ["no id", Buffer.from("100644 a\0")],
    ["a mode alone", Buffer.from("100644 ")],
    ["a NUL at the beginning", Buffer.from("\x00100644 a")]
  ])("a tree with %s is corrupt", (_, body) => assert.strictEqual(reasonOf(decodeTree(body)), "corrupt"))

  const decoded = {
    entries: new Map<string, TreeEntry>([
      ["a", file(0o644)],
      ["d", { kind: "directory", id: idA }],
      ["l", { kind: "symlink", id: idA }]
    ]),
    modes: idA
  }
  it.each([
    ["", "no lines"],
    ["0600 a", "no line end"],
    ["0600 a\n\n", "an empty line"],
    ["0600 b\n", "a missing name"],
    ["0700 d\n", "a mode for a directory"],
    ["0600 l\n", "a mode for a link"],
    ["0700 a\n", "an executable mode for a file that is not executable in the tree"],
    ["4600 a\n", "a set-user-ID bit"],
    ["1700 .\n", "a sticky bit"],
    ["600 a\n", "a mode of three digits"],
    ["0688 a\n", "digits that are not octal"],
    ["0644 a\n", "the mode that the tree states anyway"],
    ["0755 .\n", "the default mode of a directory"],
    ["0600 a\n0600 a\n", "the same name twice"],
    ["0600 a\n0600 .\n", "the directory itself after its entries"],
    ["0600 ../a\n", "a path instead of a name"],
    ["0600 ..\n", "the name .."],
    ["0600 a\r\n", "CRLF line ends"]
  ])("modes %j are corrupt: %s", (modes) => assert.strictEqual(reasonOf(withModes(decoded, Buffer.from(modes))), "corrupt"))

  it("get the modes of a valid modes entry", () =>
    assert.deepStrictEqual(
      Result.getOrThrow(withModes(decoded, Buffer.from("0700 .\n0640 a\n"))).entries.get("a"),
      file(0o640)
    ))
})

if (!hasGit) saysNoGit("git's own trees")

describe.runIf(hasGit)("directories as git makes them", () => {
  const mktree = (directory: string, entries: ReadonlyMap<string, TreeEntry>): string => {
    const kinds = { file: "blob", symlink: "blob", directory: "tree" }
    const modes = { symlink: "120000", directory: "040000" }
    const lines = [...entries].map(([segment, { id, kind, mode = 0o644 }]) =>
      Buffer.concat([
        Buffer.from(`${kind === "file" ? (mode & 0o100 ? "100755" : "100644") : modes[kind]} ${kinds[kind]} ${id}\t`),
        encodeName(segment),
        Buffer.from([0])
      ])
    )
    const { stderr, stdout } = spawnSync("git", ["--git-dir", directory, "mktree", "-z", "--missing"], {
      input: Buffer.concat(lines),
      encoding: "utf8"
    })
    assert.strictEqual(stderr, "")
    return stdout.trim()
  }

  const repository = Effect.acquireRelease(
    Effect.sync(() => {
      const directory = mkdtempSync(join(tmpdir(), "fs-algebra-tree-"))
      spawnSync("git", ["init", "--quiet", "--bare", directory])
      return directory
    }),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )

  it.live.prop("have the same bytes", [entries], ([entries]) =>
    Effect.map(repository, (directory) => {
      const withUsual = (e: TreeEntry) => (e.kind === "file" ? { ...e, mode: e.mode === 0o755 ? 0o755 : 0o644 } : e)
      const usual = new Map([...entries].map(([name, e]) => [name, withUsual(e)]))
      assert.strictEqual(sha1("tree", encodeTree(usual).body), mktree(directory, usual))
    }).pipe(Effect.scoped)
  )
})

describe("snapshots as commits", () => {
  const commit = { tree: idA, createdAt: 1_700_000_000_123, message: 'what it was\n\n{"a":1}\n' }

  it("have the usual form of git commits", () =>
    assert.strictEqual(
      encodeCommit({ ...commit, createdAt: 1_700_000_000_000 }).toString(),
      `tree ${idA}\nauthor fs-algebra <fs-algebra@localhost> 1700000000 +0000\ncommitter fs-algebra <fs-algebra@localhost> 1700000000 +0000\n\nwhat it was\n\n{"a":1}\n`
    ))

  const text = Arbitrary.map(Arbitrary.schema(Schema.String), (text) => text.toWellFormed().replaceAll("\0", "\n"))
  it.prop("are decoded unchanged, with times to the millisecond", [text, between(0, 2 ** 43)], ([message, createdAt]) => {
    const commit = { tree: idA, createdAt, message }
    assert.deepStrictEqual(Result.getOrThrow(decodeCommit(encodeCommit(commit))), commit)
  })

  const whole = encodeCommit(commit).toString()
  it.each([
    ["", "nothing"],
    [whole.slice(1), "a missing first byte"],
    [whole.replace("+0000", "+0100"), "a time zone other than UTC"],
    [whole.replace("fs-algebra <", "somebody <"), "another author"],
    [whole.replace("1700000000", "1700000001"), "two different times"],
    [whole.replaceAll("1700000000", "9999999999999"), "a time out of range"],
    [whole.replace(idA, "A".repeat(40)), "an id in upper case"],
    [whole.replace("author", `parent ${idA}\nauthor`), "a parent"],
    [whole.replace("\n\nwhat", "\nencoding x\n\nwhat"), "an encoding header"],
    [`${whole}\0`, "a NUL"]
  ])("%j is corrupt: %s", (text) => assert.strictEqual(reasonOf(decodeCommit(Buffer.from(text))), "corrupt"))

  it("are corrupt if they contain bytes that are not UTF-8", () =>
    assert.strictEqual(reasonOf(decodeCommit(Buffer.concat([Buffer.from(whole), Buffer.from([0xff])]))), "corrupt"))

  it("replace a NUL in a message, because git would truncate the message there", () =>
    assert.strictEqual(Result.getOrThrow(decodeCommit(encodeCommit({ ...commit, message: "a\0b" }))).message, "a\ufffdb"))
})
