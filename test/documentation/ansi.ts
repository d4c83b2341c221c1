/** Converts terminal output to HTML: the few escape sequences of our own output, and everything else as text. */

const classes: Readonly<Record<string, string>> = {
  "1": "bold",
  "2": "dim",
  "31": "red",
  "32": "green",
  "33": "yellow",
  "34": "blue",
  "35": "magenta",
  "36": "cyan"
}

/** The classes that each code ends. */
const endings: Readonly<Record<string, ReadonlyArray<string>>> = {
  "0": Object.values(classes),
  "22": ["bold", "dim"],
  "39": ["red", "green", "yellow", "blue", "magenta", "cyan"]
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Converts the text, and throws on an unknown escape sequence. */
export const toHtml = (ansi: string): string => {
  const on = new Set<string>()
  return ansi
    .split(/\u001b\[([0-9;]*)m/)
    .map((part, i) => {
      if (i % 2 === 0) {
        if (part.includes("\u001b")) throw new Error(`an escape sequence of another kind: ${JSON.stringify(part.slice(0, 40))}`)
        return part === "" || on.size === 0 ? escaped(part) : `<span class="${[...on].join(" ")}">${escaped(part)}</span>`
      }
      for (const code of part === "" ? ["0"] : part.split(";")) {
        const begins = classes[code]
        const ends = endings[code]
        if (begins !== undefined) on.add(begins)
        else if (ends !== undefined) for (const name of ends) on.delete(name)
        else throw new Error(`an unknown code: ${code}`)
      }
      return ""
    })
    .join("")
}
