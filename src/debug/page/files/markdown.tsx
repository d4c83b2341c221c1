/**
 * Renders Markdown. DOMPurify removes all HTML except a list of allowed elements, in a document that loads nothing. Then this
 * module sets the targets of links and images. External images become links.
 */
import { highlightCode, classHighlighter } from "@lezer/highlight"
import { LanguageDescription } from "@codemirror/language"
import { languages } from "@codemirror/language-data"
import DOMPurify from "dompurify"
import { Marked } from "marked"
import { useLayoutEffect, useRef } from "preact/hooks"
import type { FileContent } from "../../model.ts"
import * as Api from "../api.ts"
import { at, fileHref } from "../store.ts"
import { bytesOf, imageTypeOf } from "./content.ts"
import { shownTree } from "./state.ts"
import { resolved } from "./tree.ts"

const allowedElements =
  "h1 h2 h3 h4 h5 h6 p br hr ul ol li blockquote pre code em strong b i u s del ins sub sup kbd samp var mark small a img table thead tbody tfoot tr th td details summary dl dt dd div span input abbr figure figcaption center".split(
    " "
  )
const allowedAttributes =
  "href src alt title align colspan rowspan start type checked disabled class id open width height".split(" ")

const allowed = {
  ALLOWED_TAGS: allowedElements,
  ALLOWED_ATTR: allowedAttributes,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  SANITIZE_NAMED_PROPS: true,
  RETURN_DOM_FRAGMENT: true
} as const

const quoted = (text: string): string => text.replace(/[<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)

/**
 * Rewrites HTML within Markdown. Allowed elements keep allowed attributes. All other tags and attributes are dropped. Comments,
 * and elements whose text is not prose, such as scripts and styles, are dropped with their text. DOMPurify, not this function,
 * protects against scripts. But DOMPurify parses the HTML first, and the page's policy would then log an error for each event
 * handler or style.
 */
const rewriteHtml = (html: string): string => {
  const parts: Array<string> = []
  let at = 0
  const shownHtml = html.replace(
    /<!--[^]*?(?:-->|$)|<(script|style|title|textarea|noscript|template|svg|math|iframe|object)\b[^]*?(?:<\/\1\s*>|$)/gi,
    ""
  )
  for (const match of shownHtml.matchAll(/<(\/?)([a-z][a-z0-9-]*)((?:\s|\/)(?:"[^"]*"|'[^']*'|[^'"<>])*)?>/gi)) {
    parts.push(shownHtml.slice(at, match.index).replaceAll("<", "&lt;"))
    at = match.index + match[0].length
    const name = match[2]!.toLowerCase()
    if (!allowedElements.includes(name)) continue
    parts.push(`<${match[1]}${name}`)
    for (const [, key, double, single, bare] of (match[3] ?? "").matchAll(
      /([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/g
    )) {
      if (allowedAttributes.includes(key!.toLowerCase())) parts.push(` ${key}="${quoted(double ?? single ?? bare ?? "")}"`)
    }
    parts.push(">")
  }
  parts.push(shownHtml.slice(at).replaceAll("<", "&lt;"))
  return parts.join("")
}

const marked = new Marked({ gfm: true, async: false, renderer: { html: ({ text }) => rewriteHtml(text) } })

const holdImageSource = (node: Element): void => {
  if (node.localName !== "img") return
  const source = node.getAttribute("src")
  node.removeAttribute("src")
  if (source !== null) node.setAttribute("data-src", source)
}

const sanitizeHtml = (html: string): DocumentFragment => {
  DOMPurify.addHook("afterSanitizeAttributes", holdImageSource)
  try {
    return DOMPurify.sanitize(html, allowed) as unknown as DocumentFragment
  } finally {
    DOMPurify.removeHook("afterSanitizeAttributes")
  }
}

const isRemote = (reference: string): boolean => /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i.test(reference)

const pathOf = (from: string, reference: string): string | undefined => {
  const [referencePath = ""] = reference.split(/[?#]/, 1)
  try {
    return resolved(from, decodeURIComponent(referencePath))
  } catch {
    return resolved(from, referencePath)
  }
}

/** Returns the anchor that GitHub gives to a heading. */
const slugOf = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-")

const openOutside = (link: HTMLAnchorElement): void => {
  link.target = "_blank"
  link.rel = "noopener noreferrer"
  link.classList.add("outside")
}

const resolveLinks = (root: DocumentFragment, path: string): void => {
  for (const link of root.querySelectorAll("a")) {
    const reference = link.getAttribute("href")
    if (reference === null || reference === "") continue
    if (reference.startsWith("#")) {
      link.dataset["jump"] = reference.slice(1)
      link.setAttribute("href", location.hash)
      continue
    }
    if (isRemote(reference)) {
      if (/^(?:https?|mailto):/i.test(reference)) openOutside(link)
      else link.removeAttribute("href")
      continue
    }
    const target = pathOf(path, reference)
    const known = shownTree.value?.tree.nodes
    if (target !== undefined && (target === "" || known?.has(target) === true)) link.setAttribute("href", fileHref(target))
    else {
      link.removeAttribute("href")
      link.classList.add("broken")
      link.title = "There is no such file here."
    }
  }
}

const replaceImage = (image: Element, text: string, href?: string): void => {
  const label = image.getAttribute("alt") ?? ""
  const made = document.createElement(href === undefined ? "span" : "a")
  made.className = "no-image"
  made.textContent = label === "" ? text : `${label} (${text})`
  if (made instanceof HTMLAnchorElement && href !== undefined) {
    made.href = href
    openOutside(made)
  }
  // Nested links are invalid.
  if (href !== undefined && image.closest("a") !== null) made.removeAttribute("href")
  image.replaceWith(made)
}

const showImages = (root: ParentNode, path: string, signal: AbortSignal, made: Array<string>): void => {
  for (const image of root.querySelectorAll<HTMLImageElement>("img")) {
    const source = image.dataset["src"] ?? ""
    delete image.dataset["src"]
    if (/^data:image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]/i.test(source)) {
      image.src = source
      continue
    }
    if (isRemote(source)) {
      if (/^https?:/i.test(source)) replaceImage(image, "an external image, not loaded", source)
      else replaceImage(image, "an image that is not loaded")
      continue
    }
    const target = pathOf(path, source)
    if (target === undefined || shownTree.value?.tree.nodes.has(target) !== true) {
      replaceImage(image, "an image that does not exist")
      continue
    }
    void Api.file(target, at.value, signal).then(
      (file: FileContent) => {
        if (signal.aborted) return
        const type = imageTypeOf(file)
        if (type === undefined || file.content === null) return replaceImage(image, "not an image")
        const url = URL.createObjectURL(new Blob([bytesOf(file)], { type }))
        made.push(url)
        image.src = url
      },
      () => signal.aborted || replaceImage(image, "an image that does not exist")
    )
  }
}

const highlight = async (code: Element): Promise<void> => {
  const name = /(?:^|\s)language-([\w+#.-]+)/.exec(code.className)?.[1]
  const text = code.textContent ?? ""
  const description = name === undefined ? null : LanguageDescription.matchLanguageName(languages, name, true)
  if (description === null || text.length > 100_000) return
  const { language } = await description.load()
  const parts: Array<Node | string> = []
  highlightCode(
    text,
    language.parser.parse(text),
    classHighlighter,
    (piece, classes) => {
      if (classes === "") return parts.push(piece)
      const span = document.createElement("span")
      span.className = classes
      span.textContent = piece
      return parts.push(span)
    },
    () => parts.push("\n")
  )
  code.replaceChildren(...parts)
}

export const Markdown = ({
  isPart = false,
  path,
  text
}: {
  readonly path: string
  readonly text: string
  /** True if the text is part of a larger view that scrolls. */
  readonly isPart?: boolean
}) => {
  const element = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const abort = new AbortController()
    const urls: Array<string> = []
    // A YAML block at the beginning of a document is metadata.
    const [frontMatter = ""] = /^---\r?\n[^]*?\r?\n---\r?\n/.exec(text) ?? []
    const fragment = sanitizeHtml(marked.parse(text.slice(frontMatter.length)) as string)
    for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
      if (heading.id === "") heading.id = `user-content-${slugOf(heading.textContent ?? "")}`
    }
    for (const each of fragment.querySelectorAll("[class]")) {
      if (each.localName !== "code") each.removeAttribute("class")
    }
    for (const input of fragment.querySelectorAll("input")) {
      if (input.type === "checkbox") {
        input.disabled = true
        input.setAttribute("aria-label", input.closest("li")?.textContent?.trim() || "Task")
      } else input.remove()
    }
    for (const table of fragment.querySelectorAll("table")) {
      const frame = document.createElement("div")
      frame.className = "table"
      table.replaceWith(frame)
      frame.append(table)
    }
    resolveLinks(fragment, path)
    if (frontMatter !== "") {
      const pre = document.createElement("pre")
      pre.className = "front"
      pre.textContent = frontMatter.replace(/^---\r?\n|\r?\n---\r?\n$/g, "")
      fragment.prepend(pre)
    }
    showImages(fragment, path, abort.signal, urls)
    for (const code of fragment.querySelectorAll("pre > code[class]")) void highlight(code).catch(() => undefined)
    element.current?.replaceChildren(fragment)
    return () => {
      abort.abort()
      for (const url of urls) URL.revokeObjectURL(url)
    }
  }, [path, text, shownTree.value?.at])
  return (
    <div class={isPart ? "" : "scroll markdown-scroll"} tabIndex={isPart ? undefined : 0}>
      <article
        class="markdown"
        ref={element}
        onClick={(event) => {
          const link = event.target instanceof Element ? event.target.closest<HTMLElement>("a[data-jump]") : null
          if (link === null) return
          event.preventDefault()
          const id = `user-content-${link.dataset["jump"]}`
          element.current?.querySelector(`#${CSS.escape(id)}`)?.scrollIntoView()
        }}
      />
    </div>
  )
}
