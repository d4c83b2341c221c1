import type { Backend } from "../port/Backend.ts"
import type { Algebra } from "./Filesystem.ts"
import * as Caller from "./operations/call.ts"
import { nameOperations } from "./operations/changing.ts"
import { entryOperations } from "./operations/looking.ts"
import { contentOperations } from "./operations/reading.ts"
import { searchOperations } from "./operations/searching.ts"
import { writeOperations } from "./operations/writing.ts"

export const deriveAlgebra = (port: Backend): Algebra => {
  const self = Caller.make(port)
  return {
    root: port.info.root,
    readOnly: !self.isPermitted("write") && !self.isPermitted("delete"),
    name: port.info.name,
    port,
    ...entryOperations(self),
    ...searchOperations(self),
    ...contentOperations(self),
    ...writeOperations(self),
    ...nameOperations(self)
  }
}
