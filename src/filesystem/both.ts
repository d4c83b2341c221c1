import type { Info, Rules } from "../port/Backend.ts"

const confinements: ReadonlyArray<Info["confinement"]> = ["best-effort", "race-free-open", "race-free", "virtual"]

export const weakestConfinement = (self: Info, that: Info): Info["confinement"] =>
  confinements[Math.min(confinements.indexOf(self.confinement), confinements.indexOf(that.confinement))]!

const strictness: ReadonlyArray<NonNullable<Rules["symlinks"]>> = ["follow", "report", "refuse"]

export const strictestSymlinks = (self: Rules | undefined, that: Rules | undefined): NonNullable<Rules["symlinks"]> =>
  strictness[Math.max(strictness.indexOf(self?.symlinks ?? "follow"), strictness.indexOf(that?.symlinks ?? "follow"))]!
