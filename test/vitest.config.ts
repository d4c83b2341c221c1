import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { adversarial, buckets, engines, host, smoke } from "./projects.ts"

/** Files that take half a minute and more. They start first, because one of them at the end would run alone. */
const long = [
  "conformance/containerExec",
  "windows/conformance",
  "backends/container/sandbox",
  "backends/container/life",
  "security/attack/attack",
  "packaging/pack",
  "interruption/combinators",
  "interruption/nothingFreezes",
  "agent/everywhere",
  "conformance/branch",
  "conformance/posixHostRoots",
  "durability/kill",
  "faults/injected",
  "differential/globs",
  "runtime/searcher",
  "interruption/posixHost"
].map((name) => `/test/${name}.test.ts`)

class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const isLong = ({ moduleId }: TestSpecification): boolean => long.some((name) => moduleId.endsWith(name))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

const root = fileURLToPath(new URL("..", import.meta.url))

const project = (name: string, include: ReadonlyArray<string>, exclude: ReadonlyArray<string>, isolate = true) => ({
  root,
  test: {
    name,
    include: [...include],
    // A program of test/runtimes may contain tests of its own.
    exclude: [...exclude, "**/node_modules/**"],
    isolate,
    setupFiles: ["test/sameRuns.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})

export default defineConfig({
  root,
  test: {
    globalSetup: ["test/ownState.ts"],
    sequence: { sequencer: LongFirst },
    // One worker per core. By default the runner leaves one of two cores idle.
    maxWorkers: Math.max(2, availableParallelism()),
    projects: [
      project("unit", ["test/**/*.test.ts"], [...host, ...engines, ...buckets, ...adversarial, "test/.readme/**"], false),
      project("smoke", smoke, []),
      project("host", host, [...engines, ...adversarial]),
      project("engines", engines, []),
      project("buckets", buckets, []),
      project("adversarial", adversarial, engines)
    ]
  }
})
