/** Single keys, while nobody is typing. Each view says what its keys do, and the help lists what can be done now. */
import { signal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"

export interface Key {
  /** As `KeyboardEvent.key` has it. */
  readonly key: string
  readonly does: string
  readonly run: () => void
}

export const keys = signal<ReadonlyArray<Key>>([])

/** Where letters are typed or mean something of their own. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    /^(?:input|textarea|select)$/i.test(target.tagName) ||
    target.closest(".cm-panel, dialog[open]") !== null)

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
  // The one that was bound last is nearest.
  const bound = keys.peek().findLast(({ key }) => key === event.key)
  if (bound === undefined) return
  event.preventDefault()
  bound.run()
})

/** While the component is there. */
export const useKeys = (bound: ReadonlyArray<Key>): void => {
  const latest = useRef(bound)
  latest.current = bound
  const names = bound.map(({ does, key }) => `${key}\n${does}`).join("\n\n")
  // Before anything else is pressed: an effect that waits for the picture loses keys that come with what is drawn.
  useLayoutEffect(() => {
    const mine = latest.current.map(({ does, key }) => ({
      key,
      does,
      run: () => latest.current.find((other) => other.key === key)?.run()
    }))
    keys.value = [...keys.peek(), ...mine]
    return () => {
      keys.value = keys.peek().filter((key) => !mine.includes(key))
    }
  }, [names])
}
