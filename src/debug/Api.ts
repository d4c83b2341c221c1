/**
 * The HTTP API of a debug view as data: the routes, their parameters and their answers. The server, the OpenAPI description at
 * `/openapi.json` and a client (`HttpApiClient.make(Api)`) are made from it.
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
  offset: optionalNumber("How many to pass over. Default 0"),
  limit: optionalNumber(`How many to answer at most, up to 1,000. Default ${defaultLimit}`, 0, 1000)
}

const at = { at: optionalText("Which tree: an id of /api/snapshots. Default: what is shown by itself") }

const documented = (summary: string, description: string) => OpenApi.annotations({ summary, description })

const get = HttpApiEndpoint.get

const shown = HttpApiGroup.make("shown")
  .add(
    get("meta", "/api/meta", { success: Model.Meta, error: failures }).annotateMerge(
      documented("What is shown", "A dump or a workspace: its name, how much there is of what, and what could not be read.")
    )
  )
  .add(
    get("files", "/api/files", { success: Schema.Array(Model.DumpFile), error: failures }).annotateMerge(
      documented("Which dumps there are", "Those of the served directory, the newest first. None where a workspace is shown.")
    )
  )
  .add(
    HttpApiEndpoint.post("reload", "/api/reload", { success: Model.Meta, error: failures }).annotateMerge(
      documented("Read anew", "Reads what is shown again. The answer is that of /api/meta, with another generation.")
    )
  )
  .add(
    HttpApiEndpoint.post("switchTo", "/api/switch", {
      payload: Schema.Struct({ path: Schema.String.annotate({ description: "As /api/files says it" }) }),
      success: Model.Meta,
      error: failures
    }).annotateMerge(
      documented("Show another dump", "One below the served directory; nothing else can be reached, by no link either.")
    )
  )
  .add(
    get("snapshots", "/api/snapshots", { success: Schema.Array(Model.SnapshotInfo), error: failures }).annotateMerge(
      documented(
        "What can be compared",
        "Snapshots of the workspace, or the other dumps that have files: what `at` and `with` name."
      )
    )
  )
  .add(
    get("live", "/api/live", {
      success: HttpApiSchema.StreamSse({
        events: Schema.Union([
          Schema.Struct({ event: Schema.Literal("message"), data: Schema.fromJsonString(Model.LiveEvent) }),
          Schema.Struct({ event: Schema.Literal("beat"), data: Schema.String })
        ])
      }),
      error: failures
    }).annotateMerge(
      documented(
        "What happens",
        "Server-sent events while it is listened to: a message for each thing that has changed, and a beat at first and every 15 seconds."
      )
    )
  )

const sessions = HttpApiGroup.make("sessions")
  .add(
    get("sessions", "/api/sessions", { success: Schema.Array(Model.SessionInfo), error: failures }).annotateMerge(
      documented("Sessions", "In the order of the file: parents before children.")
    )
  )
  .add(
    get("slices", "/api/slices", { success: Schema.Array(Model.SliceInfo), error: failures }).annotateMerge(
      documented("Slices", "What slices there are, session by session.")
    )
  )
  .add(
    get("slice", "/api/slices/:name", {
      params: { name: Schema.String },
      query: { session: optionalText("Default: the first session that has the slice"), ...paging },
      success: Model.SlicePage,
      error: failures
    }).annotateMerge(documented("Items of a slice", "A page of them as they were written, the oldest first."))
  )
  .add(
    get("events", "/api/events", {
      query: {
        session: optionalText("Only of this session"),
        tool: optionalText("Only of this name"),
        path: optionalText("Only those that name a path which has this in it"),
        ...paging
      },
      success: Model.EventPage,
      error: failures
    }).annotateMerge(
      documented("Events", "A page of what the logs of all sessions tell, the oldest first: calls of tools above all.")
    )
  )

const filesystem = HttpApiGroup.make("filesystem")
  .add(
    get("filesystem", "/api/filesystem/meta", { query: at, success: Model.FilesystemMeta, error: failures }).annotateMerge(
      documented("What files there are", "How many, how large, and since when. 404 where a dump has no archive.")
    )
  )
  .add(
    get("tree", "/api/filesystem/tree", {
      query: {
        ...at,
        nested: Schema.optionalKey(
          Schema.Literals(["true", "false"]).annotate({ description: "By directories. Default false" })
        )
      },
      success: [Schema.Array(Model.TreeFile), Schema.Array(Model.TreeNode)],
      error: failures
    }).annotateMerge(
      documented("The tree", "Every file, link and empty directory in path order; empty where there is no archive.")
    )
  )
  .add(
    get("file", "/api/filesystem/file", {
      query: {
        ...at,
        path: optionalText("As the tree says it"),
        part: optionalNumber("Of a text over 8 MiB: which part, from 0"),
        line: optionalNumber("Of a text over 8 MiB, instead of `part`: the part in which this line begins, from 1", 1)
      },
      success: Model.FileContent,
      error: failures
    }).annotateMerge(
      documented(
        "A file",
        "Text as text, 8 MiB at a time; other bytes as base64, up to 16 MiB. 404 for a path or a part that is not there."
      )
    )
  )
  .add(
    get("diff", "/api/filesystem/diff", {
      query: { ...at, with: optionalText("The tree before: an id of /api/snapshots. Default: what is shown by itself") },
      success: Model.Diff,
      error: failures
    }).annotateMerge(
      documented("What is otherwise", "From `with` to `at`, in path order; a file that has only got another name is renamed.")
    )
  )
  .add(
    get("history", "/api/filesystem/history", {
      query: { path: optionalText("A file, or a directory with what is below it") },
      success: Schema.Array(Model.HistoryItem),
      error: failures
    }).annotateMerge(
      documented("Who changed it", "Calls of tools and changes of the journal that concern the path, the latest first.")
    )
  )

const journal = HttpApiGroup.make("journal")
  .add(
    get("journal", "/api/journal", {
      query: {
        after: optionalNumber("Those after this position, in order"),
        before: optionalNumber("Those before this position, the latest first. Default: from the end", 1),
        limit: paging.limit,
        path: optionalText("Only of this path and what is below it, answers too"),
        correlation: optionalText("Only of this correlation id")
      },
      success: Model.JournalPage,
      error: failures
    }).annotateMerge(
      documented("The journal", "A page of what was asked of the filesystem and answered. 404 where there is no journal.")
    )
  )
  .add(
    get("changes", "/api/journal/changes", {
      query: {
        before: optionalNumber("Those asked for before this position. Default: from the end", 1),
        limit: paging.limit,
        path: optionalText("Only of this path and what is below it")
      },
      success: Model.JournalChanges,
      error: failures
    }).annotateMerge(
      documented("What changed", "A page of the changes in the journal, the latest first: a request and its answers are one.")
    )
  )
  .add(
    get("entry", "/api/journal/:position", {
      params: { position: Schema.NumberFromString.pipe(Schema.decodeTo(wholeNumber(0, maxCount))) },
      success: Model.JournalEntry,
      error: failures
    }).annotateMerge(documented("An entry", "Whole, with the content that it holds."))
  )

/**
 * All routes. They are for programs of the same machine: the server answers 403 if `Host` or `Origin` has another name.
 *
 * @since 0.1.0
 */
export const Api = HttpApi.make("fs-algebra-debug")
  .add(shown, sessions, filesystem, journal)
  .middleware(Checked)
  .annotateMerge(
    OpenApi.annotations({
      title: "fs-algebra debug view",
      description: "What a run has left, and a workspace as it is. Nothing that is asked changes anything that is shown."
    })
  )
