import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { decodeName, encodeName } from "../../../src/history/git/codec.ts"
import { open } from "../../../src/history/git/packWriter.ts"
import { hasGit, saysNoGit } from "../../differential/engines.ts"

const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(
    Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: values.length - 1 }))),
    (i) => values[i]!
  )

/** Pieces of names that git could misread. */
const pieces = [
  ".",
  "g",
  "G",
  "i",
  "t",
  "~",
  "1",
  "9",
  " ",
  ":",
  "\\",
  "a",
  "é",
  "😀",
  "%",
  "=",
  "-",
  "\u200c",
  "\ufeff",
  "\u206f",
  "\ufffe",
  "\uffff",
  "\ufffd",
  "\u{1fffe}",
  ".git",
  "git~1",
  ".GIT",
  "gitmod~1",
  "gi7eba",
  "gi7d29",
  "maba30",
  ".gitmodules",
  ".gitattributes",
  ".mailmap",
  ".gitignore",
  "%fs-algebra%",
  "%fs-algebra%=",
  "%fs-algebra%~",
  "%fs-algebra%modes",
  "2e2e",
  "ff"
] as const

const isText = (text: string) => text !== "" && text !== "." && text !== ".."
const text = Arbitrary.filter(
  Arbitrary.map(Arbitrary.array(oneOf(pieces), { minLength: 1, maxLength: 7 }), (parts) => parts.join("")),
  isText
)

/** Random sequences of bytes and of pieces of names that git could misread. */
const bytes = Arbitrary.map(
  Arbitrary.array(
    oneOf([
      ...pieces.map((piece) => Buffer.from(piece)),
      ...["ff", "c3", "00", "0a", "7f", "2f", "eda080"].map((digits) => Buffer.from(digits, "hex"))
    ]),
    { maxLength: 6 }
  ),
  (parts) => Buffer.concat(parts)
)

/** Returns the key that a host's port gives a name that is not UTF-8. */
const keyOf = (name: Buffer) => `\0${name.toString("hex")}`
const key = Arbitrary.map(
  Arbitrary.filter(
    Arbitrary.map(
      Arbitrary.all([bytes, oneOf([Buffer.from([0xff]), Buffer.from("\n"), Buffer.from([0xc3])]), bytes]),
      (parts) => Buffer.concat(parts)
    ),
    (name) =>
      !name.includes(0) &&
      !name.includes("/") &&
      (!Buffer.from(name.toString()).equals(name) || /[\0-\x1f\x7f]/.test(name.toString()))
  ),
  keyOf
)

const mark = "%fs-algebra%"

describe("names in git trees:", () => {
  it.each([
    ["a.txt", "a.txt"],
    [".gitignore", ".gitignore"],
    [".github", ".github"],
    ["é 日.md", "é 日.md"],
    ["%fs-algebra", "%fs-algebra"],
    ["trailing. ", "trailing. "],
    ["backup~", "backup~"],
    [".git", `${mark}=.git`],
    [".GiT", `${mark}=.GiT`],
    [".git. .", `${mark}=.git. .`],
    [".git::$INDEX_ALLOCATION", `${mark}=.git::$INDEX_ALLOCATION`],
    ["GIT~1", `${mark}=GIT~1`],
    [".g\u200cit", `${mark}=.g\u200cit`],
    [".git\ufffex", `${mark}=.git\ufffex`],
    [".gitmodules", `${mark}=.gitmodules`],
    [".gitattributes", `${mark}=.gitattributes`],
    ["gi7eba~1", `${mark}=gi7eba~1`],
    [`${mark}modes`, `${mark}=${mark}modes`],
    [`${mark}~ff`, `${mark}=${mark}~ff`],
    ["a\\.git", `${mark}~615c2e676974`],
    ["\0ff2e", `${mark}~ff2e`],
    ["\x000a", `${mark}~0a`]
  ])("%j is stored as %j", (segment, stored) => {
    assert.strictEqual(encodeName(segment).toString(), stored)
    assert.strictEqual(decodeName(Buffer.from(stored)), segment)
  })

  it.each(["", ".", "..", "a/b", "a\nb", "a\0", "\0", "\0zz", "\0FF", "\0f", "\x0061", "\x0000ff", "\x002fff", "\ud800"])(
    "%j is not a segment and cannot be encoded",
    (segment) => assert.throws(() => encodeName(segment), RangeError)
  )

  it.each([
    "",
    ".",
    "..",
    "/",
    "a/b",
    "../a",
    "a\0b",
    "a\nb",
    "\x7f",
    ".git",
    ".GIT",
    "git~1",
    ".git ",
    ".gitmodules",
    "a\\b",
    "\u200d.git",
    `${mark}`,
    `${mark}modes`,
    `${mark}x`,
    `${mark}=`,
    `${mark}=.`,
    `${mark}=..`,
    `${mark}=a`,
    `${mark}=../.git`,
    `${mark}=a\\.git`,
    `${mark}~`,
    `${mark}~f`,
    `${mark}~FF`,
    `${mark}~61`,
    `${mark}~2e2e`,
    `${mark}~2f`,
    `${mark}~ff2f`,
    `${mark}~ff00`,
    `${mark}~2e676974`
  ])("%j in a tree is not an encoded name", (stored) => assert.isUndefined(decodeName(Buffer.from(stored))))

  it("bytes that are not UTF-8 are not an encoded name", () => assert.isUndefined(decodeName(Buffer.from([0x61, 0xff]))))

  const segment = Arbitrary.flatMap(oneOf([text, text, key]), (choice) => choice)
  it.prop(
    "every segment is decoded from its encoded name",
    [segment],
    ([segment]) => {
      assert.strictEqual(decodeName(encodeName(segment)), segment)
    },
    { arbitrary: { runs: 3000 } }
  )

  it.prop(
    "every name that decodes is the encoding of its segment",
    [bytes],
    ([stored]) => {
      const segment = decodeName(stored)
      if (segment !== undefined) assert.deepStrictEqual(encodeName(segment), stored)
    },
    { arbitrary: { runs: 3000 } }
  )

  it.prop("no encoded name contains a slash, a backslash, a control character or invalid UTF-8", [segment], ([segment]) => {
    const stored = encodeName(segment)
    assert.isTrue(Buffer.from(stored.toString()).equals(stored))
    assert.notMatch(stored.toString(), /[/\\\0-\x1f\x7f]/)
  })
})

if (!hasGit) saysNoGit("names that git refuses")

/** Returns names with characters that git ignores on some systems, and short combinations of dangerous pieces. */
const candidates = (): ReadonlyArray<string> => {
  const out = new Set<string>()
  for (let point = 0x20; point <= 0xffff; point++) {
    if ((point >= 0xd800 && point <= 0xdfff) || point === 0x2f || point === 0x7f) continue
    const character = String.fromCharCode(point)
    out.add(`.git${character}`)
    if (point > 0x250 && (point < 0x2000 || point > 0x20ff) && point < 0xfe00) continue
    for (const name of [`${character}.git`, `.g${character}t`, `git~1${character}`, `.gitmodules${character}`]) out.add(name)
    out.add(`gi7eba${character}1`)
  }
  for (const a of pieces) for (const b of pieces) for (const c of ["", "1", ":", "\\.git", ".gitmodules"]) out.add(a + b + c)
  return [...out].filter(isText)
}

describe.runIf(hasGit)("names that git refuses", () => {
  const store = Effect.acquireRelease(
    Effect.sync(() => {
      const directory = mkdtempSync(join(tmpdir(), "fs-algebra-names-"))
      execFileSync("git", ["init", "--quiet", "--bare", directory])
      return directory
    }),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )

  /** Returns a tree with one link of that name. */
  const treeOf = (name: Buffer, id: string): Buffer =>
    Buffer.concat([Buffer.from("120000 "), name, Buffer.from([0]), Buffer.from(id, "hex")])

  /** Returns the names that `git fsck --strict` reports. A link called .gitignore is only a notice. */
  const refused = Effect.fnUntraced(function* (names: ReadonlyArray<Buffer>) {
    const directory = yield* store
    const writer = yield* open(join(directory, "objects/pack"))
    const blob = writer.add("blob", Buffer.from("target"))
    const byId = new Map(names.map((name) => [writer.add("tree", treeOf(name, blob)), name]))
    yield* writer.finish
    const { stderr } = spawnSync("git", ["--git-dir", directory, "fsck", "--full", "--strict", "--no-dangling"], {
      encoding: "utf8",
      maxBuffer: 2 ** 30,
      env: { PATH: process.env["PATH"], LC_ALL: "C" }
    })
    return [...stderr.matchAll(/ in tree ([0-9a-f]{40}): (\w+)/g)]
      .filter(([, , what]) => what !== "gitignoreSymlink")
      .map(([, id]) => byId.get(id!)!)
  })

  it.live("are all encoded as names that git accepts", () =>
    Effect.gen(function* () {
      const names = candidates()
      const bad = yield* refused(names.map((name) => Buffer.from(name)))
      assert.isAbove(bad.length, 100)
      const isKept = (name: string) => encodeName(name).equals(Buffer.from(name))
      assert.deepStrictEqual(bad.map(String).filter(isKept), [])
      const others = names.filter((name) => !isKept(name)).map(encodeName)
      assert.deepStrictEqual((yield* refused(others)).map(String), [])
    }).pipe(Effect.scoped)
  )

  it.live("can be added to an index under their encoded names, even with every protection of git", () =>
    Effect.gen(function* () {
      const directory = yield* store
      const takes = (name: string): boolean => {
        const protection = ["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"]
        const { status } = spawnSync(
          "git",
          ["--git-dir", directory, ...protection, "update-index", "--add", "--cacheinfo", `120000,${"1".repeat(40)},${name}`],
          { stdio: "ignore" }
        )
        return status === 0
      }
      const names = [
        ".git",
        ".GIT",
        "git~1",
        ".git ",
        ".git:x",
        ".g\u200cit",
        ".git\ufffe",
        "a\\.git",
        ".gitmodules",
        "gi7eba~1"
      ]
      assert.deepStrictEqual(
        names.filter((name) => takes(name)),
        []
      )
      assert.deepStrictEqual(
        names.filter((name) => !takes(encodeName(name).toString())),
        []
      )
    }).pipe(Effect.scoped)
  )
})
