import { assert, describe, it } from "@effect/vitest"
import * as Completions from "effect/cli/Completions"
import { normalise } from "../../src/cli/argv.ts"
import { command } from "../../src/cli/main.ts"

const program = Completions.fromCommand(command)
const read = (line: string) => normalise(program, line.split(" ")).join(" ")

describe("arguments", () => {
  it("a switch never takes the word after it", () => {
    assert.strictEqual(read("grep -i 1"), "grep -i=true 1")
    assert.strictEqual(read("grep --literal on src"), "grep --literal=true on src")
    assert.strictEqual(read("--json grep yes"), "--json grep yes")
    assert.strictEqual(read("rm -rf no"), "rm -rf=true no")
    assert.strictEqual(read("mkdir --no-parents 1"), "mkdir --parents=false 1")
  })
  it("a value may be attached, alone or in a cluster", () => {
    assert.strictEqual(read("grep -C2 x"), "grep -C=2 x")
    assert.strictEqual(read("grep -iC2 x"), "grep -iC=2 x")
    assert.strictEqual(read("grep -g*.ts x"), "grep -g=*.ts x")
    assert.strictEqual(read("grep -C=2 x"), "grep -C=2 x")
  })
  it("a value may begin with a dash, unless it is a flag of the command", () => {
    assert.strictEqual(read("edit f --old -x --new --y"), "edit f --old=-x --new=--y")
    assert.strictEqual(read("edit f --old --new y"), "edit f --old --new y")
    assert.strictEqual(read("edit f --old --dry-run"), "edit f --old --dry-run")
  })
  it("a value is never taken for a command or for a switch", () => {
    assert.strictEqual(read("--root grep ls -l"), "--root grep ls -l")
    assert.strictEqual(read("write f --text -- x"), "write f --text -- x")
    assert.strictEqual(read("glob -x rm -l y"), "glob -x rm -l=true y")
  })
  it("what follows -- is left alone", () => {
    assert.strictEqual(read("grep -- -i 1"), "grep -- -i 1")
  })
  it("what is unknown is left for its error", () => {
    assert.strictEqual(read("grep -Z3 --what 1 x"), "grep -Z3 --what 1 x")
    assert.strictEqual(read("-3"), "-3")
  })
})
