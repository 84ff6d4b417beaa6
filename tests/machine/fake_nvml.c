/* Answers as libnvidia-ml.so.1 for a machine written down in a text file.
 *
 * NVML_MACHINE names the file; it is read again whenever a closed library is opened.
 * Each line says what one call answers about one GPU, "*" standing for every card:
 *
 *     nvmlInit                     *  !18           refuse with NVML's error 18
 *     nvmlDeviceGetCount           *  2
 *     nvmlDeviceGetName            0  NVIDIA H200
 *     nvmlDeviceGetPowerUsage      1  350000
 *     nvmlDeviceGetMemoryInfo      0  "total used reserved", in bytes
 *     lost                         1  12            from its 12th reading on, error 15
 *
 * - The first line that fits wins. A line may leave off a call's version: the answer to
 *   nvmlDeviceGetMemoryInfo is that to nvmlDeviceGetMemoryInfo_v2 too.
 * - A call without a line is refused as not supported (3); nvmlInit, nvmlShutdown and
 *   nvmlDeviceGetHandleByIndex succeed. A line that begins with "#" is a comment.
 * - Numbers are NVML's own, in its units: milliwatts, megahertz, kilobytes per second.
 *   Where a call picks one of several (a clock, a sensor, a kind of error, another GPU),
 *   the answer lists them in NVML's order; "-" or a place past the end is refused.
 * - Processes are "pid:bytes pid:bytes", with self, parent or a number as pid; "none"
 *   is no process.
 */

#include "nvml_script.h"

int nvmlInitWithFlags(Number flags) {
    int code;
    const char *answer;
    (void)flags;
    if (!users) read_machine();
    answer = ask("nvmlInit", &code);
    if (!answer) answer = ask(__func__, &code);
    code = well_unless(answer, code);
    if (!code) users++;
    return code;
}

int nvmlShutdown(void) {
    int code;
    const char *answer = ask(__func__, &code);
    if (users) users--;
    return well_unless(answer, code);
}

const char *nvmlErrorString(int error) {
    int code;
    const char *answer = ask(__func__, &code);
    (void)error;
    return well_unless(answer, code) ? NULL : "An error of the scripted machine";
}

/* What a function about one GPU begins with: the answer, and the error of the call. */
#define ASK                                                                              \
    int code;                                                                            \
    const char *answer = ask_gpu(__func__, gpu, &code)

static int text(const char *answer, int code, char *out, Number length) {
    if (!code) snprintf(out, length, "%s", answer);
    return code;
}

int nvmlSystemGetDriverVersion(char *out, Number length) {
    int code;
    const char *answer = ask(__func__, &code);
    return text(answer, users ? code : UNINITIALIZED, out, length);
}

int nvmlSystemGetCudaDriverVersion(int *out) {
    int code;
    const char *answer = ask(__func__, &code);
    return pick_number(answer, users ? code : UNINITIALIZED, 0, (Number *)out);
}

int nvmlDeviceGetCount_v2(Number *out) {
    int code;
    const char *answer = ask(__func__, &code);
    return pick_number(answer, users ? code : UNINITIALIZED, 0, out);
}

int nvmlDeviceGetHandleByIndex_v2(Number index, Handle **out) {
    int code;
    const char *answer;
    if (index >= GPUS) return INVALID_ARGUMENT;
    handles[index].gpu = (int)index;
    answer = ask_gpu(__func__, &handles[index], &code);
    handles[index].readings--;
    *out = &handles[index];
    return code == GPU_IS_LOST ? code : well_unless(answer, code);
}

int nvmlDeviceGetName(Handle *gpu, char *out, Number length) {
    ASK;
    return text(answer, code, out, length);
}

#define NUMBER(call)                                                                     \
    int call(Handle *gpu, Number *out) {                                                 \
        ASK;                                                                             \
        return pick_number(answer, code, 0, out);                                        \
    }

#define LONG(call)                                                                       \
    int call(Handle *gpu, Long *out) {                                                   \
        ASK;                                                                             \
        return pick(answer, code, 0, out);                                               \
    }

/* Now, and from the next start on; the second is the first where it is left off. */
#define TWO_NUMBERS(call)                                                                \
    int call(Handle *gpu, Number *now, Number *later) {                                  \
        ASK;                                                                             \
        code = pick_number(answer, code, 0, now);                                        \
        if (pick_number(answer, code, 1, later)) *later = *now;                          \
        return code;                                                                     \
    }

/* The call names a place, counted from `first`. */
#define PICKED(call, first)                                                              \
    int call(Handle *gpu, int place, Number *out) {                                      \
        ASK;                                                                             \
        return pick_number(answer, code, place - (first), out);                          \
    }

NUMBER(nvmlDeviceGetNumGpuCores)
NUMBER(nvmlDeviceGetMemoryBusWidth)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth)
NUMBER(nvmlDeviceGetPowerUsage)
LONG(nvmlDeviceGetCurrentClocksThrottleReasons)
TWO_NUMBERS(nvmlDeviceGetMigMode)
PICKED(nvmlDeviceGetClockInfo, 1)                 /* "SM memory" */
PICKED(nvmlDeviceGetMaxClockInfo, 1)
PICKED(nvmlDeviceGetTemperature, 0)
PICKED(nvmlDeviceGetPcieThroughput, 0)            /* "sent received" */
LONG(nvmlDeviceGetCurrentClocksEventReasons)

/* "9.0" */
int nvmlDeviceGetCudaComputeCapability(Handle *gpu, int *major, int *minor) {
    ASK;
    if (!code) sscanf(answer, "%d.%d", major, minor);
    return code;
}

typedef struct { Number gpu, memory; } Utilization;

/* "percent of the time that a kernel ran, that memory was moved" */
int nvmlDeviceGetUtilizationRates(Handle *gpu, Utilization *out) {
    ASK;
    pick_number(answer, code, 1, &out->memory);
    return pick_number(answer, code, 0, &out->gpu);
}

typedef struct { Long total, free, used; } Memory;
typedef struct { Number version; Long total, reserved, free, used; } MemoryV2;

/* The first record counts what is reserved as used. */
int nvmlDeviceGetMemoryInfo(Handle *gpu, Memory *out) {
    ASK;
    Long reserved = 0;
    pick(answer, code, 2, &reserved);
    pick(answer, code, 1, &out->used);
    out->used += reserved;
    return pick(answer, code, 0, &out->total);
}

int nvmlDeviceGetMemoryInfo_v2(Handle *gpu, MemoryV2 *out) {
    ASK;
    if (out->version != (sizeof *out | 2 << 24)) return ARGUMENT_VERSION_MISMATCH;
    pick(answer, code, 2, &out->reserved);
    pick(answer, code, 1, &out->used);
    return pick(answer, code, 0, &out->total);
}

typedef struct { Number pid; Long memory; Number instance, part; } Process;

static int processes(const char *answer, int code, Number *count, Process *out) {
    char copy[ANSWER], *rest = copy, *word;
    Number found = 0;
    if (code) return code;
    snprintf(copy, sizeof copy, "%s", answer);
    while ((word = strtok_r(rest, " ", &rest)))
        if (strchr(word, ':')) {
            Process process = { pid_of(word), strtoull(strchr(word, ':') + 1, NULL, 0), 0, 0 };
            if (out && found < *count) out[found] = process;
            found++;
        }
    code = found > *count ? INSUFFICIENT_SIZE : OK;
    *count = found;
    return code;
}

#define PROCESSES(call)                                                                  \
    int call(Handle *gpu, Number *count, Process *out) {                                 \
        ASK;                                                                             \
        return processes(answer, code, count, out);                                      \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
