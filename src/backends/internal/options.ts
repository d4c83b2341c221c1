/**
 * What the layers of host backends take.
 */
import type { Info } from "../../port/Backend.ts"
import type { CommonOptions } from "../../port/Rules.ts"

/**
 * Which directory of the machine is served, and how safely.
 *
 * @since 0.1.0
 */
export interface HostOptions extends CommonOptions {
  /** Absolute; must exist and be a directory unless `createRoot`. It may be a link: what it leads to is then the root for good. */
  readonly root: string
  /** Make the directory, with its parents, where there is none. @default false */
  readonly createRoot?: boolean | undefined
  /**
   * What an answered write survives. `none`: any crash of the program, not of the machine. `file`: the file's bytes are on disk.
   * `full`: its name is too, where the system has a call for that, which Windows has not. @default "none"
   */
  readonly durability?: "none" | "file" | "full" | undefined
  /** Refuse to build where containment would be weaker. @default "best-effort" */
  readonly requireConfinement?: Info["confinement"] | undefined
}

/**
 * What a directory of a POSIX system has beside the options of every host.
 *
 * @since 0.1.0
 */
export interface PosixHostOptions extends HostOptions {
  /** `follow` inside the root, `report` in stat, `refuse` any path through a link. @default "follow" */
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
  /** `reject`: files with more than one name are neither read nor appended to. @default "allow" */
  readonly hardlinks?: "allow" | "reject" | undefined
  /** `copy` keeps permission bits. @default true */
  readonly preservePermissions?: boolean | undefined
}

/**
 * What a directory of Windows has beside the options of every host.
 *
 * @since 0.1.0
 */
export interface WindowsHostOptions extends HostOptions {
  /** Take paths longer than the 260 characters that programs which do not ask for more can open. @default true */
  readonly useLongPaths?: boolean | undefined
}
