/** Validates the texts of symbolic links in entries, which any writer of the journal may have forged. */

/** The longest path that any system allows, in UTF-16 units. */
export const longestTarget = 32_767

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
