/**
 * Files in one SQLite database. Each primitive operation is one transaction in one synchronous step, so it is done
 * completely or not at all.
 */
import { DateTime, Effect, Stream } from "effect"
import { type Backend, Entry, Fault, Filesystem, FsError, FsPath, Rules } from "../../src/index.ts"
import { DatabaseSync } from "node:sqlite"

/**
 * A row refers to the row of its directory; a directory has no bytes. Names are unique in a directory, and only empty
 * directories can be deleted.
 */
const schema = `
  PRAGMA journal_mode = WAL;
  CREATE TABLE IF NOT EXISTS entry (
    id INTEGER PRIMARY KEY, parent INTEGER REFERENCES entry, name TEXT NOT NULL,
    created INTEGER NOT NULL, modified INTEGER NOT NULL, bytes BLOB, UNIQUE (parent, name)
  ) STRICT;
  INSERT OR IGNORE INTO entry VALUES (1, NULL, '', unixepoch() * 1000, unixepoch() * 1000, NULL)`

interface Row {
  readonly id: number
  readonly name: string
  readonly created: number
  readonly modified: number
  readonly size: number | null
}

const refuse = (fault: Backend.Fault): never => {
  throw Object.assign(new Error(fault._tag), { fault })
}

/** Faults by SQLite's result codes; any other code is an IoError. */
const faults: Record<number, Backend.Fault> = {
  5: Fault.accessDenied("busy"),
  8: Fault.accessDenied("permission"),
  13: Fault.diskFull,
  18: Fault.diskFull,
  787: Fault.directoryNotEmpty,
  2067: Fault.alreadyExists
}

const faultOf = (cause: unknown): Backend.Fault => {
  const { errcode, fault } = cause as { readonly errcode?: number; readonly fault?: Backend.Fault }
  if (fault !== undefined) return fault
  if (errcode === undefined) throw cause // a bug, not a failure
  return faults[errcode] ?? faults[errcode & 255] ?? { ...Fault.ioError("SQLite failed", `SQLITE_${errcode}`), cause }
}

const kindOf = ({ size }: Row): Entry.Kind => (size === null ? "directory" : "file")

const statOf = (path: FsPath.FsPath, row: Row): Entry.FileStat =>
  Entry.stat({
    path,
    kind: kindOf(row),
    sizeBytes: row.size ?? 0,
    createdAt: DateTime.makeUnsafe(row.created),
    modifiedAt: DateTime.makeUnsafe(row.modified)
  })

const over = (db: DatabaseSync, options: Rules.CommonOptions): Backend.Backend => {
  const rows = "SELECT id, name, created, modified, length(bytes) AS size FROM entry"
  const top = db.prepare(`${rows} WHERE id = 1`)
  const child = db.prepare(`${rows} WHERE parent = ? AND name = ?`)
  const children = db.prepare(`${rows} WHERE parent = ?`)
  const content = db.prepare("SELECT bytes FROM entry WHERE id = ?")
  const insert = db.prepare("INSERT INTO entry VALUES (NULL, ?, ?, ?3, ?3, ?4)")
  const replace = db.prepare("UPDATE entry SET modified = ?, bytes = ? WHERE id = ?")
  const touch = db.prepare("UPDATE entry SET modified = ? WHERE id = ?")
  const move = db.prepare("UPDATE entry SET parent = ?, name = ? WHERE id = ?")
  const drop = db.prepare("DELETE FROM entry WHERE id = ?")

  const step =
    (begin: "BEGIN" | "BEGIN IMMEDIATE") =>
    <A>(run: (now: number) => A): Effect.Effect<A, Backend.Fault> =>
      Effect.clockWith((clock) => {
        const transaction = (): A => {
          db.exec(begin)
          try {
            const answer = run(clock.currentTimeMillisUnsafe())
            db.exec("COMMIT")
            return answer
          } finally {
            if (db.isTransaction) db.exec("ROLLBACK")
          }
        }
        return Effect.try({ try: transaction, catch: faultOf })
      })
  const look = step("BEGIN")
  const change = step("BEGIN IMMEDIATE")

  const find = (path: FsPath.FsPath): Row | undefined => {
    let at = top.get() as Row | undefined
    for (const name of FsPath.segments(path)) at = at && (child.get(at.id, name) as Row | undefined)
    return at
  }
  const get = (path: FsPath.FsPath): Row => find(path) ?? refuse(Fault.notFound)
  const bytesOf = (row: Row) => content.get(row.id)!["bytes"] as Uint8Array
  /** Returns the directory in which an entry is made, replaced or removed. */
  const holder = (path: FsPath.FsPath, now: number): number => {
    if (path === FsPath.root) refuse(Fault.accessDenied("root"))
    const row = get(FsPath.parent(path))
    if (row.size !== null) refuse(Fault.notADirectory)
    touch.run(now, row.id)
    return row.id
  }

  const put = (path: FsPath.FsPath, bytes: Uint8Array, mode: "create" | "replace" | "append") =>
    change((now) => {
      const row = find(path)
      if (row === undefined) insert.run(holder(path, now), FsPath.name(path), now, bytes)
      else if (mode === "create") refuse(Fault.alreadyExists)
      else if (row.size === null) refuse(Fault.notAFile)
      else replace.run(now, mode === "append" ? Buffer.concat([bytesOf(row), bytes]) : bytes, row.id)
      return statOf(path, get(path))
    })

  const rules = Rules.fromOptions(options)
  return Rules.enforce({
    info: { name: "Sqlite", root: "/", caseSensitive: true, readOnly: Rules.isReadOnly(rules), confinement: "virtual" },
    rules,
    locks: Filesystem.locks(),
    stat: (path) =>
      look(() => {
        const row = find(path)
        return row && statOf(path, row)
      }),
    list: (path) =>
      look(() => {
        const row = get(path)
        if (row.size !== null) refuse(Fault.notADirectory)
        const found = children.all(row.id) as ReadonlyArray<unknown> as ReadonlyArray<Row>
        return found.map((row) => ({ name: row.name, kind: kindOf(row), addressable: true, sizeBytes: row.size ?? 0 }))
      }),
    open: (path) =>
      look(() => {
        const row = get(path)
        if (row.size === null) refuse(Fault.notAFile)
        const bytes = bytesOf(row)
        return { stat: statOf(path, row), read: (offset, length) => Effect.sync(() => bytes.slice(offset, offset + length)) }
      }),
    write: (path, bytes, mode, how) => {
      const commit = how?.commit ?? ((publish) => publish)
      // The bytes are copied, because the caller may reuse its arrays.
      if (bytes instanceof Uint8Array) return Effect.suspend(() => commit(put(path, bytes.slice(), mode)))
      const chunks = Stream.runCollect(Stream.map(bytes, (chunk) => chunk.slice()))
      return Effect.flatMap(chunks, (chunks) => commit(put(path, Buffer.concat(chunks), mode)))
    },
    makeDirectory: (path) =>
      change((now) => {
        if (find(path) !== undefined) refuse(Fault.alreadyExists)
        insert.run(holder(path, now), FsPath.name(path), now, null)
      }),
    remove: (path) =>
      change((now) => {
        holder(path, now)
        drop.run(get(path).id)
      }),
    rename: (from, to, options) =>
      change((now) => {
        holder(from, now)
        const row = get(from)
        if (from !== to && FsPath.isWithin(from, to)) {
          refuse(Fault.invalidArgument("to", "a directory cannot be moved into itself"))
        }
        const into = holder(to, now)
        const target = find(to)
        if (target !== undefined && !options.replace) refuse(Fault.alreadyExists)
        if (target !== undefined && target.id !== row.id) {
          if (kindOf(target) !== kindOf(row)) refuse(target.size === null ? Fault.notAFile : Fault.notADirectory)
          drop.run(target.id)
        }
        move.run(into, FsPath.name(to), row.id)
      })
  })
}

/** Makes a filesystem in a SQLite file, or in memory for `:memory:`. */
export const layer = ({ file, ...options }: Rules.CommonOptions & { readonly file: string }) => {
  const open = Effect.try({
    try: () => {
      const db = new DatabaseSync(file)
      db.exec(schema)
      return db
    },
    catch: () => new FsError.Unavailable({ operation: "Sqlite.layer", path: "", detail: "its database cannot be opened" })
  })
  const opened = Effect.acquireRelease(open, (db) => Effect.sync(() => db.close()))
  return Filesystem.layer(Effect.map(opened, (db) => over(db, options)))
}
