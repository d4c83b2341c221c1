/** Reads the files of tokens and private keys. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { resolve } from "node:path"
import { type Complaint, hostPathError } from "./exit.ts"
import { Screen } from "./screen.ts"

/** The largest number of bytes of a token file. Headers of HTTP requests are limited too. */
const maxTokenBytes = 4096

/** Tests whether a text can be sent in a header of HTTP: visible ASCII. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text) && text.length <= maxTokenBytes

/** Tests whether other users can read a file of this user, as ssh tests private keys. */
const isOpenToOthers = ({ mode, uid }: { readonly mode: number; readonly uid: number }): boolean =>
  process.geteuid !== undefined && uid === process.geteuid() && (mode & 0o077) !== 0

const readAtMost = (descriptor: number, most: number): Uint8Array => {
  const bytes = new Uint8Array(most)
  let used = 0
  while (used < most) {
    const count = readSync(descriptor, bytes, used, most - used, null)
    if (count === 0) break
    used += count
  }
  return bytes.subarray(0, used)
}

const complaint = (
  tag: "NotFound" | "AccessDenied" | "NotAFile" | "InvalidArgument",
  file: string,
  what: string,
  hint: string
) => hostPathError(tag, "open", file, what, hint)

/** Returns the text of a file. Refuses a file of this user that other users can read. */
const read = (path: string, file: string, maxBytes: number, nameHint: string): string | undefined | Complaint => {
  let descriptor: number
  try {
    descriptor = openSync(path, "r")
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === "ENOENT" || code === "ENOTDIR"
      ? complaint("NotFound", file, "does not exist", nameHint)
      : complaint("AccessDenied", file, `cannot be opened (${code ?? String(error)})`, nameHint)
  }
  try {
    const stats = fstatSync(descriptor)
    if (stats.isDirectory()) return complaint("NotAFile", file, "is a directory", nameHint)
    if (isOpenToOthers(stats)) {
      return complaint(
        "AccessDenied",
        file,
        `can be read or written by other users (mode ${(stats.mode & 0o777).toString(8).padStart(4, "0")})`,
        `Make the file private: chmod 600 ${file}`
      )
    }
    const bytes = readAtMost(descriptor, maxBytes + 1)
    return bytes.length > maxBytes ? undefined : new TextDecoder().decode(bytes)
  } catch (error) {
    return complaint(
      "AccessDenied",
      file,
      `cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
      nameHint
    )
  } finally {
    closeSync(descriptor)
  }
}

interface Kind {
  readonly maxBytes: number
  readonly nameHint: string
  readonly wrong: string
  readonly wrongHint: string
  /** Returns the secret of a text, or `undefined` if the text has none. */
  readonly secretOf: (text: string) => string | undefined
}

const readSecret =
  ({ maxBytes, nameHint, secretOf, wrong, wrongHint }: Kind) =>
  (file: string): Effect.Effect<Redacted.Redacted, Complaint, Screen> =>
    Effect.flatMap(Screen, ({ directory }) =>
      Effect.suspend(() => {
        const text = read(resolve(directory, file), file, maxBytes, nameHint)
        if (typeof text === "object") return Effect.fail(text)
        const secret = text === undefined ? undefined : secretOf(text)
        return secret === undefined
          ? Effect.fail(complaint("InvalidArgument", file, wrong, wrongHint))
          : Effect.succeed(Redacted.make(secret))
      })
    )

/** Returns the token of a file. Refuses a file of this user that other users can read. */
export const readTokenFile = readSecret({
  maxBytes: maxTokenBytes,
  nameHint: "Name a file that contains the token in one line, relative to the current directory.",
  wrong: `is not a token: one line of at most ${maxTokenBytes.toLocaleString("en")} visible ASCII characters`,
  wrongHint: "Make a token, for example with: head -c 32 /dev/urandom | base64",
  secretOf: (text) => {
    const token = text.replace(/\r?\n$/, "")
    return isToken(token) ? token : undefined
  }
})

/** Returns the private key of a file. Refuses a file of this user that other users can read. */
export const readPrivateKey = readSecret({
  maxBytes: 64 * 1024,
  nameHint: "Set FS_ALGEBRA_SSH_KEY to the file of a private key, relative to the current directory.",
  wrong: "is not a private key",
  wrongHint: "Name the file of a private key, such as ~/.ssh/id_ed25519, and not that of its public key.",
  secretOf: (text) => (text.includes("PRIVATE KEY-----") ? text : undefined)
})
