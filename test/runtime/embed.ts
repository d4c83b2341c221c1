/** Writes the texts of the programs of workers and search processes into a built package. */
import { writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { brotliCompressSync } from "node:zlib"
import { rolldown } from "rolldown"

const embedWorkerProgram = async (directory: string, name: string): Promise<void> => {
  const file = join(directory, name)
  const { program } = (await import(pathToFileURL(file).href)) as { readonly program: () => string }
  writeFileSync(file, `export const program = () => ${JSON.stringify(program())};\n`)
}

/** Reads the program as a frame from standard input, like every later message. */
const loader = `const fs = require("node:fs");
const read = (size) => {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    const count = fs.readSync(0, bytes, at, size - at, null);
    if (count === 0) process.exit(0);
    at += count;
  }
  return bytes;
};
const text = require("node:zlib").brotliDecompressSync(read(read(4).readUInt32LE())).toString();
require("node:vm").runInThisContext(text, { filename: "fs-algebra-search.js" })(require);`

const embedSearchProgram = async (directory: string): Promise<void> => {
  const built = await rolldown({ input: join(directory, "engine/searchProcess.js"), platform: "node", logLevel: "warn" })
  const { output } = await built.generate({ format: "cjs", minify: true })
  await built.close()
  const [chunk, ...others] = output
  if (others.length > 0) throw new Error("the search program has several chunks")
  const text = `(function (require) {${chunk.code}\n})`
  const program = { args: ["-e", loader], text: brotliCompressSync(text).toString("base64") }
  writeFileSync(
    join(directory, "runtime/searchProgram.js"),
    `export const searchProgram = () => (${JSON.stringify(program)});\n`
  )
}

/** Embeds the programs. `directory` is the output directory of the compiler. */
export const embed = async (directory: string): Promise<void> => {
  await embedWorkerProgram(resolve(directory), "runtime/program.js")
  await embedWorkerProgram(resolve(directory), "history/threads/program.js")
  await embedSearchProgram(resolve(directory))
}

const [, , directory] = process.argv
if (import.meta.main && directory !== undefined) await embed(directory)
