/**
 * Parses `--root`: a directory, a server, a directory of an SSH server, or a bucket. Also parses the text that stands for
 * `--store` and `--workspace`.
 */
import { existsSync, statSync } from "node:fs"
import { basename, resolve } from "node:path"
import { splitUrl, urlOf } from "../remote/choice.ts"
import { type Complaint, usage } from "./exit.ts"
import { ofRoot } from "./workspaceRoot.ts"

export type Root =
  | { readonly _tag: "Directory" }
  | { readonly _tag: "Server"; readonly url: string }
  | { readonly _tag: "Bucket"; readonly bucket: string; readonly prefix: string }
  | {
      readonly _tag: "Sftp"
      readonly user: string | undefined
      readonly host: string
      readonly port: number
      readonly path: string
    }
  | { readonly _tag: "Workspace"; readonly store: string; readonly workspace: string }
  | { readonly _tag: "Invalid"; readonly detail: string; readonly hint: string }

const directory: Root = { _tag: "Directory" }

/** Tests whether a directory exists at the path, as far as this user can see. */
export const isDirectoryAt = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

const schemes = "http://HOST:PORT, ws://HOST:PORT, unix:PATH, ssh://HOST/PATH, sftp://HOST/PATH or s3://BUCKET/PREFIX"

const invalid = (detail: string, hint: string): Root => ({ _tag: "Invalid", detail, hint })

const wrongWorkspace = invalid(
  "the name of the workspace is not valid percent-encoding",
  "Write % as %25 in ?workspace=NAME, and other characters as encodeURIComponent does."
)

const parseServer = (text: string): Root => {
  if (!URL.canParse(text)) return invalid("the address cannot be parsed", `Give a directory, ${schemes}.`)
  const choice = splitUrl(text)
  if (choice === undefined) return wrongWorkspace
  const { hash, password, search, username } = new URL(choice.url)
  if (username !== "" || password !== "") {
    return invalid(
      "an address must not contain a user or a password, because other users can see the command line",
      "Give the token of the server in FS_ALGEBRA_TOKEN or with --token-file FILE."
    )
  }
  return search === "" && hash === ""
    ? { _tag: "Server", url: text }
    : invalid(
        "the address of a server has no query but ?workspace=NAME, and no fragment",
        "Give the address as fs-algebra serve prints it."
      )
}

const parseSsh = (text: string): Root =>
  /^ssh:\/\/(?:[\w.][\w.-]*@)?(?:\[[\da-f:.]+\]|[\w.][\w.-]*)(?::\d{1,5})?\/./i.test(text)
    ? { _tag: "Server", url: text }
    : invalid(
        "an address of ssh needs a host and a path, and has no password",
        "Give ssh://USER@HOST/PATH, or ssh://HOST/~/PATH for a path in the home directory."
      )

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const parseSftp = (text: string): Root => {
  const parts = /^sftp:\/\/(?:([^\s/:@]+)@)?(\[[\da-f:.]+\]|[\w.][\w.-]*)(?::(\d{1,5}))?(\/.+)$/is.exec(text)
  const [, user, host = "", port = "22", encoded = ""] = parts ?? []
  const username = user === undefined ? undefined : decoded(user)
  const path = decoded(encoded)
  if (parts === null || path === undefined || (user !== undefined && username === undefined)) {
    return invalid(
      "an address of sftp needs a host and a path, and has no password",
      "Give sftp://USER@HOST/PATH, or sftp://HOST/~/PATH for a path in the login directory. A password is given in FS_ALGEBRA_SSH_PASSWORD."
    )
  }
  const home = /^\/~(?:\/+|$)/.exec(path)
  return {
    _tag: "Sftp",
    user: username,
    host: host.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port),
    path: home === null ? path : path.slice(home[0].length) || "."
  }
}

const parseBucket = (text: string): Root => {
  const [bucket = "", ...rest] = text.slice("s3://".length).split("/")
  return bucket === "" || /[@?#]/.test(bucket)
    ? invalid("the address of a bucket has no valid name", "Give s3://BUCKET or s3://BUCKET/PREFIX.")
    : { _tag: "Bucket", bucket, prefix: rest.join("/") }
}

/**
 * Parses the value of `--root`. A directory whose name begins like an address is written with `./` before it. Paths are
 * relative to the current directory.
 */
export const parseRoot = (text: string, currentDirectory: string): Root => {
  const stored = ofRoot(text)
  if (stored !== undefined) return { _tag: "Workspace", ...stored }
  const scheme = /^([a-z][a-z\d+.-]+):(\/\/)?/i.exec(text)
  if (scheme === null) return directory
  const name = scheme[1]!.toLowerCase()
  if (name === "unix") {
    const path = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "")
    const choice = splitUrl(path)
    if (choice === undefined) return wrongWorkspace
    const socket = `unix:${resolve(currentDirectory, choice.url)}`
    return choice.url === "" || path.startsWith("//")
      ? invalid("the address has no path", "Give unix:PATH, relative to the current directory or absolute.")
      : { _tag: "Server", url: choice.workspace === undefined ? socket : urlOf(socket, choice.workspace) }
  }
  const isKnown = /^(?:https?|wss?|ssh|sftp|s3)$/.test(name)
  if (scheme[2] === undefined) {
    return isKnown && !existsSync(resolve(currentDirectory, text))
      ? invalid("there is no such directory, and an address has two slashes", `Give a directory, ${schemes}.`)
      : directory
  }
  if (name === "s3") return parseBucket(text)
  if (name === "ssh") return parseSsh(text)
  if (name === "sftp") return parseSftp(text)
  return isKnown
    ? parseServer(text)
    : invalid(`"${name}:" is not a kind of address that can be a root`, `Give a directory, ${schemes}.`)
}

/** Tests whether a root is a directory of this machine. */
export const isDirectoryRoot = (text: string, currentDirectory: string): boolean =>
  parseRoot(text, currentDirectory)._tag === "Directory"

/** Returns the short name of a root, such as the last segment of a directory. */
export const rootName = (text: string, currentDirectory: string): string => {
  const root = parseRoot(text, currentDirectory)
  switch (root._tag) {
    case "Directory":
      return basename(resolve(currentDirectory, text))
    case "Server":
      return splitUrl(root.url)?.workspace ?? root.url.replace(/^\w+:(?:\/\/)?/, "")
    case "Sftp":
      return `${root.host}:${root.path}`
    case "Bucket":
      return root.prefix === "" ? root.bucket : `${root.bucket}/${root.prefix}`
    case "Workspace":
      return root.workspace
    case "Invalid":
      return text
  }
}

/**
 * Returns the text that identifies a server, an SSH directory or a bucket in the name of its snapshot store. Returns `undefined`
 * for directories and workspaces.
 */
export const rootIdentity = (text: string, currentDirectory: string): string | undefined => {
  const root = parseRoot(text, currentDirectory)
  if (root._tag === "Server") return root.url
  if (root._tag === "Sftp")
    return `sftp://${root.user ?? ""}@${root.host.toLowerCase()}:${root.port} ${root.path.replace(/\/+$/, "")}`
  return root._tag === "Bucket" ? `s3://${root.bucket}/${root.prefix.replace(/\/+$/, "")}` : undefined
}

/** Returns a root as messages show it. The password in a refused address must not get into a log. */
export const shownRoot = (text: string): string => JSON.stringify(text.replace(/^([a-z][a-z\d+.-]+:\/\/).*@/is, "$1***@"))

/** Returns the error for a command that needs a directory of this machine. */
export const needsDirectory = (root: string, what: string): Complaint =>
  usage(
    `${what} needs a directory of this machine, but the root ${shownRoot(ofRoot(root)?.workspace ?? root)} is not one`,
    "Give a directory: --root DIR."
  )
