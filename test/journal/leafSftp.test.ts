/** Leaves over directories of an SSH server. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Daemon from "../../src/journal/Daemon.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { describeSftp, openPiped, sshd } from "../backends/sftp/servers.ts"
import { asked, freshDirectory, read, remove, stat, write } from "./leafBench.ts"
import { plainAnswers, plainRequests, through, workDone, workThroughBranch } from "./leafElsewhere.ts"

const kinds = (requests: ReadonlyArray<Parameters<Effect.Success<typeof asked>["ask"]>[0]>) =>
  Effect.flatMap(asked, ({ ask }) =>
    Effect.forEach(requests, (request) =>
      Effect.map(ask(request), (answer) => (answer._tag === "FileFault" ? answer.faultKind : answer._tag))
    )
  )

describeSftp("sftpFS", () => {
  const ground = Effect.map(Effect.promise(sshd), ({ login }) => {
    const { host, hostKeys, port = 22, privateKey, username } = login
    const rootPath = freshDirectory()
    return { rootPath, privateKey, config: { host, port, username, rootPath, hostKeys: hostKeys as ReadonlyArray<string> } }
  })

  it.live("answers every operation of a Branch, and stores ordinary files", () =>
    Effect.gen(function* () {
      const { config, privateKey, rootPath } = yield* ground
      const leaf = Leaf.sftpFS(config, { privateKey, extended: true })
      assert.deepStrictEqual(yield* through(leaf, workThroughBranch), workDone)
      assert.deepStrictEqual(Fs.readdirSync(rootPath).sort(), workDone.names)
    })
  )

  it.live("answers the plain requests of a journal with the same kinds of faults as every leaf", () =>
    Effect.gen(function* () {
      const { config, privateKey } = yield* ground
      const leaf = Leaf.sftpFS({ ...config, streamingThreshold: 4096, chunkSize: 1000 }, { privateKey })
      assert.deepStrictEqual(yield* through(leaf, plainRequests), plainAnswers)
    })
  )

  it.live("does not follow a link out of the root, and describes a link itself if followSymlinks is false", () =>
    Effect.gen(function* () {
      const { config, privateKey, rootPath } = yield* ground
      const outside = freshDirectory()
      Fs.writeFileSync(join(outside, "secret"), "secret")
      Fs.writeFileSync(join(rootPath, "inside"), "inside")
      Fs.symlinkSync(join(outside, "secret"), join(rootPath, "out"))
      Fs.symlinkSync("inside", join(rootPath, "in"))
      const requests = [read("out"), write("out", "x"), read("in"), remove("in"), stat("in")]
      const leaf = Leaf.sftpFS(config, { privateKey })
      assert.deepStrictEqual(yield* through(leaf, kinds(requests)), [
        "AccessDenied",
        "AccessDenied",
        "FileContent",
        "FileDeleted",
        "NotFound"
      ])
      assert.strictEqual(Fs.readFileSync(join(outside, "secret"), "utf8"), "secret")
      Fs.symlinkSync("inside", join(rootPath, "in"))
      const own = yield* through(
        Leaf.sftpFS({ ...config, followSymlinks: false }, { privateKey }),
        Effect.flatMap(asked, ({ ask }) => ask(stat("in")))
      )
      assert.deepInclude(own, { _tag: "FileMetadata", isSymlink: true })
    })
  )

  it.live("without permissions changes nothing on the server", () =>
    Effect.gen(function* () {
      const { config, privateKey, rootPath } = yield* ground
      Fs.writeFileSync(join(rootPath, "a"), "theirs")
      const leaf = Leaf.sftpFS({ ...config, allowWrite: false, allowDelete: false }, { privateKey })
      const answers = yield* through(leaf, kinds([write("b", "x"), write("a", "x"), remove("a"), read("a")]))
      assert.deepStrictEqual(answers, ["AccessDenied", "AccessDenied", "AccessDenied", "FileContent"])
      assert.deepStrictEqual(Fs.readdirSync(rootPath), ["a"])
    })
  )

  it.live("fails with Unavailable unless the key of the server is known", () =>
    Effect.gen(function* () {
      const { config, privateKey } = yield* ground
      const { hostKeys: _, ...unknown } = config
      const knownHosts = join(freshDirectory(), "known_hosts")
      Fs.writeFileSync(knownHosts, "")
      for (const settings of [unknown, { ...unknown, knownHosts }]) {
        const leaf = Layer.provide(Leaf.sftpFS(settings, { privateKey }), Journal.layerMemory)
        const error = yield* Effect.flip(Effect.scoped(Layer.build(leaf)))
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, config.hostKeys[0]!)
      }
    })
  )

  it.live("and Leaf.make over Sftp on a pipe to a server answer in the same way", () =>
    Effect.gen(function* () {
      const root = freshDirectory()
      const leaf = Daemon.layer(Effect.flatMap(openPiped(root), (port) => Leaf.make(make(port), { extended: true })))
      assert.deepStrictEqual(yield* through(leaf, workThroughBranch), workDone)
      assert.deepStrictEqual(Fs.readdirSync(root).sort(), workDone.names)
    })
  )
})
