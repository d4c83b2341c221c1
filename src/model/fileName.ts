const separatorPattern = /[/\\]/
const controlPattern = /\p{Cc}/u
const onlyDotsPattern = /^\.+$/

/** Returns the reason why a text cannot be a file name, or `undefined` if it can. The caller checks the length. */
export const whyInvalidFileName = (text: string): string | undefined => {
  if (typeof text !== "string") return "it is not a string"
  if (text === "") return "it is empty"
  if (separatorPattern.test(text)) return "it has a slash or a backslash, which separate names"
  if (controlPattern.test(text)) return "it has a control character"
  if (!text.isWellFormed()) return "it has a lone surrogate, which no file name can hold"
  return onlyDotsPattern.test(text) ? "it consists only of dots" : undefined
}
