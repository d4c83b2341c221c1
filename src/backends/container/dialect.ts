export type Dialect = "podman" | "docker" | "nerdctl"

/** The names of engine programs, with an optional variant or version, such as podman-remote or docker-28.2. */
const known = /^(podman|docker|nerdctl)(?:[-._0-9][-._0-9A-Za-z]*)?$/

export const isPath = (engine: string): boolean => /[/\\]/.test(engine)

export const dialectOf = (engine: string): Dialect | undefined =>
  known.exec(engine.slice(engine.search(/[^/\\]*$/)).replace(/\.exe$/i, ""))?.[1] as Dialect | undefined

export const noEngine = "it must be podman, docker or nerdctl, or the absolute path of a program with one of these names"
