/** Parses the output of strace into the successful calls, with their paths and the lines where each began and ended. */

export interface SystemCall {
  readonly name: string
  /** The absolute paths. A descriptor is shown by the path of its file. */
  readonly paths: ReadonlyArray<string>
  readonly began: number
  readonly ended: number
}

const callForm = /^(\w+)\((.*)\) += (\d+)(?:<(.*)>)?/s
const argumentForm = /(\d+)<([^>]*)>|"((?:[^"\\]|\\.)*)"/g

/** Parses the output of `strace -f -y -o`, in which threads split one another's calls. */
export const parseTrace = (trace: string): ReadonlyArray<SystemCall> => {
  const calls: Array<SystemCall> = []
  const unfinished = new Map<string, { readonly text: string; readonly began: number }>()
  const descriptors = new Map<string, string>()
  const real = (path: string): string =>
    path.replace(/^\/proc\/(?:self|\d+)\/fd\/(\d+)/, (whole, number: string) => descriptors.get(number) ?? whole)

  for (const [line, text] of trace.split("\n").entries()) {
    const [, pid = "", rest = ""] = /^(\d+) +(.*)$/s.exec(text) ?? []
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/s.exec(rest)
    const before = resumed === null ? undefined : unfinished.get(pid)
    if (rest.endsWith("<unfinished ...>")) {
      unfinished.set(pid, { text: rest.slice(0, -"<unfinished ...>".length), began: line })
      continue
    }
    const found = callForm.exec(before === undefined ? rest : `${before.text}${resumed![1]!}`)
    if (found === null) continue
    const [, name, args, result, opened] = found
    const paths = [...args!.matchAll(argumentForm)].map(([, , behind, string]) => behind ?? real(string!))
    if (opened !== undefined) descriptors.set(result!, opened)
    calls.push({ name: name!.replace(/at2?$|64$/, ""), paths, began: before?.began ?? line, ended: line })
  }
  return calls
}
