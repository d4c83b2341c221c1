/** Tests the commands of `workspaces`, and other commands with `--store` and `--workspace`. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { commandLine } from "../bundled.ts"
import { place } from "./kept.ts"
import { directory, run as runProcess, serve } from "./served.ts"
import { done, type RunOptions, shell } from "./terminal.ts"

/** A directory with the commands that run in it. */
const bench = Effect.gen(function* () {
  const { top } = yield* place({})
  const { json, run } = yield* shell({})
  return {
    top,
    run: (args: ReadonlyArray<string>, options: RunOptions = {}) => run(args, { directory: top, ...options }),
    json: (args: ReadonlyArray<string>) => json(args, { directory: top })
  }
})
type Bench = Effect.Success<typeof bench>

const team = ["--store", "store", "--workspace", "team"]

/** Makes a store with one workspace and one file of more than one chunk. */
const made = Effect.gen(function* () {
  const here = yield* bench
  done(yield* here.run(["workspaces", "create", "team", "--store", "store"]))
  done(yield* here.run(["write", "docs/a.md", "--text", "one\n", ...team]))
  done(yield* here.run(["write", "large.txt", "--text", "x".repeat(100_000), ...team]))
  return here
})

const blobsOf = ({ top }: Bench): ReadonlyArray<string> =>
  Fs.readdirSync(join(top, "store/blobs"), { recursive: true, encoding: "utf8" })
    .map((name) => join(top, "store/blobs", name))
    .filter((path) => Fs.statSync(path).isFile())

/** Makes a database of another program. */
const otherDatabase = (file: string): void => {
  const database = new DatabaseSync(file)
  database.exec("create table bookmarks (url text)")
  database.close()
}

const hashOf = (blob: string): string => blob.split("/").slice(-2).join("")

describe("workspaces", () => {
  it.effect.each(["store", "dir:store", "sqlite:work.db"])("are created, listed, forked, compared and deleted in %s", (store) =>
    Effect.gen(function* () {
      const here = yield* bench
      const inStore = ["--store", store]
      assert.match(
        done(yield* here.run(["workspaces", "create", "a b", "team", ...inStore])),
        /^Created a b, commit 1 .*\nCreated team, /
      )
      done(yield* here.run(["write", "same.md", "--text", "same", ...inStore, "--workspace", "team"]))
      assert.match(
        done(yield* here.run(["workspaces", "fork", "team", "trial", ...inStore])),
        /^Forked trial, commit 1 .* fork team\n$/
      )
      done(yield* here.run(["write", "new.md", "--text", "new", ...inStore, "--workspace", "trial"]))
      assert.strictEqual(done(yield* here.run(["workspaces", "diff", "team", "trial", ...inStore])), "A\tnew.md\n")
      assert.deepStrictEqual(yield* here.json(["workspaces", "diff", "trial", "team", ...inStore]), [
        { _tag: "Removed", path: "new.md" }
      ])
      const listed = (yield* here.json(["workspaces", "list", ...inStore])) as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(
        listed.map(({ message, sequence, workspace }) => [workspace, sequence, message]),
        [
          ["a b", 1, "create the workspace"],
          ["team", 2, "write same.md"],
          ["trial", 2, "write new.md"]
        ]
      )
      const ran = yield* here.run(["workspaces", "list", ...inStore])
      assert.match(
        ran.out,
        /^a b {4}commit 1 {2}\d{4}-\d\d-\d\d \d\d:\d\d UTC {2}\S+ {2}create the workspace\nteam {3}commit 2 /
      )
      assert.strictEqual(ran.err, `3 workspaces in ${store}\n`)
      const shown = yield* here.run(["workspaces", "delete", "trial", "--dry-run", ...inStore])
      assert.match(done(shown), /^Would delete trial, commit 2 .* write new.md\n$/)
      assert.strictEqual(shown.err, "nothing has changed\n")
      assert.match(
        done(yield* here.run(["workspaces", "delete", "trial", "a b", ...inStore])),
        /^Deleted trial, .*\nDeleted a b, /
      )
      const left = (yield* here.json(["workspaces", "list", ...inStore])) as ReadonlyArray<{ readonly workspace: string }>
      assert.deepStrictEqual(
        left.map(({ workspace }) => workspace),
        ["team"]
      )
    })
  )

  it.effect("keep their snapshots in their commits, and log shows all commits", () =>
    Effect.gen(function* () {
      const here = yield* made
      done(yield* here.run(["snapshot", "--tag", "first", ...team]))
      done(yield* here.run(["edit", "docs/a.md", "--old", "one", "--new", "two", ...team]))
      assert.strictEqual(done(yield* here.run(["diff", "--names", ...team])), "M\tdocs/a.md\n")
      const restored = yield* here.run(["restore", "first", ...team])
      assert.match(done(restored), /^M\tdocs\/a.md\nRestored [0-9a-f]{8}, 1 changed\n$/)
      const [, undo] = /undo this with fs-algebra (.*)\n/.exec(restored.err)!
      assert.strictEqual(done(yield* here.run(["cat", "docs/a.md", ...team])), "one\n")
      done(yield* here.run(undo!.split(" ")))
      assert.strictEqual(done(yield* here.run(["cat", "docs/a.md", ...team])), "two\n")
      const messages = [
        "restore before restoring first",
        "snapshot before restoring ID",
        "restore first",
        "snapshot before restoring first",
        "write docs/a.md",
        "snapshot first"
      ]
      const logged = (yield* here.json(["workspaces", "log", "team", "-n", "6", "--store", "store"])) as ReadonlyArray<
        Record<string, unknown>
      >
      assert.deepStrictEqual(
        logged.map(({ isStored, message, sequence, workspace }) => [
          workspace,
          sequence,
          `${message as string}`.replace(/[0-9a-f-]{36}/, "ID"),
          isStored
        ]),
        messages.map((message, i) => ["team", (logged[0]!["sequence"] as number) - i, message, true])
      )
      const one = yield* here.run(["workspaces", "log", "team", "-n", "1", "--store", "store"])
      assert.match(done(one), /^commit \d+ {2}.* restore before restoring first {2}[0-9a-f]{64}\n$/)
      assert.match(one.err, /^there are more commits than --limit allows; for all: .* log team --limit \d+ --store store\n$/)
      const all = yield* here.run(["workspaces", "log", "team", "--store", "store"])
      assert.match(done(all), /\ncommit 1 {2}.* create the workspace {2}[0-9a-f]{64}\n$/)
      assert.strictEqual(all.err, "")
      // The collector would do the same after its grace period.
      Fs.rmSync(blobsOf(here).find((path) => hashOf(path) === logged[1]!["root"])!)
      const kept = yield* here.run(["workspaces", "log", "team", "--store", "store"])
      assert.match(done(kept), /^commit \d+ {2}.*[0-9a-f]{64}\ncommit \d+ {2}.*[0-9a-f]{64} {2}not stored\n$/)
      assert.match(
        kept.err,
        /^the content of commit \d+ and all earlier commits cannot be shown: workspaces gc has deleted it, or the store has lost it/
      )
      const check = /To check what the workspace still needs: fs-algebra (.*)\n$/.exec(kept.err)![1]!
      assert.match(done(yield* here.run(check.split(" "))), /^team is undamaged: /)
      assert.deepStrictEqual(Fs.readdirSync(here.top).sort(), ["root", "store"])
    })
  )

  it.effect("show names that would reverse the text direction as escapes, on a terminal and in errors", () =>
    Effect.gen(function* () {
      const here = yield* bench
      const name = "a\u202eb\u2066"
      const store = ["--store", "store"]
      done(yield* here.run(["workspaces", "create", name, ...store]))
      done(yield* here.run(["workspaces", "create", "aaaaaaaaa", ...store]))
      done(yield* here.run(["write", `f${name}`, "--text", "x", "--workspace", name, ...store]))
      const deceptive = /[\u202a-\u202e\u2066-\u2069]/
      for (const args of [
        ["list"],
        ["log", name],
        ["create", name],
        ["log", `${name}${name}`],
        ["fork", `${name}${name}`, "new"],
        ["verify", name],
        ["diff", "aaaaaaaaa", name],
        ["delete", `${name}${name}`],
        ["delete", name]
      ]) {
        const ran = yield* here.run(["workspaces", ...args, ...store], { isTerminal: true })
        assert.notMatch(ran.out + ran.err, deceptive, args.join(" "))
        assert.include(ran.out + ran.err, "a\\u{202e}b\\u{2066}", args.join(" "))
      }
      const ls = yield* here.run(["stat", `f${name}`, "--workspace", name, ...store], { isTerminal: true })
      assert.notMatch(ls.out + ls.err, deceptive)
    })
  )

  it.effect("can be searched, copied into memory, exported and imported like any other root, and advice names the store", () =>
    Effect.gen(function* () {
      const here = yield* made
      assert.strictEqual(done(yield* here.run(["ls", ...team])), "docs/\nlarge.txt\n")
      assert.strictEqual(done(yield* here.run(["grep", "one", ...team])), "docs/a.md:1:one\n")
      assert.strictEqual(done(yield* here.run(["glob", "*.md", ...team])), "docs/a.md\n")
      done(yield* here.run(["rm", "-r", "docs", "--backend", "memory", ...team]))
      done(yield* here.run(["export", "all.zip", ...team]))
      done(yield* here.run(["rm", "-r", "docs", ...team]))
      done(yield* here.run(["import", "all.zip", ...team]))
      assert.strictEqual(done(yield* here.run(["cat", "docs/a.md", ...team])), "one\n")
      const missing = yield* here.run(["cat", "docs/b.md", ...team])
      assert.strictEqual(missing.code, 3)
      assert.include(missing.err, "Did you mean docs/a.md?")
      const listing = yield* here.run(["cat", "nothing", ...team])
      assert.include(listing.err, "fs-algebra ls . --store store --workspace team")
    })
  )

  it.effect("accept --journal for a write, and refuse --journal for a snapshot", () =>
    Effect.gen(function* () {
      const here = yield* made
      done(yield* here.run(["write", "b.md", "--text", "b", "--journal", "work", ...team]))
      const refused = yield* here.run(["snapshot", "--journal", "work", ...team])
      assert.strictEqual(refused.code, 2)
      assert.include(refused.err, "Leave out --journal")
    })
  )
})

describe("an address or a name that is wrong", () => {
  const wrong: ReadonlyArray<readonly [what: string, code: number, message: RegExp, args: ReadonlyArray<string>]> = [
    ["no store", 2, /needs the store/, ["workspaces", "list"]],
    ["a store that does not exist", 3, /there is no store/, ["workspaces", "list", "--store", "typo"]],
    ["a database that does not exist", 3, /there is no store/, ["workspaces", "list", "--store", "sqlite:typo.db"]],
    ["a file as a directory", 3, /there is no store/, ["workspaces", "list", "--store", "dir:root/file"]],
    ["a directory with other files", 2, /has other files/, ["workspaces", "create", "a", "--store", "root"]],
    ["a file that is no database", 2, /no database/, ["workspaces", "create", "a", "--store", "sqlite:root/file"]],
    ["a directory as a file", 2, /regular file/, ["workspaces", "create", "a", "--store", "sqlite:root"]],
    ["a pipe as a file", 2, /regular file/, ["workspaces", "create", "a", "--store", "sqlite:pipe"]],
    ["a database of another program", 2, /other tables/, ["workspaces", "create", "a", "--store", "sqlite:other.db"]],
    ["a database in memory", 2, /in memory/, ["workspaces", "create", "a", "--store", "sqlite::memory:"]],
    [
      "a URL of a database",
      2,
      /URI filenames of SQLite/,
      ["workspaces", "create", "a", "--store", "sqlite:file:work.db?mode=ro"]
    ],
    ["an empty name for a new store", 2, /it is empty/, ["workspaces", "create", "", "--store", "new"]],
    ["a long name for a new store", 2, /longer than 256/, ["workspaces", "create", "x".repeat(300), "--store", "new"]],
    ["a wrong name for a new database", 2, /a control character/, ["workspaces", "create", "a\tb", "--store", "sqlite:new.db"]],
    ["a look into a pipe", 3, /there is no store/, ["workspaces", "list", "--store", "sqlite:pipe"]],
    ["an unknown scheme", 2, /no known kind/, ["workspaces", "list", "--store", "ftp://host/path"]],
    ["a database without a user", 2, /names no user/, ["workspaces", "list", "--store", "postgres://localhost/work"]],
    ["a scheme without its slashes", 2, /no known kind/, ["workspaces", "list", "--store", "postgres:work"]],
    ["a path that is missing", 2, /has no path/, ["workspaces", "list", "--store", "dir:"]],
    ["a bucket that is missing", 2, /no valid name/, ["workspaces", "list", "--store", "s3:///prefix"]],
    ["a blank store", 2, /not blank/, ["workspaces", "list", "--store", " "]],
    ["a token for a directory", 2, /--token-file applies/, ["ls", "--token-file", "root/file", ...team]],
    ["a name with a control character", 2, /a control character/, ["workspaces", "create", "a\nb", "--store", "store"]],
    ["an empty name", 2, /it is empty/, ["ls", "--store", "store", "--workspace", ""]],
    [
      "a name that is too long",
      2,
      /longer than 256 bytes/,
      ["workspaces", "fork", "team", "é".repeat(129), "--store", "store"]
    ],
    ["a workspace that exists", 4, /exists already/, ["workspaces", "create", "team", "--store", "store"]],
    ["a fork to a workspace that exists", 4, /exists already/, ["workspaces", "fork", "team", "team", "--store", "store"]],
    ["a fork of a missing workspace", 3, /"nope" does not exist/, ["workspaces", "fork", "nope", "a", "--store", "store"]],
    ["a deletion of a missing workspace", 3, /"nope" does not exist/, ["workspaces", "delete", "nope", "--store", "store"]],
    ["a check of a missing workspace", 3, /"nope" does not exist/, ["workspaces", "verify", "nope", "--store", "store"]],
    ["a log of a missing workspace", 3, /no workspace "nope"/, ["workspaces", "log", "nope", "--store", "store"]],
    [
      "a comparison with a missing workspace",
      3,
      /no workspace "nope"/,
      ["workspaces", "diff", "team", "nope", "--store", "store"]
    ],
    [
      "files of a missing workspace",
      3,
      /no workspace "nope"/,
      ["write", "a", "--text", "a", "--store", "store", "--workspace", "nope"]
    ],
    ["a root besides a workspace", 2, /cannot be combined/, ["ls", "--root", "root", ...team]],
    ["a workspace without a store", 2, /needs a store/, ["ls", "--workspace", "team"]],
    ["a store without a workspace", 2, /one workspace/, ["ls", "--store", "store"]],
    ["a store for all workspaces for one client", 2, /one workspace/, ["serve", "--listen", "stdio", "--store", "store"]],
    ["a store for all workspaces of agents", 2, /one workspace/, ["mcp", "--store", "store"]],
    ["a root of whole workspaces", 2, /has no root/, ["workspaces", "list", "--root", "root", "--store", "store"]],
    ["a flag in place of a name", 2, /takes no --workspace/, ["workspaces", "log", "team", ...team]],
    ["a container", 2, /needs a directory/, ["exec", ...team, "--image", "x", "--", "ls"]],
    ["a short grace period", 2, /below two hours/, ["workspaces", "gc", "--grace", "119 minutes", "--store", "store"]],
    ["a grace period that is no time", 2, /is not a time/, ["workspaces", "gc", "--grace", "soon", "--store", "store"]]
  ]
  it.effect.each(wrong)("%s fails with exit code %i, and changes nothing", ([, code, message, args]) =>
    Effect.gen(function* () {
      const here = yield* made
      Fs.writeFileSync(join(here.top, "root/file"), "not a database\n")
      execFileSync("mkfifo", [join(here.top, "pipe")])
      otherDatabase(join(here.top, "other.db"))
      const before = Fs.readdirSync(here.top, { recursive: true }).sort()
      const other = Fs.readFileSync(join(here.top, "other.db"))
      const ran = yield* here.run(args)
      assert.strictEqual(ran.code, code, ran.err)
      assert.match(ran.err, message)
      assert.strictEqual(ran.out, "")
      assert.deepStrictEqual(Fs.readdirSync(here.top, { recursive: true }).sort(), before)
      assert.deepStrictEqual(Fs.readFileSync(join(here.top, "other.db")), other)
      const { err } = yield* here.run([...args.slice(0, 1), "--json", ...args.slice(1)])
      assert.doesNotThrow(() =>
        err
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown)
      )
    })
  )

  it.effect.each([
    "workspaces list --store postgres://ann:s3cret@localhost/work",
    "workspaces list --store postgres://ann@localhost/work?password=s3cret",
    "workspaces list --store mysql://ann:s3cret@localhost/work",
    "ls --store postgres://ann:s3cret@localhost/work --workspace team",
    "debug --store postgres://ann:s3cret@localhost/work",
    "snapshot --store postgres://ann:s3cret@localhost/work",
    "workspaces list --store postgres:ann:s3cret@localhost/work",
    "workspaces list --store mysql:ann:s3cret@localhost/work",
    "workspaces list --store mysql://ann:p@s3cret@localhost/work",
    "workspaces list --store mysql://ann@localhost/work?sslpassword=s3cret",
    "ls --store postgres:/ann:s3cret@localhost/work --workspace team"
  ])("a password in an address is refused and not shown: %s", (line) =>
    Effect.gen(function* () {
      const here = yield* bench
      for (const json of [[], ["--json"]]) {
        const ran = yield* here.run([...line.split(" "), ...json])
        assert.strictEqual(ran.code, 2, ran.err)
        assert.notInclude(ran.err + ran.out, "s3cret")
      }
      assert.deepStrictEqual(Fs.readdirSync(here.top), ["root"])
    })
  )

  it.effect("does not prevent the creation of the other workspaces of a list", () =>
    Effect.gen(function* () {
      const here = yield* made
      const ran = yield* here.run(["workspaces", "create", "team", "b\u0007", "c", "--store", "store"])
      assert.strictEqual(ran.code, 4)
      assert.match(ran.out, /^Created c, /)
    })
  )
})

describe("a damaged store", () => {
  it.effect("makes verify and cat fail with the hash of the damaged blob, and cat prints no content", () =>
    Effect.gen(function* () {
      const here = yield* made
      done(yield* here.run(["workspaces", "create", "other", "--store", "store"]))
      const blob = blobsOf(here).find((path) => Fs.statSync(path).size === 100_000)!
      Fs.writeFileSync(blob, "y".repeat(100_000))
      const ran = yield* here.run(["workspaces", "verify", "--store", "store"])
      assert.strictEqual(ran.code, 1)
      assert.include(ran.err, hashOf(blob))
      assert.match(ran.out, /^other is undamaged: 1 node, /)
      const { code, err } = yield* here.run(["workspaces", "verify", "team", "--json", "--store", "store"])
      assert.strictEqual(code, 1)
      const { error } = JSON.parse(err) as { readonly error: object }
      assert.deepInclude(error, { _tag: "StoreError", reason: "corrupt", workspace: "team" })
      const read = yield* here.run(["cat", "large.txt", ...team])
      assert.deepStrictEqual([read.code, read.out], [9, ""])
      assert.include(read.err, hashOf(blob))
      assert.strictEqual(done(yield* here.run(["cat", "docs/a.md", ...team])), "one\n")
    })
  )

  it.effect.each(["missing", "cut", "of a newer version"])("with a root that is %s fails, and names the root", (damage) =>
    Effect.gen(function* () {
      const here = yield* made
      const [{ root }] = (yield* here.json(["workspaces", "list", "--store", "store"])) as readonly [{ readonly root: string }]
      const blob = blobsOf(here).find((path) => hashOf(path) === root)!
      const bytes = Fs.readFileSync(blob)
      if (damage === "missing") Fs.rmSync(blob)
      else
        Fs.writeFileSync(
          blob,
          damage === "cut" ? bytes.subarray(0, 9) : Buffer.concat([bytes.subarray(0, 1), Buffer.of(9), bytes.subarray(2)])
        )
      for (const args of [
        ["workspaces", "verify", "--store", "store"],
        ["workspaces", "log", "team", "--store", "store"],
        ["workspaces", "gc", "--store", "store"],
        ["ls", ...team]
      ]) {
        const ran = yield* here.run(args)
        assert.notStrictEqual(ran.code, 0, args.join(" "))
        assert.notStrictEqual(ran.code, 70, ran.err)
        assert.include(ran.err, root)
      }
      // The other blobs stay: the collector does not take them for garbage.
      assert.strictEqual(
        blobsOf(here).some((path) => Fs.statSync(path).size === 100_000),
        true
      )
    })
  )

  it.effect("with foreign bytes in a head is reported with escaped bytes, and nothing is deleted", () =>
    Effect.gen(function* () {
      const here = yield* made
      const heads = join(here.top, "store/heads")
      const file = Fs.readdirSync(heads).find((name) => name.endsWith(".json"))
      const [name] = Fs.readFileSync(join(heads, file!), "utf8").split("\n")
      Fs.writeFileSync(join(heads, file!), `${name}\n{"version":9}\u001b[2J\n`)
      const count = blobsOf(here).length
      for (const args of [
        ["workspaces", "list"],
        ["workspaces", "verify", "team"],
        ["workspaces", "gc", "--grace", "0s", "--exclusive"],
        ["workspaces", "delete", "team"],
        ["ls", "--workspace", "team"]
      ]) {
        const ran = yield* here.run([...args, "--store", "store"])
        assert.notInclude([0, 70], ran.code, `${args.join(" ")}: ${ran.err}`)
        assert.notInclude(ran.err + ran.out, "\u001b")
      }
      assert.strictEqual(blobsOf(here).length, count)
    })
  )

  it.effect("with a file that is not a head lists the other workspaces, and names the file", () =>
    Effect.gen(function* () {
      const here = yield* made
      done(yield* here.run(["workspaces", "create", "junk", "other", "--store", "store"]))
      const heads = join(here.top, "store/heads")
      const files = Fs.readdirSync(heads).filter((name) => name.endsWith(".json"))
      const file = files.find((name) => Fs.readFileSync(join(heads, name), "utf8").startsWith('"junk"'))!
      Fs.writeFileSync(join(heads, file), "\0")
      // A directory in place of a head, without a name too.
      const planted = `${"0".repeat(64)}.json`
      Fs.mkdirSync(join(heads, planted))
      const count = blobsOf(here).length
      const listed = yield* here.run(["workspaces", "list", "--store", "store"])
      assert.strictEqual(listed.code, 7, listed.err)
      assert.match(listed.out, /^other .*\nteam /)
      assert.include(listed.err, file)
      assert.include(listed.err, planted)
      const verified = yield* here.run(["workspaces", "verify", "--json", "--store", "store"])
      assert.strictEqual(verified.code, 1, verified.err)
      assert.deepStrictEqual(
        verified.out
          .trimEnd()
          .split("\n")
          .map((line) => (JSON.parse(line) as { readonly workspace: string }).workspace),
        ["other", "team"]
      )
      const { error } = JSON.parse(verified.err) as { readonly error: { readonly reason: string; readonly detail: string } }
      assert.strictEqual(error.reason, "corrupt")
      assert.include(error.detail, file)
      assert.include(error.detail, planted)
      const collected = yield* here.run(["workspaces", "gc", "--grace", "0s", "--exclusive", "--store", "store"])
      assert.strictEqual(collected.code, 7, collected.err)
      assert.strictEqual(blobsOf(here).length, count)
    })
  )

  it.effect.each(["cut", "filled with other bytes"])(
    "in a database that is %s is reported as damaged, and reading it leaves no files",
    (damage) =>
      Effect.gen(function* () {
        const here = yield* bench
        const store = ["--store", "sqlite:work.db"]
        done(yield* here.run(["workspaces", "create", "team", ...store]))
        const file = join(here.top, "work.db")
        const bytes = Fs.readFileSync(file)
        Fs.writeFileSync(file, damage === "cut" ? bytes.subarray(0, 5000) : bytes.fill(0x78, 100))
        for (const args of [["list"], ["create", "b"]]) {
          const ran = yield* here.run(["workspaces", ...args, ...store])
          assert.strictEqual(ran.code, 7, ran.err)
          assert.include(ran.err, "Restore the store")
          assert.deepStrictEqual(Fs.readdirSync(here.top).sort(), ["root", "work.db"])
        }
      })
  )

  it.effect("of a newer version is refused, in a directory and in a database", () =>
    Effect.gen(function* () {
      const here = yield* made
      Fs.writeFileSync(join(here.top, "store/format.json"), '{"format":"fs-algebra store","version":2}\n')
      done(yield* here.run(["workspaces", "create", "team", "--store", "sqlite:work.db"]))
      const database = new DatabaseSync(join(here.top, "work.db"))
      database.exec("update fs_algebra_format set version = 2")
      database.close()
      for (const store of ["store", "sqlite:work.db"]) {
        for (const args of [
          ["workspaces", "list"],
          ["workspaces", "create", "b"],
          ["ls", "--workspace", "team"]
        ]) {
          const ran = yield* here.run([...args, "--store", store])
          assert.strictEqual(ran.code, 2, ran.err)
          assert.include(ran.err, "update fs-algebra")
        }
      }
    })
  )
})

describe("a database of another program", () => {
  it.effect("is refused as a store, and is not changed", () =>
    Effect.gen(function* () {
      const here = yield* bench
      const file = join(here.top, "bookmarks.db")
      otherDatabase(file)
      const before = Fs.readFileSync(file)
      const ran = yield* here.run(["workspaces", "list", "--store", "sqlite:bookmarks.db"])
      assert.strictEqual(ran.code, 3)
      assert.deepStrictEqual(Fs.readFileSync(file), before)
      assert.deepStrictEqual(Fs.readdirSync(here.top).sort(), ["bookmarks.db", "root"])
    })
  )
})

describe("gc", () => {
  const age = (here: Bench) => {
    const past = new Date(Date.now() - 3 * 24 * 60 * 60 * 1000)
    for (const blob of blobsOf(here)) Fs.utimesSync(blob, past, past)
  }

  it.live("counts with --dry-run, and deletes only old content that no workspace needs", () =>
    Effect.gen(function* () {
      const here = yield* made
      done(yield* here.run(["rm", "large.txt", ...team]))
      age(here)
      done(yield* here.run(["write", "young.txt", "--text", "z".repeat(50_000), ...team]))
      done(yield* here.run(["rm", "young.txt", ...team]))
      const all = blobsOf(here).length
      const shown = /^Would delete (\d+) blobs older than 1d that no workspace needs\n$/.exec(
        done(yield* here.run(["workspaces", "gc", "--dry-run", "--store", "store"]))
      )
      assert.strictEqual(blobsOf(here).length, all)
      assert.deepStrictEqual(yield* here.json(["workspaces", "gc", "--store", "store"]), [
        { deleted: Number(shown![1]), graceMillis: 86_400_000, dryRun: false }
      ])
      assert.isAbove(Number(shown![1]), 0)
      assert.isFalse(blobsOf(here).some((path) => Fs.statSync(path).size === 100_000))
      assert.isTrue(blobsOf(here).some((path) => Fs.statSync(path).size === 50_000))
      done(yield* here.run(["workspaces", "gc", "--grace", "0s", "--exclusive", "--store", "store"]))
      assert.isFalse(blobsOf(here).some((path) => Fs.statSync(path).size === 50_000))
      assert.strictEqual(done(yield* here.run(["cat", "docs/a.md", ...team])), "one\n")
      done(yield* here.run(["workspaces", "verify", "--store", "store"]))
    })
  )

  it.live("in one process keeps the blobs that writers in other processes need", () =>
    Effect.gen(function* () {
      const here = yield* made
      age(here)
      const where = { cwd: here.top }
      const writes = Array.from({ length: 4 }, (_, n) => n)
      const [written, collected] = yield* Effect.all(
        [
          Effect.forEach(
            writes,
            // The content is that of the old file, so that the writers need old blobs.
            (n) => runProcess(["write", `copy${n}.txt`, ...team], { ...where, input: "x".repeat(100_000) }),
            { concurrency: 2 }
          ),
          Effect.forEach([1, 2, 3], () => runProcess(["workspaces", "gc", "--store", "store"], where))
        ],
        { concurrency: 2 }
      )
      for (const { code, err } of [...written, ...collected]) assert.strictEqual(code, 0, err)
      done(yield* here.run(["workspaces", "verify", "--store", "store"]))
      assert.strictEqual(
        done(yield* here.run(["ls", ...team])),
        "copy0.txt\ncopy1.txt\ncopy2.txt\ncopy3.txt\ndocs/\nlarge.txt\n"
      )
    })
  )
})

describe("a server of a workspace", () => {
  it.live("serves the workspace to remote clients, which see the commits of other processes", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({})
      const at = (...args: ReadonlyArray<string>) => runProcess(args, { cwd })
      assert.strictEqual((yield* at("workspaces", "create", "team", "--store", "store")).code, 0)
      const { url } = yield* serve(["--listen", "127.0.0.1:0", ...team], { cwd })
      assert.strictEqual((yield* at("write", "remote.md", "--text", "r", "--root", url)).code, 0)
      assert.strictEqual((yield* at("write", "local.md", "--text", "l", ...team)).code, 0)
      // A change through the server begins with the newest commit.
      assert.strictEqual((yield* at("write", "later.md", "--text", "x", "--root", url)).code, 0)
      const { out } = yield* at("ls", "--root", url)
      assert.strictEqual(out, "later.md\nlocal.md\nremote.md\n")
    })
  )
})

describe("an agent", () => {
  it.live("works on a workspace through MCP, with the snapshots of the workspace", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({})
      const at = (...args: ReadonlyArray<string>) => runProcess(args, { cwd })
      assert.strictEqual((yield* at("workspaces", "create", "team", "--store", "store")).code, 0)
      yield* Effect.promise(async () => {
        const client = new Client({ name: "test", version: "1" })
        const env = { PATH: process.env["PATH"]!, HOME: join(cwd, ".home") }
        await client.connect(
          new StdioClientTransport({
            command: process.execPath,
            args: [commandLine(), "mcp", ...team],
            cwd,
            env,
            stderr: "ignore"
          })
        )
        const { tools } = await client.listTools()
        const names = tools.map(({ name }) => name)
        for (const name of ["write_file", "snapshot", "restore"]) assert.include(names, name)
        await client.callTool({ name: "write_file", arguments: { path: "agent.md", content: "by an agent\n" } })
        await client.callTool({ name: "snapshot", arguments: { tag: "kept" } })
        await client.callTool({ name: "rm", arguments: { path: "agent.md" } })
        await client.close()
      })
      assert.strictEqual((yield* at("ls", ...team)).out, "")
      assert.match((yield* at("workspaces", "log", "team", "--store", "store")).out, / snapshot kept {2}/)
      assert.strictEqual((yield* at("restore", "kept", ...team)).code, 0)
      assert.strictEqual((yield* at("cat", "agent.md", ...team)).out, "by an agent\n")
      assert.isFalse(Fs.existsSync(join(cwd, ".home/.local/state/fs-algebra/snapshots")))
    })
  )
})
