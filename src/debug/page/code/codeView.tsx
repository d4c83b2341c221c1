/** The editor as a component; it is loaded when the first text is shown. */
import { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state"
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view"
import { useEffect, useRef } from "preact/hooks"
import { base, languageOf, onLine, setWrapping } from "./code.ts"

const chooseLine = StateEffect.define<number | undefined>()

const chosenLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, { changes, effects, state }) => {
    for (const effect of effects) {
      if (!effect.is(chooseLine)) continue
      const number = effect.value
      return number === undefined || number > state.doc.lines
        ? Decoration.none
        : Decoration.set(Decoration.line({ class: "cm-chosen-line" }).range(state.doc.line(number).from))
    }
    return marks.map(changes)
  },
  provide: (field) => EditorView.decorations.from(field)
})

/** The part that differs, so that what is read does not move when the rest changes. */
const changeOf = (before: string, after: string) => {
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before.charCodeAt(from) === after.charCodeAt(from)) from++
  let end = 0
  while (end < shorter - from && before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)) end++
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) }
}

export const CodeView = ({
  isWrapping,
  label,
  line,
  onChooseLine,
  path,
  text
}: {
  /** By whose name the language is chosen. */
  readonly path: string
  readonly text: string
  readonly label: string
  readonly isWrapping: boolean
  readonly line?: number | undefined
  readonly onChooseLine?: ((line: number) => void) | undefined
}) => {
  const element = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const choose = useRef(onChooseLine)
  choose.current = onChooseLine
  const made = useRef("")

  useEffect(() => {
    const language = new Compartment()
    let isGone = false
    const editor = new EditorView({
      parent: element.current!,
      state: EditorState.create({
        doc: text,
        extensions: [
          base,
          language.of([]),
          chosenLine,
          EditorView.contentAttributes.of({ "aria-label": label }),
          onChooseLine === undefined
            ? []
            : [onLine.of((number) => choose.current?.(number)), EditorView.editorAttributes.of({ class: "cm-lines-link" })]
        ]
      })
    })
    view.current = editor
    made.current = text
    void languageOf(path).then((extension) => {
      if (!isGone) editor.dispatch({ effects: language.reconfigure(extension) })
    })
    return () => {
      isGone = true
      view.current = undefined
      editor.destroy()
    }
  }, [path])

  useEffect(() => {
    if (view.current === undefined || made.current === text) return
    view.current.dispatch({ changes: changeOf(view.current.state.doc.toString(), text.replace(/\r\n?/g, "\n")) })
    made.current = text
  }, [text, path])

  useEffect(() => {
    if (view.current !== undefined) setWrapping(view.current, isWrapping)
  }, [isWrapping, path])

  useEffect(() => {
    const editor = view.current
    if (editor === undefined) return
    const effects: Array<StateEffect<unknown>> = [chooseLine.of(line)]
    if (line !== undefined && line <= editor.state.doc.lines) {
      const { from } = editor.state.doc.line(line)
      const seen = editor.scrollDOM.getBoundingClientRect()
      const block = editor.lineBlockAt(from)
      const top = block.top + editor.documentTop
      // A line that was clicked is there already.
      if (top < seen.top || top + block.height > seen.bottom) effects.push(EditorView.scrollIntoView(from, { y: "center" }))
    }
    editor.dispatch({ effects })
  }, [line, path])

  return <div class="code" ref={element} />
}
