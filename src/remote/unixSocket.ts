/**
 * Creates the file of a Unix socket, to which only its owner may connect. Replaces the file of a dead server, but not the file
 * of a live server.
 */
import type * as NodeNet from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { codeOf } from "../model/realms.ts"
import { builtin, dirname, Fs, join, platform } from "../runtime/node.ts"

/** A failure to create the file of a socket, with the code of the system. */
export class SocketFileError extends Error {
  readonly code: string
  constructor(code: string, detail: string) {
    super(detail)
    this.code = code
  }
}

/** Tests whether a server accepts connections on a socket. */
const isAlive = (path: string): Effect.Effect<boolean, SocketFileError> =>
  Effect.callback((resume) => {
    const socket = builtin<typeof NodeNet>("node:net").connect({ path })
    const end = (answer: Effect.Effect<boolean, SocketFileError>): void => {
      socket.destroy()
      resume(answer)
    }
    socket.once("connect", () => end(Effect.succeed(true)))
    socket.once("error", (error: NodeJS.ErrnoException) => {
      const code = error.code ?? "EIO"
      if (code === "ECONNREFUSED" || code === "ENOENT") return end(Effect.succeed(false))
      // A server whose queue is full is alive.
      if (code === "EAGAIN") return end(Effect.succeed(true))
      end(Effect.fail(new SocketFileError(code, `the existing socket cannot be tested (${code})`)))
    })
    return Effect.sync(() => socket.destroy())
  })

const attempt = <A>(run: () => A): Effect.Effect<A, SocketFileError> =>
  Effect.try({
    try: run,
    catch: (error) => {
      const code = codeOf(error) ?? "EIO"
      return new SocketFileError(code, code)
    }
  })

const identityOf = (stats: Fs.BigIntStats | undefined): string | undefined => stats && `${stats.dev}:${stats.ino}`

const look = (path: string): Fs.BigIntStats | undefined => Fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })

/**
 * Removes the socket of a dead server. Moves the file aside first. If the moved file is the new socket of another server, gives
 * it its name back.
 */
const removeStale = (path: string, identity: string, aside: string): void => {
  try {
    Fs.renameSync(path, aside)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return
    throw error
  }
  try {
    if (identityOf(look(aside)) !== identity) Fs.linkSync(aside, path)
  } finally {
    Fs.unlinkSync(aside)
  }
}

/** The maximum number of attempts. Other servers may start on the same path at the same time. */
const maxAttempts = 10

/** Gives the socket at `from` the name `path`, unless a live server or another file has that name. */
const publish = (from: string, path: string): Effect.Effect<void, SocketFileError> =>
  Effect.gen(function* () {
    for (let attempts = 0; attempts < maxAttempts; attempts++) {
      const code = yield* attempt(() => {
        try {
          Fs.linkSync(from, path)
          return undefined
        } catch (error) {
          if (codeOf(error) === "EEXIST") return "EEXIST"
          throw error
        }
      })
      if (code === undefined) return
      const found = yield* attempt(() => look(path))
      if (found === undefined) continue
      if (!found.isSocket()) {
        return yield* Effect.fail(new SocketFileError("EEXIST", "a file that is not a socket has this name"))
      }
      if (yield* isAlive(path)) {
        return yield* Effect.fail(new SocketFileError("EADDRINUSE", "another server listens on this socket"))
      }
      yield* attempt(() => removeStale(path, identityOf(found)!, `${from}.old`))
    }
    return yield* Effect.fail(new SocketFileError("EADDRINUSE", "other servers start on this socket at the same time"))
  })

/** The maximum number of bytes in the address of a Unix socket: 107 on Linux, 103 on other systems. */
const maxAddressBytes = platform === "linux" ? 107 : 103

/** Returns the error for a path that is too long for a socket. Node would truncate the path. */
const tooLong = (path: string): SocketFileError | undefined => {
  const bytes = Buffer.byteLength(path)
  return bytes <= maxAddressBytes
    ? undefined
    : new SocketFileError(
        "ENAMETOOLONG",
        `the path has ${bytes} bytes, and the address of a socket at most ${maxAddressBytes}; choose a shorter path, such as one in $XDG_RUNTIME_DIR`
      )
}

/** The file name of a socket before it is published. */
const boundName = "s"

/**
 * Runs `listen` with a path in a new private directory beside `path`, and then publishes the socket at `path`. So no
 * other user can connect before the socket has its mode. The scope removes the file, unless another server has replaced it.
 */
export const listenAt = <A, E, R>(
  path: string,
  listen: (path: string) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | SocketFileError, R | Scope.Scope> =>
  platform === "win32"
    ? listen(path)
    : tooLong(path) !== undefined
      ? Effect.fail(tooLong(path)!)
      : Effect.acquireUseRelease(
          attempt(() => Fs.mkdtempSync(`${dirname(path)}/.`)),
          (directory) =>
            Effect.gen(function* () {
              const bound = join(directory, boundName)
              const listening = yield* listen(bound)
              const identity = yield* attempt(() => {
                Fs.chmodSync(bound, 0o600)
                return identityOf(look(bound))
              })
              yield* Effect.acquireRelease(publish(bound, path), () =>
                Effect.sync(() => {
                  try {
                    if (identityOf(look(path)) === identity) Fs.unlinkSync(path)
                  } catch {}
                })
              )
              return listening
            }),
          (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
        )
