/**
 * Returns the index of the part that contains a line. A line beyond the end belongs to the last part.
 *
 * `firstLines` contains the line number at which each part begins, from 1. A line that is longer than a part occurs several
 * times in `firstLines`; the first occurrence counts.
 */
export const partOfLine = (firstLines: ReadonlyArray<number>, line: number): number => {
  const exact = firstLines.indexOf(line)
  return exact === -1
    ? Math.max(
        0,
        firstLines.findLastIndex((first) => first < line)
      )
    : exact
}
