/** The target of a path, stated by hand for each row of the table: where the path leads, and whether it ends in a link. */

export type Leads =
  | { readonly is: "file" | "directory"; readonly at: string }
  /** Nothing exists there, but an entry can be created there. */
  | { readonly is: "nothing"; readonly at: string }
  | { readonly is: "blocked" }
  /** A link goes through a missing entry or a file and up again, so nothing exists there or can be created there. */
  | { readonly is: "lost" }
  | { readonly is: "escape" }
  | { readonly is: "loop" }
  | { readonly is: "invalid" }
  | { readonly is: "tooLong" }
  /** A link, if the filesystem has the option `symlinks: "refuse"`. */
  | { readonly is: "refused" }

export interface Meaning {
  readonly leads: Leads
  /** The place of the link, when the last component is one. */
  readonly link?: string | undefined
}

export const toFile = (at: string): Leads => ({ is: "file", at })
export const toDirectory = (at: string): Leads => ({ is: "directory", at })
export const toNothing = (at: string): Leads => ({ is: "nothing", at })
export const blocked: Leads = { is: "blocked" }
export const lost: Leads = { is: "lost" }
export const escape: Leads = { is: "escape" }
export const loop: Leads = { is: "loop" }
export const invalid: Leads = { is: "invalid" }
export const tooLong: Leads = { is: "tooLong" }
export const refused: Leads = { is: "refused" }
