/**
 * Where Wine is not Windows and it matters here, each with what follows from it and a look that shows it with nothing but Node's own
 * calls. The looks are part of the run: when Wine has learnt better, they fail, and what followed can go.
 */
import * as Fs from "node:fs"

export interface Shortcoming {
  readonly name: string
  readonly follows: string
  /** Whether it is as the name says, seen in an empty directory. */
  readonly isSo: (directory: string) => boolean
}

const succeeds = (action: () => void): boolean => {
  try {
    action()
    return true
  } catch {
    return false
  }
}

export const noLinks: Shortcoming = {
  name: "symlink answers success and makes nothing, and there are no junctions",
  follows: "the backend runs here without its links, and the laws of links are not applicable",
  isSo: (directory) => {
    const link = `${directory}\\link`
    const junction = `${directory}\\junction`
    return (
      succeeds(() => Fs.symlinkSync("target", link)) &&
      !succeeds(() => Fs.lstatSync(link)) &&
      !succeeds(() => Fs.symlinkSync(directory, junction, "junction"))
    )
  }
}

export const shortcomings: ReadonlyArray<Shortcoming> = [
  noLinks,
  {
    name: "a colon is a character of a name, and there are no alternate streams",
    follows: "that nothing is made of such a name is seen here, not what Windows would make of it",
    isSo: (directory) => {
      Fs.writeFileSync(`${directory}\\a:b`, "x")
      return Fs.readdirSync(directory).includes("a:b")
    }
  },
  {
    name: "a rename to the same name in other case answers success and changes nothing",
    follows: "the backend must come to the new name by a third one here",
    isSo: (directory) => {
      Fs.writeFileSync(`${directory}\\a`, "x")
      Fs.renameSync(`${directory}\\a`, `${directory}\\A`)
      return Fs.readdirSync(directory).includes("a")
    }
  },
  {
    name: "realpath.native has no answer beyond 260 units",
    follows: "there the backend has only its own look at each component to go by",
    isSo: (directory) => {
      const long = `\\\\?\\${directory}\\${"d".repeat(150)}\\${"e".repeat(150)}`
      Fs.mkdirSync(long, { recursive: true })
      return !succeeds(() => Fs.realpathSync.native(long))
    }
  }
]
