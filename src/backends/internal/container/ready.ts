/**
 * Tests whether a container is ready: a command runs and can write in the container's own workspace.
 *
 * podman gives a new volume to the user inside. But if the image already has that directory, the volume gets the same
 * owner as it, and the owner is changed here.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../../runtime/node.ts"
import type { Fault } from "../../../model/FsError.ts"
import { attempt } from "../attempt.ts"
import * as CommandLine from "./commandLine.ts"
import { type Engine, engineFault, unavailable } from "./engine.ts"
import type { Caller, Plan } from "./options.ts"

type ProbeResult = "ready" | "foreign"

const probe = (engine: Engine, name: string): Effect.Effect<ProbeResult, Fault> =>
  Effect.flatMap(engine.run(CommandLine.probe(name)), (ended) => {
    const answer = ended.stdout.trim()
    return answer === "ready" || answer === "foreign"
      ? Effect.succeed(answer)
      : Effect.fail(engineFault(engine.program, "runs no command in the container", ended))
  })

const changeVolumeOwner = (
  engine: Engine,
  { user, workdir }: Plan,
  caller: Caller,
  name: string
): Effect.Effect<unknown, Fault> =>
  Effect.flatMap(engine.run(CommandLine.inspectVolume(name, workdir)), ({ stdout }) => {
    const volume = stdout.trim()
    if (!volume.startsWith("/")) return Effect.void
    return caller?.uid === 0
      ? attempt(() => Fs.chownSync(volume, user.uid, user.gid))
      : engine.run(CommandLine.changeVolumeOwner(user, volume))
  })

/** Waits until the container is ready. Never changes the owner of a shared directory, which belongs to the caller. */
export const awaitReady = (engine: Engine, plan: Plan, caller: Caller) =>
  Effect.fnUntraced(function* (name: string): Effect.fn.Return<void, Fault> {
    if ((yield* probe(engine, name)) === "ready" || plan.strategy === "overlay") return
    yield* Effect.ignore(changeVolumeOwner(engine, plan, caller, name))
    if ((yield* probe(engine, name)) === "ready") return
    const detail = `the user inside may not write in ${plan.workdir}, which the image has; choose another workdir`
    return yield* Effect.fail(unavailable(detail))
  })
