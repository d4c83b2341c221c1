export const scheme = "workspace"
export const rootUri = `${scheme}:///`
export const guideName = "workspace-guide"
