import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as flags from "../flags.ts"
import { baseCommand, described, refuseFlags, subcommandOn, toSettings } from "../subcommand.ts"

export const ProgramVersion: Context.Reference<string> = Context.Reference("fs-algebra/cli/ProgramVersion", {
  defaultValue: () => "0.0.0"
})

const http = flags
  .port("http", "Listen for HTTP on this port, 0 for any free one; the address is printed on standard error")
  .pipe(Flag.optional, Flag.map(Option.getOrUndefined))

const loadServer = Effect.promise(() => import("../mcpMain.ts"))

export const mcp = Command.make(
  "mcp",
  {
    directories: Argument.Path("directory").pipe(
      Argument.withDescription(
        "The root, like --root; several directories are served below a common root, each under its name"
      ),
      Argument.filter(
        (directory) => directory.trim() !== "",
        () => "a directory, not blank"
      ),
      Argument.variadic()
    ),
    tools: flags
      .text("tools", "TOOLS", "all, seven, vfs, or tool names separated by commas (default: all)")
      .pipe(Flag.map((tools) => tools ?? "all")),
    readOnly: flags.toggle("read-only", "Offer no tool that changes anything"),
    deletes: flags
      .toggle("no-delete", "Refuse every removal and move, including those of a patch or a restore")
      .pipe(Flag.map((isGiven) => !isGiven)),
    limits: Flag.Literals("limits", ["agent", "standard", "unlimited"]).pipe(
      Flag.withDescription("The limits on what one call may read and write"),
      Flag.withMetavar("LIMITS"),
      Flag.withDefault("agent" as const)
    ),
    mountPoint: flags.text(
      "mount-point",
      "PATH",
      "The absolute directory that paths may begin with (default: the root as given)"
    ),
    allow: flags.allow,
    deny: flags.deny,
    readBeforeWrite: flags.toggle(
      "read-before-write",
      "Refuse to change, move or remove files whose current version was not read"
    ),
    structured: flags.toggle(
      "structured",
      "Also send results as structured content, for clients that are programs; models need only the text"
    ),
    snapshots: Flag.Boolean("snapshots").pipe(
      Flag.withDescription(
        "Offer snapshots with any --tools, and fail if they are impossible (default: with all tools, if possible)"
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    anyRoot: flags.toggle("any-root", "Serve even a home directory, or the whole machine"),
    http,
    host: flags.ownAddress("The loopback address that --http listens on")
  },
  Effect.fnUntraced(function* ({ directories, host, http: port, ...input }) {
    const { serving } = yield* loadServer
    const version = yield* ProgramVersion
    const sharedFlags = yield* baseCommand
    const { root, store: _, ...settings } = toSettings(sharedFlags, "mcp")
    const address = port === undefined ? undefined : { host: host ?? ("127.0.0.1" as const), port }
    const isGiven = sharedFlags.root !== undefined || sharedFlags.workspace !== undefined
    const roots = [...(isGiven ? [root] : []), ...directories]
    yield* serving({ ...settings, roots, input: { ...input, http: address } }, { version })
  })
).pipe(
  described({
    summary: "Serve the directory to agents (Model Context Protocol)",
    description: `Serve the directory to one agent over standard input and output: tools to list, read, search and change files and
to take and restore snapshots, files as resources, and a guide for the model. No path leads out of the root. The
server ends when its input ends. With --http 8080 it serves several programs of this machine
at http://127.0.0.1:8080/mcp until it is stopped.
Without a root it serves the roots that the client lists, or the current directory if the client has no list of roots.
The home directory is refused, and so is every directory that contains it. Before the first change of a session, and
before a directory is removed, the server takes a snapshot.`,
    examples: [
      ["~/notes", "The command for a client's configuration"],
      ["--root . --read-only", "Read only: no tool that changes anything is listed"],
      ["app ../shared", "Two directories, as app and shared"],
      ["--deny '**/.env*' --deny '.git/**' --read-before-write", "Hide secret files"],
      ["--deny '**/.env*' --hardlinks reject", "Also if a secret file has another hard link"],
      ["--no-delete", "Write and edit, but remove nothing"],
      ["--store dir:../store --workspace team", "A workspace of a store"],
      ["--backend memory", "On a copy in memory, which ends with the session"],
      ["--backend memory --mount ../shared:lib --mount notes.md", "On a copy with additional files"]
    ]
  }),
  refuseFlags(({ host, http }) => (host !== undefined && http === undefined ? "--host requires --http" : undefined))
)

export const debug = subcommandOn(Layer.empty)(
  "debug",
  {
    summary: "Show a dump, or the directory with its snapshots, in the browser",
    description: `Serve a page to browsers of this machine, until the command is stopped. Standard error shows the address.
With PATH the page shows a dump: sessions, tool calls and files. PATH is a dumped .jsonl file, its .fs.zip, or a
directory of dumps; the newest dump is shown first. Without PATH the page shows the directory live, its snapshots,
and the changes between them. With --store URL the page shows the workspaces of a store. With --journal FILE the page also
shows that journal, and the author of each change.
The page changes nothing, and records nothing in the journal. Programs find the API at /openapi.json.`,
    examples: [
      ["runs", "The newest dump of a directory, with a list of the others"],
      ["runs/5f0c.jsonl", "One dump with its files"],
      ["--root ~/notes", "A directory as it is, with its snapshots"],
      ["--root . --journal ../work.journal", "The directory and its journal, live"],
      ["--store dir:../store", "The workspaces of a store"],
      ["runs --port 8080 --json", "For programs: the address as JSON on standard output"]
    ]
  },
  {
    path: Argument.Path("path").pipe(
      Argument.withDescription(
        "A dump, or a directory of dumps, relative to the current directory (default: show the root instead)"
      ),
      Argument.optional
    ),
    port: Flag.withDefault(flags.port("port", "Listen on this port (default: any free port)"), 0),
    host: Flag.map(flags.ownAddress("The loopback address to listen on"), (host) => host ?? "127.0.0.1")
  },
  Effect.fnUntraced(function* ({ path, ...options }) {
    const { serve } = yield* Effect.promise(() => import("../debugServe.ts"))
    yield* serve({ ...options, path: Option.getOrUndefined(path) }, yield* ProgramVersion)
  })
)
