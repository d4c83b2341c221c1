/** One case, alone in its process; its report is the last line. */
import type { Case } from "./harness.ts"
import { measure } from "./harness.ts"

const [module, index] = process.argv.slice(2)
const { cases } = (await import(`./cases/${module}.ts`)) as { readonly cases: ReadonlyArray<Case> }
console.log(JSON.stringify(await measure(cases[Number(index)]!)))
