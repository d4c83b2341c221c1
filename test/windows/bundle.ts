import { fileURLToPath } from "node:url"
import { build } from "rolldown"

/** Writes the bundle. Fails for a module that cannot be found, because the other Node would not have it. */
export const bundle = async (entry: string, file: string): Promise<void> => {
  await build({
    input: fileURLToPath(new URL(entry, import.meta.url)),
    platform: "node",
    // ssh2 may have native modules, and no program here connects to a server.
    external: [/^node:/, "ssh2"],
    logLevel: "warn",
    onLog: (level, log) => {
      if (level === "warn") throw new Error(log.message)
    },
    output: { file, format: "esm", codeSplitting: false }
  })
}
