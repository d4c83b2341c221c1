import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Port from "../../../src/backends/container/shell/port.ts"
import type { Session } from "../../../src/backends/container/shell/session.ts"
import { type Filesystem, layer } from "../../../src/filesystem/Filesystem.ts"
import { Bench } from "../../../src/testing/Law.ts"
import { directory } from "./shells.ts"

/** Returns functions that make FIFOs and names of any bytes on disk. */
const onDisk = (root: string): Bench => ({
  makeOther: (path) => Effect.sync(() => void execFileSync("mkfifo", [join(root, path)])),
  makeUnaddressable: Effect.sync(() =>
    Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "hit")
  )
})

export const filesystem = (session: Session, bench: Partial<Bench> = {}): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.map(directory, (root) =>
      Layer.merge(
        layer(Effect.orDie(Port.make({ session, root, name: "Container" }))),
        Layer.succeed(Bench, { ...onDisk(root), ...bench })
      )
    )
  )
