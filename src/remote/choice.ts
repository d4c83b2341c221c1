/** Chooses one of the workspaces that a server serves. Headers of each request name the workspace. */

/** The name of the workspace, percent-encoded, because HTTP accepts only ASCII. */
export const workspaceHeader = "fs-algebra-workspace"

/**
 * The lineage that the workspace had when the client connected. The lineage changes if the workspace is deleted and created
 * again.
 */
export const lineageHeader = "fs-algebra-lineage"

/**
 * The instance that the server had when a change was first sent. The server of a workspace that was closed since then does not
 * know whether the change was made.
 */
export const instanceHeader = "fs-algebra-instance"

export const workspaceParameter = "?workspace="

const decoded = (text: string): string | undefined => {
  try {
    const name = decodeURIComponent(text)
    // A client could not encode half of a surrogate pair again.
    return name.isWellFormed() ? name : undefined
  } catch {
    return undefined
  }
}

/** Returns the name in a header, or `undefined` if the header is missing or is not valid percent-encoding. */
export const nameOf = (header: string | undefined): string | undefined => (header === undefined ? undefined : decoded(header))

/**
 * Divides the address of a server, such as `unix:PATH?workspace=NAME`. The name of the workspace is percent-encoded. Returns
 * `undefined` if the encoding is wrong.
 */
export const splitUrl = (url: string): { readonly url: string; readonly workspace: string | undefined } | undefined => {
  const at = url.lastIndexOf(workspaceParameter)
  if (at === -1) return { url, workspace: undefined }
  const workspace = decoded(url.slice(at + workspaceParameter.length))
  return workspace === undefined ? undefined : { url: url.slice(0, at), workspace }
}

/** Returns the address of a workspace of a server. */
export const urlOf = (url: string, workspace: string): string => `${url}${workspaceParameter}${encodeURIComponent(workspace)}`
