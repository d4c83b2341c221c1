import type { Backend } from "../port/Backend.ts"
import type { Algebra } from "./Filesystem.ts"
import * as Caller from "./operations/call.ts"
import { changing } from "./operations/changing.ts"
import { looking } from "./operations/looking.ts"
import { reading } from "./operations/reading.ts"
import { searching } from "./operations/searching.ts"
import { writing } from "./operations/writing.ts"

export const derive = (port: Backend): Algebra => {
  const self = Caller.make(port)
  return {
    root: port.info.root,
    readOnly: !self.may("write") && !self.may("delete"),
    name: port.info.name,
    port,
    ...looking(self),
    ...searching(self),
    ...reading(self),
    ...writing(self),
    ...changing(self)
  }
}
