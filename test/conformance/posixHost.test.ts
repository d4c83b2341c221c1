import { suite } from "../../src/testing/index.ts"
import { posixHost, programs } from "./filesystems.ts"

suite("PosixHost", posixHost, { programs })
