/** Which operations are run in which scene, and how often. */
import type { Engine } from "./attackers.ts"
import { branch, flipped, onTheWay, recreated, type Scene } from "./ground.ts"
import { onDirectory, onFile } from "./nameOperations.ts"
import { makingOnPort, onNames, onPort, type Operation } from "./operations.ts"
import { makingOnService, makingParents, onBranch, onService } from "./serviceOperations.ts"

export interface Act {
  readonly scene: Scene
  readonly operations: ReadonlyArray<Operation>
}

/** In these the attacked name is always there, so nothing that is made on the way can take its place. */
const isExchange = ({ name }: Scene): boolean => name.includes("change places")

export const acts: ReadonlyArray<Act> = [
  ...onTheWay.map((scene) => ({
    scene,
    operations: [...onPort, ...onService, ...(isExchange(scene) ? [...makingParents, ...onNames] : [])]
  })),
  {
    scene: recreated,
    operations: [
      ...makingOnPort,
      ...makingOnService,
      ...onDirectory,
      ...onPort.filter(({ makes, name }) => !makes && /^(?:stat|list|open)/.test(name))
    ]
  },
  { scene: flipped, operations: onFile },
  { scene: branch, operations: onBranch }
]

/** The attacker in Node exchanges two names in three steps, between which one is free. */
export const actsFor = (engine: Engine): ReadonlyArray<Act> =>
  engine === "c"
    ? acts
    : acts.map(({ operations, scene }) => ({ scene, operations: operations.filter(({ mayTake }) => mayTake !== true) }))

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

/** `service write over a file` and `service write with parents` are two ways to try one operation, `service write`. */
export const operationOf = (name: string): string => /^(?:service )?[\w.]+/.exec(name)![0]

/** Of each operation, over all ways to try it and all scenes. */
export const wanted = isSoak ? Number(process.env["FS_ALGEBRA_ATTEMPTS"] ?? 1_000_000) : 0

const tries = (operation: string): number =>
  acts.reduce((sum, { operations }) => sum + operations.filter(({ name }) => operationOf(name) === operation).length, 0)

/** In one scene. 66 of each are 20,000 and some in all. */
export const attemptsOf = (name: string): number => Math.max(66, Math.ceil(wanted / tries(operationOf(name))))

/** Milliseconds: a hundred times what a busy machine of two processors needs. */
export const patienceFor = (attempts: number): number => 30_000 + attempts * 50

/** For all the attempts of an act, and what comes with them. */
export const timeoutOf = ({ operations }: Act): number =>
  operations.reduce((sum, { name }) => sum + patienceFor(attemptsOf(name)), 60_000)
