import * as Api from "../api.ts"
import { bytes, Empty, Name, escapeName, Time, useRequest } from "../components.tsx"
import { Drawing, FileIcon } from "../shell/icons.tsx"
import { at, fileHref, meta, version } from "../store.ts"
import { Crumbs } from "./fileView.tsx"
import { LazyComponent } from "./later.tsx"
import { shownTree } from "./state.ts"
import { childrenOf, type Node } from "./tree.ts"

const markdown = () => import("./markdown.tsx").then(({ Markdown }) => Markdown)

/** The largest number of entries to draw. More would be slow, and the filter finds them better. */
const maxListedEntries = 500

const formatFileCount = (files: number): string => `${files.toLocaleString("en")} ${files === 1 ? "file" : "files"}`

const Facts = () => {
  const known = meta.value
  const filesystem = shownTree.value?.filesystem
  if (known === undefined) return null
  const facts: ReadonlyArray<readonly [string, preact.ComponentChildren]> = [
    ["Files", filesystem === undefined ? "none" : filesystem.file_count.toLocaleString("en")],
    ["Size", filesystem === undefined ? "—" : bytes(filesystem.total_bytes)],
    ...(filesystem === undefined ? [] : [["From", <Name text={filesystem.name} />] as const]),
    ...(known.created_at === undefined ? [] : [["Created", <Time at={known.created_at} />] as const]),
    ...(known.sessions === 0 ? [] : [["Sessions", known.sessions.toLocaleString("en")] as const]),
    ...(known.session_id === undefined ? [] : [["Session", <code class="ellipsis">{known.session_id}</code>] as const])
  ]
  return (
    <dl class="overview">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="ellipsis">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const Readme = ({ node }: { readonly node: Node }) => {
  const readmeRequest = useRequest((signal) => Api.file(node.path, at.value, signal), [node.path, at.value, version.value])
  if (readmeRequest.value?.kind !== "text" || readmeRequest.value.content === null || readmeRequest.value.content === "")
    return null
  return (
    <section class="readme" aria-label={escapeName(node.name)}>
      <header>
        <FileIcon kind="file" name={node.name} />
        <a href={fileHref(node.path)}>
          <Name text={node.name} />
        </a>
      </header>
      <LazyComponent load={markdown} with={{ path: node.path, text: readmeRequest.value.content, isPart: true }} />
    </section>
  )
}

export const DirectoryView = ({ node }: { readonly node: Node }) => {
  const children = childrenOf(node)
  const readme = children.find(({ kind, name }) => kind === "file" && /^readme\.(?:md|markdown)$/i.test(name))
  return (
    <section class="directory" aria-label={node.path === "" ? "All files" : escapeName(node.path)}>
      <header class="file-head">
        <div class="file-title">
          {node.path === "" ? null : (
            <a class="icon-button back" href={fileHref("")} aria-label="All files">
              <Drawing of="back" />
            </a>
          )}
          <Crumbs path={node.path} />
        </div>
        <p class="file-facts">
          <span>{formatFileCount(node.files)}</span>
          <span>{bytes(node.size)}</span>
        </p>
      </header>
      <div class="scroll directory-body" tabIndex={0}>
        {node.path === "" ? <Facts /> : null}
        {children.length === 0 ? (
          <Empty title="Nothing is in it" />
        ) : (
          <ul class="listing">
            {children.slice(0, maxListedEntries).map((child) => (
              <li key={child.path}>
                <a href={fileHref(child.path)}>
                  <FileIcon kind={child.kind} name={child.name} />
                  <span class="grow ellipsis">
                    <Name text={child.name} />
                  </span>
                  <span class="dim listing-files">{child.kind === "directory" ? formatFileCount(child.files) : ""}</span>
                  <span class="dim listing-size">{bytes(child.size)}</span>
                </a>
              </li>
            ))}
          </ul>
        )}
        {children.length > maxListedEntries ? (
          <p class="dim listing-more">
            and {(children.length - maxListedEntries).toLocaleString("en")} more, which the tree and its filter show.
          </p>
        ) : null}
        {readme === undefined ? null : <Readme node={readme} />}
      </div>
    </section>
  )
}
