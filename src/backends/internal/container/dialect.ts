/** The command line that an engine understands. */
export type Dialect = "podman" | "docker" | "nerdctl"

/** A program may carry its version or a variant in its name: podman-remote, docker-28.2. */
const known = /^(podman|docker|nerdctl)(?:[-._0-9][-._0-9A-Za-z]*)?$/

/** Tests whether an engine is given as the path of its program. Otherwise it is a name to find in the PATH. */
export const isPath = (engine: string): boolean => /[/\\]/.test(engine)

/** Returns the command line of an engine by the file name of its program; `undefined` if the name is unknown. */
export const dialectOf = (engine: string): Dialect | undefined =>
  known.exec(engine.slice(engine.search(/[^/\\]*$/)).replace(/\.exe$/i, ""))?.[1] as Dialect | undefined

/** The message for a value that names no known engine. */
export const noEngine = "it must be podman, docker or nerdctl, or the absolute path of a program with such a name"
