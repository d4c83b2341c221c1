/** Reads the files of tokens and private keys. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs"
import { resolve } from "node:path"
import { Complaint, hostPathError } from "./exit.ts"
import { Screen } from "./screen.ts"

/** The largest number of bytes of a token file. HTTP servers limit the size of the headers. */
const maxTokenBytes = 4096

/** Tests whether a text can be sent in an HTTP header: visible ASCII of at most `maxTokenBytes`. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text) && text.length <= maxTokenBytes

/** Tests whether other users have any access to a file of this user, as ssh tests private keys. */
const isOpenToOthers = ({ mode, uid }: { readonly mode: number; readonly uid: number }): boolean =>
  process.geteuid !== undefined && uid === process.geteuid() && (mode & 0o077) !== 0

/** The time between two attempts to read from a pipe whose writer has not written yet. */
const pauseTime = "20 millis"

const readAtMost = (descriptor: number, most: number): Effect.Effect<Uint8Array, unknown> =>
  Effect.gen(function* () {
    const bytes = new Uint8Array(most)
    let used = 0
    while (used < most) {
      const count = yield* Effect.try({
        try: () => readSync(descriptor, bytes, used, most - used, null),
        catch: (error) => error
      }).pipe(
        Effect.catch((error) =>
          (error as NodeJS.ErrnoException).code === "EAGAIN"
            ? Effect.as(Effect.sleep(pauseTime), undefined)
            : Effect.fail(error)
        )
      )
      if (count === 0) break
      used += count ?? 0
    }
    return bytes.subarray(0, used)
  })

const complaint = (
  tag: "NotFound" | "AccessDenied" | "NotAFile" | "InvalidArgument",
  file: string,
  what: string,
  hint: string
) => hostPathError(tag, "open", file, what, hint)

const permissionHint = "Check the permissions of the file, or name another file."

/** Opens a file. The open of a pipe does not wait for its writer. */
const open = (path: string, file: string, nameHint: string): Effect.Effect<number, Complaint> =>
  Effect.try({
    try: () => openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)),
    catch: (error) => {
      const { code } = error as NodeJS.ErrnoException
      return code === "ENOENT" || code === "ENOTDIR"
        ? complaint("NotFound", file, "does not exist", nameHint)
        : complaint("AccessDenied", file, `cannot be opened (${code ?? String(error)})`, permissionHint)
    }
  })

/** Returns the text of a file, or `undefined` if it is too long. Refuses a file of this user to which other users have access. */
const read = (path: string, file: string, maxBytes: number, nameHint: string): Effect.Effect<string | undefined, Complaint> =>
  Effect.acquireUseRelease(
    open(path, file, nameHint),
    (descriptor) =>
      Effect.gen(function* () {
        const stats = yield* Effect.try({ try: () => fstatSync(descriptor), catch: (error) => error })
        if (stats.isDirectory()) return yield* complaint("NotAFile", file, "is a directory", nameHint)
        if (isOpenToOthers(stats)) {
          return yield* complaint(
            "AccessDenied",
            file,
            `can be read or written by other users (mode ${(stats.mode & 0o777).toString(8).padStart(4, "0")})`,
            `Make the file private: chmod 600 ${file}`
          )
        }
        const bytes = yield* readAtMost(descriptor, maxBytes + 1)
        if (bytes.length === 0 && stats.isFIFO()) {
          return yield* complaint("NotAFile", file, "is a pipe without a writer", nameHint)
        }
        return bytes.length > maxBytes ? undefined : new TextDecoder().decode(bytes)
      }).pipe(
        Effect.mapError((error) =>
          error instanceof Complaint
            ? error
            : complaint(
                "AccessDenied",
                file,
                `cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
                permissionHint
              )
        )
      ),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  )

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
      Effect.flatMap(read(resolve(directory, file), file, maxBytes, nameHint), (text) => {
        const secret = text === undefined ? undefined : secretOf(text)
        return secret === undefined
          ? Effect.fail(complaint("InvalidArgument", file, wrong, wrongHint))
          : Effect.succeed(Redacted.make(secret))
      })
    )

/** Returns the token of a file. Refuses a file of this user to which other users have access. */
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

/** Returns the private key of a file. Refuses a file of this user to which other users have access. */
export const readPrivateKey = readSecret({
  maxBytes: 64 * 1024,
  nameHint: "Set FS_ALGEBRA_SSH_KEY to the file of a private key, relative to the current directory.",
  wrong: "is not a private key",
  wrongHint: "Name the file of a private key, such as ~/.ssh/id_ed25519, and not that of its public key.",
  secretOf: (text) => (text.includes("PRIVATE KEY-----") ? text : undefined)
})
