/** What a caller's path comes to, stated by hand for each row of the table: where it leads, and whether it ends in a link. */

export type Leads =
  | { readonly is: "file" | "directory"; readonly at: string }
  /** Nothing is there yet, but could be made there. */
  | { readonly is: "nothing"; readonly at: string }
  /** The way leads through a file. */
  | { readonly is: "blocked" }
  /** A link goes through what is missing, or a file, and up again: there is nothing, nor a place where it could be made. */
  | { readonly is: "lost" }
  | { readonly is: "escape" }
  | { readonly is: "loop" }
  | { readonly is: "invalid" }
  | { readonly is: "tooLong" }
  /** Only with `symlinks: "refuse"`. */
  | { readonly is: "refused" }

export interface Meaning {
  readonly leads: Leads
  /** Where the last component is a link: the place of that link. */
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
