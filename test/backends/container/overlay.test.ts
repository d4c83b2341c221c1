import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Overlay from "../../../src/backends/container/overlayDirectory.ts"
import * as Identity from "../../../src/runtime/processIdentity.ts"
import { onDisk } from "../../scratch.ts"

const cache = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(onDisk(), "overlay-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  ),
  (path) => ({ path, ours: join(path, "fs-algebra"), overlays: join(path, "fs-algebra/overlays") })
)

const made = (path: string) =>
  Effect.provide(Overlay.make, ConfigProvider.layer(ConfigProvider.fromUnknown({ XDG_CACHE_HOME: path })))

/** The identity of a process of this boot that has ended. */
const ended = Effect.promise(async () => {
  const module = new URL("../../../src/runtime/processIdentity.ts", import.meta.url).href
  const program = `import(${JSON.stringify(module)}).then(({ self }) => process.stdout.write(self()))`
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] })
  const [said] = (await once(child.stdout, "data")) as [Buffer]
  await once(child, "exit")
  return said.toString()
})

const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (isSo() ? Effect.void : Effect.andThen(Effect.sleep(20), until(isSo))))

const hex = (digit: string) => digit.repeat(24)

describe.skipIf(process.platform === "win32")("the overlays in the cache", () => {
  it.live("are removed with their content if they are leftovers, but never the target of a link", () =>
    Effect.gen(function* () {
      const { overlays, path } = yield* cache
      const dead = yield* ended
      const kept = join(path, "kept")
      Fs.mkdirSync(join(kept, "deep"), { recursive: true })
      Fs.writeFileSync(join(kept, "deep/file"), "kept")
      Fs.chmodSync(join(kept, "deep"), 0o755)
      const left = join(overlays, `${dead}.${hex("a")}`)
      Fs.mkdirSync(left, { recursive: true })
      Fs.symlinkSync(kept, join(left, "out"))
      const links = join(overlays, `${dead}.${hex("0")}`)
      Fs.symlinkSync(kept, links)
      const live = join(overlays, `${Identity.self()}.${hex("b")}`)
      Fs.mkdirSync(live)
      const strange = join(overlays, `../overlays/${dead}.${hex("c")}.more`)
      Fs.mkdirSync(strange)
      yield* made(path)
      // Leftovers are checked before the first one is removed.
      yield* until(() => !Fs.existsSync(left))
      assert.strictEqual(Fs.readFileSync(join(kept, "deep/file"), "utf8"), "kept")
      assert.strictEqual(Fs.statSync(join(kept, "deep")).mode & 0o777, 0o755)
      assert.isTrue(Fs.lstatSync(links).isSymbolicLink())
      assert.isTrue(Fs.existsSync(live))
      assert.isTrue(Fs.existsSync(strange))
    })
  )

  it.live.skipIf(process.getuid?.() !== 0)(
    "are removed if they are leftovers, even if the container's user owns them (only root can change owners)",
    () =>
      Effect.gen(function* () {
        const { overlays, path } = yield* cache
        const left = join(overlays, `${yield* ended}.${hex("a")}`)
        Fs.mkdirSync(left, { recursive: true })
        Fs.chownSync(left, 65_534, 65_534)
        yield* made(path)
        yield* until(() => !Fs.existsSync(left))
      })
  )

  it.live("are refused when their directory is a link", () =>
    Effect.gen(function* () {
      for (const name of ["ours", "overlays"] as const) {
        const place = yield* cache
        const elsewhere = join(place.path, "elsewhere")
        Fs.mkdirSync(elsewhere)
        if (name === "overlays") Fs.mkdirSync(place.ours)
        Fs.symlinkSync(elsewhere, place[name])
        const fault = yield* Effect.flip(made(place.path))
        assert.strictEqual(fault._tag, "Unavailable", name)
        assert.include(JSON.stringify(fault), "give a hostDirectory")
        assert.deepStrictEqual(
          Fs.readdirSync(elsewhere).filter((entry) => entry !== "overlays"),
          []
        )
      }
    })
  )

  it.live("are not accessible to other users, even if their directory was writable", () =>
    Effect.gen(function* () {
      const { ours, overlays, path } = yield* cache
      Fs.mkdirSync(overlays, { recursive: true })
      for (const place of [ours, overlays]) Fs.chmodSync(place, 0o777)
      yield* made(path)
      for (const place of [ours, overlays]) assert.strictEqual(Fs.statSync(place).mode & 0o777, 0o700)
    })
  )

  it.live.skipIf(process.getuid?.() !== 0)(
    "are refused when their directory belongs to another user (only root can create one)",
    () =>
      Effect.gen(function* () {
        const { ours, path } = yield* cache
        Fs.mkdirSync(ours)
        Fs.chownSync(ours, 65_534, 65_534)
        assert.strictEqual((yield* Effect.flip(made(path)))._tag, "Unavailable")
        assert.deepStrictEqual(Fs.readdirSync(ours), [])
      })
  )
})
