/** The URI scheme and the name of the guide that clients see. */
export const scheme = "workspace"
export const rootUri = `${scheme}:///`
export const guideName = "workspace-guide"
