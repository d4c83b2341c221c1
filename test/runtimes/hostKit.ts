/** The program for Bun and Deno: the laws in memory and on a host directory, archives, snapshots and tools. */
import { hostConformance, type Names } from "./hosts.ts"
import { conformance, features } from "./kit.ts"

const [scratch, names] = process.argv.slice(2) as [scratch: string, names: Names]

console.log(
  JSON.stringify({
    memory: await conformance({ programs: 20, hasThreads: false }),
    host: await hostConformance(scratch, names),
    features: await features()
  })
)
process.exit(0)
