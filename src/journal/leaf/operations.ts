import * as Effect from "effect/Effect"
import { nameFault } from "../../backends/internal/windows/names.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Intents, kinds } from "../entries/kinds.ts"
import type { Efferent, FileStarted } from "../FileSystemEntry.ts"
import * as Changing from "./changing.ts"
import * as Composing from "./composing.ts"
import * as Looking from "./looking.ts"
import type { Answering, Serving, Work } from "./model.ts"
import * as Recovery from "./recovery.ts"
import type { Settings } from "./settings.ts"

const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

export const refusal = (settings: Settings, intent: Efferent): Fault | undefined => {
  const needs: ReadonlyArray<string> = kinds[intent._tag].needs
  if (needs.includes("extended") && !settings.extended) {
    return { _tag: "IoError", detail: `this leaf takes no ${intent._tag}; give it \`extended: true\`` }
  }
  return (needs.includes("write") && !settings.allowWrite) || (needs.includes("remove") && !settings.allowDelete)
    ? readOnly
    : undefined
}

/**
 * Returns the fault of a path that cannot exist here. Too long paths are rejected before they are locked, since locking them would take
 * long too.
 */
export const refusedPath = (settings: Settings, path: FsPath.FsPath): Fault | undefined => {
  const tooLong = FsPath.checkLimits(path, settings.limits)
  if (tooLong !== undefined || !settings.windowsNames) return tooLong
  for (const name of FsPath.segments(path)) {
    const fault = nameFault(name)
    if (fault !== undefined) return fault
  }
  return undefined
}

interface Row<E> {
  readonly execute: (self: Serving, work: Work, intent: E) => Answering
  /** Decides whether an earlier leaf has made the change; absent if the request changes nothing. */
  readonly judge?: (self: Serving, work: Work, intent: E, started: FileStarted) => Recovery.Finding
}

const rows: { readonly [K in keyof Intents]: Row<Intents[K]> } = {
  FileRead: { execute: Looking.read },
  FileStat: { execute: Looking.stat },
  FileList: { execute: Looking.list },
  FileWrite: { execute: Changing.write, judge: Recovery.writing },
  FileWriteChunk: { execute: Changing.write, judge: Recovery.writing },
  FileDelete: { execute: Changing.remove, judge: Recovery.removing },
  FileMakeDirectory: { execute: Changing.makeDirectory, judge: Recovery.making },
  FileMove: { execute: Changing.move, judge: Recovery.moving },
  FileEdit: { execute: Changing.edit, judge: Recovery.editing },
  FileMakeLink: { execute: Changing.makeLink, judge: Recovery.linking },
  FileSetAttributes: { execute: Changing.setAttributes, judge: Recovery.setting }
}

export const perform = (self: Serving, work: Work): Answering => {
  const { intent, left } = work
  const { execute, judge } = rows[intent._tag] as Row<Efferent>
  const executed = Effect.suspend(() => Composing.compose(self, work, execute(self, work, intent)))
  return left === undefined || judge === undefined
    ? executed
    : Recovery.recover(self, work, left, (started) => judge(self, work, intent, started), executed)
}
