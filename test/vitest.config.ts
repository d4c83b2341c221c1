import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/sameRuns.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One for each core, however few there are: by itself the runner would leave one of two idle.
    maxWorkers: Math.max(2, availableParallelism())
  }
})
