/** The frames between this program and its search processes: four bytes of length, then a serialized value. */
import { v8 } from "./node.ts"

const headBytes = 4

/** Serializes a value into a frame. Writes the value behind the length, so that the bytes are not copied. */
export const frameOf = (value: unknown): Buffer => {
  const { DefaultSerializer } = v8()
  const serializer = new DefaultSerializer()
  serializer.writeRawBytes(Buffer.alloc(headBytes))
  serializer.writeHeader()
  serializer.writeValue(value)
  const frame = serializer.releaseBuffer()
  frame.writeUInt32LE(frame.length - headBytes)
  return frame
}

/** Makes a frame with the given body. */
export const frameOfBody = (body: Uint8Array): Buffer => {
  const head = Buffer.alloc(headBytes)
  head.writeUInt32LE(body.length)
  return Buffer.concat([head, body])
}

/** Splits the bytes of a stream into the bodies of its frames. */
export const makeFrameReader = (onFrame: (body: Buffer) => void): ((bytes: Buffer) => void) => {
  let parts: Array<Buffer> = []
  let length = 0
  let needed = headBytes
  return (bytes) => {
    parts.push(bytes)
    length += bytes.length
    while (length >= needed) {
      const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts, length)
      const end = headBytes + whole.readUInt32LE()
      parts = [whole]
      if (length < end) {
        needed = end
        return
      }
      onFrame(whole.subarray(headBytes, end))
      parts = [whole.subarray(end)]
      length -= end
      needed = headBytes
    }
  }
}
