import { type Fault, type NotADirectory, promote, type StatError, type Unsupported } from "../../model/FsError.ts"
import type { Info } from "../../port/Backend.ts"
import { codeOf } from "../../model/systemError.ts"

export type RootError = StatError | NotADirectory | Unsupported

export const inStore: Fault = { _tag: "AccessDenied", why: "policy" }

export const tooWeakConfinement = (required: Info["confinement"] | undefined): Fault => ({
  _tag: "Unsupported",
  feature: `${required} confinement on this machine`
})

const rootErrorTags = new Set<Fault["_tag"]>([
  "AccessDenied",
  "InvalidPath",
  "IoError",
  "NotADirectory",
  "NotFound",
  "PathTooLong",
  "Timeout",
  "Unavailable",
  "Unsupported"
])

const other = ({ cause }: Fault): Fault => {
  const code = codeOf(cause)
  return { _tag: "IoError", ...(code === undefined ? {} : { code }), detail: "the root cannot be made or opened" }
}

export const promoteRoot = (fault: Fault, backend: string, path: string): RootError =>
  promote(rootErrorTags.has(fault._tag) ? fault : other(fault), backend, path) as RootError
