/**
 * Builds ZIP archives byte by byte after APPNOTE 6.3.10, without the code in src. Tests can set any field to a wrong value. All
 * other fields are correct.
 */
import * as Zlib from "node:zlib"

/** The fields of one header whose values differ from the fields of the entry. */
export interface Lies {
  readonly signature?: number
  readonly version?: number
  readonly flags?: number
  readonly method?: number
  readonly crc?: number
  readonly packed?: number
  readonly size?: number
  readonly name?: string | Uint8Array
  readonly nameLength?: number
  readonly extra?: Uint8Array
  readonly extraLength?: number
}

export interface Part {
  readonly name: string | Uint8Array
  readonly content?: string | Uint8Array
  /** @default 0 */
  readonly method?: number
  /** The stored bytes, instead of the packed content. */
  readonly packed?: Uint8Array
  /** @default 0x800, names in UTF-8 */
  readonly flags?: number
  /** @default 3, Unix */
  readonly host?: number
  /** Type and permission bits. @default a file of mode 0644 */
  readonly mode?: number
  readonly extra?: Uint8Array
  readonly comment?: string
  readonly local?: Lies
  readonly central?: Lies & { readonly offset?: number; readonly disk?: number }
  /** Bytes after the data. @default a data descriptor where the flags say that there is one */
  readonly behind?: Uint8Array
  /** Bytes before the local header. */
  readonly before?: Uint8Array
  /** The index of an earlier part. Both parts have the same local header and data. */
  readonly sharing?: number
  /** True if the part has neither header nor data, only a directory entry. */
  readonly isGhost?: boolean
  /** True if the part is missing in the directory. */
  readonly isHidden?: boolean
}

export interface Ending {
  readonly before?: Uint8Array
  readonly comment?: string | Uint8Array
  readonly count?: number
  readonly countHere?: number
  readonly size?: number
  readonly offset?: number
  readonly disk?: number
  readonly commentLength?: number
  readonly after?: Uint8Array
  /** Bytes between the directory and the end records. */
  readonly between?: Uint8Array
  readonly zip64?: {
    readonly count?: number
    readonly size?: number
    readonly offset?: number
    readonly at?: number
    readonly disks?: number
    readonly signature?: number
    readonly length?: number
  }
}

export const bytesOf = (text: string | Uint8Array): Buffer =>
  typeof text === "string" ? Buffer.from(text, "utf8") : Buffer.from(text)

const fields = (...values: ReadonlyArray<readonly [size: 2 | 4 | 8, value: number]>): Buffer =>
  Buffer.concat(
    values.map(([size, value]) => {
      const out = Buffer.alloc(size)
      if (size === 2) out.writeUInt16LE(value & 0xffff)
      else if (size === 4) out.writeUInt32LE(value >>> 0)
      else out.writeBigUInt64LE(BigInt(value))
      return out
    })
  )

/** Returns one extra field. */
export const extra = (id: number, content: Uint8Array): Buffer => Buffer.concat([fields([2, id], [2, content.length]), content])

/** Returns an extra field of 64-bit sizes or offsets. */
export const wide = (...values: ReadonlyArray<number>): Buffer =>
  extra(1, Buffer.concat(values.map((value) => fields([8, value]))))

export const descriptor = (crc: number, packed: number, size: number, signed = true, isWide = false): Buffer =>
  Buffer.concat([
    signed ? fields([4, 0x08074b50]) : Buffer.alloc(0),
    fields([4, crc]),
    isWide ? fields([8, packed], [8, size]) : fields([4, packed], [4, size])
  ])

const none = Buffer.alloc(0)

export const build = (parts: ReadonlyArray<Part>, ending: Ending = {}): Uint8Array => {
  const out: Array<Uint8Array> = [ending.before ?? none]
  let at = out[0]!.length
  const central: Array<Buffer> = []
  const offsets: Array<number> = []
  const add = (bytes: Uint8Array): void => {
    out.push(bytes)
    at += bytes.length
  }
  for (const part of parts) {
    const content = bytesOf(part.content ?? "")
    const method = part.method ?? 0
    const packed = part.packed ?? (method === 8 ? Zlib.deflateRawSync(content) : content)
    const flags = part.flags ?? 0x800
    const crc = Zlib.crc32(content)
    const streamed = (flags & 8) !== 0
    const header = (lies: Lies, isLocal: boolean): readonly [Buffer, Buffer] => {
      const name = bytesOf(lies.name ?? part.name)
      const more = lies.extra ?? part.extra ?? none
      const later = isLocal && streamed
      return [
        Buffer.concat([
          fields(
            [2, lies.flags ?? flags],
            [2, lies.method ?? method],
            [4, 0x21_0000],
            [4, lies.crc ?? (later ? 0 : crc)],
            [4, lies.packed ?? (later ? 0 : packed.length)],
            [4, lies.size ?? (later ? 0 : content.length)],
            [2, lies.nameLength ?? name.length],
            [2, lies.extraLength ?? more.length]
          )
        ]),
        Buffer.concat([name, more])
      ]
    }
    const offset = part.sharing === undefined ? at + (part.before?.length ?? 0) : offsets[part.sharing]!
    offsets.push(offset)
    if (part.sharing === undefined && part.isGhost !== true) {
      if (part.before !== undefined) add(part.before)
      const lies = part.local ?? {}
      const [fixed, rest] = header(lies, true)
      add(Buffer.concat([fields([4, lies.signature ?? 0x04034b50], [2, lies.version ?? 20]), fixed, rest]))
      add(packed)
      add(part.behind ?? (streamed ? descriptor(crc, packed.length, content.length) : none))
    }
    if (part.isHidden === true) continue
    const lies = part.central ?? {}
    const [fixed, rest] = header(lies, false)
    const comment = bytesOf(part.comment ?? "")
    const mode = part.mode ?? 0o100644
    central.push(
      Buffer.concat([
        fields([4, lies.signature ?? 0x02014b50], [2, ((part.host ?? 3) << 8) | 20], [2, lies.version ?? 20]),
        fixed,
        fields([2, comment.length], [2, lies.disk ?? 0], [2, 0], [4, mode * 0x10000], [4, lies.offset ?? offset]),
        rest,
        comment
      ])
    )
  }
  const directory = Buffer.concat(central)
  const start = at
  add(directory)
  add(ending.between ?? none)
  const { zip64 } = ending
  if (zip64 !== undefined) {
    const record = at
    add(
      Buffer.concat([
        fields([4, zip64.signature ?? 0x06064b50], [8, zip64.length ?? 44], [2, 45], [2, 45], [4, 0], [4, 0]),
        fields([8, zip64.count ?? central.length], [8, zip64.count ?? central.length]),
        fields([8, zip64.size ?? directory.length], [8, zip64.offset ?? start])
      ])
    )
    add(fields([4, 0x07064b50], [4, 0], [8, zip64.at ?? record], [4, zip64.disks ?? 1]))
  }
  const comment = bytesOf(ending.comment ?? "")
  const count = ending.count ?? (zip64 === undefined ? central.length : 0xffff)
  add(
    Buffer.concat([
      fields([4, 0x06054b50], [2, ending.disk ?? 0], [2, ending.disk ?? 0], [2, ending.countHere ?? count], [2, count]),
      fields([4, ending.size ?? (zip64 === undefined ? directory.length : 0xffffffff)]),
      fields([4, ending.offset ?? (zip64 === undefined ? start : 0xffffffff)]),
      fields([2, ending.commentLength ?? comment.length]),
      comment
    ])
  )
  add(ending.after ?? none)
  return Uint8Array.from(Buffer.concat(out))
}

/** Returns the manifest of an archive with these counts. */
export const manifest = (fileCount: number, totalBytes: number, more: object = {}): Part => ({
  name: "manifest.json",
  content: JSON.stringify({
    version: "1",
    created_at: "2024-05-06T07:08:09+00:00",
    file_count: fileCount,
    total_bytes: totalBytes,
    ...more
  })
})
