/*
 * Swaps the entries of names as fast as possible, until SIGTERM, the end of its parent, or ten hours.
 * Usage: attacker COUNTER GAP MODE PATH...
 *
 * COUNTER is a file of eight bytes, mapped here, which always holds the number of swaps. GAP is about the longest pause between two
 * swaps in nanoseconds. The attacker alternates between two kinds of pauses. Busy pauses, drawn log-uniformly, hit short and long
 * windows of the victim; they suit a processor of its own. Sleeping pauses interrupt the victim in the middle of its call at the
 * wake-up; they suit a shared processor.
 *
 *   exchange A B         swaps A and B in one step, or in three where the disk cannot
 *   bounce A B           moves A to B and back
 *   recreate D TARGET G  removes D (or moves it to G/<number> when it is not empty), links it to TARGET, removes it, creates it anew
 *   flip F TARGET SPARE  makes F a link to TARGET, then a second name of SPARE, whatever the victim does to F
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static volatile sig_atomic_t stopped;
static volatile uint64_t *swaps;
static uint64_t failures;
static uint64_t longest;
static int isNapping;
static uint64_t state = 0x9e3779b97f4a7c15u;

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

static uint64_t any(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void spin(void) {
  int bits = 0;
  while (bits < 63 && (longest >> bits) > 0) bits++;
  if (bits == 0) return;
  uint64_t end = now() + any() % ((uint64_t)1 << (1 + any() % (uint64_t)bits));
  while (now() < end && !stopped) continue;
}

static void nap(void) {
  struct timespec time = {0, (long)(any() % (1 + 3 * longest))};
  nanosleep(&time, NULL);
}

static void pause_a_little(void) {
  if (any() % 64 == 0) isNapping = any() % 2;
  if (isNapping) nap();
  else spin();
}

/* Counts a swap, or a failure when the victim was in the way. */
static int did(int answer) {
  if (answer == 0) (*swaps)++;
  else failures++;
  pause_a_little();
  return answer == 0;
}

static int in_three_steps(const char *a, const char *b) {
  char aside[4096];
  snprintf(aside, sizeof aside, "%s.aside", a);
  if (rename(a, aside) != 0) return -1;
  if (rename(b, a) != 0) return rename(aside, a), -1;
  return rename(aside, b);
}

static int exchange(const char *a, const char *b) {
  static int isMissing;
  if (isMissing) return in_three_steps(a, b);
  if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0) return 0;
  if (errno == EINVAL || errno == ENOSYS) isMissing = 1;
  return -1;
}

static void exchanging(const char *a, const char *b) {
  int isSwapped = 0;
  while (!stopped) isSwapped ^= did(exchange(a, b));
  if (isSwapped) exchange(a, b);
}

static void bouncing(const char *a, const char *b) {
  while (!stopped) {
    did(rename(a, b));
    did(rename(b, a));
  }
}

static void recreating(const char *directory, const char *target, const char *grave) {
  char buried[4096];
  while (!stopped) {
    if (rmdir(directory) != 0) {
      snprintf(buried, sizeof buried, "%s/%llu", grave, (unsigned long long)*swaps);
      rename(directory, buried);
    }
    did(symlink(target, directory));
    unlink(directory);
    did(mkdir(directory, 0777));
  }
}

static void flipping(const char *file, const char *target, const char *spare) {
  char next[4096];
  snprintf(next, sizeof next, "%s.next", file);
  while (!stopped) {
    unlink(next);
    did(symlink(target, next) == 0 ? rename(next, file) : -1);
    /* A rename between two names of one file succeeds without doing anything, so remove the first name. */
    unlink(next);
    did(link(spare, next) == 0 ? rename(next, file) : -1);
  }
}

int main(int count, char **words) {
  if (count < 6) return 2;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  /* Without this a sleep lasts 50 microseconds longer. */
  prctl(PR_SET_TIMERSLACK, 1);
  signal(SIGTERM, stop);
  signal(SIGALRM, stop);
  alarm(36000);
  int counter = open(words[1], O_RDWR | O_CLOEXEC);
  if (counter < 0) return 3;
  swaps = mmap(NULL, sizeof *swaps, PROT_READ | PROT_WRITE, MAP_SHARED, counter, 0);
  if (swaps == MAP_FAILED) return 4;
  longest = strtoull(words[2], NULL, 10);
  state ^= now();
  const char *mode = words[3], *third = count > 6 ? words[6] : "";
  if (!strcmp(mode, "exchange")) exchanging(words[4], words[5]);
  else if (!strcmp(mode, "bounce")) bouncing(words[4], words[5]);
  else if (!strcmp(mode, "recreate")) recreating(words[4], words[5], third);
  else if (!strcmp(mode, "flip")) flipping(words[4], words[5], third);
  else return 5;
  printf("{\"swaps\":%llu,\"failures\":%llu}\n", (unsigned long long)*swaps, (unsigned long long)failures);
  return 0;
}
