import * as Effect from "effect/Effect"
import { nameFault } from "../../backends/internal/windows/names.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { kinds } from "../entries/kinds.ts"
import { type Efferent, isMutation } from "../FileSystemEntry.ts"
import * as Changing from "./changing.ts"
import * as Composing from "./composing.ts"
import * as Looking from "./looking.ts"
import type { Answering, Serving, Work } from "./model.ts"
import { recover } from "./recovery.ts"
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

const execute = (self: Serving, work: Work): Answering => {
  const { intent } = work
  switch (intent._tag) {
    case "FileRead":
      return Looking.read(self, work, intent)
    case "FileStat":
      return Looking.stat(self, work, intent)
    case "FileList":
      return Looking.list(self, work, intent)
    case "FileWrite":
    case "FileWriteChunk":
      return Changing.write(self, work, intent)
    case "FileDelete":
      return Changing.remove(self, work, intent)
    case "FileMakeDirectory":
      return Changing.makeDirectory(self, work, intent)
    case "FileMove":
      return Changing.move(self, work, intent)
    case "FileEdit":
      return Changing.edit(self, work, intent)
    case "FileMakeLink":
      return Changing.makeLink(self, work, intent)
    case "FileSetAttributes":
      return Changing.setAttributes(self, work, intent)
  }
}

export const perform = (self: Serving, work: Work): Answering =>
  work.left !== undefined && isMutation(work.intent)
    ? recover(
        self,
        work,
        Effect.suspend(() => Composing.compose(self, work, execute(self, work)))
      )
    : Composing.compose(self, work, execute(self, work))
