import { suite } from "../../src/testing/index.ts"
import { combinators, programs, readOnlyView } from "./filesystems.ts"

for (const [name, layer] of combinators) suite(`${name} over InMemory`, layer, { programs })
suite("readOnly over InMemory", readOnlyView, { programs: 0 })
