/** An entry and all that it imports as one file, for a Node that has neither the sources nor effect beside it. */
import { fileURLToPath } from "node:url"
import { build } from "rolldown"

/** Answers when the file is written. A module that cannot be found fails it: it would be missing over there. */
export const bundle = async (entry: string, file: string): Promise<void> => {
  await build({
    input: fileURLToPath(new URL(entry, import.meta.url)),
    platform: "node",
    external: /^node:/,
    logLevel: "warn",
    onLog: (level, log) => {
      if (level === "warn") throw new Error(log.message)
    },
    output: { file, format: "esm", codeSplitting: false }
  })
}
