import * as Effect from "effect/Effect"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import { writeDocument, writeRemark } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle } from "../look.ts"
import { Screen } from "../screen.ts"
import { DescribedSnapshot, describeSnapshot, formatNumbers } from "../snapshotDetails.ts"
import { withStore } from "../snapshotStore.ts"
import { subcommand } from "../subcommand.ts"

const maxTagCharacters = 1000

/** Reports entries that snapshots cannot hold, because a restore does not bring them back. */
const reportSkipped = Effect.fnUntraced(function* (skipped: number) {
  const { yellow } = errorStyle(yield* Screen)
  yield* writeRemark(`${yellow("skipped:")} ${humanise.whole(skipped)} that no snapshot holds (FIFOs, sockets, devices)`, {
    skipped
  })
})

export const snapshot = subcommand(
  "snapshot",
  {
    formatSummary: "Keep the whole tree as it is now",
    description: `Keep everything below the root, so that restore brings it back byte for byte: ignored files, empty directories,
links, permissions, repositories. Content that has not changed since the last snapshot takes no space again.
Snapshots are kept outside the root, in a git repository that your own git commands never see (the command snapshots
prints its place); with --store DIR in another one.`,
    examples: [
      ["", "Before something is tried"],
      ["--tag 'works, tests pass'", "With a tag that names it"],
      ["--json | jq -r .snapshotId", "Its whole id, for a program"]
    ]
  },
  {
    tag: flags.text("tag", "TEXT", "One line of text that names it"),
    anyRoot: flags.toggle("any-root", "Allow a snapshot even of a home directory or the whole machine"),
    store: flags.store
  },
  Effect.fnUntraced(function* ({ tag, ...options }) {
    yield* withStore(
      options,
      Effect.fnUntraced(function* ({ withStoreProgress: showing, snapshots }) {
        const taken = yield* snapshots.snapshot({ tag }).pipe(showing("Taking a snapshot"))
        const details = yield* snapshots.details(taken).pipe(showing("Counting what has changed"))
        yield* writeDocument(
          DescribedSnapshot,
          describeSnapshot(details),
          (look) => `Took snapshot ${look.yellow(taken.snapshotId)}\n${look.dim(formatNumbers(details))}\n`
        )
        if (details.skipped !== undefined) yield* reportSkipped(details.skipped)
      })
    )
  })
).pipe(
  Command.validate(({ tag }) =>
    tag !== undefined && (tag.length > maxTagCharacters || /[\0-\x1f\x7f]/.test(tag))
      ? new CliError.ValidationError({ message: "--tag is one line of at most 1,000 characters" })
      : Effect.void
  )
)
