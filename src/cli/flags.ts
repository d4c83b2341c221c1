import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import type { Kind } from "../model/Entry.ts"

export const toggle = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withoutNegation, Flag.withDefault(false))

/** Makes a flag that is true by default; `--no-<name>` makes it false. */
export const negatable = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(true))

const undefinedWhenAbsent = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.optional(flag), Option.getOrUndefined)

export const text = (name: string, metavar: string, description: string): Flag.Flag<string | undefined> =>
  undefinedWhenAbsent(Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar)))

export const requiredText = (name: string, metavar: string, description: string): Flag.Flag<string> =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar))

export const requiredNatural = (name: string, metavar: string, description: string): Flag.Flag<number> =>
  Flag.Int(name).pipe(
    Flag.withDescription(description),
    Flag.withMetavar(metavar),
    Flag.filter(
      (n) => n >= 0,
      (n) => `${n} is below 0`
    )
  )

export const natural = (name: string, metavar: string, description: string): Flag.Flag<number | undefined> =>
  undefinedWhenAbsent(requiredNatural(name, metavar, description))

export const repeated = (name: string, metavar: string, description: string): Flag.Flag<ReadonlyArray<string>> =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar), Flag.atLeast(0))

export const path = (description: string): Argument.Argument<string> =>
  Argument.Path("path").pipe(Argument.withDescription(description))

export const paths = (description: string): Argument.Argument<ReadonlyArray<string>> =>
  path(description).pipe(Argument.variadic({ min: 1 }))

export const directory = (description: string): Argument.Argument<string> =>
  path(`${description} (default: the root)`).pipe(Argument.withDefault("."))

export const ifMatch: Flag.Flag<string | null | undefined> = text(
  "if-match",
  "VERSION",
  "Only if the file has this version (see stat); none means that the file must not exist"
).pipe(Flag.map((version) => (version === "none" ? null : version)))

export const exclude = repeated(
  "exclude",
  "GLOB",
  "Leave out paths that match; !GLOB includes them again (may be repeated)"
).pipe(Flag.withAlias("x"))

export const gitignore: Flag.Flag<boolean> = Flag.Boolean("gitignore").pipe(
  Flag.withDescription(
    "Leave out .git and all paths that .gitignore or .ignore match (the default); --no-ignore includes them"
  ),
  Flag.withNegation("no-ignore"),
  Flag.withDefault(true)
)

export const max = natural("max", "N", "Stop after N results, and print the value of --after that continues the search").pipe(
  Flag.withAlias("m")
)

export const after = text("after", "PLACE", "Continue from the value that an earlier command with --max printed")

const kindNames: ReadonlyArray<string> = ["file", "directory", "symlink", "other"] satisfies ReadonlyArray<Kind>

export const kinds: Flag.Flag<ReadonlyArray<Kind>> = Flag.String("kinds").pipe(
  Flag.withDescription("The kinds to find, separated by commas: file, directory, symlink, other (default: file)"),
  Flag.withMetavar("KINDS"),
  Flag.filterMap(
    (list) => {
      const names = list.split(",").map((name) => name.trim())
      return names.every((name) => kindNames.includes(name)) ? Option.some(names as ReadonlyArray<Kind>) : Option.none()
    },
    (list) => `"${list}" is not a list of file, directory, symlink, other`
  ),
  Flag.withDefault(["file"] as const)
)

export type Span = readonly [from: number | undefined, to: number | undefined]

const spanOf = (text: string, minimum: number): Option.Option<Span> => {
  const match = /^(\d*):(\d*)$/.exec(/^\d+$/.test(text) && minimum === 1 ? `${text}:${text}` : text)
  if (match === null || text === ":") return Option.none()
  const [from, to] = match.slice(1).map((digits) => (digits === "" ? undefined : Number(digits)))
  return (from ?? minimum) < minimum || (to ?? Number.MAX_SAFE_INTEGER) < (from ?? minimum)
    ? Option.none()
    : Option.some([from, to])
}

export const span = (name: string, minimum: 0 | 1, description: string): Flag.Flag<Span | undefined> =>
  undefinedWhenAbsent(
    Flag.String(name).pipe(
      Flag.withDescription(description),
      Flag.withMetavar("A:B"),
      Flag.filterMap(
        (text) => spanOf(text, minimum),
        (text) => `"${text}" is not A:B, A: or :B, with A at least ${minimum} and B not below A`
      )
    )
  )

/** Refuses a blank value. An unset variable in a client's configuration becomes one. */
export const nonBlank = (expected: string) =>
  Flag.filter(
    (text: string | undefined) => text === undefined || text.trim() !== "",
    () => expected
  )

export const pathsBelow = repeated("path", "PATH", "Only this path and all paths below it (may be repeated)").pipe(
  Flag.withAlias("p")
)

export const allow = repeated("allow", "GLOB", "Allow access only to these paths (may be repeated)")

export const deny = repeated(
  "deny",
  "GLOB",
  "Hide these paths and refuse access to them, even if --allow matches (may be repeated)"
)

const maxPort = 65_535

/** Makes a flag for a port; 0 means any free port. */
export const port = (name: string, description: string): Flag.Flag<number> =>
  Flag.Int(name).pipe(
    Flag.withDescription(description),
    Flag.withMetavar("PORT"),
    Flag.filter(
      (port) => port >= 0 && port <= maxPort,
      (port) => `${port} is not a port number`
    )
  )

/** Makes a flag for a loopback address. No other address is allowed, so the server is not reachable from the network. */
export const ownAddress = (description: string): Flag.Flag<"127.0.0.1" | "::1" | undefined> =>
  undefinedWhenAbsent(
    Flag.Literals("host", ["127.0.0.1", "::1"]).pipe(
      Flag.withDescription(`${description} (default: 127.0.0.1)`),
      Flag.withMetavar("ADDRESS")
    )
  )
