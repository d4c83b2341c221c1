/** Removes containers of ended processes that their engine keeps, such as one that was created but not started. */
import * as Effect from "effect/Effect"
import * as Identity from "../../../runtime/processIdentity.ts"
import * as CommandLine from "./commandLine.ts"
import type { Engine } from "./engine.ts"

const isLeftOver = (engine: Engine, name: string) =>
  Effect.map(engine.run(CommandLine.inspectOwner(name)), ({ stdout }) => {
    const owner = CommandLine.owner(stdout)
    return owner !== undefined && Identity.isDead(owner) === true
  })

/** Removes leftover containers. Never fails: if the engine does not respond, later calls report that. */
export const sweep = (engine: Engine): Effect.Effect<void> =>
  Effect.ignore(
    Effect.flatMap(engine.run(CommandLine.listContainers), ({ stdout }) =>
      Effect.forEach(
        CommandLine.parseNames(stdout),
        (name) =>
          Effect.flatMap(isLeftOver(engine, name), (isLeft) => (isLeft ? engine.run(CommandLine.remove(name)) : Effect.void)),
        { discard: true }
      )
    )
  )
