/**
 * What a model is told and given: sections in an order, rendered as Markdown, with all their tools. Which filesystem there is, is known
 * before anything is rendered.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type * as Session from "../workspace/Session.ts"
import type { AnyDefinition } from "./definition.ts"
import type { Params, Section, SectionError } from "./Section.ts"
import { overridden, overridesError, type Problem, templateError } from "./sections/check.ts"
import * as Tree from "./sections/tree.ts"

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

/**
 * What a prompt is made of, the same for every run.
 *
 * @since 0.1.0
 */
export interface Template {
  /** As in `agents/coder`. */
  readonly ns: string
  readonly key: string
  readonly name?: string | undefined
  readonly sections: ReadonlyArray<Section>
}

/**
 * A template with what is decided for one run.
 *
 * @since 0.1.0
 */
export interface Prompt extends Template {
  /** Descriptions of tools, by their names, in sections that accept such. */
  readonly overrides: Readonly<Record<string, string>>
  /** Until when tools may be called. */
  readonly deadline: Option.Option<DateTime.Utc>
}

/**
 * A tool of a rendered prompt, and the section that brings it.
 *
 * @since 0.1.0
 */
export interface RenderedTool {
  /** With the description that is in force. */
  readonly definition: AnyDefinition
  readonly section: Section
}

/**
 * A prompt as a model is given it: its text and its tools.
 *
 * @since 0.1.0
 */
export interface RenderedPrompt {
  readonly prompt: Prompt
  /** Markdown. */
  readonly text: string
  /** Of all sections, in their order. */
  readonly tools: ReadonlyArray<RenderedTool>
  readonly deadline: Option.Option<DateTime.Utc>
}

/**
 * A template, and what is decided for one run.
 *
 * @since 0.1.0
 */
export interface Options extends Template {
  /** Descriptions of tools, by their names; their sections must accept such. @default none */
  readonly overrides?: Readonly<Record<string, string>> | undefined
  /** Until when tools may be called. @default no bound */
  readonly deadline?: DateTime.DateTime | Option.Option<DateTime.DateTime> | undefined
}

const templateOf = ({ key, name, ns, sections }: Template): Template =>
  Object.freeze({ ns, key, name, sections: Object.freeze([...sections]) })

const orPromptError = (problem: Problem | undefined): Effect.Effect<void, PromptError> =>
  problem === undefined ? Effect.void : Effect.fail(new PromptError(problem))

/**
 * What prompts are made of again and again: `Prompt.make({ ...template, deadline })`. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const template = (options: Template): Effect.Effect<Template, PromptError> =>
  Effect.suspend(() => {
    const made = templateOf(options)
    return Effect.as(orPromptError(templateError(made)), made)
  })

const deadlineOf = (deadline: Options["deadline"]): Option.Option<DateTime.Utc> =>
  Option.map(Option.isOption(deadline) ? deadline : Option.fromUndefinedOr(deadline), DateTime.toUtc)

/**
 * Frozen. Fails with PromptError for keys, names and titles that cannot be such, for two sections of one key and two tools of one name.
 *
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<Prompt, PromptError> =>
  Effect.flatMap(template(options), (made) => {
    const overrides = Object.freeze({ ...options.overrides })
    const prompt = Object.freeze({ ...made, overrides, deadline: deadlineOf(options.deadline) })
    return Effect.as(orPromptError(overridesError(made.sections, overrides)), prompt)
  })

/** Markdown has no smaller headings. */
const deepest = 6

const textOf = Effect.fnUntraced(function* ({ depth, section }: Tree.Placed, params: Params) {
  const { template, title } = section
  const heading = `${"#".repeat(Math.min(depth + 2, deepest))} ${title.trim()}`
  const body = typeof template === "string" ? template : yield* Effect.suspend(() => template.call(section, params))
  return body.trim() === "" ? heading : `${heading}\n\n${body}`
})

/**
 * Each section is a heading, `##` for those of the prompt, one more for each level below, and its text, which is put in as it is. What
 * a section has to say may need its filesystem, which is then made. Fails with PromptError where sections have become others since the
 * prompt was made, and cannot be rendered as these.
 *
 * @since 0.1.0
 */
export const render = (prompt: Prompt, params: Params = {}): Effect.Effect<RenderedPrompt, PromptError | SectionError> =>
  Effect.gen(function* () {
    yield* orPromptError(templateError(prompt) ?? overridesError(prompt.sections, prompt.overrides))
    const placed = Tree.all(prompt.sections)
    const texts = yield* Effect.forEach(placed, (one) => textOf(one, params))
    const tools = placed.flatMap(({ section }) =>
      section.tools.map((tool): RenderedTool => ({ definition: overridden(tool, prompt.overrides) ?? tool, section }))
    )
    return Object.freeze({ prompt, text: texts.join("\n\n"), tools: Object.freeze(tools), deadline: prompt.deadline })
  })

const firstOf = (prompt: Template, matches: (section: Section) => boolean): Option.Option<Section> =>
  Option.fromUndefinedOr(Tree.all(prompt.sections).find(({ section }) => matches(section))?.section)

/**
 * The first section that has a filesystem, each before its children.
 *
 * @since 0.1.0
 */
export const workspace = (prompt: Template): Option.Option<Section> =>
  firstOf(prompt, ({ filesystem }) => filesystem !== undefined)

/**
 * Its filesystem: the very one that the section itself answers.
 *
 * @since 0.1.0
 */
export const filesystem = (prompt: Template): Effect.Effect<Option.Option<Algebra>, SectionError> =>
  Effect.suspend(() => {
    const made = Option.getOrUndefined(workspace(prompt))?.filesystem
    return made === undefined ? Effect.succeed(Option.none()) : Effect.map(made, Option.some)
  })

/**
 * The section whose tool it is.
 *
 * @since 0.1.0
 */
export const sectionOf = (prompt: Template, tool: string): Option.Option<Section> =>
  firstOf(prompt, ({ tools }) => tools.some(({ name }) => name === tool))

/**
 * The same prompt for another session: of sections that can be cloned the clones, which go with the scope. Where one cannot be made,
 * none is.
 *
 * @since 0.1.0
 */
export const clone = (
  prompt: Prompt,
  session: Session.Operations
): Effect.Effect<Prompt, SectionError | PromptError, Scope.Scope> =>
  Tree.allOrNothing(Effect.flatMap(Tree.clonedEach(prompt.sections, session), (sections) => make({ ...prompt, sections })))
