/**
 * Finds the program of the search processes.
 *
 * The build of the package replaces this module by one with the text of the program, so that bundles of applications
 * contain it.
 */
import { Fs } from "./node.ts"

/** The arguments with which Node runs the program, and the text that the program's loader reads first. */
export interface SearchProgram {
  readonly args: ReadonlyArray<string>
  readonly text: string | undefined
}

export const searchProgram = (): SearchProgram | undefined => {
  const { pathname } = new URL("../engine/searchProcess.ts", import.meta.url)
  const path = decodeURIComponent(pathname)
  return Fs.existsSync(path) ? { args: ["--no-warnings", path], text: undefined } : undefined
}
