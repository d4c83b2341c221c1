import { policySuite, suite } from "../../src/testing/index.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { nested } from "./nested.ts"
import { caseless, inMemory, programs } from "./filesystems.ts"

suite("InMemory", inMemory, { programs })
suite("InMemory that ignores case", caseless, { programs })
policySuite("InMemory", ({ symlinks, ...options }, files) =>
  symlinks === undefined ? InMemory.layer({ ...options, tree: nested(files) }) : undefined
)
