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
  | { readonly _tag: "Repeat"; readonly node: Node; readonly least: number; readonly most: number }
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
    const [, sign, least, most] = found
    return {
      _tag: "Repeat",
      node,
      least: sign === undefined ? Number(least) : sign === "+" ? 1 : 0,
      most: sign === undefined ? Number(most) : sign === "?" ? 1 : Number.POSITIVE_INFINITY
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
  const put = (step: Step): number => {
    weight += 1 + depth
    if (weight > maxSteps) throw new NotAGlob("it is too complex")
    return steps.push(step) - 1
  }
  const emit = (node: Node): void => {
    switch (node._tag) {
      case "Sequence":
        for (const part of node.nodes) emit(part)
        return
      case "Choice": {
        const to: Array<number> = []
        const exits: Array<Array<number>> = []
        put({ _tag: "Go", to })
        for (const part of node.nodes) {
          to.push(steps.length)
          emit(part)
          const exit: Array<number> = []
          put({ _tag: "Go", to: exit })
          exits.push(exit)
        }
        for (const exit of exits) exit.push(steps.length)
        return
      }
      case "Repeat": {
        for (let i = 0; i < node.least; i++) emit(node.node)
        if (node.most === Number.POSITIVE_INFINITY) {
          const to: Array<number> = []
          const again = put({ _tag: "Go", to })
          to.push(again + 1)
          emit(node.node)
          put({ _tag: "Go", to: [again] })
          to.push(steps.length)
          return
        }
        for (let i = node.least; i < node.most; i++) {
          const to: Array<number> = [steps.length + 1]
          put({ _tag: "Go", to })
          emit(node.node)
          to.push(steps.length)
        }
        return
      }
      case "Look": {
        const at = put({ _tag: "Start" })
        depth++
        emit(node.node)
        const end = put({ _tag: "Done" })
        depth--
        steps[at] = { _tag: "Look", end, negative: node.negative }
        return
      }
      default:
        put(node)
    }
  }
  emit(root)
  put({ _tag: "Done" })
  return { steps, weight }
}

/** Evaluates a lookahead at every place, from the end backwards, so that each part of the text is read once. */
const survey = (
  steps: ReadonlyArray<Step>,
  comesFrom: ReadonlyArray<ReadonlyArray<number>>,
  look: number,
  text: string,
  says: (look: number, place: number) => boolean
): Uint8Array => {
  const { end } = steps[look] as { readonly end: number }
  const holds = new Uint8Array(text.length + 1)
  let now = new Uint8Array(end + 1)
  let next = new Uint8Array(end + 1)
  const passes = (at: number, place: number): boolean => {
    const step = steps[at]!
    return (
      step._tag === "Go" ||
      (step._tag === "Start" && place === 0) ||
      (step._tag === "End" && place === text.length) ||
      (step._tag === "Look" && says(at, place))
    )
  }
  for (let place = text.length; place >= 0; place--) {
    now.fill(0)
    const unit = text.charCodeAt(place)
    const todo = [end]
    for (let at = look + 1; at < end; at++) {
      const step = steps[at]!
      if (step._tag === "Unit" && next[at + 1] === 1 && step.has(unit)) todo.push(at)
    }
    for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
      if (now[at] === 1) continue
      now[at] = 1
      for (const from of comesFrom[at]!) if (from > look && passes(from, place)) todo.push(from)
    }
    holds[place] = now[look + 1]!
    ;[now, next] = [next, now]
  }
  return holds
}

export const compileExpression = (source: string, ignoreCase: boolean): Test => {
  const { steps, weight } = assemble(parse(source, ignoreCase))
  const comesFrom: Array<Array<number>> = steps.map(() => [])
  steps.forEach((step, at) => {
    if (step._tag === "Go") for (const to of step.to) comesFrom[to]!.push(at)
    else if (step._tag === "Look") comesFrom[step.end + 1]!.push(at)
    else if (step._tag === "Start" || step._tag === "End") comesFrom[at + 1]!.push(at)
  })

  const test = (text: string): boolean => {
    const surveys = new Map<number, Uint8Array>()
    const says = (look: number, place: number): boolean => {
      let holds = surveys.get(look)
      if (holds === undefined) surveys.set(look, (holds = survey(steps, comesFrom, look, text, says)))
      return (holds[place] === 1) !== (steps[look] as { readonly negative: boolean }).negative
    }
    const seen = new Int32Array(steps.length).fill(-1)
    const follow = (out: Array<number>, entry: number, place: number): boolean => {
      const todo = [entry]
      for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
        if (seen[at] === place) continue
        seen[at] = place
        const step = steps[at]!
        if (step._tag === "Done") return true
        if (step._tag === "Unit") out.push(at)
        else if (step._tag === "Go") todo.push(...step.to)
        else if (step._tag === "Start" ? place === 0 : step._tag === "End" && place === text.length) todo.push(at + 1)
        else if (step._tag === "Look" && says(at, place)) todo.push(step.end + 1)
      }
      return false
    }
    let now: Array<number> = []
    let next: Array<number> = []
    if (follow(now, 0, 0)) return true
    for (let place = 0; place < text.length && now.length > 0; place++) {
      const unit = text.charCodeAt(place)
      for (const at of now) {
        if ((steps[at] as { readonly has: (unit: number) => boolean }).has(unit) && follow(next, at + 1, place + 1)) return true
      }
      ;[now, next] = [next, now]
      next.length = 0
    }
    return false
  }
  return Object.assign(test, { weight })
}
