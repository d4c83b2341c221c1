/** The operations of each scene of the attack, and the number of attempts for each. */
import type { Engine } from "./attackers.ts"
import { branch, flipped, onTheWay, recreated, type Scene } from "./ground.ts"
import { onDirectory, onFile } from "./nameOperations.ts"
import { makingOnPort, onNames, onPort, type Operation } from "./operations.ts"
import { makingOnService, makingParents, onBranch, onService } from "./serviceOperations.ts"
import { isSoak } from "../../runs.ts"

export interface Act {
  readonly scene: Scene
  readonly operations: ReadonlyArray<Operation>
}

/** Tests whether the attacked name always exists in the scene, so that no created parent can take its place. */
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

/** Returns the acts for an attacker. The attacker in Node exchanges names in three steps, and one name is free between them. */
export const actsFor = (engine: Engine): ReadonlyArray<Act> =>
  engine === "c"
    ? acts
    : acts.map(({ operations, scene }) => ({ scene, operations: operations.filter(({ mayTake }) => mayTake !== true) }))

/** Returns the operation of a name: `service write over a file` and `service write with parents` both test `service write`. */
export const operationOf = (name: string): string => /^(?:service )?[\w.]+/.exec(name)![0]

/** The required number of attempts for each operation, in all its variants and scenes together. */
export const wanted = isSoak ? Number(process.env["FS_ALGEBRA_ATTEMPTS"] ?? 1_000_000) : 0

const tries = (operation: string): number =>
  acts.reduce((sum, { operations }) => sum + operations.filter(({ name }) => operationOf(name) === operation).length, 0)

/** Returns the attempts of one variant in one scene. With 66 each, the total exceeds 20,000. */
export const attemptsOf = (name: string): number => Math.max(66, Math.ceil(wanted / tries(operationOf(name))))

/** Returns a time limit in milliseconds: a hundred times the need of a busy machine with two processors. */
export const timeLimitOf = (attempts: number): number => 30_000 + attempts * 50

export const timeoutOf = ({ operations }: Act): number =>
  operations.reduce((sum, { name }) => sum + timeLimitOf(attemptsOf(name)), 60_000)
