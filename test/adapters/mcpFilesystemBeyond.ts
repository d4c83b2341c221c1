/** The laws that the tools of the official MCP filesystem server cannot satisfy, by reason. */
export const beyond: Readonly<Record<string, ReadonlyArray<string>>> = {
  "the server has no tool that deletes": [
    "without permission to write, files can be deleted",
    "an open file keeps its content when the file is removed",
    "port remove removes a file",
    "port remove removes an empty directory",
    "delete checks ifMatch",
    "delete removes a file",
    "delete removes an empty directory",
    "delete counts files and directories separately",
    "deleting a tree of directories returns a count of at least 1",
    "a recursive delete of a file removes the file",
    "delete keeps entries whose names begin with the deleted name",
    "deleting the last entry of a directory keeps the directory",
    "a deleted path can be created again as another kind",
    "a glob continues after its cursor even if files have changed",
    "a recursive delete includes entries deeper than maxPathDepth",
    "a FIFO can be listed, moved and deleted",
    "a copy never replaces a FIFO",
    "a move never replaces a FIFO",
    "a foreign file with the name of a temporary file is copied, moved, counted and deleted like any other file",
    "deleting a tree and writing into the tree do not deadlock"
  ],
  "a failed call cannot remove the parent directories that it has created": [
    "a sink in mode create leaves no new file and no new parents if its stream fails",
    "a sink in mode overwrite leaves no new file and no new parents if its stream fails",
    "a sink in mode append leaves no new file and no new parents if its stream fails",
    "a sink over the limit is LimitExceeded and leaves no file",
    "overwrite that fails at any step changes nothing",
    "overwrite that is interrupted at any step changes nothing",
    "create that fails at any step changes nothing",
    "create that is interrupted at any step changes nothing",
    "mkdir that fails at any step changes nothing",
    "mkdir that is interrupted at any step changes nothing",
    "copy that fails at any step changes nothing",
    "copy that is interrupted at any step changes nothing",
    "move that fails at any step changes nothing",
    "move that is interrupted at any step changes nothing",
    "copy of a tree that fails at any step changes nothing",
    "copy of a tree that is interrupted at any step changes nothing",
    "a move of a tree that fails at any step loses no file",
    "a change that fails on a full disk keeps the old file"
  ],
  "the server has no tool that replaces an entry": [
    "an open file keeps its content when the file is renamed over",
    "port rename replaces a file",
    "port rename replaces an empty directory",
    "move over a file replaces it",
    "move of a directory over an empty directory replaces it"
  ],
  "the server writes only text": [
    "a sink writes a stream of several chunks",
    "bytes are written as they are",
    "an edit of UTF-16 little endian keeps the encoding",
    "an edit of UTF-16 big endian keeps the encoding",
    "copy of a tree keeps all bytes and the empty directories",
    "copy of a directory over an empty directory replaces it"
  ],
  "the server confuses a name with a name in another Unicode form": ["two Unicode normal forms of a name are different names"],
  "the server cannot reach a name with bytes that are not UTF-8": ["a recursive delete removes names that no path can express"]
}
