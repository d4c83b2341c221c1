import { render } from "preact"
import { useEffect } from "preact/hooks"
import * as Api from "./api.ts"
import { ErrorMessage, LazyComponent } from "./components.tsx"
import { FilesView } from "./files/filesView.tsx"
import { Shell } from "./shell/shell.tsx"
import { journalLast, listen, load, meta, place, problem } from "./store.ts"

/** The views that are loaded on demand; the files view is always loaded. */
const panels = {
  changes: () => import("./panels/index.ts").then(({ Changes }) => Changes),
  events: () => import("./panels/index.ts").then(({ Events }) => Events),
  slices: () => import("./panels/index.ts").then(({ Slices }) => Slices),
  journal: () => import("./panels/index.ts").then(({ Journal }) => Journal)
}

const ServerUnreachable = ({ message }: { readonly message: string }) => {
  useEffect(() => {
    const timer = setInterval(() => void load(), 3000)
    return () => clearInterval(timer)
  }, [])
  return <ErrorMessage message={message} retry={() => void load()} />
}

const App = () => {
  const { view } = place.value
  const isLive = meta.value?.is_live === true
  const hasJournal = meta.value?.has_journal === true
  useEffect(() => {
    if (isLive) return listen()
    return undefined
  }, [isLive])
  useEffect(() => {
    if (!hasJournal || journalLast.value !== undefined) return
    void Api.journal({ limit: 1 }).then(
      ({ last }) => {
        journalLast.value ??= last
      },
      () => undefined
    )
  }, [hasJournal])
  if (problem.value !== undefined) return <ServerUnreachable message={problem.value} />
  return (
    <Shell>
      {meta.value === undefined ? null : view === "files" ? (
        <FilesView />
      ) : (
        <LazyComponent key={view} load={panels[view]} with={{}} />
      )}
    </Shell>
  )
}

const root = document.querySelector("#app")!
render(<App />, root)
void load()
