import type { ComponentChildren } from "preact"

const Icon = ({ children, class: name }: { readonly children: ComponentChildren; readonly class?: string | undefined }) => (
  <svg
    class={`icon ${name ?? ""}`}
    viewBox="0 0 16 16"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.3"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    {children}
  </svg>
)

const drawings = {
  chevron: "M6 4l4 4-4 4",
  down: "M4.5 6.5L8 10l3.5-3.5",
  back: "M10 4L6 8l4 4",
  close: "M4.5 4.5l7 7m0-7l-7 7",
  reload: "M13 8a5 5 0 1 1-1.5-3.55M13 2.5v3h-3",
  sun: "M8 5.3a2.7 2.7 0 1 0 0 5.4a2.7 2.7 0 0 0 0-5.4M8 1.5v1.2m0 10.6v1.2M1.5 8h1.2m10.6 0h1.2M3.4 3.4l.85.85m7.5 7.5l.85.85m0-9.2l-.85.85m-7.5 7.5l-.85.85",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
  help: "M8 14a6 6 0 1 0 0-12a6 6 0 0 0 0 12zM6.4 6.3a1.65 1.65 0 1 1 2.4 1.5c-.5.25-.8.6-.8 1.2M8 11.2v.01",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9a4.5 4.5 0 0 0 0 9zm3.3-1.2l3.2 3.2",
  copy: "M5.5 5.5v-2a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-2M3.5 5.5h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-6a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1z",
  check: "M3.5 8.5l3 3l6-7",
  wrap: "M2.5 4h11M2.5 8h8.75a2.25 2.25 0 0 1 0 4.5H8.5m1.6-1.7L8.4 12.5l1.7 1.7M2.5 12.5h3",
  download: "M8 2.5v7.5m-3-3l3 3l3-3M3 13h10",
  history: "M2.6 6.2A5.7 5.7 0 1 1 2.4 9M2.4 3v3.3h3.3M8 5v3.2l2.2 1.4",
  collapse: "M4.5 10L8 6.5L11.5 10M3 3.5h10",
  clock: "M8 14a6 6 0 1 0 0-12a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.4",
  warning: "M8 2.6L14.2 13H1.8L8 2.6zM8 6.6v3.1m0 1.7v.01"
} as const

export const Drawing = ({ class: name, of }: { readonly of: keyof typeof drawings; readonly class?: string }) => (
  <Icon class={name}>
    <path d={drawings[of]} />
  </Icon>
)

export const IconButton = ({
  children,
  isPressed,
  label,
  of,
  onClick,
  title
}: {
  readonly label: string
  readonly of?: keyof typeof drawings
  readonly children?: ComponentChildren
  readonly title?: string
  readonly isPressed?: boolean
  readonly onClick: () => void
}) => (
  <button type="button" class="icon-button" aria-label={label} title={title} aria-pressed={isPressed} onClick={onClick}>
    {of === undefined ? children : <Drawing of={of} />}
  </button>
)

type Kind = "text" | "code" | "data" | "prose" | "image" | "binary" | "link"

const endings: ReadonlyArray<readonly [Kind, ReadonlySet<string>]> = [
  [
    "code",
    new Set(
      "ts tsx mts cts js jsx mjs cjs py rb rs go c h cc cpp hpp java kt swift cs php lua sh bash zsh fish ps1 sql html css scss less vue svelte zig ex exs erl hs ml clj scala r jl dart nix".split(
        " "
      )
    )
  ],
  ["data", new Set("json jsonc jsonl ndjson yaml yml toml xml csv tsv ini env lock conf properties".split(" "))],
  ["prose", new Set("md markdown mdx rst adoc org".split(" "))],
  ["image", new Set("png jpg jpeg gif webp avif svg bmp ico tiff heic".split(" "))],
  [
    "binary",
    new Set(
      "bin dat zip gz tgz xz bz2 zst tar 7z rar wasm exe dll so dylib o a pdf woff woff2 ttf otf mp3 mp4 webm sqlite db".split(
        " "
      )
    )
  ]
]

const kindOf = (name: string): Kind => {
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase()
  return endings.find(([, set]) => set.has(ending))?.[0] ?? "text"
}

const sheet = "M4.5 1.8h4.7L12.5 5v8.2a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1V2.8a1 1 0 0 1 1-1z"
const kinds: Record<Kind, string> = {
  text: `${sheet}M6 7h4M6 9.3h4M6 11.6h2.5`,
  code: "M5.5 4.8L2.3 8l3.2 3.2m5-6.4L13.7 8l-3.2 3.2",
  data: "M6 2.8H5.2a1.4 1.4 0 0 0-1.4 1.4v2.2A1.6 1.6 0 0 1 2.3 8a1.6 1.6 0 0 1 1.5 1.6v2.2a1.4 1.4 0 0 0 1.4 1.4H6m4-10.4h.8a1.4 1.4 0 0 1 1.4 1.4v2.2A1.6 1.6 0 0 0 13.7 8a1.6 1.6 0 0 0-1.5 1.6v2.2a1.4 1.4 0 0 1-1.4 1.4H10",
  prose: "M2.5 3.8h11v8.4h-11zM4.6 10V6l1.7 2L8 6v4m3-4v3.8m-1.4-1.3L11 9.9l1.4-1.4",
  image: "M3 3h10v10H3zM3.3 11.5l3-3.2l2.2 2.2l1.6-1.5l2.6 2.5M10 6v.01",
  binary: "M3.5 3.5h3.2v3.8H3.5zm5.8 5.2h3.2v3.8H9.3zM10.9 3.5v3.8M5.1 8.7v3.8",
  link: "M6.8 9.2a2.4 2.4 0 0 0 3.4 0l2-2a2.4 2.4 0 0 0-3.4-3.4l-.7.7m1.1 2.3a2.4 2.4 0 0 0-3.4 0l-2 2a2.4 2.4 0 0 0 3.4 3.4l.7-.7"
}

export const FileIcon = ({
  isOpen = false,
  kind,
  name
}: {
  readonly kind: "file" | "directory" | "symlink" | "other"
  readonly name: string
  readonly isOpen?: boolean
}) => {
  if (kind === "directory") {
    return (
      <Icon class="kind-directory">
        <path
          d={
            isOpen
              ? "M2 12.5V4a1 1 0 0 1 1-1h3l1.5 1.7H12a1 1 0 0 1 1 1v1M2 12.5l1.7-5a1 1 0 0 1 .95-.7h9.1a.7.7 0 0 1 .66.93L13 12a.9.9 0 0 1-.85.6H2.1z"
              : "M2 4a1 1 0 0 1 1-1h3l1.5 1.7H13a1 1 0 0 1 1 1V12a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1z"
          }
        />
      </Icon>
    )
  }
  const of: Kind = kind === "symlink" ? "link" : kind === "other" ? "binary" : kindOf(name)
  return (
    <Icon class={`kind-${of}`}>
      <path d={kinds[of]} />
    </Icon>
  )
}

export const Mark = () => (
  <svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
    <rect x="2" y="2" width="16" height="16" rx="4.5" fill="var(--accent)" />
    <path d="M6 6.5h4.5M6 10h8M6 13.5h5.5" stroke="var(--on-accent)" stroke-width="1.7" stroke-linecap="round" fill="none" />
  </svg>
)
