/** Swaps the directories `d` and `x/new` of a root until it is killed. */
import * as Fs from "node:fs"
import { join } from "node:path"

const { root } = JSON.parse(process.argv[2]!) as { readonly root: string }
const move = (from: string, to: string): void => Fs.renameSync(join(root, from), join(root, to))

process.stdout.write("ready\n")
for (let round = 0; ; round++) {
  // A new name each time, so that a read that misses the directory can see that it was moved and not removed.
  move("d", `e-${round}`)
  move("x/new", "d")
  move(`e-${round}`, "x/new")
}
