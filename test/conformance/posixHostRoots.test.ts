import { policySuite, suite } from "../../src/testing/index.ts"
import { checkedHost, linkedRoot, posixHostWith, programs } from "./filesystems.ts"

suite("PosixHost without /proc", checkedHost, { programs })
suite("PosixHost at a root that is a link", linkedRoot, { programs: 0 })
policySuite("PosixHost", posixHostWith)
