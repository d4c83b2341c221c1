/** Binds single keys as shortcuts. The shortcuts do not work in text fields. Each shortcut has a description for the help. */
import { signal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"

export interface Key {
  readonly key: string
  readonly does: string
  readonly run: () => void
}

export const keys = signal<ReadonlyArray<Key>>([])

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    /^(?:input|textarea|select)$/i.test(target.tagName) ||
    target.closest(".cm-panel, dialog[open]") !== null)

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
  // If several components bind a key, the latest binding applies.
  const bound = keys.peek().findLast(({ key }) => key === event.key)
  if (bound === undefined) return
  event.preventDefault()
  bound.run()
})

export const useKeys = (bound: ReadonlyArray<Key>): void => {
  const latestKeys = useRef(bound)
  latestKeys.current = bound
  const names = bound.map(({ does, key }) => `${key}\n${does}`).join("\n\n")
  // Bind the keys before the next key press. A deferred effect would lose keys that are pressed right after the render.
  useLayoutEffect(() => {
    const ownKeys = latestKeys.current.map(({ does, key }) => ({
      key,
      does,
      run: () => latestKeys.current.find((other) => other.key === key)?.run()
    }))
    keys.value = [...keys.peek(), ...ownKeys]
    return () => {
      keys.value = keys.peek().filter((key) => !ownKeys.includes(key))
    }
  }, [names])
}
