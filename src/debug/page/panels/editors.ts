import { Change, type Chunk, diff, getChunks, MergeView, unifiedMergeView } from "@codemirror/merge"
import { EditorState, type Extension, Text } from "@codemirror/state"
import { EditorView, gutter, GutterMarker, type BlockInfo } from "@codemirror/view"
import { baseExtensions, languageOf, setWrapping, withLineFeeds } from "../code/code.ts"
import { differences } from "./differences.ts"

export { languageOf }

export const showText = (parent: Element, text: string, language: Extension): (() => void) => {
  const view = new EditorView({ parent, doc: withLineFeeds(text), extensions: [baseExtensions, language, label("Content")] })
  return () => view.destroy()
}

const label = (text: string): Extension => EditorView.contentAttributes.of({ "aria-label": text })

export type Mode = "split" | "unified"

export interface Compared {
  readonly added: number
  readonly deleted: number
  readonly count: number
  /**
   * Moves to the next or previous change. Returns the index of this change, from 0, or `undefined` if there is no such change.
   */
  readonly step: (by: 1 | -1) => number | undefined
  readonly wrap: (isWrapping: boolean) => void
  readonly close: () => void
}

/** The largest total length of both sides of a change, in characters, that is compared by character. */
const maxCharacterDiff = 20_000

const diffByLines = (before: string, after: string): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  for (const { fromA, fromB, toA, toB } of differences(before, after)) {
    const isShort = toA > fromA && toB > fromB && toA - fromA + (toB - fromB) <= maxCharacterDiff
    if (!isShort) changes.push(new Change(fromA, toA, fromB, toB))
    else {
      const within = diff(before.slice(fromA, toA), after.slice(fromB, toB), { scanLimit: 500, timeout: 50 })
      for (const part of within) {
        changes.push(new Change(fromA + part.fromA, fromA + part.toA, fromB + part.fromB, fromB + part.toB))
      }
    }
  }
  return changes
}

const diffConfig = { override: diffByLines }

const collapseUnchanged = { margin: 3, minSize: 6 }

/** Counts the lines of a range, without the empty line after the last newline. */
const linesIn = (text: Text, from: number, to: number): number => {
  if (from >= to) return 0
  const end = Math.min(to, text.length)
  const first = text.lineAt(Math.min(from, text.length)).number
  const last = text.lineAt(to > from && to <= text.length ? Math.max(from, to - 1) : end)
  const isEmptyEnd = last.number === text.lines && last.length === 0 && last.number > 1
  return Math.max(0, last.number - first + 1 - (isEmptyEnd ? 1 : 0))
}

const totalsOf = (chunks: ReadonlyArray<Chunk>, a: Text, b: Text): { readonly added: number; readonly deleted: number } => {
  let [added, deleted] = [0, 0]
  for (const { fromA, fromB, toA, toB } of chunks) {
    deleted += linesIn(a, fromA, toA)
    added += linesIn(b, fromB, toB)
  }
  return { added, deleted }
}

class OldLineNumber extends GutterMarker {
  readonly text: string
  constructor(text: string) {
    super()
    this.text = text
  }
  override eq(other: OldLineNumber): boolean {
    return other.text === this.text
  }
  override toDOM(): Node {
    return document.createTextNode(this.text)
  }
}

/** Returns the line of `a` that corresponds to a position of `b`, or `undefined` if the position lies in a change. */
const lineBefore = (chunks: ReadonlyArray<Chunk>, a: Text, b: Text, newPosition: number): number | undefined => {
  let shift = 0
  for (const { fromA, fromB, toA, toB } of chunks) {
    if (newPosition < fromB) break
    if (newPosition < toB) return undefined
    shift = toA - fromA - (toB - fromB) + shift
  }
  const at = newPosition + shift
  return at < 0 || at > a.length || b.length === 0 ? undefined : a.lineAt(at).number
}

const numbersBefore = (a: Text): Extension =>
  gutter({
    class: "cm-before-numbers",
    lineMarker: (view: EditorView, line: BlockInfo) => {
      const number = lineBefore(getChunks(view.state)?.chunks ?? [], a, view.state.doc, line.from)
      return new OldLineNumber(number === undefined ? "" : String(number))
    },
    widgetMarker: (view, _widget, block) => {
      const chunk = getChunks(view.state)?.chunks.find(({ fromA, fromB, toA }) => fromB === block.from && fromA < toA)
      if (chunk === undefined || block.height === 0) return null
      const [first, last] = [a.lineAt(chunk.fromA).number, a.lineAt(chunk.endA).number]
      if (last - first > 2000) return null
      return new OldLineNumber(Array.from({ length: last - first + 1 }, (_, index) => first + index).join("\n"))
    },
    initialSpacer: () => new OldLineNumber(String(a.lines)),
    lineMarkerChange: () => true
  })

const makeStepper = (
  views: readonly [EditorView, ...ReadonlyArray<EditorView>],
  chunks: ReadonlyArray<Chunk>
): Compared["step"] => {
  let current = -1
  return (by) => {
    const next = current + by
    if (next < 0 || next >= chunks.length) return undefined
    current = next
    const { fromA, fromB } = chunks[next]!
    for (const [index, view] of views.entries()) {
      const from = Math.min(views.length === 2 && index === 0 ? fromA : fromB, view.state.doc.length)
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) })
    }
    return next
  }
}

/**
 * Shows two texts and their differences. If `isWhole` is true, one side has no text, and all lines of the other side are new or
 * removed.
 */
export const compare = (
  parent: Element,
  {
    after: writtenAfter,
    before: writtenBefore,
    isWhole,
    language,
    mode
  }: {
    readonly before: string
    readonly after: string
    readonly language: Extension
    readonly mode: Mode
    readonly isWhole: boolean
  }
): Compared => {
  const [before, after] = [withLineFeeds(writtenBefore), withLineFeeds(writtenAfter)]
  if (isWhole) {
    const [text, isAdded] = before === "" ? [after, true] : [before, false]
    const view = new EditorView({
      parent,
      doc: text,
      extensions: [baseExtensions, language, label(isAdded ? "Added" : "Deleted")]
    })
    const lines = linesIn(view.state.doc, 0, view.state.doc.length + 1)
    return {
      added: isAdded ? lines : 0,
      deleted: isAdded ? 0 : lines,
      count: 1,
      step: () => undefined,
      wrap: (isWrapping) => setWrapping(view, isWrapping),
      close: () => view.destroy()
    }
  }
  if (mode === "split") {
    const view = new MergeView({
      parent,
      a: { doc: before, extensions: [baseExtensions, language, label("Before")] },
      b: { doc: after, extensions: [baseExtensions, language, label("After")] },
      gutter: true,
      diffConfig,
      collapseUnchanged
    })
    return {
      ...totalsOf(view.chunks, view.a.state.doc, view.b.state.doc),
      count: view.chunks.length,
      step: makeStepper([view.a, view.b], view.chunks),
      wrap: (isWrapping) => {
        setWrapping(view.a, isWrapping)
        setWrapping(view.b, isWrapping)
      },
      close: () => view.destroy()
    }
  }
  const a = Text.of(before.split("\n"))
  const state = EditorState.create({
    doc: after,
    extensions: [
      numbersBefore(a),
      baseExtensions,
      language,
      label("Before and after"),
      unifiedMergeView({ original: a, mergeControls: false, gutter: true, diffConfig, collapseUnchanged })
    ]
  })
  const view = new EditorView({ parent, state })
  const chunks = getChunks(view.state)?.chunks ?? []
  return {
    ...totalsOf(chunks, a, view.state.doc),
    count: chunks.length,
    step: makeStepper([view], chunks),
    wrap: (isWrapping) => setWrapping(view, isWrapping),
    close: () => view.destroy()
  }
}
