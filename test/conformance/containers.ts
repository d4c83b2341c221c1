/** Filesystems in real containers: one container per call of `apart`, and a directory for each law. */
import { afterAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as CommandLine from "../../src/backends/container/commandLine.ts"
import * as Engine from "../../src/backends/container/engine.ts"
import * as Life from "../../src/backends/container/lifecycle.ts"
import { awaitReady } from "../../src/backends/container/lifecycle.ts"
import { plan, type Plan } from "../../src/backends/container/options.ts"
import { bulkScript, program } from "../../src/backends/container/shell/script.ts"
import * as Port from "../../src/backends/container/shell/port.ts"
import { makeSession } from "../../src/backends/container/shell/session.ts"
import { type Filesystem, layer } from "../../src/filesystem/Filesystem.ts"
import { promote } from "../../src/model/FsError.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import { Bench } from "../../src/testing/Law.ts"
import type { PolicyOptions } from "../../src/testing/Policies.ts"
import { services } from "../backends/container/podman.ts"

const caller = { uid: process.getuid!(), gid: process.getgid!() }

const planOf = (rootfs: string): Plan => {
  const planned = plan({ image: { rootfs }, strategy: "exec" }, caller)
  if ("_tag" in planned) throw new Error(planned._tag)
  return planned
}

const started = (rootfs: string) =>
  Effect.gen(function* () {
    const planned = planOf(rootfs)
    const engine = yield* Engine.make(planned.engine)
    const life = yield* Life.make(engine, {
      argsOf: (name) => CommandLine.run(planned, { name, owner: Identity.self() }),
      settle: awaitReady(engine, planned, caller)
    })
    const { name } = yield* life.running
    const session = yield* makeSession(engine.start(CommandLine.session(name, program(bulkScript)), "held"))
    const run = (script: string, ...args: ReadonlyArray<string>) =>
      Effect.flatMap(engine.run(["exec", name, "sh", "-c", script, "sh", ...args]), ({ code, stderr }) =>
        code === 0 ? Effect.void : Effect.die(new Error(stderr))
      ).pipe(Effect.orDie)
    return { session, run, workdir: planned.workdir }
  }).pipe(Effect.provide(services))

type Started = Effect.Success<ReturnType<typeof started>>

/** Shares one container between the tests that use the result. The first test starts the container. */
const shared = (rootfs: () => string): Effect.Effect<Started> => {
  const scope = Effect.runSync(Scope.make())
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const once = Effect.runSync(
    Effect.cached(
      Effect.orDie(
        Scope.provide(
          Effect.suspend(() => started(rootfs())),
          scope
        )
      )
    )
  )
  return once
}

/** Builds filesystems of the exec strategy in a container with the root filesystem. `bench` describes its tools to the laws. */
export const apart = (rootfs: () => string, bench: Partial<Bench> = {}) => {
  const container = shared(rootfs)
  let laws = 0
  const inDirectory = (options: PolicyOptions, files: Files): Layer.Layer<Filesystem, unknown> =>
    Layer.unwrap(
      Effect.gen(function* () {
        const { run, session, workdir } = yield* container
        const root = `${workdir}/law${++laws}`
        const command = (call: string, ...args: ReadonlyArray<string>) =>
          Effect.orDie(
            Effect.filterOrFail(
              session.request({ call, arguments: args, repeats: false }),
              ({ status }) => status === 0,
              ({ errors }) => new Error(errors)
            )
          )
        yield* Effect.acquireRelease(command("mkdir", root), () => command("rm", "-rf", root))
        if (Object.keys(files).length > 0) {
          yield* Effect.flatMap(Port.make({ session, root, name: "Container" }), (port) => plant(port, files))
        }
        const port = Port.make({ session, root, name: "Container", ...options })
        return Layer.merge(
          layer(Effect.mapError(port, (fault) => promote(fault, "Container", root))),
          Layer.succeed(Bench, {
            makeOther: (at) => run('mkfifo "$1"', `${root}/${at}`),
            makeUnaddressable: run('cd "$1" && printf hit >"$(printf \'a\\377\')"', root),
            ...bench
          })
        )
      })
    )
  return { empty: inDirectory({}, {}), with: inDirectory }
}
