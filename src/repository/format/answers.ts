/**
 * The answers to the last changes of a workspace. The answers are in the same commit as the changes. A change that arrives a
 * second time, perhaps at another runner, gets its first answer and is not made again.
 *
 * The answers are lists in nodes of growing size. A commit merges its own answers with lists that are not much larger, so each
 * answer is rewritten only a few times.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import type { StoreError } from "../errors.ts"
import { type Answer, type AnswerList, type AnswersRef, type KeptAnswers, maxAnswerLists } from "./nodes.ts"
import type { Objects } from "./objects.ts"

/** The maximum size of a kept answer in bytes. A longer answer is dropped, but the record that the change was made is kept. */
export const maxTextBytes = 16 * 1024
/** The maximum size of all lists together, in bytes. */
export const maxBytes = 1024 * 1024
/** The time for which an answer is kept, in milliseconds. */
export const maxAge = 10 * 60 * 1000

/**
 * The limit, in milliseconds after the current time, to which `forgottenUntil` may advance. The limit protects against answers
 * from a runner whose clock is ahead.
 */
const maxAhead = maxAge

const maxListBytes = 48 * 1024
const answerBytes = 64

/** The answers of each list by id. */
const indexes = new WeakMap<AnswerList, ReadonlyMap<string, Answer>>()

const indexOf = (list: AnswerList): ReadonlyMap<string, Answer> => {
  let index = indexes.get(list)
  if (index === undefined) indexes.set(list, (index = new Map(list.answers.map((answer) => [answer.id, answer]))))
  return index
}

const sizeOf = ({ text }: Answer): number => answerBytes + (text === undefined ? 0 : Buffer.byteLength(text))

/** Returns the answer with an id. `fresh` are answers that are in no list yet. */
export const find = (
  objects: Objects,
  { lists }: KeptAnswers,
  fresh: ReadonlyArray<Answer>,
  id: string
): Effect.Effect<Answer | undefined, StoreError> =>
  Effect.gen(function* () {
    const found = fresh.find((answer) => answer.id === id)
    if (found !== undefined) return found
    for (const ref of lists) {
      const kept = indexOf(yield* objects.answers(ref)).get(id)
      if (kept !== undefined) return kept
    }
    return undefined
  })

/** Divides answers into lists that a node can hold. */
const divide = (answers: ReadonlyArray<Answer>): ReadonlyArray<ReadonlyArray<Answer>> => {
  const out: Array<Array<Answer>> = []
  let size = Infinity
  for (const answer of answers) {
    size += sizeOf(answer)
    if (size > maxListBytes) {
      out.push([])
      size = sizeOf(answer)
    }
    out.at(-1)!.push(answer)
  }
  return out
}

/**
 * Stores answers, the newest first, before the kept answers. Forgets the oldest answers beyond the limits of size, count and
 * age.
 */
export const add = (
  objects: Objects,
  kept: KeptAnswers,
  fresh: ReadonlyArray<Answer>,
  now: number
): Effect.Effect<KeptAnswers, StoreError> =>
  Effect.gen(function* () {
    const answers = [...fresh]
    let size = fresh.reduce((sum, answer) => sum + sizeOf(answer), 0)
    let merged = 0
    for (const list of kept.lists) {
      if (list.size > 2 * size || list.size + size > maxListBytes) break
      answers.push(...(yield* objects.answers(list)).answers)
      size += list.size
      merged++
    }
    const newer: Array<AnswersRef> = []
    for (const part of divide(answers)) {
      newer.push({ ...(yield* objects.putNode({ kind: "answers", answers: part })), at: Math.max(...part.map(({ at }) => at)) })
    }
    const lists = [...newer, ...kept.lists.slice(merged)]
    let { forgottenUntil } = kept
    let total = lists.reduce((sum, list) => sum + list.size, 0)
    for (let last = lists.at(-1)!; lists.length > 1; last = lists.at(-1)!) {
      if (total <= maxBytes && lists.length <= maxAnswerLists && last.at >= now - maxAge) break
      lists.pop()
      total -= last.size
      forgottenUntil = Math.max(forgottenUntil, Math.min(last.at, now + maxAhead))
    }
    return { forgottenUntil, lists }
  })
