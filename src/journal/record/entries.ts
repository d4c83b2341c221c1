/** Creates the entries of `record`, two per change. Their fields are valid by construction, so no schema checks them. */
import type { FileSystemEntry } from "../FileSystemEntry.ts"
import {
  FileAttributesSet,
  FileContent,
  FileDelete,
  FileDeleted,
  FileDirectoryMade,
  FileFault,
  FileLinkMade,
  FileList,
  FileListing,
  FileMakeDirectory,
  FileMakeLink,
  FileMetadata,
  FileMove,
  FileMoved,
  FileRead,
  FileSetAttributes,
  FileStarted,
  FileStat,
  FileWrite,
  FileWriteChunk,
  FileWritten
} from "../FileSystemEntry.ts"

interface Class<A> {
  readonly prototype: A
  readonly fields: { readonly _tag: { readonly schema: { readonly literal: string } } }
}

const maker = <A extends FileSystemEntry>({ fields: { _tag }, prototype }: Class<A>) => {
  const own = { _tag: _tag.schema.literal }
  return (fields: Omit<A, "_tag">): A => Object.assign(Object.create(prototype) as A, own, fields)
}

export const fileRead = maker(FileRead)
export const fileContent = maker(FileContent)
export const fileList = maker(FileList)
export const fileListing = maker(FileListing)
export const fileStat = maker(FileStat)
export const fileMetadata = maker(FileMetadata)
export const fileStarted = maker(FileStarted)
export const fileWrite = maker(FileWrite)
export const fileWriteChunk = maker(FileWriteChunk)
export const fileWritten = maker(FileWritten)
export const fileDelete = maker(FileDelete)
export const fileDeleted = maker(FileDeleted)
export const fileMakeDirectory = maker(FileMakeDirectory)
export const fileDirectoryMade = maker(FileDirectoryMade)
export const fileMove = maker(FileMove)
export const fileMoved = maker(FileMoved)
export const fileMakeLink = maker(FileMakeLink)
export const fileLinkMade = maker(FileLinkMade)
export const fileSetAttributes = maker(FileSetAttributes)
export const fileAttributesSet = maker(FileAttributesSet)
export const fileFault = maker(FileFault)
