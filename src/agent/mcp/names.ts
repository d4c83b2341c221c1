/** What clients know the root and the guide by. */
export const scheme = "workspace"
export const rootUri = `${scheme}:///`
export const guideName = "workspace-guide"
