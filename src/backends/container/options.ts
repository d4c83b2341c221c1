/**
 * The options of a container, and the plan derived from them. All options are validated before anything runs, so that no
 * value, except those in `runArguments`, can add options to the engine's command line.
 */
import { invalidArgument, is as isFault, unavailable } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import { checkCommand } from "../../filesystem/sandbox/bounds.ts"
import type { Fault } from "../../model/FsError.ts"
import { type CommonOptions, fromOptions } from "../../port/Rules.ts"
import { Fs, isAbsolute, join } from "../../runtime/node.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import type { Owner } from "../posix/place.ts"
import { type Dialect, dialectOf, isPath, noEngine } from "./dialect.ts"

/**
 * A file or directory on the host that is visible in the container.
 *
 * @since 0.1.0
 */
export interface ContainerMount {
  /**
   * The absolute path of a file or directory on the host. After symlinks are resolved, the path must be inside one
   * of `allowedRoots`.
   */
  readonly source: string
  /** The absolute path inside the container. The path must not overlap `workdir`, `/tmp` or the system's directories. */
  readonly target: string
  /** True to mount the source read-only. @default true */
  readonly readOnly?: boolean | undefined
}

/**
 * The options of a container: engine, image, permissions, limits, and where its files are stored.
 *
 * @since 0.1.0
 */
export interface ContainerOptions extends CommonOptions {
  /**
   * The program that runs containers: `podman`, `docker` or `nerdctl` from the PATH, or an absolute path. The file name
   * of an absolute path must begin with one of these names. @default "podman"
   */
  readonly engine?: string | undefined
  /**
   * The name of an image, which the engine fetches if needed. `rootfs`: the absolute path of a root filesystem, which
   * stays unchanged (podman only).
   */
  readonly image: string | { readonly rootfs: string }
  /**
   * The storage of the files. `overlay`: a host directory is mounted at `workdir`, and its files exist before and after
   * the container. `exec`: no disk is shared; the engine transfers all data, and the files are lost with the container.
   * @default "overlay"
   */
  readonly strategy?: "overlay" | "exec" | undefined
  /** The absolute path of the files inside the container. @default "/workspace" */
  readonly workdir?: string | undefined
  /**
   * The absolute path of an existing host directory for `overlay`. The directory is kept when the scope closes.
   * @default a directory in the user's cache, removed when the scope closes
   */
  readonly hostDirectory?: string | undefined
  /**
   * The time at which the container starts. `lazy`: at the first command (`overlay` only). `eager`: when the layer is
   * built.
   * @default "lazy" for overlay, "eager" for exec
   */
  readonly start?: "lazy" | "eager" | undefined
  /**
   * The user and group of the commands, as `uid:gid` in numbers.
   * @default "65534:65534" (the ids of this process if the engine is docker or nerdctl, a directory is shared, and the
   * process is not root)
   */
  readonly user?: string | undefined
  /** The memory limit in bytes. The container gets no swap in addition. @default 1 GiB */
  readonly memoryBytes?: number | undefined
  /** The number of processors, which may be a fraction. @default 1 */
  readonly cpus?: number | undefined
  /** The maximum number of concurrent processes. @default 256 */
  readonly pids?: number | undefined
  /** The size of `/tmp` in bytes, which counts as memory. @default 256 MiB */
  readonly tmpfsBytes?: number | undefined
  /** The name of one of the engine's networks. @default "none" */
  readonly network?: string | undefined
  /**
   * The environment of every command. The environment is part of the engine's command line, which other users of the machine can
   * see. @default HOME is /tmp
   */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** The files and directories on the host to mount. @default none */
  readonly mounts?: ReadonlyArray<ContainerMount> | undefined
  /** The absolute host directories that may contain sources of mounts. @default none */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
  /** The language of `eval` code if the call does not name a language. @default "javascript" */
  readonly evalLanguage?: "javascript" | "python" | "sh" | undefined
  /**
   * Additional arguments for the engine. These arguments follow the arguments of all other options, so they can override every
   * option and limit above.
   * @default none
   */
  readonly runArguments?: ReadonlyArray<string> | undefined
}

/** The user id and group id of this process. Absent on systems without user ids. */
export type Caller = Owner | undefined

export interface Mount {
  readonly source: string
  readonly target: string
  readonly readOnly: boolean
}

export interface Plan {
  readonly engine: Dialect
  readonly program: string
  readonly image: string | { readonly rootfs: string }
  readonly strategy: "overlay" | "exec"
  readonly workdir: string
  readonly hostDirectory: string | undefined
  readonly start: "lazy" | "eager"
  readonly user: Owner
  readonly mapsUser: boolean
  readonly memoryBytes: number
  readonly cpus: number
  readonly pids: number
  readonly tmpfsBytes: number
  readonly network: string
  readonly environment: Readonly<Record<string, string>>
  readonly mounts: ReadonlyArray<Mount>
  readonly evalLanguage: "javascript" | "python" | "sh"
  readonly runArguments: ReadonlyArray<string>
  /** True if commands must not change the files, because the Filesystem restricts some changes. */
  readonly isReadOnly: boolean
}

type OptionFault = readonly [argument: keyof ContainerOptions, detail: string] | undefined

const nobody: Owner = { uid: 65534, gid: 65534 }

const MiB = 2 ** 20

// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f]/

const unsafeInMountList = /[,"]/

const isText = (value: unknown): value is string => typeof value === "string" && value.isWellFormed() && !control.test(value)

const isClimbing = (path: string): boolean => path.split("/").includes("..")

const checkHostPath = (path: unknown): string | undefined => {
  if (!isText(path) || !isAbsolute(path)) return "it must be an absolute host path without control characters"
  return unsafeInMountList.test(path) ? "it must not contain a comma or a quotation mark" : undefined
}

const checkContainerPath = (path: unknown): string | undefined => {
  if (!isText(path) || !path.startsWith("/")) return "it must be an absolute path without control characters"
  if (normalizePath(path) === "/" || isClimbing(path)) return 'it must be a directory below "/" and must not contain ".."'
  return unsafeInMountList.test(path) || path.includes(":")
    ? "it must not contain a comma, a colon or a quotation mark"
    : undefined
}

const normalizePath = (path: string): string =>
  `/${path
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/")}`

const reservedDirectories = ["/proc", "/sys", "/dev", "/tmp"]

const overlaps = (one: string, other: string): boolean => OpenRoots.isInside(one, other) || OpenRoots.isInside(other, one)

const checkTarget = (path: string): string | undefined =>
  checkContainerPath(path) ??
  (reservedDirectories.some((place) => OpenRoots.isInside(place, normalizePath(path)))
    ? "it must not overlap /tmp, /proc, /sys or /dev"
    : undefined)

const oneOf = (argument: keyof ContainerOptions, value: unknown, ...values: ReadonlyArray<string>): OptionFault =>
  value === undefined || (typeof value === "string" && values.includes(value))
    ? undefined
    : [argument, `it must be one of ${values.join(", ")}`]

const positive = (argument: keyof ContainerOptions, value: number | undefined, isWhole = true): OptionFault =>
  value === undefined || (Number.isFinite(value) && value > 0 && (!isWhole || Number.isSafeInteger(value)))
    ? undefined
    : [argument, isWhole ? "it must be a whole number above 0" : "it must be a number above 0"]

const engineFinding = ({ engine }: ContainerOptions): OptionFault =>
  engine === undefined || (isText(engine) && (isAbsolute(engine) || !isPath(engine)) && dialectOf(engine) !== undefined)
    ? undefined
    : ["engine", noEngine]

const imageFinding = ({ engine, image }: ContainerOptions): OptionFault => {
  if (typeof image === "string") {
    if (!isText(image) || image.trim() === "" || /\s/.test(image)) return ["image", "it must be the name of an image"]
    return image.startsWith("-") ? ["image", "the name of an image must not begin with a hyphen"] : undefined
  }
  if (typeof image !== "object" || image === null) return ["image", "it must be the name of an image, or { rootfs }"]
  const dialect = engine === undefined ? "podman" : dialectOf(engine)
  if (dialect !== "podman") return ["image", `${dialect} cannot run a root filesystem from the host; give the name of an image`]
  if (!isText(image.rootfs) || !isAbsolute(image.rootfs)) return ["image", "rootfs must be an absolute path on the host"]
  return image.rootfs.includes(":") ? ["image", "the path of rootfs must not contain a colon"] : undefined
}

const userForm = /^([0-9]{1,10}):([0-9]{1,10})$/

/** The largest valid id. In system calls, the next number means "leave unchanged". */
const maxId = 2 ** 32 - 2

const userOf = (user: string): Owner | undefined => {
  const [, uid, gid] = userForm.exec(user) ?? []
  const owner = { uid: Number(uid), gid: Number(gid) }
  return owner.uid <= maxId && owner.gid <= maxId ? owner : undefined
}

const userFinding = ({ user }: ContainerOptions): OptionFault =>
  user === undefined || (typeof user === "string" && userOf(user) !== undefined)
    ? undefined
    : ["user", "it must have the form uid:gid, with two numbers"]

const environmentFinding = ({ environment }: ContainerOptions): OptionFault => {
  if (environment === undefined) return undefined
  if (Object.values(environment).some((value) => typeof value !== "string"))
    return ["environment", "the values of the variables must be strings"]
  const found = checkCommand("Container", { env: environment })
  return found && ["environment", found.detail]
}

const argumentsFinding = ({ runArguments = [] }: ContainerOptions): OptionFault =>
  runArguments.every((argument) => typeof argument === "string" && argument.isWellFormed() && !argument.includes("\0"))
    ? undefined
    : ["runArguments", "the arguments must be strings without NUL characters"]

const strategyFinding = ({ hostDirectory, start, strategy }: ContainerOptions): OptionFault => {
  if (strategy !== "exec") return undefined
  if (hostDirectory !== undefined)
    return ["hostDirectory", "it requires the strategy overlay, because the strategy exec shares no directory"]
  return start === "lazy"
    ? ["start", "it must be eager, because with the strategy exec files exist only in a started container"]
    : undefined
}

/** Checks the resolved shared directory. A missing directory is reported later, when it is opened. */
const sharedFinding = (real: string | undefined): string | undefined =>
  real === "/" ? "it must not be the root directory of the host" : real && checkHostPath(real)

const directoryFinding = ({ hostDirectory }: ContainerOptions): OptionFault => {
  if (hostDirectory === undefined) return undefined
  const detail = checkHostPath(hostDirectory) ?? sharedFinding(OpenRoots.resolvePath(hostDirectory))
  return detail === undefined ? undefined : ["hostDirectory", detail]
}

const workdirFinding = ({ workdir }: ContainerOptions): OptionFault => {
  const detail = workdir === undefined ? undefined : checkTarget(workdir)
  return detail === undefined ? undefined : ["workdir", detail]
}

const networkFinding = ({ network }: ContainerOptions): OptionFault =>
  network === undefined || (isText(network) && /^[^\s-]\S*$/.test(network))
    ? undefined
    : ["network", "it must be the name of a network"]

const mountFinding = (mount: ContainerMount, workdir: string): string | undefined => {
  const detail = checkTarget(mount.target)
  if (detail !== undefined) return `target ${JSON.stringify(mount.target)}: ${detail}`
  if (overlaps(normalizePath(mount.target), workdir)) return "the target of a mount must not overlap the directory of the files"
  const source = checkHostPath(mount.source)
  return source === undefined ? undefined : `source ${JSON.stringify(mount.source)}: ${source}`
}

const findOptionFault = (options: ContainerOptions): OptionFault =>
  engineFinding(options) ??
  imageFinding(options) ??
  oneOf("strategy", options.strategy, "overlay", "exec") ??
  oneOf("start", options.start, "lazy", "eager") ??
  strategyFinding(options) ??
  workdirFinding(options) ??
  directoryFinding(options) ??
  userFinding(options) ??
  positive("memoryBytes", options.memoryBytes) ??
  positive("cpus", options.cpus, false) ??
  positive("pids", options.pids) ??
  positive("tmpfsBytes", options.tmpfsBytes) ??
  networkFinding(options) ??
  environmentFinding(options) ??
  oneOf("evalLanguage", options.evalLanguage, "javascript", "python", "sh") ??
  argumentsFinding(options)

const invalid = ([argument, detail]: NonNullable<OptionFault>): Fault => invalidArgument(argument, detail)

const mountOf = (mount: ContainerMount, workdir: string, roots: ReadonlyArray<string>): Mount | Fault => {
  const detail = mountFinding(mount, workdir)
  if (detail !== undefined) return invalid(["mounts", detail])
  const shown = `source ${JSON.stringify(mount.source)}`
  const source = OpenRoots.resolveAllowed(mount.source, roots)
  if (source === undefined) return invalid(["mounts", `${shown}: it is not inside one of allowedRoots`])
  if (checkHostPath(source) !== undefined)
    return invalid(["mounts", `${shown}: it resolves to a path with control characters, a comma or a quotation mark`])
  if (OpenRoots.isInStore(source)) return invalid(["mounts", `${shown}: it is inside a snapshot store`])
  return { source, target: normalizePath(mount.target), readOnly: mount.readOnly ?? true }
}

/**
 * Fails if the source of a mount no longer leads to the path that the plan recorded. Programs with access to a shared
 * directory could replace a source in it by a symlink.
 */
export const checkMounts = ({ mounts }: Plan): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    const other = mounts.find(({ source }) => OpenRoots.resolvePath(source) !== source)
    return other === undefined
      ? Effect.void
      : Effect.fail(unavailable(`the source of the mount at ${other.target} has changed on the host since it was checked`))
  })

const lstat = (path: string): Fs.Stats | undefined => {
  try {
    return Fs.lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/**
 * Fails if the root filesystem is missing or has no shell. The message is clearer than the engine's message.
 *
 * If `bin` is a symlink, the shell is not checked, because the symlink may have another target inside the container.
 */
export const checkRootfs = ({ engine, image }: Plan): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    if (typeof image === "string") return Effect.void
    const shown = JSON.stringify(image.rootfs)
    const noContainer = (why: string, hint: string): Effect.Effect<void, Fault> =>
      Effect.fail({ ...unavailable(`${engine} did not start a container: ${why}`), hint })
    if (Fs.statSync(image.rootfs, { throwIfNoEntry: false })?.isDirectory() !== true) {
      return noContainer(`there is no directory ${shown}`, "Give the directory of a root filesystem that contains /bin/sh.")
    }
    const bin = lstat(join(image.rootfs, "bin"))
    return bin?.isSymbolicLink() === true || lstat(join(image.rootfs, "bin/sh")) !== undefined
      ? Effect.void
      : noContainer(
          `there is no /bin/sh in ${shown}`,
          "Give a root filesystem that has /bin/sh, because /bin/sh starts every command."
        )
  })

const isRoot = (caller: Caller): boolean => caller?.uid === 0

const defaultUser = (engine: Dialect, { strategy }: ContainerOptions, caller: Caller): Owner =>
  engine !== "podman" && strategy !== "exec" && caller !== undefined && !isRoot(caller) ? caller : nobody

export const plan = (options: ContainerOptions, caller: Caller): Plan | Fault => {
  const reason = findOptionFault(options)
  if (reason !== undefined) return invalid(reason)
  const workdir = normalizePath(options.workdir ?? "/workspace")
  const mounts: Array<Mount> = []
  for (const requestedMount of options.mounts ?? []) {
    const mount = mountOf(requestedMount, workdir, options.allowedRoots ?? [])
    if (isFault(mount)) return mount
    mounts.push(mount)
  }
  const { engine: program = "podman", strategy = "overlay" } = options
  const engine = dialectOf(program)!
  const { permits } = fromOptions(options)
  return {
    engine,
    program,
    image: options.image,
    strategy,
    workdir,
    hostDirectory: options.hostDirectory,
    start: options.start ?? (strategy === "exec" ? "eager" : "lazy"),
    user: options.user === undefined ? defaultUser(engine, options, caller) : userOf(options.user)!,
    mapsUser: engine === "podman" && strategy === "overlay" && caller !== undefined && !isRoot(caller),
    memoryBytes: options.memoryBytes ?? 1024 * MiB,
    cpus: options.cpus ?? 1,
    pids: options.pids ?? 256,
    tmpfsBytes: options.tmpfsBytes ?? 256 * MiB,
    network: options.network ?? "none",
    environment: { HOME: "/tmp", ...options.environment },
    mounts,
    evalLanguage: options.evalLanguage ?? "javascript",
    runArguments: options.runArguments ?? [],
    isReadOnly: permits !== undefined && !(permits("write") && permits("delete"))
  }
}
