import { laws, suite } from "../../src/testing/index.ts"
import { inMemory, posixHost } from "../conformance/filesystems.ts"
import { isSoak, runs } from "../runs.ts"
import { anyPort, remoteAt, remoteInProcess, unixAddress } from "./transports.ts"

const programs = runs(100)

suite("a remote filesystem in memory", remoteInProcess(inMemory), { programs })
suite("a remote directory, over a Unix socket", remoteAt(posixHost, unixAddress), { programs })

/**
 * The transports differ only in how they carry messages. So a tenth of the laws runs over the other transports. The soak runs
 * all laws.
 */
const sampled = isSoak ? laws : laws.filter((_, index) => index % 10 === 0)

for (const scheme of ["http", "ws"] as const) {
  suite(
    `a remote filesystem in memory, over ${scheme}`,
    remoteAt(inMemory, anyPort, (address) => `${scheme}://${address}`),
    {
      programs: runs(20),
      laws: sampled
    }
  )
}
