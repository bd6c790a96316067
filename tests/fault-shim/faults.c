// An `LD_PRELOAD` library (Linux, x86-64) that fails the n-th file-changing call of a process, or kills the process
// before it.
//
// Traps calls with seccomp (SECCOMP_RET_TRAP), because rustix bypasses the C library. The signal handler makes the
// call, marked in an unused argument so that the filter passes it.
//
//   FAULT_AT       the number of the failing call, from 1; 0 only counts
//   FAULT_KIND     `kill` or an errno
//   FAULT_LASTS    if set, all later calls fail too
//   FAULT_LOG      a file that gets a line for each call
//   FAULT_STREAMS  if set, writes to descriptors 1 and 2 and to non-files also count, named `say`
//   FAULT_REFUSED  calls that always fail, uncounted: `renameat2=22,linkat=1`; `renameat2` only with flags
//   FAULT_WHO      `program`, or `workers`: child processes with an argument that ends with `-worker`

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define MARK 0x66617571u

static long fault_at, is_counting, lasts, has_streams, count;
static int kind;
static char log_path[4096];

static const struct
{
    int number;
    const char* name;
} calls[] = {
    {SYS_write, "write"},         {SYS_pwrite64, "pwrite64"},   {SYS_writev, "writev"},       {SYS_pwritev, "pwritev"},
    {SYS_rename, "rename"},       {SYS_renameat, "renameat"},   {SYS_renameat2, "renameat2"}, {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"}, {SYS_ftruncate, "ftruncate"}, {SYS_truncate, "truncate"},   {SYS_fallocate, "fallocate"},
    {SYS_mkdir, "mkdir"},         {SYS_mkdirat, "mkdirat"},     {SYS_link, "link"},           {SYS_linkat, "linkat"},
    {SYS_symlink, "symlink"},     {SYS_symlinkat, "symlinkat"}, {SYS_unlink, "unlink"},       {SYS_unlinkat, "unlinkat"},
    {SYS_rmdir, "rmdir"},         {SYS_chmod, "chmod"},         {SYS_fchmod, "fchmod"},       {SYS_fchmodat, "fchmodat"},
    {SYS_flock, "flock"},         {SYS_sendfile, "sendfile"},   {SYS_creat, "creat"},         {SYS_open, "open"},
    {SYS_openat, "openat"},       {SYS_copy_file_range, "copy_file_range"},
};
enum
{
    CALLS = sizeof calls / sizeof calls[0]
};
static int refused[CALLS];

static long make_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}

static const char* name_of(long number)
{
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number)
            return calls[i].name;
    return "?";
}

static void keep(long which, const char* name, long number, const greg_t* r)
{
    if (!log_path[0])
        return;
    char line[512], path[300] = "";
    int has_folder = number == SYS_openat || number == SYS_renameat || number == SYS_renameat2 || number == SYS_mkdirat || number == SYS_unlinkat
        || number == SYS_linkat || number == SYS_fchmodat;
    int has_path = has_folder || number == SYS_rename || number == SYS_mkdir || number == SYS_link || number == SYS_unlink || number == SYS_rmdir
        || number == SYS_chmod || number == SYS_open || number == SYS_creat || number == SYS_symlink;
    if (has_path)
        strncpy(path, (const char*)(has_folder ? r[REG_RSI] : r[REG_RDI]), sizeof path - 1);
    else
        snprintf(path, sizeof path, "%lld", (long long)r[REG_RDI]);
    int length = snprintf(line, sizeof line, "%ld %s %s\n", which, name, path);
    long file = make_call(SYS_openat, AT_FDCWD, (long)log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644, 0, MARK);
    if (file >= 0) {
        make_call(SYS_write, file, (long)line, length, 0, 0, MARK);
        close((int)file);
    }
}

static int refusal(long number, const greg_t* r)
{
    int is_plain = number == SYS_renameat2 && r[REG_R8] == 0;
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number && !is_plain)
            return refused[i];
    return 0;
}

static void read_refused(const char* text)
{
    for (; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        for (int i = 0; i < CALLS; i++) {
            size_t length = strlen(calls[i].name);
            if (strncmp(text, calls[i].name, length) == 0 && text[length] == '=')
                refused[i] = atoi(text + length + 1);
        }
}

static int is_said(long number, const greg_t* r)
{
    if (number != SYS_write && number != SYS_writev)
        return 0;
    struct stat facts;
    int file = (int)r[REG_RDI];
    return file == STDOUT_FILENO || file == STDERR_FILENO || (fstat(file, &facts) == 0 && !S_ISREG(facts.st_mode));
}

static void on_call(int signal, siginfo_t* info, void* opaque)
{
    (void)signal;
    greg_t* r = ((ucontext_t*)opaque)->uc_mcontext.gregs;
    long number = info->si_syscall;
    int saved = errno;
    if (refusal(number, r)) {
        r[REG_RAX] = -refusal(number, r);
        return;
    }
    int is_stream = is_said(number, r);
    if (is_counting && (has_streams || !is_stream)) {
        long which = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
        keep(which, is_stream ? "say" : name_of(number), number, r);
        if (fault_at && (which == fault_at || (lasts && which > fault_at))) {
            if (kind == 0)
                make_call(SYS_kill, getpid(), SIGKILL, 0, 0, 0, 0);
            r[REG_RAX] = -kind;
            errno = saved;
            return;
        }
    }
    if (number == SYS_copy_file_range)
        r[REG_RAX] = -EXDEV; // No spare argument; callers fall back to read and write.
    else
        r[REG_RAX] = make_call(number, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], MARK);
    errno = saved;
}

static int is_worker(void)
{
    static char line[65536];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, line, sizeof line - 1);
    close(file);
    for (char* word = line; word < line + length; word += strlen(word) + 1)
        if (strlen(word) > 7 && strcmp(word + strlen(word) - 7, "-worker") == 0)
            return 1;
    return 0;
}

static void filter(void)
{
    struct sock_filter code[4 * CALLS + 16];
    int at = 0;
#define STEP(...) code[at++] = (struct sock_filter)__VA_ARGS__
#define LOAD(offset) STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offset)))
    LOAD(offsetof(struct seccomp_data, arch));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    LOAD(offsetof(struct seccomp_data, args[5]));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    for (int i = 0; i < CALLS; i++) {
        int is_open = calls[i].number == SYS_open || calls[i].number == SYS_openat;
        LOAD(offsetof(struct seccomp_data, nr));
        STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, is_open ? 3 : 1));
        if (is_open) {
            LOAD(calls[i].number == SYS_open ? offsetof(struct seccomp_data, args[1]) : offsetof(struct seccomp_data, args[2]));
            // Read-only opens pass: a program that is starting has no handler yet.
            STEP(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT, 0, 1));
        }
        STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    }
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {(unsigned short)at, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("the calls cannot be filtered");
        _exit(99);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAULT_AT"), *what = getenv("FAULT_KIND"), *path = getenv("FAULT_LOG"), *who = getenv("FAULT_WHO");
    fault_at = at ? atol(at) : 0;
    kind = !what || strcmp(what, "kill") == 0 ? 0 : atoi(what);
    lasts = getenv("FAULT_LASTS") != NULL;
    read_refused(getenv("FAULT_REFUSED"));
    has_streams = getenv("FAULT_STREAMS") != NULL;
    if (path)
        strncpy(log_path, path, sizeof log_path - 1);
    is_counting = !who || is_worker() == (strcmp(who, "workers") == 0);
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    filter();
}
