/** The advice for every filesystem error: the message says what happened, this table says what to do next. */
import type * as FsError from "../model/FsError.ts"
import type { CommandLine } from "./shell.ts"

/** The operation in an error about the root itself, raised before there is a filesystem. */
export const openOperation = "open"

const accessDeniedAdvice: Readonly<Record<FsError.AccessDenied["why"], string>> = {
  permission: "Check the permissions of the file and its directory, or run as a user who has access.",
  readOnly: "This filesystem is read-only; nothing in it can be changed.",
  escape: "Follow the link yourself, and choose a --root that contains its target.",
  root: "Name something below the root instead.",
  link: "Name the target of the link instead; a file with several names is refused with --hardlinks reject.",
  policy: "Ask whoever set the policy.",
  busy: "Close the program that uses it, then try again."
}

const argumentAdvice: ReadonlyMap<string, string> = new Map([
  ["pattern", "Quote the pattern for your shell; to find plain text use grep --literal."],
  ["oldText", "Give --old exactly as the file has it, and enough of the text to occur only once; or use --first or --all."],
  ["ifMatch", "Leave out either --if-match or --mode create."],
  ["to", "Choose a destination that is neither the source nor inside it."],
  ["image", "Give the image or the root filesystem of the container: --image IMAGE, or --rootfs DIR."],
  ["after", "Give --after exactly the continuation that the previous answer named."]
])

type Advice = {
  readonly [Tag in FsError.FsError["_tag"]]: (
    error: Extract<FsError.FsError, { readonly _tag: Tag }>,
    line: CommandLine
  ) => string
}

const adviceByTag: Advice = {
  NotFound: ({ operation }, line) =>
    operation === openOperation ? "Give a directory that exists: --root DIR." : `Show the files: ${line("tree")}`,
  AlreadyExists: ({ operation, path }, line) =>
    operation === "copy" || operation === "move"
      ? "Use --overwrite to replace it, or choose another name."
      : operation === "mkdir"
        ? `Choose another name, or look at it: ${line("stat", path)}; without --no-exist-ok an existing directory is accepted.`
        : `Use --mode overwrite to replace it, or change part of it: ${line("edit", path)}`,
  AccessDenied: ({ why }) => accessDeniedAdvice[why],
  InvalidPath: () =>
    "A path is relative to the root or absolute, stays below it and has no cycle of links; choose another --root for files outside of it.",
  PathTooLong: () => "Choose a --root further down, or shorter names.",
  NotADirectory: ({ operation, path }, line) =>
    operation === openOperation ? "Give a directory: --root DIR." : `Look at it: ${line("stat", path)}`,
  NotAFile: ({ operation, path }, line) =>
    operation === "copy" || operation === "move"
      ? `Look at it: ${line("stat", path)}; to put something inside a directory end the destination with /.`
      : `Look at it: ${line("stat", path)}`,
  DirectoryNotEmpty: ({ operation, path }, line) =>
    operation === "delete"
      ? `Remove it with all its content: ${line("rm", "--recursive", path)}`
      : "Choose another destination, or remove that directory first.",
  DiskFull: () => "Make room, then try again; the old content is still there.",
  Timeout: () => "Make the pattern simpler, or search for plain text with --literal.",
  IoError: () => "Check the disk and the connection to it, then try again.",
  NotText: ({ path }, line) => `Read it as bytes: ${line("cat", "--bytes", "0:256", path)} | xxd`,
  LimitExceeded: ({ path }, line) => `Take a part of it: ${line("cat", "--bytes", "0:65536", path)}`,
  InvalidArgument: ({ argument, operation }) =>
    argument === "pattern" && operation.startsWith("glob")
      ? String.raw`Quote the pattern for your shell; \ before a character makes it match itself.`
      : (argumentAdvice.get(argument) ?? "See --help for the values it takes."),
  Conflict: ({ actual, path }, line) =>
    actual === undefined || actual === null
      ? `Look at it again: ${line("stat", path)}`
      : `Read it again with ${line("cat", path)}, then give --if-match ${actual}`,
  Unsupported: () => "Try another backend: --backend host or --backend memory.",
  Unavailable: ({ hint, operation }) =>
    hint ??
    (operation === "exec" || operation === "Container"
      ? "Check that the engine runs and has the image of the container; podman pull IMAGE fetches an image."
      : "Start the system that holds the files, then try again.")
}

export const adviceOn = (error: FsError.FsError, line: CommandLine): string =>
  (adviceByTag[error._tag] as (error: FsError.FsError, line: CommandLine) => string)(error, line)
