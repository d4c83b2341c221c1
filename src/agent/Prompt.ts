/**
 * The text and the tools for a model: ordered sections, rendered as Markdown, with all their tools. The filesystem of a prompt
 * is available before the prompt is rendered.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type * as Session from "../workspace/Session.ts"
import {
  type Params,
  type Prompt,
  PromptError,
  type RenderedPrompt,
  type RenderedTool,
  type Requirements,
  type Section,
  type SectionError,
  type Template
} from "./model.ts"
import * as Tree from "./sections/tree.ts"
import { overridesError, type Problem, sectionsWithoutTools, templateError, withOverride } from "./sections/tree.ts"

export { type Prompt, PromptError, type RenderedPrompt, type RenderedTool, type Template } from "./model.ts"

/**
 * The options of a prompt: a template, its overrides and its deadline.
 *
 * @since 0.1.0
 */
export interface Options<out R = never> extends Template<R> {
  /** Replacement descriptions, by tool name. The section of each tool must accept overrides. @default none */
  readonly overrides?: Readonly<Record<string, string>> | undefined
  /** The time after which tools refuse calls. @default no bound */
  readonly deadline?: DateTime.DateTime | Option.Option<DateTime.DateTime> | undefined
}

const templateOf = <R>({ key, name, ns, sections }: Template<R>): Template<R> =>
  Object.freeze({ ns, key, name, sections: Object.freeze([...sections]) })

const failWithProblem = (problem: Problem | undefined): Effect.Effect<void, PromptError> =>
  problem === undefined ? Effect.void : Effect.fail(new PromptError(problem))

/**
 * Makes a template, the common part of several prompts: `Prompt.make({ ...template, deadline })`. Fails with PromptError if a
 * name, a section or a tool is invalid.
 *
 * @since 0.1.0
 */
export const template = <S extends Section<unknown>>(
  options: Omit<Template, "sections"> & { readonly sections: ReadonlyArray<S> }
): Effect.Effect<Template<Requirements<S>>, PromptError> =>
  Effect.suspend(() => {
    const made = templateOf(options) as Template<Requirements<S>>
    return Effect.as(failWithProblem(templateError(made)), made)
  })

const deadlineOf = (deadline: Options["deadline"]): Option.Option<DateTime.Utc> =>
  Option.map(Option.isOption(deadline) ? deadline : Option.fromUndefinedOr(deadline), DateTime.toUtc)

const makeFrozen = <S extends Section<unknown>>(
  options: Omit<Options, "sections"> & { readonly sections: ReadonlyArray<S> }
): Effect.Effect<Prompt<Requirements<S>>, PromptError> =>
  Effect.flatMap(template(options), (made) => {
    const overrides = Object.freeze({ ...options.overrides })
    const prompt = Object.freeze({ ...made, overrides, deadline: deadlineOf(options.deadline) })
    return Effect.as(failWithProblem(overridesError(made.sections, overrides)), prompt)
  })

const warnOfFilesWithoutTools = <R>({ key, sections }: Template<R>): Effect.Effect<void> =>
  Effect.forEach(
    sectionsWithoutTools(sections),
    (section) =>
      Effect.logWarning(
        `fs-algebra: no tool of the prompt "${key}" works on the files of the section "${section.key}"; give the section tools, such as Section.sevenTools, or set \`toolsElsewhere: true\` if tools outside the section work on its files`
      ),
    { discard: true }
    // Log to standard error, because a server may use standard output for its protocol.
  ).pipe(Effect.provideService(Logger.LogToStderr, true))

/**
 * Makes a frozen prompt. Fails with PromptError if a name, a section, a tool or an override is invalid; the reasons of
 * PromptError state the rules. Logs a warning for each section whose filesystem no tool uses.
 *
 * @example
 * ```ts
 * const task = Section.MarkdownSection({ title: "Task", template: "Shorten the guide." })
 * const prompt = yield* Prompt.make({ ns: "agents/writer", key: "shorten", sections: [task] })
 * const { text } = yield* Prompt.render(prompt)
 * text // => "## Task\n\nShorten the guide."
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make = <S extends Section<unknown>>(
  options: Omit<Options, "sections"> & { readonly sections: ReadonlyArray<S> }
): Effect.Effect<Prompt<Requirements<S>>, PromptError> => Effect.tap(makeFrozen(options), warnOfFilesWithoutTools)

const maxHeadingLevel = 6

const textOf = Effect.fnUntraced(function* ({ depth, section }: Tree.SectionAtDepth<unknown>, params: Params) {
  const { template, title } = section
  const heading = `${"#".repeat(Math.min(depth + 2, maxHeadingLevel))} ${title.trim()}`
  const body = typeof template === "string" ? template : yield* Effect.suspend(() => template.call(section, params))
  return body.trim() === "" ? heading : `${heading}\n\n${body}`
})

/**
 * Renders a prompt. Each section becomes a heading (`##` at the top, one more `#` per level below, at most six) followed by its
 * text, unchanged. Rendering opens the filesystem of a section if the section's text needs it. Fails with PromptError if a section was
 * changed after the prompt was made, and is no longer valid.
 *
 * @since 0.1.0
 */
export const render = <R>(
  prompt: Prompt<R>,
  params: Params = {}
): Effect.Effect<RenderedPrompt<R>, PromptError | SectionError> =>
  Effect.gen(function* () {
    yield* failWithProblem(templateError(prompt) ?? overridesError(prompt.sections, prompt.overrides))
    const placed = Tree.flatten(prompt.sections)
    const texts = yield* Effect.forEach(placed, (one) => textOf(one, params))
    const tools = placed.flatMap(({ section }) =>
      section.tools.map((tool): RenderedTool<R> => ({ definition: withOverride(tool, prompt.overrides) ?? tool, section }))
    )
    return Object.freeze({ prompt, text: texts.join("\n\n"), tools: Object.freeze(tools), deadline: prompt.deadline })
  })

const findSection = <R>(prompt: Template<R>, matches: (section: Section<R>) => boolean): Option.Option<Section<R>> =>
  Option.fromUndefinedOr(Tree.flatten(prompt.sections).find(({ section }) => matches(section))?.section)

/**
 * Returns the first section that has a filesystem. The search visits a section before its children.
 *
 * @since 0.1.0
 */
export const workspace = <R>(prompt: Template<R>): Option.Option<Section<R>> =>
  findSection(prompt, ({ filesystem }) => filesystem !== undefined)

/**
 * Returns the filesystem of the first section that has a filesystem, always the same instance. Returns none if no section
 * has a filesystem.
 *
 * @since 0.1.0
 */
export const filesystem = (prompt: Template<unknown>): Effect.Effect<Option.Option<Algebra>, SectionError> =>
  Effect.suspend(() => {
    const made = Option.getOrUndefined(workspace(prompt))?.filesystem
    return made === undefined ? Effect.succeed(Option.none()) : Effect.map(made, Option.some)
  })

/**
 * Returns the section that contains the tool with the given name.
 *
 * @since 0.1.0
 */
export const sectionOf = <R>(prompt: Template<R>, tool: string): Option.Option<Section<R>> =>
  findSection(prompt, ({ tools }) => tools.some(({ name }) => name === tool))

/**
 * Clones the prompt for another session. Each section with a `clone` function is cloned; the scope closes the clones. If one
 * section cannot be cloned, no clone remains.
 *
 * @since 0.1.0
 */
export const clone = <R>(
  prompt: Prompt<R>,
  session: Session.Operations
): Effect.Effect<Prompt<R>, SectionError | PromptError, Scope.Scope> =>
  Tree.releaseOnFailure(
    Effect.flatMap(Tree.cloneSections(prompt.sections, session), (sections) => makeFrozen({ ...prompt, sections }))
  )
