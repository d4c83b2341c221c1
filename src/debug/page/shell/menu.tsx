import type { ComponentChildren } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import { Drawing } from "./icons.tsx"

export interface Choice {
  readonly id: string
  readonly label: ComponentChildren
  readonly text: string
  readonly note?: ComponentChildren
}

/** The largest number of choices to show; a search finds the others. */
const maxShownChoices = 200

export const Menu = ({
  align = "left",
  chosen,
  choices,
  class: name,
  label,
  onChoose,
  children
}: {
  readonly align?: "left" | "right"
  readonly chosen: string
  readonly choices: ReadonlyArray<Choice>
  readonly class?: string
  readonly label: string
  readonly onChoose: (id: string) => void
  readonly children: ComponentChildren
}) => {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(0)
  const [query, setQuery] = useState("")
  const element = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const words = query.toLowerCase().split(/\s+/)
  const shownChoices = choices
    .filter(({ text }) => words.every((word) => text.toLowerCase().includes(word)))
    .slice(0, maxShownChoices)
  const isSearched = choices.length > 8

  const close = (): void => {
    setOpen(false)
    button.current?.focus()
  }
  const choose = (index: number): void => {
    const choice = shownChoices[index]
    if (choice === undefined) return
    close()
    if (choice.id !== chosen) onChoose(choice.id)
  }
  // Move the focus before the next key press, which belongs to the list.
  useLayoutEffect(() => {
    if (!isOpen) return undefined
    setQuery("")
    setActive(
      Math.max(
        0,
        choices.findIndex(({ id }) => id === chosen)
      )
    )
    element.current?.querySelector<HTMLElement>("input, [role=listbox]")?.focus()
    const closeIfOutside = ({ target }: Event): void => {
      if (target instanceof globalThis.Node && element.current?.contains(target) === false) setOpen(false)
    }
    addEventListener("pointerdown", closeIfOutside)
    return () => removeEventListener("pointerdown", closeIfOutside)
  }, [isOpen])
  useEffect(() => {
    if (isOpen) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" })
  }, [active, isOpen])

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isOpen) return
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: shownChoices.length - 1 }[event.key]
    if (to !== undefined) setActive(Math.max(0, Math.min(shownChoices.length - 1, to)))
    else if (event.key === "Enter") choose(active)
    else if (event.key === "Escape") close()
    else if (event.key === "Tab") {
      setOpen(false)
      return
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div class={`menu ${name ?? ""}`} ref={element} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="menu-button"
        ref={button}
        aria-haspopup="listbox"
        aria-expanded={isOpen}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="visually-hidden">{label}: </span>
        {children}
        <Drawing of="down" />
      </button>
      {isOpen ? (
        <div class={`menu-pop menu-${align}`}>
          {isSearched ? (
            <input
              class="input"
              type="text"
              role="combobox"
              aria-label={`Search: ${label}`}
              aria-expanded="true"
              aria-controls={id}
              aria-activedescendant={`${id}-${active}`}
              placeholder="Search"
              value={query}
              onInput={({ currentTarget }) => {
                setQuery(currentTarget.value)
                setActive(0)
              }}
            />
          ) : null}
          <div
            class="menu-list"
            role="listbox"
            id={id}
            aria-label={label}
            tabIndex={isSearched ? -1 : 0}
            aria-activedescendant={`${id}-${active}`}
          >
            {shownChoices.map((choice, index) => (
              <div
                key={choice.id}
                id={`${id}-${index}`}
                role="option"
                aria-selected={choice.id === chosen}
                class={`menu-item ${index === active ? "is-active" : ""}`}
                onClick={() => choose(index)}
                onPointerMove={() => setActive(index)}
              >
                <span class="menu-check">{choice.id === chosen ? <Drawing of="check" /> : null}</span>
                <span class="menu-label">{choice.label}</span>
                {choice.note === undefined ? null : <span class="menu-note">{choice.note}</span>}
              </div>
            ))}
            {shownChoices.length === 0 ? <p class="menu-none">Nothing matches.</p> : null}
          </div>
        </div>
      ) : null}
    </div>
  )
}
