/**
 * The definition of the HTTP API of a debug view: the routes, their parameters and their responses. The server, the OpenAPI
 * description at `/openapi.json` and clients (`HttpApiClient.make(Api)`) use this definition.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Model from "./model.ts"
import { Checked, defaultLimit, failures } from "./server/failures.ts"

const optionalText = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

const wholeNumber = (least: number, most: number) => Schema.Int.check(Schema.isBetween({ minimum: least, maximum: most }))

const maxCount = Number.MAX_SAFE_INTEGER

const optionalNumber = (description: string, least = 0, most = maxCount) =>
  Schema.optionalKey(Schema.NumberFromString.pipe(Schema.decodeTo(wholeNumber(least, most))).annotate({ description }))

const paging = {
  offset: optionalNumber("The number of items to skip. Default 0"),
  limit: optionalNumber(`The largest number of items to return, up to 1,000. Default ${defaultLimit}`, 0, 1000)
}

const at = { at: optionalText("The tree: an id of /api/snapshots. Default: the current tree of the source") }

const documented = (summary: string, description: string) => OpenApi.annotations({ summary, description })

const get = HttpApiEndpoint.get

const shown = HttpApiGroup.make("shown").add(
  get("meta", "/api/meta", { success: Model.Meta, error: failures }).annotateMerge(
    documented(
      "The source",
      "The name of the dump or workspace, the number of its items, and the problems found while reading it."
    )
  ),
  get("files", "/api/files", { success: Schema.Array(Model.DumpFile), error: failures }).annotateMerge(
    documented("Dumps", "The dumps of the served directory, newest first. A workspace has none.")
  ),
  HttpApiEndpoint.post("reload", "/api/reload", { success: Model.Meta, error: failures }).annotateMerge(
    documented("Reload", "Reads the source again. The response has the form of /api/meta, with a new `generation`.")
  ),
  HttpApiEndpoint.post("switchTo", "/api/switch", {
    payload: Schema.Struct({ path: Schema.String.annotate({ description: "A path from /api/files" }) }),
    success: Model.Meta,
    error: failures
  }).annotateMerge(
    documented("Switch to another dump", "The dump must be in the served directory. Links out of the directory are refused.")
  ),
  get("snapshots", "/api/snapshots", { success: Schema.Array(Model.SnapshotInfo), error: failures }).annotateMerge(
    documented(
      "Snapshots",
      "The snapshots of a workspace, the heads and snapshots of a store, or the other dumps with an archive. The parameters `at` and `with` take these ids."
    )
  ),
  get("live", "/api/live", {
    success: HttpApiSchema.StreamSse({
      events: Schema.Union([
        Schema.Struct({ event: Schema.Literal("message"), data: Schema.fromJsonString(Model.LiveEvent) }),
        Schema.Struct({ event: Schema.Literal("beat"), data: Schema.String })
      ])
    }),
    error: failures
  }).annotateMerge(
    documented("Live events", "Server-sent events: messages about changes, and a heartbeat at the start and every 15 seconds.")
  )
)

const sessions = HttpApiGroup.make("sessions").add(
  get("sessions", "/api/sessions", { success: Schema.Array(Model.SessionInfo), error: failures }).annotateMerge(
    documented("Sessions", "All sessions in the order of the file, parents before children.")
  ),
  get("slices", "/api/slices", { success: Schema.Array(Model.SliceInfo), error: failures }).annotateMerge(
    documented("Slices", "The slices of all sessions.")
  ),
  get("slice", "/api/slices/:name", {
    params: { name: Schema.String },
    query: { session: optionalText("Default: the first session that has the slice"), ...paging },
    success: Model.SlicePage,
    error: failures
  }).annotateMerge(documented("Items of a slice", "A page of items as they were written, oldest first.")),
  get("events", "/api/events", {
    query: {
      session: optionalText("Only events of this session"),
      tool: optionalText("Only events of this tool"),
      path: optionalText("Only events with a path that contains this text"),
      ...paging
    },
    success: Model.EventPage,
    error: failures
  }).annotateMerge(
    documented(
      "Events",
      "A page of the tool calls, and of the other log items with a time, of all sessions. The oldest comes first."
    )
  )
)

const filesystem = HttpApiGroup.make("filesystem").add(
  get("filesystem", "/api/filesystem/meta", { query: at, success: Model.FilesystemMeta, error: failures }).annotateMerge(
    documented("Filesystem", "The number and size of the files, and the time of the tree. 404 if the dump has no archive.")
  ),
  get("tree", "/api/filesystem/tree", {
    query: {
      ...at,
      nested: Schema.optionalKey(
        Schema.Literals(["true", "false"]).annotate({ description: "Group the files by directory. Default false" })
      )
    },
    success: [Schema.Array(Model.TreeFile), Schema.Array(Model.TreeNode)],
    error: failures
  }).annotateMerge(documented("Tree", "Every file, link and empty directory in path order. Empty if there is no archive.")),
  get("file", "/api/filesystem/file", {
    query: {
      ...at,
      path: optionalText("A path from the tree"),
      part: optionalNumber("For a text over 8 MiB: the number of the part, from 0"),
      line: optionalNumber(
        "For a text over 8 MiB, instead of `part`: a line number, from 1, which selects the part in which the line begins",
        1
      )
    },
    success: Model.FileContent,
    error: failures
  }).annotateMerge(
    documented(
      "File",
      "Text is returned in parts of 8 MiB, and other content as base64, up to 16 MiB. 404 if the path or the part does not exist."
    )
  ),
  get("diff", "/api/filesystem/diff", {
    query: {
      ...at,
      with: optionalText("The tree to compare with: an id of /api/snapshots. Default: the current tree of the source")
    },
    success: Model.Diff,
    error: failures
  }).annotateMerge(
    documented(
      "Differences",
      "The changes from `with` to `at` in path order. A new file with the content of a deleted file is reported as renamed, unless the file is empty or over 32 MiB."
    )
  ),
  get("history", "/api/filesystem/history", {
    query: { path: optionalText("A file, or a directory with everything below it") },
    success: Schema.Array(Model.HistoryItem),
    error: failures
  }).annotateMerge(
    documented(
      "History of a path",
      "The tool calls and the journal changes that name the path, latest first. Failed ones are included."
    )
  )
)

const journal = HttpApiGroup.make("journal").add(
  get("journal", "/api/journal", {
    query: {
      after: optionalNumber("Only entries after this position, in order"),
      before: optionalNumber("Only entries before this position, latest first. Default: from the end", 1),
      limit: paging.limit,
      path: optionalText("Only requests for this path or a path below it, and their answers"),
      correlation: optionalText("Only entries with this correlation id")
    },
    success: Model.JournalPage,
    error: failures
  }).annotateMerge(
    documented("Journal", "A page of the entries: requests to the filesystem, answers and reports. 404 if there is no journal.")
  ),
  get("changes", "/api/journal/changes", {
    query: {
      before: optionalNumber("Only changes requested before this position. Default: from the end", 1),
      limit: paging.limit,
      path: optionalText("Only changes of this path or a path below it")
    },
    success: Model.JournalChanges,
    error: failures
  }).annotateMerge(
    documented("Changes", "A page of the changes in the journal, latest first. A request and its answers are one change.")
  ),
  get("entry", "/api/journal/:position", {
    params: { position: Schema.NumberFromString.pipe(Schema.decodeTo(wholeNumber(0, maxCount))) },
    success: Model.JournalEntry,
    error: failures
  }).annotateMerge(documented("Journal entry", "The whole entry with its content."))
)

/**
 * All routes. Only programs on the same machine may use the routes: the server answers 403 if `Host` or `Origin` names another
 * machine.
 *
 * @since 0.1.0
 */
export const Api = HttpApi.make("fs-algebra-debug")
  .add(shown, sessions, filesystem, journal)
  .middleware(Checked)
  .annotateMerge(
    OpenApi.annotations({
      title: "fs-algebra debug view",
      description:
        "Shows a dump, a workspace or a store. A request changes no files, except that it settles the transaction of a killed process."
    })
  )
