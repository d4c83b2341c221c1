/** The engines whose command line is known, told by the names of their programs. */

/** An engine by the command line that it understands. */
export type Dialect = "podman" | "docker" | "nerdctl"

/** A program may carry its version or a variant in its name: podman-remote, docker-28.2. */
const known = /^(podman|docker|nerdctl)(?:[-._0-9][-._0-9A-Za-z]*)?$/

/** Returns whether an engine is given by the path of its program, and not by a name that the PATH has. */
export const isPath = (engine: string): boolean => /[/\\]/.test(engine)

/** Returns the engine of a name or path, by the name of its file; `undefined` where it is none. */
export const dialectOf = (engine: string): Dialect | undefined =>
  known.exec(engine.slice(engine.search(/[^/\\]*$/)).replace(/\.exe$/i, ""))?.[1] as Dialect | undefined

/** The reason for which a value is no engine. */
export const noEngine = "it must be podman, docker or nerdctl, or the absolute path of a program with such a name"
