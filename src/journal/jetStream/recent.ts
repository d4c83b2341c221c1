import { endOf, type Message } from "./messages.ts"

export interface Recent {
  /** The position before the first cached one. `end` is the last cached position. */
  readonly before: () => number
  readonly end: () => number
  readonly add: (message: Message) => void
  /** Returns at most `limit` messages from the one that holds the position. The position must be after `before()`. */
  readonly from: (position: number, limit: number) => ReadonlyArray<Message>
}

const most = 8 * 1024 * 1024
const cost = 300

export const make = (start: number): Recent => {
  let messages: Array<Message> = []
  let head = 0
  let before = start
  let end = start
  let bytes = 0

  const drop = (): void => {
    while (bytes > most && head < messages.length - 1) {
      const dropped = messages[head++]!
      bytes -= dropped.data.length + cost
      before = endOf(dropped)
    }
    if (head > 1024 && head > messages.length / 2) {
      messages = messages.slice(head)
      head = 0
    }
  }

  const indexOf = (position: number): number => {
    let low = head
    let high = messages.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (endOf(messages[middle]!) < position) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    before: () => before,
    end: () => end,
    add: (message) => {
      messages.push(message)
      bytes += message.data.length + cost
      end = endOf(message)
      drop()
    },
    from: (position, limit) => {
      const index = indexOf(position)
      return messages.slice(index, index + limit)
    }
  }
}
