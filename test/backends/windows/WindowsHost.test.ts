import { policySuite, suite } from "../../../src/testing/index.ts"
import { programs } from "../../conformance/filesystems.ts"
import { simulated, simulatedWith } from "./windowsHost.ts"

suite("WindowsHost", simulated(), { programs })
policySuite("WindowsHost", ({ symlinks, ...options }, files) =>
  symlinks === undefined ? simulatedWith(options, files) : undefined
)
