/** Formats the changes between two trees as git's --name-status does: one letter, and the path. */
import * as Schema from "effect/Schema"
import * as humanise from "./humanise.ts"
import type { TextStyle } from "./look.ts"

export const Change = Schema.Struct({
  _tag: Schema.Literals(["Added", "Modified", "Removed"]),
  path: Schema.String
})

type Change = typeof Change.Type

const letters = { Added: "A", Modified: "M", Removed: "D" } as const

const colors = { Added: "green", Modified: "yellow", Removed: "red" } as const

/** Formats a path. A name that is not valid text is kept as hexadecimal bytes after a NUL. */
export const formatPath = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? name.slice(1).replace(/../g, String.raw`\x$&`) : name))
    .join("/")

export const formatChange = (look: TextStyle, { _tag, path }: Change): string =>
  `${look[colors[_tag]](letters[_tag])}\t${look.name(formatPath(path))}\n`

const maxShownChanges = 20

export const formatSomeChanges = (look: TextStyle, changes: ReadonlyArray<Change>, all: boolean): string => {
  const some = all || changes.length <= maxShownChanges + 1 ? changes : changes.slice(0, maxShownChanges)
  const rest = changes.length - some.length
  return (
    some.map((change) => formatChange(look, change)).join("") +
    (rest > 0 ? look.dim(`... and ${humanise.whole(rest)} more`) + "\n" : "")
  )
}

export const formatChangeCounts = (changes: ReadonlyArray<Change>): string => {
  const count = (tag: Change["_tag"]): number => changes.filter(({ _tag }) => _tag === tag).length
  return [
    [count("Added"), "added"],
    [count("Modified"), "changed"],
    [count("Removed"), "removed"]
  ]
    .filter(([number]) => number !== 0)
    .map(([number, what]) => `${humanise.whole(number as number)} ${what}`)
    .join(", ")
}
