import { useLayoutEffect, useMemo, useState } from "preact/hooks"
import type { DiffEntry, SnapshotInfo } from "../../model.ts"
import * as Api from "../api.ts"
import { bytes, Empty, ErrorMessage, useRequest, VirtualList } from "../components.tsx"
import { at, go, hereWith, hrefOf, makeStoredSetting, meta, place, snapshots, version } from "../store.ts"
import type { Mode } from "./editors.ts"
import { IconButton } from "../shell/icons.tsx"
import { FileDiff } from "./FileDiff.tsx"
import { Choice, Path, Search, Split, useFocus, useListKeys, useNarrow, useNow } from "./parts.tsx"
import { formatAgo, formatCount, millisOf, escapeLine } from "./words.ts"

/**
 * The value of `with` in the address that means the current tree of the source. If `with` is absent, the comparison is with the
 * previous snapshot.
 */
const currentSource = "itself"

const kinds = ["added", "modified", "deleted", "renamed"] as const

const storedMode = makeStoredSetting("fs-algebra.diff", ["split", "unified"], "split")

/** Returns the snapshot before `at` or, for the current tree, the latest snapshot. Returns `undefined` if there is none. */
const previousSnapshot = (all: ReadonlyArray<SnapshotInfo>, at: string | undefined): string | undefined => {
  const index = at === undefined ? -1 : all.findIndex(({ id }) => id === at)
  return at !== undefined && index < 0 ? undefined : all[index + 1]?.id
}

const sizeOf = ({ change, size_after, size_before }: DiffEntry): string => {
  if (change === "added") return size_after === undefined ? "" : bytes(size_after)
  if (change === "deleted") return size_before === undefined ? "" : bytes(size_before)
  if (size_before === undefined || size_after === undefined || size_before === size_after) return ""
  const by = size_after - size_before
  return `${by > 0 ? "+" : "−"}${bytes(Math.abs(by))}`
}

const Row = ({
  entry,
  href,
  isChosen,
  isStop
}: {
  readonly entry: DiffEntry
  readonly href: string
  readonly isChosen: boolean
  readonly isStop: boolean
}) => (
  <a class="item changed" role="option" aria-selected={isChosen} tabIndex={isStop ? 0 : -1} href={href}>
    <span class={`kind ${entry.change}`} role="img" aria-label={entry.change} title={entry.change}>
      {entry.change[0]!.toUpperCase()}
    </span>
    <span class="changed-path mono">
      <Path path={entry.path} />
    </span>
    <span class="changed-size num faint">{sizeOf(entry)}</span>
  </a>
)

const NoSnapshots = () => (
  <Empty title="Nothing to compare with">
    {meta.value?.kind === "workspace" ? (
      <>
        <p>This view shows the differences from a snapshot, file by file.</p>
        <p>
          <code>fs-algebra snapshot</code> takes a snapshot. Some commands and tools take snapshots before they change files.
        </p>
      </>
    ) : (
      <>
        <p>This view shows the differences from another dump, file by file.</p>
        <p>
          <code>fs-algebra debug DIRECTORY</code> shows a directory of dumps, so that you can compare them.
        </p>
      </>
    )}
  </Empty>
)

export const Changes = () => {
  const all = snapshots.value
  const { params, path } = place.value
  const to = at.value
  const requestedFrom = params["with"]
  const from = requestedFrom === currentSource ? undefined : (requestedFrom ?? previousSnapshot(all, to))
  const isNarrow = useNarrow()
  const now = useNow(30_000)
  const [text, setText] = useState("")
  const requestedMode = params["mode"]
  const mode: Mode = isNarrow
    ? "unified"
    : requestedMode === "split" || requestedMode === "unified"
      ? requestedMode
      : storedMode.storedValue.value
  const canCompare = all.length > 0 && from !== to
  const { askAgain, error, isLoading, value } = useRequest(
    (signal) =>
      canCompare
        ? Api.diff({ ...(from === undefined ? {} : { with: from }), ...(to === undefined ? {} : { at: to }) }, signal)
        : Promise.resolve(undefined),
    [from, to, canCompare, version.value]
  )
  // Ignore a response for snapshots that are no longer compared.
  const changes = value !== undefined && value.from === (from ?? null) && value.to === (to ?? null) ? value.changes : undefined
  const kindFilter = params["kind"] ?? ""
  const rows = useMemo(() => {
    const searchText = text.trim().toLowerCase()
    return (changes ?? []).filter(
      ({ change, from_path, path }) =>
        (kindFilter === "" || change === kindFilter) &&
        (searchText === "" || `${path}\n${from_path ?? ""}`.toLowerCase().includes(searchText))
    )
  }, [changes, text, kindFilter])
  const totals = useMemo(
    () => kinds.map((kind) => [kind, (changes ?? []).filter(({ change }) => change === kind).length] as const),
    [changes]
  )
  const chosen = path === "" ? undefined : changes?.find((entry) => entry.path === path)
  const position = chosen === undefined ? -1 : rows.indexOf(chosen)
  const hrefTo = (path: string): string => hrefOf("changes", path, params)
  const set = (changed: Readonly<Record<string, string | undefined>>): void => go(hereWith(changed))
  const openRow = (index: number): void => go(hrefTo(rows[index]!.path), { replace: true })
  const focus = useFocus(chosen?.path, position)
  useListKeys("changed file", rows.length, position, openRow)
  // On a wide screen, open the first file before the user can select another file.
  const first = rows[0]?.path
  useLayoutEffect(() => {
    if (path === "" && first !== undefined && !isNarrow) go(hrefTo(first), { replace: true })
  }, [path === "", first, isNarrow])

  if (meta.value === undefined) return null
  if (all.length === 0) return <NoSnapshots />
  const currentSourceName = meta.value.kind === "workspace" ? "as it is now" : "this dump"
  const snapshotLabel = ({ created_at, label, tag }: SnapshotInfo): string => {
    const millis = millisOf(created_at)
    return [escapeLine(tag ?? label), millis === undefined ? "" : formatAgo(millis, now)].filter(Boolean).join(" · ")
  }
  const options = all.map((snapshot) => [snapshot.id, snapshotLabel(snapshot)] as const)
  const unknown = (id: string | undefined) =>
    id === undefined || all.some((one) => one.id === id) ? [] : [[id, escapeLine(id)] as const]
  const changeMode = (mode: Mode): void => {
    storedMode.set(mode)
    go(hereWith({ mode }), { replace: true })
  }
  return (
    <div class="panel">
      <div class="bar">
        <span class="bar-pair">
          <span class="faint">From</span>
          <Choice
            label="From"
            value={from ?? currentSource}
            onValue={(value) => set({ with: value })}
            of={[[currentSource, currentSourceName], ...options, ...unknown(from)]}
          />
          <IconButton
            title="Swap the sides"
            label="Swap the sides"
            onClick={() => set({ with: to ?? currentSource, at: from })}
          >
            ⇄
          </IconButton>
          <span class="faint">to</span>
          <Choice
            label="To"
            value={to ?? ""}
            onValue={(at) => set({ at, with: from ?? currentSource })}
            of={[["", currentSourceName], ...options, ...unknown(to)]}
          />
        </span>
        <span class="bar-count" role="status">
          {changes === undefined
            ? isLoading && canCompare
              ? "comparing…"
              : ""
            : changes.length === 0
              ? "no difference"
              : null}
        </span>
        {totals.map(([kind, n]) =>
          n === 0 ? null : (
            <button
              key={kind}
              type="button"
              class={`chip ${kind}`}
              aria-pressed={kindFilter === kind}
              onClick={() => set({ kind: kindFilter === kind ? undefined : kind })}
            >
              {n.toLocaleString("en")} {kind}
            </button>
          )
        )}
      </div>
      {error !== undefined ? (
        <ErrorMessage message={error} retry={askAgain} />
      ) : !canCompare ? (
        <Empty title="Both sides are the same snapshot">
          <p>Choose another snapshot for one side.</p>
        </Empty>
      ) : changes?.length === 0 ? (
        <Empty title="No difference">
          <p>Both sides have the same files with the same contents.</p>
        </Empty>
      ) : (
        <Split
          label="Changed files"
          isOpen={path !== ""}
          back={hrefTo("")}
          backLabel="Changed files"
          detail={
            chosen === undefined ? (
              changes === undefined ? null : (
                <Empty title={path === "" ? "Choose a file" : "This file did not change"}>
                  {path === "" ? null : <p class="mono">{escapeLine(path)}</p>}
                </Empty>
              )
            ) : (
              <FileDiff
                key={chosen.path}
                entry={chosen}
                from={from}
                to={to}
                mode={mode}
                onMode={isNarrow ? undefined : changeMode}
                onPast={(by) => {
                  if (rows[position + by] !== undefined) openRow(position + by)
                }}
              />
            )
          }
        >
          <div class="bar bar-inner">
            <Search label="Filter changed files" text={text} onText={setText} />
            {text === "" && kindFilter === "" ? null : (
              <span class="faint num" role="status">
                {formatCount(rows.length, "file")}
              </span>
            )}
          </div>
          <div class="rows panel-keys">
            <VirtualList
              label="Changed files"
              role="listbox"
              class="changeds"
              count={rows.length}
              rowHeight={isNarrow ? 44 : 28}
              focus={focus}
              keyOf={(index) => rows[index]?.path ?? index}
              row={(index) => {
                const entry = rows[index]
                return entry === undefined ? null : (
                  <Row
                    entry={entry}
                    href={hrefTo(entry.path)}
                    isChosen={entry === chosen}
                    isStop={entry === chosen || (position < 0 && index === 0)}
                  />
                )
              }}
            />
          </div>
        </Split>
      )}
    </div>
  )
}
