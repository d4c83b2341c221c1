/** Writes the texts of the threads' programs into a built package. */
import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"

const programs = ["runtime/program.js", "history/threads/program.js"]

/** Embeds the programs. `directory` is the output directory of the compiler. */
export const embed = async (directory: string): Promise<void> => {
  for (const name of programs) {
    const file = resolve(directory, name)
    const { program } = (await import(pathToFileURL(file).href)) as { readonly program: () => string }
    writeFileSync(file, `export const program = () => ${JSON.stringify(program())};\n`)
  }
}

const [, , directory] = process.argv
if (import.meta.main && directory !== undefined) await embed(directory)
