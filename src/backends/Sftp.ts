/**
 * A filesystem on a directory of an SSH server, through SFTP.
 *
 * The filesystem uses one connection with up to 64 concurrent requests, and reconnects if the connection is lost. An operation
 * is repeated only if its change was certainly not made. If the outcome is unknown, the call fails with Unavailable, and the
 * message says so.
 *
 * A write goes to a hidden temporary file, which then gets its name by one rename or hard link. So creating and replacing are
 * atomic, and a killed program, server or connection leaves the old content or the new content. Leftovers are removed when
 * their directory is listed: leftovers of this machine after their process has ended, and leftovers of other machines after a
 * day.
 *
 * The key of the server must be known, by its fingerprint or from a known_hosts file. Otherwise the connection is refused.
 *
 * Limits:
 *
 * - Confinement is `best-effort`. This library resolves links, but the server follows them too. So another program on the
 *   server can lead a call outside the root, if it replaces a directory with a link during the call.
 * - Preconditions are atomic within one filesystem. Another program can change the file between the check and the write.
 * - The server must speak version 3 of the protocol, as all common servers do, and its names must be case-sensitive.
 * - A server without `posix-rename@openssh.com` cannot replace a file in one step: the write fails with Unsupported, unless
 *   `unsafeReplace` is true. Such a server cannot make links either.
 * - An append larger than one request (255 KiB with OpenSSH) copies the file. If another program appends during the copy, the
 *   change of size or time reveals it, and the append starts again. A change immediately before the replacement is not detected.
 * - Times have a resolution of one second. Watching is not supported.
 * - Encrypted private keys and host certificates are not supported.
 *
 * Requires the package `ssh2`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Filesystem from "../filesystem/Filesystem.ts"
import type { BackendError, InvalidArgument } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import type { SftpOptions } from "./sftp/open.ts"

export type {
  /** @since 0.1.0 */
  SftpOptions
} from "./sftp/open.ts"

/**
 * Connects to the server, and opens the directory until the scope closes.
 *
 * Fails with InvalidArgument for an invalid option. Fails with Unavailable if the server cannot be reached, if it refuses the
 * user, if its key is not known, or if the directory does not exist.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: SftpOptions): Effect.Effect<Backend, BackendError | InvalidArgument, Scope.Scope> =>
  // Load the SSH modules only in programs that use SFTP.
  Effect.flatMap(
    Effect.promise(() => import("./sftp/open.ts")),
    ({ open }) => open(options)
  )

/**
 * Creates a filesystem on a directory of an SSH server, until the layer's scope closes. Fails like `make`.
 *
 * @example
 * ```ts
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("july.md"))
 * const server = { host: "files.example.org", username: "reports", root: "/srv/reports" }
 * yield* Effect.provide(
 *   read,
 *   Sftp.layer({ ...server, agent: "/run/user/1000/ssh-agent", hostKeys: { knownHosts: "/home/me/.ssh/known_hosts" } })
 * )
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: SftpOptions): Layer.Layer<Filesystem.Filesystem, BackendError | InvalidArgument> =>
  Filesystem.layer(make(options))
