import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { policySuite, suite } from "../../src/testing/index.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Session from "../../src/workspace/Session.ts"
import { programs } from "./filesystems.ts"
import { nested } from "./nested.ts"

const inSession = (options: InMemory.InMemoryOptions = {}) =>
  Layer.unwrap(Effect.map(Session.make(), (session) => InMemory.layerSession(session, options)))

suite("InMemory in a session", inSession(), { programs })
suite("InMemory in a session, ignoring case", inSession({ caseInsensitive: true }), { programs })
policySuite("InMemory in a session", ({ symlinks, ...options }, files) =>
  symlinks === undefined ? inSession({ ...options, tree: nested(files) }) : undefined
)
