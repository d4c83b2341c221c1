/**
 * Returns the number of the part in which a line begins. A line beyond the end belongs to the last part. `firstLines` contains
 * the number of each part's first line, counted from 1. If a line spans several parts, each later part repeats its number.
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
