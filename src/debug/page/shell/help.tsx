import { createRef } from "preact"
import { Drawing } from "./icons.tsx"
import { keys } from "./keys.ts"

const element = createRef<HTMLDialogElement>()

/** Opens the dialog. It asks the element for its state, because the close event may arrive after a later opening. */
export const openHelp = (): void => {
  if (element.current?.open === false) element.current.showModal()
}

const shown: Readonly<Record<string, string>> = { Escape: "Esc", ArrowDown: "↓", ArrowUp: "↑" }

/** The keys of focused elements, which are not bound for the page. */
const others: ReadonlyArray<readonly [keys: ReadonlyArray<string>, does: string]> = [
  [["↑", "↓"], "In the tree: up and down"],
  [["→", "←"], "In the tree: open and close"],
  [["Enter"], "Open what is chosen"],
  [["Ctrl", "F"], "Find in the file, when it has the focus"]
]

export const Help = () => {
  // Show keys with the same effect in one line.
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
