/** By what the checkpoint of a call is known. */

const longestId = 200

/** Labels are lines of text; an id is whatever a provider sends. */
export const labelled = (callId: string): string =>
  // oxlint-disable-next-line no-control-regex
  callId
    .toWellFormed()
    .replace(/[\u0000-\u001f\u007f]/g, "?")
    .slice(0, longestId)
    .toWellFormed()

export const checkpointTag = (tool: string, callId: string): string => `pre:${tool}:${labelled(callId)}`
