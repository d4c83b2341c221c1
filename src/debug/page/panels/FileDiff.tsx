import type { Extension } from "@codemirror/state"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import type { DiffEntry, FileContent } from "../../model.ts"
import { bytes, ErrorMessage, useRequest } from "../components.tsx"
import { Drawing } from "../shell/icons.tsx"
import { useKeys } from "../shell/keys.ts"
import { hrefOf, isWrapping, switchWrapping, version } from "../store.ts"
import { isImage, Picture } from "./Content.tsx"
import type * as EditorsModule from "./editors.ts"
import type { Compared, Mode } from "./editors.ts"
import { Copy, Path } from "./parts.tsx"
import { noExplanation, describeOtherDifferences, type Sides, sidesOf, whyNotComparable } from "./sides.ts"
import { escapeLine } from "./words.ts"

type Editors = typeof EditorsModule

const useEditors = (path: string): { readonly editors: Editors; readonly language: Extension } | undefined => {
  const [loadedEditors, set] = useState<{ readonly path: string; readonly editors: Editors; readonly language: Extension }>()
  useEffect(() => {
    let isMounted = true
    void import("./editors.ts").then(async (editors) => {
      const language = await editors.languageOf(path)
      if (isMounted) set({ path, editors, language })
    })
    return () => {
      isMounted = false
    }
  }, [path])
  return loadedEditors?.path === path ? loadedEditors : undefined
}

const Side = ({ file, name }: { readonly file: FileContent | undefined; readonly name: string }) => (
  <section class="side" aria-label={name}>
    <h3 class="small-head">{name}</h3>
    {file === undefined ? (
      <p class="notice">It was not there.</p>
    ) : isImage(file) ? (
      <Picture file={file} />
    ) : (
      <p class="notice">
        {file.media_name}, {bytes(file.size_bytes)}
        {file.version === undefined ? null : (
          <>
            <br />
            <code title={file.version}>{file.version.slice(0, 12)}</code> <Copy text={file.version} label="Copy the version" />
          </>
        )}
      </p>
    )}
  </section>
)

const Pictures = ({ sides: { after, before } }: { readonly sides: Sides }) => (
  <div class="sides">
    {before === undefined ? null : <Side name="Before" file={before} />}
    {after === undefined ? null : <Side name="After" file={after} />}
  </div>
)

export const FileDiff = ({
  entry,
  from,
  mode,
  onMode,
  onPast,
  to
}: {
  readonly entry: DiffEntry
  readonly from: string | undefined
  readonly to: string | undefined
  readonly mode: Mode
  readonly onMode: ((mode: Mode) => void) | undefined
  /** Called to go beyond the last change (1) or the first (-1). */
  readonly onPast: (by: 1 | -1) => void
}) => {
  const {
    askAgain: again,
    error,
    value: sides
  } = useRequest(
    (signal) => sidesOf(entry, from, to, signal),
    [entry.path, entry.from_path, entry.change, from, to, version.value]
  )
  const loadedEditors = useEditors(entry.path)
  const element = useRef<HTMLDivElement>(null)
  const comparison = useRef<Compared | undefined>(undefined)
  const [totals, setTotals] = useState<{ added: number; deleted: number; count: number } | undefined>(undefined)
  const [step, setStep] = useState<number | undefined>(undefined)
  const isWrapped = isWrapping.value
  const obstacle = useMemo(() => (sides === undefined ? undefined : whyNotComparable(sides)), [sides])
  const remarks = useMemo(() => (sides === undefined ? [] : describeOtherDifferences(sides)), [sides])
  const [before, after] = [sides?.before?.content ?? "", sides?.after?.content ?? ""]
  const isShown = sides !== undefined && obstacle === undefined && before !== after
  const isOneSided = entry.change === "added" || entry.change === "deleted"
  // A file on one side only has nothing to compare with.
  const shownMode: Mode = isOneSided ? "unified" : mode

  useLayoutEffect(() => {
    if (!isShown || loadedEditors === undefined) return
    const newComparison = loadedEditors.editors.compare(element.current!, {
      before,
      after,
      language: loadedEditors.language,
      mode: shownMode,
      isWhole: isOneSided
    })
    newComparison.wrap(isWrapped)
    comparison.current = newComparison
    setTotals(newComparison)
    setStep(undefined)
    return () => {
      comparison.current = undefined
      newComparison.close()
    }
  }, [isShown, before, after, loadedEditors, shownMode])
  useLayoutEffect(() => comparison.current?.wrap(isWrapped), [isWrapped])

  const stepChange = (by: 1 | -1) => (): void => {
    const place = isOneSided ? undefined : comparison.current?.step(by)
    if (place === undefined) onPast(by)
    else setStep(place)
  }
  useKeys([
    { key: "n", does: "Next change", run: stepChange(1) },
    { key: "p", does: "Previous change", run: stepChange(-1) },
    { key: "u", does: "Side by side, or as one", run: () => onMode?.(mode === "split" ? "unified" : "split") },
    { key: "w", does: "Wrap long lines", run: switchWrapping }
  ])

  const hasImage = [sides?.before, sides?.after].some((side) => side !== undefined && isImage(side))
  const isMoved = entry.from_path !== undefined && entry.from_path !== entry.path
  return (
    <article class="diff" aria-label={`Change of ${escapeLine(entry.path)}`}>
      <header class="diff-head">
        <span class={`kind ${entry.change}`} title={entry.change}>
          {entry.change[0]!.toUpperCase()}
        </span>
        <h2 class="diff-title mono">
          {isMoved ? (
            <>
              <Path path={entry.from_path!} />
              <span class="faint"> → </span>
            </>
          ) : null}
          <a
            href={
              entry.change === "deleted" ? hrefOf("files", entry.path, { at: from }) : hrefOf("files", entry.path, { at: to })
            }
          >
            <Path path={entry.path} />
          </a>
        </h2>
        <span class="grow" />
        {isShown && totals !== undefined ? (
          <span class="totals num" title={`${totals.added} lines added, ${totals.deleted} deleted`}>
            <span class="plus">+{totals.added}</span> <span class="minus">−{totals.deleted}</span>
          </span>
        ) : null}
        {isShown ? (
          <button
            type="button"
            class="icon-button"
            aria-pressed={isWrapped}
            aria-label="Wrap long lines"
            title="Wrap long lines (w)"
            onClick={switchWrapping}
          >
            <Drawing of="wrap" />
          </button>
        ) : null}
        {isShown && !isOneSided ? (
          <>
            <span class="diff-steps">
              <button
                type="button"
                class="icon-button"
                onClick={stepChange(-1)}
                title="Previous change (p)"
                aria-label="Previous change"
              >
                ↑
              </button>
              <span class="num faint diff-place" aria-live="polite">
                {step === undefined ? "" : `${step + 1}/`}
                {totals?.count ?? ""}
              </span>
              <button
                type="button"
                class="icon-button"
                onClick={stepChange(1)}
                title="Next change (n)"
                aria-label="Next change"
              >
                ↓
              </button>
            </span>
            {onMode === undefined ? null : (
              <span class="segments" role="group" aria-label="How it is compared">
                <button type="button" aria-pressed={mode === "split"} onClick={() => onMode("split")}>
                  Split
                </button>
                <button type="button" aria-pressed={mode === "unified"} onClick={() => onMode("unified")}>
                  Unified
                </button>
              </span>
            )}
          </>
        ) : null}
      </header>
      {remarks.map((remark) => (
        <p key={remark} class="remark">
          {remark}
        </p>
      ))}
      {error === undefined ? null : <ErrorMessage message={error} retry={again} />}
      {sides === undefined ? null : (
        <>
          {hasImage || obstacle !== undefined ? <Pictures sides={sides} /> : null}
          {obstacle === undefined || obstacle === noExplanation || hasImage ? null : <p class="notice">{obstacle}</p>}
          {obstacle === undefined && !isShown ? (
            <p class="notice">
              {entry.kind === "directory"
                ? "An empty directory."
                : isMoved
                  ? "It was moved, and its content is the same."
                  : isOneSided
                    ? "The file is empty."
                    : "The contents are the same."}
            </p>
          ) : null}
        </>
      )}
      {isShown ? <div class={`diff-body is-${shownMode} is-${entry.change}`} ref={element} /> : null}
    </article>
  )
}
