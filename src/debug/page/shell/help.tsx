/** Which keys do what, here and now. */
import { createRef } from "preact"
import { Drawing } from "./icons.tsx"
import { keys } from "./keys.ts"

const element = createRef<HTMLDialogElement>()

/** The dialog itself knows whether it is open: it tells of its closing only later, when it may have been opened again. */
export const openHelp = (): void => {
  if (element.current?.open === false) element.current.showModal()
}

const shown: Readonly<Record<string, string>> = { Escape: "Esc", ArrowDown: "↓", ArrowUp: "↑" }

/** Those of the focused thing itself, which are not bound for the page. */
const others: ReadonlyArray<readonly [keys: ReadonlyArray<string>, does: string]> = [
  [["↑", "↓"], "In the tree: up and down"],
  [["→", "←"], "In the tree: open and close"],
  [["Enter"], "Open what is chosen"],
  [["Ctrl", "F"], "Find in the file, when it has the focus"]
]

export const Help = () => {
  // One line for what several keys do.
  const does = new Map<string, Array<string>>()
  for (const bound of keys.value) {
    const list = does.get(bound.does) ?? []
    if (!list.includes(bound.key)) does.set(bound.does, [...list, bound.key])
  }
  return (
    <dialog
      class="help"
      ref={element}
      aria-label="Keys"
      onClick={(event) => {
        if (event.target === element.current) element.current?.close()
      }}
    >
      <div class="help-body">
        <header>
          <h2>Keys</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={() => element.current?.close()}>
            <Drawing of="close" />
          </button>
        </header>
        <dl>
          {[...does].map(([text, list]) => (
            <div key={text}>
              <dt>{text}</dt>
              <dd>
                {list.map((key) => (
                  <kbd key={key}>{shown[key] ?? key}</kbd>
                ))}
              </dd>
            </div>
          ))}
          {others.map(([list, text]) => (
            <div key={text}>
              <dt>{text}</dt>
              <dd>
                {list.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dd>
            </div>
          ))}
        </dl>
        <p class="dim">
          What is shown is only read. <a href="openapi.json">What the server answers, as OpenAPI</a>
        </p>
      </div>
    </dialog>
  )
}
