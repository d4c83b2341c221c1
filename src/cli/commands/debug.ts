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
    formatSummary: "Look at a dump, or at the directory with its snapshots, in the browser",
    description: `Serve a page to browsers of this machine only, until it is stopped. Its address is printed on standard error.
With PATH the page shows a dump: sessions, tool calls and files. PATH is a dumped .jsonl file,
its .fs.zip, or a directory of dumps, the newest shown first. Without PATH the page shows the directory live,
its snapshots, and the changes between them. With --journal FILE the page shows that journal too,
and the author of each change. The page changes nothing, and records nothing in the journal.
Programs find the API at /openapi.json.`,
    examples: [
      ["runs", "The newest dump of a directory, with a list of the others"],
      ["runs/5f0c.jsonl", "One dump with its files"],
      ["--root ~/notes", "A directory as it is, with its snapshots"],
      ["--root . --journal ../work.journal", "The directory and its journal, live"],
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
    port: Flag.withDefault(flags.port("port", "Listen on this port (default: any free port)"), 0),
    host: Flag.map(flags.ownAddress("The loopback address to listen on"), (host) => host ?? "127.0.0.1"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ path, ...options }) {
    const { serve } = yield* PlatformNode.loadModule("debug", () => import("../debugServe.ts"))
    yield* serve({ ...options, path: Option.getOrUndefined(path) }, yield* ProgramVersion)
  })
)
