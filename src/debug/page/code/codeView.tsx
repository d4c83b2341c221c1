import { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state"
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view"
import { useEffect, useMemo, useRef } from "preact/hooks"
import { baseExtensions, languageOf, lineLabel, lineClickListeners, withLineFeeds, wrappingEffect } from "./code.ts"
import { layoutOf } from "./layout.ts"

const chooseLine = StateEffect.define<number | undefined>()

const chosenLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, { changes, effects, state }) => {
    for (const effect of effects) {
      if (!effect.is(chooseLine)) continue
      const number = effect.value
      return number === undefined
        ? Decoration.none
        : Decoration.set(Decoration.line({ class: "cm-chosen-line" }).range(state.doc.line(number).from))
    }
    return marks.map(changes)
  },
  provide: (field) => EditorView.decorations.from(field)
})

/** Returns the change between two texts without their common start and end, so that unchanged text stays in place. */
const changeOf = (before: string, after: string) => {
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before.charCodeAt(from) === after.charCodeAt(from)) from++
  let end = 0
  while (end < shorter - from && before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)) end++
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) }
}

export const CodeView = ({
  firstLine = 1,
  isWrapping,
  label,
  line,
  onChooseLine,
  path,
  text
}: {
  readonly path: string
  readonly text: string
  readonly label: string
  readonly firstLine?: number | undefined
  readonly isWrapping: boolean
  readonly line?: number | undefined
  readonly onChooseLine?: ((line: number) => void) | undefined
}) => {
  const element = useRef<HTMLDivElement>(null)
  const editorView = useRef<EditorView>(undefined)
  const chooseCallback = useRef(onChooseLine)
  chooseCallback.current = onChooseLine
  const shownText = useRef("")
  const layout = useMemo(() => layoutOf(withLineFeeds(text), firstLine, isWrapping), [text, firstLine, isWrapping])
  const currentLayout = useRef(layout)
  currentLayout.current = layout
  const labels = useRef(new Compartment())

  useEffect(() => {
    const language = new Compartment()
    let isDestroyed = false
    const editor = new EditorView({
      parent: element.current!,
      state: EditorState.create({
        doc: layout.text,
        extensions: [
          baseExtensions,
          labels.current.of(lineLabel.of(layout.labelOf)),
          language.of([]),
          chosenLine,
          EditorView.contentAttributes.of({ "aria-label": label }),
          onChooseLine === undefined
            ? []
            : [
                lineClickListeners.of((number) => chooseCallback.current?.(currentLayout.current.fileLineOf(number))),
                EditorView.editorAttributes.of({ class: "cm-lines-link" })
              ]
        ]
      })
    })
    editorView.current = editor
    shownText.current = layout.text
    void languageOf(path).then((extension) => {
      if (!isDestroyed) editor.dispatch({ effects: language.reconfigure(extension) })
    })
    return () => {
      isDestroyed = true
      editorView.current = undefined
      editor.destroy()
    }
  }, [path])

  useEffect(() => {
    if (editorView.current === undefined) return
    // Change the text and the wrapping in one transaction, because the editor must never wrap a long line before the line is
    // split.
    editorView.current.dispatch({
      effects: [labels.current.reconfigure(lineLabel.of(layout.labelOf)), wrappingEffect(isWrapping)],
      ...(shownText.current !== layout.text && { changes: changeOf(shownText.current, layout.text) })
    })
    shownText.current = layout.text
  }, [layout, path])

  useEffect(() => {
    const editor = editorView.current
    if (editor === undefined) return
    const shown = line === undefined ? undefined : layout.editorLineOf(line)
    const isThere = shown !== undefined && shown >= 1 && shown <= editor.state.doc.lines
    const effects: Array<StateEffect<unknown>> = [chooseLine.of(isThere ? shown : undefined)]
    if (isThere) {
      const { from } = editor.state.doc.line(shown)
      const visibleBox = editor.scrollDOM.getBoundingClientRect()
      const block = editor.lineBlockAt(from)
      const top = block.top + editor.documentTop
      // Scroll only if the line is not visible. A line that the user has clicked is visible.
      if (top < visibleBox.top || top + block.height > visibleBox.bottom)
        effects.push(EditorView.scrollIntoView(from, { y: "center" }))
    }
    editor.dispatch({ effects })
  }, [line, path, layout])

  return <div class="code" ref={element} />
}
