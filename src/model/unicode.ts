/** Counts and compares text by code point. */

export const codePoints = (text: string): number => {
  let count = text.length
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count--
      i++
    }
  }
  return count
}

const codePointRank = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit)

export const compare = (self: string, that: string): -1 | 0 | 1 => {
  const length = Math.min(self.length, that.length)
  for (let i = 0; i < length; i++) {
    const a = self.charCodeAt(i)
    const b = that.charCodeAt(i)
    if (a !== b) return codePointRank(a) < codePointRank(b) ? -1 : 1
  }
  return self.length === that.length ? 0 : self.length < that.length ? -1 : 1
}
