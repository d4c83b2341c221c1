/** Programs from npm that only tests start. They have a package.json of their own, so that installing this project is quick. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const programs = fileURLToPath(new URL("node_modules", import.meta.url))

/**
 * Tests whether the package is installed. If not, prints how to install it, or throws if FS_ALGEBRA_NO_SKIP is 1. `subject`
 * names the skipped tests.
 */
export const isInstalled = (name: string, subject = `the library in ${name}`): boolean => {
  if (existsSync(join(programs, name))) return true
  const lacking = `skipped: ${subject}; npm ci --ignore-scripts --prefix test/runtimes`
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(lacking)
  console.log(lacking)
  return false
}
