/**
 * Returns the number of the part in which a line begins; the last part for a line that is not there. `firstLines` holds the
 * number of each part's first line, from 1. A part that begins within a line repeats the number of that line.
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
