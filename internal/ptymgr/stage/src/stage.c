/* The stage of a session's process between fork and exec: it waits at a gate
 * until the daemon has put everything away that a crash must not lose, and
 * becomes the program only when one byte arrives there. End of file means that
 * the daemon died: then nothing is run, and the status says so (UNRELEASED).
 *
 *   stage GROUP PATH ARG0 [ARG…]     environment: the program's
 *   3  gate, to read from      4  errors: an errno, 4 bytes, when exec fails
 *   5  where GROUP is 1: the directory of the session's cgroup
 *   6  this program
 *
 * With a cgroup the process is not a session's leader yet. It starts another in
 * its place that is born there, tells its pid on 4 (pid, 0: 8 bytes) and is gone:
 * moving a process costs the kernel a grace period of RCU, some ten milliseconds,
 * and birth in place costs nothing. Where the kernel or a filter refuses that it
 * moves itself (0, errno or 0). Either way the parent stays the same.
 *
 * No libc: it starts in a fraction of a millisecond and is a few kilobytes. */
#if defined(__x86_64__)
enum { SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_fcntl = 72, SYS_execve = 59, SYS_exit = 231,
       SYS_ioctl = 16, SYS_setsid = 112, SYS_openat = 257, SYS_clone3 = 435 };
static long call(long n, long a, long b, long c) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return r;
}
__asm__(".globl _start\n_start:\n xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call start\n");
#elif defined(__aarch64__)
enum { SYS_read = 63, SYS_write = 64, SYS_close = 57, SYS_fcntl = 25, SYS_execve = 221, SYS_exit = 94,
       SYS_ioctl = 29, SYS_setsid = 157, SYS_openat = 56, SYS_clone3 = 435 };
static long call(long n, long a, long b, long c) {
  register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
__asm__(".globl _start\n_start:\n mov x29,#0\n mov x0,sp\n bl start\n");
#else
#error "no stage for this machine: the daemon uses itself"
#endif
enum { GATE = 3, ERRORS = 4, GROUP = 5, SELF = 6, F_SETFD = 2, FD_CLOEXEC = 1, EINTR = 4, UNRELEASED = 243,
       O_WRONLY = 1, TIOCSCTTY = 0x540E, CLONE_PARENT = 0x8000 };
#define CLONE_INTO_CGROUP 0x200000000ULL
/* struct clone_args, clone3(2). With CLONE_PARENT the signal at the end is that
 * of this process, and must not be given. */
static struct {
  unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
} args;
static void enter_group(void) {
  int said[2] = {0, 0};
  args.flags = CLONE_INTO_CGROUP | CLONE_PARENT;
  args.cgroup = GROUP;
  long pid = call(SYS_clone3, (long)&args, sizeof args, 0);
  if (pid > 0) {
    said[0] = (int)pid;
    call(SYS_write, ERRORS, (long)said, sizeof said);
    call(SYS_exit, 0, 0, 0);
  }
  if (pid < 0) {
    long fd = call(SYS_openat, GROUP, (long)"cgroup.procs", O_WRONLY);
    long n = fd < 0 ? fd : call(SYS_write, fd, (long)"0", 1);
    said[1] = n < 0 ? -(int)n : 0;
    if (fd >= 0) call(SYS_close, fd, 0, 0);
    call(SYS_write, ERRORS, (long)said, sizeof said);
  }
  call(SYS_close, GROUP, 0, 0);
  call(SYS_setsid, 0, 0, 0);
  call(SYS_ioctl, 0, TIOCSCTTY, 0);
}
void start(long *sp) {
  long argc = sp[0];
  char **argv = (char **)(sp + 1), **envp = argv + argc + 1;
  char c;
  long n;
  if (argc < 4) call(SYS_exit, UNRELEASED, 0, 0);
  if (argv[1][0] == '1') enter_group();
  do n = call(SYS_read, GATE, (long)&c, 1); while (n == -EINTR);
  if (n != 1) call(SYS_exit, UNRELEASED, 0, 0);
  call(SYS_close, GATE, 0, 0);
  call(SYS_fcntl, ERRORS, F_SETFD, FD_CLOEXEC);
  call(SYS_fcntl, SELF, F_SETFD, FD_CLOEXEC);
  int e = -(int)call(SYS_execve, (long)argv[2], (long)(argv + 3), (long)envp);
  call(SYS_write, ERRORS, (long)&e, sizeof e);
  call(SYS_exit, 127, 0, 0);
  __builtin_unreachable();
}
