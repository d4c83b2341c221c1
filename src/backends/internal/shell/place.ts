/** The root inside the container. Each request names its root, because one shell may serve several. */
import * as Effect from "effect/Effect"
import { isBytes } from "../../../model/bytes.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import { hostPath } from "../confined.ts"
import { faultOf, invalidName, pathTooLong } from "./faults.ts"
import type { Reply, Request, Session } from "./session.ts"

export interface ShellRoot {
  readonly directory: string | Uint8Array
  readonly sendRequest: (request: Request) => Effect.Effect<Reply, Fault>
}

const maxNameBytes = 255
/** Bytes of a path: one less than the system's limit, which includes the terminating byte. */
const maxPathBytes = 4095

export const nameOf = (path: FsPath): Uint8Array | Fault => {
  if (path === root) return Buffer.from(".")
  const name = Buffer.concat([Buffer.from("."), Buffer.from(hostPath("/", path))])
  if (name.includes(0)) return invalidName
  for (let from = 2, end = 0; end !== -1; from = end + 1) {
    end = name.indexOf("/", from)
    if ((end === -1 ? name.length : end) - from > maxNameBytes) return pathTooLong
  }
  return name.length > maxPathBytes ? pathTooLong : name
}

export const isFault = (value: Uint8Array | Fault): value is Fault => !isBytes(value)

const unexpectedAnswer: Fault = { _tag: "IoError", detail: "the container's shell answered what was not asked for" }

export const succeedOrUnexpected = <A>(value: A | undefined): Effect.Effect<A, Fault> =>
  value === undefined ? Effect.fail(unexpectedAnswer) : Effect.succeed(value)

export const make = (session: Session, directory: string): Effect.Effect<ShellRoot, Fault> =>
  Effect.gen(function* () {
    const reply = yield* session.request({ call: "root", arguments: [directory], repeats: true })
    if (reply.status !== 0) return yield* Effect.fail(faultOf(reply))
    const found = /^([^]+)\n(\d+:\d+)\n$/.exec(reply.output.toString("latin1"))
    const [, real, identity] = yield* succeedOrUnexpected(found === null ? undefined : [...found])
    const at = Buffer.from(real!, "latin1")
    return {
      directory: at,
      sendRequest: ({ arguments: args, call, ...rest }) =>
        session.request({ call: "inside", arguments: [at, identity!, call, ...args], ...rest })
    }
  })
