/** Filesystems with a planted defect, for the test of the scoreboard. */
import { createFsFromVolume, Volume } from "memfs"
import { type NodeShape } from "./nodeShape.ts"
import { overShape, type Subject } from "./subjects.ts"

const withDefect = (name: string, defect: (fs: NodeShape["promises"]) => Partial<NodeShape["promises"]>): Subject => ({
  name,
  short: name,
  version: "0",
  how: "`memfs` with a defect",
  layer: overShape(async () => {
    const { promises, watch } = createFsFromVolume(new Volume()) as unknown as NodeShape & Required<Pick<NodeShape, "watch">>
    return { promises: { ...promises, ...defect(promises) }, watch }
  })
})

export const subjects: ReadonlyArray<Subject> = [
  withDefect("sound", () => ({})),
  withDefect("short", (fs) => ({ writeFile: (path, data, options) => fs.writeFile(path, data.subarray(1), options) })),
  withDefect("blocking", () => ({
    writeFile: () => {
      for (;;);
    }
  })),
  withDefect("endless", () => ({ writeFile: () => new Promise(() => {}) })),
  withDefect("ending", () => ({ writeFile: () => process.exit(0) })),
  withDefect("straying", (fs) => ({
    writeFile: (path, data, options) => {
      setImmediate(() => {
        throw new Error("nobody handles this")
      })
      return fs.writeFile(path, data, options)
    }
  }))
]
