import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { list } from "../../engine/options.ts"
import * as FsPath from "../../model/FsPath.ts"
import { formatCount, formatSize } from "../../model/words.ts"
import { basename, createHash, isAbsolute } from "../../runtime/node.ts"
import { type HostMount, MountError, type Options, parseMount, type Preview, type Request } from "./model.ts"
import * as Source from "./survey.ts"
import { type Survey, survey } from "./survey.ts"

// In a fingerprint, an omitted `mountPath` stays omitted. Its default depends on whether the source is a file, which only the
// disk shows.

/** Returns the mount with its keys in a fixed order. An invalid mount keeps its original values. */
const canonical = (mount: HostMount): object => {
  const request = parseMount(mount)
  const { exclude, followSymlinks, hostPath, include, maxBytes, mountPath } = mount
  return request instanceof MountError
    ? { exclude: list(exclude), followSymlinks, hostPath, include: list(include), maxBytes, mountPath }
    : {
        exclude: request.exclude,
        followSymlinks: request.followSymlinks,
        hostPath,
        include: request.include,
        maxBytes: request.maxBytes ?? null,
        mountPath: request.mountPath === undefined ? null : FsPath.segments(request.mountPath)
      }
}

export const fingerprint = (mounts: ReadonlyArray<HostMount>): string =>
  createHash("sha256")
    .update(JSON.stringify(mounts.map(canonical)))
    .digest("hex")
    .slice(0, 16)

const maxShownEntries = 10

/** Returns the text as Markdown code. The fence is longer than any sequence of backticks in the text. */
const code = (text: string): string => {
  const longestFence = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = "`".repeat(longestFence + 1)
  return longestFence > 0 ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`
}

const nameOf = (source: string): string => (isAbsolute(source) ? basename(source) || source : source)

const renderMount = ({ bytes, entries, files, leftOut, source, target }: Preview): string => {
  const shownEntries = entries.slice(0, maxShownEntries)
  const more = files - shownEntries.length
  const skippedText = leftOut.count === 0 ? "" : `; ${formatCount(leftOut.count, "entry", "entries")} left out`
  return [
    `- ${code(nameOf(source))} → ${code(target)}: ${formatCount(files, "file")}, ${formatSize(bytes)}${skippedText}`,
    ...shownEntries.map((entry) => `  - ${code(entry)}`),
    ...(more > 0 ? [`  - +${more} more`] : [])
  ].join("\n")
}

export const render = (previews: ReadonlyArray<Preview>): string => previews.map(renderMount).join("\n")

export interface PlannedMount extends Survey {
  readonly request: Request
  readonly source: Source.Source
  /** The target path, or the path of the copy if the source is a file. */
  readonly target: FsPath.FsPath
}

const maxPreviewEntries = 20

const targetOf = ({ isAbsolute, mountPath, names }: Request, { at }: Source.Source, isFile: boolean): FsPath.FsPath => {
  if (mountPath === undefined) return FsPath.fromSegments(isAbsolute ? names.slice(-1) : names)
  return isFile ? FsPath.join(mountPath, names.at(-1) ?? FsPath.name(at)) : mountPath
}

export const pathOf = ({ isFile, target }: PlannedMount, path: FsPath.FsPath): FsPath.FsPath =>
  isFile ? target : FsPath.below(target, path)

export const previewOf = (planned: PlannedMount): Preview => ({
  source: planned.request.hostPath,
  target: planned.target,
  entries: planned.files.slice(0, maxPreviewEntries).map(({ path }) => pathOf(planned, path)),
  files: planned.files.length,
  bytes: planned.bytes,
  leftOut: { count: planned.leftOut.length, entries: planned.leftOut.slice(0, maxPreviewEntries) }
})

/** Plans all mounts. The sources stay open until the scope ends. */
export const plan = Effect.fnUntraced(function* (
  mounts: ReadonlyArray<HostMount>,
  { allowedRoots }: Options
): Effect.fn.Return<ReadonlyArray<PlannedMount>, MountError, Scope.Scope> {
  const roots = yield* Effect.sync(() => Source.realRoots(allowedRoots))
  if (roots instanceof MountError) return yield* Effect.fail(roots)
  const requests: Array<Request> = []
  for (const mount of mounts) {
    const request = parseMount(mount)
    if (request instanceof MountError) return yield* Effect.fail(request)
    requests.push(request)
  }
  const open = yield* Source.makeOpener
  const plannedMounts: Array<PlannedMount> = []
  for (const request of requests) {
    const found = yield* Effect.sync(() => Source.findSource(request, roots))
    if (found instanceof MountError) return yield* Effect.fail(found)
    const source = { root: yield* open(found.root, request.hostPath), at: found.at }
    const surveyed = yield* survey(request, source)
    plannedMounts.push({ ...surveyed, request, source, target: targetOf(request, source, surveyed.isFile) })
  }
  return plannedMounts
})
