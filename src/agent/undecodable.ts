/** What is wrong with arguments, in words that tell how to send them again. */
import type * as Schema from "effect/Schema"
import type { AnyDefinition } from "./definition.ts"

export const undecodable = ({ examples, name }: AnyDefinition, _input: unknown, error: Schema.SchemaError): string =>
  `${name} was called with arguments that it does not take: ${error.message}. An example: ${JSON.stringify(examples[0])}`
