import { mediaTypeOf as ofBytes } from "../text/mediaType.ts"

const texts: ReadonlyMap<string, string> = new Map(
  Object.entries({
    css: "text/css",
    csv: "text/csv",
    htm: "text/html",
    html: "text/html",
    js: "text/javascript",
    json: "application/json",
    md: "text/markdown",
    mjs: "text/javascript",
    svg: "image/svg+xml",
    toml: "application/toml",
    xml: "application/xml",
    yaml: "application/yaml",
    yml: "application/yaml"
  })
)

export const mediaTypeOf = (name: string, content: Uint8Array, isText: boolean): string =>
  isText
    ? (texts.get(/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "") ?? "text/plain")
    : (ofBytes(content)?.type ?? "application/octet-stream")
