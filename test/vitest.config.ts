import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { adversarial, buckets, engines, host, smoke } from "./projects.ts"

/** Files that take half a minute and more, the longest first. They start first, because one of them at the end would run alone. */
const long = [
  "windows/conformance",
  "backends/bucket/laws",
  "repository/stores/bucket",
  "backends/sftp/laws",
  "backends/sftp/faults",
  "conformance/containerExec",
  "repository/workspaces.processes",
  "differential/realTree",
  "packaging/pack",
  "adapters/McpFilesystem.laws",
  "remote/laws",
  "security/attack/attack",
  "interruption/nothingFreezes",
  "interruption/combinators",
  "interruption/posixHost",
  "backends/container/sandbox",
  "backends/container/life",
  "backends/bucket/trees",
  "documentation/examples",
  "documentation/guides",
  "conformance/branch",
  "agent/everywhere",
  "adapters/JustBash",
  "remote/killed",
  "cli/serve",
  "history/threads",
  "runtimes/bundlers",
  "repository/stores/jetStream",
  "runtime/searcher",
  "adapters/McpFilesystem.hostile",
  "security/escapes.table",
  "conformance/mutants",
  "backends/PosixHost.processes",
  "conformance/posixHostRoots",
  "differential/globs",
  "durability/kill",
  "faults/injected"
].map((name) => `/test/${name}.test.ts`)

class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const place = ({ moduleId }: TestSpecification): number => long.findIndex((name) => moduleId.endsWith(name))
    const sorted = await super.sort(files)
    const first = sorted.filter((file) => place(file) >= 0).toSorted((one, two) => place(one) - place(two))
    return [...first, ...sorted.filter((file) => place(file) < 0)]
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
