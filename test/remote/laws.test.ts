import { suite } from "../../src/testing/index.ts"
import { inMemory, posixHost } from "../conformance/filesystems.ts"
import { runs } from "../runs.ts"
import { remoteAt, remoteInProcess, unixAddress } from "./transports.ts"

const programs = runs(50)

suite("a remote filesystem in memory", remoteInProcess(inMemory), { programs })
suite("a remote directory, over a Unix socket", remoteAt(posixHost, unixAddress), { programs })
