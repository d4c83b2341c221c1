/** The names that a walk leaves out, with the reason. */
import type * as FsPath from "../model/FsPath.ts"
import type { Why } from "./options.ts"

/** Entries that are passed over, and why; `key` is their place in the order of whole paths. */
export class Passed {
  readonly path: FsPath.FsPath
  readonly why: Why
  readonly key: string

  constructor(path: FsPath.FsPath, why: Why, key: string) {
    this.path = path
    this.why = why
    this.key = key
  }
}
