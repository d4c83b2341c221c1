/** Tests Sftp with keys of servers and users, a killed sshd, invalid options, and servers that send false answers. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { PassThrough, Writable } from "node:stream"
import { parseKnownHosts } from "../../../src/backends/sftp/hostKeys.ts"
import type { Dial } from "../../../src/backends/sftp/link.ts"
import { open, type SftpOptions } from "../../../src/backends/sftp/open.ts"
import { start } from "../../../src/backends/sftp/session.ts"
import { type Field, makePacket, Reader, Type } from "../../../src/backends/sftp/wire.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { directory } from "../../conformance/filesystems.ts"
import { describeSftp, freePort, openPiped, openSshd, sshd, startSshd } from "./servers.ts"

const timings = { attempts: 2, pauseMillis: 1 }

const opened = (options: Partial<SftpOptions>) =>
  Effect.gen(function* () {
    const { login } = yield* Effect.promise(sshd)
    const root = yield* directory
    return make(yield* open({ ...login, root, ...options }, { timings }))
  })

const refusedWith = (options: Partial<SftpOptions>) => Effect.flip(Effect.scoped(opened(options)))

const knownHosts = (lines: (key: string, port: number) => ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { directory: place, port } = yield* Effect.promise(sshd)
    const [type, key] = Fs.readFileSync(join(place, "hostkey.pub"), "utf8").split(" ")
    const file = join(yield* directory, "known_hosts")
    Fs.writeFileSync(file, `# a comment\n\nnonsense\n${lines(`${type} ${key}`, port).join("\n")}\n`)
    return file
  })

const otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPAIyuFQvP7sbPrrNvUZjJ4y3LqzAABCqJ1rRz5nYB5t"

describeSftp("Sftp with sshd", () => {
  it.live("writes and reads a file of 3 MB", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const fs = make(yield* openSshd(root))
      const bytes = new Uint8Array(3_000_000).map((_, at) => at * 7)
      yield* fs.writeBytes("large", bytes)
      assert.isTrue(Buffer.from(bytes).equals(Fs.readFileSync(join(root, "large"))))
      assert.isTrue(Buffer.from(bytes).equals(Buffer.concat(yield* Stream.runCollect(fs.stream("large")))))
    }).pipe(Effect.scoped)
  )

  it.live("shows the root as an address", () =>
    Effect.gen(function* () {
      const { login } = yield* Effect.promise(sshd)
      const root = yield* directory
      const port = yield* open({ ...login, root }, { timings })
      assert.strictEqual(port.info.root, `sftp://${login.username}@127.0.0.1:${login.port}${root}`)
    }).pipe(Effect.scoped)
  )

  it.live("an unknown server is refused, and the message has the fingerprint that ssh-keygen prints", () =>
    Effect.gen(function* () {
      const { directory: place } = yield* Effect.promise(sshd)
      const printed = execFileSync("ssh-keygen", ["-l", "-f", join(place, "hostkey.pub")], { encoding: "utf8" }).split(" ")[1]!
      for (const hostKeys of [[], [`SHA256:${"A".repeat(43)}`]]) {
        const error = yield* refusedWith({ hostKeys })
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, printed)
        assert.include(error.message, "compare it with the server's administrator")
      }
      yield* Effect.scoped(opened({ hostKeys: [printed] }))
    })
  )

  const accepted: Record<string, (key: string, port: number) => ReadonlyArray<string>> = {
    "the name of the server": (key, port) => [`[127.0.0.1]:${port} ${key}`],
    "a pattern": (key) => [`[127.0.0.?]:* ${key}`],
    "several keys": (key, port) => [`[127.0.0.1]:${port} ${otherKey}`, `other,[127.0.0.1]:${port} ${key}`],
    "a revoked key and the right key": (key, port) => [
      `@revoked [127.0.0.1]:${port} ${otherKey}`,
      `[127.0.0.1]:${port} ${key} comment`
    ]
  }
  for (const [name, lines] of Object.entries(accepted)) {
    it.live(`a known_hosts file with ${name} is accepted`, () =>
      Effect.gen(function* () {
        const file = yield* knownHosts(lines)
        yield* opened({ hostKeys: { knownHosts: file } })
      }).pipe(Effect.scoped)
    )
  }

  it.live("a known_hosts file with hashed names is accepted", () =>
    Effect.gen(function* () {
      const file = yield* knownHosts((key, port) => [`[127.0.0.1]:${port} ${key}`])
      // ssh-keygen refuses to hash a file with lines that it does not understand.
      Fs.writeFileSync(file, Fs.readFileSync(file, "utf8").replace("nonsense\n", ""))
      execFileSync("ssh-keygen", ["-q", "-H", "-f", file], { stdio: "ignore" })
      assert.notInclude(Fs.readFileSync(file, "utf8"), "127.0.0.1")
      yield* opened({ hostKeys: { knownHosts: file } })
    }).pipe(Effect.scoped)
  )

  const refused: Record<string, readonly [(key: string, port: number) => ReadonlyArray<string>, string]> = {
    "another port": [(key) => [`127.0.0.1 ${key}`], "is not in"],
    "another key": [(_, port) => [`[127.0.0.1]:${port} ${otherKey}`], "the key was changed, or another machine answers"],
    "a negation": [(key, port) => [`[127.*]:*,![127.0.0.1]:${port} ${key}`], "is not in"],
    "the key as revoked": [(key, port) => [`[127.0.0.1]:${port} ${key}`, `@revoked * ${key}`], "is revoked"],
    "a certificate authority only": [
      (key, port) => [`@cert-authority [127.0.0.1]:${port} ${key}`],
      "@cert-authority is not supported"
    ]
  }
  for (const [name, [lines, text]] of Object.entries(refused)) {
    it.live(`a known_hosts file with ${name} is refused`, () =>
      Effect.gen(function* () {
        const file = yield* knownHosts(lines)
        const error = yield* refusedWith({ hostKeys: { knownHosts: file } })
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, text)
      }).pipe(Effect.scoped)
    )
  }

  it.live("finds the same lines of a known_hosts file as ssh-keygen -F", () =>
    Effect.gen(function* () {
      const file = join(yield* directory, "known_hosts")
      const patterns = [
        "a.example.org",
        "*.example.org",
        "!a.example.org,*.org",
        "A.Example.ORG",
        "[a.example.org]:22",
        "b",
        "?.example.org,c"
      ]
      for (const pattern of patterns) {
        for (const host of ["a.example.org", "b.example.org", "b", "c"]) {
          Fs.writeFileSync(file, `${pattern} ${otherKey}\n`)
          const isFound = spawnSync("ssh-keygen", ["-F", host, "-f", file]).stdout.includes("ssh-ed25519")
          assert.strictEqual(
            parseKnownHosts(Fs.readFileSync(file, "utf8"), host, 22).keys.length > 0,
            isFound,
            `${pattern} ${host}`
          )
        }
      }
    }).pipe(Effect.scoped)
  )

  it.live("says what to correct if the user, the key, the known_hosts file or the directory is not accepted", () =>
    Effect.gen(function* () {
      const place = yield* directory
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(place, "key")])
      const stranger = Redacted.make(Fs.readFileSync(join(place, "key"), "utf8"))
      const port = yield* Effect.promise(freePort)
      const rows: ReadonlyArray<readonly [Partial<SftpOptions>, string]> = [
        [{ privateKey: stranger }, "check the username, and the key, password or agent"],
        [{ privateKey: Redacted.make("not a key") }, "the credentials cannot be used"],
        [{ privateKey: undefined, agent: join(place, "no-agent") }, "check"],
        [{ hostKeys: { knownHosts: join(place, "none") } }, "cannot be read (ENOENT)"],
        [{ root: join(place, "none") }, "does not exist on the server"],
        [{ root: join(place, "key") }, "is not a directory on the server"],
        [{ port }, "cannot be reached (ECONNREFUSED)"]
      ]
      for (const [options, text] of rows) {
        const error = yield* refusedWith(options)
        assert.strictEqual(error._tag, "Unavailable", text)
        assert.include(error.message, text)
        assert.notInclude(JSON.stringify(error), "PRIVATE KEY")
      }
    }).pipe(Effect.scoped)
  )

  it.live("confirmed writes survive if the server is killed and restarted", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(Effect.promise(startSshd), ({ kill }) => Effect.promise(kill))
      const root = yield* directory
      const fs = make(yield* open({ ...server.login, root }, { timings: { attempts: 8, pauseMillis: 20 } }))
      const acknowledged: Array<number> = []
      const writing = Effect.forEach(
        Array.from({ length: 200 }, (_, nth) => nth),
        (nth) => Effect.tap(fs.write(`f${nth}`, `${nth}`), () => Effect.sync(() => acknowledged.push(nth))),
        { concurrency: 4, discard: true }
      )
      const killing = Effect.forEach([1, 2], () =>
        Effect.gen(function* () {
          const enough = Math.min(acknowledged.length + 10, 200)
          while (acknowledged.length < enough) yield* Effect.sleep(1)
          yield* Effect.promise(server.kill)
          yield* Effect.promise(server.start)
        })
      )
      yield* Effect.all([writing, killing], { concurrency: 2 })
      assert.strictEqual(acknowledged.length, 200)
      assert.deepStrictEqual((yield* fs.list(".")).map(({ name }) => name).sort(), acknowledged.map((nth) => `f${nth}`).sort())
      for (const nth of acknowledged) assert.strictEqual(Fs.readFileSync(join(root, `f${nth}`), "utf8"), `${nth}`)
    }).pipe(Effect.scoped)
  )
})

describe("Sftp.make refuses with InvalidArgument", () => {
  const login = { host: "host", username: "me", root: "/", password: Redacted.make("secret"), hostKeys: [] }
  const rows: ReadonlyArray<readonly [string, Partial<SftpOptions>]> = [
    ["host", { host: "me@host" }],
    ["port", { port: 0 }],
    ["username", { username: "" }],
    ["root", { root: "a\0b" }],
    ["privateKey", { password: undefined }],
    ["hostKeys", { hostKeys: ["MD5:aa:bb"] }],
    ["hostKeys", { hostKeys: { knownHosts: "" } }]
  ]
  for (const [argument, options] of rows) {
    it.effect(`${argument}: ${JSON.stringify(options)}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Effect.scoped(open({ ...login, ...options })))
        assert.deepInclude(error, { _tag: "InvalidArgument", argument })
        assert.notInclude(JSON.stringify(error), "secret")
      })
    )
  }
})

const fileMode = 0o100644
const directoryMode = 0o040755

/** A server that answers each request as told. By default it has an empty directory `/`, and a file for any other path. */
const liar = (answer: (type: number, id: number, body: Reader) => Buffer | undefined): Dial =>
  Effect.sync(() => {
    const input = new PassThrough()
    let rest = Buffer.alloc(0)
    const honest = (type: number, id: number, body: Reader): Buffer => {
      const reply = (kind: number, ...fields: ReadonlyArray<Field>) => makePacket(kind, id, fields)
      const status = (code: number) => reply(Type.status, code, "", "")
      switch (type) {
        case Type.init:
          return makePacket(Type.version, 3, [])
        case Type.realpath:
          return reply(Type.name, 1, "/", "", {})
        case Type.stat:
        case Type.lstat:
          return reply(Type.attrs, { size: 4, mode: body.bytes().toString() === "/" ? directoryMode : fileMode })
        case Type.fstat:
          return reply(Type.attrs, { size: 4, mode: fileMode })
        case Type.opendir:
        case Type.open:
          return reply(Type.handle, "h")
        case Type.readdir:
        case Type.read:
          return status(1)
        default:
          return status(0)
      }
    }
    return {
      input,
      output: new Writable({
        write: (chunk: Buffer, _, done) => {
          rest = Buffer.concat([rest, chunk])
          while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
            const end = 4 + rest.readUInt32BE(0)
            const reader = new Reader(rest.subarray(4, end))
            const again = new Reader(rest.subarray(9, end))
            rest = rest.subarray(end)
            const [type, id] = [reader.u8(), reader.u32()]
            input.write(answer(type, id, reader) ?? honest(type, id, again))
          }
          done()
        }
      }),
      close: () => void input.end()
    }
  })

const lying = (answer: (type: number, id: number, body: Reader) => Buffer | undefined, maxEntries = 50) => {
  let isArmed = false
  return Effect.map(
    openPiped(
      "/",
      {},
      { maxEntries, timings: { attempts: 1, answerMillis: 500 } },
      liar((...all) => (isArmed ? answer(...all) : undefined))
    ),
    (port) => {
      isArmed = true
      return make(port)
    }
  )
}

const named = (name: string | Buffer) => (type: number, id: number) =>
  type === Type.readdir ? makePacket(Type.name, id, [1, name, "", { mode: fileMode }]) : undefined

describe("Sftp with a hostile or unusual server", () => {
  for (const name of ["", "a/b", "../up", "a\0b"]) {
    it.live(`a listing with the name ${JSON.stringify(name)} fails with EPROTO`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip((yield* lying(named(name))).list("."))
        assert.deepInclude(error, { _tag: "IoError", code: "EPROTO" })
      }).pipe(Effect.scoped)
    )
  }

  it.live("a listing omits the entries . and ..", () =>
    Effect.gen(function* () {
      let left = 2
      const fs = yield* lying((type, id) =>
        type === Type.readdir && left-- > 0 ? makePacket(Type.name, id, [2, ".", "", {}, "..", "", {}]) : undefined
      )
      assert.deepStrictEqual(yield* fs.list("."), [])
    }).pipe(Effect.scoped)
  )

  it.live("an endless listing fails with EFBIG", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip((yield* lying(named("again"))).list("."))
      assert.deepInclude(error, { _tag: "IoError", code: "EFBIG" })
    }).pipe(Effect.scoped)
  )

  it.live("a listing with endlessly many bytes of names fails with EFBIG", () =>
    Effect.gen(function* () {
      let left = 100
      const names = Array.from({ length: 200 }, () => ["n".repeat(4096), "", { mode: fileMode }]).flat()
      const packets = (type: number, id: number) =>
        type === Type.readdir && left-- > 0 ? makePacket(Type.name, id, [200, ...names]) : undefined
      const error = yield* Effect.flip((yield* lying(packets, 1_000_000)).list("."))
      assert.deepInclude(error, { _tag: "IoError", code: "EFBIG" })
    }).pipe(Effect.scoped)
  )

  it.live("a server that sends only a few bytes in each answer gets further requests for the missing bytes only", () =>
    Effect.gen(function* () {
      const size = 100_000
      const content = Buffer.from(Array.from({ length: size }, (_, at) => at % 251))
      let reads = 0
      const fs = yield* lying((type, id, body) => {
        if (type === Type.lstat && body.bytes().toString() !== "/")
          return makePacket(Type.attrs, id, [{ size, mode: fileMode }])
        if (type === Type.fstat) return makePacket(Type.attrs, id, [{ size, mode: fileMode }])
        if (type !== Type.read) return undefined
        reads++
        body.bytes()
        const at = body.u64()
        return makePacket(Type.data, id, [content.subarray(at, at + Math.min(100, body.u32()))])
      })
      assert.isTrue(content.equals((yield* fs.readBytes("a", { limit: size })).content))
      assert.isAtMost(reads, 1100)
    }).pipe(Effect.scoped)
  )

  it.live("a server that permits only a few bytes in a request is refused with EPROTO", () =>
    Effect.gen(function* () {
      const dial = liar((type, id) =>
        type === Type.init
          ? makePacket(Type.version, 3, ["limits@openssh.com", "1"])
          : type === Type.extended
            ? makePacket(Type.extendedReply, id, [1n << 18n, 8n, 8n, 0n])
            : undefined
      )
      const fault = yield* Effect.flip(openPiped("/", {}, { timings: { attempts: 1 } }, dial))
      assert.deepInclude(fault, { _tag: "IoError", code: "EPROTO" })
    }).pipe(Effect.scoped)
  )

  it.live("150,000 requests that are made together are each sent and answered", () =>
    Effect.gen(function* () {
      let asked = 0
      const dial = liar((type) => {
        if (type === Type.remove) asked++
        return undefined
      })
      const session = yield* start(yield* dial, 10_000)
      const requests = Array.from({ length: 150_000 }, () => ({ type: Type.remove, fields: ["/a"] }))
      assert.lengthOf(yield* session.askAll(requests), 150_000)
      assert.strictEqual(asked, 150_000)
      session.close()
    })
  )

  it.live("a request that cannot be encoded ends the session with a failure of every call", () =>
    Effect.gen(function* () {
      const session = yield* start(yield* liar(() => undefined), 10_000)
      const waiting = yield* Effect.forkChild(Effect.exit(session.askAll([{ type: Type.remove, fields: ["/a"] }])), {
        startImmediately: true
      })
      const impossible = yield* Effect.exit(session.askAll([{ type: Type.remove, fields: [-1] }]))
      assert.isTrue(Exit.isFailure(impossible))
      assert.isTrue(Exit.isFailure(yield* Fiber.join(waiting)))
      assert.isFalse(session.isOpen())
    })
  )

  it.live("a request without a reader of its answer is still sent if the session is closed next", () =>
    Effect.gen(function* () {
      let asked = 0
      const dial = liar((type) => {
        if (type === Type.remove) asked++
        return undefined
      })
      const session = yield* start(yield* dial, 10_000)
      session.post({ type: Type.remove, fields: ["/a"] })
      session.close()
      assert.strictEqual(asked, 1)
    })
  )

  const lies: Record<string, readonly [(type: number, id: number) => Buffer | undefined, "list" | "read"]> = {
    "names nothing before the end of a directory": [
      (type, id) => (type === Type.readdir ? makePacket(Type.name, id, [0]) : undefined),
      "list"
    ],
    "lists a name that no system permits": [named("n".repeat(4097)), "list"],
    "answers a request that was not sent": [
      (type, id) => (type === Type.opendir ? makePacket(Type.handle, id + 9, ["h"]) : undefined),
      "list"
    ],
    "sends a packet of 4 GB": [(type) => (type === Type.opendir ? Buffer.alloc(64, 0xff) : undefined), "list"],
    "sends an empty packet": [(type) => (type === Type.opendir ? Buffer.alloc(4) : undefined), "list"],
    "reports success without a handle": [
      (type, id) => (type === Type.opendir ? makePacket(Type.status, id, [0, "", ""]) : undefined),
      "list"
    ],
    "sends a handle that is longer than its packet": [
      (type, id) => (type === Type.opendir ? makePacket(Type.handle, id, [4_000_000_000]) : undefined),
      "list"
    ],
    "sends four billion extended attributes": [
      (type, id) => (type === Type.readdir ? makePacket(Type.name, id, [1, "a", "", 0x8000_0000, 0xffff_ffff]) : undefined),
      "list"
    ],
    "reports a size that no file has": [
      (type, id) =>
        type === Type.fstat ? makePacket(Type.attrs, id, [{ size: Number.MAX_SAFE_INTEGER + 1, mode: fileMode }]) : undefined,
      "read"
    ],
    "sends more bytes than were asked for": [
      (type, id) => (type === Type.read ? makePacket(Type.data, id, ["too much"]) : undefined),
      "read"
    ],
    "answers a read with a name": [(type, id) => (type === Type.read ? makePacket(Type.name, id, [0]) : undefined), "read"]
  }
  for (const [name, [answer, call]] of Object.entries(lies)) {
    it.live(`a call fails with EPROTO if the server ${name}`, () =>
      Effect.gen(function* () {
        const fs = yield* lying(answer)
        const error = yield* Effect.flip<unknown, unknown, never>(call === "list" ? fs.list(".") : fs.readBytes("a"))
        assert.deepInclude(error as object, { _tag: "IoError", code: "EPROTO" })
      }).pipe(Effect.scoped)
    )
  }

  it.live("a file that is shorter than its size is read up to its end", () =>
    Effect.gen(function* () {
      let reads = 0
      const fs = yield* lying((type, id) =>
        type === Type.read
          ? reads++ === 0
            ? makePacket(Type.data, id, ["ab"])
            : makePacket(Type.status, id, [1, "", ""])
          : undefined
      )
      assert.strictEqual(yield* fs.readString("a"), "ab")
    }).pipe(Effect.scoped)
  )

  it.live("a read returns the right bytes if answers arrive out of order, are short, or the file becomes shorter", () =>
    Effect.gen(function* () {
      const content = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7 + (at >> 8)) % 251))
      for (const cut of [content.length, 200_001, 98_304, 32_768, 1, 0]) {
        let reads = 0
        let held: Array<Buffer> = []
        let input: PassThrough | undefined
        const release = (): void => {
          const all = held.reverse()
          held = []
          input!.write(Buffer.concat(all))
        }
        const read = (id: number, body: Reader): Buffer => {
          body.bytes()
          const at = body.u64()
          const length = body.u32()
          // The file becomes shorter after a few answers.
          const end = reads++ < 5 ? content.length : cut
          const short = Math.max(1, length - ((reads * 7919) % length))
          const part = content.subarray(at, Math.min(end, at + (reads % 2 === 0 ? short : length)))
          return part.length === 0 ? makePacket(Type.status, id, [1, "", ""]) : makePacket(Type.data, id, [part])
        }
        const size = content.length
        const answer = (type: number, id: number, body: Reader): Buffer | undefined => {
          if (type === Type.lstat && body.bytes().toString() !== "/")
            return makePacket(Type.attrs, id, [{ size, mode: fileMode }])
          if (type === Type.fstat) return makePacket(Type.attrs, id, [{ size, mode: fileMode }])
          if (type !== Type.read) return undefined
          if (held.push(read(id, body)) === 1) setImmediate(release)
          return Buffer.alloc(0)
        }
        const dial = Effect.tap(liar(answer), (transport) => Effect.sync(() => (input = transport.input as PassThrough)))
        const port = yield* openPiped("/", {}, { timings: { attempts: 1, answerMillis: 5_000 } }, dial)
        const whole = yield* port.perform!({ _tag: "Read", path: "a" as never, maxBytes: size })
        reads = 0
        const many = yield* port.perform!({ _tag: "ReadMany", paths: ["a"] as never, maxBytes: size })
        for (const found of [Option.getOrThrow(whole), Option.getOrThrow(many)[0]!]) {
          assert.isTrue(content.subarray(0, found.bytes.length).equals(found.bytes))
          assert.isAtLeast(found.bytes.length, cut)
          assert.strictEqual(found.stat.sizeBytes, found.bytes.length)
        }
      }
    }).pipe(Effect.scoped)
  )

  it.live("an entry that becomes a directory between the check and the open is not read", () =>
    Effect.gen(function* () {
      const fs = yield* lying((type, id) =>
        type === Type.fstat ? makePacket(Type.attrs, id, [{ mode: directoryMode, size: 4 }]) : undefined
      )
      assert.strictEqual((yield* Effect.flip(fs.readString("a")))._tag, "NotAFile")
    }).pipe(Effect.scoped)
  )

  it.live("the layer fails with Unavailable if the server speaks another version of the protocol", () =>
    Effect.gen(function* () {
      const dial = liar((type) => (type === Type.init ? makePacket(Type.version, 6, []) : undefined))
      const fault = yield* Effect.flip(openPiped("/", {}, { timings: { attempts: 1 } }, dial))
      assert.deepInclude(fault, { _tag: "Unavailable", detail: "the server speaks version 6 of SFTP instead of 3" })
    }).pipe(Effect.scoped)
  )

  it.live("a server whose names ignore case is refused", () =>
    Effect.gen(function* () {
      let left = 1
      const dial = liar((type, id) =>
        type === Type.readdir && left-- > 0 ? makePacket(Type.name, id, [1, "readme", "", { mode: fileMode }]) : undefined
      )
      assert.strictEqual((yield* Effect.flip(openPiped("/", {}, {}, dial)))._tag, "Unsupported")
    }).pipe(Effect.scoped)
  )
})
