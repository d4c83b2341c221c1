import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import { withJournalComplaints } from "../advice.ts"
import { file } from "../journal/file.ts"
import { withoutJournalFlag } from "../journal/recording.ts"
import { withoutMountFlag } from "../mounts.ts"
import { described, refuseFlags, subcommandOn } from "../subcommand.ts"
import { unrecordedLayer } from "../workspace.ts"

const noChangeReason = "the directory does not change"

const journalSubcommand = subcommandOn(
  reportedLayer(withoutJournalFlag(noChangeReason)(withoutMountFlag(noChangeReason)(Layer.empty))),
  "journal"
)

const onJournal =
  <Options extends { readonly file: string }, E extends { readonly _tag: string }, R>(
    load: () => Promise<(options: Options) => Effect.Effect<void, E, R>>
  ) =>
  (options: Options) =>
    withJournalComplaints(options.file)(Effect.flatMap(Effect.promise(load), (run) => run(options)))

const filters = {
  paths: flags
    .repeated("path", "PATH", "Only entries about this path or a path below it (may be repeated)")
    .pipe(Flag.withAlias("p")),
  kinds: flags.text("kind", "KINDS", "Only these kinds of entry, separated by commas, such as write,delete,fault"),
  correlations: flags.repeated("correlation", "ID", "Only entries with this correlation id (may be repeated)"),
  after: flags.natural("after", "POSITION", "Only entries after this position")
}

const contents = flags.toggle("contents", "Show the contents too; with --json as base64")

const show = journalSubcommand(
  "show",
  {
    summary: "Show the entries of a journal",
    description: `Show the entries of a journal: position, time, kind, path, and the correlation id that a request and its answer share.
--changes prints one line for each change and its result.
The command also works while another program writes the journal.`,
    examples: [
      ["../work.journal --changes", "All changes and their results"],
      ["../work.journal --reverse -n 20", "The latest twenty entries"],
      ["../work.journal --path src --kind write,deleted --contents", "The writes and deletions in src, with contents"]
    ]
  },
  {
    file,
    ...filters,
    before: flags.natural("before", "POSITION", "Only entries before this position"),
    max: flags.natural("max", "N", "Show at most this many entries").pipe(Flag.withAlias("n")),
    reverse: flags.toggle("reverse", "The latest first"),
    changes: flags.toggle("changes", "One line for each change, instead of each entry"),
    contents
  },
  onJournal(() => import("../journal/show.ts").then(({ show }) => show))
).pipe(
  refuseFlags(({ changes, contents }) => (changes && contents ? "--contents cannot be combined with --changes" : undefined))
)

const tail = journalSubcommand(
  "tail",
  {
    summary: "Follow a journal as it grows",
    description: `Show the last ten entries of a journal, then each entry that another program adds, until interrupted.`,
    examples: [
      ["../work.journal", "The last ten entries, and then all new entries"],
      ["../work.journal --after 0 --path src --json", "Everything about src, as JSON"]
    ]
  },
  {
    file,
    ...filters,
    max: flags.natural("max", "N", "The number of last entries to begin with (default: 10)").pipe(Flag.withAlias("n")),
    contents
  },
  onJournal(() => import("../journal/show.ts").then(({ tail }) => tail))
)

const verify = journalSubcommand(
  "verify",
  {
    summary: "Check that a journal is undamaged",
    description: `Read a journal and all contents that it names. If an entry or a content was changed, the command prints the position
and exits with code 1. A journal that --journal created has a hash chain. Two changes go unnoticed there: the removal of
lines at its end, and a change after which all later hashes were recomputed. A comparison of the printed head with a
head that was kept elsewhere reveals both. In a journal without a hash chain, a change that leaves a valid line goes
unnoticed.`,
    examples: [
      ["../work.journal", "Check a journal"],
      ["../work.journal --json | jq -r .head", "Print the hash of the journal's end, to keep elsewhere"]
    ]
  },
  { file },
  onJournal(() => import("../journal/maintenance.ts").then(({ verify }) => verify))
)

const compact = journalSubcommand(
  "compact",
  {
    summary: "Remove the oldest entries of a journal",
    description: `Remove the entries before a position, or older than a time, and the contents that only these entries name. The other
entries keep their positions, and verify shows the same head. Removed entries can be neither undone nor shown: an undo
to an earlier position fails. The last entry stays, and so do the entries that a leaf still needs. After a crash, FILE
is either the old journal or the new one.`,
    examples: [
      ["../work.journal --before 5000", "Keep entry 5000 and all later ones"],
      ["../work.journal --before 2026-01-31", "Keep the entries since this time"]
    ]
  },
  {
    file,
    before: flags.requiredText("before", "WHEN", "Remove the entries before this position or time")
  },
  onJournal(() => import("../journal/maintenance.ts").then(({ compact }) => compact))
)

const replay = journalSubcommand(
  "replay",
  {
    summary: "Rebuild the tree of a position",
    description: `Write the tree as it was at a position of the journal into an empty directory, or list this tree. The tree contains only
files that the journal mentions. Before its first change, a file has its original content. DIR is relative to the
current directory. The whole tree is written, or nothing.`,
    examples: [
      ["../work.journal --to 120 --into ../then", "The tree as it was after entry 120"],
      ["../work.journal --list", "List the tree at the end"]
    ]
  },
  {
    file,
    to: flags.natural("to", "POSITION", "The tree as it was after this position (default: the last)"),
    into: flags.text("into", "DIR", "The directory to write, empty or not existing yet"),
    list: flags.toggle("list", "List the tree, and write nothing")
  },
  onJournal(() => import("../journal/replay.ts").then(({ replay }) => replay))
).pipe(refuseFlags(({ into, list }) => ((into === undefined) === list ? undefined : "give either --into DIR or --list")))

const drift = subcommandOn(unrecordedLayer("drift changes nothing"), "journal")(
  "drift",
  {
    summary: "Show changes that the journal did not record",
    description: `Compare the root with the journal, and show each path that was changed without the journal: the recorded state and the
current state. Permission bits are compared if the journal has them. --all also shows paths that the journal never
touched: "added" if the journal knows the whole directory, otherwise "not in the journal", because the entry may be
older than the journal.`,
    examples: [
      ["../work.journal", "Changes made without the journal"],
      ["../work.journal --all --path src", "New files in src too"]
    ]
  },
  {
    file,
    to: flags.natural("to", "POSITION", "Compare with this position (default: the last)"),
    paths: flags.pathsBelow,
    all: flags.toggle("all", "Show paths that the journal never touched too")
  },
  onJournal(() => import("../journal/undo.ts").then(({ drift }) => drift))
)

const undo = subcommandOn(unrecordedLayer("an undo is recorded in the journal that it undoes"), "journal")(
  "undo",
  {
    summary: "Undo the changes after a position",
    description: `Restore every path of the root that was changed after a position to its state at that position, all of them or none. If
a path was changed without the journal, nothing is changed, and the error names the path. The undo is recorded in the
same journal, so that the undo can be undone too.`,
    examples: [
      ["../work.journal --to 120 --dry-run", "Show what would change"],
      ["../work.journal --to 120", "The tree as it was after entry 120"],
      ["../work.journal --to 0 --path src", "Everything recorded below src"]
    ]
  },
  {
    file,
    to: flags.requiredNatural("to", "POSITION", "Undo all changes after this position; 0 undoes all changes"),
    paths: flags.pathsBelow,
    dryRun: flags.toggle("dry-run", "Show what would change, and change nothing")
  },
  onJournal(() => import("../journal/undo.ts").then(({ undo }) => undo))
)

export const journal = Command.make("journal").pipe(
  Command.withSubcommands([
    { group: "LOOK", commands: [show, tail, drift, verify] },
    { group: "GO BACK", commands: [replay, undo] },
    { group: "KEEP SMALL", commands: [compact] }
  ]),
  described({
    summary: "Read a journal that --journal recorded, and undo its changes",
    description: `With --journal FILE, every command that changes something, including mcp, records each change: first the request, then
its result and the previous state. FILE must lie outside the root. Contents over 4 KiB are stored beside it, in
FILE.contents. A journal belongs to one root, because paths of two roots in one journal could not be distinguished.`,
    examples: [
      ["show ../work.journal --changes", "The changes"],
      ["undo ../work.journal --to 0 --dry-run", "The changes that an undo of everything would make"],
      ["verify ../work.journal", "Check that the journal is undamaged"]
    ]
  })
)
