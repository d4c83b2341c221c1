import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** What takes a minute and more, and is begun with: at the end it would run alone. The runner itself begins with the largest files. */
const long = [
  "conformance/containerExec",
  "windows/conformance",
  "security/attack/attack",
  "packaging/pack",
  "interruption/combinators",
  "agent/everywhere",
  "durability/kill",
  "interruption/posixHost"
].map((name) => `/test/${name}.test.ts`)

class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const isLong = ({ moduleId }: TestSpecification): boolean => long.some((name) => moduleId.endsWith(name))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/ownState.ts"],
    setupFiles: ["test/sameRuns.ts"],
    sequence: { sequencer: LongFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One for each core, however few there are: by itself the runner would leave one of two idle.
    maxWorkers: Math.max(2, availableParallelism())
  }
})
