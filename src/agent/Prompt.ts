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
import type { Given, Params, Requirements, Section, SectionError } from "./Section.ts"
import { overridden, overridesError, type Problem, templateError } from "./sections/check.ts"
import * as Tree from "./sections/tree.ts"

/**
 * `duplicateTool`: two tools have one name. `duplicateKey`: two sections of one parent have one key. `invalid`: a key, namespace, title
 * or name of a tool that cannot be one, or a description for what is no tool of a section that takes one.
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
 * What a prompt is made of, the same for every run. `R` is the services that its tools need and that its sections do not provide.
 *
 * @since 0.1.0
 */
export interface Template<out R = never> {
  /** As in `agents/coder`. */
  readonly ns: string
  readonly key: string
  readonly name?: string | undefined
  readonly sections: ReadonlyArray<Section<R>>
}

/**
 * A template with what is decided for one run.
 *
 * @since 0.1.0
 */
export interface Prompt<out R = never> extends Template<R> {
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
export interface RenderedTool<out R = unknown> {
  /** With the description that is in force. */
  readonly definition: AnyDefinition<R | Given>
  readonly section: Section<R>
}

/**
 * A prompt as a model is given it: its text and its tools.
 *
 * @since 0.1.0
 */
export interface RenderedPrompt<out R = unknown> {
  readonly prompt: Prompt<R>
  /** Markdown. */
  readonly text: string
  /** Of all sections, in their order. */
  readonly tools: ReadonlyArray<RenderedTool<R>>
  readonly deadline: Option.Option<DateTime.Utc>
}

/**
 * A template, and what is decided for one run.
 *
 * @since 0.1.0
 */
export interface Options<out R = never> extends Template<R> {
  /** Descriptions of tools, by their names; their sections must accept such. @default none */
  readonly overrides?: Readonly<Record<string, string>> | undefined
  /** Until when tools may be called. @default no bound */
  readonly deadline?: DateTime.DateTime | Option.Option<DateTime.DateTime> | undefined
}

const templateOf = <R>({ key, name, ns, sections }: Template<R>): Template<R> =>
  Object.freeze({ ns, key, name, sections: Object.freeze([...sections]) })

const orPromptError = (problem: Problem | undefined): Effect.Effect<void, PromptError> =>
  problem === undefined ? Effect.void : Effect.fail(new PromptError(problem))

/**
 * What prompts are made of again and again: `Prompt.make({ ...template, deadline })`. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const template = <S extends Section<unknown>>(
  options: Omit<Template, "sections"> & { readonly sections: ReadonlyArray<S> }
): Effect.Effect<Template<Requirements<S>>, PromptError> =>
  Effect.suspend(() => {
    const made = templateOf(options) as Template<Requirements<S>>
    return Effect.as(orPromptError(templateError(made)), made)
  })

const deadlineOf = (deadline: Options["deadline"]): Option.Option<DateTime.Utc> =>
  Option.map(Option.isOption(deadline) ? deadline : Option.fromUndefinedOr(deadline), DateTime.toUtc)

/**
 * Frozen. Fails with PromptError for keys, names and titles that cannot be such, for two sections of one key and two tools of one name.
 *
 * @since 0.1.0
 */
export const make = <S extends Section<unknown>>(
  options: Omit<Options, "sections"> & { readonly sections: ReadonlyArray<S> }
): Effect.Effect<Prompt<Requirements<S>>, PromptError> =>
  Effect.flatMap(template(options), (made) => {
    const overrides = Object.freeze({ ...options.overrides })
    const prompt = Object.freeze({ ...made, overrides, deadline: deadlineOf(options.deadline) })
    return Effect.as(orPromptError(overridesError(made.sections, overrides)), prompt)
  })

/** Markdown has no smaller headings. */
const deepest = 6

const textOf = Effect.fnUntraced(function* ({ depth, section }: Tree.Placed<unknown>, params: Params) {
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
export const render = <R>(
  prompt: Prompt<R>,
  params: Params = {}
): Effect.Effect<RenderedPrompt<R>, PromptError | SectionError> =>
  Effect.gen(function* () {
    yield* orPromptError(templateError(prompt) ?? overridesError(prompt.sections, prompt.overrides))
    const placed = Tree.all(prompt.sections)
    const texts = yield* Effect.forEach(placed, (one) => textOf(one, params))
    const tools = placed.flatMap(({ section }) =>
      section.tools.map((tool): RenderedTool<R> => ({ definition: overridden(tool, prompt.overrides) ?? tool, section }))
    )
    return Object.freeze({ prompt, text: texts.join("\n\n"), tools: Object.freeze(tools), deadline: prompt.deadline })
  })

const firstOf = <R>(prompt: Template<R>, matches: (section: Section<R>) => boolean): Option.Option<Section<R>> =>
  Option.fromUndefinedOr(Tree.all(prompt.sections).find(({ section }) => matches(section))?.section)

/**
 * The first section that has a filesystem, each before its children.
 *
 * @since 0.1.0
 */
export const workspace = <R>(prompt: Template<R>): Option.Option<Section<R>> =>
  firstOf(prompt, ({ filesystem }) => filesystem !== undefined)

/**
 * Its filesystem: the very one that the section itself answers.
 *
 * @since 0.1.0
 */
export const filesystem = (prompt: Template<unknown>): Effect.Effect<Option.Option<Algebra>, SectionError> =>
  Effect.suspend(() => {
    const made = Option.getOrUndefined(workspace(prompt))?.filesystem
    return made === undefined ? Effect.succeed(Option.none()) : Effect.map(made, Option.some)
  })

/**
 * The section whose tool it is.
 *
 * @since 0.1.0
 */
export const sectionOf = <R>(prompt: Template<R>, tool: string): Option.Option<Section<R>> =>
  firstOf(prompt, ({ tools }) => tools.some(({ name }) => name === tool))

/**
 * The same prompt for another session: of sections that can be cloned the clones, which go with the scope. Where one cannot be made,
 * none is.
 *
 * @since 0.1.0
 */
export const clone = <R>(
  prompt: Prompt<R>,
  session: Session.Operations
): Effect.Effect<Prompt<R>, SectionError | PromptError, Scope.Scope> =>
  Tree.allOrNothing(Effect.flatMap(Tree.clonedEach(prompt.sections, session), (sections) => make({ ...prompt, sections })))
