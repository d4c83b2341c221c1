import { endOf, type Message } from "./messages.ts"

export interface Recent {
  /** The position before the first cached one. `end` is the last cached position. */
  readonly positionBefore: () => number
  readonly end: () => number
  readonly add: (message: Message) => void
  /** Returns at most `limit` messages from the one that holds the position. The position must be after `before()`. */
  readonly messagesFrom: (position: number, limit: number) => ReadonlyArray<Message>
}

const maxCachedBytes = 8 * 1024 * 1024
const messageOverheadBytes = 300

export const make = (start: number): Recent => {
  let messages: Array<Message> = []
  let firstIndex = 0
  let positionBefore = start
  let end = start
  let bytes = 0

  const evictOldest = (): void => {
    while (bytes > maxCachedBytes && firstIndex < messages.length - 1) {
      const dropped = messages[firstIndex++]!
      bytes -= dropped.data.length + messageOverheadBytes
      positionBefore = endOf(dropped)
    }
    if (firstIndex > 1024 && firstIndex > messages.length / 2) {
      messages = messages.slice(firstIndex)
      firstIndex = 0
    }
  }

  const indexOf = (position: number): number => {
    let low = firstIndex
    let high = messages.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (endOf(messages[middle]!) < position) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    positionBefore: () => positionBefore,
    end: () => end,
    add: (message) => {
      messages.push(message)
      bytes += message.data.length + messageOverheadBytes
      end = endOf(message)
      evictOldest()
    },
    messagesFrom: (position, limit) => {
      const index = indexOf(position)
      return messages.slice(index, index + limit)
    }
  }
}
