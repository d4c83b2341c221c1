/** The divider between tree and file. The mouse or the arrow keys move it, and its position is remembered. */
import { useEffect, useRef } from "preact/hooks"

const [least, most, usual] = [180, 640, 288]
const key = "fs-algebra.tree-width"

const kept = (): number => {
  try {
    const width = Number(localStorage.getItem(key) ?? usual)
    return width >= least && width <= most ? width : usual
  } catch {
    return usual
  }
}

export const Divider = () => {
  const element = useRef<HTMLDivElement>(null)
  const width = useRef(kept())
  const set = (wanted: number): void => {
    width.current = Math.round(Math.max(least, Math.min(most, wanted)))
    document.documentElement.style.setProperty("--tree-width", `${width.current}px`)
    element.current?.setAttribute("aria-valuenow", `${width.current}`)
    try {
      localStorage.setItem(key, `${width.current}`)
    } catch {
      // Storage is unavailable; the width is not remembered.
    }
  }
  useEffect(() => set(width.current), [])
  return (
    <div
      class="divider"
      ref={element}
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the tree"
      aria-valuemin={least}
      aria-valuemax={most}
      tabIndex={0}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key]
        if (by === undefined) return
        event.preventDefault()
        set(width.current + by)
      }}
      onDblClick={() => set(usual)}
      onPointerDown={(event) => {
        const [from, before] = [event.clientX, width.current]
        const handle = event.currentTarget
        handle.setPointerCapture(event.pointerId)
        const move = (moved: PointerEvent): void => set(before + moved.clientX - from)
        handle.addEventListener("pointermove", move)
        handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true })
        event.preventDefault()
      }}
    />
  )
}
