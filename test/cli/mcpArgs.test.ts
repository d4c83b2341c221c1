import { assert, describe, it } from "@effect/vitest"
import { parseMcpArguments } from "../../src/cli/mcpArgs.ts"

const plain = {
  tools: "all",
  readOnly: false,
  limits: "agent",
  mountPoint: undefined,
  allow: [],
  deny: [],
  readBeforeWrite: false,
  structured: false,
  deletes: true,
  anyRoot: false,
  snapshots: undefined,
  http: undefined
} as const

describe("the fast parser of mcp arguments", () => {
  it("parses the common arguments", () => {
    assert.deepStrictEqual(parseMcpArguments(["mcp"]), { roots: [], backend: "host", input: plain })
    assert.deepStrictEqual(
      parseMcpArguments([
        "mcp",
        "--root",
        "/r",
        "--backend=memory",
        "--read-only",
        "--limits",
        "standard",
        "--tools",
        "ls,grep"
      ]),
      { roots: ["/r"], backend: "memory", input: { ...plain, readOnly: true, limits: "standard", tools: "ls,grep" } }
    )
    assert.deepStrictEqual(
      parseMcpArguments(["mcp", "--deny", "*.env", "--deny", ".git", "--allow=src/**", "--read-before-write"])?.input,
      {
        ...plain,
        deny: ["*.env", ".git"],
        allow: ["src/**"],
        readBeforeWrite: true
      }
    )
    assert.deepStrictEqual(parseMcpArguments(["mcp", "--journal", "../work"]), {
      roots: [],
      backend: "host",
      journal: "../work",
      input: plain
    })
    assert.deepStrictEqual(parseMcpArguments(["mcp", "--hardlinks", "reject"]), {
      roots: [],
      backend: "host",
      hardlinks: "reject",
      input: plain
    })
    assert.deepStrictEqual(parseMcpArguments(["mcp", "app", "--root", "/r", "../lib"])?.roots, ["/r", "app", "../lib"])
    assert.deepStrictEqual(parseMcpArguments(["mcp", "--store", "dir:s", "--workspace", "team"])?.roots, ["\0team\0dir:s"])
    for (const args of [
      ["--store", "s"],
      ["--workspace", "w"],
      ["--store", "s", "--workspace", "w", "--root", "r"]
    ])
      assert.isUndefined(parseMcpArguments(["mcp", ...args]))
    assert.deepStrictEqual(parseMcpArguments(["mcp", "--no-delete", "--any-root", "--snapshots"])?.input, {
      ...plain,
      deletes: false,
      anyRoot: true,
      snapshots: true
    })
    assert.deepStrictEqual(
      parseMcpArguments(["mcp", "--no-snapshots", "--mount-point", "/w", "--http", "0", "--host", "::1"])?.input,
      {
        ...plain,
        snapshots: false,
        mountPoint: "/w",
        http: { host: "::1", port: 0 }
      }
    )
  })

  it("leaves help, other commands and invalid arguments to the full command line", () => {
    const others = [
      "",
      "ls",
      "--root . mcp",
      "mcp --help",
      "mcp -h",
      "mcp --version",
      "mcp --json",
      "mcp --completions bash",
      "mcp --",
      "mcp --root",
      "mcp --journal",
      "mcp --hardlinks sometimes",
      "mcp --journal= --root .",
      "mcp --root -x",
      "mcp --snapshots --no-snapshots",
      "mcp app --",
      "mcp --root a --root b",
      "mcp --read-only=false",
      "mcp --no-read-only",
      "mcp --backend disk",
      "mcp --limits few",
      "mcp --host 0.0.0.0",
      "mcp --host ::1",
      "mcp --http",
      "mcp --http 70000",
      "mcp --http 08",
      "mcp --http 1e3",
      "mcp --unknown"
    ]
    for (const line of others) assert.isUndefined(parseMcpArguments(line.split(" ").filter(Boolean)), line)
  })
})
