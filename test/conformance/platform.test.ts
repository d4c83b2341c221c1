import { laws, suite } from "../../src/testing/index.ts"
import { programs, thereAndBack } from "./filesystems.ts"

/** A confined FileSystem allows no link to the outside, so this law cannot be set up. */
const confined = laws.filter(({ name }) => name !== "copy of a tree keeps links that lead out of the root")

suite("fromFileSystem over toFileSystem over InMemory", thereAndBack, { programs, laws: confined, links: "downwards" })
