import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { leadsInto } from "../../runtime/openRoots.ts"
import { type Complaint, usage } from "../exit.ts"
import { resolveLinks } from "../paths.ts"
import { Screen } from "../screen.ts"
import { refusing, Settings } from "../settings.ts"
import { withJournalComplaints } from "../advice.ts"
import { hasContent, journalToWrite } from "./file.ts"

const contentsOf = (place: string): string => `${place}.contents`

const journalInsideRoot = (file: string): Complaint =>
  usage(
    `the journal would lie inside the root: ${file}`,
    "Choose a file outside of the root, so that the journal does not record its own changes."
  )

/** Tests whether the journal or its contents lie inside a root, also if a link leads there or a container mounts the root. */
const isInsideRoot = Effect.fnUntraced(function* ({ port: { history } }: Algebra, place: string) {
  const { backend, directories, root } = yield* Settings
  const { directory } = yield* Screen
  const top =
    backend === "container" ? resolveLinks(resolve(directory, root)) : history?._tag === "Directory" ? history.root : undefined
  const recordedRoots =
    backend === "host" && directories !== undefined
      ? directories.map(({ path }) => resolveLinks(path))
      : top === undefined
        ? []
        : [top]
  return [place, contentsOf(place)].some((path) => leadsInto(path, recordedRoots))
})

/**
 * Records the changes made through a filesystem until the scope closes. Gives a new journal a hash chain. Returns the recording
 * filesystem and the journal.
 */
export const startRecording = Effect.fnUntraced(function* (fs: Algebra, file: string) {
  const path = yield* journalToWrite(file)
  if (yield* isInsideRoot(fs, path)) return yield* journalInsideRoot(file)
  const { Entry, Journal, makeFile, record } = yield* Effect.promise(() => import("../../journal/Journal.ts"))
  const journal = yield* makeFile(Entry, { path, chained: !hasContent(path) })
  return { journal, fs: yield* Effect.provideService(record()(fs), Journal, journal) }
})

/**
 * Adds recording to a layer if `--journal` is given. A recording layer has no Sandbox, because programs in a container would
 * bypass the recording.
 */
export const withRecording = <E, R>(
  layer: Layer.Layer<Filesystem, E, R>
): Layer.Layer<Filesystem, E | Complaint, R | Settings | Screen> =>
  Layer.unwrap(
    Effect.map(Settings, ({ journal: file }): Layer.Layer<Filesystem, E | Complaint, R | Settings | Screen> =>
      file === undefined
        ? layer
        : Layer.effect(
            Filesystem,
            Effect.flatMap(Filesystem, (fs) =>
              Effect.map(withJournalComplaints(file)(startRecording(fs, file)), ({ fs }) => fs)
            )
          ).pipe(Layer.provide(layer))
    )
  )

/**
 * Refuses `--journal` for a command that records nothing. An empty journal would suggest that nothing was changed.
 */
export const withoutJournalFlag = (why: string) =>
  refusing(({ command, journal }) =>
    journal === undefined ? undefined : usage(`--journal cannot be combined with ${command}: ${why}`, "Leave out --journal.")
  )
