/**
 * Finds the archive of a command: a file of the machine, relative to the working directory and not to the root, or a standard
 * stream. The format follows from the name or a flag.
 */
import { statSync } from "node:fs"
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { Complaint, exitCodeOf, usage } from "./exit.ts"
import { Screen } from "./screen.ts"

export type Format = "zip" | "tar"

export const standardStream = "-"

export const file = (description: string): Argument.Argument<string> =>
  Argument.Path("file").pipe(Argument.withDescription(description))

export const format: Flag.Flag<Format | undefined> = Flag.Literals("format", ["zip", "tar"]).pipe(
  Flag.withDescription("The format (default: by the end of its name; zip for -)"),
  Flag.withMetavar("FORMAT"),
  Flag.withDefault(undefined)
)

export const formatOf = (file: string, givenFormat: Format | undefined): Effect.Effect<Format, Complaint> => {
  if (givenFormat !== undefined) return Effect.succeed(givenFormat)
  if (file === standardStream || /\.zip$/i.test(file)) return Effect.succeed("zip")
  if (/\.tar$/i.test(file) || isCompressed(file)) return Effect.succeed("tar")
  return Effect.fail(usage(`"${file}" ends neither in .zip nor in .tar`, "Give its format: --format zip or --format tar."))
}

/** Tests for a compressed tar, which can be read but not written. */
export const isCompressed = (file: string): boolean => /\.(tgz|tar\.gz)$/i.test(file)

export const absolutePathOf = (file: string): Effect.Effect<string, never, Screen> =>
  Effect.map(Screen, ({ directory }) => resolve(directory, file))

/**
 * Returns the kind of a path of the machine. An unreadable path counts as a file, because opening it then reports the error.
 */
export const kindOfHostPath = (place: string): "file" | "directory" | undefined => {
  try {
    const stat = statSync(place, { throwIfNoEntry: false })
    return stat === undefined ? undefined : stat.isDirectory() ? "directory" : "file"
  } catch {
    return "file"
  }
}

/** Makes an error about a file of the machine. The usual advice suggests names below the root, which would mislead here. */
export const hostFileError = (
  tag: "NotFound" | "AlreadyExists" | "NotAFile",
  file: string,
  what: string,
  hint: string
): Complaint =>
  new Complaint({
    error: { _tag: tag, operation: "archive", path: file },
    message: `"${file}" ${what}`,
    hint,
    code: exitCodeOf(tag)
  })
