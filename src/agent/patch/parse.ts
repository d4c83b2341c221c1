import { type Refused, refused } from "../definition.ts"
import { sendAgainAdvice, type FilePatch } from "./model.ts"
import { parseUnified } from "./unified.ts"
import { beginMarker, parseV4a } from "./v4a.ts"

const formsAdvice = "A patch is either *** Begin Patch with its file sections and *** End Patch, or a unified diff."

/** The structural lines of a patch. If all of them end in a CR, the CRs belong to the patch and not to the files. */
const structuralLine = /^(?:--- |\+\+\+ |@@|diff --git |\*\*\* )/

const linesOf = (patch: string): ReadonlyArray<string> => {
  const lines = patch.split("\n")
  if (lines.at(-1) === "") lines.pop()
  if (!patch.includes("\r")) return lines
  const isOwn = lines.every((line) => line.endsWith("\r") || !structuralLine.test(line))
  return isOwn ? lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)) : lines
}

export const parse = (patch: string): ReadonlyArray<FilePatch> | Refused => {
  if (patch.trim() === "") return refused("The patch is empty.", formsAdvice)
  const lines = linesOf(patch)
  const first = lines.findIndex((line) => line.trim() === beginMarker)
  const isV4a = first !== -1 && lines.slice(0, first).every((line) => !/^(?:diff --git |--- |\+\+\+ |@@)/.test(line))
  const files = isV4a ? parseV4a(lines, first) : parseUnified(lines)
  if ("_tag" in files || files.length > 0) return files
  return refused("The patch names no file, so there is nothing to do.", `${formsAdvice} ${sendAgainAdvice}`)
}
