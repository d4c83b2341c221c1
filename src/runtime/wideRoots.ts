/**
 * Recognizes directories that are too wide for one project. Capturing such a directory, or giving it to an agent, is
 * almost certainly a mistake.
 */
import { dirname, Fs, homedir, userInfo } from "./node.ts"
import { isInside } from "./openRoots.ts"

const tryRealPath = (path: string): string | undefined => {
  try {
    return Fs.realpathSync.native(path)
  } catch {
    return undefined
  }
}

const homeOf = (find: () => string): ReadonlyArray<string> => {
  try {
    const home = find()
    const resolved = home === "" ? undefined : tryRealPath(home)
    return resolved === undefined ? [] : [resolved]
  } catch {
    return []
  }
}

const homes = (): ReadonlyArray<string> => [...homeOf(homedir), ...homeOf(() => userInfo().homedir)]

export const describeWideRoot = (root: string): string | undefined => {
  if (dirname(root) === root) return "the whole machine"
  const homeDirectories = homes()
  if (homeDirectories.includes(root)) return "a home directory"
  return homeDirectories.some((home) => isInside(root, home)) ? "a directory that contains a home directory" : undefined
}
