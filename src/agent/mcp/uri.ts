/**
 * Converts between paths and URIs: `workspace:///` and the path with each segment escaped. A URI never contains a path of the
 * machine.
 */
import * as FsPath from "../../model/FsPath.ts"
import { rootUri, scheme } from "./guide.ts"

export const resourceTemplate = `${rootUri}{+path}`
/** The template for effect's router, in which a single colon begins a parameter. */
export const resourceRoute = `${scheme}::///*`

export const uriOf = (path: FsPath.FsPath): string => rootUri + FsPath.segments(path).map(encodeURIComponent).join("/")

/** Decodes the path of a URI from a client, which may escape other characters than we do. */
export const pathOf = (uri: string): string | undefined => {
  if (!uri.startsWith(rootUri)) return undefined
  try {
    return uri.slice(rootUri.length).split("/").map(decodeURIComponent).join("/")
  } catch {
    return undefined
  }
}
