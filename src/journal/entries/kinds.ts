/** The table of the kinds of request, with one row per kind, for branches, leaves and replays. */
import { createWith } from "./create.ts"
import type { CreateMode, Efferent, FileSystemEntry, Terminal } from "./files.ts"

interface Kind {
  readonly operation: string
  /** The tags of the entries that can end an answer, in addition to FileFault. */
  readonly answers: ReadonlyArray<Terminal["_tag"]>
  /** The permissions and the options that a leaf needs for the request. A kind that needs a permission is a change. */
  readonly needs: ReadonlyArray<"write" | "remove" | "extended">
}

export const kinds = {
  FileRead: { operation: "read", answers: ["FileContent", "FileContentChunk"], needs: [] },
  FileList: { operation: "list", answers: ["FileListing"], needs: [] },
  FileStat: { operation: "stat", answers: ["FileMetadata"], needs: [] },
  FileWrite: { operation: "write", answers: ["FileWritten"], needs: ["write"] },
  FileWriteChunk: { operation: "write", answers: ["FileWritten"], needs: ["write"] },
  FileDelete: { operation: "delete", answers: ["FileDeleted"], needs: ["remove"] },
  FileMakeDirectory: { operation: "mkdir", answers: ["FileDirectoryMade"], needs: ["write", "extended"] },
  FileMove: { operation: "move", answers: ["FileMoved"], needs: ["write", "remove", "extended"] },
  FileEdit: { operation: "edit", answers: ["FileEdited"], needs: ["write", "extended"] },
  FileMakeLink: { operation: "symlink", answers: ["FileLinkMade"], needs: ["write", "extended"] },
  FileSetAttributes: { operation: "setAttributes", answers: ["FileAttributesSet"], needs: ["write", "extended"] }
} as const satisfies Record<Efferent["_tag"], Kind>

export type Intents = { readonly [K in Efferent["_tag"]]: Extract<Efferent, { readonly _tag: K }> }

/** The `createMode` of a request for each write mode of the port. */
export const createModes = { create: "create", replace: "overwrite", append: "append" } as const

export const portModes: Record<CreateMode, keyof typeof createModes> = {
  create: "create",
  overwrite: "replace",
  replace: "replace",
  append: "append",
  appendExisting: "append"
}

export type Fields<A> = { readonly [K in keyof A]: {} extends Pick<A, K> ? A[K] | undefined : A[K] }

export interface EntryClass<A> {
  new (fields: never): A
  readonly prototype: A
  readonly fields: { readonly _tag: { readonly schema: { readonly literal: string } } }
}

/** Returns the fields that are not `undefined`, because no schema of an entry accepts `undefined`. */
export const defined = (fields: object): object => {
  const out: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) out[name] = value
  return out
}

const tags = new Map<unknown, string>()

/** Creates an entry. The fields are valid by construction, so no schema checks them. Omits fields that are `undefined`. */
export const make = <A extends FileSystemEntry>(type: EntryClass<A>, fields: Fields<Omit<A, "_tag">>): A => {
  let tag = tags.get(type)
  if (tag === undefined) tags.set(type, (tag = type.fields._tag.schema.literal))
  const entry = createWith(type.prototype as object)
  entry["_tag"] = tag
  const given = fields as Record<string, unknown>
  for (const name in given) if (given[name] !== undefined) entry[name] = given[name]
  return entry as unknown as A
}
