/** Directories that hold far more than one project: nobody means to capture them, or to hand them to an agent, by leaving something out. */
import { dirname, Fs, homedir, userInfo } from "./node.ts"
import { isInside } from "./openRoots.ts"

const real = (path: string): string | undefined => {
  try {
    return Fs.realpathSync.native(path)
  } catch {
    return undefined
  }
}

/** A user that the system does not know has no home. */
const homeOf = (find: () => string): ReadonlyArray<string> => {
  try {
    const home = find()
    const resolved = home === "" ? undefined : real(home)
    return resolved === undefined ? [] : [resolved]
  } catch {
    return []
  }
}

/** The home of the environment and that of the user, which a program that starts others may have set apart. */
const homes = (): ReadonlyArray<string> => [...homeOf(homedir), ...homeOf(() => userInfo().homedir)]

/** Names the kind of a resolved directory that is too wide for one project: `undefined` for any other. */
export const widthOf = (root: string): string | undefined => {
  if (dirname(root) === root) return "the whole machine"
  const places = homes()
  if (places.includes(root)) return "a home directory"
  return places.some((home) => isInside(root, home)) ? "a directory that holds a home directory" : undefined
}
