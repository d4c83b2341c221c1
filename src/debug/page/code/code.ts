import { HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language"
import { languages } from "@codemirror/language-data"
import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search"
import { Compartment, EditorState, type Extension, Facet, Prec, type StateEffect } from "@codemirror/state"
import { EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view"
import { tags } from "@lezer/highlight"

/** The nonce that the page's policy requires for the editor's style sheets. */
const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? ""

/** Extensions that are missing from CodeMirror's list of languages, each with an equivalent extension. */
const equivalentExtensions: Readonly<Record<string, string>> = {
  jsonl: "json",
  ndjson: "json",
  jsonc: "json",
  json5: "json",
  webmanifest: "json",
  lock: "toml",
  mts: "ts",
  cts: "ts",
  svg: "xml",
  xhtml: "html",
  zsh: "sh",
  env: "properties",
  conf: "properties"
}

const descriptionOf = (path: string): LanguageDescription | null => {
  const name = path.slice(path.lastIndexOf("/") + 1)
  const ending = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ""
  return LanguageDescription.matchFilename(
    languages,
    Object.hasOwn(equivalentExtensions, ending) ? `a.${equivalentExtensions[ending]}` : name
  )
}

/** Loads the language of a path. Returns an empty extension if the language is unknown or cannot be loaded. */
export const languageOf = async (path: string): Promise<Extension> => {
  try {
    return (await descriptionOf(path)?.load()) ?? []
  } catch {
    return []
  }
}

const highlighting = HighlightStyle.define([
  { tag: [tags.comment, tags.meta, tags.documentMeta], color: "var(--code-comment)" },
  {
    tag: [tags.keyword, tags.modifier, tags.controlKeyword, tags.operatorKeyword, tags.definitionKeyword],
    color: "var(--code-keyword)"
  },
  { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.inserted], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.unit, tags.escape], color: "var(--code-number)" },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.macroName, tags.labelName],
    color: "var(--code-function)"
  },
  { tag: [tags.typeName, tags.className, tags.namespace, tags.tagName], color: "var(--code-type)" },
  { tag: [tags.propertyName, tags.attributeName], color: "var(--code-property)" },
  { tag: [tags.operator, tags.punctuation, tags.separator], color: "var(--code-punctuation)" },
  { tag: tags.heading, color: "var(--code-type)", fontWeight: "600" },
  { tag: tags.strong, fontWeight: "600" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.link, tags.url], color: "var(--accent-text)" },
  { tag: [tags.deleted, tags.invalid], color: "var(--bad)" }
])

const editorTheme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--bg)", fontSize: "12.5px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-content": { padding: "8px 0 40px", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 16px 0 8px" },
  ".cm-gutters": {
    backgroundColor: "var(--bg)",
    color: "var(--text-3)",
    border: "none",
    fontVariantNumeric: "tabular-nums"
  },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 10px 0 16px", minWidth: "44px" },
  "&.cm-lines-link .cm-lineNumbers .cm-gutterElement": { cursor: "pointer" },
  "&.cm-lines-link .cm-lineNumbers .cm-gutterElement:hover": { color: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "var(--selection)"
  },
  ".cm-content ::selection": { backgroundColor: "var(--selection)" },
  ".cm-selectionMatch": { backgroundColor: "var(--match-soft)" },
  ".cm-searchMatch": { backgroundColor: "var(--match)", borderRadius: "2px", outline: "none" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--match-strong)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-chosen-line": { backgroundColor: "var(--match-soft)" },
  ".cm-panels": { backgroundColor: "var(--bg-side)", color: "var(--text)", zIndex: "5" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": {
    padding: "6px 40px 6px 12px",
    display: "flex",
    flexWrap: "wrap",
    alignItems: "center",
    gap: "6px",
    fontFamily: "var(--sans)"
  },
  ".cm-panel.cm-search br": { display: "none" },
  ".cm-panel.cm-search label": { fontSize: "12px", color: "var(--text-2)", margin: "0 4px 0 0", display: "flex", gap: "4px" },
  ".cm-panel.cm-search [name=close]": {
    right: "8px",
    top: "6px",
    width: "24px",
    height: "24px",
    fontSize: "18px",
    color: "var(--text-2)",
    cursor: "pointer"
  },
  ".cm-textfield": {
    fontSize: "12px",
    margin: "0",
    padding: "3px 8px",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
    backgroundColor: "var(--bg)",
    color: "var(--text)",
    minWidth: "180px"
  },
  ".cm-button": {
    fontSize: "12px",
    margin: "0",
    padding: "3px 8px",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
    backgroundImage: "none",
    backgroundColor: "var(--bg)",
    color: "var(--text)",
    cursor: "pointer"
  },
  ".cm-button:hover": { backgroundColor: "var(--hover)" },
  ".cm-button:active": { backgroundImage: "none", backgroundColor: "var(--active)" },
  ".cm-tooltip": { border: "1px solid var(--line)", backgroundColor: "var(--bg-raised)" }
})

const codeTheme: Extension = [editorTheme, syntaxHighlighting(highlighting)]

export const lineClickListeners = Facet.define<(line: number) => void>()

/** The label beside a line. The default is the number of the line in the editor. */
export const lineLabel = Facet.define<(line: number) => string, (line: number) => string>({
  combine: (labels) => labels[0] ?? String
})

const lineNumberGutter = lineNumbers({
  formatNumber: (line, state) => state.facet(lineLabel)(line),
  domEventHandlers: {
    click: (view, { from }) => {
      const listeners = view.state.facet(lineClickListeners)
      for (const listener of listeners) listener(view.state.doc.lineAt(from).number)
      return listeners.length > 0
    }
  }
})

const wrappingCompartment = new Compartment()

export const wrappingEffect = (isWrapping: boolean): StateEffect<unknown> =>
  wrappingCompartment.reconfigure(isWrapping ? EditorView.lineWrapping : [])

export const setWrapping = (view: EditorView, isWrapping: boolean): void =>
  view.dispatch({ effects: wrappingEffect(isWrapping) })

/**
 * Selects the whole text. The browser's own command would select other parts of the page too, and only the rendered lines of
 * the text.
 */
const selectAll = (view: EditorView): boolean => {
  view.dispatch({ selection: { anchor: 0, head: view.state.doc.length }, userEvent: "select" })
  return true
}

/** Returns a text with LF in place of CRLF, because the editor would show each CR as a special character. */
export const withLineFeeds = (text: string): string => text.replaceAll("\r\n", "\n")

export const baseExtensions: Extension = [
  // The server and `grep` count only LF as a line ending, so the editor must too.
  EditorState.lineSeparator.of("\n"),
  EditorView.cspNonce.of(nonce),
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  EditorView.contentAttributes.of({ tabindex: "0", role: "textbox", "aria-readonly": "true", "aria-multiline": "true" }),
  EditorState.tabSize.of(4),
  lineNumberGutter,
  highlightSpecialChars({ addSpecialChars: /[\u202a-\u202e\u2066-\u2069]/g }),
  drawSelection({ cursorBlinkRate: 0 }),
  highlightSelectionMatches({ minSelectionLength: 3 }),
  search({ top: true }),
  wrappingCompartment.of([]),
  Prec.high(keymap.of([{ key: "Mod-a", run: selectAll }])),
  keymap.of(searchKeymap),
  codeTheme
]

export { openSearchPanel }
