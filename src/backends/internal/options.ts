import type { Info } from "../../port/Backend.ts"
import type { CommonOptions } from "../../port/Rules.ts"

/**
 * The directory of a host filesystem, and the safety of its operations.
 *
 * @since 0.1.0
 */
export interface HostOptions extends CommonOptions {
  /**
   * The absolute path of the root, an existing directory unless `createRoot` is set. It may be a symlink, which is
   * resolved once at creation.
   */
  readonly root: string
  /** Creates a missing directory with its parents. @default false */
  readonly createRoot?: boolean | undefined
  /**
   * The events that a completed write survives. `none`: a crash of the program, not of the machine. `file`: the file's
   * bytes are on disk. `full`: its name is also on disk, if the system has a call for that; Windows has none. @default
   * "none"
   */
  readonly durability?: "none" | "file" | "full" | undefined
  /** The lowest accepted confinement; creation fails if the machine provides less. @default "best-effort" */
  readonly requireConfinement?: Info["confinement"] | undefined
}

/**
 * The options of a directory on a POSIX system.
 *
 * @since 0.1.0
 */
export interface PosixHostOptions extends HostOptions {
  /** `follow`: inside the root. `report`: only in stat. `refuse`: any path through a symlink. @default "follow" */
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
  /** `reject`: files with several names are neither read nor appended to. @default "allow" */
  readonly hardlinks?: "allow" | "reject" | undefined
  /** Keeps permission bits in a copy. @default true */
  readonly preservePermissions?: boolean | undefined
}

/**
 * The options of a directory on Windows.
 *
 * @since 0.1.0
 */
export interface WindowsHostOptions extends HostOptions {
  /** Accepts paths above 260 characters, which only programs that request long paths can open. @default true */
  readonly useLongPaths?: boolean | undefined
}
