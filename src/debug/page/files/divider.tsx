/** The divider between tree and file. The mouse or the arrow keys move it, and its position is remembered. */
import { useEffect, useRef } from "preact/hooks"

const [minWidth, maxWidth, defaultWidth] = [180, 640, 288]
const key = "fs-algebra.tree-width"

const kept = (): number => {
  try {
    const width = Number(localStorage.getItem(key) ?? defaultWidth)
    return width >= minWidth && width <= maxWidth ? width : defaultWidth
  } catch {
    return defaultWidth
  }
}

export const Divider = () => {
  const element = useRef<HTMLDivElement>(null)
  const width = useRef(kept())
  const setWidth = (wanted: number): void => {
    width.current = Math.round(Math.max(minWidth, Math.min(maxWidth, wanted)))
    document.documentElement.style.setProperty("--tree-width", `${width.current}px`)
    element.current?.setAttribute("aria-valuenow", `${width.current}`)
    try {
      localStorage.setItem(key, `${width.current}`)
    } catch {
      // Storage is unavailable; the width is not remembered.
    }
  }
  useEffect(() => setWidth(width.current), [])
  return (
    <div
      class="divider"
      ref={element}
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the tree"
      aria-valuemin={minWidth}
      aria-valuemax={maxWidth}
      tabIndex={0}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key]
        if (by === undefined) return
        event.preventDefault()
        setWidth(width.current + by)
      }}
      onDblClick={() => setWidth(defaultWidth)}
      onPointerDown={(event) => {
        const [from, before] = [event.clientX, width.current]
        const handle = event.currentTarget
        handle.setPointerCapture(event.pointerId)
        const move = (moved: PointerEvent): void => setWidth(before + moved.clientX - from)
        handle.addEventListener("pointermove", move)
        handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true })
        event.preventDefault()
      }}
    />
  )
}
