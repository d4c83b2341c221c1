/**
 * What a model is told and given: sections in an order, rendered as Markdown, with all their tools. Which filesystem there is, is known
 * before anything is rendered.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AnyDefinition } from "./definition.ts"
import type { Section } from "./Section.ts"

/**
 * `duplicateTool`: two tools have one name. `duplicateKey`: two sections of one parent have one key. `invalid`: a key, namespace or title
 * that cannot be one, or a description for what is no tool of a section that takes one.
 *
 * @since 0.1.0
 */
export class PromptError extends Schema.TaggedError<PromptError>("fs-algebra/PromptError")("PromptError", {
  reason: Schema.Literals(["duplicateTool", "duplicateKey", "invalid"]),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** @since 0.1.0 */
export interface Template {
  /** As in `agents/coder`. */
  readonly ns: string
  readonly key: string
  readonly name?: string | undefined
  readonly sections: ReadonlyArray<Section>
}

/** @since 0.1.0 */
export interface Prompt extends Template {
  /** Descriptions of tools, by their names, in sections that accept such. */
  readonly overrides: Readonly<Record<string, string>>
  /** Until when tools may be called. */
  readonly deadline: Option.Option<DateTime.Utc>
}

/** @since 0.1.0 */
export interface RenderedTool {
  /** With the description that is in force. */
  readonly definition: AnyDefinition
  readonly section: Section
}

/** @since 0.1.0 */
export interface RenderedPrompt {
  readonly prompt: Prompt
  /** Markdown. */
  readonly text: string
  /** Of all sections, in their order. */
  readonly tools: ReadonlyArray<RenderedTool>
  readonly deadline: Option.Option<DateTime.Utc>
}
