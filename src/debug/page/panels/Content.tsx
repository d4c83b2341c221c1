import type { Extension } from "@codemirror/state"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { FileContent } from "../../model.ts"
import { bytes } from "../components.tsx"
import type * as EditorsModule from "./editors.ts"
import { escapeLine } from "./words.ts"

export const isImage = ({ content, media_type }: FileContent): boolean => content !== null && media_type.startsWith("image/")

/** Returns the base64 of the content. An image in a text format (SVG) is encoded as UTF-8 first. */
const base64Of = ({ content, encoding }: FileContent): string => {
  if (encoding === "base64") return content ?? ""
  let binary = ""
  for (const byte of new TextEncoder().encode(content ?? "")) binary += String.fromCharCode(byte)
  return btoa(binary)
}

export const Picture = ({ file }: { readonly file: FileContent }) => {
  const [size, setSize] = useState("")
  const [isTiny, setTiny] = useState(false)
  const [isBroken, setBroken] = useState(false)
  if (isBroken) return <p class="notice">It cannot be shown: it is no {file.media_name} that this browser knows.</p>
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

const Text = ({ path, text }: { readonly path: string; readonly text: string }) => {
  const element = useRef<HTMLDivElement>(null)
  const [editor, setEditor] = useState<typeof EditorsModule | undefined>(undefined)
  const [language, setLanguage] = useState<Extension | undefined>(undefined)
  useEffect(() => {
    let isWanted = true
    void import("./editors.ts").then(async (editor) => {
      const language = await editor.languageOf(path)
      if (!isWanted) return
      setLanguage(language)
      setEditor(editor)
    })
    return () => {
      isWanted = false
    }
  }, [path])
  useLayoutEffect(() => {
    if (editor === undefined || language === undefined) return
    return editor.showText(element.current!, text, language)
  }, [editor, language, text])
  return <div class="content-text" ref={element} />
}

export const Content = ({ file }: { readonly file: FileContent }) => (
  <figure class="content" aria-label="Content">
    <figcaption class="json-head">
      <span>Content</span>
      <span class="faint">
        {file.media_name} · {bytes(file.size_bytes)}
        {file.truncated ? " · the beginning of it" : ""}
      </span>
    </figcaption>
    {isImage(file) ? <Picture file={file} /> : null}
    {file.content === null ? (
      <p class="notice">It is too large to be shown.</p>
    ) : file.encoding === "base64" ? (
      isImage(file) ? null : (
        <p class="notice">
          {file.media_name}, {bytes(file.size_bytes)}: nothing to read.
        </p>
      )
    ) : file.content === "" ? (
      <p class="notice">It is empty.</p>
    ) : (
      <Text path={file.path} text={file.content} />
    )}
  </figure>
)
