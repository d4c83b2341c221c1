import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Flag from "effect/cli/Flag"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import { refusing } from "../settings.ts"
import { subcommandOn } from "../subcommand.ts"

export const serve = subcommandOn(reportedLayer(refusing(({ refusal }) => refusal)(Layer.empty)))(
  "serve",
  {
    summary: "Serve the directory, or the workspaces of a store, to other programs and machines",
    description: `Serve the directory, until the command is stopped, to every command with --root URL and to programs that use Remote.
Standard error shows the URL. Only this user can use a Unix socket. A server that other machines can reach needs
a token, in the private file of --token-file or in FS_ALGEBRA_TOKEN; clients give the same token. If the root is itself
a server, its token is in FS_ALGEBRA_TOKEN. With --listen stdio the server has one client, which has started it, as
ssh does for --root ssh://HOST/PATH. When the server ends, files that clients are still writing keep their old
content. With --store URL and without --workspace, the server serves all workspaces of the store: clients add
?workspace=NAME to the address. A workspace can be created, deleted and changed meanwhile.`,
    examples: [
      [`--listen "unix:$XDG_RUNTIME_DIR/files.sock"`, "For this user on this machine"],
      ["--listen 127.0.0.1:0 --read-only", "For programs of this machine, on a free port"],
      ["--root ~/notes --listen 0.0.0.0:8080 --token-file token", "For other machines, with a token"],
      ["--store dir:../store --listen 127.0.0.1:8080", "All workspaces of a store: http://127.0.0.1:8080?workspace=NAME"],
      ["--listen 127.0.0.1:0 --backend memory", "A copy in memory, which ends with the server"]
    ]
  },
  {
    listen: flags.requiredText("listen", "ADDRESS", "unix:PATH, HOST:PORT (port 0 is any free port), or stdio"),
    readOnly: flags.toggle("read-only", "Refuse all changes"),
    deletes: flags.toggle("no-delete", "Refuse every removal and move").pipe(Flag.map((isGiven) => !isGiven)),
    allow: flags.allow,
    deny: flags.deny,
    limits: Flag.Literals("limits", ["agent", "standard", "unlimited"]).pipe(
      Flag.withDescription("The largest limits of a client's call (default: those of commands)"),
      Flag.withMetavar("LIMITS"),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    )
  },
  Effect.fnUntraced(function* (input) {
    const { serve } = yield* Effect.promise(() => import("../serve.ts"))
    yield* serve(input)
  })
)
