import type { ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { ErrorMessage } from "../components.tsx"

/** The loaded components, which render synchronously the next time. */
const loadedComponents = new Map<() => Promise<unknown>, unknown>()

export const LazyComponent = <Props extends object>({
  load,
  with: props
}: {
  /** The loader; it must be the same function at each render. */
  readonly load: () => Promise<ComponentType<Props>>
  readonly with: NoInfer<Props>
}) => {
  const [loaded, setLoaded] = useState<{ readonly component?: ComponentType<Props>; readonly error?: string }>(() =>
    loadedComponents.has(load) ? { component: loadedComponents.get(load) as ComponentType<Props> } : {}
  )
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    if (loadedComponents.has(load)) return undefined
    let isUnmounted = false
    load().then(
      (component) => {
        loadedComponents.set(load, component)
        if (!isUnmounted) setLoaded({ component })
      },
      (error: unknown) => isUnmounted || setLoaded({ error: error instanceof Error ? error.message : String(error) })
    )
    return () => {
      isUnmounted = true
    }
  }, [attempt])
  const { component: Component, error } = loaded
  if (error !== undefined)
    return <ErrorMessage message={`A part of the page did not come: ${error}`} retry={() => setAttempt(attempt + 1)} />
  return Component === undefined ? null : <Component {...props} />
}
