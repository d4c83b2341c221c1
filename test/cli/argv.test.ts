import { assert, describe, it } from "@effect/vitest"
import * as Completions from "effect/cli/Completions"
import { foreignFlags, normaliseArguments } from "../../src/cli/argv.ts"
import { command } from "../../src/cli/main.ts"

const program = Completions.fromCommand(command)
const read = (line: string) => normaliseArguments(program, line.split(" ")).join(" ")

/** Command lines, and the words that the program reads. */
const cases: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "never takes the word after a boolean flag as its value": {
    "grep -i 1": "grep -i=true 1",
    "grep --literal on src": "grep --literal=true on src",
    "--json grep yes": "--json grep yes",
    "rm -rf no": "rm -rf=true no",
    "mkdir --no-parents 1": "mkdir --parents=false 1"
  },
  "accepts a value attached to a flag, also in a cluster of short flags": {
    "grep -C2 x": "grep -C=2 x",
    "grep -iC2 x": "grep -iC=2 x",
    "grep -g*.ts x": "grep -g=*.ts x",
    "grep -C=2 x": "grep -C=2 x"
  },
  "accepts a value that begins with a dash and is not a flag of the command": {
    "edit f --old -x --new --y": "edit f --old=-x --new=--y",
    "edit f --old --new y": "edit f --old --new y",
    "edit f --old --dry-run": "edit f --old --dry-run"
  },
  "never treats a value as a command or a boolean flag": {
    "--root grep ls -l": "--root grep ls -l",
    "write f --text -- x": "write f --text -- x",
    "glob -x rm -l y": "glob -x rm -l=true y"
  },
  "leaves the words after -- unchanged": {
    "grep -- -i 1": "grep -- -i 1",
    "rm -- -rf -v": "rm -- -rf -v",
    "cat -- help --color": "cat -- help --color"
  },
  "drops flags of other tools that have no effect here, alone and in a cluster": {
    "grep -rn x src": "grep x src",
    "grep -rniC2 x": "grep -iC=2 x",
    "grep --recursive --line-number x": "grep x",
    "ls -la src": "ls -l src",
    "ls -1a": "ls",
    "cp -rv a b": "cp a b",
    "cp -rf a b": "cp -f a b"
  },
  "never takes the word after a dropped flag as the value of a boolean flag": {
    "grep -in 1": "grep -i=true 1",
    "grep -i -n 1 no": "grep -i=true 1 no",
    "grep -n 1": "grep 1"
  },
  "replaces flag names of other tools by the names of this program": {
    "grep --include=*.ts x": "grep --glob=*.ts x",
    "grep --include *.ts x": "grep --glob *.ts x",
    "rm -Rf a": "rm -rf a",
    "rm --force a": "rm --missing-ok a"
  },
  "treats -v as the tool of the same name does, instead of printing the version": {
    "grep -v x": "grep --invert-match x",
    "grep -rv x": "grep --invert-match x",
    "rm -rfv x": "rm -rf x",
    "-v": "-v"
  },
  "treats -h as help, unless -h has another meaning in the tool of the same name": {
    "-h": "-h",
    "cp -h": "cp -h",
    "ls -h": "ls",
    "ls -lah": "ls -l",
    "grep -nh x": "grep --no-filename x"
  },
  "keeps an unknown letter of a cluster, so that the error can name the letter": {
    "grep -rnZ x": "grep -Z x"
  },
  "treats the word help as --help, for the program and for a command": {
    help: "--help",
    "help grep": "grep --help",
    "help journal verify": "journal verify --help",
    "--root help ls": "--root help ls",
    "cat help": "cat help",
    "grep help": "grep help"
  },
  "takes the word after --color as its value only if the word is a valid value": {
    "ls --color src": "ls --color src",
    "ls --color never src": "ls --color=never src",
    "ls --color=always": "ls --color=always",
    "ls --no-color": "ls --color=never"
  },
  "treats --no-ignore as the opposite of --gitignore": {
    "grep --no-ignore 1": "grep --gitignore=false 1",
    "tree --no-gitignore": "tree --gitignore=false"
  },
  "keeps unknown flags, so that the error can name these flags": {
    "grep -Z3 --what 1 x": "grep -Z3 --what 1 x",
    "-3": "-3"
  }
}

describe("the argument parser", () => {
  for (const [title, lines] of Object.entries(cases)) {
    it(title, () => assert.deepStrictEqual(Object.fromEntries(Object.keys(lines).map((line) => [line, read(line)])), lines))
  }
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
})
