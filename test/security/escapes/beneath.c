/*
 * Asks the kernel about paths below a root, with openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). Reads records that end in NUL:
 * "R<directory>" sets the root, "F<path>" asks about a path and follows a final link, "N<path>" does not follow it. Prints one line
 * per question, "ok <dev> <inode> <type>" or "no <errno>". Exits with status 3 when openat2 is not available.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int beneath(int root, const char *path, int flags) {
  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = O_PATH | O_CLOEXEC | flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int fd;
  do
    fd = syscall(SYS_openat2, root, path, &how, sizeof how);
  while (fd < 0 && (errno == EAGAIN || errno == EINTR));
  return fd;
}

int main(void) {
  char *record = NULL;
  size_t size = 0;
  int root = -1;
  int probe = beneath(AT_FDCWD, ".", 0);
  if (probe < 0 && (errno == ENOSYS || errno == EPERM)) return 3;
  close(probe);
  while (getdelim(&record, &size, 0, stdin) > 0) {
    const char *path = record + 1;
    if (record[0] == 'R') {
      if (root >= 0) close(root);
      root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
      if (root < 0) return 4;
      continue;
    }
    int fd = beneath(root, path, record[0] == 'N' ? O_NOFOLLOW : 0);
    struct stat it;
    if (fd < 0) {
      printf("no %d\n", errno);
    } else {
      if (fstat(fd, &it) != 0) return 5;
      printf("ok %lu %lu %s\n", (unsigned long)it.st_dev, (unsigned long)it.st_ino,
             S_ISDIR(it.st_mode) ? "directory" : S_ISREG(it.st_mode) ? "file" : S_ISLNK(it.st_mode) ? "symlink" : "other");
      close(fd);
    }
  }
  return 0;
}
