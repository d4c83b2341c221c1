import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { isAbsolute, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"
import { has, needs } from "../../faults/ground.ts"
import { directory, fsck, hasGit } from "./support.ts"

const program = fileURLToPath(new URL("./everything.ts", import.meta.url))

const run = (store: string, env: NodeJS.ProcessEnv, cwd: string): string => {
  const { status, stderr, stdout } = spawnSync(process.execPath, ["--no-warnings", program, store], {
    env,
    cwd,
    encoding: "utf8"
  })
  assert.strictEqual(status, 0, stderr)
  return stdout
}

const clean: NodeJS.ProcessEnv = { PATH: process.env["PATH"] }

interface Trap {
  readonly env: NodeJS.ProcessEnv
  /** Lists the marks that an executed program or a redirected write would leave. */
  readonly caught: () => ReadonlyArray<string>
}

const hooks = [
  "reference-transaction",
  "post-index-change",
  "pre-auto-gc",
  "post-update",
  "update",
  "post-rewrite",
  "pre-commit"
]

/** Sets every file and variable by which a user, a system or another program configures git. */
const trap = (base: string): Trap => {
  const marks = join(base, "marks")
  const home = join(base, "home")
  const bin = join(base, "bin")
  for (const path of [marks, home, bin, join(home, ".config", "git"), join(home, "hooks"), join(home, "template", "hooks")]) {
    Fs.mkdirSync(path, { recursive: true })
  }
  const evil = (path: string): string => {
    Fs.writeFileSync(path, `#!/bin/sh\necho "$0 $@" >> ${marks}/executed\n`, { mode: 0o755 })
    return path
  }
  const script = evil(join(home, "evil"))
  for (const hook of hooks) {
    evil(join(home, "hooks", hook))
    evil(join(home, "template", "hooks", hook))
  }
  for (const name of ["git-pack-objects", "git-cat-file", "git-rev-list", "git-evil"]) evil(join(bin, name))
  const settings: ReadonlyArray<readonly [key: string, value: string]> = [
    ["core.hooksPath", join(home, "hooks")],
    ["core.fsmonitor", script],
    ["core.pager", script],
    ["core.editor", script],
    ["core.askPass", script],
    ["core.sshCommand", script],
    ["core.gitProxy", script],
    ["core.alternateRefsCommand", script],
    ["core.attributesFile", join(home, "attributes")],
    ["core.excludesFile", join(home, "ignore")],
    ["core.autocrlf", "true"],
    ["core.worktree", home],
    ["commit.gpgsign", "true"],
    ["gpg.program", script],
    ["diff.external", script],
    ["filter.evil.clean", script],
    ["filter.evil.smudge", script],
    ["diff.evil.textconv", script],
    ["init.templateDir", join(home, "template")],
    ["uploadpack.packObjectsHook", script],
    ["credential.helper", script],
    ["trace2.eventTarget", join(marks, "trace2-config")],
    ["alias.cat-file", `!${script}`],
    ["pager.for-each-ref", "true"],
    ["pager.rev-list", "true"],
    ["gc.auto", "1"],
    ["gc.pruneExpire", "now"],
    ["pack.compression", "0"],
    ["pack.packSizeLimit", "1m"],
    ["repack.writeBitmaps", "true"],
    ["transfer.hideRefs", "refs/snapshots"]
  ]
  const config = join(home, ".gitconfig")
  for (const [key, value] of settings) execFileSync("git", ["config", "--file", config, key, value], { env: clean })
  Fs.copyFileSync(config, join(home, ".config", "git", "config"))
  Fs.writeFileSync(join(home, "attributes"), "* text eol=crlf filter=evil diff=evil -delta\n")
  const elsewhere = join(base, "elsewhere")
  execFileSync("git", ["init", "--quiet", "--bare", elsewhere], { env: clean })
  const env: NodeJS.ProcessEnv = {
    ...clean,
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    GIT_CONFIG_GLOBAL: config,
    GIT_CONFIG_SYSTEM: config,
    GIT_CONFIG: config,
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], i) => [
        [`GIT_CONFIG_KEY_${i}`, key],
        [`GIT_CONFIG_VALUE_${i}`, value]
      ])
    ),
    GIT_CONFIG_PARAMETERS: `'core.hooksPath'='${join(home, "hooks")}'`,
    GIT_DIR: elsewhere,
    GIT_COMMON_DIR: elsewhere,
    GIT_WORK_TREE: home,
    GIT_INDEX_FILE: join(marks, "index"),
    GIT_OBJECT_DIRECTORY: join(elsewhere, "objects"),
    GIT_ALTERNATE_OBJECT_DIRECTORIES: join(elsewhere, "objects"),
    GIT_NAMESPACE: "evil",
    GIT_SHALLOW_FILE: join(home, "evil"),
    GIT_GRAFT_FILE: join(home, "evil"),
    GIT_REPLACE_REF_BASE: "refs/snapshots",
    GIT_DEFAULT_HASH: "sha256",
    GIT_DEFAULT_REF_FORMAT: "reftable",
    GIT_TEMPLATE_DIR: join(home, "template"),
    GIT_EXEC_PATH: bin,
    GIT_EXTERNAL_DIFF: script,
    GIT_PAGER: script,
    PAGER: script,
    GIT_EDITOR: script,
    EDITOR: script,
    GIT_ASKPASS: script,
    SSH_ASKPASS: script,
    GIT_SSH: script,
    GIT_SSH_COMMAND: script,
    GIT_PROXY_COMMAND: script,
    GIT_ATTR_SOURCE: "HEAD",
    GIT_QUARANTINE_PATH: marks,
    GIT_FLUSH: "0",
    LANG: "de_DE.UTF-8",
    LC_MESSAGES: "de_DE.UTF-8",
    LANGUAGE: "de",
    TMPDIR: marks
  }
  for (const name of [
    "TRACE",
    "TRACE_SETUP",
    "TRACE_PACK_ACCESS",
    "TRACE_PERFORMANCE",
    "TRACE2",
    "TRACE2_EVENT",
    "TRACE2_PERF"
  ]) {
    env[`GIT_${name}`] = join(marks, name)
  }
  return { env, caught: () => Fs.readdirSync(marks) }
}

const stripped = (env: NodeJS.ProcessEnv, ...names: ReadonlyArray<string>): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)))

describe.runIf(hasGit)("a hostile configuration", () => {
  it.effect("executes nothing, writes nothing and changes nothing", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const { caught, env } = trap(base)
      const [expected, store] = [join(base, "expected"), join(base, "store")]
      const answer = run(expected, clean, base)
      const elsewhere = Fs.readdirSync(join(base, "elsewhere"), { recursive: true })
      assert.strictEqual(run(store, env, join(base, "home")), answer)
      assert.deepStrictEqual(caught(), [])
      assert.deepStrictEqual(Fs.readdirSync(join(base, "elsewhere"), { recursive: true }), elsewhere)
      assert.deepStrictEqual(Fs.readFileSync(join(store, "config")), Fs.readFileSync(join(expected, "config")))
      assert.deepStrictEqual(
        Fs.readdirSync(store, { recursive: true }).map((name) => String(name).replace(/pack-.*\./, "pack.")),
        Fs.readdirSync(expected, { recursive: true }).map((name) => String(name).replace(/pack-.*\./, "pack."))
      )
      assert.strictEqual(fsck(store), "")
      const { list, outcome, packs } = JSON.parse(answer)
      assert.deepStrictEqual([list.length, outcome, packs], [2, "done", 1])
    })
  )

  it.effect("executes programs if git runs without the protection of this library", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const { caught, env } = trap(base)
      const store = join(base, "store")
      const { list } = JSON.parse(run(store, clean, base))
      const plain = stripped(
        env,
        "GIT_EXEC_PATH",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_GRAFT_FILE"
      )
      spawnSync("git", ["--git-dir", store, "update-ref", "refs/heads/people", list[0].commit], { env: plain, cwd: base })
      assert.includeMembers([...caught()], ["executed", "TRACE"])
    })
  )

  it.effect("executes nothing from the store's own hooks", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const { caught } = trap(base)
      const store = join(base, "store")
      const answer = run(store, clean, base)
      for (const { id } of JSON.parse(answer).list)
        execFileSync("git", ["--git-dir", store, "update-ref", "-d", `refs/snapshots/${id}`])
      Fs.renameSync(join(base, "home", "hooks"), join(store, "hooks"))
      Fs.mkdirSync(join(store, "info"), { recursive: true })
      Fs.copyFileSync(join(base, "home", "attributes"), join(store, "info", "attributes"))
      const again = JSON.parse(run(store, clean, base))
      assert.deepStrictEqual(again.list, JSON.parse(answer).list)
      assert.deepStrictEqual(caught(), [])
    })
  )
})

/** System calls that create, change or remove a path. */
const changing = [
  "creat",
  "rename",
  "renameat",
  "renameat2",
  "unlink",
  "unlinkat",
  "rmdir",
  "mkdir",
  "mkdirat",
  "mknod",
  "mknodat",
  "link",
  "linkat",
  "symlink",
  "symlinkat",
  "truncate",
  "chmod",
  "fchmodat",
  "chown",
  "lchown",
  "fchownat",
  "utimensat",
  "setxattr"
]

const canTrace = needs("system calls of git", () => has("strace"), "apt-get install strace")

describe.runIf(hasGit && canTrace)("the system calls of all processes", () => {
  it.effect("write only in the store, and execute only git and node", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const { env } = trap(base)
      const [store, log] = [join(base, "store"), join(base, "log")]
      const calls = ["execve", "open", "openat", "openat2", ...changing].map((name) => `?${name}`).join(",")
      const args = [
        "-f",
        "-qq",
        "-s",
        "4096",
        "-o",
        log,
        "-e",
        `trace=${calls}`,
        process.execPath,
        "--no-warnings",
        program,
        store
      ]
      const { status, stderr } = spawnSync("strace", args, { env, cwd: base, encoding: "utf8" })
      assert.strictEqual(status, 0, stderr)
      const executed = new Set<string>()
      let writes = 0
      for (const line of Fs.readFileSync(log, "utf8").split("\n")) {
        const [, call, rest] = /^\d+ +(\w+)\((.*)$/.exec(line) ?? []
        if (call === undefined || rest === undefined || /= -1 E/.test(rest)) continue
        const paths = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((match) => match[1]!)
        if (call === "execve") executed.add(paths[0]!)
        else if (!call.startsWith("open") || /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC/.test(rest)) {
          for (const path of paths) {
            if (/^\/(?:dev\/(?:null|tty)$|proc\/)/.test(path)) continue
            writes++
            // git runs in the store and uses relative paths.
            const whole = normalize(isAbsolute(path) ? path : join(store, path))
            assert.isTrue(whole === store || whole.startsWith(`${store}/`), line)
          }
        }
      }
      assert.isAbove(writes, 20)
      const git = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8", env: clean }).trim()
      assert.deepStrictEqual([...executed].sort(), [git, process.execPath].sort())
    })
  )
})
