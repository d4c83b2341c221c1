/** The texts of symbolic links in entries. Whoever writes into the journal may have made them up. */

/** UTF-16 units: the longest that any system lets a path be. */
export const longestTarget = 32_767

/** Why a value cannot be the text of a link. */
export const unfitTarget = (target: unknown): string | undefined =>
  typeof target !== "string"
    ? "it is no text"
    : target === ""
      ? "it is empty"
      : target.length > longestTarget
        ? `it is longer than ${longestTarget} characters`
        : target.includes("\0")
          ? "it holds NUL"
          : undefined
