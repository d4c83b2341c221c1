import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { JournalError } from "../errors.ts"
import { freezeEntry } from "./holding.ts"
import type { Decode } from "./pages.ts"

export interface Codec<E> {
  readonly encode: (entry: E) => string | JournalError
  readonly decode: Decode<E>
}

export const make = <E, I>(schema: Schema.Codec<E, I>): Codec<E> => {
  const json = Schema.toCodecJson(schema)
  const encode = Schema.encodeExit(json)
  const decode = Schema.decodeUnknownExit(json)
  return {
    encode: (entry) => {
      const encoded = encode(entry)
      return Exit.isSuccess(encoded)
        ? JSON.stringify(encoded.value)
        : new JournalError({ operation: "Journal.append", reason: "invalid", detail: "the entry is not of the journal's kind" })
    },
    decode: (jsonValue, position) => {
      const decoded = decode(jsonValue)
      return Exit.isSuccess(decoded)
        ? freezeEntry(decoded.value)
        : new JournalError({
            operation: "Journal.read",
            reason: "corrupt",
            position,
            detail: `entry ${position} is not of the journal's kind`
          })
    }
  }
}
