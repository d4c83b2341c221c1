import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { ContentStore } from "../ContentStore.ts"
import { notRecorded, type Source } from "./contents.ts"
import { type Beginning, type Directory, type Node } from "./world.ts"

export const beginningSource = (operation: string, contents: ContentStore, beginning: Beginning): Source => ({
  operation,
  contents,
  beginning: (path) => {
    const known = beginning.known.get(path)
    const content = known?.kind === "file" ? known.content : undefined
    return content === undefined
      ? Stream.fail(notRecorded(operation, path, "what it held in the beginning was not recorded"))
      : isBytes(content)
        ? Stream.make(content)
        : contents.stream(content)
  }
})

export const nodeAt = (beginning: Beginning, path: FsPath.FsPath, key: (name: string) => string): Node | undefined => {
  const known = beginning.known.get(path)
  const attributes = beginning.attributesAt(path)
  switch (known?.kind) {
    case "nothing":
      return { kind: "nothing" }
    case "other":
      return { kind: "unknown" }
    case "symlink":
      return known
    case "file":
      return { kind: "file", parts: [{ origin: path }], attributes }
    default: {
      const entries: Directory["entries"] = new Map()
      for (const name of beginning.namesIn(path)) {
        const node = nodeAt(beginning, FsPath.join(path, name), key)
        if (node !== undefined) entries.set(key(name), { name, node })
      }
      return known === undefined && entries.size === 0 && path !== FsPath.root
        ? undefined
        : { kind: "directory", entries, attributes, isTouched: false }
    }
  }
}
