/**
 * `mcp`: the directory as a server of the Model Context Protocol, which agents start and talk to over standard input and output.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as flags from "../flags.ts"
import { subcommand } from "../subcommand.ts"

/** Of this program; the server names it to its clients. */
export const ProgramVersion: Context.Reference<string> = Context.Reference("fs-algebra/cli/ProgramVersion", {
  defaultValue: () => "0.0.0"
})

const http = flags
  .port("http", "Listen for HTTP on this port of this machine, any free one for 0, and say where on standard error")
  .pipe(Flag.optional, Flag.map(Option.getOrUndefined))

const served = Effect.promise(() => import("../mcpServe.ts"))

export const mcp = subcommand(
  "mcp",
  {
    summary: "Serve the directory to agents (Model Context Protocol)",
    description: `Serve the directory to one agent over standard input and output: tools to list, read, search and change files and
to take and restore snapshots, files as resources, and a guide for the model. Nothing leads out of the root, whatever
a client asks for. It ends when its input does. With --http 8080 it serves programs of this machine, several at once,
at http://127.0.0.1:8080/mcp until it is stopped.`,
    examples: [
      ["--root ~/notes", "What a client's configuration starts"],
      ["--root . --read-only", "Look, do not touch: no tool that changes anything is even listed"],
      ["--deny '**/.env*' --deny '.git/**' --read-before-write", "Some files are nobody's business"],
      ["--deny '**/.env*' --hardlinks reject", "Also where a secret file has a second name"],
      ["--backend memory", "On a copy, which goes when the agent does"],
      ["--backend memory --mount ../shared:lib --mount notes.md", "With other files in it"]
    ]
  },
  {
    tools: flags
      .text("tools", "TOOLS", "all, seven, vfs, or names with commas (default: all)")
      .pipe(Flag.map((tools) => tools ?? "all")),
    readOnly: flags.toggle("read-only", "Offer nothing that changes anything"),
    limits: Flag.Literals("limits", ["agent", "standard", "unlimited"]).pipe(
      Flag.withDescription("How much one call may read and write"),
      Flag.withMetavar("LIMITS"),
      Flag.withDefault("agent" as const)
    ),
    mountPoint: flags.text("mount-point", "PATH", "Paths may begin with this directory (default: the root as it was given)"),
    allow: flags.repeated("allow", "GLOB", "Only these may be touched (may be repeated)"),
    deny: flags.repeated("deny", "GLOB", "These are as if they were not there, also when allowed (may be repeated)"),
    readBeforeWrite: flags.toggle(
      "read-before-write",
      "Refuse to change a file that was not read as it is now, or to remove or move a directory that holds one"
    ),
    structured: flags.toggle(
      "structured",
      "Send results as structured content too, for programs that read it; models need the text"
    ),
    snapshots: flags.negatable("snapshots", "Offer snapshots; they are kept where those of the other commands are"),
    http,
    host: flags.ownAddress("Which of this machine's own addresses --http listens on")
  },
  Effect.fnUntraced(function* ({ host, http: port, ...input }) {
    const { serve } = yield* served
    const version = yield* ProgramVersion
    yield* serve({ ...input, http: port === undefined ? undefined : { host: host ?? "127.0.0.1", port } }, version)
  }),
  ({ host: _, ...input }) => Effect.flatMap(served, ({ recovery }) => recovery({ ...input, http: undefined }))
).pipe(
  Command.validate(({ host, http }) =>
    host !== undefined && http === undefined
      ? new CliError.ValidationError({ message: "--host goes only with --http" })
      : Effect.void
  )
)
