/** The five kinds of workspace for an agent, each with its kit of tools. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Section from "../../src/agent/Section.ts"
import type { HostMount } from "../../src/workspace/HostMount.ts"
import type * as Session from "../../src/workspace/Session.ts"
import { busyboxRoot } from "../backends/container/podman.ts"

export interface Asked {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
}

type Value = Readonly<Record<string, unknown>>

/** A kit of tools. Each kit performs the same actions with its own tools. */
export interface Kit {
  readonly list: (path: string) => Asked
  /** Returns the names in the value of a listing. */
  readonly names: (value: Value) => ReadonlyArray<string>
  readonly read: (path: string) => Asked
  /** Returns the text without the line break at its end. */
  readonly text: (value: Value) => string
  readonly version: (value: Value) => string
  readonly create: (path: string, content: string) => Asked
  readonly append: (path: string, content: string) => Asked
  /** Changes one line of a file that was read. */
  readonly change: (
    file: { readonly path: string; readonly text: string; readonly version: string },
    from: string,
    to: string
  ) => Asked
  readonly remove: (path: string) => Asked
}

const seven: Kit = {
  list: (path) => ({ tool: "ls", input: { path } }),
  names: ({ entries }) => (entries as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name),
  read: (path) => ({ tool: "read_file", input: { path } }),
  text: ({ content }) => content as string,
  version: ({ version }) => version as string,
  create: (path, content) => ({ tool: "write_file", input: { path, content } }),
  append: (path, content) => ({ tool: "write_file", input: { path, content, mode: "append" } }),
  change: ({ path, version }, from, to) => ({
    tool: "edit_file",
    input: { path, old_string: from, new_string: to, if_match: version }
  }),
  remove: (path) => ({ tool: "rm", input: { path } })
}

const four: Kit = {
  list: (path) => ({ tool: "list_directory", input: { path } }),
  names: ({ directories, files }) => [...(directories as ReadonlyArray<string>), ...(files as ReadonlyArray<string>)].sort(),
  read: (path) => ({ tool: "read_file", input: { path } }),
  text: ({ content }) => (content as string).replace(/\n$/, ""),
  version: ({ file }) => (file as { readonly version: string }).version,
  create: (path, content) => ({ tool: "write_file", input: { path, content } }),
  append: (path, content) => ({ tool: "write_file", input: { path, content, mode: "append" } }),
  change: ({ path, text, version }, from, to) => ({
    tool: "write_file",
    input: { path, content: `${text.replace(from, to)}\n`, mode: "overwrite", if_version: version }
  }),
  remove: (path) => ({ tool: "delete_file", input: { path } })
}

export interface Configured {
  readonly session?: Session.Operations | undefined
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  readonly allowedRoots?: ReadonlyArray<string> | undefined
}

export interface Kind {
  readonly name: string
  readonly kit: Kit
  /** True if the files belong to the session, so that a rollback of the session restores them. */
  readonly isInSession: boolean
  readonly open: (
    configured: Configured
  ) => Effect.Effect<Section.Workspace, Section.SectionError, Scope.Scope | ChildProcessSpawner>
}

const container = (configured: Configured) => ({ ...configured, image: { rootfs: busyboxRoot() }, evalLanguage: "sh" as const })

export const here: ReadonlyArray<Kind> = [
  { name: "memory", kit: seven, isInSession: true, open: Section.VfsSection },
  { name: "disk", kit: four, isInSession: true, open: Section.VfsToolsSection },
  { name: "host", kit: seven, isInSession: false, open: Section.WorkspaceSection }
]

export const inContainers: ReadonlyArray<Kind> = [
  { name: "podman, apart", kit: seven, isInSession: false, open: (given) => Section.PodmanSection(container(given)) },
  { name: "podman, shared", kit: seven, isInSession: false, open: (given) => Section.PodmanSandboxSection(container(given)) }
]
