import { policySuite, suite } from "../../src/testing/index.ts"
import { inSession, programs } from "./filesystems.ts"
import { nested } from "./nested.ts"

suite("InMemory in a session", inSession(), { programs })
policySuite("InMemory in a session", ({ symlinks, ...options }, files) =>
  symlinks === undefined ? inSession({ ...options, tree: nested(files) }) : undefined
)
