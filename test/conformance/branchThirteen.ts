/** The laws that the thirteen basic kinds of journal entry cannot satisfy, with the reasons. */
import type { Law } from "../../src/testing/Law.ts"

const named =
  (...texts: ReadonlyArray<RegExp>) =>
  ({ name }: Law): boolean =>
    texts.some((text) => text.test(name))

/** The laws that hold although a reason below names them, for example because a call fails before its first step. */
const holdsAnyway = named(
  /InvalidArgument/,
  /at any step/,
  /checks (the limits|its arguments) before the precondition/,
  /^the root cannot be moved/,
  /into the tree do not deadlock/,
  /reported as DiskFull/,
  /when the file is removed/
)

export const beyond: ReadonlyArray<readonly [reason: string, is: (law: Law) => boolean]> = [
  [
    "the steps of a port create no parents, and report why access is denied",
    (law) =>
      law.kind === "port" &&
      law.needs.some((ability) => ability === "write" || ability === "delete") &&
      !named(/^port remove (of a directory|of a missing path|below|removes)/)(law)
  ],
  ["there are no preconditions", named(/ifMatch|precondition/, /^write.* is a Conflict if the file is missing/)],
  ["an append reports no version", named(/returns the version (of the written content|with the option version)/)],
  ["parents are always created", named(/without createParents/)],
  ["no entry creates a directory alone", named(/^mkdir /, /created again as another/, /concurrent mkdirs/)],
  [
    "no entry moves",
    named(
      /^move (of|to|from|creates|over)/,
      /moved/,
      /^a move (keeps|removes) the old parent/,
      /can be swapped/,
      /^failures contain the operation, and the path/
    )
  ],
  [
    "a copy creates directories, and files without creating parents",
    named(
      /^copy (of a file keeps|of a tree keeps all|of an empty directory|creates|of a directory (to a name|over an)|over a file replaces)/,
      /^a copy (and its original|includes)/
    )
  ],
  [
    "directories that are deleted are not counted",
    named(/^delete removes an empty/, /counts files and directories/, /^a recursive delete includes/, /deleting a tree/)
  ],
  ["no step writes without creating parents", named(/with the name of a temporary file is/)],
  [
    "the law needs the steps of the port",
    named(
      /two filesystems over one port/,
      /an interrupted call does not block/,
      /a full disk/,
      /^an accelerated read returns/,
      /^copies and moves/,
      /in one step/
    )
  ]
]

export const reasonFor = (law: Law): string | undefined =>
  holdsAnyway(law) ? undefined : beyond.find(([, is]) => is(law))?.[0]
