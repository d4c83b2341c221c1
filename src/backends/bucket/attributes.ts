/**
 * The modes, times and symlinks of entries, kept as metadata of their objects. Other programs can write any metadata, so an
 * invalid value counts as absent.
 */
import { pathTooLong, type Fault } from "../../model/Fault.ts"

export interface EntryAttributes {
  readonly mode?: number | undefined
  readonly modifiedMillis?: number | undefined
  /** The target, if the object is a symlink. */
  readonly link?: string | undefined
}

export const defaultFileMode = 0o644
export const defaultDirectoryMode = 0o755

/** The prefix of this library's metadata headers. */
export const metadataPrefix = "x-amz-meta-fs-algebra-"
const modeHeader = `${metadataPrefix}mode`
const timeHeader = `${metadataPrefix}mtime`
const linkHeader = `${metadataPrefix}link`

/** The maximum time of a `Date`, in milliseconds. */
const maxMillis = 8.64e15

/**
 * The maximum length of an encoded link target. S3 permits 2 KiB of metadata, and the other attributes need less than 256
 * bytes.
 */
const maxLinkHeader = 1792

const targetOf = (text: string): string | undefined => {
  try {
    const target = decodeURIComponent(text)
    return target !== "" && !target.includes("\0") && target.isWellFormed() ? target : undefined
  } catch {
    return undefined
  }
}

export const attributesOf = (headers: Readonly<Record<string, string | undefined>>): EntryAttributes => {
  const mode = headers[modeHeader]
  const time = headers[timeHeader]
  const link = headers[linkHeader]
  const modifiedMillis = /^-?\d{1,16}$/.test(time ?? "") ? Number(time) : Number.NaN
  return {
    mode: /^[0-7]{1,4}$/.test(mode ?? "") ? Number.parseInt(mode!, 8) & 0o777 : undefined,
    modifiedMillis: Math.abs(modifiedMillis) <= maxMillis ? modifiedMillis : undefined,
    link: link === undefined ? undefined : targetOf(link)
  }
}

export const headersOf = ({ link, mode, modifiedMillis }: EntryAttributes): Record<string, string> => ({
  ...(mode === undefined ? {} : { [modeHeader]: mode.toString(8) }),
  ...(modifiedMillis === undefined ? {} : { [timeHeader]: String(modifiedMillis) }),
  ...(link === undefined ? {} : { [linkHeader]: encodeURIComponent(link) })
})

/**
 * The size of each object that is a symlink. A listing contains no metadata, so the backend reads the metadata only of objects
 * of this size.
 */
export const linkSize = 1067

const encoder = new TextEncoder()

/** Returns the content of a symlink's object, for people who look at it with other programs. */
export const linkBody = (target: string): Uint8Array => {
  const body = new Uint8Array(linkSize).fill(0x0a)
  encoder.encodeInto(`fs-algebra symlink to ${encodeURIComponent(target)}`, body.subarray(0, linkSize - 1))
  return body
}

export const linkFault = (target: string): Fault | undefined =>
  encodeURIComponent(target).length > maxLinkHeader
    ? pathTooLong(`the store keeps link targets of at most ${maxLinkHeader} bytes, percent-encoded`)
    : undefined
