import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import { told } from "../journal/advice.ts"
import { file } from "../journal/file.ts"
import { journalless } from "../journal/recording.ts"
import { mountless } from "../mounts.ts"
import { described, subcommandOn } from "../subcommand.ts"
import { unrecordedLayer } from "../workspace.ts"

const nothingChanges = "nothing of the directory changes"

const looking = subcommandOn(reportedLayer(journalless(nothingChanges)(mountless(nothingChanges)(Layer.empty))), "journal")

const filters = {
  paths: flags
    .repeated("path", "PATH", "Only what is about this path, or what is below it (may be repeated)")
    .pipe(Flag.withAlias("p")),
  kinds: flags.text("kind", "KINDS", "Only these kinds of entry, with commas, such as write,delete,fault"),
  correlations: flags.repeated("correlation", "ID", "Only what has this correlation id (may be repeated)"),
  after: flags.natural("after", "POSITION", "Only what comes after this position")
}

const contents = flags.toggle("contents", "Show the contents too; with --json as base64")

const show = looking(
  "show",
  {
    summary: "Show what is in a journal",
    description: `Show the entries of a journal: position, when, kind, what it is about, and the id that an answer shares with what it
answers. With --changes one line for each change and what became of it. Another program may be writing it.`,
    examples: [
      ["../work.journal --changes", "What was changed, and what became of it"],
      ["../work.journal --reverse -n 20", "The latest twenty entries"],
      ["../work.journal --path src --kind write,deleted --contents", "What was written and deleted in src, and what it held"]
    ]
  },
  {
    file,
    ...filters,
    before: flags.natural("before", "POSITION", "Only what comes before this position"),
    max: flags.natural("max", "N", "At most so many").pipe(Flag.withAlias("n")),
    reverse: flags.toggle("reverse", "The latest first"),
    changes: flags.toggle("changes", "One line for each change, instead of one for each entry"),
    contents
  },
  Effect.fnUntraced(function* ({ file, ...options }) {
    const { show } = yield* Effect.promise(() => import("../journal/show.ts"))
    yield* told(file)(show(file, options))
  })
).pipe(
  Command.validate(({ changes, contents }) =>
    changes && contents
      ? new CliError.ValidationError({ message: "--contents goes with entries, and not with --changes" })
      : Effect.void
  )
)

const tail = looking(
  "tail",
  {
    summary: "Follow a journal as it grows",
    description: `Show the last ten entries of a journal and then those that come, as another program writes them, until it is
interrupted.`,
    examples: [
      ["../work.journal", "The last ten, and what comes"],
      ["../work.journal --after 0 --path src --json", "Everything about src, as JSON"]
    ]
  },
  {
    file,
    ...filters,
    max: flags.natural("max", "N", "Begin with the last so many of them (default: 10)").pipe(Flag.withAlias("n")),
    contents
  },
  Effect.fnUntraced(function* ({ file, ...options }) {
    const { tail } = yield* Effect.promise(() => import("../journal/show.ts"))
    yield* told(file)(tail(file, options))
  })
)

const verify = looking(
  "verify",
  {
    summary: "Check that a journal is what was written",
    description: `Read a journal and all contents that it names. Where it is not what was written it says at which position, and the exit
code is 1. Journals that --journal begins are chained: only that lines were cut off at the end goes unnoticed, unless the
head was kept. In one that is not, a line that still makes sense may have been changed.`,
    examples: [
      ["../work.journal", "Is it sound?"],
      ["../work.journal --json | jq -r .head", "The hash of its end, to be kept elsewhere"]
    ]
  },
  { file },
  Effect.fnUntraced(function* ({ file }) {
    const { verify } = yield* Effect.promise(() => import("../journal/verify.ts"))
    yield* told(file)(verify(file))
  })
)

const compact = looking(
  "compact",
  {
    summary: "Remove the oldest entries of a journal",
    description: `Remove the entries before a position, or older than a time, and the contents that only they name. The others keep their
positions, and verify shows the same head. What is gone can neither be undone nor shown any more: an undo to an earlier
position fails. The last entry stays, and so does what a leaf still needs. After a crash FILE is the old journal or the
new one.`,
    examples: [
      ["../work.journal --before 5000", "Keep entry 5000 and what came after it"],
      ["../work.journal --before 2026-01-31", "Keep what was recorded since"]
    ]
  },
  {
    file,
    before: flags.requiredText("before", "WHEN", "What comes before this position, or was recorded before this time, goes")
  },
  Effect.fnUntraced(function* ({ file, ...options }) {
    const { compact } = yield* Effect.promise(() => import("../journal/compact.ts"))
    yield* told(file)(compact(file, options))
  })
)

const replay = looking(
  "replay",
  {
    summary: "Make the tree as it was at a position",
    description: `Write the tree as it was at a position of the journal into an empty directory, or list it: what was done through the
journal, and what was there before as far as it was changed. DIR is relative to the current directory; all of the tree
is written, or nothing.`,
    examples: [
      ["../work.journal --to 120 --into ../then", "As it was after entry 120"],
      ["../work.journal --list", "What is there at the end"]
    ]
  },
  {
    file,
    to: flags.natural("to", "POSITION", "As it was after this position (default: the last)"),
    into: flags.text("into", "DIR", "Where to write it: a directory that is empty, or not there yet"),
    list: flags.toggle("list", "List what is in it, and write nothing")
  },
  Effect.fnUntraced(function* ({ file, into, to }) {
    const { replay } = yield* Effect.promise(() => import("../journal/replay.ts"))
    yield* told(file)(replay(file, { into, to }))
  })
).pipe(
  Command.validate(({ into, list }) =>
    (into === undefined) === list ? Effect.void : new CliError.ValidationError({ message: "give one of --into DIR and --list" })
  )
)

const drift = subcommandOn(unrecordedLayer("drift changes nothing"), "journal")(
  "drift",
  {
    summary: "Show where the root is not what the journal left",
    description: `Compare the root with what was recorded, and show each path that was changed since by others: what the journal left
there, and what is there now. Permission bits are compared where the journal knows them. With --all also what the
journal has never touched: added where it knows all of a directory, and not in the journal where the entry may have
been there before the journal began.`,
    examples: [
      ["../work.journal", "What was changed without the journal"],
      ["../work.journal --all --path src", "New files in src too"]
    ]
  },
  {
    file,
    to: flags.natural("to", "POSITION", "As the journal left it at this position (default: the last)"),
    paths: flags.repeated("path", "PATH", "Only at this path and below (may be repeated)").pipe(Flag.withAlias("p")),
    all: flags.toggle("all", "Show what the journal has never touched too")
  },
  Effect.fnUntraced(function* ({ file, ...options }) {
    const { drift } = yield* Effect.promise(() => import("../journal/drift.ts"))
    yield* told(file)(drift(file, options))
  })
)

const undo = subcommandOn(unrecordedLayer("an undo is recorded in the journal that it undoes"), "journal")(
  "undo",
  {
    summary: "Take back what was done after a position",
    description: `Give every path of the root that was changed after a position what it was then, all of them or none. Where something
is there that the journal knows nothing of, nothing is changed, and it says where. What it does is recorded in the same
journal, so that it can be taken back too.`,
    examples: [
      ["../work.journal --to 120 --dry-run", "What would change"],
      ["../work.journal --to 120", "As it was after entry 120"],
      ["../work.journal --to 0 --path src", "Everything that was recorded of src"]
    ]
  },
  {
    file,
    to: flags.requiredNatural("to", "POSITION", "What came after this position is taken back; 0: all of it"),
    paths: flags.repeated("path", "PATH", "Only at this path and below (may be repeated)").pipe(Flag.withAlias("p")),
    dryRun: flags.toggle("dry-run", "Show what would change, and change nothing")
  },
  Effect.fnUntraced(function* ({ file, ...options }) {
    const { undo } = yield* Effect.promise(() => import("../journal/undo.ts"))
    yield* told(file)(undo(file, options))
  })
)

export const journal = Command.make("journal").pipe(
  Command.withSubcommands([
    { group: "LOOK", commands: [show, tail, drift, verify] },
    { group: "GO BACK", commands: [replay, undo] },
    { group: "KEEP SMALL", commands: [compact] }
  ]),
  described({
    summary: "Look at what was recorded with --journal, and undo it",
    description: `Every command that changes something, mcp too, records what it does when it is given --journal FILE: what was asked
before, what came of it after, and what was there before it. FILE lies outside of the root, contents over 4 KiB beside
it in FILE.contents, and it is one root's: two of them in one journal could not be told apart.`,
    examples: [
      ["show ../work.journal --changes", "What was changed"],
      ["undo ../work.journal --to 0 --dry-run", "What taking all of it back would change"],
      ["verify ../work.journal", "Is it what was written?"]
    ]
  })
)
