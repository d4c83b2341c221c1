/** What can be called by a text: where that can stand in the name of a file on every disk, and leads nowhere. */

const separators = /[/\\]/
const controls = /\p{Cc}/u
const onlyDots = /^\.+$/

/** `undefined` where it can; how long it may be is for those who name files by it. */
export const whyNoName = (text: string): string | undefined => {
  if (typeof text !== "string") return "it is no text"
  if (text === "") return "it is empty"
  if (separators.test(text)) return "it has a slash or a backslash, which separate names"
  if (controls.test(text)) return "it has a control character"
  if (!text.isWellFormed()) return "it has a lone surrogate, which no file name can hold"
  return onlyDots.test(text) ? "it has nothing but dots" : undefined
}
