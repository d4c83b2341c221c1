/** Writes the text of the worker's program into a built package. */
import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"

/** Embeds the program. `directory` is the output directory of the compiler. */
export const embed = async (directory: string): Promise<void> => {
  const file = resolve(directory, "runtime/program.js")
  const { program } = (await import(pathToFileURL(file).href)) as { readonly program: () => string }
  writeFileSync(file, `export const program = () => ${JSON.stringify(program())};\n`)
}

const [, , directory] = process.argv
if (import.meta.main && directory !== undefined) await embed(directory)
