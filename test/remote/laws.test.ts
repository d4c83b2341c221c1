import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Worker } from "node:worker_threads"
import * as Remote from "../../src/remote/Remote.ts"
import { laws, suite } from "../../src/testing/index.ts"
import { Bench } from "../../src/testing/Law.ts"
import { bundled, commandLine } from "../bundled.ts"
import { directory, inMemory, onDisk, posixHost } from "../conformance/filesystems.ts"
import { isSoak, randomPrograms, runs } from "../runs.ts"
import { anyPort, remoteAt, remoteInProcess, unixAddress } from "./transports.ts"

/** Returns a share of the laws, because the transports differ only in how they carry messages. The soak runs all laws. */
const oneIn = (share: number) => laws.filter((_, index) => isSoak || index % share === 0)

suite("a remote filesystem in memory", remoteInProcess(inMemory), randomPrograms(runs(100), 1000))
suite("a remote directory, over a Unix socket", remoteAt(posixHost, unixAddress), randomPrograms(runs(100), 1000))

for (const scheme of ["http", "ws"] as const) {
  suite(
    `a remote filesystem in memory, over ${scheme}`,
    remoteAt(inMemory, anyPort, (address) => `${scheme}://${address}`),
    { ...randomPrograms(runs(20), 1000), laws: oneIn(10) }
  )
}

// Each law and each program starts a thread or a process.
const worker = bundled(new URL("./workerServer.ts", import.meta.url))
suite(
  "a remote filesystem in memory, in a worker thread",
  Remote.layerWorker(() => new Worker(worker)),
  { ...randomPrograms(2, 1000), laws: oneIn(60) }
)

const program = commandLine()
suite(
  "a remote directory, over the standard streams of a program",
  Layer.unwrap(
    Effect.map(directory, (root) =>
      Layer.merge(
        Remote.layerCommand([process.execPath, program, "serve", "--listen", "stdio", "--root", root]),
        Layer.succeed(Bench, onDisk(root))
      )
    )
  ),
  { ...randomPrograms(2, 1000), laws: oneIn(60) }
)
