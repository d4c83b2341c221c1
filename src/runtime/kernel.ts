/**
 * Finds lines in bytes: with WebAssembly SIMD (kernel.wat, a few GB per second for any text), or with `Buffer.indexOf`.
 *
 * The functions `makeSimd` and `makePlain` refer to no other code, so that their source can run in a worker.
 */

export interface Kernel {
  /** Returns the whole memory, which is valid until the next `grow`. Files are read directly into the memory, from `data` on. */
  readonly memory: () => Buffer
  /** The offset in `memory` at which the caller's bytes begin. All other offsets are relative to `data`. */
  readonly data: number
  readonly capacity: () => number
  /**
   * Makes room for `bytes` bytes and keeps the content. Throws a RangeError beyond 2,000 MiB or if memory is exhausted.
   */
  readonly grow: (bytes: number) => void
  /**
   * Sets the texts to find: at most 16, none of them empty. Only the first 64 bytes of each text are compared.
   *
   * With `fold`, ASCII letters match in either case. A text with a line feed in its first 64 bytes never matches a
   * line.
   */
  readonly needles: (needles: ReadonlyArray<Uint8Array>, fold: boolean) => void
  /**
   * Finds the lines of [from, end) that contain a needle, writes them to `found` and returns their number.
   *
   * `from` is the start of line number `line`. If `found` is full, call `lines` again from the last end + 1, with the
   * last line number + 1.
   */
  readonly lines: (from: number, end: number, line: number) => number
  /**
   * Returns the lines that the last call of `lines` found, as triples of line number, start and end. The end excludes
   * the line feed.
   *
   * The view is valid until the next `grow`. Only as many triples as `lines` returned are meaningful.
   */
  readonly found: () => Int32Array
  readonly count: (from: number, end: number) => number
  readonly hasNul: (from: number, end: number) => boolean
}

/** The assembled kernel.wat in base64, which `npm run kernel` generates. */
export const code =
  "AGFzbQEAAAABKwZgA39/fwF/YAR7e3t7AX5gAn9/AX9gAX8AYAR/f39/AX9gBX9/f39/AX8DDAsAAQICAgICAAMEBQUGAQFF//8BBiMFfwBBAAt/AEGAIAt/" +
  "AEGAgBALfwBB/////wcLfwBBgIACCwc+BwZtZW1vcnkCAAduZWVkbGVzAwAHcmVzdWx0cwMBBGRhdGEDAgVjb3VudAACBmhhc051bAADBWxpbmVzAAoKlAoL" +
  "HgEBfyACIAFrIQMgACAAQQEgA3RBAWtxIANBEE8bCyIAIAD9ZK0gAf1krUIQhoQgAv1krUIghiAD/WStQjCGhIQLtgECAX8Ce/0MCgoKCgoKCgoKCgoKCgoK" +
  "CiEDAkADQCAAQcAAaiABSw0BIAD9AAQAIAP9IyAA/QAEECAD/SP9biAA/QAEICAD/SMgAP0ABDAgA/0j/W79bv1hIQQgAiAE/R0AIAT9HQF8QoGChIiQoMCA" +
  "AX5COIinaiECIABBwABqIQAMAAsLAkADQCAAIAFPDQEgAiAA/QAEACAD/SP9ZCAAIAEQAGlqIQIgAEEQaiEADAALCyACC5IBAQF/AkADQCAAQcAAaiABSw0B" +
  "IAD9AAQAIAD9AAQQ/XcgAP0ABCAgAP0ABDD9d/13/WNFDQEgAEHAAGohAAwACwsCQANAIAAgAU8NASAA/QAEAP1jRQRAIAD9AAQA/QwAAAAAAAAAAAAAAAAA" +
  "AAAA/SP9ZCECIAIgACABEAAEQEEBDwsLIABBEGohAAwACwtBAAtQAQF/AkADQCABIABNDQEgAUEQayEBIAH9AAQA/QwKCgoKCgoKCgoKCgoKCgoK/SP9ZCEC" +
  "IAJFDQAgAUEgIAJna2ohAQsLIAEgACABIABLGwtRAQF/AkADQCAAIAFPDQEgAP0ABAD9DAoKCgoKCgoKCgoKCgoKCgr9I/1kIQIgAgRAIAAgAmhqIQAMAgsg" +
  "AEEQaiEADAALCyAAIAEgACABSRsLVAEBfyAAKAIAIQIDQCAA/QAEwAEgAP0ABEAgAP0ABIABIAH9AAQA/VD9Uf1O/VMEQEEADwsgAEEQaiEAIAFBEGohASAC" +
  "QRBrIQIgAkEASg0AC0EBC8ACBgF/AX4DfwJ7AX8GeyAAKAIEIQcgACAHav0HAEAhCCAAIAdq/QcAgAEhCSAAKAIIIQogACAKav0HAEAhCyAAIApq/QcAgAEh" +
  "DAJAA0AgASACTw0BIAEgB2ohBSABIApqIQYgBf0ABAAgCf1QIAj9IyAG/QAEACAM/VAgC/0j/U4hDSAF/QAEECAJ/VAgCP0jIAb9AAQQIAz9UCAL/SP9TiEO" +
  "IAX9AAQgIAn9UCAI/SMgBv0ABCAgDP1QIAv9I/1OIQ8gBf0ABDAgCf1QIAj9IyAG/QAEMCAM/VAgC/0j/U4hECANIA79UCAPIBD9UP1Q/VMEQCANIA4gDyAQ" +
  "EAEhBANAIAEgBHqnaiEDIAMgAk8NAyAAIAMQBgRAIAMPCyAEIARCAX2DIQQgBEIAUg0ACwsgAUHAAGohAQwACwsjAwsmAQF/IwAhAQJAA0AgASAATw0BIAFB" +
  "ADYCDCABQYACaiEBDAALCwtqAQR/IwMhBSMAIQQCQANAIAQgA08NASAEKAIMIQYgBiAASQRAIAIgBCgCAGtBAWohByAHIAEgByABSRshByAEIAAgBxAHIQYg" +
  "BCAGNgIMCyAGIAUgBiAFSRshBSAEQYACaiEEDAALCyAFC7cBAQd/IwAgA0GAAmxqIQUjASEKIAogBEEMbGohCyAAIQYCQANAIAogC08NASAGIAdPBEAgBiAB" +
  "Tw0CIAYjBGohByAFEAgLIAYgByABIAUQCSEIIAgjA0YEQCAHIQYMAQsgAiAAIAgQAmohAiAIIAEQBSEJIAogAjYCACAKIAAgCBAEIwJrNgIEIAogCSMCazYC" +
  "CCAKQQxqIQogAkEBaiECIAlBAWohACAAIQYMAAsLIAojAWtBDG4L"

/** Creates the SIMD kernel from `code`. Returns `undefined` without WebAssembly SIMD, or if memory is exhausted. */
export const makeSimd = (code: string, maxLines = 16_384): Kernel | undefined => {
  interface Exports {
    readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number }
    readonly needles: { readonly value: number }
    readonly results: { readonly value: number }
    readonly data: { readonly value: number }
    readonly lines: (from: number, end: number, line: number, needles: number, maxLines: number) => number
    readonly count: (from: number, end: number) => number
    readonly hasNul: (from: number, end: number) => number
  }
  interface Engine {
    readonly validate: (bytes: Uint8Array) => boolean
    readonly Module: new (bytes: Uint8Array) => object
    readonly Instance: new (module: object) => { readonly exports: unknown }
  }
  const instantiate = (): Exports | undefined => {
    const { WebAssembly: engine } = globalThis as { readonly WebAssembly?: Engine }
    const bytes = Buffer.from(code, "base64")
    if (engine === undefined || !engine.validate(bytes)) return undefined
    try {
      return new engine.Instance(new engine.Module(bytes)).exports as Exports
    } catch {
      return undefined
    }
  }
  const wasm = instantiate()
  if (wasm === undefined) return undefined

  const pageBytes = 65_536
  const overreadBytes = 64
  const maxNeedleBytes = 64
  const data = wasm.data.value
  const results = wasm.results.value
  const maxResults = Math.max(1, Math.min(maxLines, Math.floor((data - results) / 12)))
  const makeView = () => ({
    memory: Buffer.from(wasm.memory.buffer),
    found: new Int32Array(wasm.memory.buffer, results, maxResults * 3),
    capacity: wasm.memory.buffer.byteLength - data - overreadBytes
  })
  let currentView = makeView()
  let count = 0

  const commonCharacters = " etaoinsrlcdupmfhg.,_()=0\"bvy1xwk/-2;:'jqz\n"
  const rarity = (byte: number): number => {
    const index = commonCharacters.indexOf(String.fromCharCode(byte))
    return index === -1 ? commonCharacters.length : index
  }
  const rarestPositions = (needle: Uint8Array): readonly [number, number] => {
    const order = Array.from(needle.keys()).sort((a, b) => rarity(needle[b]!) - rarity(needle[a]!))
    return [order[0]!, order[1] ?? order[0]!]
  }
  const writeNeedle = (needle: Uint8Array, fold: boolean, at: number): void => {
    const { memory } = currentView
    memory.fill(0, at, at + 256)
    for (let i = 0; i < needle.length; i++) {
      const lowerCased = needle[i]! | 0x20
      const letter = fold && lowerCased >= 0x61 && lowerCased <= 0x7a
      memory[at + 64 + i] = letter ? lowerCased : needle[i]!
      memory[at + 128 + i] = letter ? 0x20 : 0
      memory[at + 192 + i] = 0xff
    }
    const [first, second] = rarestPositions(memory.subarray(at + 64, at + 64 + needle.length))
    memory.writeInt32LE(needle.length, at)
    memory.writeInt32LE(first, at + 4)
    memory.writeInt32LE(second, at + 8)
  }

  return {
    memory: () => currentView.memory,
    data,
    capacity: () => currentView.capacity,
    grow: (bytes) => {
      if (bytes <= currentView.capacity) return
      if (bytes > 2000 * 1024 * 1024) throw new RangeError("a text of more than 2,000 MiB cannot be searched")
      wasm.memory.grow(Math.ceil((bytes - currentView.capacity) / pageBytes))
      currentView = makeView()
    },
    needles: (needles, fold) => {
      const usable = needles.map((needle) => needle.subarray(0, maxNeedleBytes)).filter((needle) => !needle.includes(10))
      if (usable.length > 16 || usable.some((needle) => needle.length === 0))
        throw new RangeError("a search needs 1 to 16 texts, none of them empty")
      count = usable.length
      for (const [i, needle] of usable.entries()) writeNeedle(needle, fold, wasm.needles.value + i * 256)
    },
    lines: (from, end, line) => wasm.lines(data + from, data + end, line, count, maxResults),
    found: () => currentView.found,
    count: (from, end) => wasm.count(data + from, data + end),
    hasNul: (from, end) => wasm.hasNul(data + from, data + end) !== 0
  }
}

export const makePlain = (maxLines = 16_384): Kernel => {
  const maxNeedleBytes = 64
  /**
   * The number of bytes searched at a time. Without pieces, every call of `lines` would scan to the end for a needle
   * that does not occur.
   */
  const pieceBytes = 65_536
  let memory: Buffer = Buffer.alloc(4 * 1024 * 1024)
  const found = new Int32Array(Math.max(1, maxLines) * 3)
  let activeNeedles: ReadonlyArray<Buffer> = []
  let ignoresCase = false
  const foldedPiece = Buffer.alloc(pieceBytes + maxNeedleBytes)

  const lower = (byte: number): number => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte)
  const searchablePiece = (at: number, end: number): Buffer => {
    if (!ignoresCase) return memory.subarray(at, end)
    for (let i = at; i < end; i++) foldedPiece[i - at] = lower(memory[i]!)
    return foldedPiece.subarray(0, end - at)
  }
  const count = (from: number, end: number): number => {
    let feeds = 0
    for (let i = from; i < end; i++) if (memory[i] === 10) feeds++
    return feeds
  }
  const lines = (from: number, end: number, line: number): number => {
    const hits = new Int32Array(activeNeedles.length)
    let text = memory.subarray(0, 0)
    let start = from
    let stop = from
    let at = from
    let out = 0

    const advance = (): void => {
      start = at
      stop = Math.min(at + pieceBytes, end)
      text = searchablePiece(start, Math.min(stop + maxNeedleBytes - 1, end))
      hits.fill(-1)
    }
    const findNextHit = (): number => {
      let first = stop
      for (let i = 0; i < activeNeedles.length; i++) {
        if (hits[i]! < at) {
          const index = text.indexOf(activeNeedles[i]!, at - start)
          hits[i] = index === -1 ? stop : start + index
        }
        first = Math.min(first, hits[i]!)
      }
      return first
    }
    while (out < found.length) {
      if (at >= stop) {
        if (at >= end) break
        advance()
      }
      const hit = findNextHit()
      if (hit === stop) {
        at = stop
        continue
      }
      let lineStart = hit
      while (lineStart > from && memory[lineStart - 1] !== 10) lineStart--
      let lineEnd = hit
      while (lineEnd < end && memory[lineEnd] !== 10) lineEnd++
      const number = line + count(from, lineStart)
      found[out++] = number
      found[out++] = lineStart
      found[out++] = lineEnd
      line = number + 1
      from = lineEnd + 1
      at = from
    }
    return out / 3
  }

  return {
    memory: () => memory,
    data: 0,
    capacity: () => memory.length,
    grow: (bytes) => {
      if (bytes <= memory.length) return
      if (bytes > 2000 * 1024 * 1024) throw new RangeError("a text of more than 2,000 MiB cannot be searched")
      const larger = Buffer.alloc(bytes)
      memory.copy(larger)
      memory = larger
    },
    needles: (needles, fold) => {
      const usable = needles.map((needle) => needle.subarray(0, maxNeedleBytes)).filter((needle) => !needle.includes(10))
      if (usable.length > 16 || usable.some((needle) => needle.length === 0))
        throw new RangeError("a search needs 1 to 16 texts, none of them empty")
      ignoresCase = fold
      activeNeedles = usable.map((needle) => Buffer.from(fold ? needle.map(lower) : needle))
    },
    lines,
    found: () => found,
    count,
    hasNul: (from, end) => memory.subarray(from, end).includes(0)
  }
}
