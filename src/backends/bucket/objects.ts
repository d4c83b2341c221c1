/** The requests of S3 that the backend needs, with parsed answers. */
import type * as Xml from "effect/encoding/Xml"
import * as Effect from "effect/Effect"
import { accessDenied, ioError, type Fault } from "../../model/Fault.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import { crypto, randomUUID } from "../../runtime/node.ts"
import { attributesOf, type EntryAttributes, headersOf, metadataPrefix } from "./attributes.ts"
import { type Answer, childrenOf, type Client, hashHeader, isTransient, parseXml, statusOf, textOf } from "./client.ts"

export interface ObjectHead {
  /** The entity tag, with the quotes of the header. */
  readonly etag: string
  readonly sizeBytes: number
  readonly modifiedMillis: number | undefined
  /** The id of the write that stored the object, if this library stored it. */
  readonly writeId: string | undefined
  readonly attributes: EntryAttributes
  /** The headers and metadata of other programs, which a change of attributes must keep. */
  readonly foreign: Readonly<Record<string, string>>
}

export interface ListedObject {
  readonly key: string
  readonly sizeBytes: number
  readonly modifiedMillis: number | undefined
}

export interface Page {
  readonly objects: ReadonlyArray<ListedObject>
  /** The common prefixes of keys with a further delimiter. */
  readonly prefixes: ReadonlyArray<string>
  /** The continuation token of the next page. */
  readonly next: string | undefined
}

/** The condition of a write. If the condition is not met, the store answers 412, 409 or, for a missing object, 404. */
export type Condition =
  | { readonly _tag: "None" }
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Match"; readonly etag: string }

export const noCondition: Condition = { _tag: "None" }
export const absent: Condition = { _tag: "Absent" }

/**
 * The form of an entity tag in `If-Match` of a write. radosgw needs the tag without quotes, because it compares the quotes too.
 */
export type TagForm = "quoted" | "bare"

/** The metadata of a new object. */
export type Labels = Partial<Pick<ObjectHead, "attributes" | "foreign">>

const labelHeaders = ({ attributes, foreign }: Labels): Record<string, string> => ({
  ...foreign,
  ...(attributes === undefined ? {} : headersOf(attributes))
})

/** The maximum number of parts that S3 permits. */
export const maxParts = 10_000

export const tooManyParts = (partSize: number): Fault =>
  ioError(`an object may have at most ${maxParts} parts of ${partSize} bytes`, "EFBIG")

/**
 * The fault for an object that another program changed between a check and a write. The fault is a shared constant, so that
 * callers can compare with `===`.
 */
export const overtaken: Fault = accessDenied("busy", "other programs keep changing the object")

export interface Part {
  readonly number: number
  readonly etag: string
}

/** The result of a write: the tag of the stored object, or `Refused` if the condition failed. */
export type Stored = { readonly _tag: "Stored"; readonly etag: string } | { readonly _tag: "Refused" }

const refusedWrite: Stored = { _tag: "Refused" }

const writeIdHeader = `${metadataPrefix}write`

const bare = (etag: string): string => etag.replace(/^W\//, "").replace(/^"|"$/g, "")

export const isSameTag = (self: string, that: string): boolean => bare(self) === bare(that)

const conditionHeaders = (condition: Condition, form: TagForm): Record<string, string> =>
  condition._tag === "None"
    ? {}
    : condition._tag === "Absent"
      ? { "if-none-match": "*" }
      : { "if-match": form === "bare" ? bare(condition.etag) : `"${bare(condition.etag)}"` }

const millisOf = (text: string): number | undefined => {
  const millis = Date.parse(text)
  return Number.isNaN(millis) ? undefined : millis
}

const contentHeaders: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-type",
  "expires"
])

const foreignOf = (headers: Answer["headers"]): Record<string, string> => {
  const foreign: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const isMetadata = name.startsWith("x-amz-meta-") && !name.startsWith(metadataPrefix)
    if (value !== undefined && (isMetadata || contentHeaders.has(name))) foreign[name] = value
  }
  return foreign
}

const headOf = ({ headers }: Answer, sizeBytes: number): ObjectHead => {
  return {
    etag: headers["etag"] ?? "",
    sizeBytes,
    modifiedMillis: millisOf(headers["last-modified"] ?? ""),
    writeId: headers[writeIdHeader],
    attributes: attributesOf(headers),
    foreign: foreignOf(headers)
  }
}

export const malformed: Fault = ioError(
  "the store's answer does not conform to the S3 protocol; check that the endpoint is that of an S3 store",
  "EPROTO"
)

const decodeKey = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    return undefined
  }
}

const pageOf = (root: Xml.Element | undefined): Page | undefined => {
  if (root?.name !== "ListBucketResult") return undefined
  const isEncoded = textOf(root, "EncodingType") === "url"
  const keyOf = (text: string) => (isEncoded ? decodeKey(text) : text)
  const objects: Array<ListedObject> = []
  for (const item of childrenOf(root, "Contents")) {
    const key = keyOf(textOf(item, "Key"))
    const sizeBytes = Number(textOf(item, "Size"))
    if (key === undefined || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0) return undefined
    objects.push({ key, sizeBytes, modifiedMillis: millisOf(textOf(item, "LastModified")) })
  }
  const prefixes: Array<string> = []
  for (const item of childrenOf(root, "CommonPrefixes")) {
    const prefix = keyOf(textOf(item, "Prefix"))
    if (prefix === undefined) return undefined
    prefixes.push(prefix)
  }
  const token = textOf(root, "NextContinuationToken")
  return { objects, prefixes, next: textOf(root, "IsTruncated") === "true" && token !== "" ? token : undefined }
}

/** Tests whether every store reads the key unchanged from XML. Some stores remove blanks at both ends. */
export const isBatchable = (key: string): boolean => key === key.trim() && !/[\0-\x1f\x7f\ufffe\uffff]/.test(key)

/** Returns the MD5 of a batch's body, or `undefined` on machines that forbid MD5. */
const md5 = (bytes: Uint8Array): string | undefined => {
  try {
    return crypto().createHash("md5").update(bytes).digest("base64")
  } catch {
    return undefined
  }
}

/** An object that was not deleted. Without a key, the object may be any object of the batch. */
export interface Failed {
  readonly key: string | undefined
  readonly fault: Fault
  readonly isTransient: boolean
}

const escapeXml = (text: string): string => text.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`)

const encoder = new TextEncoder()

const base64 = (hex: string): string => Buffer.from(hex, "hex").toString("base64")

export type Got = { readonly head: ObjectHead; readonly bytes: Uint8Array } | "changed" | undefined

export interface Objects {
  readonly head: (key: string) => Effect.Effect<ObjectHead | undefined, Fault>
  /**
   * Reads up to `length` bytes from `offset`. Returns `undefined` for a missing object. Returns "changed" for an object whose
   * tag is not `etag`, or that has no bytes there.
   */
  readonly get: (key: string, offset: number, length: number, etag?: string) => Effect.Effect<Got, Fault>
  /** Stores an object. `hash` is the SHA-256 of the bytes, which the store checks. */
  readonly put: (
    key: string,
    bytes: Uint8Array,
    hash: string,
    condition: Condition,
    form: TagForm,
    labels?: Labels
  ) => Effect.Effect<Stored, Fault>
  /** Deletes an object. Returns false if the condition failed. A missing object counts as deleted. */
  readonly remove: (key: string, condition: Condition, form: TagForm) => Effect.Effect<boolean, Fault>
  readonly list: (options: {
    readonly prefix: string
    readonly delimiter?: "/" | undefined
    readonly limit?: number | undefined
    readonly after?: string | undefined
  }) => Effect.Effect<Page, Fault>
  /**
   * Deletes up to 1,000 objects in one request, and returns the objects that were not deleted. A missing object counts as
   * deleted. Returns `undefined` if the store refuses the request.
   */
  readonly removeMany: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Failed> | undefined, Fault>
  /** The maximum number of attempts of a deletion, and the pause after each attempt. */
  readonly timings: Pick<Client, "attempts" | "pause">
  /**
   * Copies an object of at most 5 GiB in the store, if it still has the tag. Returns `Refused` if the condition on the source
   * or the target failed.
   */
  readonly copy: (
    from: Source,
    key: string,
    condition: Condition,
    form: TagForm,
    labels: Labels
  ) => Effect.Effect<Stored, Fault>
  /**
   * Copies a range of an object, or the whole object, as a part. Returns `undefined` if the object is missing or no longer has
   * the tag.
   */
  readonly copyPart: (
    upload: Upload,
    number: number,
    from: Source,
    range?: { readonly offset: number; readonly length: number }
  ) => Effect.Effect<Part | undefined, Fault>
  readonly startUpload: (key: string, labels?: Labels) => Effect.Effect<Upload, Fault>
  readonly putPart: (upload: Upload, number: number, bytes: Uint8Array) => Effect.Effect<Part, Fault>
  readonly complete: (
    upload: Upload,
    parts: ReadonlyArray<Part>,
    condition: Condition,
    form: TagForm
  ) => Effect.Effect<Stored, Fault>
  readonly abort: (upload: Upload) => Effect.Effect<void, Fault>
  /** Aborts an upload, and ignores failures. Waits at most 10 seconds, because the caller has failed or was interrupted. */
  readonly abandon: (upload: Upload) => Effect.Effect<void>
}

/** The source of a copy. */
export interface Source {
  readonly key: string
  readonly etag: string
  readonly sizeBytes: number
}

export interface Upload {
  readonly key: string
  readonly id: string
  readonly writeId: string
}

export const make = ({ attempts, faultOf, pause, refused, send, sourceOf }: Client): Objects => {
  const head: Objects["head"] = (key) =>
    Effect.flatMap(send({ method: "HEAD", key }), (answer) => {
      if (answer.status === 404) return Effect.succeed(undefined)
      if (answer.status !== 200) return refused(answer)
      const sizeBytes = Number(answer.headers["content-length"] ?? "")
      return Number.isSafeInteger(sizeBytes) ? Effect.succeed(headOf(answer, sizeBytes)) : Effect.fail(malformed)
    })

  /** Returns the value for a missing object. Fails if the answer 404 means another refusal, such as a missing bucket. */
  const missingAs = <A>(answer: Answer, value: A): Effect.Effect<A, Fault> =>
    Effect.catch(refused(answer), (fault) => (fault._tag === "NotFound" ? Effect.succeed(value) : Effect.fail(fault)))

  /** Finds out whether a write whose answer was lost was applied: if so, the object has the id of this write. */
  const settle = (key: string, writeId: string): Effect.Effect<Stored, Fault> =>
    Effect.map(head(key), (found): Stored => (found?.writeId === writeId ? { _tag: "Stored", etag: found.etag } : refusedWrite))

  const stored = (answer: Answer, key: string, writeId: string): Effect.Effect<Stored, Fault> => {
    if (answer.status === 200) return Effect.succeed({ _tag: "Stored", etag: answer.headers["etag"] ?? "" })
    if (answer.status === 412 || answer.status === 409 || answer.status === 404) {
      // A store answers 404 to `If-Match` on a missing object, but also for a missing bucket.
      if (answer.isRepeated) return settle(key, writeId)
      return answer.status === 404 ? missingAs(answer, refusedWrite) : Effect.succeed(refusedWrite)
    }
    return refused(answer)
  }

  /** Reads the answer to a request with `answersLate`. */
  const storedLate = (answer: Answer, key: string, writeId: string, name: string): Effect.Effect<Stored, Fault> =>
    answer.status !== 200
      ? stored(answer, key, writeId)
      : Effect.flatMap(parseXml(answer.body), (root) =>
          root?.name === name
            ? Effect.succeed({ _tag: "Stored", etag: `"${bare(textOf(root, "ETag"))}"` } as const)
            : Effect.filterOrFail(
                settle(key, writeId),
                ({ _tag }) => _tag === "Stored",
                () => malformed
              )
        )

  const sourceHeaders = ({ etag, key }: Source): Record<string, string> => ({
    "x-amz-copy-source": sourceOf(key),
    "x-amz-copy-source-if-match": `"${bare(etag)}"`
  })

  const failedOf = (error: Xml.Element): Failed => {
    const code = textOf(error, "Code")
    const status = statusOf(code)
    const fault = faultOf({ code, message: textOf(error, "Message"), status })
    return { key: textOf(error, "Key"), fault, isTransient: isTransient(status) }
  }

  const abort: Objects["abort"] = ({ id, key }) => Effect.asVoid(send({ method: "DELETE", key, query: { uploadId: id } }))

  return {
    head,
    timings: { attempts, pause },
    removeMany: (keys) => {
      const objects = keys.map((key) => `<Object><Key>${escapeXml(key)}</Key></Object>`)
      const body = encoder.encode(
        `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>${objects.join("")}</Delete>`
      )
      const hash = md5(body)
      const headers = hash === undefined ? { "x-amz-checksum-sha256": base64(sha256(body)) } : { "content-md5": hash }
      return Effect.flatMap(
        send({
          method: "POST",
          query: { delete: "" },
          headers: { ...headers, "content-type": "application/xml" },
          body,
          answersLate: true
        }),
        (answer) =>
          answer.status !== 200
            ? Effect.succeed(undefined)
            : Effect.map(parseXml(answer.body), (root): ReadonlyArray<Failed> => {
                if (root?.name !== "DeleteResult") return [{ key: undefined, fault: malformed, isTransient: true }]
                return childrenOf(root, "Error")
                  .filter((error) => textOf(error, "Code") !== "NoSuchKey")
                  .map(failedOf)
              })
      )
    },
    copy: (from, key, condition, form, labels) =>
      Effect.suspend(() => {
        const writeId = randomUUID()
        return Effect.flatMap(
          send({
            method: "PUT",
            key,
            headers: {
              ...conditionHeaders(condition, form),
              ...labelHeaders(labels),
              ...sourceHeaders(from),
              "x-amz-metadata-directive": "REPLACE",
              "x-amz-tagging-directive": "REPLACE",
              [writeIdHeader]: writeId
            },
            workBytes: from.sizeBytes,
            answersLate: true
          }),
          (answer) => storedLate(answer, key, writeId, "CopyObjectResult")
        )
      }),
    copyPart: ({ id, key }, number, from, range) =>
      Effect.flatMap(
        send({
          method: "PUT",
          key,
          query: { partNumber: String(number), uploadId: id },
          headers: {
            ...sourceHeaders(from),
            ...(range === undefined
              ? {}
              : { "x-amz-copy-source-range": `bytes=${range.offset}-${range.offset + range.length - 1}` })
          },
          workBytes: range?.length ?? from.sizeBytes,
          answersLate: true
        }),
        (answer): Effect.Effect<Part | undefined, Fault> => {
          if (answer.status === 412) return Effect.succeed(undefined)
          if (answer.status === 404) return missingAs(answer, undefined)
          if (answer.status !== 200) return refused(answer)
          return Effect.flatMap(parseXml(answer.body), (root) => {
            const etag = textOf(root, "ETag")
            return root?.name === "CopyPartResult" && etag !== "" ? Effect.succeed({ number, etag }) : Effect.fail(malformed)
          })
        }
      ),
    get: (key, offset, length, etag) =>
      Effect.flatMap(
        send({
          method: "GET",
          key,
          headers: {
            range: `bytes=${offset}-${offset + length - 1}`,
            ...(etag === undefined ? {} : { "if-match": `"${bare(etag)}"` })
          },
          // An error has an XML document, which may be longer than the requested range.
          maxBytes: Math.max(length, 64 * 1024)
        }),
        (answer): Effect.Effect<Got, Fault> => {
          if (answer.status === 412 || answer.status === 416) return Effect.succeed("changed" as const)
          if (answer.status === 404) return missingAs(answer, undefined)
          // A store may ignore the range, and send a small object whole.
          if (answer.status === 200 && offset === 0 && answer.body.length <= length) {
            return Effect.succeed({ head: headOf(answer, answer.body.length), bytes: answer.body })
          }
          if (answer.status !== 206) return refused(answer)
          const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers["content-range"] ?? "")
          const total = Number(range?.[3] ?? Number.NaN)
          const expected = Math.min(length, total - offset)
          const isWhole = Number(range?.[1] ?? -1) === offset && answer.body.length === expected
          return isWhole
            ? Effect.succeed({ head: headOf(answer, total), bytes: answer.body })
            : Effect.fail(ioError(`the store sent ${answer.body.length} bytes where ${expected} were asked for`, "EPROTO"))
        }
      ),
    put: (key, bytes, hash, condition, form, labels = {}) =>
      Effect.suspend(() => {
        const writeId = randomUUID()
        return Effect.flatMap(
          send({
            method: "PUT",
            key,
            body: bytes,
            headers: {
              ...conditionHeaders(condition, form),
              ...labelHeaders(labels),
              [writeIdHeader]: writeId,
              [hashHeader]: hash
            }
          }),
          (answer) => stored(answer, key, writeId)
        )
      }),
    remove: (key, condition, form) =>
      Effect.flatMap(send({ method: "DELETE", key, headers: conditionHeaders(condition, form) }), (answer) =>
        answer.status === 204 || answer.status === 200 || (answer.status === 404 && condition._tag !== "None")
          ? Effect.succeed(true)
          : answer.status === 412 || answer.status === 409
            ? Effect.map(head(key), (found) => answer.isRepeated && found === undefined)
            : refused(answer)
      ),
    list: ({ after, delimiter, limit, prefix }) =>
      Effect.flatMap(
        send({
          method: "GET",
          query: {
            "list-type": "2",
            "encoding-type": "url",
            prefix,
            ...(delimiter === undefined ? {} : { delimiter }),
            ...(limit === undefined ? {} : { "max-keys": String(limit) }),
            ...(after === undefined ? {} : { "continuation-token": after })
          }
        }),
        (answer) =>
          answer.status === 200
            ? Effect.flatMap(parseXml(answer.body), (root) => {
                const page = pageOf(root)
                // With a store that returns the same token again, a listing would never end.
                const isEndless = page?.next !== undefined && page.next === after
                return page === undefined || isEndless ? Effect.fail(malformed) : Effect.succeed(page)
              })
            : refused(answer)
      ),
    startUpload: (key, labels = {}) =>
      Effect.suspend(() => {
        const writeId = randomUUID()
        return Effect.flatMap(
          send({
            method: "POST",
            key,
            query: { uploads: "" },
            headers: { ...labelHeaders(labels), [writeIdHeader]: writeId }
          }),
          (answer) =>
            answer.status !== 200
              ? refused(answer)
              : Effect.flatMap(parseXml(answer.body), (root) => {
                  const id = textOf(root, "UploadId")
                  return id === "" ? Effect.fail(malformed) : Effect.succeed({ key, id, writeId })
                })
        )
      }),
    putPart: ({ id, key }, number, bytes) =>
      Effect.flatMap(
        send({ method: "PUT", key, query: { partNumber: String(number), uploadId: id }, body: bytes }),
        (answer) => {
          const etag = answer.headers["etag"]
          return answer.status !== 200 ? refused(answer) : etag ? Effect.succeed({ number, etag }) : Effect.fail(malformed)
        }
      ),
    complete: ({ id, key, writeId }, parts, condition, form) => {
      const list = parts.map(
        ({ etag, number }) => `<Part><PartNumber>${number}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`
      )
      return Effect.flatMap(
        send({
          method: "POST",
          key,
          query: { uploadId: id },
          headers: { ...conditionHeaders(condition, form), "content-type": "application/xml" },
          body: encoder.encode(`<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`),
          answersLate: true
        }),
        (answer) => storedLate(answer, key, writeId, "CompleteMultipartUploadResult")
      )
    },
    abort,
    abandon: (upload) => Effect.ignore(Effect.timeoutOption(abort(upload), "10 seconds"))
  }
}
