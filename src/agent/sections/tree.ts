import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Session from "../../workspace/Session.ts"
import type { PromptError, Section, SectionError, Template } from "../model.ts"
import { type AnyDefinition, define, isName, nameRule } from "../definition.ts"

export interface SectionAtDepth<R> {
  readonly section: Section<R>
  readonly depth: number
}

export const flatten = <R>(sections: ReadonlyArray<Section<R>>, depth = 0): ReadonlyArray<SectionAtDepth<R>> =>
  sections.flatMap((section) => [{ section, depth }, ...flatten(section.children, depth + 1)])

/**
 * Returns a copy of the section with the given children. Copies only the known fields, because any object may be a section.
 */
const withChildren = <R>(section: Section<R>, children: ReadonlyArray<Section<R>>): Section<R> => {
  const { template } = section
  return {
    key: section.key,
    title: section.title,
    template: typeof template === "string" ? template : (params) => template.call(section, params),
    tools: section.tools,
    children,
    acceptsOverrides: section.acceptsOverrides,
    session: section.session,
    toolsElsewhere: section.toolsElsewhere,
    filesystem: section.filesystem,
    snapshots: section.snapshots,
    services: section.services
  }
}

const cloneSection = <R>(
  section: Section<R>,
  session: Session.Operations
): Effect.Effect<Section<R>, SectionError, Scope.Scope> =>
  section.clone === undefined
    ? Effect.map(cloneSections(section.children, session), (children) =>
        children.every((child, index) => child === section.children[index]) ? section : withChildren(section, children)
      )
    : section.clone(session)

export const cloneSections = <R>(
  sections: ReadonlyArray<Section<R>>,
  session: Session.Operations
): Effect.Effect<ReadonlyArray<Section<R>>, SectionError, Scope.Scope> =>
  Effect.forEach(sections, (section) => cloneSection(section, session))

/** Runs an effect whose resources are released with the scope, or immediately if the effect fails. */
export const releaseOnFailure = <A, E, R>(make: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const resourceScope = yield* Scope.fork(yield* Effect.scope)
      return yield* restore(Scope.provide(make, resourceScope)).pipe(
        Effect.onError((cause) => Scope.close(resourceScope, Exit.failCause(cause)))
      )
    })
  )

export type Problem = Pick<PromptError, "reason" | "detail">

const keyPattern = /^[a-z][a-z0-9_.-]{0,63}$/

const maxTitleLength = 200

/** The pattern of a title: one line without control characters. */
const titlePattern = /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u

const isKey = (key: unknown): boolean => typeof key === "string" && keyPattern.test(key)

const isNamespace = (ns: unknown): boolean => typeof ns === "string" && ns.length <= 256 && ns.split("/").every(isKey)

const isTitle = (title: unknown): title is string =>
  typeof title === "string" &&
  title.trim() !== "" &&
  title.length <= maxTitleLength &&
  title.isWellFormed() &&
  titlePattern.test(title)

const shown = (value: unknown): string => (typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : typeof value)

const invalid = (detail: string): Problem => ({ reason: "invalid", detail })

const keyRule = 'a key has 1 to 64 lower-case letters, digits, "_", "-" and ".", and begins with a letter'
const titleRule = `a title is one line of at most ${maxTitleLength} characters, not blank and without control characters`

const siblingsError = (
  sections: ReadonlyArray<Section<unknown>>,
  ancestors: ReadonlyArray<Section<unknown>>
): Problem | undefined => {
  const keys = new Set<string>()
  for (const section of sections) {
    if (ancestors.includes(section)) return invalid(`the section ${shown(section.key)} contains itself`)
    if (!isTitle(section.title)) return invalid(`${shown(section.title)} cannot be the title of a section: ${titleRule}`)
    if (!isKey(section.key)) {
      return invalid(
        `${shown(section.key)} cannot be the key of the section with the title ${shown(section.title)}: ${keyRule}`
      )
    }
    if (keys.has(section.key)) {
      return { reason: "duplicateKey", detail: `two sibling sections have the key "${section.key}"` }
    }
    keys.add(section.key)
    const childProblem = siblingsError(section.children, [...ancestors, section])
    if (childProblem !== undefined) return childProblem
  }
  return undefined
}

const toolsError = (sections: ReadonlyArray<Section<unknown>>): Problem | undefined => {
  const owners = new Map<string, string>()
  for (const { section } of flatten(sections)) {
    for (const { name } of section.tools) {
      if (!isName(name)) {
        return invalid(`${shown(name)} cannot be the name of a tool, in the section "${section.key}": ${nameRule}`)
      }
      const other = owners.get(name)
      if (other !== undefined) {
        const where = other === section.key ? `in the section "${other}"` : `in the sections "${other}" and "${section.key}"`
        return { reason: "duplicateTool", detail: `there are two tools called "${name}", ${where}` }
      }
      owners.set(name, section.key)
    }
  }
  return undefined
}

export const templateError = ({ key, name, ns, sections }: Template<unknown>): Problem | undefined => {
  if (!isNamespace(ns))
    return invalid(
      `${shown(ns)} cannot be a namespace, which consists of keys with "/" between them, in at most 256 characters; ${keyRule}`
    )
  if (!isKey(key)) return invalid(`${shown(key)} cannot be the key of a prompt: ${keyRule}`)
  if (name !== undefined && !isTitle(name)) return invalid(`${shown(name)} cannot be the name of a prompt: ${titleRule}`)
  return siblingsError(sections, []) ?? toolsError(sections)
}

export type Overrides = Readonly<Record<string, string>>

const withDescription = <R>(tool: AnyDefinition<R>, description: string): AnyDefinition<R> | undefined => {
  if (typeof description !== "string") return undefined
  try {
    return define({ ...tool, description })
  } catch {
    return undefined
  }
}

export const withOverride = <R>(tool: AnyDefinition<R>, overrides: Overrides): AnyDefinition<R> | undefined =>
  Object.hasOwn(overrides, tool.name) ? withDescription(tool, overrides[tool.name]!) : tool

export const overrideFault = (
  { acceptsOverrides, tools }: Pick<Section<unknown>, "acceptsOverrides" | "tools">,
  name: string,
  overrides: Overrides
): string | undefined => {
  const tool = tools.find((tool) => tool.name === name)
  if (tool === undefined) return `there is no tool ${shown(name)}`
  if (!acceptsOverrides) return `the section of "${name}" does not accept overrides of its tools' descriptions`
  return withOverride(tool, overrides) === undefined
    ? `the description of "${name}" must be text of 1 to 200 printable characters`
    : undefined
}

export const overridesError = (sections: ReadonlyArray<Section<unknown>>, overrides: Overrides): Problem | undefined => {
  const placed = flatten(sections)
  for (const name of Object.keys(overrides)) {
    const owner = placed.find(({ section }) => section.tools.some((tool) => tool.name === name))
    const why = overrideFault(owner?.section ?? { acceptsOverrides: false, tools: [] }, name, overrides)
    if (why !== undefined) return invalid(why)
  }
  return undefined
}

/**
 * Returns the sections whose filesystem no tool can reach, except those with `toolsElsewhere`. A tool works on the filesystem of
 * its own section. If the tool's section has no filesystem, the tool works on the first filesystem of the prompt.
 */
export const sectionsWithoutTools = <R>(sections: ReadonlyArray<Section<R>>): ReadonlyArray<Section<R>> => {
  const all = flatten(sections).map(({ section }) => section)
  const workspace = all.find(({ filesystem }) => filesystem !== undefined)
  const hasShared = all.some(({ filesystem, tools }) => filesystem === undefined && tools.length > 0)
  return all.filter(
    (section) =>
      section.filesystem !== undefined &&
      section.toolsElsewhere !== true &&
      section.tools.length === 0 &&
      !(section === workspace && hasShared)
  )
}
