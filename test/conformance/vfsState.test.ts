import { policySuite, suite } from "../../src/testing/index.ts"
import { vfsState, vfsStateWith } from "../workspace/vfsStates.ts"
import { programs } from "./filesystems.ts"

suite("VfsState", vfsState, { programs })
policySuite("VfsState", ({ symlinks, ...options }, files) =>
  symlinks === undefined ? vfsStateWith({ policy: "standard", ...options }, files) : undefined
)
