import type { ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { Trouble } from "../components.tsx"

/** The loaded components, which render synchronously the next time. */
const come = new Map<() => Promise<unknown>, unknown>()

export const Later = <Props extends object>({
  load,
  with: props
}: {
  /** The loader; it must be the same function at each render. */
  readonly load: () => Promise<ComponentType<Props>>
  readonly with: NoInfer<Props>
}) => {
  const [loaded, setLoaded] = useState<{ readonly component?: ComponentType<Props>; readonly error?: string }>(() =>
    come.has(load) ? { component: come.get(load) as ComponentType<Props> } : {}
  )
  const [turn, again] = useState(0)
  useEffect(() => {
    if (come.has(load)) return undefined
    let isGone = false
    load().then(
      (component) => {
        come.set(load, component)
        if (!isGone) setLoaded({ component })
      },
      (error: unknown) => isGone || setLoaded({ error: error instanceof Error ? error.message : String(error) })
    )
    return () => {
      isGone = true
    }
  }, [turn])
  const { component: Component, error } = loaded
  if (error !== undefined)
    return <Trouble message={`A part of the page did not come: ${error}`} retry={() => again(turn + 1)} />
  return Component === undefined ? null : <Component {...props} />
}
