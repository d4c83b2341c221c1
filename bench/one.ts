/** Runs one case, alone in its process, and prints its report as the last line. */
import type { Case } from "./harness.ts"
import { measure } from "./harness.ts"

const [module, index] = process.argv.slice(2)
const { cases } = (await import(`./cases/${module}.ts`)) as { readonly cases: ReadonlyArray<Case> }
console.log(JSON.stringify(await measure(cases[Number(index)]!)))
