/**
 * The defects of Wine that matter here, each with its consequence and a check that uses only Node's own calls. The checks run
 * with the tests: when one fails, Wine has improved, and the consequence can be removed.
 */
import * as Fs from "node:fs"

export interface Shortcoming {
  readonly name: string
  readonly follows: string
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
  name: "symlink succeeds without a link, and there are no junctions",
  follows: "the backend runs here without links, and the laws of links do not apply",
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
    name: "a colon is an ordinary character of a name, and there are no alternate streams",
    follows: "the tests show that no such name is created, but not how Windows would read it",
    isSo: (directory) => {
      Fs.writeFileSync(`${directory}\\a:b`, "x")
      return Fs.readdirSync(directory).includes("a:b")
    }
  },
  {
    name: "a rename that changes only the case succeeds and changes nothing",
    follows: "the backend must rename through a third name here",
    isSo: (directory) => {
      Fs.writeFileSync(`${directory}\\a`, "x")
      Fs.renameSync(`${directory}\\a`, `${directory}\\A`)
      return Fs.readdirSync(directory).includes("a")
    }
  },
  {
    name: "realpath.native fails beyond 260 units",
    follows: "the backend relies on its own check of each component there",
    isSo: (directory) => {
      const long = `\\\\?\\${directory}\\${"d".repeat(150)}\\${"e".repeat(150)}`
      Fs.mkdirSync(long, { recursive: true })
      return !succeeds(() => Fs.realpathSync.native(long))
    }
  }
]
