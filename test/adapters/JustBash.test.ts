import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Bash, type IFileSystem, InMemoryFs, MountableFs } from "just-bash"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import * as JustBash from "../../src/adapters/JustBash.ts"
import { Decorator, Filesystem, InMemory, PosixHost, Snapshots } from "../../src/index.ts"
import { runs } from "../runs.ts"
import { inMemory } from "../scratch.ts"

const memory = InMemory.layer({ absoluteLinks: "root" })

/** Returns an InMemoryFs into which just-bash does not put its own /bin, /dev and /proc. */
const bare = (): IFileSystem => {
  const fs = new InMemoryFs()
  return new Proxy(fs, {
    get: (target, key) => {
      if (key === "mkdirSync" || key === "writeFileSync") return undefined
      const value: unknown = Reflect.get(target, key)
      return typeof value === "function" ? (value.bind(target) as unknown) : value
    }
  })
}

/** Returns each entry below a directory: a link with its target, a directory with its mode, a file with mode and bytes. */
const picture = async (fs: IFileSystem, directory = "/"): Promise<Record<string, string>> => {
  const found: Record<string, string> = {}
  for (const name of await fs.readdir(directory)) {
    const path = fs.resolvePath(directory, name)
    const { isDirectory, isSymbolicLink, mode } = await fs.lstat(path)
    if (isSymbolicLink) found[path] = `link ${await fs.readlink(path)}`
    else if (isDirectory) Object.assign(found, { [path]: `directory ${mode.toString(8)}` }, await picture(fs, path))
    else found[path] = `file ${mode.toString(8)} ${await fs.readFile(path, "hex")}`
  }
  return found
}

interface Answer {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number
}

const execute = async (fs: IFileSystem, commands: ReadonlyArray<string>) => {
  const bash = new Bash({ fs, cwd: "/" })
  const answers: Array<readonly [command: string, answer: Answer]> = []
  for (const command of commands) {
    const { exitCode, stderr, stdout } = await bash.exec(command)
    answers.push([command, { stdout, stderr, exitCode }])
  }
  return { answers, files: await picture(fs) }
}

const makeRandom = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

/**
 * Makes a random session. Its commands avoid the cases in which InMemoryFs contradicts POSIX. In InMemoryFs a write replaces
 * a link and resets the mode of a file. A move merges directories, or replaces a directory by a file. InMemoryFs creates
 * entries below a file, and cannot list a directory behind a link.
 */
const session = (seed: number): ReadonlyArray<string> => {
  const next = makeRandom(seed)
  const pick = <A>(all: ReadonlyArray<A>): A => all[Math.floor(next() * all.length)]!
  const directory = () => pick(["d", "d/e", "g", ".", "d/e/h", "new name"])
  const file = () => `'${directory()}/${pick(["a", "b.txt", "c c", "ü.md", ".hidden"])}'`
  const link = () => pick(["l1", "l2", "l3"])
  const word = () => pick(["tea", "bread", "x y", "äöü", "", "tea\\nbread\\n", "\\x00\\xff\\x01", "1\\n2\\n3"])
  const guarded = (command: (to: string) => string) => {
    const to = directory()
    return `[ -d '${to}' ] && ${command(to)}`
  }
  const commands: ReadonlyArray<() => string> = [
    () => `mkdir '${directory()}'`,
    () => `mkdir -p '${directory()}'`,
    () => `rmdir '${pick(["d", "d/e", "g", "d/e/h", "new name"])}'`,
    () => `printf '${word()}' > ${file()}`,
    () => `printf '${word()}' >> ${file()}`,
    () => `echo '${word()}' | tee ${file()} | wc -c`,
    () => `cat ${file()} ${file()}`,
    () => `head -n 2 ${file()}; tail -c 3 ${file()}`,
    () => `od -c ${file()}`,
    () => `sed -i s/tea/coffee/ ${file()}`,
    () => `rm ${file()}`,
    () => `rm -f ${file()} ${link()}`,
    () => `rm -r '${pick(["d", "g", "d/e"])}'`,
    () => `cp ${file()} ${file()}`,
    () => guarded((to) => `cp ${file()} '${to}'`),
    () => `cp -r '${directory()}' copy; ls copy`,
    () => `mv ${file()} ${file()}`,
    () => guarded((to) => `mv ${file()} '${to}'`),
    () => `mv d moved && ls -a moved && mv moved d`,
    () => `ln -s ${pick(["d/a", "/d/b.txt", "g", "missing", "./d", "new name/../d/e"])} ${link()}`,
    () => `readlink ${link()}; cat ${link()}`,
    () => `mv ${link()} ${link()}`,
    () => `realpath '${directory()}' 2>&1 | head -1; cd ${link()} && pwd -P`,
    () => `rm -f m; printf '${word()}' > m; chmod ${pick(["600", "755", "444", "u+x"])} m; stat -c '%a %s %F' m ${file()}`,
    () => `touch ${file()}; touch -d '2021-02-03 04:05:06' ${file()} && stat -c '%y' ${file()}`,
    () => `find . -type f | sort; find d -name '*.txt'`,
    () => `find . -type l; find . -type d -empty`,
    () => `ls -a '${directory()}'; ls -R | head -20`,
    () => `ls ${directory() === "." ? "*" : "d/*"}; echo **/*.txt d/?`,
    () => `grep -rn tea d g | sort; grep -c '' ${file()}`,
    () =>
      `test -e ${file()}; echo $?; test -L ${link()}; echo $?; test -d '${directory()}'; echo $?; test -s ${file()}; echo $?`,
    () => `test ${file()} -ef ${file()}; echo $?; test ${file()} -ef ./${link()}; echo $?`,
    () => `cd '${directory()}' && cat a; cd ..; pwd; cd /`,
    () => `while read -r line; do echo "<$line>"; done < ${file()}`,
    () => `sort ${file()} | uniq -c > ${file()}; wc -l ${file()}`,
    () => `tar -cf t.tar d && tar -tf t.tar | sort; rm -f t.tar`,
    () => `gzip -c ${file()} | gunzip -c | md5sum; sha256sum ${file()}`,
    () => `du -a d | sort; diff ${file()} ${file()}`,
    () => `for f in d/*; do [ -f "$f" ] && echo "$f: $(wc -c < "$f")"; done`
  ]
  return Array.from({ length: 25 }, () => pick(commands)())
}

const sessions = Array.from({ length: runs(80) }, (_, seed) => [seed, session(seed)] as const)

const over = <A, E, R>(layer: Layer.Layer<Filesystem.Filesystem, E, R>, use: (fs: IFileSystem) => Promise<A>) =>
  Effect.provide(
    Effect.flatMap(JustBash.make(), (fs) => Effect.promise(() => use(fs))),
    layer,
    { local: true }
  )

const scratch = () => PosixHost.layer({ root: mkdtempSync(join(inMemory(), "bash-")) })

/** Returns the value of a call, or the code at the start of its error's message. */
const outcome = (call: () => Promise<unknown>): Promise<unknown> =>
  call().then(
    (value) => ({ value }),
    (error: Error) => ({ code: /^E[A-Z]+(?=: .+)/.exec(error.message)?.[0] ?? String(error) })
  )

const plant = async (fs: IFileSystem) => {
  await fs.mkdir("/d/e", { recursive: true })
  await fs.mkdir("/empty")
  await fs.writeFile("/d/a", "one\n")
  await fs.writeFile("/d/e/b", Uint8Array.of(0, 255, 10))
  await fs.symlink("a", "/d/link")
  await fs.symlink("/d/e", "/way")
  await fs.symlink("nowhere", "/broken")
  await fs.symlink("loop", "/loop")
}

type Calls = ReadonlyArray<readonly [title: string, call: (fs: IFileSystem) => Promise<unknown>]>

const time = new Date("2021-02-03T04:05:06Z")

const calls: Calls = [
  ["readFile", (fs) => fs.readFile("/d/a")],
  ["readFile with an inner ..", (fs) => fs.readFile("//d/./e/../../d/a/")],
  ["readFile above the root", (fs) => fs.readFile("/../../d/a")],
  ["readFile of a relative path", (fs) => fs.readFile("d/a")],
  ["readFile through links", (fs) => fs.readFile("/way/b", "hex")],
  ["readFile as base64", (fs) => fs.readFile("/d/e/b", { encoding: "base64" })],
  ["readFile as latin1", (fs) => fs.readFile("/d/e/b", "latin1")],
  ["readFile of bytes that are not UTF-8", (fs) => fs.readFile("/d/e/b")],
  ["readFile without an encoding", (fs) => fs.readFile("/d/a", { encoding: null })],
  ["readFile of a directory", (fs) => fs.readFile("/d")],
  ["readFile of a missing file", (fs) => fs.readFile("/none")],
  ["readFile of a broken link", (fs) => fs.readFile("/broken")],
  ["readFile of a loop", (fs) => fs.readFile("/loop")],
  ["readFile with a NUL", (fs) => fs.readFile("/d/a\0b")],
  ["readFileBuffer", (fs) => fs.readFileBuffer("/d/e/b").then((bytes) => [...bytes])],
  ["readFileBytes", (fs) => fs.readFileBytes!("/d/e/b")],
  ["writeFile in missing directories", (fs) => fs.writeFile("/x/y/z", "1").then(() => fs.readFile("/x/y/z"))],
  ["writeFile in hex", (fs) => fs.writeFile("/x", "00ff", "hex").then(() => fs.readFile("/x", "hex"))],
  ["writeFile in base64", (fs) => fs.writeFile("/x", "aGk", { encoding: "base64" }).then(() => fs.readFile("/x"))],
  ["writeFile in latin1", (fs) => fs.writeFile("/x", "\xff", "binary").then(() => fs.readFile("/x", "hex"))],
  ["writeFile in ASCII", (fs) => fs.writeFile("/x", "é", "ascii").then(() => fs.readFile("/x", "ascii"))],
  ["appendFile", (fs) => fs.appendFile("/d/a", "two").then(() => fs.readFile("/d/a"))],
  ["appendFile to a missing file", (fs) => fs.appendFile("/x/y", "two").then(() => fs.readFile("/x/y"))],
  ["appendFile to a directory", (fs) => fs.appendFile("/d", "two")],
  ["exists", (fs) => fs.exists("/d/link")],
  ["exists of a broken link", (fs) => fs.exists("/broken")],
  ["exists with a NUL", (fs) => fs.exists("/d\0")],
  ["exists of a loop", (fs) => fs.exists("/loop/a")],
  ["stat of a file", (fs) => fs.stat("/d/link").then(({ identity: _, mtime: __, ...stat }) => stat)],
  ["stat of a directory", (fs) => fs.stat("/way").then(({ identity: _, mtime: __, ...stat }) => stat)],
  ["stat of a broken link", (fs) => fs.stat("/broken")],
  ["stat of the root", (fs) => fs.stat("/").then(({ isDirectory }) => isDirectory)],
  ["stat of one file by two names", async (fs) => (await fs.stat("/way/b")).identity === (await fs.stat("/d/e/b")).identity],
  ["stat of two files", async (fs) => (await fs.stat("/d/a")).identity === (await fs.stat("/d/e/b")).identity],
  ["lstat of a link", (fs) => fs.lstat("/d/link").then(({ identity: _, mtime: __, ...stat }) => stat)],
  ["lstat of a missing file", (fs) => fs.lstat("/none")],
  ["mkdir", (fs) => fs.mkdir("/d/new").then(() => fs.readdir("/d/new"))],
  ["mkdir of an existing directory", (fs) => fs.mkdir("/d")],
  ["mkdir of the root", (fs) => fs.mkdir("/")],
  ["mkdir over a file", (fs) => fs.mkdir("/d/a")],
  ["mkdir of parents over a file", (fs) => fs.mkdir("/d/a", { recursive: true })],
  ["mkdir without parents", (fs) => fs.mkdir("/x/y")],
  ["mkdir of an existing directory with parents", (fs) => fs.mkdir("/d/e", { recursive: true })],
  ["readdir", (fs) => fs.readdir("/d")],
  ["readdir of the root", (fs) => fs.readdir("/")],
  ["readdir through a link", (fs) => fs.readdir("/way")],
  ["readdir of a file", (fs) => fs.readdir("/d/a")],
  ["readdir of a missing directory", (fs) => fs.readdir("/none")],
  ["readdir with kinds", (fs) => fs.readdirWithFileTypes!("/d")],
  ["rm of a file", (fs) => fs.rm("/d/a").then(() => fs.readdir("/d"))],
  ["rm of a link", (fs) => fs.rm("/way").then(() => fs.readdir("/d/e"))],
  ["rm of a missing file", (fs) => fs.rm("/none")],
  ["rm of a missing file with force", (fs) => fs.rm("/none/deep", { force: true })],
  ["rm below a file with force", (fs) => fs.rm("/d/a/x", { force: true })],
  ["rm of an empty directory", (fs) => fs.rm("/empty").then(() => fs.exists("/empty"))],
  ["rm of a full directory", (fs) => fs.rm("/d")],
  ["rm of a tree", (fs) => fs.rm("/d", { recursive: true }).then(() => fs.readdir("/"))],
  ["cp of a file", (fs) => fs.cp("/d/a", "/new/b").then(() => fs.readFile("/new/b"))],
  ["cp over a file", (fs) => fs.cp("/d/a", "/d/e/b").then(() => fs.readFile("/d/e/b"))],
  ["cp onto itself", (fs) => fs.cp("/d/a", "/d/a").then(() => fs.readFile("/d/a"))],
  ["cp of a link", (fs) => fs.cp("/d/link", "/l").then(() => fs.readlink("/l"))],
  ["cp of a missing file", (fs) => fs.cp("/none", "/x")],
  ["cp of a directory without recursive", (fs) => fs.cp("/d", "/x")],
  ["cp of a directory", (fs) => fs.cp("/d", "/x", { recursive: true }).then(() => picture(fs, "/x"))],
  [
    "cp of a directory into another",
    (fs) =>
      fs
        .cp("/d", "/x", { recursive: true })
        .then(() => fs.cp("/empty", "/x", { recursive: true }))
        .then(() => picture(fs, "/x"))
  ],
  [
    "cp that merges and replaces",
    async (fs) => {
      await fs.mkdir("/x/e", { recursive: true })
      await fs.writeFile("/x/e/b", "old")
      await fs.writeFile("/x/own", "own")
      await fs.cp("/d", "/x", { recursive: true })
      return picture(fs, "/x")
    }
  ],
  ["cp of a directory into itself", (fs) => fs.cp("/d", "/d/e/f", { recursive: true })],
  ["mv of a file", (fs) => fs.mv("/d/a", "/new/a").then(() => picture(fs, "/"))],
  ["mv over a file", (fs) => fs.mv("/d/a", "/d/e/b").then(() => fs.readFile("/d/e/b"))],
  ["mv onto itself", (fs) => fs.mv("/d/a", "/d/./a").then(() => fs.readFile("/d/a"))],
  ["mv of a directory", (fs) => fs.mv("/d", "/x").then(() => picture(fs, "/"))],
  ["mv over an empty directory", (fs) => fs.mv("/d", "/empty").then(() => picture(fs, "/"))],
  ["mv into itself", (fs) => fs.mv("/d", "/d/e/x")],
  ["mv of a missing file", (fs) => fs.mv("/none", "/x")],
  ["mv of a link", (fs) => fs.mv("/broken", "/x").then(() => fs.readlink("/x"))],
  [
    "chmod",
    (fs) =>
      fs
        .chmod("/d/a", 0o640)
        .then(() => fs.stat("/d/a"))
        .then(({ mode }) => mode)
  ],
  ["chmod of a missing file", (fs) => fs.chmod("/none", 0o640)],
  ["symlink over a file", (fs) => fs.symlink("x", "/d/a")],
  ["symlink in a missing directory", (fs) => fs.symlink("x", "/new/l").then(() => fs.readlink("/new/l"))],
  ["link of a missing file", (fs) => fs.link("/none", "/x")],
  ["link over a file", (fs) => fs.link("/d/a", "/d/e/b")],
  ["link of a directory", (fs) => fs.link("/d", "/x")],
  ["readlink", (fs) => fs.readlink("/way")],
  ["readlink of a file", (fs) => fs.readlink("/d/a")],
  ["readlink of a missing file", (fs) => fs.readlink("/none")],
  ["realpath", (fs) => fs.realpath("/way/../way/b")],
  ["realpath of the root", (fs) => fs.realpath("/")],
  ["realpath of a broken link", (fs) => fs.realpath("/broken")],
  [
    "utimes",
    (fs) =>
      fs
        .utimes("/d/link", time, time)
        .then(() => fs.stat("/d/a"))
        .then(({ mtime }) => mtime)
  ],
  ["utimes of a missing file", (fs) => fs.utimes("/none", time, time)],
  [
    "resolvePath",
    async (fs) => ["a", "../b", "/c/./d/", "", "..", "../../..", "a//b"].map((path) => fs.resolvePath("/x/y", path))
  ]
]

/** Calls that the adapter refuses, with the codes of the errors. */
const refused: ReadonlyArray<readonly [title: string, code: string, call: (fs: IFileSystem) => Promise<unknown>]> = [
  ["an encoding that just-bash does not have", "EINVAL", (fs) => fs.readFile("/d/a", "utf16le" as never)],
  ["a text in an unknown encoding", "EINVAL", (fs) => fs.writeFile("/d/a", "x", "utf16le" as never)],
  ["half a byte in hex", "EINVAL", (fs) => fs.writeFile("/d/a", "616", "hex")],
  ["a text that is not hex", "EINVAL", (fs) => fs.writeFile("/d/a", "zz", "hex")],
  ["a text that is not base64", "EINVAL", (fs) => fs.writeFile("/d/a", "a$b", "base64")],
  ["a content that is neither text nor bytes", "EINVAL", (fs) => fs.writeFile("/d/a", { length: 3 } as never)],
  ["a path that is not a string", "EINVAL", (fs) => fs.writeFile(7 as never, "x")],
  ["a second path that is not a string", "EINVAL", (fs) => fs.cp("/d/a", null as never)],
  ["a name with a control character", "EINVAL", (fs) => fs.writeFile("/d/a\u0001", "x")],
  ["a name of a temporary file of this library", "EINVAL", (fs) => fs.writeFile("/.~fsa-1.tmp", "x")],
  ["a name that is too long", "ENAMETOOLONG", (fs) => fs.writeFile(`/${"n".repeat(300)}`, "x")],
  ["a target of a link that leads out", "EACCES", (fs) => fs.symlink("../../etc/passwd", "/d/out")],
  ["a mode with the set-user-ID bit", "EINVAL", (fs) => fs.chmod("/d/a", 0o4755)],
  ["a mode that is not a number", "EINVAL", (fs) => fs.chmod("/d/a", undefined as never)],
  ["a time that is not a time", "EINVAL", (fs) => fs.utimes("/d/a", time, new Date(Number.NaN))],
  ["a hard link", "EPERM", (fs) => fs.link("/d/a", "/d/b")],
  ["a write to a directory", "EISDIR", (fs) => fs.writeFile("/d", "x")],
  ["a write below a file", "ENOTDIR", (fs) => fs.writeFile("/d/a/b", "x")],
  ["a removal of the root", "EBUSY", (fs) => fs.rm("/", { recursive: true, force: true })],
  ["a move over a directory with entries", "ENOTEMPTY", (fs) => fs.mv("/empty", "/d")],
  ["a copy into itself through a link", "EINVAL", (fs) => fs.cp("/d", "/way/..//way", { recursive: true })]
]

describe("JustBash", () => {
  it.effect("random sessions of bash have the same output and files as over InMemoryFs", () =>
    Effect.gen(function* () {
      for (const [seed, commands] of sessions) {
        const expected = yield* Effect.promise(() => execute(bare(), commands))
        const actual = yield* over(memory, (fs) => execute(fs, commands))
        assert.deepStrictEqual(actual, expected, `session ${seed}`)
      }
    })
  )

  it.effect("random sessions of bash have the same output and files on a host as in memory", () =>
    Effect.gen(function* () {
      for (const [seed, commands] of sessions.slice(0, sessions.length / 4)) {
        const here = commands.filter((command) => !command.startsWith("ln -s /"))
        const expected = yield* over(memory, (fs) => execute(fs, here))
        assert.deepStrictEqual(yield* over(scratch(), (fs) => execute(fs, here)), expected, `session ${seed}`)
      }
    })
  )

  for (const [title, call] of calls) {
    it.effect(`${title} has the result of InMemoryFs`, () =>
      Effect.gen(function* () {
        const use = (fs: IFileSystem) => plant(fs).then(() => outcome(() => call(fs)))
        assert.deepStrictEqual(yield* over(memory, use), yield* Effect.promise(() => use(bare())))
      })
    )
  }

  for (const [title, code, call] of refused) {
    it.effect(`${title} fails with ${code} and changes nothing`, () =>
      over(memory, async (fs) => {
        await plant(fs)
        const before = await picture(fs)
        const error: Error & { code?: string } = await call(fs).then(
          () => assert.fail("the call succeeded"),
          (error: Error) => error
        )
        assert.strictEqual(error.code, code)
        assert.isTrue(error.message.startsWith(`${code}: `), error.message)
        assert.deepStrictEqual(await picture(fs), before)
      })
    )
  }

  it.effect("restoring a snapshot undoes the changes of a script", () =>
    Effect.gen(function* () {
      const snapshots = yield* Snapshots.Snapshots
      const fs = yield* JustBash.make()
      const bash = new Bash({ fs, cwd: "/" })
      const exec = (script: string) => Effect.promise(() => bash.exec(script))
      yield* exec("mkdir -p src && echo one > src/a && ln -s a src/l && chmod 600 src/a")
      const before = yield* Effect.promise(() => picture(fs))
      const snapshot = yield* snapshots.snapshot({ tag: "before" })
      const { exitCode } = yield* exec("rm -r src && echo two > b && mkdir -p x/y")
      assert.strictEqual(exitCode, 0)
      assert.deepStrictEqual(Object.keys(yield* Effect.promise(() => picture(fs))), ["/b", "/x", "/x/y"])
      yield* snapshots.restore(snapshot)
      assert.deepStrictEqual(yield* Effect.promise(() => picture(fs)), before)
      assert.strictEqual((yield* exec("cat src/l")).stdout, "one\n")
    }).pipe(Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(memory))))
  )

  it.effect("a write beyond the quota fails with ENOSPC and keeps the old file", () =>
    over(memory.pipe(Filesystem.decorate(Decorator.quota({ maxBytes: 10 }))), async (fs) => {
      await fs.writeFile("/a", "old")
      assert.deepStrictEqual(await outcome(() => fs.writeFile("/a", "x".repeat(20))), { code: "ENOSPC" })
      assert.deepStrictEqual(await outcome(() => fs.appendFile("/a", "x".repeat(20))), { code: "ENOSPC" })
      assert.strictEqual(await fs.readFile("/a"), "old")
      const { exitCode, stderr } = await new Bash({ fs, cwd: "/" }).exec("cp a b && cp a c && cp a d; cat a")
      assert.deepStrictEqual(
        [exitCode, stderr.split("\n")[0]],
        [0, "cp: cannot copy 'a': ENOSPC: no space left on device, cp '/a' -> '/d'"]
      )
    })
  )

  it.effect("a read-only filesystem refuses each change with EROFS", () =>
    over(InMemory.layer({ tree: { a: "one", d: {} }, readOnly: true }), async (fs) => {
      const changes = [
        () => fs.writeFile("/a", "x"),
        () => fs.appendFile("/a", "x"),
        () => fs.mkdir("/x"),
        () => fs.rm("/a"),
        () => fs.cp("/a", "/b"),
        () => fs.mv("/a", "/b"),
        () => fs.chmod("/a", 0o600),
        () => fs.utimes("/a", time, time),
        () => fs.symlink("a", "/l")
      ]
      for (const change of changes) assert.deepStrictEqual(await outcome(change), { code: "EROFS" })
      assert.strictEqual(await fs.readFile("/a"), "one")
    })
  )

  it.effect("bash copies and moves files between the filesystem and the MountableFs in which it is mounted", () =>
    over(memory, async (fs) => {
      const mounted = new MountableFs({ base: new InMemoryFs(), mounts: [{ mountPoint: "/work", filesystem: fs }] })
      const bash = new Bash({ fs: mounted, cwd: "/work" })
      const { stdout } = await bash.exec("echo one > a; cat a > b; cp a ../tmp.txt; mv ../tmp.txt c; ls")
      assert.strictEqual(stdout, "a\nb\nc\n")
      assert.deepStrictEqual(await fs.readdir("/"), ["a", "b", "c"])
    })
  )
})
