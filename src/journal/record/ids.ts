/** Correlation ids of what `record` writes down. They say that what was asked was a step at the port, where no link is followed. */
const mark = "step:"

/** One beginning of chance, and a number: as unlike any other as one that is drawn anew, and made sooner. */
export const make = (beginning: string): (() => string) => {
  const start = `${mark}${beginning}-`
  let count = 0
  return () => `${start}${(count++).toString(36)}`
}

export const isStep = (correlationId: string): boolean => correlationId.startsWith(mark)
