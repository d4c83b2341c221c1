const maxIdLength = 200

/** Makes an id of a call fit on one line; providers may send any text as an id. */
export const asLabel = (callId: string): string =>
  // oxlint-disable-next-line no-control-regex
  callId
    .toWellFormed()
    .replace(/[\u0000-\u001f\u007f]/g, "?")
    .slice(0, maxIdLength)
    .toWellFormed()

export const checkpointTag = (tool: string, callId: string): string => `pre:${tool}:${asLabel(callId)}`
