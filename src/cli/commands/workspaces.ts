import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import { withoutJournalFlag } from "../journal/recording.ts"
import { withoutMountFlag } from "../mounts.ts"
import { refusing } from "../settings.ts"
import { described, subcommandOn } from "../subcommand.ts"

const noFilesReason = "the command works on whole workspaces"

const workspacesSubcommand = subcommandOn(
  reportedLayer(
    withoutJournalFlag(noFilesReason)(withoutMountFlag(noFilesReason)(refusing(({ refusal }) => refusal)(Layer.empty)))
  ),
  "workspaces"
)

const loadHandlers = Effect.promise(() => import("../workspaces.ts"))

const name = (what: string, description: string) =>
  Argument.String(what).pipe(Argument.withDescription(description), Argument.withMetavar("NAME"))

const dryRun = (what: string) => flags.toggle("dry-run", `Show what would be ${what}, and change nothing`)

const list = workspacesSubcommand(
  "list",
  {
    summary: "List the workspaces of a store",
    description: `List the workspaces of a store in the order of their names: the number, time, author and message of the newest commit.
A workspace whose head is damaged is reported, and all others are listed.`,
    examples: [
      ["--store dir:../store", "The workspaces of a directory"],
      ["--store postgres://ann@localhost/work --json | jq -r .workspace", "Only the names, from Postgres"]
    ]
  },
  {},
  () => Effect.flatMap(loadHandlers, ({ list }) => list)
)

const create = workspacesSubcommand(
  "create",
  {
    summary: "Create empty workspaces, and the store if it does not exist",
    description: `Create empty workspaces. If there is no store at the address, it is made: a directory, a file, or tables in a database
that exists. A name is any text of at most 256 bytes without control characters.`,
    examples: [
      ["team --store dir:../store", "A workspace in a directory"],
      ["team --store sqlite:work.db", "A workspace in a database file"]
    ]
  },
  { names: Argument.variadic(name("name", "The new workspaces"), { min: 1 }) },
  ({ names }) => Effect.flatMap(loadHandlers, ({ create }) => create(names))
)

const fork = workspacesSubcommand(
  "fork",
  {
    summary: "Create a workspace with the files and snapshots of another one",
    description: `Create the workspace TO with the files and snapshots of FROM. A fork stores only one head, whatever the size. Later
changes of one workspace do not change the other.`,
    examples: [["team experiment --store dir:../store", "Try something in a fork"]]
  },
  { from: name("from", "The workspace to fork"), to: name("to", "The new workspace") },
  ({ from, to }) => Effect.flatMap(loadHandlers, ({ fork }) => fork(from, to))
)

const remove = workspacesSubcommand(
  "delete",
  {
    summary: "Delete workspaces with their snapshots",
    description: `Delete workspaces with their files and snapshots. Their forks keep all files and snapshots. The content stays in the store
until gc deletes it. If a workspace is changed meanwhile, it is not deleted.`,
    examples: [
      ["experiment --dry-run --store dir:../store", "Show the commit that would be lost"],
      ["experiment --store dir:../store", "Delete one workspace"]
    ]
  },
  {
    names: Argument.variadic(name("name", "The workspaces to delete"), { min: 1 }),
    dryRun: dryRun("deleted")
  },
  ({ dryRun, names }) => Effect.flatMap(loadHandlers, ({ remove }) => remove(names, dryRun))
)

const secondsPerUnit: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3600],
  ["d", 86_400],
  ["w", 604_800]
])

/** Parses a time such as `90 minutes`, `36h` or `1 day`. Returns `undefined` for any other text. */
const parseDuration = (text: string): Duration.Duration | undefined => {
  const [, count, word] = /^\s*(\d{1,9})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)\s*$/i.exec(text) ?? []
  return count === undefined ? undefined : Duration.seconds(Number(count) * secondsPerUnit.get(word![0]!.toLowerCase())!)
}

const gc = workspacesSubcommand(
  "gc",
  {
    summary: "Delete content that no workspace needs",
    description: `Delete the blobs to which no commit of a workspace and no snapshot refers, and that were stored longer than the grace
period ago. Other programs may change workspaces meanwhile, if the period is at least two hours and the clocks of the
machines agree. --exclusive allows a shorter period; content that other programs store meanwhile may then be lost.`,
    examples: [
      ["--dry-run --store dir:../store", "Count what would be deleted"],
      ["--grace '7 days' --store postgres://ann@localhost/work", "Keep everything of the last week"],
      ["--grace 0s --exclusive --store sqlite:work.db", "Keep only what is needed, while no other program uses the store"]
    ]
  },
  {
    grace: Flag.String("grace").pipe(
      Flag.withDescription("The grace period, such as 90 minutes, 36h or 7 days (default: 1 day)"),
      Flag.withMetavar("TIME"),
      Flag.filterMap(
        (text) => Option.fromUndefinedOr(parseDuration(text)),
        (text) => `${JSON.stringify(text)} is not a time, such as 90 minutes, 36h or 7 days`
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    exclusive: flags.toggle("exclusive", "Accept a period below two hours, because no other program uses the store"),
    dryRun: dryRun("deleted")
  },
  (input) => Effect.flatMap(loadHandlers, ({ gc }) => gc(input))
)

const verify = workspacesSubcommand(
  "verify",
  {
    summary: "Check that workspaces are undamaged",
    description: `Read everything that workspaces refer to, and check hashes, encoding, order and sizes. If a node is missing or damaged,
the command names it, continues with the next workspace, and exits with code 1.`,
    examples: [
      ["--store dir:../store", "All workspaces of a store"],
      ["team --store dir:../store --json", "One workspace, as JSON"]
    ]
  },
  { names: Argument.variadic(name("name", "The workspaces (default: all)")) },
  ({ names }) => Effect.flatMap(loadHandlers, ({ verify }) => verify(names))
)

const log = workspacesSubcommand(
  "log",
  {
    summary: "Show the commits of a workspace",
    description: `Show the commits, the newest first: number, time, author, message and the hash of the root. gc removes the commits that are
older than its grace period, except the newest one; the list then ends with a commit whose content is gone. To keep a
state, take a snapshot: fs-algebra snapshots lists the snapshots.`,
    examples: [
      ["team --store dir:../store", "The history of a workspace"],
      ["team -n 3 --store dir:../store --json", "The newest three commits, as JSON"]
    ]
  },
  {
    name: name("name", "The workspace"),
    limit: flags.natural("limit", "N", "Show at most N commits (default: 50)").pipe(Flag.withAlias("n"))
  },
  ({ limit, name }) => Effect.flatMap(loadHandlers, ({ log }) => log(name, limit))
)

const diff = workspacesSubcommand(
  "diff",
  {
    summary: "Show the files that differ between two workspaces",
    description: `Show each path that differs from workspace FROM to workspace TO: A for added, M for changed, D for removed. Equal
directories are recognised by their hashes, so only what differs is read.`,
    examples: [
      ["team experiment --store dir:../store", "What the fork has changed"],
      ["team experiment --store dir:../store --json", "As JSON"]
    ]
  },
  { from: name("from", "A workspace"), to: name("to", "Another workspace") },
  ({ from, to }) => Effect.flatMap(loadHandlers, ({ diff }) => diff(from, to))
)

export const workspaces = Command.make("workspaces").pipe(
  Command.withSubcommands([
    { group: "LOOK", commands: [list, log, diff, verify] },
    { group: "CHANGE", commands: [create, fork, remove] },
    { group: "KEEP SMALL", commands: [gc] }
  ]),
  described({
    summary: "Manage the workspaces of a store",
    description: `A store has workspaces: trees of files with snapshots, each with one head. A store is a directory (dir:PATH or a path), a
file of SQLite (sqlite:FILE), a database of Postgres (postgres://USER@HOST/DATABASE), a bucket (s3://BUCKET/PREFIX) or two
buckets of a NATS server with JetStream (nats://HOST:PORT/NAME).
Every other command works on one workspace with --store URL --workspace NAME.
The password of Postgres is in the variable PGPASSWORD, and the credentials of NATS in NATS_USER and NATS_PASSWORD or in
NATS_TOKEN, or in the file of --token-file; never in the address.`,
    examples: [
      ["create team --store dir:../store", "Make a store with a workspace"],
      ["list --store dir:../store", "The workspaces"],
      ["gc --dry-run --store dir:../store", "Count the content that no workspace needs"]
    ]
  })
)
