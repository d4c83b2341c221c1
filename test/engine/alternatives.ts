/** Expands the alternatives of a glob whose braces contain `**`, in the simplest way: one pair of braces after another, as text. */

/** Returns the positions of characters that are not escaped, quoted or in brackets. */
const signs = (text: string): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === '"') {
      while (++at < text.length && text[at] !== '"') if (text[at] === "\\") at++
    } else if (text[at] === "[") {
      at += /[!^]/.test(text[at + 1] ?? "") ? 2 : 1
      if (text[at] === "]") at++
      for (; at < text.length && text[at] !== "]"; at++) {
        if (text[at] === "\\") at++
        else if (text.startsWith("[:", at)) at = text.indexOf(":]", at) + 1
      }
    } else found.push(at)
  }
  return found
}

export const alternatives = (text: string): ReadonlyArray<string> => {
  const places = signs(text)
  const within = new Set(places)
  for (const from of places) {
    // A group ends at its closing character. Its alternatives are separated at its own nesting level.
    const extglob = text[from] === "(" && within.has(from - 1) ? text[from - 1]! : ""
    if (text[from] !== "{" && (text[from] !== "(" || /[!+*]/.test(extglob) || text[from + 1] === "?")) continue
    const [open, close, between] = text[from] === "{" ? ["{", "}", ","] : ["(", ")", "|"]
    const cuts = [from]
    let other = 0
    let depth = 0
    let end = -1
    for (const at of places.filter((at) => at > from)) {
      if (text[at] === close && depth === 0 && other === 0) {
        end = at
        break
      }
      if (text[at] === open) depth++
      else if (text[at] === close && depth > 0) depth--
      else if (depth === 0 && text[at] === (open === "{" ? "(" : "{")) other++
      else if (depth === 0 && other > 0 && text[at] === (open === "{" ? ")" : "}")) other--
      else if (text[at] === between && depth === 0 && other === 0) cuts.push(at)
    }
    if (end === -1 || (open === "{" && cuts.length === 1)) continue
    const holds = places.some((at) => at > from && at < end && text[at] === "*" && within.has(at + 1) && text[at + 1] === "*")
    if (!holds) continue
    const head = text.slice(0, /[@?]/.test(extglob) ? from - 1 : from)
    const options = cuts.map((cut, index) => text.slice(cut + 1, cuts[index + 1] ?? end))
    if (extglob === "?") options.push("")
    return options.flatMap((option) => alternatives(head + option + text.slice(end + 1)))
  }
  return [text]
}
