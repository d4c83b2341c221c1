/**
 * Containers that processes have left which were ended before they could remove them. A container ends by itself when its process
 * does; this is for what an engine has kept nevertheless, such as one that was made and not started yet.
 */
import * as Effect from "effect/Effect"
import * as Identity from "../../../runtime/processIdentity.ts"
import * as CommandLine from "./commandLine.ts"
import type { Engine } from "./engine.ts"

const isLeftOver = (engine: Engine, name: string) =>
  Effect.map(engine.run(CommandLine.ownerOf(name)), ({ stdout }) => {
    const owner = CommandLine.owner(stdout)
    return owner !== undefined && Identity.isDead(owner) === true
  })

/** Never fails: an engine that does not answer will be heard of when it is needed. */
export const sweep = (engine: Engine): Effect.Effect<void> =>
  Effect.ignore(
    Effect.flatMap(engine.run(CommandLine.listing), ({ stdout }) =>
      Effect.forEach(
        CommandLine.listed(stdout),
        (name) =>
          Effect.flatMap(isLeftOver(engine, name), (isLeft) => (isLeft ? engine.run(CommandLine.remove(name)) : Effect.void)),
        { discard: true }
      )
    )
  )
