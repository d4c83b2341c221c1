import { policySuite, suite } from "../../../src/testing/index.ts"
import { laws } from "../../../src/testing/Laws.ts"
import { programs } from "../../conformance/filesystems.ts"
import { simulated, simulatedWith } from "./windowsHost.ts"

suite("WindowsHost", simulated(), { programs })
suite(
  "WindowsHost without long paths, on a disk with the rules of older systems",
  simulated({ useLongPaths: false }, { deletes: "pending", hardlinks: false }),
  {
    programs: 0,
    laws: laws.filter(({ name }) => name !== "a name of 255 characters can be used")
  }
)
policySuite("WindowsHost", ({ symlinks, ...options }, files) =>
  symlinks === undefined ? simulatedWith(options, files) : undefined
)
