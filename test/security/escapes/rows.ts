/**
 * The table: layouts of links, and paths over them with their meaning. It follows the table of Go's `os.Root`, the kernel's
 * rules for `RESOLVE_BENEATH`, and a list of known attacks on paths. C-01 to C-06 and C-39 define the answers.
 *
 * In a link's text, `$ROOT` and `$OUT` are the host paths of the root and of a directory outside. `$FD` is an open descriptor
 * of the latter. The entries outside have the same names as those inside, so that an escape finds an entry.
 */
import { directory, file, link, type Tree } from "./tree.ts"
import {
  blocked,
  escape,
  invalid,
  type Leads,
  loop,
  lost,
  type Meaning,
  toDirectory,
  toFile,
  toNothing,
  tooLong
} from "./meaning.ts"

const inside = (path: string): readonly [string, string] => [path, file(`inside ${path}\n`)]

export const base: Tree = {
  ...Object.fromEntries([inside("in/file"), inside("in/deep/file"), inside("plain"), inside("source.txt")]),
  empty: directory
}

const secret = file("secret, inside of nothing\n")
export const outside: Tree = {
  "outside/file": secret,
  "outside/dir/file": secret,
  "outside/in/file": secret,
  "outside/deep/file": secret,
  "root-twin/file": secret,
  "in/file": secret,
  "in/deep/file": secret,
  plain: secret,
  file: secret
}

export interface Row extends Meaning {
  readonly path: string
  readonly isExtra?: boolean
}

export interface Layout {
  readonly claim: string
  readonly links: Tree
  readonly rows: ReadonlyArray<Row>
  readonly isHostOnly?: boolean
}

const links = (texts: Readonly<Record<string, string>>): Tree =>
  Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, link(text)]))

const ending = (at: string, leads: Leads, link: string = at): Row => ({ path: at, leads, link })

/** Builds the layouts that lead to `in` or the root, with the paths that continue from there. */
const toDir = (claim: string, at: string, leadsTo: string, texts: Readonly<Record<string, string>>): Layout => {
  const there = (path: string): string => (leadsTo === "." ? path : `${leadsTo}/${path}`)
  const name = leadsTo === "in" || leadsTo === "in/deep" ? "file" : "plain"
  return {
    claim,
    links: links(texts),
    rows: [
      ending(at, toDirectory(leadsTo)),
      ending(`${at}/`, toDirectory(leadsTo), at),
      { path: `${at}/${name}`, leads: toFile(there(name)) },
      { path: `${at}/new`, leads: toNothing(there("new")) },
      { path: `${at}/none/new`, leads: toNothing(there("none/new")) },
      { path: `${at}/${name}/below`, leads: blocked },
      // In the caller's own path ".." is lexical, whatever the link leads to.
      { path: `${at}/../${at.includes("/") ? "file" : "plain"}`, leads: toFile(at.includes("/") ? "in/file" : "plain") }
    ].filter(({ path }) => !(at.startsWith("in/deep/") && path.includes("/../")))
  }
}

const toEscape = (claim: string, text: string, more: Readonly<Record<string, string>> = {}, at = "l"): Layout => ({
  claim,
  links: links({ [at]: text, ...more }),
  rows: [
    ending(at, escape),
    { path: `${at}/file`, leads: escape },
    { path: `${at}/none/new`, leads: escape, isExtra: true },
    { path: `${at}/in/file`, leads: escape, isExtra: true }
  ]
})

const chain = (length: number, end: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Array.from({ length }, (_, i) => [i === 0 ? "l" : `c${i}`, i === length - 1 ? end : `c${i + 1}`] as const))

const followed: ReadonlyArray<Layout> = [
  toDir("a relative link", "l", "in", { l: "in" }),
  toDir("a link with a dot in front", "l", "in", { l: "./in" }),
  toDir("a link whose text ends in a slash", "l", "in", { l: "in/" }),
  toDir("a link whose text ends in slashes and dots", "l", "in", { l: "in//.//" }),
  toDir("a link that goes down and up", "l", "in", { l: "in/deep/.." }),
  toDir("a link that goes up from a deep directory", "in/deep/l", "in", { "in/deep/l": ".." }),
  toDir("a link that climbs to the root and no further", "in/deep/l", ".", { "in/deep/l": "../.." }),
  toDir("a link that climbs to the root and down again", "in/deep/l", "in", { "in/deep/l": "../../in" }),
  toDir("a link up from a directory", "in/l", ".", { "in/l": ".." }),
  toDir("a link to .", "l", ".", { l: "." }),
  toDir("a link to ./", "l", ".", { l: "./" }),
  toDir("a link to . below the root", "in/l", "in", { "in/l": "." }),
  toDir("a chain of three", "l", "in", { l: "b", b: "c", c: "in" }),
  toDir("a chain through directories", "l", "in", { l: "in/b", "in/b": "../empty/c", "empty/c": "../in" }),
  toDir("40 links, one after another", "l", "in", chain(40, "in")),
  toDir("two dots after a link, which go up from its target, not from its own directory", "l", "in", {
    l: "a/..",
    a: "in/deep"
  }),
  toDir("two dots after a link to a link", "l", "in", { l: "b/..", b: "a", a: "in/deep" }),
  toDir("two dots after a link from a deep directory to an entry of the root", "l", ".", {
    l: "in/deep/a/..",
    "in/deep/a": "../../empty"
  }),
  toDir("a link whose text would climb on other systems", "l", "in", {
    l: "..foo/.../%2e%2e/．．/..\\outside/.. ",
    "..foo/.../%2e%2e/．．/..\\outside/.. ": "../../../../../in"
  })
]

const throughFinal: ReadonlyArray<Layout> = [
  {
    claim: "a link to a file",
    links: links({ l: "in/file" }),
    rows: [ending("l", toFile("in/file")), { path: "l/below", leads: blocked }, { path: "l/below/it", leads: blocked }]
  },
  {
    claim: "a link to a file with a trailing slash",
    links: links({ l: "in/file/", m: "in/file/." }),
    rows: [ending("l", toFile("in/file")), ending("m", toFile("in/file")), { path: "l/below", leads: blocked }]
  },
  {
    claim: "a chain of links to a file, through a linked directory",
    links: links({ l: "d/b", d: "in", "in/b": "deep/c", "in/deep/c": "file" }),
    rows: [ending("l", toFile("in/deep/file")), ending("d/b", toFile("in/deep/file"), "in/b")]
  },
  {
    claim: "40 links on one path, which count together",
    links: links({ a: "." }),
    rows: [
      { path: `${"a/".repeat(40)}plain`, leads: toFile("plain") },
      { path: `${"a/".repeat(40)}new`, leads: toNothing("new") },
      { path: "a/".repeat(40), leads: toDirectory("."), link: "a" }
    ]
  },
  {
    claim: "41 links on one path, which are too many",
    links: links({ a: "." }),
    rows: [
      { path: `${"a/".repeat(41)}plain`, leads: loop },
      { path: `${"a/".repeat(41)}new`, leads: loop },
      { path: "a/".repeat(41), leads: loop, link: "a" }
    ]
  },
  {
    claim: "41 links, one after another, which are too many",
    links: links(chain(41, "in")),
    rows: [ending("l", loop), { path: "l/file", leads: loop }, ending("c1", toDirectory("in"))]
  },
  {
    claim: "links in a circle",
    links: links({ self: "self", a: "b", b: "a", "in/l": "../in/l", grows: "grows/x", dir: "in/../dir/file" }),
    rows: ["self", "a", "in/l", "grows", "dir"].flatMap((at) => [
      ending(at, loop),
      { path: `${at}/file`, leads: loop },
      { path: `${at}/none/new`, leads: loop }
    ])
  },
  {
    claim: "dangling links, whose target can be created",
    links: links({ l: "none", slash: "none/", deep: "no/where/at/all", "in/l": "../in/none", two: "l" }),
    rows: [
      ending("l", toNothing("none")),
      ending("slash", toNothing("none")),
      ending("deep", toNothing("no/where/at/all")),
      ending("in/l", toNothing("in/none")),
      ending("two", toNothing("none")),
      { path: "l/new", leads: toNothing("none/new") },
      { path: "deep/new", leads: toNothing("no/where/at/all/new") }
    ]
  },
  {
    claim: "links through a file",
    links: links({ l: "plain/x", slash: "plain/x/" }),
    rows: [ending("l", blocked), ending("slash", blocked), { path: "l/y", leads: blocked }]
  },
  {
    claim: "a link through a missing entry and up again",
    links: links({ missing: "none/../in", dots: ".../../in" }),
    rows: ["missing", "dots"].flatMap((at) => [ending(at, lost), { path: `${at}/file`, leads: lost }])
  },
  {
    claim: "a link through a file and up again",
    links: links({ file: "plain/..", far: "in/file/../deep" }),
    rows: ["file", "far"].flatMap((at) => [ending(at, blocked), { path: `${at}/file`, leads: blocked }])
  },
  {
    claim: "a link whose text is not a valid path",
    links: links({ control: "in\u0001", newline: "in\n", ours: ".~fsa-x.tmp", below: "in/.~fsa-x.tmp/y" }),
    rows: ["control", "newline", "ours", "below"].flatMap((at) => [ending(at, invalid), { path: `${at}/file`, leads: invalid }])
  },
  {
    claim: "a link to a name that is too long for any disk",
    isHostOnly: true,
    links: links({ l: "n".repeat(256) }),
    rows: [ending("l", tooLong), { path: "l/file", leads: tooLong }]
  }
]

/** The layouts with links by the absolute path of the root, which only a disk has. */
const absolute: ReadonlyArray<Layout> = (
  [
    toDir("an absolute link to the root", "l", ".", { l: "$ROOT" }),
    toDir("an absolute link to the root, with a slash", "l", ".", { l: "$ROOT/" }),
    toDir("an absolute link into the root", "l", "in", { l: "$ROOT/in" }),
    toDir("an absolute link with more slashes and dots", "l", "in", { l: "//.$ROOT//./in/./" }),
    toDir("an absolute link in a deep directory", "in/deep/l", "in", { "in/deep/l": "$ROOT/in" }),
    toDir("an absolute link that goes down and up", "l", "in", { l: "$ROOT/in/deep/.." }),
    toDir("an absolute link that goes up from the target of a link", "l", "in", { l: "$ROOT/a/..", a: "in/deep" }),
    toDir("a chain of absolute and relative links", "l", "in", {
      l: "$ROOT/b",
      b: "in/c",
      "in/c": "$ROOT/empty/d",
      "empty/d": "../in"
    }),
    toDir("40 absolute links, one after another", "l", "in", chain(40, "$ROOT/in")),
    {
      claim: "absolute links to a file, to a missing entry and through a file",
      links: links({ l: "$ROOT/in/file", gone: "$ROOT/none/new", below: "$ROOT/plain/x", lost: "$ROOT/none/../in" }),
      rows: [
        ending("l", toFile("in/file")),
        { path: "l/below", leads: blocked },
        ending("gone", toNothing("none/new")),
        ending("below", blocked),
        ending("lost", lost)
      ]
    },
    {
      claim: "absolute links in a circle",
      links: links({ self: "$ROOT/self", a: "$ROOT/in/b", "in/b": "../a" }),
      rows: ["self", "a", "in/b"].flatMap((at) => [ending(at, loop), { path: `${at}/file`, leads: loop }])
    },
    {
      claim: "an absolute link whose text is not a valid path",
      links: links({ control: "$ROOT/in\u0001", ours: "$ROOT/.~fsa-x.tmp" }),
      rows: ["control", "ours"].map((at) => ending(at, invalid))
    },
    ...["$ROOT/..", "$ROOT/../root/in", "$ROOT/../outside", "$ROOT/in/../../outside", "$ROOT-twin", "$ROOT-twin/file"].map(
      (text) => toEscape(`an absolute link that begins with the path of the root and leaves it, ${text}`, text)
    ),
    ...["$OUT/../root/in", "/..$ROOT/in", "/proc/self/root$ROOT/in"].map((text) =>
      toEscape(`an absolute link that reaches the root by a detour, ${text}`, text)
    ),
    toEscape("an absolute link out through the parent of a link's target", "$ROOT/a/..", { a: "." })
  ] satisfies ReadonlyArray<Layout>
).map((layout): Layout => ({ ...layout, isHostOnly: true }))

const escaping: ReadonlyArray<Layout> = [
  ...["/", "//", "/.", "/..", "/in", "/./in", "/etc/passwd", "///etc", "$OUT", "$OUT/file"].map((text) =>
    toEscape(`an absolute link, ${text}`, text)
  ),
  ...["/proc/self/root", "/proc/self/cwd", "/proc/self/exe", "/proc/self/fd/$FD", "/proc/self/fd/$FD/", "/dev/fd/$FD"].map(
    (text) => toEscape(`a magic link, ${text}`, text)
  ),
  ...[
    "..",
    "../",
    "./..",
    "..//",
    "../.",
    "../..",
    "../outside",
    "../outside/file",
    "../outside/none",
    "../in",
    "../plain"
  ].map((text) => toEscape(`a link up, ${text}`, text)),
  ...["in/../..", "in/../../outside", "in/deep/../../..", "in/deep/../../../in", "empty/../../", ".//in/.././../outside"].map(
    (text) => toEscape(`a link down and further up, ${text}`, text)
  ),
  ...["../root", "../root/in", "../../../../../../../../../../$ROOT/in"].map((text) =>
    toEscape(`a link that leaves and comes back, ${text}`, text)
  ),
  toEscape("a link to a sibling whose name begins like that of the root", "../root-twin"),
  toEscape("a link up to a magic link", "../../../../../../../../../../proc/self/root"),
  toEscape("a link out through a missing entry", "none/../../outside"),
  toEscape("a link out through a file", "plain/../../outside"),
  toEscape("a link to a link to the outside", "b", { b: "../outside" }),
  toEscape("a link to a link to an absolute link", "b", { b: "c", c: "/" }),
  toEscape("a link through a link to the outside", "b/dir", { b: "../outside" }),
  toEscape("a chain of 40 that ends outside", "c1", { ...chain(40, "../outside"), l: "c1" }),
  toEscape("a link that goes up from a directory once too often", "../..", {}, "in/l"),
  toEscape("a link up from a deep directory", "../../../outside", {}, "in/deep/l"),
  toEscape("a link that climbs out only because a link in it leads up", "in/deep/a/../..", { "in/deep/a": ".." }),
  toEscape("a link out through the parent of a link's target", "a/..", { a: "." }),
  toEscape("a link out through a link to the root", "in/up/..", { "in/up": ".." }),
  toEscape("a link whose text climbs, even if a link in it leads deep enough", "a/../..", { a: "in/deep" })
]

const here = (...paths: ReadonlyArray<string>) => paths.map((path): Row => ({ path, leads: toNothing(path) }))

const spelt: ReadonlyArray<Layout> = [
  {
    claim: "the root, by every name",
    links: {},
    rows: ["", ".", "/", "//", "./", "/.", "in/..", "in/deep/../../"].map((path) => ({ path, leads: toDirectory(".") }))
  },
  {
    claim: "paths that climb above the root",
    links: links({ l: "in/deep" }),
    rows: ["..", "../", "/..", "./..", "../outside/file", "/../outside/file", "../root/in/file", "in/../..", "l/../../outside"]
      .concat(["in/../../outside/file", "in/deep/../../../in/file", "none/../../plain", "plain/../../plain", "..//..//etc"])
      .map((path) => ({ path, leads: invalid }))
  },
  {
    claim: "a leading slash, which is the root of the workspace",
    links: {},
    rows: [
      { path: "/in/file", leads: toFile("in/file") },
      { path: "//in//file", leads: toFile("in/file") },
      { path: "/etc/passwd", leads: toNothing("etc/passwd") },
      { path: "/proc/self/root", leads: toNothing("proc/self/root") }
    ]
  },
  {
    claim: "two dots in a path, which are lexical, also after a missing entry, a file or a link",
    links: links({ l: "in/deep", out: "../outside", self: "self" }),
    rows: ["l", "out", "self", "none", "plain", "in/deep/.."].map((at) => ({ path: `${at}/../plain`, leads: toFile("plain") }))
  },
  {
    claim: "names that climb only for decoders, shells or other systems, and are ordinary names",
    links: {},
    rows: [
      ...here("..foo", "...", "....", "%2e%2e", "%2e%2e/outside/file", "..%2foutside", "..%c0%af..", "．．/outside/file"),
      ...here(
        "..\\outside\\file",
        "in\\file",
        "\\outside",
        "C:\\outside",
        "C:",
        "a:b",
        "~/file",
        "~",
        "$OUT",
        "*",
        "in/file.",
        "in."
      ),
      ...here("in/file ", " in/file", ".. /file", "..\u200b/file", "․․/file", "‥/file", "in/\u202efile", "IN/FILE", "in／file"),
      { path: "file:///etc/passwd", leads: toNothing("file:/etc/passwd") }
    ]
  },
  {
    claim: "names that look like climbing, and can exist",
    links: {
      ...Object.fromEntries([inside("..foo/file"), inside(".../file"), inside("%2e%2e/file"), inside("．．/file")]),
      ...Object.fromEntries([inside("..\\outside/file"), inside(".. /file"), inside("\u202ein/file"), inside("é/file")])
    },
    rows: [
      ...["..foo", "...", "%2e%2e", "．．", "..\\outside", ".. ", "\u202ein", "é"].flatMap((at): ReadonlyArray<Row> => [
        { path: at, leads: toDirectory(at) },
        { path: `${at}/file`, leads: toFile(`${at}/file`) },
        { path: `${at}/../plain`, leads: toFile("plain") }
      ]),
      // A letter in another normal form makes another name.
      ...here("e\u0301", "e\u0301/file")
    ]
  },
  {
    claim: "characters that are invalid in a path",
    links: {},
    rows: [
      "in/file\0",
      "\0",
      "in/file\0/../../outside",
      "in/\u0007",
      "in/file\n",
      "\u007f",
      "in/\ud800",
      "\udc00/in",
      "in/\u001b[2J"
    ].map((path) => ({ path, leads: invalid }))
  },
  {
    claim: "values that are not strings",
    links: {},
    rows: [0, null, ["in", "file"], { toString: () => "in/file" }, Buffer.from("in/file"), new URL("file:///in/file")].map(
      (path) => ({ path: path as string, leads: invalid })
    )
  },
  {
    claim: "paths and names that are too long",
    links: {},
    rows: [
      "n".repeat(256),
      `in/${"n".repeat(256)}`,
      "n/".repeat(256),
      `${"n".repeat(99)}/`.repeat(41),
      `${"n".repeat(256)}/file`
    ].map((path) => ({ path, leads: tooLong }))
  },
  {
    claim: "names that are too long in bytes",
    isHostOnly: true,
    links: {},
    rows: ["é".repeat(128), `in/${"é".repeat(128)}`].map((path) => ({ path, leads: tooLong }))
  },
  {
    claim: "the longest paths and names",
    links: {},
    rows: [...here("n".repeat(255), `in/${"é".repeat(127)}`, `${"n/".repeat(254)}n`)]
  }
]

export const layouts: ReadonlyArray<Layout> = [...followed, ...throughFinal, ...absolute, ...escaping, ...spelt]
