import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as flags from "../flags.ts"
import { subcommandOn } from "../subcommand.ts"
import * as PlatformNode from "../platformNode.ts"
import { ProgramVersion } from "./mcp.ts"

export const debug = subcommandOn(Layer.empty)(
  "debug",
  {
    summary: "Look at a dump, or at the directory with its snapshots, in the browser",
    description: `Serve a page, to browsers of this machine alone, and say where it is on standard error, until it is stopped.
With PATH it shows what a run has left: sessions, what tools did, and the files. PATH is a .jsonl that was dumped,
its .fs.zip, or a directory of them, of which the newest is shown first. Without PATH it shows the directory as it
is, live, with the snapshots of it, and what has changed between them. With --journal FILE it shows that journal too,
and who changed what; nothing is recorded in it. Nothing that is shown is ever changed. Programs find what there is
to be asked at /openapi.json.`,
    examples: [
      ["runs", "The newest dump of a directory, and the others to choose from"],
      ["runs/5f0c.jsonl", "One dump with its files"],
      ["--root ~/notes", "A directory as it is, with its snapshots"],
      ["--root . --journal ../work.journal", "And what happens in it, as it happens"],
      ["runs --port 8080 --json", "For programs: the address as JSON on standard output"]
    ]
  },
  {
    path: Argument.Path("path").pipe(
      Argument.withDescription(
        "A dump, or a directory of dumps, relative to the current directory (default: none, the root itself)"
      ),
      Argument.optional
    ),
    port: Flag.withDefault(flags.port("port", "Listen on this port (default: any that is free)"), 0),
    host: Flag.map(flags.ownAddress("Which of this machine's own addresses to listen on"), (host) => host ?? "127.0.0.1"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ path, ...options }) {
    const { serve } = yield* PlatformNode.loading("debug", () => import("../debugServe.ts"))
    yield* serve({ ...options, path: Option.getOrUndefined(path) }, yield* ProgramVersion)
  })
)
