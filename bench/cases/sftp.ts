/**
 * Files of an SSH server, through its sftp-server over a pipe, beside the program `sftp` with an sftp-server of its own. Both
 * read, search, list or write the same files. Needs Debian's openssh-client and openssh-sftp-server, and has no cases
 * without them.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openOver } from "../../src/backends/sftp/open.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Case } from "../harness.ts"
import { check, effects, times } from "../harness.ts"

const server = "/usr/lib/openssh/sftp-server"
const client = "/usr/bin/sftp"

const mebibyte = 1024 ** 2

interface Ground {
  readonly fs: Algebra
  readonly root: string
  readonly local: string
  /** Runs commands of `sftp`, with the local directory as its own. */
  readonly sftp: (...commands: ReadonlyArray<string>) => void
  readonly close: () => Promise<void>
}

const prepared = async (fill: (root: string) => void): Promise<Ground> => {
  const top = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  const root = join(top, "files")
  const local = join(top, "local")
  mkdirSync(root)
  mkdirSync(local)
  fill(root)
  const dial = Effect.sync(() => {
    const child = spawn(server, [], { stdio: ["pipe", "pipe", "inherit"] })
    return { input: child.stdout, output: child.stdin, close: () => void child.kill("SIGKILL") }
  })
  const scope = Scope.makeUnsafe()
  const port = await Effect.runPromise(
    Scope.provide(
      openOver(dial, { root, durability: "none" }, (root) => root),
      scope
    )
  )
  return {
    fs: make(port),
    root,
    local,
    sftp: (...commands) => {
      const ran = spawnSync(client, ["-q", "-b", "-", "-D", server], {
        cwd: local,
        input: [`cd ${root}`, ...commands].join("\n"),
        encoding: "utf8",
        maxBuffer: 64 * mebibyte
      })
      if (ran.status !== 0) throw new Error(ran.stderr)
    },
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(top, { recursive: true })
    }
  }
}

const files = 1000

const fillSmall = (root: string): void => {
  for (let directory = 0; directory < 10; directory++) {
    mkdirSync(join(root, `d${directory}`))
    for (let file = 0; file < files / 10; file++) {
      writeFileSync(
        join(root, `d${directory}`, `${file}.txt`),
        `${"a line of text\n".repeat(60)}${file === 7 ? "needle\n" : ""}`
      )
    }
  }
}

const count = (directory: string, pattern: string): number =>
  readdirSync(directory, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".txt") && readFileSync(join(directory, name), "utf8").includes(pattern)
  ).length

const fetchAll = ({ local, sftp }: Ground): number => {
  rmSync(join(local, "got"), { recursive: true, force: true })
  mkdirSync(join(local, "got"))
  sftp("get -r . got")
  return count(join(local, "got"), "needle")
}

const readAll = (fs: Algebra) =>
  Effect.gen(function* () {
    const { matches } = yield* fs.glob("**/*.txt")
    return yield* Effect.forEach(matches, ({ path }) => fs.readBytes(path), { concurrency: 32 })
  })

const all: ReadonlyArray<Case> = [
  {
    name: `sftp: grep over ${files} small files`,
    target: "≤ 1 of fetching them with sftp and searching",
    bound: 1,
    figure: "ratio",
    count: 1,
    samples: 7,
    warmups: 1,
    make: async () => {
      const ground = await prepared(fillSmall)
      const found = await Effect.runPromise(ground.fs.grep("needle"))
      check(found.matches.length === 10 && fetchAll(ground) === 10)
      return {
        ours: { name: "Sftp", run: effects(ground.fs.grep("needle")) },
        baseline: { name: "sftp", run: times(() => fetchAll(ground)) },
        close: ground.close
      }
    }
  },
  {
    name: `sftp: read of ${files} small files`,
    target: "≤ 1 of fetching them with sftp",
    bound: 1,
    figure: "ratio",
    count: 1,
    samples: 7,
    warmups: 1,
    make: async () => {
      const ground = await prepared(fillSmall)
      const got = await Effect.runPromise(readAll(ground.fs))
      check(got.length === files && fetchAll(ground) === 10)
      return {
        ours: { name: "Sftp", run: effects(readAll(ground.fs)) },
        baseline: { name: "sftp", run: times(() => fetchAll(ground)) },
        close: ground.close
      }
    }
  },
  {
    name: `sftp: glob over ${files} files`,
    target: "≤ 1.5 of ls with sftp",
    bound: 1.5,
    figure: "ratio",
    count: 1,
    samples: 11,
    make: async () => {
      const ground = await prepared(fillSmall)
      const globbed = ground.fs.glob("**/7.txt")
      const directories = Array.from({ length: 10 }, (_, nth) => `ls -1 d${nth}`)
      check((await Effect.runPromise(globbed)).matches.length === 10)
      return {
        ours: { name: "Sftp", run: effects(globbed) },
        baseline: { name: "sftp", run: times(() => ground.sftp(...directories)) },
        close: ground.close
      }
    }
  },
  {
    name: `sftp: write of ${files} small files`,
    target: "≤ 3 of put with sftp, which replaces in place",
    bound: 3,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const ground = await prepared((root) => mkdirSync(join(root, "to")))
      const bytes = new Uint8Array(1024).fill(97)
      mkdirSync(join(ground.local, "from"))
      for (let nth = 0; nth < files; nth++) writeFileSync(join(ground.local, "from", `${nth}`), bytes)
      const written = Effect.forEach(
        Array.from({ length: files }, (_, nth) => `to/${nth}`),
        (path) => ground.fs.writeBytes(path, bytes),
        { concurrency: 32, discard: true }
      )
      await Effect.runPromise(written)
      check(readdirSync(join(ground.root, "to")).length === files)
      return {
        ours: { name: "Sftp", run: effects(written) },
        baseline: { name: "sftp", run: times(() => ground.sftp("put from/* to/")) },
        close: ground.close
      }
    }
  },
  {
    // A bare client in JavaScript that drops the bytes takes 2 of get. The rest is a copy for the caller, and its collection.
    name: "sftp: stream of 256 MiB",
    target: "≤ 5 of get with sftp",
    bound: 5,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const size = 256 * mebibyte
      const ground = await prepared((root) => writeFileSync(join(root, "big.bin"), Buffer.alloc(size, 97)))
      const read = Stream.runFold(
        ground.fs.stream("big.bin"),
        () => 0,
        (sum, chunk) => sum + chunk.length
      )
      check((await Effect.runPromise(read)) === size)
      return {
        ours: { name: "Sftp", run: effects(read) },
        baseline: { name: "sftp", run: times(() => ground.sftp("get big.bin /dev/null")) },
        close: ground.close
      }
    }
  },
  {
    name: "sftp: write of a stream of 256 MiB",
    target: "≤ 1.5 of put with sftp, which replaces in place",
    bound: 1.5,
    figure: "ratio",
    count: 1,
    samples: 5,
    warmups: 1,
    make: async () => {
      const ground = await prepared((root) => writeFileSync(join(root, "big.bin"), ""))
      const piece = new Uint8Array(mebibyte).fill(97)
      writeFileSync(join(ground.local, "big.bin"), Buffer.alloc(256 * mebibyte, 97))
      const written = Effect.suspend(() =>
        Stream.run(Stream.fromIterable(Array.from({ length: 256 }, () => piece)), ground.fs.sink("big.bin"))
      )
      await Effect.runPromise(written)
      check(statSync(join(ground.root, "big.bin")).size === 256 * mebibyte)
      return {
        ours: { name: "Sftp", run: effects(written) },
        baseline: { name: "sftp", run: times(() => ground.sftp("put big.bin")) },
        close: ground.close
      }
    }
  }
]

export const cases: ReadonlyArray<Case> = existsSync(server) && existsSync(client) ? all : []
