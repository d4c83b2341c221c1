import type { Extension } from "@codemirror/state"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import type { DiffEntry, FileContent } from "../../model.ts"
import * as Api from "../api.ts"
import { bytes, ErrorMessage, useRequest } from "../components.tsx"
import { IconButton } from "../shell/icons.tsx"
import { useKeys } from "../shell/keys.ts"
import { hrefOf, isWrapping, switchWrapping, version } from "../store.ts"
import type * as EditorsModule from "./editors.ts"
import type { Compared, Mode } from "./editors.ts"
import { Copy, Path } from "./parts.tsx"
import { escapeLine } from "./words.ts"

const isImage = ({ content, media_type }: FileContent): boolean => content !== null && media_type.startsWith("image/")

/** Returns the content in base64. An image in a text format (SVG) is encoded as UTF-8 first. */
const base64Of = ({ content, encoding }: FileContent): string => {
  if (encoding === "base64") return content ?? ""
  let binary = ""
  for (const byte of new TextEncoder().encode(content ?? "")) binary += String.fromCharCode(byte)
  return btoa(binary)
}

const Picture = ({ file }: { readonly file: FileContent }) => {
  const [size, setSize] = useState("")
  const [isTiny, setTiny] = useState(false)
  const [isBroken, setBroken] = useState(false)
  if (isBroken) return <p class="notice">The browser cannot show this image ({file.media_name}).</p>
  return (
    <figure class="picture">
      <img
        alt={escapeLine(file.path)}
        src={`data:${file.media_type.split(";")[0]};base64,${base64Of(file)}`}
        class={isTiny ? "is-tiny" : undefined}
        onLoad={({ currentTarget: { naturalHeight, naturalWidth } }) => {
          setSize(`${naturalWidth} × ${naturalHeight}`)
          setTiny(naturalWidth > 0 && naturalWidth <= 32 && naturalHeight <= 32)
        }}
        onError={() => setBroken(true)}
      />
      <figcaption class="faint">{[size, file.media_name, bytes(file.size_bytes)].filter(Boolean).join(" · ")}</figcaption>
    </figure>
  )
}

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

const Text = ({ path, text }: { readonly path: string; readonly text: string }) => {
  const element = useRef<HTMLDivElement>(null)
  const loadedEditors = useEditors(path)
  useLayoutEffect(() => {
    if (loadedEditors === undefined) return
    return loadedEditors.editors.showText(element.current!, text, loadedEditors.language)
  }, [loadedEditors, text])
  return <div class="content-text" ref={element} />
}

export const Content = ({ file }: { readonly file: FileContent }) => (
  <figure class="content" aria-label="Content">
    <figcaption class="json-head">
      <span>Content</span>
      <span class="faint">
        {file.media_name} · {bytes(file.size_bytes)}
        {file.truncated ? " · only the beginning" : ""}
      </span>
    </figcaption>
    {isImage(file) ? <Picture file={file} /> : null}
    {file.content === null ? (
      <p class="notice">The content is too large to be shown.</p>
    ) : file.encoding === "base64" ? (
      isImage(file) ? null : (
        <p class="notice">
          {file.media_name}, {bytes(file.size_bytes)}, which is not text.
        </p>
      )
    ) : file.content === "" ? (
      <p class="notice">The file is empty.</p>
    ) : (
      <Text path={file.path} text={file.content} />
    )}
  </figure>
)

interface Sides {
  readonly before: FileContent | undefined
  readonly after: FileContent | undefined
}

const undefinedIfMissing = async (response: Promise<FileContent>): Promise<FileContent | undefined> => {
  try {
    return await response
  } catch (error) {
    if (error instanceof Api.ApiError && error.status === 404) return undefined
    throw error
  }
}

const sidesOf = async (
  { change, from_path, path }: DiffEntry,
  from: string | undefined,
  to: string | undefined,
  signal: AbortSignal
): Promise<Sides> => {
  const [before, after] = await Promise.all([
    change === "added" ? undefined : undefinedIfMissing(Api.file(from_path ?? path, from, signal)),
    change === "deleted" ? undefined : undefinedIfMissing(Api.file(path, to, signal))
  ])
  return { before, after }
}

/** The largest total length of the two compared texts, in characters. A comparison of longer texts takes too long. */
const maxComparedCharacters = 3_000_000

/** The explanation for binary content. The explanation is empty, because the page describes both sides. */
const noExplanation = ""

const whyNotComparable = ({ after, before }: Sides): string | undefined => {
  const all = [before, after].filter((side) => side !== undefined)
  if (all.some(({ content }) => content === null)) return "The file is too large to be compared here."
  if (all.some(({ encoding }) => encoding === "base64")) return noExplanation
  if (all.some(({ truncated }) => truncated))
    return "The file is too large to be compared here: only its beginning can be read."
  if (all.reduce((sum, { content }) => sum + content!.length, 0) > maxComparedCharacters)
    return "The file is too large to be compared here."
  return undefined
}

const endingsOf = (text: string): string => {
  const [pairs, feeds, returns] = [/\r\n/.test(text), /(?:^|[^\r])\n/.test(text), /\r(?!\n)/.test(text)]
  const kinds = [pairs && "CRLF", feeds && "LF", returns && "CR"].filter(Boolean)
  return kinds.length === 0 ? "none" : kinds.join(" and ")
}

const describeOtherDifferences = ({ after, before }: Sides): ReadonlyArray<string> => {
  if (before === undefined || after === undefined) return []
  const remarks: Array<string> = []
  if (before.kind !== after.kind) remarks.push(`The kind changed from ${before.kind} to ${after.kind}.`)
  if (before.mode !== undefined && after.mode !== undefined && before.mode !== after.mode) {
    remarks.push(`Mode ${before.mode} → ${after.mode}.`)
  }
  const [a, b] = [before.content ?? "", after.content ?? ""]
  if (before.encoding !== "utf-8" || after.encoding !== "utf-8" || a === b) return remarks
  const [was, is] = [endingsOf(a), endingsOf(b)]
  if (was !== is && was !== "none" && is !== "none") remarks.push(`Line endings: ${was} → ${is}.`)
  const [ended, ends] = [/[\r\n]$/.test(a), /[\r\n]$/.test(b)]
  if (a !== "" && b !== "" && ended !== ends)
    remarks.push(ends ? "A newline at the end was added." : "The newline at the end was removed.")
  return remarks
}

const Side = ({ file, name }: { readonly file: FileContent | undefined; readonly name: string }) => (
  <section class="side" aria-label={name}>
    <h3 class="small-head">{name}</h3>
    {file === undefined ? (
      <p class="notice">The file did not exist.</p>
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
  /** Runs when the user goes past the last change (`by` is 1) or before the first change (`by` is -1). */
  readonly onPast: (by: 1 | -1) => void
}) => {
  const {
    askAgain,
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
  // A file that exists on one side only cannot be shown side by side.
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
    { key: "u", does: "Side by side or unified", run: () => onMode?.(mode === "split" ? "unified" : "split") },
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
          <IconButton
            of="wrap"
            isPressed={isWrapped}
            label="Wrap long lines"
            title="Wrap long lines (w)"
            onClick={switchWrapping}
          />
        ) : null}
        {isShown && !isOneSided ? (
          <>
            <span class="diff-steps">
              <IconButton onClick={stepChange(-1)} title="Previous change (p)" label="Previous change">
                ↑
              </IconButton>
              <span class="num faint diff-place" aria-live="polite">
                {step === undefined ? "" : `${step + 1}/`}
                {totals?.count ?? ""}
              </span>
              <IconButton onClick={stepChange(1)} title="Next change (n)" label="Next change">
                ↓
              </IconButton>
            </span>
            {onMode === undefined ? null : (
              <span class="segments" role="group" aria-label="Form of comparison">
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
      {error === undefined ? null : <ErrorMessage message={error} retry={askAgain} />}
      {sides === undefined ? null : (
        <>
          {hasImage || obstacle !== undefined ? <Pictures sides={sides} /> : null}
          {obstacle === undefined || obstacle === noExplanation || hasImage ? null : <p class="notice">{obstacle}</p>}
          {obstacle === undefined && !isShown ? (
            <p class="notice">
              {entry.kind === "directory"
                ? "An empty directory."
                : isMoved
                  ? "The file was moved, and its content is unchanged."
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
