import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Store } from "../Journal.ts"
import { JournalError } from "../errors.ts"
import * as Connection from "./connection.ts"
import * as Contents from "./contents.ts"
import * as Following from "./following.ts"
import * as Log from "./log.ts"
import * as Messages from "./messages.ts"
import { checkOptions, type Options } from "./options.ts"
import { loadPackages } from "./packages.ts"
import * as Reading from "./reading.ts"
import * as Writing from "./writing.ts"

const invalid = (detail: string): JournalError => new JournalError({ operation: "JetStream.append", reason: "invalid", detail })

export const make = <E, Encoded>(
  schema: Schema.Codec<E, Encoded>,
  options: Options
): Effect.Effect<Store<E>, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* checkOptions(options)
    const connection = yield* Connection.make(yield* loadPackages, options)
    const log = yield* Log.open(connection, options)
    const contents = yield* Contents.open(connection, options)
    const codec = Messages.codec(schema)
    const following = yield* Following.make(connection, log, yield* log.end)
    const write = yield* Writing.make(connection, log, contents)
    const { read, readBackward } = Reading.make(log, following, contents, codec)
    return {
      append: (entries, at) =>
        Effect.flatMap(
          Effect.try({ try: () => entries.map((entry) => codec.encode(entry, at)), catch: (cause) => invalid(String(cause)) }),
          write
        ),
      read,
      readBackward,
      last: log.end,
      changed: following.changed,
      contents
    }
  })
