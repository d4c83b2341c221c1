import * as Effect from "effect/Effect"
import { nameFault } from "../../backends/windows/names.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Intents, kinds } from "../entries/kinds.ts"
import type { Efferent, FileStarted } from "../FileSystemEntry.ts"
import * as Changing from "./changing.ts"
import * as Composing from "./composing.ts"
import * as Looking from "./looking.ts"
import type { AnswerEffect, LeafContext, Work } from "./model.ts"
import * as Recovery from "./recovery.ts"
import type { Settings } from "./settings.ts"

const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

export const settingsFault = (settings: Settings, intent: Efferent): Fault | undefined => {
  const requirements: ReadonlyArray<string> = kinds[intent._tag].needs
  if (requirements.includes("extended") && !settings.extended) {
    return { _tag: "IoError", detail: `this leaf takes no ${intent._tag}; give it \`extended: true\`` }
  }
  return (requirements.includes("write") && !settings.allowWrite) || (requirements.includes("remove") && !settings.allowDelete)
    ? readOnly
    : undefined
}

/**
 * Returns the fault of a path that cannot exist here. Too long paths are rejected before they are locked, since locking them would take
 * long too.
 */
export const pathFault = (settings: Settings, path: FsPath.FsPath): Fault | undefined => {
  const tooLong = FsPath.checkLimits(path, settings.limits)
  if (tooLong !== undefined || !settings.windowsNames) return tooLong
  for (const name of FsPath.segments(path)) {
    const fault = nameFault(name)
    if (fault !== undefined) return fault
  }
  return undefined
}

interface Row<E> {
  readonly execute: (self: LeafContext, work: Work, intent: E) => AnswerEffect
  /** Decides whether an earlier leaf has made the change; absent if the request changes nothing. */
  readonly judge?: (self: LeafContext, work: Work, intent: E, started: FileStarted) => Recovery.Finding
}

const rows: { readonly [K in keyof Intents]: Row<Intents[K]> } = {
  FileRead: { execute: Looking.read },
  FileStat: { execute: Looking.stat },
  FileList: { execute: Looking.list },
  FileWrite: { execute: Changing.write, judge: Recovery.judgeWrite },
  FileWriteChunk: { execute: Changing.write, judge: Recovery.judgeWrite },
  FileDelete: { execute: Changing.remove, judge: Recovery.judgeRemove },
  FileMakeDirectory: { execute: Changing.makeDirectory, judge: Recovery.judgeMakeDirectory },
  FileMove: { execute: Changing.move, judge: Recovery.judgeMove },
  FileEdit: { execute: Changing.edit, judge: Recovery.judgeEdit },
  FileMakeLink: { execute: Changing.makeLink, judge: Recovery.judgeMakeLink },
  FileSetAttributes: { execute: Changing.setAttributes, judge: Recovery.judgeSetAttributes }
}

export const performRequest = (self: LeafContext, work: Work): AnswerEffect => {
  const { intent, earlierWork: left } = work
  const { execute, judge } = rows[intent._tag] as Row<Efferent>
  const executed = Effect.suspend(() => Composing.answerWithMounts(self, work, execute(self, work, intent)))
  return left === undefined || judge === undefined
    ? executed
    : Recovery.recover(self, work, left, (started) => judge(self, work, intent, started), executed)
}
