import type * as FsPath from "../model/FsPath.ts"
import type { Why } from "./options.ts"

/** An entry that a walk skipped. `key` is its position in the order of whole paths. */
export class SkippedEntry {
  readonly path: FsPath.FsPath
  readonly why: Why
  readonly key: string

  constructor(path: FsPath.FsPath, why: Why, key: string) {
    this.path = path
    this.why = why
    this.key = key
  }
}
