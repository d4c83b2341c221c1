import { MockFilesystem, suite } from "../../src/testing/index.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { combinators, decorated, programs, readOnlyView } from "./filesystems.ts"

for (const [name, layer] of combinators) suite(`${name} over InMemory`, layer, { programs })
suite("readOnly over InMemory", readOnlyView, { programs: 0 })
suite("MockFilesystem without answers", MockFilesystem.layer(), { programs })
suite("faulty without a plan", decorated(faulty([])), { programs })
