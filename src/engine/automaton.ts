/**
 * Runs the regular expressions that picomatch generates for extglobs and other rare globs, in bounded time.
 *
 * All paths through the expression are followed at once, and each lookahead is evaluated once per place. The test
 * covers only whole texts, so the order of alternatives and capture groups do not matter.
 *
 * A pattern with syntax that picomatch does not generate (backreferences, lookbehind) is not a glob.
 */
import { charClass, type Test } from "./segment.ts"

type Node =
  | { readonly _tag: "Unit"; readonly has: (unit: number) => boolean }
  | { readonly _tag: "Start" | "End" }
  | { readonly _tag: "Sequence" | "Choice"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly node: Node; readonly min: number; readonly max: number }
  | { readonly _tag: "Look"; readonly node: Node; readonly negative: boolean }

export class NotAGlob extends Error {}

const parse = (source: string, ignoreCase: boolean): Node => {
  let at = 0
  const single = (part: string): Node => ({ _tag: "Unit", has: charClass(part, ignoreCase).has })
  const choice = (): Node => {
    const nodes: Array<Node> = [sequence()]
    while (source[at] === "|") {
      at++
      nodes.push(sequence())
    }
    return nodes.length === 1 ? nodes[0]! : { _tag: "Choice", nodes }
  }
  const sequence = (): Node => {
    const nodes: Array<Node> = []
    while (at < source.length && source[at] !== "|" && source[at] !== ")") nodes.push(quantified(atom()))
    return { _tag: "Sequence", nodes }
  }
  const quantified = (node: Node): Node => {
    const found = /^(?:([*+?])|\{(\d+),(\d+)\})\??/.exec(source.slice(at, at + 16))
    if (found === null) return node
    if (node._tag === "Look") throw new NotAGlob("it repeats a condition")
    at += found[0].length
    const [, sign, min, max] = found
    return {
      _tag: "Repeat",
      node,
      min: sign === undefined ? Number(min) : sign === "+" ? 1 : 0,
      max: sign === undefined ? Number(max) : sign === "?" ? 1 : Number.POSITIVE_INFINITY
    }
  }
  const group = (): Node => {
    const opening = /^\((?:\?[:=!])?/.exec(source.slice(at, at + 3))![0]
    at += opening.length
    if (source[at] === "?") throw new NotAGlob("it holds a group that no glob has")
    const node = choice()
    if (source[at++] !== ")") throw new NotAGlob("a parenthesis is not closed")
    return opening === "(?=" || opening === "(?!" ? { _tag: "Look", node, negative: opening === "(?!" } : node
  }
  const atom = (): Node => {
    const sign = source[at]!
    if (sign === "(") return group()
    if (sign === "[") {
      let end = at + 1
      while (end < source.length && source[end] !== "]") end += source[end] === "\\" ? 2 : 1
      const body = source.slice(at, end + 1)
      at = end + 1
      return single(body)
    }
    at++
    if (sign === "^") return { _tag: "Start" }
    if (sign === "$") return { _tag: "End" }
    if (sign === ".") return { _tag: "Unit", has: () => true }
    if (/[*+?{]/.test(sign)) throw new NotAGlob("there is nothing for it to repeat")
    if (sign !== "\\") return single(sign)
    const escaped = source[at++] ?? ""
    if (/[dDwWsSbBnrtvfcxuk0-9]/.test(escaped)) throw new NotAGlob(`"\\${escaped}" means nothing in a glob`)
    return single(`\\${escaped}`)
  }
  const node = choice()
  if (at < source.length) throw new NotAGlob("a parenthesis is not opened")
  return node
}

type Step =
  | { readonly _tag: "Unit"; readonly has: (unit: number) => boolean }
  | { readonly _tag: "Start" | "End" | "Done" }
  | { readonly _tag: "Go"; readonly to: ReadonlyArray<number> }
  | { readonly _tag: "Look"; readonly end: number; readonly negative: boolean }

/** Each step takes about ten nanoseconds. The cost of a text is at most its length times this number. */
const maxSteps = 8192

interface Program {
  readonly steps: ReadonlyArray<Step>
  /** The steps per place of a text. A step inside lookaheads counts once more for each lookahead. */
  readonly weight: number
}

const assemble = (root: Node): Program => {
  const steps: Array<Step> = []
  let weight = 0
  let depth = 0
  const addStep = (step: Step): number => {
    weight += 1 + depth
    if (weight > maxSteps) throw new NotAGlob("it is too complex")
    return steps.push(step) - 1
  }
  const compileNode = (node: Node): void => {
    switch (node._tag) {
      case "Sequence":
        for (const part of node.nodes) compileNode(part)
        return
      case "Choice": {
        const to: Array<number> = []
        const exits: Array<Array<number>> = []
        addStep({ _tag: "Go", to })
        for (const part of node.nodes) {
          to.push(steps.length)
          compileNode(part)
          const exit: Array<number> = []
          addStep({ _tag: "Go", to: exit })
          exits.push(exit)
        }
        for (const exit of exits) exit.push(steps.length)
        return
      }
      case "Repeat": {
        for (let i = 0; i < node.min; i++) compileNode(node.node)
        if (node.max === Number.POSITIVE_INFINITY) {
          const to: Array<number> = []
          const again = addStep({ _tag: "Go", to })
          to.push(again + 1)
          compileNode(node.node)
          addStep({ _tag: "Go", to: [again] })
          to.push(steps.length)
          return
        }
        for (let i = node.min; i < node.max; i++) {
          const to: Array<number> = [steps.length + 1]
          addStep({ _tag: "Go", to })
          compileNode(node.node)
          to.push(steps.length)
        }
        return
      }
      case "Look": {
        const at = addStep({ _tag: "Start" })
        depth++
        compileNode(node.node)
        const end = addStep({ _tag: "Done" })
        depth--
        steps[at] = { _tag: "Look", end, negative: node.negative }
        return
      }
      default:
        addStep(node)
    }
  }
  compileNode(root)
  addStep({ _tag: "Done" })
  return { steps, weight }
}

/** Evaluates a lookahead at every place, from the end backwards, so that each part of the text is read once. */
const evaluateLookahead = (
  steps: ReadonlyArray<Step>,
  predecessors: ReadonlyArray<ReadonlyArray<number>>,
  look: number,
  text: string,
  holdsAt: (look: number, position: number) => boolean
): Uint8Array => {
  const { end } = steps[look] as { readonly end: number }
  const holds = new Uint8Array(text.length + 1)
  let now = new Uint8Array(end + 1)
  let next = new Uint8Array(end + 1)
  const passes = (at: number, position: number): boolean => {
    const step = steps[at]!
    return (
      step._tag === "Go" ||
      (step._tag === "Start" && position === 0) ||
      (step._tag === "End" && position === text.length) ||
      (step._tag === "Look" && holdsAt(at, position))
    )
  }
  for (let position = text.length; position >= 0; position--) {
    now.fill(0)
    const unit = text.charCodeAt(position)
    const pending = [end]
    for (let at = look + 1; at < end; at++) {
      const step = steps[at]!
      if (step._tag === "Unit" && next[at + 1] === 1 && step.has(unit)) pending.push(at)
    }
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (now[at] === 1) continue
      now[at] = 1
      for (const from of predecessors[at]!) if (from > look && passes(from, position)) pending.push(from)
    }
    holds[position] = now[look + 1]!
    ;[now, next] = [next, now]
  }
  return holds
}

export const compileExpression = (source: string, ignoreCase: boolean): Test => {
  const { steps, weight } = assemble(parse(source, ignoreCase))
  const predecessors: Array<Array<number>> = steps.map(() => [])
  steps.forEach((step, at) => {
    if (step._tag === "Go") for (const to of step.to) predecessors[to]!.push(at)
    else if (step._tag === "Look") predecessors[step.end + 1]!.push(at)
    else if (step._tag === "Start" || step._tag === "End") predecessors[at + 1]!.push(at)
  })

  const test = (text: string): boolean => {
    const surveys = new Map<number, Uint8Array>()
    const holdsAt = (look: number, position: number): boolean => {
      let holds = surveys.get(look)
      if (holds === undefined) surveys.set(look, (holds = evaluateLookahead(steps, predecessors, look, text, holdsAt)))
      return (holds[position] === 1) !== (steps[look] as { readonly negative: boolean }).negative
    }
    const seen = new Int32Array(steps.length).fill(-1)
    const addReachable = (out: Array<number>, entry: number, position: number): boolean => {
      const pending = [entry]
      for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
        if (seen[at] === position) continue
        seen[at] = position
        const step = steps[at]!
        if (step._tag === "Done") return true
        if (step._tag === "Unit") out.push(at)
        else if (step._tag === "Go") pending.push(...step.to)
        else if (step._tag === "Start" ? position === 0 : step._tag === "End" && position === text.length) pending.push(at + 1)
        else if (step._tag === "Look" && holdsAt(at, position)) pending.push(step.end + 1)
      }
      return false
    }
    let now: Array<number> = []
    let next: Array<number> = []
    if (addReachable(now, 0, 0)) return true
    for (let position = 0; position < text.length && now.length > 0; position++) {
      const unit = text.charCodeAt(position)
      for (const at of now) {
        if ((steps[at] as { readonly has: (unit: number) => boolean }).has(unit) && addReachable(next, at + 1, position + 1))
          return true
      }
      ;[now, next] = [next, now]
      next.length = 0
    }
    return false
  }
  return Object.assign(test, { weight })
}
