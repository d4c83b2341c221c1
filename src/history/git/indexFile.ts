/**
 * The layout of a pack index, version 2: sorted ids, checksums and offsets, searched in place. Only this module reads
 * it; `packIndex.ts` writes it.
 */

const signature = 0xff744f63
const version = 2
/** The offset of the fan-out table. Entry `n` counts the ids whose first byte is at most `n`. */
export const fanOutOffset = 8
export const namesOffset = fanOutOffset + 256 * 4
export const idBytes = 20
export const bytesPerObject = idBytes + 4 + 4
export const trailerBytes = 2 * idBytes

export const firstWideOffset = 2 ** 31

export const writeHeader = (index: Buffer): void => {
  index.writeUInt32BE(signature, 0)
  index.writeUInt32BE(version, 4)
}

export const countIn = (index: Buffer): number => index.readUInt32BE(namesOffset - 4)

const isConsistent = (index: Buffer): boolean => {
  let before = 0
  for (let at = fanOutOffset; at < namesOffset; at += 4) {
    const sum = index.readUInt32BE(at)
    if (sum < before) return false
    before = sum
  }
  const wide = index.length - (namesOffset + before * bytesPerObject + trailerBytes)
  // The first object of a pack never needs a 64-bit offset.
  return wide >= 0 && wide % 8 === 0 && wide <= Math.max(0, before - 1) * 8
}

/** Returns the reason why the index cannot be searched, or `undefined`. Does not check the entries of the objects. */
export const findDefect = (index: Buffer): string | undefined => {
  if (index.length < namesOffset + trailerBytes) return "it is cut off"
  if (index.readUInt32BE(0) !== signature || index.readUInt32BE(4) !== version) return "it is no index of version 2"
  return isConsistent(index) ? undefined : "its counts contradict each other"
}

/**
 * Returns a function that finds the position of an id, or -1. It compares the first four bytes as a number, because
 * most ids differ there.
 */
export const searchIn = (index: Buffer): ((id: Buffer) => number) => {
  const view = new DataView(index.buffer, index.byteOffset, index.length)
  return (id) => {
    const head = id.readUInt32BE(0)
    const first = id[0]!
    let low = first === 0 ? 0 : view.getUint32(fanOutOffset + (first - 1) * 4)
    let high = view.getUint32(fanOutOffset + first * 4)
    while (low < high) {
      const middle = (low + high) >>> 1
      const at = namesOffset + middle * idBytes
      const order = view.getUint32(at) - head || index.compare(id, 0, idBytes, at, at + idBytes)
      if (order === 0) return middle
      if (order < 0) low = middle + 1
      else high = middle
    }
    return -1
  }
}

export const idAt = (index: Buffer, at: number): string =>
  index.toString("hex", namesOffset + at * idBytes, namesOffset + (at + 1) * idBytes)

/**
 * Returns the offset of each object in the pack, or `undefined` if an entry points past the table of 64-bit offsets.
 */
export const offsetsIn = (index: Buffer): Float64Array | undefined => {
  const count = countIn(index)
  const places = namesOffset + count * (idBytes + 4)
  const wide = places + count * 4
  const wides = (index.length - trailerBytes - wide) / 8
  const offsets = new Float64Array(count)
  for (let i = 0; i < count; i++) {
    const offset = index.readUInt32BE(places + i * 4)
    if (offset - firstWideOffset >= wides) return undefined
    offsets[i] = offset < firstWideOffset ? offset : Number(index.readBigUInt64BE(wide + (offset - firstWideOffset) * 8))
  }
  return offsets
}

export const packChecksumIn = (index: Buffer): Buffer => index.subarray(index.length - trailerBytes, index.length - idBytes)
