import { useRef } from "preact/hooks"
import { useFileKeys } from "../shell/shell.tsx"
import { go, fileHref, place } from "../store.ts"
import { DirectoryView } from "./directoryView.tsx"
import { FileView } from "./fileView.tsx"
import { Divider } from "./divider.tsx"
import { shownTree } from "./state.ts"
import { TreePane } from "./treeView.tsx"

export const FilesView = () => {
  const filter = useRef<HTMLInputElement>(null)
  const { path } = place.value
  useFileKeys(() => {
    const focus = (): void => {
      filter.current?.focus()
      filter.current?.select()
    }
    // Focus at once, so that no typed letter is lost. If the file hides the tree, show the tree first.
    if (filter.current?.offsetParent !== null) return focus()
    go(fileHref(""))
    queueMicrotask(focus)
  })
  const tree = shownTree.value?.tree
  const node = path === "" ? tree?.root : tree?.nodes.get(path)
  return (
    <div class={`files ${path === "" ? "" : "has-file"}`}>
      <TreePane filter={filter} />
      <Divider />
      <div class="files-main">
        {path !== "" && node?.kind !== "directory" ? (
          <FileView path={path} />
        ) : node === undefined || (path === "" && node.children.length === 0) ? null : (
          <DirectoryView key={path} node={node} />
        )}
      </div>
    </div>
  )
}
