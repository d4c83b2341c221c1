/** The advice for every filesystem error: the message says what happened, this table says what to do next. */
import type * as FsError from "../model/FsError.ts"
import type { CommandLine } from "./shell.ts"

/** The operation in an error about the root itself, raised before there is a filesystem. */
export const opening = "open"

const whyDenied: Readonly<Record<FsError.AccessDenied["why"], string>> = {
  permission: "Look at the permissions of the file and its directory, or run as a user who has them.",
  readOnly: "This filesystem only answers; nothing in it can be changed.",
  escape: "Follow the link yourself, and choose a --root that contains its target.",
  root: "Name something below the root instead.",
  link: "Name the target of the link instead; a file with several names is refused with --hardlinks reject.",
  policy: "Ask whoever set the policy.",
  busy: "Close what uses it, then try again."
}

const argumentAdvice: ReadonlyMap<string, string> = new Map([
  ["pattern", "Quote the pattern for your shell; to find plain text use grep --literal."],
  ["oldText", "Give --old text exactly as it stands in the file, and enough of it to be there once; or use --first or --all."],
  ["ifMatch", "Leave out either --if-match or --mode create."],
  ["to", "Choose a destination that is neither the source nor inside it."],
  ["image", "Say what the container is made of: --image IMAGE, or --rootfs DIR."],
  ["after", "Give --after what the previous answer called its continuation, and nothing else."]
])

type Advice = {
  readonly [Tag in FsError.FsError["_tag"]]: (
    error: Extract<FsError.FsError, { readonly _tag: Tag }>,
    line: CommandLine
  ) => string
}

const advice: Advice = {
  NotFound: ({ operation }, line) =>
    operation === opening ? "Give a directory that exists: --root DIR." : `See what there is: ${line("tree")}`,
  AlreadyExists: ({ operation, path }, line) =>
    operation === "copy" || operation === "move"
      ? "Use --overwrite to replace it, or choose another name."
      : operation === "mkdir"
        ? `Choose another name, or see what it is: ${line("stat", path)}; a directory that is there is no failure without --no-exist-ok.`
        : `Use --mode overwrite to replace it, or change part of it: ${line("edit", path)}`,
  AccessDenied: ({ why }) => whyDenied[why],
  InvalidPath: () =>
    "A path is relative to the root or absolute, stays below it and goes round in no circle; another --root reaches what lies outside.",
  PathTooLong: () => "Choose a --root further down, or shorter names.",
  NotADirectory: ({ operation, path }, line) =>
    operation === opening ? "Give a directory: --root DIR." : `See what it is: ${line("stat", path)}`,
  NotAFile: ({ operation, path }, line) =>
    operation === "copy" || operation === "move"
      ? `See what it is: ${line("stat", path)}; to put something inside a directory end the destination with /.`
      : `See what it is: ${line("stat", path)}`,
  DirectoryNotEmpty: ({ operation, path }, line) =>
    operation === "delete"
      ? `Remove it with all that is in it: ${line("rm", "--recursive", path)}`
      : "Choose another destination, or remove that directory first.",
  DiskFull: () => "Make room, then try again; the old content is still there.",
  Timeout: () => "Make the pattern simpler, or search for plain text with --literal.",
  IoError: () => "Check the disk and the connection to it, then try again.",
  NotText: ({ path }, line) => `Read it as bytes: ${line("cat", "--bytes", "0:256", path)} | xxd`,
  LimitExceeded: ({ path }, line) => `Take a part of it: ${line("cat", "--bytes", "0:65536", path)}`,
  InvalidArgument: ({ argument, operation }) =>
    argument === "pattern" && operation.startsWith("glob")
      ? String.raw`Quote the pattern for your shell; \ before a sign takes it for itself.`
      : (argumentAdvice.get(argument) ?? "See --help for what it may be."),
  Conflict: ({ actual, path }, line) =>
    actual === undefined || actual === null
      ? `Look at it again: ${line("stat", path)}`
      : `Read it again, then say so: ${line("cat", path)} and --if-match ${actual}`,
  Unsupported: () => "Try another backend: --backend host or --backend memory.",
  Unavailable: ({ hint, operation }) =>
    hint ??
    (operation === "exec" || operation === "Container"
      ? "Look whether the engine runs and has what the container is made of; podman pull IMAGE fetches an image."
      : "Start what the files are on, then try again.")
}

export const adviceOn = (error: FsError.FsError, line: CommandLine): string =>
  (advice[error._tag] as (error: FsError.FsError, line: CommandLine) => string)(error, line)
