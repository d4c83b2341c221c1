import { useSignal } from "@preact/signals"
import type { RefObject } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks"
import { bytes, Empty, ErrorMessage, escapeName, Name, VirtualList } from "../components.tsx"
import { Drawing, FileIcon, IconButton } from "../shell/icons.tsx"
import { keys } from "../shell/keys.ts"
import { useFileKeys } from "../shell/shell.tsx"
import { fileHref, go, meta, place, readStored, store } from "../store.ts"
import { DirectoryView, FileView } from "./fileView.tsx"
import {
  closeAll,
  filterMatches,
  marksOf,
  openDirectories,
  prepareFilter,
  query,
  retryTree,
  reveal,
  rows,
  shownTree,
  toggle,
  treeProblem
} from "./state.ts"
import type { Node } from "./tree.ts"

// The divider between the tree and the file. The mouse or the arrow keys move the divider, and its position is remembered.

const [minWidth, maxWidth, defaultWidth] = [180, 640, 288]
const key = "fs-algebra.tree-width"

const readStoredWidth = (): number => {
  const width = Number(readStored("localStorage", key) ?? defaultWidth)
  return width >= minWidth && width <= maxWidth ? width : defaultWidth
}

const Divider = () => {
  const element = useRef<HTMLDivElement>(null)
  const width = useRef(readStoredWidth())
  const setWidth = (wanted: number): void => {
    width.current = Math.round(Math.max(minWidth, Math.min(maxWidth, wanted)))
    document.documentElement.style.setProperty("--tree-width", `${width.current}px`)
    element.current?.setAttribute("aria-valuenow", `${width.current}`)
    store("localStorage", key, `${width.current}`)
  }
  useEffect(() => setWidth(width.current), [])
  return (
    <div
      class="divider"
      ref={element}
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the tree"
      aria-valuemin={minWidth}
      aria-valuemax={maxWidth}
      tabIndex={0}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key]
        if (by === undefined) return
        event.preventDefault()
        setWidth(width.current + by)
      }}
      onDblClick={() => setWidth(defaultWidth)}
      onPointerDown={(event) => {
        const [from, before] = [event.clientX, width.current]
        const handle = event.currentTarget
        handle.setPointerCapture(event.pointerId)
        const move = (moved: PointerEvent): void => setWidth(before + moved.clientX - from)
        handle.addEventListener("pointermove", move)
        handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true })
        event.preventDefault()
      }}
    />
  )
}

// Shows the tree, or the matches of the filter. The list handles the keys of all rows, because most rows have no elements.

const archiveProblem = (): string | undefined =>
  meta.value?.problems.find((problem) => problem.startsWith("The files cannot be shown"))

/** The height of a row. Touch input needs higher rows than a mouse. */
const rowHeight = matchMedia("(pointer: coarse)").matches ? 38 : 26

const choose = (node: Node): void => {
  if (node.kind === "directory") toggle(node)
  go(fileHref(node.path))
}

const Indents = ({ depth }: { readonly depth: number }) => (
  <span class="indents" aria-hidden="true" style={{ width: `${(depth - 1) * 14}px` }} />
)

const Rows = () => {
  const list = rows.value
  const active = useSignal<string | undefined>(undefined)
  const typedPrefix = useRef({ text: "", at: -1000 })
  const path = place.value.path
  const revealedPath = useRef<string | undefined>(undefined)
  // Reveal a path only once. Later changes of the tree must neither reopen directories that the user has closed, nor move the
  // active row.
  useLayoutEffect(() => {
    if (revealedPath.current === path) return
    active.value = path
    if (path === "" || shownTree.value?.tree.nodes.has(path) === true) revealedPath.current = path
    if (path !== "") reveal(path)
  }, [path, shownTree.value])
  const rowByPath = useMemo(() => new Map(list.map((node, index) => [node.path, index])), [list])
  const index = rowByPath.get(active.value ?? "") ?? -1
  const moveTo = (next: number): void => {
    active.value = list[Math.max(0, Math.min(list.length - 1, next))]?.path
  }

  /** Moves to the next row whose name begins with the typed letters. After a pause of 800 ms, a letter begins a new name. */
  const typeAhead = (letter: string, time: number): void => {
    const text = (time - typedPrefix.current.at < 800 ? typedPrefix.current.text : "") + letter.toLowerCase()
    typedPrefix.current = { text, at: time }
    const from = Math.max(0, text.length > 1 ? index : index + 1)
    const next = [...list.slice(from), ...list.slice(0, from)].find(({ name }) => name.toLowerCase().startsWith(text))
    if (next !== undefined) active.value = next.path
  }

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const node = list[index]
    const isDirectory = node?.kind === "directory"
    switch (event.key) {
      case "ArrowDown":
        moveTo(index + 1)
        break
      case "ArrowUp":
        moveTo(index < 0 ? 0 : index - 1)
        break
      case "Home":
        moveTo(0)
        break
      case "End":
        moveTo(list.length - 1)
        break
      case "PageDown":
        moveTo(index + 20)
        break
      case "PageUp":
        moveTo(index - 20)
        break
      case "ArrowRight":
        if (isDirectory && !openDirectories.value.has(node.path)) toggle(node, true)
        else if (isDirectory) moveTo(index + 1)
        break
      case "ArrowLeft":
        if (isDirectory && openDirectories.value.has(node.path)) toggle(node, false)
        else if (node?.parent !== undefined && node.parent.path !== "") active.value = node.parent.path
        break
      case "Enter":
      case " ":
        if (node !== undefined) choose(node)
        break
      default:
        // Any letter can continue a name, but a letter that is a shortcut of the page cannot begin a name.
        if (!/^[\p{L}\p{N}._-]$/u.test(event.key)) return
        if (event.timeStamp - typedPrefix.current.at >= 800 && keys.value.some(({ key }) => key === event.key)) return
        typeAhead(event.key, event.timeStamp)
    }
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <VirtualList
      class="tree"
      role="tree"
      id="tree"
      label="Files"
      tabIndex={0}
      count={list.length}
      rowHeight={rowHeight}
      focus={index < 0 ? undefined : index}
      active={index < 0 ? undefined : `row-${index}`}
      keyOf={(index) => list[index]!.path}
      onKeyDown={onKeyDown}
      row={(at) => {
        const node = list[at]!
        const { depth, kind, name, parent } = node
        const isDirectory = kind === "directory"
        const isOpen = isDirectory && openDirectories.value.has(node.path)
        const siblings = parent?.children ?? []
        return (
          <div
            id={`row-${at}`}
            role="treeitem"
            aria-level={depth}
            aria-expanded={isDirectory ? isOpen : undefined}
            aria-selected={node.path === path}
            aria-setsize={siblings.length}
            aria-posinset={siblings.length > 2000 ? undefined : siblings.indexOf(node) + 1}
            class={`row ${node.path === path ? "is-chosen" : ""} ${at === index ? "is-active" : ""}`}
            title={`${escapeName(node.path)}\n${bytes(node.size)}`}
            onClick={() => {
              active.value = node.path
              choose(node)
            }}
          >
            <Indents depth={depth} />
            <span class={`twist ${isOpen ? "is-open" : ""}`}>{isDirectory ? <Drawing of="chevron" /> : null}</span>
            <FileIcon kind={kind} name={name} isOpen={isOpen} />
            <span class="row-name ellipsis">
              <Name text={name} />
            </span>
          </div>
        )
      }}
    />
  )
}

/** Renders the matches. The key of a row is its position, so that new matches reuse the elements. */
const Results = ({ active }: { readonly active: number }) => {
  const list = filterMatches.value ?? []
  const path = place.value.path
  return (
    <VirtualList
      class="results"
      role="listbox"
      id="results"
      label="Files that match"
      count={list.length}
      rowHeight={rowHeight}
      focus={active}
      row={(at) => {
        const node = list[at]!
        const marks = marksOf(node)
        const nameAt = node.path.length - node.name.length
        const nameMarks = new Set([...marks].filter((mark) => mark >= nameAt).map((mark) => mark - nameAt))
        return (
          <div
            id={`result-${at}`}
            role="option"
            aria-selected={at === active}
            class={`row ${node.path === path ? "is-chosen" : ""} ${at === active ? "is-active" : ""}`}
            title={escapeName(node.path)}
            onClick={() => go(fileHref(node.path))}
          >
            <FileIcon kind={node.kind} name={node.name} />
            <span class="row-name ellipsis">
              <Name text={node.name} marks={nameMarks} />
            </span>
            <span class="row-way ellipsis">
              <Name text={node.path.slice(0, Math.max(0, nameAt - 1))} marks={marks} />
            </span>
          </div>
        )
      }}
    />
  )
}

const TreePane = ({ filter }: { readonly filter: RefObject<HTMLInputElement | null> }) => {
  const active = useSignal(0)
  const list = filterMatches.value
  const total = shownTree.value?.tree.files.length ?? 0
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key]
    if (event.key === "Escape") {
      if (query.value === "") filter.current?.blur()
      query.value = ""
    } else if (by !== undefined && list !== undefined) {
      active.value = Math.max(0, Math.min(list.length - 1, active.value + by))
    } else if (by !== undefined) document.getElementById("tree")?.focus()
    else if (event.key === "Enter" && list !== undefined) {
      const node = list[active.value]
      if (node !== undefined) go(fileHref(node.path))
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <section class="tree-pane" aria-label="Files">
      <div class="filter">
        <Drawing of="search" />
        <input
          ref={filter}
          class="filter-input"
          type="text"
          role="combobox"
          aria-label="Filter the files"
          aria-expanded={list !== undefined}
          aria-controls="results"
          aria-activedescendant={list === undefined ? undefined : `result-${active.value}`}
          placeholder="Filter"
          autocomplete="off"
          spellcheck={false}
          value={query.value}
          onInput={({ currentTarget }) => {
            query.value = currentTarget.value
            active.value = 0
          }}
          onFocus={prepareFilter}
          onKeyDown={onKeyDown}
        />
        {list === undefined ? (
          <kbd>/</kbd>
        ) : (
          <>
            <span class="filter-count" role="status">
              {list.length.toLocaleString("en")}
            </span>
            <IconButton
              of="close"
              label="Clear the filter"
              onClick={() => {
                query.value = ""
                filter.current?.focus()
              }}
            />
          </>
        )}
        <IconButton of="collapse" label="Close all directories" title="Close all directories" onClick={closeAll} />
      </div>
      <div class="tree-body">
        {shownTree.value === undefined ? (
          treeProblem.value === undefined ? null : (
            <ErrorMessage message={treeProblem.value} retry={retryTree} />
          )
        ) : total === 0 && rows.value.length === 0 ? (
          <Empty title="No files">
            {shownTree.value.filesystem === undefined ? (
              <p>{archiveProblem() ?? "This dump has no archive."}</p>
            ) : (
              <p>There are no files to show.</p>
            )}
          </Empty>
        ) : list === undefined ? (
          <Rows />
        ) : list.length === 0 ? (
          <Empty title="Nothing matches">
            <p>
              <Name text={query.value} />
            </p>
          </Empty>
        ) : (
          <Results active={active.value} />
        )}
      </div>
    </section>
  )
}

export const FilesView = () => {
  const filter = useRef<HTMLInputElement>(null)
  const { path } = place.value
  useFileKeys(() => {
    const focus = (): void => {
      filter.current?.focus()
      filter.current?.select()
    }
    // Set the focus immediately, so that no typed letter is lost. On a narrow screen, where the file covers the tree, show
    // the tree first.
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
