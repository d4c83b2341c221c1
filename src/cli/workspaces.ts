/** Implements the commands for whole workspaces of a store. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AlreadyExists, NotFound } from "../model/FsError.ts"
import * as Browse from "../repository/browse.ts"
import { create as createWorkspace } from "../repository/create.ts"
import type { StoreError } from "../repository/errors.ts"
import { type Head, HeadStore } from "../repository/HeadStore.ts"
import * as Maintenance from "../repository/maintenance.ts"
import { type CommitInfo, commits as commitsOf } from "../repository/past.ts"
import { checkName, isWorkspaceName } from "../repository/stores/heads.ts"
import { listLines, withProgress, writeDocument, writeRemark } from "./answer.ts"
import { Complaint, damagedCode, exitCodeOf, usage } from "./exit.ts"
import { forEachItem } from "./failure.ts"
import * as humanise from "./humanise.ts"
import { Change, commandLine, errorStyle, formatChange, type TextStyle } from "./look.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"
import { author, openStores, storeComplaint, withStoreComplaints } from "./stores.ts"

/** Runs an effect with the stores that `--store` names. The command has already refused a missing `--store`. */
const withStores =
  (create: boolean) =>
  <A, E extends { readonly _tag: string }, R>(effect: (store: string) => Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const { store = "", tokenFile } = yield* Settings
      const stores = yield* openStores(store, tokenFile, create)
      return yield* Effect.provide(withStoreComplaints(store)(effect(store)), stores)
    })

const withExisting = withStores(false)

const wrongName = Effect.fnUntraced(function* (
  _tag: "NotFound" | "AlreadyExists" | "Conflict",
  workspace: string,
  what: string,
  next: string,
  ...words: ReadonlyArray<string>
) {
  const { store = "" } = yield* Settings
  const { program } = yield* Screen
  const hint = `${next}: ${commandLine(program, ".")("workspaces", ...words, "--store", store)}`
  const message = `the workspace ${JSON.stringify(workspace)} ${what}`
  return yield* new Complaint({ error: { _tag, workspace, store }, message, hint, code: exitCodeOf(_tag) })
})

const missing = (workspace: string) => wrongName("NotFound", workspace, "does not exist", "List the workspaces", "list")

const explainNames = <R>(self: Effect.Effect<Head, StoreError | NotFound | AlreadyExists, R>) =>
  Effect.catchTags(self, {
    NotFound: ({ path }) => missing(path),
    AlreadyExists: ({ path }) =>
      wrongName("AlreadyExists", path, "exists already", "Choose another name, or look at the workspace", "log", path)
  })

const headFields = {
  workspace: Schema.String,
  sequence: Schema.Int,
  author: Schema.String,
  message: Schema.String,
  committedAt: Schema.DateTimeUtc,
  root: Schema.String
}
const Listed = Schema.Struct(headFields)

const formatCommit = (look: TextStyle, { author, committedAt, message, sequence }: Omit<Head, "root">): string =>
  `${look.yellow(`commit ${sequence}`)}  ${look.dim(humanise.time(committedAt))}  ${look.cyan(look.name(author))}  ${look.name(message)}`

const maxNameColumns = 40

export const list = withExisting(
  Effect.fnUntraced(function* (store) {
    const screen = yield* Screen
    const { json } = yield* Settings
    const { damage, workspaces: all } = yield* (yield* Browse.make).heads
    let width: number | undefined
    const sound = all.flatMap(({ head, workspace }) => (Result.isSuccess(head) ? [{ workspace, ...head.success }] : []))
    yield* listLines(Listed, Stream.fromIterable(sound), (look, item) => {
      width ??= Math.min(
        maxNameColumns,
        all.reduce((widest, { workspace }) => Math.max(widest, look.name(workspace).length), 0)
      )
      return `${look.bold(look.name(item.workspace).padEnd(width))}  ${formatCommit(look, item)}\n`
    })
    const damaged = [
      ...all.flatMap(({ head }) => (Result.isFailure(head) ? [head.failure] : [])),
      ...(damage === undefined ? [] : [damage])
    ]
    const { dim, name } = errorStyle(screen)
    if (!json) yield* screen.warn(dim(`${humanise.count(all.length, "workspace")} in ${name(store)}`))
    yield* forEachItem(damaged, (error) => Effect.fail(storeComplaint(store)(error)))
  })
)

const answerHead = (workspace: string, head: Head, verb: string) =>
  writeDocument(
    Listed,
    { workspace, ...head },
    (look) => `${verb} ${look.bold(look.name(workspace))}, ${formatCommit(look, head)}\n`
  )

export const create = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const { store = "" } = yield* Settings
  // Without a valid name, no store is created.
  if (!names.some(isWorkspaceName)) return yield* forEachItem(names, (name) => withStoreComplaints(store)(checkName(name)))
  yield* withStores(true)((store) =>
    forEachItem(names, (workspace) =>
      withStoreComplaints(store)(
        Effect.flatMap(explainNames(createWorkspace(workspace, author())), (head) => answerHead(workspace, head, "Created"))
      )
    )
  )
})

export const fork = (from: string, to: string) =>
  withExisting(() => Effect.flatMap(explainNames(Maintenance.fork(from, to)), (head) => answerHead(to, head, "Forked")))

const Deleted = Schema.Struct({ ...headFields, dryRun: Schema.Boolean })

const removeOne = Effect.fnUntraced(function* (workspace: string, dryRun: boolean) {
  const heads = yield* HeadStore
  const head = yield* heads.get(workspace)
  if (head === undefined) return yield* missing(workspace)
  if (!dryRun) {
    const isDeleted = yield* Effect.catch(heads.delete(workspace, head), (error) =>
      // If the answer was lost, a missing head means that the workspace was deleted.
      error.reason === "unavailable"
        ? Effect.flatMap(heads.get(workspace), (now) => (now === undefined ? Effect.succeed(true) : Effect.fail(error)))
        : Effect.fail(error)
    )
    if (!isDeleted) {
      yield* wrongName(
        "Conflict",
        workspace,
        "was changed meanwhile, and was not deleted",
        "Look at the workspace",
        "log",
        workspace
      )
    }
  }
  yield* writeDocument(
    Deleted,
    { workspace, ...head, dryRun },
    (look) => `${dryRun ? "Would delete" : "Deleted"} ${look.bold(look.name(workspace))}, ${formatCommit(look, head)}\n`
  )
})

export const remove = (names: ReadonlyArray<string>, dryRun: boolean) =>
  withExisting((store) =>
    Effect.gen(function* () {
      yield* forEachItem(names, (workspace) => withStoreComplaints(store)(removeOne(workspace, dryRun)))
      const screen = yield* Screen
      const { json } = yield* Settings
      if (json) return
      const { dim } = errorStyle(screen)
      yield* screen.warn(
        dim(
          dryRun ? "nothing has changed" : "the content of deleted workspaces stays in the store until workspaces gc deletes it"
        )
      )
    })
  )

const Collected = Schema.Struct({ deleted: Schema.Int, graceMillis: Schema.Finite, dryRun: Schema.Boolean })

const leastGrace = Duration.hours(2)

export const gc = ({
  dryRun,
  exclusive,
  grace = Duration.days(1)
}: {
  readonly grace: Duration.Duration | undefined
  readonly exclusive: boolean
  readonly dryRun: boolean
}) =>
  Effect.gen(function* () {
    if (!exclusive && Duration.isLessThan(grace, leastGrace)) {
      return yield* usage(
        "a grace period below two hours may delete content that another program has just stored",
        "Give a longer --grace, or --exclusive if no other program uses the store."
      )
    }
    yield* withExisting(
      Effect.fnUntraced(function* () {
        const { deleted } = yield* withProgress("Collecting")(Maintenance.collect({ grace, dryRun }))
        const answer = { deleted, graceMillis: Duration.toMillis(grace), dryRun }
        yield* writeDocument(
          Collected,
          answer,
          () =>
            `${dryRun ? "Would delete" : "Deleted"} ${humanise.count(deleted, "blob")} older than ${Duration.isZero(grace) ? "0s" : Duration.format(grace)} that no workspace needs\n`
        )
      })
    )
  })

const Verified = Schema.Struct({ workspace: Schema.String, nodes: Schema.Int, bytes: Schema.Int })

/** Returns the failure of a check. Missing and damaged nodes have an exit code of their own. */
const damageOf =
  (store: string, workspace: string | undefined) =>
  (error: StoreError): Complaint => {
    const complaint = storeComplaint(store)(error)
    if (error.reason !== "missing" && error.reason !== "corrupt") return complaint
    return new Complaint({
      error: { ...complaint.error, ...(workspace !== undefined && { workspace }) },
      message: workspace === undefined ? complaint.message : `workspace ${JSON.stringify(workspace)}: ${error.detail}`,
      hint: "Store the same content again, or restore the store or the workspace from a backup or a fork.",
      code: damagedCode
    })
  }

const verifyOne = Effect.fnUntraced(function* (store: string, workspace: string) {
  const head = yield* Effect.mapError((yield* HeadStore).get(workspace), damageOf(store, workspace))
  if (head === undefined) return yield* missing(workspace)
  const found = yield* Maintenance.verify(workspace).pipe(
    withProgress(`Verifying ${workspace}`),
    Effect.mapError(damageOf(store, workspace))
  )
  yield* writeDocument(
    Verified,
    { workspace, ...found },
    (look) =>
      `${look.bold(look.name(workspace))} is undamaged: ${humanise.count(found.nodes, "node")}, ${humanise.bytes(found.bytes)}\n`
  )
})

export const verify = (names: ReadonlyArray<string>) =>
  withExisting(
    Effect.fnUntraced(function* (store) {
      if (names.length > 0) return yield* forEachItem(names, (workspace) => verifyOne(store, workspace))
      const { damage, workspaces } = yield* (yield* Browse.make).heads
      const checks = workspaces.map(({ workspace }) => verifyOne(store, workspace))
      yield* forEachItem(
        damage === undefined ? checks : [...checks, Effect.fail(damageOf(store, undefined)(damage))],
        (check) => check
      )
    })
  )

const Logged = Schema.Struct({
  ...headFields,
  author: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  committedAt: Schema.NullOr(Schema.DateTimeUtc),
  isStored: Schema.Boolean
})
type Logged = typeof Logged.Type

const formatLogged = (look: TextStyle, { author, committedAt, isStored, message, root, sequence }: Logged): string => {
  const when = committedAt === null ? "time not recorded" : humanise.time(committedAt)
  const parts = [look.yellow(`commit ${sequence}`), look.dim(when), look.cyan(look.name(author ?? "author not recorded"))]
  return `${[...parts, look.name(message ?? "message not recorded"), look.dim(root)].join("  ")}${isStored ? "" : "  not stored"}\n`
}

export const log = (workspace: string, limit = 50) =>
  withExisting(
    Effect.fnUntraced(function* (store) {
      let last: CommitInfo | undefined
      let count = 0
      const commits = Stream.map(Stream.take(commitsOf(workspace), limit), (commit): Logged => {
        last = commit
        count++
        const { author = null, committedAt = null, message = null } = commit
        return { workspace, ...commit, author, message, committedAt }
      })
      yield* listLines(Logged, commits, formatLogged)
      const { isStored, sequence } = (last as CommitInfo | undefined) ?? { isStored: true, sequence: 1 }
      if (isStored && sequence === 1) return
      const { program } = yield* Screen
      if (isStored && count === limit) {
        const all = commandLine(program, ".")(
          "workspaces",
          "log",
          workspace,
          "--limit",
          `${sequence + count - 1}`,
          "--store",
          store
        )
        yield* writeRemark(`there are more commits than --limit allows; for all: ${all}`, { truncated: true, limit })
      } else if (isStored) {
        yield* writeRemark(
          "earlier commits cannot be shown, because the format of the last commit does not record earlier ones",
          {
            truncated: true,
            removedUntil: sequence - 1
          }
        )
      } else {
        const what = `the content of commit ${sequence}${sequence === 1 ? "" : " and all earlier commits"}`
        const check = commandLine(program, ".")("workspaces", "verify", workspace, "--store", store)
        yield* writeRemark(
          `${what} cannot be shown: workspaces gc has deleted it, or the store has lost it. To check what the workspace still needs: ${check}`,
          { truncated: true, removedUntil: sequence }
        )
      }
    })
  )

export const diff = (from: string, to: string) =>
  withExisting(
    Effect.fnUntraced(function* () {
      const browser = yield* Browse.make
      const [before, after] = [yield* browser.head(from), yield* browser.head(to)]
      const changes = yield* browser.differences({ root: before.root }, { root: after.root })
      yield* listLines(Change, Stream.fromIterable(changes), formatChange)
    })
  )
