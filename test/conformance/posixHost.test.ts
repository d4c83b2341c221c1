import { policySuite, suite } from "../../src/testing/index.ts"
import { linkedRoot, posixHost, posixHostWith, programs } from "./filesystems.ts"

suite("PosixHost", posixHost, { programs })
suite("PosixHost at a root that is a link", linkedRoot, { programs: 0 })
policySuite("PosixHost", posixHostWith)
