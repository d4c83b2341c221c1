/** `workspace:///` and the path, each segment with its escapes, names a file to clients; no such address holds a path of the machine. */
import * as FsPath from "../../model/FsPath.ts"
import { rootUri, scheme } from "./names.ts"

export const template = `${rootUri}{+path}`
/** The same for effect's router, which takes a colon for the beginning of a parameter. */
export const route = `${scheme}::///*`

export const uriOf = (path: FsPath.FsPath): string => rootUri + FsPath.segments(path).map(encodeURIComponent).join("/")

/** What a client wrote, which need not be how we would have. */
export const pathOf = (uri: string): string | undefined => {
  if (!uri.startsWith(rootUri)) return undefined
  try {
    return uri.slice(rootUri.length).split("/").map(decodeURIComponent).join("/")
  } catch {
    return undefined
  }
}
