/** A port over a directory with the accelerations of a shell, and the same port without accelerations, for comparisons. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Bulk from "../../../src/backends/container/shell/bulk.ts"
import * as Place from "../../../src/backends/container/shell/shellRoot.ts"
import type { Session } from "../../../src/backends/container/shell/session.ts"
import * as PosixHost from "../../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import { type Backend, portable } from "../../../src/port/Backend.ts"
import { directory } from "./shells.ts"
import * as Request from "../../../src/port/Request.ts"

export interface Bench {
  readonly root: string
  readonly port: Backend
  readonly fast: Algebra
  readonly slow: Algebra
  /**
   * The calls to the shell since the last reading, the number of directories listed alone, and the bytes of the longest answer.
   */
  readonly asked: () => { readonly calls: ReadonlyArray<string>; readonly alone: number; readonly longest: number }
}

export const bench = Effect.fnUntraced(function* (session: Session): Effect.fn.Return<Bench, never, Scope.Scope> {
  const root = yield* directory
  const host = yield* Effect.orDie(PosixHost.make({ root }))
  const place = yield* Effect.orDie(Place.make(session, root))
  let calls: Array<string> = []
  let alone = 0
  let longest = 0
  const counted: Place.ShellRoot = {
    ...place,
    sendRequest: (request) => {
      calls.push(request.call)
      return Effect.tap(place.sendRequest(request), ({ output }) =>
        Effect.sync(() => {
          longest = Math.max(longest, output.length)
        })
      )
    }
  }
  const list: Backend["list"] = (path) => {
    alone++
    return host.list(path)
  }
  const port: Backend = {
    ...host,
    perform: Request.handlers(Bulk.handlers(counted)),
    explore: Bulk.explore({ place: counted, list, caseSensitive: true })
  }
  return {
    root,
    port,
    fast: make(port),
    slow: make(portable(host)),
    asked: () => {
      const asked = { calls, alone, longest }
      calls = []
      alone = longest = 0
      return asked
    }
  }
})

const int = (most: number): number => Math.floor(Math.random() * most)
const one = <A>(all: ReadonlyArray<A>): A => all[int(all.length)]!

const pieces = [
  "a",
  "B",
  " ",
  "-",
  "--",
  "'",
  '"',
  "\\",
  "\n",
  "\t",
  "$N",
  "$(x)",
  "`x`",
  "*",
  "?",
  "[a]",
  "~",
  "#",
  ";",
  "==> a <==",
  "é",
  "日",
  "😀",
  "\u2028",
  Buffer.from([0x81]),
  Buffer.from([0x88, 0xff]),
  Buffer.from([0xc3]),
  Buffer.from([0x7f])
]

const name = (): Buffer => {
  const all = Array.from({ length: 1 + int(4) }, () => Buffer.from(one(pieces)))
  const joined = Buffer.concat(all)
  return joined.equals(Buffer.from(".")) || joined.equals(Buffer.from("..")) ? Buffer.from("a") : joined
}

const contents = [
  "",
  "hit",
  "\n",
  "one\ntwo hit\r\nthree",
  "\n==> ./a <==\nhit\n",
  "//\n81a4 3 ./a//\n",
  Buffer.from([0, 0x68, 0x69, 0x74]),
  Buffer.from([0x68, 0x69, 0x74, 0xff, 0x0a]),
  "x".repeat(300_000) + "\nhit",
  "hit é 😀\n".repeat(50)
]

export const plantOddities = (root: string, depth = 3, most = 6): void => {
  const fill = (directory: Buffer, left: number): void => {
    for (let i = int(most + 1); i > 0; i--) {
      const at = Buffer.concat([directory, Buffer.from("/"), name()])
      if (Fs.lstatSync(at, { throwIfNoEntry: false }) !== undefined) continue
      const kind = int(8)
      if (kind < 3 && left > 0) {
        Fs.mkdirSync(at)
        fill(at, left - 1)
      } else if (kind === 3) Fs.symlinkSync(one(["a", ".", "..", "nowhere", "../a"]), at)
      else Fs.writeFileSync(at, one(contents))
    }
  }
  fill(Buffer.from(root), depth)
}

export const plantMany = (root: string, count: number): void => {
  for (let i = 0; i < count; i++) {
    const directory = join(root, `d${i % 3}`, `e${i % 5}`, `f${i % 2}`)
    Fs.mkdirSync(directory, { recursive: true })
    Fs.writeFileSync(join(directory, `file${i}.txt`), `line\nhit ${i}\n`)
  }
}
