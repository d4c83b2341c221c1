/** Tests a search of many small files over one connection. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Reader, Type } from "../../../src/backends/sftp/wire.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import { directory } from "../../conformance/filesystems.ts"
import { type Packet, through } from "./between.ts"
import { describeSftp, openPiped, pipe } from "./servers.ts"

const pathOf = ({ bytes }: Packet): string => {
  const reader = new Reader(bytes)
  reader.u8()
  reader.u32()
  return reader.bytes().toString()
}

const count = (all: ReadonlyArray<string>): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1)
  return counts
}

/** A directory with forty files, and with entries that no read may open. */
const planted = Effect.map(directory, (top) => {
  const root = join(top, "files")
  Fs.mkdirSync(root)
  for (const name of ["a", "b"]) {
    Fs.mkdirSync(join(root, name))
    for (let nth = 0; nth < 20; nth++) Fs.writeFileSync(join(root, name, `${nth}.txt`), `needle ${name}${nth}\n`)
  }
  Fs.mkdirSync(join(top, "outside"))
  Fs.writeFileSync(join(top, "outside/secret.txt"), "needle outside\n")
  Fs.symlinkSync("../../outside/secret.txt", join(root, "a/link.txt"))
  Fs.symlinkSync("../outside", join(root, "linked"))
  spawnSync("mkfifo", [join(root, "b/fifo.txt")])
  return root
})

describeSftp("a search of many small files over SFTP", () => {
  it.live("opens each file once, opens no link or FIFO, and inspects a directory of 20 files fewer than 10 times", () =>
    Effect.gen(function* () {
      const root = yield* planted
      const requests: Array<Packet> = []
      const between = {
        onRequest: (packet: Packet) => {
          requests.push(packet)
          return "pass" as const
        },
        onAnswer: () => "pass" as const
      }
      const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
      requests.length = 0
      const found = yield* fs.grep("needle")
      assert.strictEqual(found.matches.length, 40)
      const paths = (type: number) => requests.filter((packet) => packet.type === type).map(pathOf)
      const opened = count(paths(Type.open))
      assert.strictEqual(opened.size, 40)
      assert.isTrue([...opened.values()].every((times) => times === 1))
      assert.isFalse([...opened.keys()].some((path) => /link|fifo|outside/.test(path)))
      const looks = count(paths(Type.lstat))
      assert.isBelow(looks.get(join(root, "a")) ?? 0, 10)
    }).pipe(Effect.scoped)
  )

  it.live("reads no file through a link, and no other entry that a single read refuses", () =>
    Effect.gen(function* () {
      const port = yield* openPiped(yield* planted)
      const paths = ["a/1.txt", "a/link.txt", "linked/secret.txt", "b/fifo.txt", "a", ".", "none", "a/1.txt/x", "b/2.txt"]
      const wholes = yield* port.perform!({
        _tag: "ReadMany",
        paths: paths as ReadonlyArray<string> as Array<FsPath>,
        maxBytes: 100
      })
      assert.deepStrictEqual(
        wholes._tag === "Some" ? wholes.value.map((whole) => whole && new TextDecoder().decode(whole.bytes)) : undefined,
        ["needle a1\n", undefined, undefined, undefined, undefined, undefined, undefined, undefined, "needle b2\n"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("is completed although the connection is lost in the middle", () =>
    Effect.gen(function* () {
      const root = yield* planted
      for (const type of [Type.lstat, Type.open, Type.fstat, Type.read]) {
        let left = 25
        const between = {
          onRequest: (packet: Packet) => (packet.type === type && --left === 0 ? ("cut" as const) : ("pass" as const)),
          onAnswer: () => "pass" as const
        }
        const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
        assert.strictEqual((yield* fs.grep("needle")).matches.length, 40)
        assert.isAtMost(left, 0)
      }
    }).pipe(Effect.scoped)
  )
})
