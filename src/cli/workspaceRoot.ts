/**
 * The root that `--store` and `--workspace` select. `toRoot` converts this root to a text, because other modules keep a root as a
 * text. The text begins with NUL, which no argument of a program can contain, so no other root has the same text.
 */
import * as Context from "effect/Context"
import type { Operations } from "../history/Snapshots.ts"
import { type Complaint, usage } from "./exit.ts"

export interface WorkspaceRoot {
  readonly store: string
  readonly workspace: string
}

export const toRoot = ({ store, workspace }: WorkspaceRoot): string => `\0${workspace}\0${store}`

export const ofRoot = (root: string): WorkspaceRoot | undefined => {
  const [first, workspace, ...store] = root.split("\0")
  return first === "" && workspace !== undefined ? { workspace, store: store.join("\0") } : undefined
}

/** Returns the words that select the root on a command line. */
export const rootWords = (root: string): ReadonlyArray<string> => {
  const found = ofRoot(root)
  if (found !== undefined) return ["--store", found.store, "--workspace", found.workspace]
  return root === "." ? [] : ["--root", root]
}

/** The snapshots in the commits of the workspace that is the root. Other roots do not have this service. */
export class WorkspaceSnapshots extends Context.Service<WorkspaceSnapshots, Operations>()(
  "fs-algebra/cli/WorkspaceSnapshots"
) {}

/** The commands on a root for which `--store` without `--workspace` has a meaning. `serve` is checked separately. */
const commandsWithStore: ReadonlySet<string> = new Set([
  "snapshot",
  "snapshots",
  "diff",
  "restore",
  "export",
  "import",
  "debug"
])

/** Tests whether an address can only be that of a store of workspaces, and not a directory of snapshots. */
export const isStoreUrl = (text: string): boolean => /^(?:[a-z][a-z\d+.-]+:\/\/|(?:dir|sqlite):)/i.test(text)

/** Returns the error of a wrong combination of `--root`, `--store` and `--workspace`. */
export const misplacedFlags = (
  { root, store, workspace }: { readonly [_ in "root" | "store" | "workspace"]: string | undefined },
  command: string
): Complaint | undefined => {
  if (command.startsWith("workspaces ")) {
    if (workspace !== undefined)
      return usage(`${command} takes no --workspace`, `Give the names as arguments: ${command} NAME.`)
    if (root !== undefined) return usage(`${command} works on whole workspaces, and has no root`, "Leave out --root.")
    return store === undefined
      ? usage(
          `${command} needs the store of the workspaces`,
          "Give --store URL, such as --store dir:PATH or --store postgres://USER@HOST/DATABASE."
        )
      : undefined
  }
  if (workspace !== undefined) {
    if (store === undefined) return usage("--workspace needs a store", "Give the store that has the workspace: --store URL.")
    return root === undefined
      ? undefined
      : usage("--root cannot be combined with --workspace, because the workspace is the root", "Leave out --root.")
  }
  if (command === "serve" && store !== undefined) {
    return root === undefined
      ? undefined
      : usage("serve serves either a root or the workspaces of a store", "Leave out --root, or leave out --store.")
  }
  return store === undefined || (commandsWithStore.has(command) && (command === "debug" || !isStoreUrl(store)))
    ? undefined
    : usage(
        `${command} works on one workspace of a store`,
        `Give --workspace NAME too. fs-algebra workspaces list --store URL shows the names.`
      )
}
