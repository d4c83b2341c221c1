/**
 * Parses the common forms of `fs-algebra mcp …` without effect/cli, which takes time to load while the client waits. The parser of
 * effect/cli handles all other forms, such as `--help`, `--backend container`, `--mount` and errors.
 */
import { parseArgs, type ParseArgsOptionsConfig } from "node:util"
import type { Settings } from "./settings.ts"
import { toRoot } from "./workspaceRoot.ts"

type SharedSettings = Settings["Service"]

export interface Address {
  readonly host: "127.0.0.1" | "::1"
  readonly port: number
}

export interface McpServeInput {
  readonly tools: string
  readonly readOnly: boolean
  readonly deletes: boolean
  readonly limits: "agent" | "standard" | "unlimited"
  readonly mountPoint: string | undefined
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
  readonly readBeforeWrite: boolean
  readonly structured: boolean
  /**
   * True to offer snapshots, and to fail if snapshots are impossible. `undefined` offers snapshots if they are possible and the
   * chosen tools include them.
   */
  readonly snapshots: boolean | undefined
  readonly anyRoot: boolean
  readonly http: Address | undefined
}

export interface McpArguments {
  /** The roots as typed. An empty list means the roots that the client lists, or the working directory if it has no list. */
  readonly roots: ReadonlyArray<string>
  readonly backend: SharedSettings["backend"]
  readonly hardlinks?: SharedSettings["hardlinks"]
  readonly journal?: SharedSettings["journal"]
  readonly tokenFile?: SharedSettings["tokenFile"]
  readonly container?: SharedSettings["container"] | undefined
  readonly mounts?: SharedSettings["mounts"] | undefined
  readonly json?: boolean | undefined
  readonly refusal?: SharedSettings["refusal"]
  readonly input: McpServeInput
}

const text = { type: "string" } as const
const texts = { type: "string", multiple: true } as const
const toggle = { type: "boolean" } as const

const options = {
  root: text,
  backend: text,
  hardlinks: text,
  journal: text,
  "token-file": text,
  store: text,
  workspace: text,
  tools: text,
  limits: text,
  "mount-point": text,
  http: text,
  host: text,
  allow: texts,
  deny: texts,
  "read-only": toggle,
  "read-before-write": toggle,
  structured: toggle,
  "no-delete": toggle,
  "any-root": toggle,
  snapshots: toggle,
  "no-snapshots": toggle
} satisfies ParseArgsOptionsConfig

const oneOf = <const A extends string>(value: string | undefined, allowed: readonly [A, ...ReadonlyArray<A>]): A | undefined =>
  value === undefined ? allowed[0] : allowed.find((each) => each === value)

const areGivenOnce = (names: ReadonlyArray<string>): boolean =>
  names.every((name, index) => name === "allow" || name === "deny" || names.indexOf(name) === index)

const portOf = (http: string | undefined): number | undefined =>
  http !== undefined && /^(?:0|[1-9]\d{0,4})$/.test(http) && Number(http) <= 65_535 ? Number(http) : undefined

const parseOptions = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true, tokens: true })
  } catch {
    return undefined
  }
}

export const parseMcpArguments = ([command, ...args]: ReadonlyArray<string>): McpArguments | undefined => {
  const parsed = command === "mcp" ? parseOptions(args) : undefined
  if (parsed === undefined) return undefined
  const { positionals, tokens, values } = parsed
  const names = tokens.flatMap((token) => (token.kind === "option" ? [token.name] : []))
  if (tokens.some(({ kind }) => kind === "option-terminator") || !areGivenOnce(names)) return undefined
  const { root, store, workspace } = values
  // Return `undefined` for any other combination, so that the parser of effect/cli reports the usage error.
  if (store === undefined ? workspace !== undefined : workspace === undefined || root !== undefined || store.trim() === "")
    return undefined
  const given = store !== undefined && workspace !== undefined ? toRoot({ store, workspace }) : root
  const roots = [...(given === undefined ? [] : [given]), ...positionals]
  if (values.snapshots === true && values["no-snapshots"] === true) return undefined
  const backend = oneOf(values.backend, ["host", "memory"])
  const hardlinks = oneOf(values.hardlinks, ["allow", "reject"])
  const limits = oneOf(values.limits, ["agent", "standard", "unlimited"])
  const host = oneOf(values.host, ["127.0.0.1", "::1"])
  const port = portOf(values.http)
  if (
    roots.some((root) => root.trim() === "") ||
    values.journal?.trim() === "" ||
    values["token-file"]?.trim() === "" ||
    backend === undefined ||
    hardlinks === undefined ||
    limits === undefined ||
    host === undefined
  )
    return undefined
  if (values.http === undefined ? values.host !== undefined : port === undefined) return undefined
  return {
    roots,
    backend,
    ...(values.hardlinks !== undefined && { hardlinks }),
    ...(values.journal !== undefined && { journal: values.journal }),
    ...(values["token-file"] !== undefined && { tokenFile: values["token-file"] }),
    input: {
      tools: values.tools ?? "all",
      readOnly: values["read-only"] ?? false,
      limits,
      mountPoint: values["mount-point"],
      allow: values.allow ?? [],
      deny: values.deny ?? [],
      readBeforeWrite: values["read-before-write"] ?? false,
      structured: values.structured ?? false,
      deletes: values["no-delete"] !== true,
      anyRoot: values["any-root"] ?? false,
      snapshots: values["no-snapshots"] === true ? false : values.snapshots,
      http: port === undefined ? undefined : { host, port }
    }
  }
}
