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

const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

const whole = (least: number, most: number) => Schema.Int.check(Schema.isBetween({ minimum: least, maximum: most }))

const maxCount = Number.MAX_SAFE_INTEGER

const number = (description: string, least = 0, most = maxCount) =>
  Schema.optionalKey(Schema.NumberFromString.pipe(Schema.decodeTo(whole(least, most))).annotate({ description }))

const paging = {
  offset: number("How many to pass over. Default 0"),
  limit: number(`How many to answer at most, up to 1,000. Default ${defaultLimit}`, 0, 1000)
}

const at = { at: text("Which tree: an id of /api/snapshots. Default: what is shown by itself") }

const said = (summary: string, description: string) => OpenApi.annotations({ summary, description })

const get = HttpApiEndpoint.get

const shown = HttpApiGroup.make("shown")
  .add(
    get("meta", "/api/meta", { success: Model.Meta, error: failures }).annotateMerge(
      said("What is shown", "A dump or a workspace: its name, how much there is of what, and what could not be read.")
    )
  )
  .add(
    get("files", "/api/files", { success: Schema.Array(Model.DumpFile), error: failures }).annotateMerge(
      said("Which dumps there are", "Those of the served directory, the newest first. None where a workspace is shown.")
    )
  )
  .add(
    HttpApiEndpoint.post("reload", "/api/reload", { success: Model.Meta, error: failures }).annotateMerge(
      said("Read anew", "Reads what is shown again. The answer is that of /api/meta, with another generation.")
    )
  )
  .add(
    HttpApiEndpoint.post("switchTo", "/api/switch", {
      payload: Schema.Struct({ path: Schema.String.annotate({ description: "As /api/files says it" }) }),
      success: Model.Meta,
      error: failures
    }).annotateMerge(
      said("Show another dump", "One below the served directory; nothing else can be reached, by no link either.")
    )
  )
  .add(
    get("snapshots", "/api/snapshots", { success: Schema.Array(Model.SnapshotInfo), error: failures }).annotateMerge(
      said("What can be compared", "Snapshots of the workspace, or the other dumps that have files: what `at` and `with` name.")
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
      said(
        "What happens",
        "Server-sent events while it is listened to: a message for each thing that has changed, and a beat at first and every 15 seconds."
      )
    )
  )

const sessions = HttpApiGroup.make("sessions")
  .add(
    get("sessions", "/api/sessions", { success: Schema.Array(Model.SessionInfo), error: failures }).annotateMerge(
      said("Sessions", "In the order of the file: parents before children.")
    )
  )
  .add(
    get("slices", "/api/slices", { success: Schema.Array(Model.SliceInfo), error: failures }).annotateMerge(
      said("Slices", "What slices there are, session by session.")
    )
  )
  .add(
    get("slice", "/api/slices/:name", {
      params: { name: Schema.String },
      query: { session: text("Default: the first session that has the slice"), ...paging },
      success: Model.SlicePage,
      error: failures
    }).annotateMerge(said("Items of a slice", "A page of them as they were written, the oldest first."))
  )
  .add(
    get("events", "/api/events", {
      query: {
        session: text("Only of this session"),
        tool: text("Only of this name"),
        path: text("Only those that name a path which has this in it"),
        ...paging
      },
      success: Model.EventPage,
      error: failures
    }).annotateMerge(
      said("Events", "A page of what the logs of all sessions tell, the oldest first: calls of tools above all.")
    )
  )

const filesystem = HttpApiGroup.make("filesystem")
  .add(
    get("filesystem", "/api/filesystem/meta", { query: at, success: Model.FilesystemMeta, error: failures }).annotateMerge(
      said("What files there are", "How many, how large, and since when. 404 where a dump has no archive.")
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
    }).annotateMerge(said("The tree", "Every file, link and empty directory in path order; empty where there is no archive."))
  )
  .add(
    get("file", "/api/filesystem/file", {
      query: {
        ...at,
        path: text("As the tree says it"),
        part: number("Of a text over 8 MiB: which part, from 0"),
        line: number("Of a text over 8 MiB, instead of `part`: the part in which this line begins, from 1", 1)
      },
      success: Model.FileContent,
      error: failures
    }).annotateMerge(
      said(
        "A file",
        "Text as text, 8 MiB at a time; other bytes as base64, up to 16 MiB. 404 for a path or a part that is not there."
      )
    )
  )
  .add(
    get("diff", "/api/filesystem/diff", {
      query: { ...at, with: text("The tree before: an id of /api/snapshots. Default: what is shown by itself") },
      success: Model.Diff,
      error: failures
    }).annotateMerge(
      said("What is otherwise", "From `with` to `at`, in path order; a file that has only got another name is renamed.")
    )
  )
  .add(
    get("history", "/api/filesystem/history", {
      query: { path: text("A file, or a directory with what is below it") },
      success: Schema.Array(Model.HistoryItem),
      error: failures
    }).annotateMerge(
      said("Who changed it", "Calls of tools and changes of the journal that concern the path, the latest first.")
    )
  )

const journal = HttpApiGroup.make("journal")
  .add(
    get("journal", "/api/journal", {
      query: {
        after: number("Those after this position, in order"),
        before: number("Those before this position, the latest first. Default: from the end", 1),
        limit: paging.limit,
        path: text("Only of this path and what is below it, answers too"),
        correlation: text("Only of this correlation id")
      },
      success: Model.JournalPage,
      error: failures
    }).annotateMerge(
      said("The journal", "A page of what was asked of the filesystem and answered. 404 where there is no journal.")
    )
  )
  .add(
    get("changes", "/api/journal/changes", {
      query: {
        before: number("Those asked for before this position. Default: from the end", 1),
        limit: paging.limit,
        path: text("Only of this path and what is below it")
      },
      success: Model.JournalChanges,
      error: failures
    }).annotateMerge(
      said("What changed", "A page of the changes in the journal, the latest first: a request and its answers are one.")
    )
  )
  .add(
    get("entry", "/api/journal/:position", {
      params: { position: Schema.NumberFromString.pipe(Schema.decodeTo(whole(0, maxCount))) },
      success: Model.JournalEntry,
      error: failures
    }).annotateMerge(said("An entry", "Whole, with the content that it holds."))
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
