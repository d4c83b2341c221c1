import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as FsPath from "../../model/FsPath.ts"
import { type HostMount, MountError, type Options, type Preview } from "./model.ts"
import { parseMount, type Request } from "./request.ts"
import * as Source from "./source.ts"
import { type Survey, survey } from "./survey.ts"

export interface PlannedMount extends Survey {
  readonly request: Request
  readonly source: Source.Source
  /** The target path; for a source that is a file, the path of that file. */
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
