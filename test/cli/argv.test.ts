import { assert, describe, it } from "@effect/vitest"
import * as Completions from "effect/cli/Completions"
import { foreignFlags, normaliseArguments } from "../../src/cli/argv.ts"
import { command } from "../../src/cli/main.ts"

const program = Completions.fromCommand(command)
const read = (line: string) => normaliseArguments(program, line.split(" ")).join(" ")

describe("the argument parser", () => {
  it("never takes the word after a boolean flag as its value", () => {
    assert.strictEqual(read("grep -i 1"), "grep -i=true 1")
    assert.strictEqual(read("grep --literal on src"), "grep --literal=true on src")
    assert.strictEqual(read("--json grep yes"), "--json grep yes")
    assert.strictEqual(read("rm -rf no"), "rm -rf=true no")
    assert.strictEqual(read("mkdir --no-parents 1"), "mkdir --parents=false 1")
  })
  it("accepts a value attached to a flag, also in a cluster of short flags", () => {
    assert.strictEqual(read("grep -C2 x"), "grep -C=2 x")
    assert.strictEqual(read("grep -iC2 x"), "grep -iC=2 x")
    assert.strictEqual(read("grep -g*.ts x"), "grep -g=*.ts x")
    assert.strictEqual(read("grep -C=2 x"), "grep -C=2 x")
  })
  it("accepts a value that begins with a dash and is not a flag of the command", () => {
    assert.strictEqual(read("edit f --old -x --new --y"), "edit f --old=-x --new=--y")
    assert.strictEqual(read("edit f --old --new y"), "edit f --old --new y")
    assert.strictEqual(read("edit f --old --dry-run"), "edit f --old --dry-run")
  })
  it("never treats a value as a command or a boolean flag", () => {
    assert.strictEqual(read("--root grep ls -l"), "--root grep ls -l")
    assert.strictEqual(read("write f --text -- x"), "write f --text -- x")
    assert.strictEqual(read("glob -x rm -l y"), "glob -x rm -l=true y")
  })
  it("leaves the words after -- unchanged", () => {
    assert.strictEqual(read("grep -- -i 1"), "grep -- -i 1")
    assert.strictEqual(read("rm -- -rf -v"), "rm -- -rf -v")
    assert.strictEqual(read("cat -- help --color"), "cat -- help --color")
  })
  it("drops flags of other tools that have no effect here, alone and in a cluster", () => {
    assert.strictEqual(read("grep -rn x src"), "grep x src")
    assert.strictEqual(read("grep -rniC2 x"), "grep -iC=2 x")
    assert.strictEqual(read("grep --recursive --line-number x"), "grep x")
    assert.strictEqual(read("ls -la src"), "ls -l src")
    assert.strictEqual(read("ls -1a"), "ls")
    assert.strictEqual(read("cp -rv a b"), "cp a b")
    assert.strictEqual(read("cp -rf a b"), "cp -f a b")
  })
  it("never takes the word after a dropped flag as the value of a boolean flag", () => {
    assert.strictEqual(read("grep -in 1"), "grep -i=true 1")
    assert.strictEqual(read("grep -i -n 1 no"), "grep -i=true 1 no")
    assert.strictEqual(read("grep -n 1"), "grep 1")
  })
  it("replaces flag names of other tools by the names of this program", () => {
    assert.strictEqual(read("grep --include=*.ts x"), "grep --glob=*.ts x")
    assert.strictEqual(read("grep --include *.ts x"), "grep --glob *.ts x")
    assert.strictEqual(read("rm -Rf a"), "rm -rf a")
    assert.strictEqual(read("rm --force a"), "rm --missing-ok a")
  })
  it("treats -v as the tool of the same name does, instead of printing the version", () => {
    assert.strictEqual(read("grep -v x"), "grep --invert-match x")
    assert.strictEqual(read("grep -rv x"), "grep --invert-match x")
    assert.strictEqual(read("rm -rfv x"), "rm -rf x")
    assert.strictEqual(read("-v"), "-v")
  })
  it("treats -h as help, unless -h has another meaning in the tool of the same name", () => {
    assert.strictEqual(read("-h"), "-h")
    assert.strictEqual(read("cp -h"), "cp -h")
    assert.strictEqual(read("ls -h"), "ls")
    assert.strictEqual(read("ls -lah"), "ls -l")
    assert.strictEqual(read("grep -nh x"), "grep --no-filename x")
  })
  it("keeps an unknown letter of a cluster, so that the error can name the letter", () => {
    assert.strictEqual(read("grep -rnZ x"), "grep -Z x")
  })
  it("treats the word help as --help, for the program and for a command", () => {
    assert.strictEqual(read("help"), "--help")
    assert.strictEqual(read("help grep"), "grep --help")
    assert.strictEqual(read("help journal verify"), "journal verify --help")
    assert.strictEqual(read("--root help ls"), "--root help ls")
    assert.strictEqual(read("cat help"), "cat help")
    assert.strictEqual(read("grep help"), "grep help")
  })
  it("takes the word after --color as its value only if the word is a valid value", () => {
    assert.strictEqual(read("ls --color src"), "ls --color src")
    assert.strictEqual(read("ls --color never src"), "ls --color=never src")
    assert.strictEqual(read("ls --color=always"), "ls --color=always")
    assert.strictEqual(read("ls --no-color"), "ls --color=never")
  })
  it("treats --no-ignore as the opposite of --gitignore", () => {
    assert.strictEqual(read("grep --no-ignore 1"), "grep --gitignore=false 1")
    assert.strictEqual(read("tree --no-gitignore"), "tree --gitignore=false")
  })
  it("never treats a flag of this program as a flag of another tool", () => {
    /** Flags that no command has, which the error names. */
    const refused = new Set(["v", "h"])
    for (const [name, names] of Object.entries(foreignFlags)) {
      const flags = program.subcommands.find((one) => one.name === name)!.flags
      const own = new Set(flags.flatMap((flag) => [flag.name, ...flag.aliases]))
      for (const [other, meaning] of Object.entries(names)) {
        assert.isFalse(own.has(other), `${name} ${other}`)
        if (meaning !== "" && !refused.has(other)) assert.isTrue(own.has(meaning), `${name} ${other}`)
      }
    }
  })
  it("keeps unknown flags, so that the error can name these flags", () => {
    assert.strictEqual(read("grep -Z3 --what 1 x"), "grep -Z3 --what 1 x")
    assert.strictEqual(read("-3"), "-3")
  })
})
