/** All tables: one question on one corpus each, with its peers and its targets. */
import type { Shape } from "./corpus.ts"
import * as JavaScript from "./javascript.ts"
import * as Memory from "./memory.ts"
import * as Ours from "./ours.ts"
import type { Peer, Question } from "./peer.ts"
import { shown } from "./peer.ts"
import * as Ripgrep from "./ripgrep.ts"
import { needle } from "./text.ts"

export type Group = "walk" | "glob" | "grep" | "memory" | "large"
export const groups: ReadonlyArray<Group> = ["walk", "glob", "grep", "large", "memory"]

/** A bound on the median of `ours` divided by that of `beside`, in one run. */
export interface Target {
  readonly ours: string
  readonly beside: string
  readonly bound: number
}

export interface Opened {
  /** The others must agree with the first. */
  readonly peers: ReadonlyArray<Peer>
  readonly close: () => Promise<void>
}

export interface Table {
  readonly id: string
  readonly group: Group
  readonly title: string
  readonly shape: Shape
  readonly contents: boolean
  readonly open: (root: string) => Promise<Opened>
  readonly targets: ReadonlyArray<Target>
  /** Milliseconds until a stream's first result, promised if the first file in order has one. */
  readonly firstMs?: number
}

/** Targets with this name refer to the system's ripgrep with two threads, or npm's if there is no other. */
export const baseline = Ripgrep.installed[0]?.id ?? "none"

const withHost =
  (peers: (root: string, ours: Ours.Ours) => ReadonlyArray<Peer>) =>
  async (root: string): Promise<Opened> => {
    const ours = await Ours.onHost(root)
    return { peers: peers(root, ours), close: ours.close }
  }

const ripgreps = (make: (rg: Ripgrep.Ripgrep) => ReadonlyArray<Peer>) => Ripgrep.installed.flatMap(make)

const walkers = (root: string): ReadonlyArray<Peer> => [
  ...ripgreps((rg) => [Ripgrep.files(rg, root, {})]),
  ...Ripgrep.installed.slice(0, 1).map((rg) => Ripgrep.files(rg, root, { threads: 1 }))
]

const walk = (id: string, title: string, shape: Shape, targets: ReadonlyArray<Target> = []): Table => ({
  id,
  group: "walk",
  title,
  shape,
  contents: false,
  open: withHost((root, ours) => [
    ...walkers(root),
    ...Ours.walk(ours),
    ...JavaScript.fdirs(root),
    ...JavaScript.globs(root, "**"),
    JavaScript.effectWalk(root)
  ]),
  targets
})

/** Returns the targets for a walk or a glob of everything. */
const everywhere = (bound = 0.9): ReadonlyArray<Target> => [
  { ours: "ours", beside: baseline, bound },
  { ours: "ours", beside: "tinyglobby", bound: 0.9 }
]

const glob = (id: string, pattern: string, shape: Shape, targets: ReadonlyArray<Target>): Table => ({
  id,
  group: "glob",
  title: `Files that match \`${pattern}\``,
  shape,
  contents: false,
  open: withHost((root, ours) => [
    ...ripgreps((rg) => [Ripgrep.files(rg, root, {}, pattern)]),
    ...Ours.glob(ours, pattern),
    ...JavaScript.globs(root, pattern)
  ]),
  targets
})

/** Returns the targets against ripgrep itself, against its clients, and against the one that npm ships. */
const searched = (plain: number, objects = 1.5): ReadonlyArray<Target> => [
  { ours: "ours-stream", beside: baseline, bound: plain },
  { ours: "ours", beside: baseline, bound: objects },
  { ours: "ours", beside: `${baseline}-json`, bound: 0.35 },
  { ours: "ours-stream", beside: "npm-rg", bound: 1 }
]

interface Grep {
  readonly id: string
  readonly group?: Group
  readonly question: Question
  readonly shape: Shape
  readonly targets: ReadonlyArray<Target>
  readonly firstMs?: number
}

const grep = ({ group = "grep", question, ...rest }: Grep): Table => ({
  ...rest,
  group,
  title: `Lines that match ${shown(question)}`,
  contents: true,
  open: withHost((root, ours) => [
    ...ripgreps((rg) => [Ripgrep.lines(rg, root, question)]),
    ...ripgreps((rg) => [Ripgrep.json(rg, root, question)]),
    ...Ours.grep(ours, question),
    JavaScript.naivePeer("naive", "readFileSync, split, test", JavaScript.nodeFs, root, question)
  ])
})

const questions = {
  rare: { pattern: needle, literal: true },
  import: { pattern: "^import .* from" },
  common: { pattern: "return", literal: true },
  alternation: { pattern: "TODO|FIXME|throw new \\w+LoError" },
  caseless: { pattern: "fixme", ignoreCase: true },
  word: { pattern: "\\b\\w{20,}\\b" },
  log: { pattern: "ERROR.*timeout" },
  unicode: { pattern: "漢字", literal: true }
} satisfies Record<string, Question>

const ignoredFlags = ["--hidden", "--no-require-git"]

const ignored: Table = {
  id: "walk-ignored",
  group: "walk",
  title: "All files but what .gitignore names, in a tree of which nine tenths are ignored",
  shape: "ignored",
  contents: false,
  open: withHost((root, ours) => [
    ...ripgreps((rg) => [Ripgrep.files(rg, root, { which: ignoredFlags })]),
    ...Ours.walk(ours, { gitignore: true }),
    ...JavaScript.ignoring(root)
  ]),
  targets: [{ ours: "ours", beside: baseline, bound: 1 }]
}

/** Returns the questions for one tree, generated or real. */
const ofTree = (shape: "flat" | "real"): ReadonlyArray<Table> => {
  const real = shape === "real"
  return [
    walk("walk-all", "All files", shape, [...everywhere(), { ours: "ours", beside: "effect", bound: 0.12 }]),
    glob("glob-ts", "**/*.ts", shape, everywhere()),
    glob("glob-test-json", "**/test/**/*.json", shape, everywhere()),
    glob("glob-base", real ? "effect/src/**/{a,b,C}*.ts" : "src/**/{a,b}*.js", shape, [
      { ours: "ours", beside: baseline, bound: 0.05 }
    ]),
    grep({
      id: "grep-rare",
      question: real ? { pattern: "ERR_INVALID_ARG_TYPE", literal: true } : questions.rare,
      shape,
      targets: searched(1)
    }),
    grep({ id: "grep-import", question: questions.import, shape, targets: searched(0.9) }),
    grep({ id: "grep-common", question: questions.common, shape, targets: searched(0.9), firstMs: 30 }),
    grep({ id: "grep-alternation", question: questions.alternation, shape, targets: searched(0.9) }),
    grep({ id: "grep-caseless", question: questions.caseless, shape, targets: searched(0.9) }),
    grep({ id: "grep-word", question: questions.word, shape, targets: [{ ours: "ours-stream", beside: baseline, bound: 2.4 }] })
  ]
}

const shapes: ReadonlyArray<Table> = [
  walk("walk-deep", "All files of a tree of a hundred levels", "deep"),
  walk("walk-wide", "All files of one wide directory", "wide"),
  walk("walk-sparse", "All files of a tree with twice as many directories as files", "sparse", everywhere(1)),
  glob("glob-sparse", "**/*.ts", "sparse", everywhere(1)),
  grep({ id: "grep-sparse", question: questions.rare, shape: "sparse", targets: searched(1.1) }),
  walk("walk-unicode", "All files, of names that are not ASCII", "unicode"),
  ignored,
  grep({ id: "grep-unicode", question: questions.unicode, shape: "unicode", targets: searched(1.1) })
]

const large = [
  grep({ id: "large-log", group: "large", question: questions.log, shape: "large", targets: searched(1.6, 1.6) }),
  grep({ id: "large-rare", group: "large", question: questions.rare, shape: "large", targets: searched(1.6, 1.6) })
]

const memory = (id: string, question: Question): Table => ({
  id,
  group: "memory",
  title: `Lines that match ${shown(question)}, of a tree in memory`,
  shape: "flat",
  contents: true,
  open: (root) => Memory.open(root, question),
  targets: [
    { ours: "ours-memory", beside: "ours-host", bound: 0.8 },
    { ours: "ours-memory", beside: "memfs", bound: 0.2 }
  ]
})

const memories = [memory("memory-rare", questions.rare), memory("memory-import", questions.import)]

export const all = (real: boolean): ReadonlyArray<Table> =>
  real ? ofTree("real") : [...ofTree("flat"), ...shapes, ...large, ...memories]
