import { computed, signal } from "@preact/signals"
import { type ComponentChildren, createRef } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import { bytes, escapeName, Name, Time } from "../components.tsx"
import { query, shownTree, stepFile } from "../files/state.ts"
import {
  at,
  dumps,
  failure,
  fileHref,
  go,
  hereWith,
  hrefOf,
  isConnected,
  isStale,
  journalLast,
  meta,
  place,
  reload,
  snapshots,
  switchTheme,
  switchTo,
  theme,
  type View,
  views
} from "../store.ts"
import { Drawing, IconButton, Mark } from "./icons.tsx"
import { keys, useKeys } from "./keys.ts"

const element = createRef<HTMLDialogElement>()

/** Opens the help dialog. Reads the state of the element, because the close event of an earlier opening may arrive late. */
const openHelp = (): void => {
  if (element.current?.open === false) element.current.showModal()
}

const shown: Readonly<Record<string, string>> = { Escape: "Esc", ArrowDown: "↓", ArrowUp: "↑" }

/**
 * Keys that work only while an element has the focus. These keys are not bound in `keys`, so the help lists them separately.
 */
const others: ReadonlyArray<readonly [keys: ReadonlyArray<string>, does: string]> = [
  [["↑", "↓"], "In the tree: up and down"],
  [["→", "←"], "In the tree: open and close"],
  [["Enter"], "Open the chosen item"],
  [["Ctrl", "F"], "Find in the file, when it has the focus"]
]

const Help = () => {
  // Keys with the same description are shown in one line.
  const does = new Map<string, Array<string>>()
  for (const bound of keys.value) {
    const list = does.get(bound.does) ?? []
    if (!list.includes(bound.key)) does.set(bound.does, [...list, bound.key])
  }
  return (
    <dialog
      class="help"
      ref={element}
      aria-label="Keys"
      onClick={(event) => {
        if (event.target === element.current) element.current?.close()
      }}
    >
      <div class="help-body">
        <header>
          <h2>Keys</h2>
          <IconButton of="close" label="Close" onClick={() => element.current?.close()} />
        </header>
        <dl>
          {[...does].map(([text, list]) => (
            <div key={text}>
              <dt>{text}</dt>
              <dd>
                {list.map((key) => (
                  <kbd key={key}>{shown[key] ?? key}</kbd>
                ))}
              </dd>
            </div>
          ))}
          {others.map(([list, text]) => (
            <div key={text}>
              <dt>{text}</dt>
              <dd>
                {list.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dd>
            </div>
          ))}
        </dl>
        <p class="dim">
          This page changes nothing. <a href="openapi.json">OpenAPI description of the server</a>
        </p>
      </div>
    </dialog>
  )
}

interface Choice {
  readonly id: string
  readonly label: ComponentChildren
  readonly text: string
  readonly note?: ComponentChildren
}

/** The largest number of choices to show. A search finds further choices. */
const maxShownChoices = 200

const Menu = ({
  align = "left",
  chosen,
  choices,
  class: name,
  label,
  onChoose,
  children
}: {
  readonly align?: "left" | "right"
  readonly chosen: string
  readonly choices: ReadonlyArray<Choice>
  readonly class?: string
  readonly label: string
  readonly onChoose: (id: string) => void
  readonly children: ComponentChildren
}) => {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(0)
  const [query, setQuery] = useState("")
  const element = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const words = query.toLowerCase().split(/\s+/)
  const shownChoices = choices
    .filter(({ text }) => words.every((word) => text.toLowerCase().includes(word)))
    .slice(0, maxShownChoices)
  const isSearched = choices.length > 8

  const close = (): void => {
    setOpen(false)
    button.current?.focus()
  }
  const choose = (index: number): void => {
    const choice = shownChoices[index]
    if (choice === undefined) return
    close()
    if (choice.id !== chosen) onChoose(choice.id)
  }
  // Move the focus to the search field, or to the list if there is no field, before the next key press.
  useLayoutEffect(() => {
    if (!isOpen) return undefined
    setQuery("")
    setActive(
      Math.max(
        0,
        choices.findIndex(({ id }) => id === chosen)
      )
    )
    element.current?.querySelector<HTMLElement>("input, [role=listbox]")?.focus()
    const closeIfOutside = ({ target }: Event): void => {
      if (target instanceof globalThis.Node && element.current?.contains(target) === false) setOpen(false)
    }
    addEventListener("pointerdown", closeIfOutside)
    return () => removeEventListener("pointerdown", closeIfOutside)
  }, [isOpen])
  useEffect(() => {
    if (isOpen) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" })
  }, [active, isOpen])

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isOpen) return
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: shownChoices.length - 1 }[event.key]
    if (to !== undefined) setActive(Math.max(0, Math.min(shownChoices.length - 1, to)))
    else if (event.key === "Enter") choose(active)
    else if (event.key === "Escape") close()
    else if (event.key === "Tab") {
      setOpen(false)
      return
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div class={`menu ${name ?? ""}`} ref={element} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="menu-button"
        ref={button}
        aria-haspopup="listbox"
        aria-expanded={isOpen}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="visually-hidden">{label}: </span>
        {children}
        <Drawing of="down" />
      </button>
      {isOpen ? (
        <div class={`menu-pop menu-${align}`}>
          {isSearched ? (
            <input
              class="input"
              type="text"
              role="combobox"
              aria-label={`Search: ${label}`}
              aria-expanded="true"
              aria-controls={id}
              aria-activedescendant={`${id}-${active}`}
              placeholder="Search"
              value={query}
              onInput={({ currentTarget }) => {
                setQuery(currentTarget.value)
                setActive(0)
              }}
            />
          ) : null}
          <div
            class="menu-list"
            role="listbox"
            id={id}
            aria-label={label}
            tabIndex={isSearched ? -1 : 0}
            aria-activedescendant={`${id}-${active}`}
          >
            {shownChoices.map((choice, index) => (
              <div
                key={choice.id}
                id={`${id}-${index}`}
                role="option"
                aria-selected={choice.id === chosen}
                class={`menu-item ${index === active ? "is-active" : ""}`}
                onClick={() => choose(index)}
                onPointerMove={() => setActive(index)}
              >
                <span class="menu-check">{choice.id === chosen ? <Drawing of="check" /> : null}</span>
                <span class="menu-label">{choice.label}</span>
                {choice.note === undefined ? null : <span class="menu-note">{choice.note}</span>}
              </div>
            ))}
            {shownChoices.length === 0 ? <p class="menu-none">Nothing matches.</p> : null}
          </div>
        </div>
      ) : null}
    </div>
  )
}

const names: Record<View, string> = {
  files: "Files",
  changes: "Changes",
  events: "Events",
  slices: "Slices",
  journal: "Journal"
}

const tabs = computed(() => {
  const shownMeta = meta.value
  const counts: Record<View, readonly [count: number | undefined, lacking: string]> = {
    files: [shownTree.value?.tree.files.length, "There are no files."],
    // The server sends the number of snapshots, but not the number of changes.
    changes: [shownMeta?.snapshots === 0 ? 0 : undefined, "There is no snapshot to compare."],
    events: [shownMeta?.events, "No tool calls are recorded."],
    slices: [shownMeta?.slices, "There are no slices of a session."],
    journal: [shownMeta?.has_journal === true ? journalLast.value : 0, "No journal is open; --journal FILE opens one."]
  }
  return views.map((view) => ({ view, count: counts[view][0], emptyReason: counts[view][1] }))
})

const compactNumber = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })

const viewHref = (view: View): string =>
  view === "files" || view === "changes" ? hrefOf(view, "", { at: at.value }) : hrefOf(view)

const Tabs = () => (
  <nav class="tabs" aria-label="Views">
    {tabs.value.map(({ count, emptyReason, view }, index) => (
      <a
        key={view}
        href={viewHref(view)}
        class={count === 0 ? "is-empty" : ""}
        aria-current={place.value.view === view ? "page" : undefined}
        title={count === 0 ? emptyReason : `${names[view]} (${index + 1})`}
      >
        {names[view]}
        {count === undefined || count === 0 ? null : (
          <span class="tab-count" aria-label={`${count}`}>
            {compactNumber.format(count)}
          </span>
        )}
      </a>
    ))}
  </nav>
)

const SourceTitle = () => {
  const shownMeta = meta.value
  if (shownMeta === undefined) return <span class="what">fs-algebra</span>
  const title = <strong class="what-title ellipsis">{<Name text={shownMeta.title} />}</strong>
  const kind = <span class="badge">{shownMeta.kind}</span>
  if (dumps.value.length < 2) {
    return (
      <span class="what" title={escapeName(shownMeta.path)}>
        {title}
        {kind}
      </span>
    )
  }
  return (
    <Menu
      class="what"
      label="Shown dump"
      chosen={dumps.value.find(({ is_shown }) => is_shown)?.path ?? shownMeta.path}
      choices={dumps.value.map(({ has_archive, modified_at, path, size_bytes }) => ({
        id: path,
        text: path,
        label: <Name text={path} />,
        note: (
          <>
            <Time at={modified_at} /> · {bytes(size_bytes)}
            {has_archive ? "" : " · no files"}
          </>
        )
      }))}
      onChoose={(path) => void switchTo(path)}
    >
      {title}
      {kind}
    </Menu>
  )
}

const currentKey = "\u0000now"

const Snapshots = () => {
  // Only the files view has this menu. The changes view has its own choices of snapshots.
  if (snapshots.value.length === 0 || place.value.view !== "files") return null
  const chosen = snapshots.value.find(({ id }) => id === at.value)
  const label = chosen?.label ?? at.value ?? (meta.value?.kind === "workspace" ? "Now" : "This dump")
  return (
    <Menu
      align="right"
      class={`snapshots ${at.value === undefined ? "" : "is-past"}`}
      label="Shown snapshot"
      chosen={at.value ?? currentKey}
      choices={[
        { id: currentKey, text: "now", label: meta.value?.kind === "workspace" ? "Now" : "This dump" },
        ...snapshots.value.map(({ created_at, id, label, tag, tool }) => ({
          id,
          text: `${label} ${tag ?? ""} ${tool ?? ""} ${id}`,
          label: <Name text={label} />,
          note: (
            <>
              <Time at={created_at} />
              {tool === undefined ? null : (
                <>
                  {" · before "}
                  <Name text={tool} />
                </>
              )}
            </>
          )
        }))
      ]}
      onChoose={(id) => go(hereWith({ at: id === currentKey ? undefined : id, line: undefined }))}
    >
      <Drawing of="clock" />
      <span class="ellipsis">
        <Name text={label} />
      </span>
    </Menu>
  )
}

const LiveIndicator = () =>
  meta.value?.is_live !== true || isConnected.value === undefined ? null : (
    <span
      class={`live ${isConnected.value ? "" : "is-away"}`}
      role="status"
      title={isConnected.value ? "Changes are shown as they happen" : "The server does not answer"}
    >
      <span class="live-dot" />
      {isConnected.value ? "Live" : "Away"}
    </span>
  )

const themeNames = { system: "as the system", light: "light", dark: "dark" }

const Header = () => (
  <header class="header">
    <a class="home" href={fileHref("")} aria-label="All files" title="All files">
      <Mark />
    </a>
    <SourceTitle />
    <Tabs />
    <div class="header-end">
      <LiveIndicator />
      <Snapshots />
      <IconButton of="reload" label="Reload" title="Reload (r)" onClick={() => void reload()} />
      <IconButton label="Switch theme" title={`Theme: ${themeNames[theme.value]} (t)`} onClick={switchTheme}>
        <Drawing of="sun" class="when-dark" />
        <Drawing of="moon" class="when-light" />
      </IconButton>
      <IconButton of="help" label="Keys and help" title="Keys and help (?)" onClick={openHelp} />
    </div>
  </header>
)

/** The text of the banner that the user has dismissed. A banner with a different text is still shown. */
const dismissedProblems = signal("")

const Banner = ({
  children,
  kind,
  onClose
}: {
  readonly children: ComponentChildren
  readonly kind: "warn" | "info" | "bad"
  readonly onClose?: () => void
}) => (
  <div class={`banner ${kind}`} role={kind === "info" ? "status" : "alert"}>
    <Drawing of={kind === "info" ? "clock" : "warning"} />
    <div class="grow">{children}</div>
    {onClose === undefined ? null : <IconButton of="close" label="Dismiss" onClick={onClose} />}
  </div>
)

const Banners = () => {
  const problems = meta.value?.problems ?? []
  const problemText = problems.join("\n")
  return (
    <div class="banners">
      {isConnected.value === false && meta.value !== undefined ? (
        <Banner kind="info">
          The server does not answer. The loaded data stays readable, and the page reconnects by itself.
        </Banner>
      ) : null}
      {failure.value === undefined ? null : (
        <Banner
          kind="bad"
          onClose={() => {
            failure.value = undefined
          }}
        >
          <Name text={failure.value} />
        </Banner>
      )}
      {isStale.value ? (
        <Banner
          kind="info"
          onClose={() => {
            isStale.value = false
          }}
        >
          This dump was written again, or another dump appeared.{" "}
          <button type="button" class="link" onClick={() => void reload()}>
            Reload
          </button>
        </Banner>
      ) : null}
      {problems.length === 0 || dismissedProblems.value === problemText ? null : (
        <Banner
          kind="warn"
          onClose={() => {
            dismissedProblems.value = problemText
          }}
        >
          {problems.map((problem) => (
            <p key={problem}>
              <Name text={problem} />
            </p>
          ))}
        </Banner>
      )}
    </div>
  )
}

const Footer = () => {
  const filesystem = shownTree.value?.filesystem
  const shownMeta = meta.value
  const created = filesystem?.created_at ?? shownMeta?.created_at
  // Omit the session id, because the overview of the files shows the id.
  const tags = Object.entries(shownMeta?.tags ?? {}).filter(([name]) => name !== "session_id")
  return (
    <footer class="footer">
      {filesystem === undefined ? (
        <span>No files</span>
      ) : (
        <>
          <span>
            {filesystem.file_count.toLocaleString("en")} {filesystem.file_count === 1 ? "file" : "files"}
          </span>
          <span>{bytes(filesystem.total_bytes)}</span>
        </>
      )}
      {created === undefined ? null : <Time at={created} />}
      {tags.map(([name, value]) => (
        <span key={name} class="footer-tag ellipsis">
          <Name text={name} /> <Name text={value} />
        </span>
      ))}
      <span class="grow" />
      {shownMeta === undefined ? null : <span>fs-algebra {shownMeta.version}</span>}
    </footer>
  )
}

export const Shell = ({ children }: { readonly children: ComponentChildren }) => {
  const { path, view } = place.value
  const main = useRef<HTMLElement>(null)
  useKeys([
    { key: "?", does: "This help", run: openHelp },
    { key: "r", does: "Reload", run: () => void reload() },
    { key: "t", does: "Light or dark", run: switchTheme },
    ...views.map((view, index) => ({ key: `${index + 1}`, does: "The views", run: () => go(viewHref(view)) }))
  ])
  useEffect(() => {
    const parts = [path === "" ? (view === "files" ? "" : names[view]) : path, meta.value?.title ?? "", "fs-algebra"]
    document.title = parts
      .filter((part) => part !== "")
      .map(escapeName)
      .join(" — ")
  }, [view, path, meta.value?.title])
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to the content
      </a>
      <Header />
      <Banners />
      <main id="main" class={`main view-${view}`} ref={main} tabIndex={-1} aria-label={names[view]}>
        <h1 class="visually-hidden">{path === "" ? names[view] : `${names[view]}: ${escapeName(path)}`}</h1>
        {children}
      </main>
      <Footer />
      <Help />
    </>
  )
}

export const useFileKeys = (focusFilter: () => void): void =>
  useKeys([
    { key: "/", does: "Filter the files", run: focusFilter },
    { key: "j", does: "Next file", run: () => stepFile(1) },
    { key: "k", does: "Previous file", run: () => stepFile(-1) },
    { key: "n", does: "Next file", run: () => stepFile(1) },
    { key: "p", does: "Previous file", run: () => stepFile(-1) },
    {
      key: "Escape",
      does: "Clear the filter",
      run: () => {
        query.value = ""
      }
    }
  ])
