/** Correlation ids of recorded steps. Their prefix marks a request as a step at the port, where no link is followed. */
const stepPrefix = "step:"

/** Returns a generator of ids: a random prefix and a counter. Such ids are as unique as random ones, and faster to make. */
export const make = (randomPart: string): (() => string) => {
  const idPrefix = `${stepPrefix}${randomPart}-`
  let count = 0
  return () => `${idPrefix}${(count++).toString(36)}`
}

export const isStep = (correlationId: string): boolean => correlationId.startsWith(stepPrefix)
