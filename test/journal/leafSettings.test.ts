import { assert, describe, it } from "@effect/vitest"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { DaemonChanged } from "../../src/journal/entries/status.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Settings from "../../src/journal/leaf/settings.ts"
import { host as windowsHost, root } from "../backends/windows/windowsHost.ts"
import {
  asked,
  freshDirectory,
  id,
  journaled,
  list,
  many,
  memory,
  quiet,
  read,
  remove,
  started,
  stat,
  write
} from "./leafBench.ts"

const kindOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)

/** Runs an effect with a leaf. */
const under = <A, E, R>(leaf: Layer.Layer<never, unknown, Journal.Journal>, effect: Effect.Effect<A, E, R>) =>
  journaled(Effect.scoped(Effect.provide(effect, leaf)))

const ask = (intent: Entry.Efferent) => Effect.flatMap(asked, (asked) => asked.ask(intent))

const failure = (leaf: Layer.Layer<never, unknown, Journal.Journal>) =>
  Effect.map(
    Effect.flip(Effect.scoped(Layer.build(Layer.provide(leaf, Journal.layerMemory)))),
    (error) => error as { readonly _tag: string; readonly argument?: string; readonly message: string }
  )

const common = { allowWrite: true, allowDelete: true, chunkSize: 65_536, streamingThreshold: 1_048_576 }

describe("the settings of the leaves", () => {
  it("have the documented defaults", () => {
    assert.deepStrictEqual(Schema.decodeUnknownSync(Leaf.PosixFS)({ rootPath: "/srv" }), {
      rootPath: "/srv",
      ...common,
      followSymlinks: true,
      preservePermissions: false
    })
    assert.deepStrictEqual(Schema.decodeUnknownSync(Leaf.WindowsFS)({ rootPath: "C:\\Projects\\Sandbox" }), {
      rootPath: "C:\\Projects\\Sandbox",
      ...common,
      useLongPaths: true
    })
    assert.deepStrictEqual(Schema.decodeUnknownSync(Leaf.MockFS)({}), {
      ...common,
      followSymlinks: true,
      caseInsensitive: false
    })
    assert.deepStrictEqual(Schema.decodeUnknownSync(Leaf.S3FS)({ bucket: "reports" }), {
      bucket: "reports",
      keyPrefix: "",
      region: "us-east-1",
      ...common,
      followSymlinks: true,
      preservePermissions: false,
      metadata: false,
      conditional: true
    })
    assert.deepStrictEqual(Schema.decodeUnknownSync(Leaf.SftpFS)({ host: "h", username: "me", rootPath: "files" }), {
      host: "h",
      port: 22,
      username: "me",
      rootPath: "files",
      hostKeys: [],
      ...common,
      followSymlinks: true,
      preservePermissions: false,
      durable: true,
      unsafeReplace: false
    })
  })

  it.effect("make the construction of a leaf fail with the name of a setting that is invalid", () =>
    Effect.gen(function* () {
      const wrong = <Config>(config: Config) => config as never
      for (const [leaf, argument] of [
        [Leaf.posixFS({ rootPath: "relative/path" }), "rootPath"],
        [Leaf.posixFS({ rootPath: "" }), "rootPath"],
        [Leaf.posixFS(wrong({})), "rootPath"],
        [Leaf.posixFS({ rootPath: "/tmp", chunkSize: 0 }), "chunkSize"],
        [Leaf.posixFS({ rootPath: "/tmp", chunkSize: 1.5 }), "chunkSize"],
        [Leaf.posixFS({ rootPath: "/tmp", streamingThreshold: -1 }), "streamingThreshold"],
        [Leaf.posixFS(wrong({ rootPath: "/tmp", allowWrite: "no" })), "allowWrite"],
        [Leaf.posixFS(wrong({ rootPath: "/tmp", useLongPaths: true })), "useLongPaths"],
        [Leaf.windowsFS({ rootPath: "/tmp" }), "rootPath"],
        [Leaf.windowsFS({ rootPath: "C:relative" }), "rootPath"],
        [Leaf.windowsFS({ rootPath: "C:\\CON" }), "rootPath"],
        [Leaf.windowsFS({ rootPath: "C:\\x", chunkSize: 0 }), "chunkSize"],
        [Leaf.mockFS({ chunkSize: Number.NaN }), "chunkSize"],
        [Leaf.s3FS(wrong({})), "bucket"],
        [Leaf.s3FS({ bucket: "" }), "bucket"],
        [Leaf.s3FS({ bucket: "reports", keyPrefix: "a/../b" }), "prefix"],
        [Leaf.s3FS({ bucket: "reports", endpoint: "http://me:hunter2@host" }), "endpoint"],
        [Leaf.s3FS(wrong({ bucket: "reports", secretAccessKey: "hunter2" })), "secretAccessKey"],
        [Leaf.sftpFS(wrong({ host: "h", username: "me" })), "rootPath"],
        [Leaf.sftpFS({ host: "h", username: "me", rootPath: "" }), "rootPath"],
        [Leaf.sftpFS({ host: "h", username: "me", rootPath: "/", port: 0 }), "port"],
        [Leaf.sftpFS({ host: "me@h", username: "me", rootPath: "/", agent: "/agent" }), "host"],
        [Leaf.sftpFS({ host: "h", username: "me", rootPath: "/" }), "privateKey"],
        [Leaf.sftpFS(wrong({ host: "h", username: "me", rootPath: "/", password: "hunter2" })), "password"],
        [Leaf.sftpFS({ host: "h", username: "me", rootPath: "/", knownHosts: "/k", hostKeys: ["SHA256:x"] }), "hostKeys"],
        [Leaf.mockFS({}, { concurrency: 0 }), "concurrency"],
        [Leaf.mockFS({}, { timeout: 0 }), "timeout"],
        [Leaf.mockFS({}, { idle: -1 }), "idle"],
        [Leaf.mockFS({}, { grace: wrong("soon") }), "grace"],
        [Leaf.mockFS({}, { lockedRetries: -1 }), "lockedRetries"],
        [Leaf.mockFS({}, { prefix: "a/../b" }), "prefix"],
        [Leaf.mockFS({}, { prefix: "a//b" }), "prefix"],
        [Leaf.mockFS({}, { name: "" }), "name"],
        [Leaf.mockFS({}, { resume: wrong("writes") }), "resume"],
        [Leaf.mockFS({}, { names: wrong("dos") }), "names"],
        [Leaf.mockFS({}, { extended: wrong(1) }), "extended"]
      ] as const) {
        const error = yield* failure(leaf)
        assert.deepStrictEqual([error._tag, error.argument], ["InvalidArgument", argument], error.message)
        assert.notInclude(JSON.stringify(error) + error.message, "hunter2")
      }
    })
  )

  it.effect("can be read from environment variables", () =>
    Effect.gen(function* () {
      const env = { LEAF_rootPath: "/srv", LEAF_allowDelete: "false", LEAF_chunkSize: "4096" }
      const provider = ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
      const config = yield* Effect.provide(Config.schema(Leaf.PosixFS, "LEAF"), provider)
      assert.deepStrictEqual(config, {
        rootPath: "/srv",
        ...common,
        allowDelete: false,
        chunkSize: 4096,
        followSymlinks: true,
        preservePermissions: false
      })
    })
  )

  it.effect("make the construction of a leaf fail as the backend does if the root is missing", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* failure(Leaf.posixFS({ rootPath: join(freshDirectory(), "none") })))._tag, "NotFound")
      if (process.platform !== "win32") {
        assert.strictEqual((yield* failure(Leaf.windowsFS({ rootPath: "C:\\x" })))._tag, "Unsupported")
      }
    })
  )
})

describe("a leaf as a layer", () => {
  it.effect("announces its name and its prefix, and serves its directory until the layer closes", () =>
    journaled(
      Effect.gen(function* () {
        const rootPath = freshDirectory()
        for (const layer of [Leaf.posixFS({ rootPath }), Leaf.localFS({ rootPath }, { prefix: "d" })]) {
          yield* Effect.scoped(
            Effect.provide(
              Effect.gen(function* () {
                yield* ask(write("d/f", "x"))
                assert.strictEqual(Fs.readFileSync(join(rootPath, "d/f"), "utf8"), "x")
              }),
              layer
            )
          )
          Fs.rmSync(join(rootPath, "d"), { recursive: true })
        }
        const said = (yield* (yield* asked).all).flatMap((entry) =>
          entry instanceof DaemonChanged ? [`${entry.daemon} ${entry.prefix} ${entry.status}`] : []
        )
        const name = process.platform === "win32" ? "WindowsFS" : "PosixFS"
        assert.deepStrictEqual(said, [
          "PosixFS . Running",
          "PosixFS . Completed",
          `${name}:d d Running`,
          `${name}:d d Completed`
        ])
      })
    )
  )

  it.effect("uses the filesystem of the context", () =>
    Effect.gen(function* () {
      const layer = Layer.provide(Leaf.layer(), InMemory.layer({ tree: { f: "here" } }))
      assert.strictEqual(kindOf(yield* under(Layer.orDie(layer), ask(read("f")))), "FileContent")
    })
  )

  it.effect("in memory has the given tree and follows its settings", () =>
    Effect.gen(function* () {
      const tree = { f: "four", l: { link: "f" } }
      const settings = { allowWrite: false, chunkSize: 3, streamingThreshold: 3, followSymlinks: false, caseInsensitive: true }
      yield* under(
        Leaf.mockFS(settings, { tree }),
        Effect.gen(function* () {
          const { askAll } = yield* asked
          assert.strictEqual(kindOf(yield* ask(write("f", "x"))), "AccessDenied")
          assert.deepStrictEqual(
            (yield* askAll(read("F"))).map((entry) => (entry._tag === "FileContentChunk" ? entry.offset : -1)),
            [0, 3]
          )
          const told = yield* ask(stat("l"))
          assert.strictEqual(told._tag === "FileMetadata" ? told.kind : undefined, "symlink")
        })
      )
    })
  )

  it.effect("copies permission bits if the setting says so, and keeps the permission bits of a replaced file", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ tree: { f: "x" } })
      yield* fs.setAttributes("f", { mode: 0o751 })
      for (const preservePermissions of [true, false]) {
        const self = Settings.applyOptions(fs, { preservePermissions })
        yield* self.copy("f", `copy ${preservePermissions}`)
        assert.strictEqual((yield* self.stat(`copy ${preservePermissions}`)).mode === 0o751, preservePermissions)
        yield* journaled(
          Effect.scoped(
            Effect.gen(function* () {
              yield* started(fs, { preservePermissions })
              assert.strictEqual(kindOf(yield* ask(write("f", "new"))), "FileWritten")
              const told = yield* ask(stat("f"))
              assert.strictEqual(told._tag === "FileMetadata" ? told.permissions : undefined, 0o751)
            })
          )
        )
      }
    })
  )
})

describe("a leaf over a simulated disk of Windows", () => {
  const options = { names: "windows", lockedRetries: 0 } as const
  const serving = <A, E, R>(
    of: Parameters<typeof windowsHost>[0],
    body: (disk: Effect.Success<ReturnType<typeof windowsHost>>["disk"]) => Effect.Effect<A, E, R>
  ) =>
    journaled(
      Effect.gen(function* () {
        const { disk, port } = yield* windowsHost(of)
        yield* started(make(port), options)
        return yield* body(disk)
      })
    )

  it.effect("is case-insensitive and case-preserving", () =>
    serving({}, () =>
      Effect.gen(function* () {
        assert.strictEqual(kindOf(yield* ask(write("/Src/Program.cs", "x"))), "FileWritten")
        assert.strictEqual(kindOf(yield* ask(read("src/program.CS"))), "FileContent")
        const told = yield* ask(list("SRC"))
        assert.deepStrictEqual(told._tag === "FileListing" ? told.entries.map(({ name }) => name) : told, ["Program.cs"])
      })
    )
  )

  it.effect("refuses device names before any access to the disk", () =>
    serving({}, (disk) =>
      Effect.gen(function* () {
        disk.put(`${root}\\CON.txt`, "there all the same")
        for (const intent of [read("CON.txt"), write("nul", "x"), stat("com1"), remove("aux"), list("prn")]) {
          assert.strictEqual(kindOf(yield* ask(intent)), "InvalidPath")
        }
      })
    )
  )

  it.effect("accepts paths of more than 260 characters only with useLongPaths", () =>
    Effect.gen(function* () {
      const long = Array.from({ length: 6 }, () => "n".repeat(60)).join("/")
      assert.strictEqual(kindOf(yield* serving({ useLongPaths: true }, () => ask(write(long, "x")))), "FileWritten")
      assert.strictEqual(kindOf(yield* serving({ useLongPaths: false }, () => ask(write(long, "x")))), "PathTooLong")
    })
  )

  it.effect("retries reads and writes of a file that another program has open, but not deletions", () =>
    serving({}, (disk) =>
      Effect.gen(function* () {
        const { append, all } = yield* asked
        yield* ask(write("f", "old"))
        const answered = (intent: Entry.Efferent) =>
          Effect.map(all, (all) => all.filter(Entry.answers(intent.correlationId)).map(kindOf))
        for (const [intent, given, kept] of [
          [read("f"), "FileContent", "AccessDenied"],
          [write("f", "new"), "FileWritten", "AccessDenied"]
        ] as const) {
          for (const isGiven of [true, false]) {
            const close = disk.hold(`${root}\\f`, { share: "none" })
            const one = { ...intent, correlationId: id() } as Entry.Efferent
            const asking = intent._tag === "FileRead" ? new Entry.FileRead(one as never) : new Entry.FileWrite(one as never)
            yield* append(asking)
            yield* quiet
            for (let i = 0; i < 100; i++) {
              assert.deepStrictEqual(yield* answered(asking), [])
              if (isGiven && i === 40) close()
              yield* TestClock.adjust("10 millis")
              yield* quiet
              if ((yield* answered(asking)).length > 0) break
            }
            for (let i = 0; i < 10; i++) {
              yield* TestClock.adjust("100 millis")
              yield* quiet
            }
            assert.deepStrictEqual(yield* answered(asking), [isGiven ? given : kept])
            if (!isGiven) close()
          }
        }
        disk.hold(`${root}\\f`, { share: "none" })
        assert.strictEqual(kindOf(yield* ask(remove("f"))), "AccessDenied")
      })
    )
  )

  it.effect("answers large contents in chunks, and refuses modes that do not fit", () =>
    serving({}, () =>
      Effect.gen(function* () {
        const { askAll, content } = yield* asked
        const whole = many(1_048_577)
        assert.strictEqual(kindOf(yield* ask(write("f", whole))), "FileWritten")
        const parts: Array<Uint8Array> = []
        for (const entry of yield* askAll(read("f"))) {
          if (entry._tag === "FileContentChunk") parts.push(yield* content(entry.data))
        }
        assert.strictEqual(parts.length, 17)
        assert.strictEqual(Buffer.compare(Buffer.concat(parts), whole), 0)
        assert.strictEqual(kindOf(yield* ask(write("F", "x", "create"))), "AlreadyExists")
        assert.strictEqual(kindOf(yield* ask(write("none", "x", "replace"))), "NotFound")
      })
    )
  )
})
