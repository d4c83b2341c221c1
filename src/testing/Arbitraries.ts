/**
 * Random paths, trees and programs for effect's Arbitrary, which shrinks failing programs. Paths use only a few names,
 * so that the calls of a program often meet at the same path.
 *
 * @since 0.1.0
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { directory, type Entry, type Files, link } from "./Files.ts"
import type { Command } from "./Model.ts"

const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(
    Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: values.length - 1 }))),
    (i) => values[i]!
  )

const anyOf = <A>(...choices: ReadonlyArray<Arbitrary.Arbitrary<A>>): Arbitrary.Arbitrary<A> =>
  Arbitrary.flatMap(oneOf(choices), (choice) => choice)

/**
 * A path in normal form, with one to three segments from a, b, c and A.
 *
 * @since 0.1.0
 */
export const path: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.array(oneOf(["a", "b", "c", "A"]), { minLength: 1, maxLength: 3 }),
  (segments) => segments.join("/")
)

/**
 * A path as a caller may write it: in normal form, with redundant slashes or dots, the root, or an invalid path.
 *
 * @since 0.1.0
 */
export const input: Arbitrary.Arbitrary<string> = anyOf(
  path,
  path,
  path,
  path,
  Arbitrary.map(path, (path) => `/${path}/`),
  Arbitrary.map(path, (path) => `./${path.replaceAll("/", "//")}`),
  Arbitrary.map(Arbitrary.all([path, path]), ([up, path]) => `${up.replace(/.*\//, "")}/../${path}`),
  oneOf([".", "", "/", "a/..", "../a", "a/../../b"])
)

/**
 * A name that backends must accept unchanged, with spaces, dots, percent signs, other scripts, and characters outside the
 * Basic Multilingual Plane. Backends with `Bench.plainEnds` reject a name that ends in a dot or a space.
 *
 * @since 0.1.0
 */
export const name: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.array(
    oneOf(["a", "B", "7", " ", ".", "-", "%", "é", "e\u0301", "日", "😀", "\uffee", "'", "$", "*", "[", "{", "\u2028"]),
    {
      minLength: 1,
      maxLength: 12
    }
  ),
  (characters) => {
    const joined = characters.join("")
    return joined === "." || joined === ".." ? `${joined}a` : joined
  }
)

/**
 * A text of up to eight parts: letters, an emoji, and LF and CRLF line endings.
 *
 * @since 0.1.0
 */
export const text: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.array(oneOf(["x", "y", "z", "\n", "\r\n", "é", "😀"]), { maxLength: 8 }),
  (parts) => parts.join("")
)

const downwardTarget = anyOf(path, oneOf([".", "./c", "b//c", "/a"]))

const target: Arbitrary.Arbitrary<string> = anyOf(
  downwardTarget,
  path,
  oneOf(["..", "../a", "../b/c", "../../a", "a/..", "a/../b", "../../../a"])
)

/**
 * A tree that `plant` can create on a case-sensitive filesystem with links. No path is below a file or a link.
 *
 * @since 0.1.0
 */
export const files: Arbitrary.Arbitrary<Files> = Arbitrary.map(
  Arbitrary.array(Arbitrary.all([path, anyOf<Entry>(text, text, oneOf<Entry>([directory]), Arbitrary.map(target, link))]), {
    maxLength: 10
  }),
  (entries) => {
    const out = new Map<string, Entry>()
    for (const [at, entry] of entries) {
      const clashes = [...out].some(([other, there]) =>
        at.startsWith(`${other}/`) && there !== directory ? true : other.startsWith(`${at}/`) && entry !== directory
      )
      if (!clashes && !out.has(at)) out.set(at, entry)
    }
    return Object.fromEntries(out)
  }
)

const boolean = oneOf([false, true])
const usuallyTrue = oneOf([true, true, true, false])
const ifMatch = oneOf([undefined, undefined, undefined, undefined, undefined, "absent", "current", "stale"] as const)

const write = Arbitrary.all({
  _tag: Arbitrary.Constant("Write"),
  via: oneOf(["write", "writeBytes", "sink"]),
  path: input,
  text,
  mode: oneOf(["overwrite", "overwrite", "create", "append", "replace", "appendExisting"]),
  createParents: usuallyTrue,
  ifMatch
})

const edit = Arbitrary.all({
  _tag: Arbitrary.Constant("Edit"),
  path: input,
  oldText: oneOf(["x", "y", "xy", "é", "😀", ""]),
  newText: oneOf(["x", "z", "", "long text"]),
  match: oneOf(["unique", "first", "all"]),
  ifMatch
})

const remove = Arbitrary.all({
  _tag: Arbitrary.Constant("Delete"),
  path: input,
  recursive: boolean,
  missing: oneOf(["fail", "ignore"]),
  ifMatch
})

const mkdir = Arbitrary.all({ _tag: Arbitrary.Constant("Mkdir"), path: input, parents: usuallyTrue, existOk: usuallyTrue })

const transfer = Arbitrary.all({
  _tag: Arbitrary.Constant("Transfer"),
  via: oneOf(["copy", "move"]),
  from: input,
  to: input,
  overwrite: boolean
})

const symlink = (target: Arbitrary.Arbitrary<string>) =>
  Arbitrary.all({ _tag: Arbitrary.Constant("Symlink"), path: input, target })

const look = (links: boolean) =>
  Arbitrary.all({
    _tag: Arbitrary.Constant("Look"),
    via: oneOf(
      links
        ? (["exists", "stat", "lstat", "realPath", "list", "readString", "glob", "grep", "readLink"] as const)
        : (["exists", "stat", "lstat", "realPath", "list", "readString", "glob", "grep"] as const)
    ),
    path: input
  })

const walk: Arbitrary.Arbitrary<Command> = Arbitrary.Constant({ _tag: "Walk" })

/**
 * The links that programs create. `downwards` means links that stay inside the root even if they are copied or moved.
 *
 * @since 0.1.0
 */
export type Links = "none" | "downwards" | "any"

/**
 * Returns an arbitrary sequence of 1 to 40 calls. Some calls create and read links, unless `links` is `none`.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const program = (options: { readonly links: Links }): Arbitrary.Arbitrary<ReadonlyArray<Command>> => {
  const looks = look(options.links !== "none")
  const link = symlink(options.links === "any" ? target : downwardTarget)
  const common: ReadonlyArray<Arbitrary.Arbitrary<Command>> = [
    write,
    write,
    write,
    mkdir,
    mkdir,
    transfer,
    transfer,
    transfer,
    remove,
    edit,
    looks,
    looks,
    walk
  ]
  return Arbitrary.array(anyOf(...common, ...(options.links === "none" ? [] : [link, link])), { minLength: 1, maxLength: 40 })
}
