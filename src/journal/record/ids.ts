/** Correlation ids of recorded steps. Their prefix marks a request as a step at the port, where no link is followed. */
const mark = "step:"

/** Returns a generator of ids: a random prefix and a counter. Such ids are as unique as random ones, and faster to make. */
export const make = (beginning: string): (() => string) => {
  const start = `${mark}${beginning}-`
  let count = 0
  return () => `${start}${(count++).toString(36)}`
}

export const isStep = (correlationId: string): boolean => correlationId.startsWith(mark)
