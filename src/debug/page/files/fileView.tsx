import { useEffect, useMemo, useState } from "preact/hooks"
import type { FileContent } from "../../model.ts"
import { partOfLine } from "../../partOfLine.ts"
import * as Api from "../api.ts"
import { bytes, Empty, ErrorMessage, escapeName, LazyComponent, Name, Time, useClipboard, useRequest } from "../components.tsx"
import { Drawing, FileIcon, IconButton } from "../shell/icons.tsx"
import { useKeys } from "../shell/keys.ts"
import {
  at,
  fileHref,
  go,
  hereWith,
  isHistoryShown,
  isWrapping,
  meta,
  place,
  snapshots,
  switchHistory,
  switchWrapping,
  version
} from "../store.ts"
import { bytesOf, type Form, formOf, hexOf, imageTypeOf } from "./content.ts"
import { shownTree } from "./state.ts"
import { childrenOf, type Node, resolved } from "./tree.ts"

type Part = NonNullable<FileContent["part"]>

/**
 * Returns the number of the part that the address selects with `part` or `line`. If both are given, `line` has priority.
 * Returns `undefined` if the address selects no part.
 */
const partAsked = (part: Part | undefined): number | undefined => {
  const { line, part: requestedPart } = place.value.params
  if (part !== undefined && line !== undefined) return partOfLine(part.first_lines, Number(line))
  return requestedPart === undefined ? undefined : Number(requestedPart)
}

const shown = (number: number): string => number.toLocaleString("en")

const GoToLine = ({ last }: { readonly last: number }) => {
  const [text, setText] = useState("")
  return (
    <form
      class="part-line"
      onSubmit={(event) => {
        event.preventDefault()
        const line = Math.min(last, Math.max(1, Math.trunc(Number(text))))
        if (Number.isFinite(line)) go(hereWith({ line: `${line}`, part: undefined }))
      }}
    >
      <label>
        Line{" "}
        <input type="number" min={1} max={last} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
      </label>
      <button type="submit">Go</button>
    </form>
  )
}

const Pager = ({ part }: { readonly part: Part }) => {
  const { first_lines: first, number, total_lines: total } = part
  const last = first.length - 1
  const end = number === last ? total : Math.max(first[number]!, first[number + 1]! - 1)
  const link = (label: string, to: number) => (
    <button
      type="button"
      disabled={to === number || to < 0 || to > last}
      onClick={() => go(hereWith({ part: to === 0 ? undefined : `${to}`, line: undefined }))}
    >
      {label}
    </button>
  )
  return (
    <nav class="notice-line part-pager" aria-label="Parts of the file">
      <span role="status">
        Lines {shown(first[number]!)} to {shown(end)} of {shown(total)}
      </span>
      <span class="part-links">
        {link("First", 0)}
        {link("Previous", number - 1)}
        {link("Next", number + 1)}
        {link("Last", last)}
      </span>
      <GoToLine last={total} />
    </nav>
  )
}

const code = () => import("../code/codeView.tsx").then(({ CodeView }) => CodeView)
const markdown = () => import("./markdown.tsx").then(({ Markdown }) => Markdown)
const table = () => import("./table.tsx").then(({ Table }) => Table)
const history = () => import("../panels/index.ts").then(({ History }) => History)
const json = () => import("./json.ts")

/** The largest file, in bytes, for which a form is chosen automatically. The layout of a larger file takes seconds. */
const maxAutomaticBytes: Partial<Record<Form, number>> = { json: 2_000_000, markdown: 500_000, table: 8_000_000 }

const Crumbs = ({ path }: { readonly path: string }) => {
  const parts = path === "" ? [] : path.split("/")
  return (
    <nav class="crumbs" aria-label="Path">
      <a href={fileHref("")}>{meta.value === undefined ? "Files" : <Name text={meta.value.title} />}</a>
      {parts.map((part, index) => {
        const here = parts.slice(0, index + 1).join("/")
        return (
          <span key={here} class="crumb">
            <span class="dim" aria-hidden="true">
              /
            </span>
            {index === parts.length - 1 ? (
              <strong aria-current="page">
                <Name text={part} />
              </strong>
            ) : (
              <a href={fileHref(here)}>
                <Name text={part} />
              </a>
            )}
          </span>
        )
      })}
    </nav>
  )
}

const CopyButton = ({
  class: name = "icon-button",
  label,
  shown,
  text
}: {
  readonly label: string
  readonly text: string
  readonly class?: string
  readonly shown?: string
}) => {
  const { copy, outcome } = useClipboard(text)
  return (
    <button
      type="button"
      class={name}
      title={outcome === undefined ? label : outcome === "done" ? "Copied" : "The browser refused access to the clipboard."}
      aria-label={shown === undefined ? label : `${label} ${shown}`}
      data-said={outcome}
      onClick={copy}
    >
      {shown === undefined ? null : <span class="mono">{shown}</span>}
      <Drawing of={outcome === "done" ? "check" : outcome === "refused" ? "close" : "copy"} />
      <span class="visually-hidden" role="status">
        {outcome === "done" ? "Copied" : ""}
      </span>
    </button>
  )
}

const download = (file: FileContent): void => {
  const url = URL.createObjectURL(new Blob([bytesOf(file)], { type: "application/octet-stream" }))
  const link = document.createElement("a")
  link.href = url
  link.download = escapeName(file.path.slice(file.path.lastIndexOf("/") + 1))
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

const Code = ({
  firstLine,
  label = "Content",
  name,
  text
}: {
  readonly name: string
  readonly text: string
  readonly label?: string
  readonly firstLine?: number | undefined
}) => {
  const number = Number(place.value.params["line"])
  return (
    <LazyComponent
      load={code}
      with={{
        path: name,
        text,
        label,
        firstLine,
        isWrapping: isWrapping.value,
        line: Number.isInteger(number) && number > 0 ? number : undefined,
        onChooseLine: (line: number) => go(hereWith({ line: `${line}` }), { replace: true })
      }}
    />
  )
}

const Formatted = ({ file }: { readonly file: FileContent }) => {
  const text = file.content ?? ""
  const [formattedText, setFormattedText] = useState<string>()
  useEffect(() => {
    let isGone = false
    void json().then(({ formatted }) => isGone || setFormattedText(formatted(text)))
    return () => {
      isGone = true
    }
  }, [text])
  return formattedText === undefined ? null : <Code name="a.json" text={formattedText} label="Formatted" />
}

const useUrl = (file: FileContent, type: string): string => {
  const url = useMemo(() => URL.createObjectURL(new Blob([bytesOf(file)], { type })), [file.content, type])
  useEffect(() => () => URL.revokeObjectURL(url), [url])
  return url
}

const Picture = ({ file, type }: { readonly file: FileContent; readonly type: string }) => {
  const url = useUrl(file, type)
  const [size, setSize] = useState<{ url: string; text: string }>()
  const isBroken = size?.url === url && size.text === ""
  return (
    <div class="scroll file-picture">
      {isBroken ? (
        <Empty title={`This ${file.media_name} cannot be shown`}>
          <p>The browser does not support it.</p>
        </Empty>
      ) : (
        <figure>
          <img
            src={url}
            alt={escapeName(file.path)}
            onLoad={({ currentTarget: { naturalHeight, naturalWidth } }) =>
              setSize({ url, text: naturalWidth > 0 ? `${naturalWidth} × ${naturalHeight}` : "no fixed size" })
            }
            onError={() => setSize({ url, text: "" })}
          />
          <figcaption class="dim">
            {file.media_name}
            {size?.url === url ? ` · ${size.text}` : " "}
          </figcaption>
        </figure>
      )}
    </div>
  )
}

const hexBytes = 4096

const Binary = ({ file }: { readonly file: FileContent }) => {
  const text = useMemo(() => hexOf(bytesOf(file).subarray(0, hexBytes)), [file.content])
  return (
    <div class="scroll binary" tabIndex={0}>
      <div class="file-notice">
        <p>
          <strong>{file.media_name}</strong>, {bytes(file.size_bytes)} ({file.media_type}). It is neither text nor an image that
          can be shown.
        </p>
        {file.content === null ? <p>The content is too large to be shown.</p> : null}
      </div>
      {file.content === null ? null : (
        <>
          <p class="dim binary-title">
            {file.size_bytes > hexBytes ? `The first ${hexBytes.toLocaleString("en")} bytes` : "All bytes"}
          </p>
          <pre class="hex" aria-label="Bytes in hexadecimal">
            {text}
          </pre>
        </>
      )}
    </div>
  )
}

const Link = ({ file }: { readonly file: FileContent }) => {
  const to = file.content ?? ""
  const target = to.startsWith("/") ? undefined : resolved(file.path, to)
  const isTargetHere = target !== undefined && (target === "" || shownTree.value?.tree.nodes.has(target) === true)
  return (
    <Empty title="A symbolic link">
      <p>
        Its target is{" "}
        {isTargetHere ? (
          <a class="mono" href={fileHref(target)}>
            <Name text={to} />
          </a>
        ) : (
          <code>
            <Name text={to} />
          </code>
        )}
        {isTargetHere ? "." : ", which is not in this tree."}
      </p>
    </Empty>
  )
}

const formLabels: Partial<Record<Form, readonly [shown: string, written: string]>> = {
  markdown: ["Rendered", "Raw"],
  json: ["Formatted", "As written"],
  table: ["Table", "As written"],
  image: ["Image", "Text"]
}

const Body = ({ isRaw, file, form }: { readonly file: FileContent; readonly form: Form; readonly isRaw: boolean }) => {
  const type = imageTypeOf(file)
  if (form === "empty") return <Empty title="This file is empty" />
  if (form === "link") return <Link file={file} />
  if (file.content === null || form === "binary") return <Binary file={file} />
  if (form === "image" && type !== undefined && !isRaw) return <Picture file={file} type={type} />
  if (form === "json" && !isRaw) return <Formatted file={file} />
  if (form === "markdown" && !isRaw) return <LazyComponent load={markdown} with={{ path: file.path, text: file.content }} />
  if (form === "table" && !isRaw)
    return <LazyComponent load={table} with={{ label: escapeName(file.path), text: file.content }} />
  return <Code name={file.path} text={file.content} firstLine={file.part?.first_lines[file.part.number]} />
}

/** The requested part, or the requested line while the parts are unknown. */
interface RequestedPart {
  readonly path: string
  readonly part?: number | undefined
  readonly line?: number | undefined
}

const initiallyRequested = (path: string): RequestedPart => {
  const line = Number(place.value.params["line"])
  return { path, part: partAsked(undefined), line: Number.isInteger(line) && line > 0 ? line : undefined }
}

const useFile = (path: string) => {
  const [keptRequest, setKeptRequest] = useState<RequestedPart>(() => initiallyRequested(path))
  const requestedPart = keptRequest.path === path ? keptRequest : initiallyRequested(path)
  const { line, part } = requestedPart
  const response = useRequest(
    async (signal) => {
      const isMissing = (error: unknown): boolean => error instanceof Api.ApiError && error.status === 404
      try {
        return { path, file: await Api.file(path, at.value, signal, part === undefined ? { line } : { part }) }
      } catch (error) {
        if (!isMissing(error)) throw error
        if (part === undefined) return { path, file: undefined }
      }
      // The file may have become shorter, so that the part no longer exists.
      go(hereWith({ part: undefined, line: undefined }), { replace: true })
      setKeptRequest({ path })
      return undefined
    },
    [path, at.value, version.value, part, part === undefined ? line : undefined]
  )
  // Ignore a response for a file that is no longer shown.
  const value = response.value?.path === path ? response.value : undefined
  const loadedPart = value?.file?.part
  const next = partAsked(loadedPart)
  useEffect(() => {
    if (requestedPart !== keptRequest) setKeptRequest(requestedPart)
    else if (loadedPart !== undefined && (next ?? 0) !== loadedPart.number && !response.isLoading)
      setKeptRequest({ path, part: next ?? 0 })
  }, [path, loadedPart, next, response.isLoading])
  return { ...response, value }
}

export const FileView = ({ path }: { readonly path: string }) => {
  const response = useFile(path)
  const file = response.value?.file
  const form = file === undefined ? undefined : formOf(file)
  const formNames = form === undefined || (form === "image" && file?.kind !== "text") ? undefined : formLabels[form]
  const canBeFormatted = file !== undefined && !file.truncated
  const chosen = place.value.params["as"]
  const line = place.value.params["line"]
  const isRaw =
    formNames !== undefined &&
    (chosen === undefined
      ? (line !== undefined && form !== "json") ||
        ((form === "json" || form === "table") && !canBeFormatted) ||
        file!.size_bytes > (maxAutomaticBytes[form!] ?? Number.POSITIVE_INFINITY)
      : chosen === "written")
  const isText = file?.kind === "text" && form !== "empty" && (formNames === undefined || isRaw || form === "json")
  useKeys([
    { key: "w", does: "Wrap long lines", run: switchWrapping },
    { key: "h", does: "Who changed the file", run: switchHistory },
    ...(formNames === undefined
      ? []
      : [
          {
            key: "v",
            does: `${formNames[0]} or ${formNames[1].toLowerCase()}`,
            run: () => go(hereWith({ as: isRaw ? "shown" : "written", line: undefined }), { replace: true })
          }
        ])
  ])
  const snapshot = snapshots.value.find(({ id }) => id === at.value)
  return (
    <section class="file" aria-label={escapeName(path)}>
      <header class="file-head">
        <div class="file-title">
          <a class="icon-button back" href={fileHref("")} aria-label="All files">
            <Drawing of="back" />
          </a>
          <Crumbs path={path} />
          <CopyButton label="Copy the path" text={path} />
        </div>
        <div class="file-tools">
          {formNames === undefined ? null : (
            <div class="segments" role="group" aria-label="Form of display">
              {formNames.map((way, index) => (
                <button
                  key={way}
                  type="button"
                  aria-pressed={isRaw === (index === 1)}
                  disabled={(form === "json" || form === "table") && index === 0 && !canBeFormatted}
                  onClick={() => go(hereWith({ as: index === 0 ? "shown" : "written", line: undefined }), { replace: true })}
                >
                  {way}
                </button>
              ))}
            </div>
          )}
          {isText ? (
            <IconButton
              of="wrap"
              label="Wrap long lines"
              title="Wrap long lines (w)"
              isPressed={isWrapping.value}
              onClick={switchWrapping}
            />
          ) : null}
          {file?.kind === "text" && file.content !== null ? (
            <CopyButton label={file.truncated ? "Copy what is shown" : "Copy the content"} text={file.content} />
          ) : null}
          {file === undefined || file.content === null || file.truncated || file.kind === "symlink" ? null : (
            <IconButton of="download" label="Download" title="Download" onClick={() => download(file)} />
          )}
          <IconButton
            of="history"
            label="Who changed the file"
            title="Who changed the file (h)"
            isPressed={isHistoryShown.value}
            onClick={switchHistory}
          />
        </div>
        <p class="file-facts">
          {file === undefined ? (
            " "
          ) : (
            <>
              <span>{bytes(file.size_bytes)}</span>
              <span>{file.media_name}</span>
              {file.mode === undefined ? null : <span class="mono">{file.mode}</span>}
              {file.modified_at === undefined ? null : <Time at={file.modified_at} />}
              {file.version === undefined ? null : (
                <CopyButton class="version" label="Copy the SHA-256" text={file.version} shown={file.version.slice(0, 10)} />
              )}
              {snapshot === undefined ? null : (
                <span class="badge info">
                  <Name text={snapshot.label} />
                </span>
              )}
            </>
          )}
        </p>
      </header>
      {file?.part !== undefined ? (
        <Pager part={file.part} />
      ) : file?.truncated === true && file.content !== null ? (
        <p class="notice-line" role="status">
          Only the beginning is shown: the file has {bytes(file.size_bytes)}.
        </p>
      ) : null}
      <div class={`file-split ${isHistoryShown.value ? "has-history" : ""}`}>
        <div class="file-body">
          {response.error !== undefined ? (
            <ErrorMessage message={response.error} retry={response.askAgain} />
          ) : response.value === undefined ? null : file === undefined || form === undefined ? (
            <Empty title="There is no such file">
              <p>
                {at.value === undefined
                  ? "The path does not exist, or was removed."
                  : "The path does not exist in this snapshot."}
              </p>
              {at.value === undefined ? null : (
                <a class="button" href={hereWith({ at: undefined })}>
                  Look for it now
                </a>
              )}
            </Empty>
          ) : (
            <Body key={`${path}`} file={file} form={form} isRaw={isRaw} />
          )}
        </div>
        {isHistoryShown.value ? (
          <aside class="history" aria-label="Who changed the file">
            <header>
              <h2>History</h2>
              <IconButton of="close" label="Close the history" onClick={switchHistory} />
            </header>
            <div class="history-body">
              <LazyComponent load={history} with={{ path }} />
            </div>
          </aside>
        ) : null}
      </div>
    </section>
  )
}

/** The largest number of entries to render. A longer list would be slow, and the user can find entries with the filter. */
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
          <Empty title="This directory is empty" />
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
            and {(children.length - maxListedEntries).toLocaleString("en")} more; the tree and its filter show them.
          </p>
        ) : null}
        {readme === undefined ? null : <Readme node={readme} />}
      </div>
    </section>
  )
}
