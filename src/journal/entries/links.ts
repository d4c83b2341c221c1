/** Validates the texts of symbolic links in entries, which any writer of the journal may have forged. */

/** The longest path that any system allows, in UTF-16 units. */
export const maxTargetUnits = 32_767

export const invalidTargetReason = (target: unknown): string | undefined =>
  typeof target !== "string"
    ? "it is no text"
    : target === ""
      ? "it is empty"
      : target.length > maxTargetUnits
        ? `it is longer than ${maxTargetUnits} characters`
        : target.includes("\0")
          ? "it holds NUL"
          : undefined
