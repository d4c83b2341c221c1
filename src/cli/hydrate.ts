/**
 * Copies one filesystem into another, so that later commands work on real files without risk. Entries that cannot be copied (no
 * permission, a link that leads out, a device) are reported.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { GlobMatch } from "../model/Entry.ts"
import type { FsError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"

export interface HydrateOptions {
  /** True to leave out files that .gitignore and .ignore match, and `.git`. @default false */
  readonly gitignore?: boolean | undefined
  /** The largest amount to copy; the copy stops before it is exceeded. @default no bound */
  readonly upTo?: { readonly files: number; readonly bytes: number } | undefined
  readonly onFile?: ((bytes: number) => void) | undefined
}

export interface CopiedTree {
  readonly files: number
  readonly directories: number
  readonly links: number
  readonly bytes: number
  /** True if `upTo` was reached, so that the copy is incomplete. */
  readonly truncated: boolean
  readonly leftOut: ReadonlyArray<{ readonly path: string; readonly why: string }>
}

const concurrency = 16

export const copyTree = Effect.fnUntraced(
  function* (from: Algebra, to: Algebra, options: HydrateOptions = {}): Effect.fn.Return<CopiedTree, FsError> {
    const leftOut: Array<{ readonly path: string; readonly why: string }> = []
    const directories: Array<FsPath.FsPath> = []
    const links: Array<FsPath.FsPath> = []
    let files = 0
    let copiedLinks = 0
    let bytes = 0
    let truncated = false
    const recordLeftOut = (path: string) => (error: FsError) =>
      Effect.sync(() => void leftOut.push({ path, why: error.message }))

    const attributes = Effect.fnUntraced(function* (path: FsPath.FsPath) {
      const { mode, modifiedAt } = yield* from.stat(path)
      yield* to.setAttributes(path, { mode, modifiedAt })
    })

    /** The files and bytes counted before they are read, so that concurrent reads count too. */
    const plannedUsage = { files: 0, bytes: 0 }
    const reserveIfFits = (size: number): boolean => {
      if (options.upTo === undefined) return true
      if (plannedUsage.files + 1 > options.upTo.files || plannedUsage.bytes + size > options.upTo.bytes) return false
      plannedUsage.files++
      plannedUsage.bytes += size
      return true
    }

    const copy = ({ kind, path, sizeBytes }: GlobMatch): Effect.Effect<void, FsError> => {
      if (kind === "directory") {
        directories.push(path)
        return to.mkdir(path)
      }
      if (kind === "symlink") {
        links.push(path)
        return Effect.void
      }
      if (kind === "other") {
        leftOut.push({ path, why: "it is not a file, a directory or a link" })
        return Effect.void
      }
      if (!reserveIfFits(sizeBytes ?? 0)) {
        truncated = true
        return Effect.void
      }
      return Effect.matchEffect(from.readBytes(path), {
        onFailure: recordLeftOut(path),
        onSuccess: ({ content }) =>
          Effect.andThen(
            to.writeBytes(path, content),
            Effect.suspend(() => {
              files++
              bytes += content.length
              options.onFile?.(content.length)
              return Effect.ignore(attributes(path))
            })
          )
      })
    }

    yield* from
      .globStream("*", {
        kinds: ["file", "directory", "symlink", "other"],
        gitignore: options.gitignore,
        sizes: options.upTo !== undefined,
        onSkip: (path, why) => {
          if (why === "unreadable") leftOut.push({ path, why: "it cannot be read" })
        }
      })
      .pipe(
        Stream.takeWhile(() => {
          truncated ||= plannedUsage.files >= (options.upTo?.files ?? Number.POSITIVE_INFINITY)
          return !truncated
        }),
        Stream.runForEachArray((matches) => Effect.forEach(matches, copy, { concurrency, discard: true }))
      )
    for (const path of links) {
      yield* Effect.matchEffect(
        Effect.flatMap(from.readLink(path), (target) => to.symlink(path, target)),
        { onFailure: recordLeftOut(path), onSuccess: () => Effect.sync(() => void copiedLinks++) }
      )
    }
    // Set the attributes of directories at the end, because creating entries changes their times.
    for (const path of directories) yield* Effect.ignore(attributes(path))
    leftOut.sort((a, b) => FsPath.compare(a.path, b.path))
    return { files, directories: directories.length, links: copiedLinks, bytes, truncated, leftOut }
  },
  Effect.provideService(Limits, unlimited)
)
