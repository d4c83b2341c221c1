/**
 * Finds the program of the search processes.
 *
 * The package build replaces this module by a module with the program's text, so that application bundles contain the
 * program.
 */
import { Fs } from "./node.ts"

export interface SearchProgram {
  /** The arguments with which Node runs the program. */
  readonly args: ReadonlyArray<string>
  /**
   * The program, compressed with brotli, in base64. Node reads the program from standard input. `undefined` if `args` name a
   * file.
   */
  readonly text: string | undefined
}

export const searchProgram = (): SearchProgram | undefined => {
  const here: unknown = import.meta.url
  // In bundled sources, this module may have no URL.
  if (typeof here !== "string" || !here.startsWith("file:")) return undefined
  const path = decodeURIComponent(new URL("../engine/searchProcess.ts", here).pathname)
  return Fs.existsSync(path) ? { args: ["--no-warnings", path], text: undefined } : undefined
}
