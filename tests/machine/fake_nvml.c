/* Answers as libnvidia-ml.so.1 for a machine written down in a text file.
 *
 * NVML_MACHINE names the file; it is read again at every nvmlInit. A line says what one
 * call answers, "*" standing for every GPU:
 *
 *     nvmlInit              *  !18            refuse with NVML's error 18
 *     nvmlDeviceGetCount    *  2
 *     nvmlDeviceGetName     0  NVIDIA H200
 *     nvmlDeviceGetPowerUsage 1  350000
 *     lost                  1  12             from its 12th reading on, error 15
 *
 * The first line that fits wins. A call without a line is refused as not supported (3).
 * Compiled with -DDRIVER_470 it lacks what drivers of that age lack.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_SUPPORTED 3
#define INVALID_ARGUMENT 2
#define GPU_IS_LOST 15
#define LINES 256
#define GPUS 16

typedef struct { char call[64], gpu[8], answer[128]; } Line;
typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;

static Line lines[LINES];
static int line_count;
static int readings[GPUS];
static char handles[GPUS];

static void read_machine(void) {
    char text[256];
    const char *path = getenv("NVML_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    line_count = 0;
    memset(readings, 0, sizeof readings);
    while (file && line_count < LINES && fgets(text, sizeof text, file)) {
        Line *line = &lines[line_count];
        if (sscanf(text, "%63s %7s %127[^\n]", line->call, line->gpu, line->answer) == 3)
            line_count++;
    }
    if (file) fclose(file);
}

static const char *line_for(const char *call, int gpu) {
    char number[8];
    snprintf(number, sizeof number, "%d", gpu);
    for (int i = 0; i < line_count; i++)
        if (!strcmp(lines[i].call, call)
            && (!strcmp(lines[i].gpu, "*") || !strcmp(lines[i].gpu, number)))
            return lines[i].answer;
    return NULL;
}

/* The answer to a call about the whole machine, or an error in *code. */
static const char *ask(const char *call, int gpu, int *code) {
    const char *answer = line_for(call, gpu);
    *code = !answer ? NOT_SUPPORTED : answer[0] == '!' ? atoi(answer + 1) : 0;
    return answer;
}

/* The same about one GPU, which may have fallen off the bus by now. */
static const char *ask_gpu(const char *call, void *handle, int *code) {
    int gpu = (int)((char *)handle - handles);
    const char *limit = line_for("lost", gpu);
    if (limit && ++readings[gpu] >= atoi(limit)) {
        *code = GPU_IS_LOST;
        return NULL;
    }
    return ask(call, gpu, code);
}

static int text(const char *answer, int code, char *out, unsigned int length) {
    if (!code) snprintf(out, length, "%s", answer);
    return code;
}

static int number(const char *answer, int code, unsigned int *out) {
    if (!code) *out = (unsigned int)strtoul(answer, NULL, 0);
    return code;
}

static int big_number(const char *answer, int code, unsigned long long *out) {
    if (!code) *out = strtoull(answer, NULL, 0);
    return code;
}

int nvmlInitWithFlags(unsigned int flags) {
    int code;
    (void)flags;
    read_machine();
    ask("nvmlInit", -1, &code);
    return code == NOT_SUPPORTED ? 0 : code;
}

int nvmlShutdown(void) { return 0; }

const char *nvmlErrorString(int code) {
    (void)code;
    return "An error of the scripted machine";
}

int nvmlSystemGetDriverVersion(char *out, unsigned int length) {
    int code;
    const char *answer = ask(__func__, -1, &code);
    return text(answer, code, out, length);
}

int nvmlDeviceGetCount_v2(unsigned int *out) {
    int code;
    const char *answer = ask("nvmlDeviceGetCount", -1, &code);
    return number(answer, code, out);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **out) {
    int code;
    ask("nvmlDeviceGetHandleByIndex", (int)index, &code);
    if (index >= GPUS) return INVALID_ARGUMENT;
    *out = &handles[index];
    return code == NOT_SUPPORTED ? 0 : code;
}

int nvmlDeviceGetName(void *gpu, char *out, unsigned int length) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    return text(answer, code, out, length);
}

/* "9.0" */
int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    if (!code) sscanf(answer, "%d.%d", major, minor);
    return code;
}

/* "total used" */
int nvmlDeviceGetMemoryInfo(void *gpu, Memory *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    if (!code && sscanf(answer, "%llu %llu", &out->total, &out->used) == 2)
        out->free = out->total - out->used;
    return code;
}

/* "share of the time a kernel ran, share of the time memory was moved", in percent */
int nvmlDeviceGetUtilizationRates(void *gpu, Utilization *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    if (!code) sscanf(answer, "%u %u", &out->gpu, &out->memory);
    return code;
}

/* Milliwatts. */
int nvmlDeviceGetPowerUsage(void *gpu, unsigned int *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    return number(answer, code, out);
}

/* Megahertz, whichever clock is asked for. */
int nvmlDeviceGetClockInfo(void *gpu, int clock, unsigned int *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    (void)clock;
    return number(answer, code, out);
}

int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned int *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    (void)sensor;
    return number(answer, code, out);
}

/* "sent received", in kilobytes per second; 0 asks for what the GPU sends. */
int nvmlDeviceGetPcieThroughput(void *gpu, int counter, unsigned int *out) {
    int code;
    unsigned int sent, received;
    const char *answer = ask_gpu(__func__, gpu, &code);
    if (!code && sscanf(answer, "%u %u", &sent, &received) == 2)
        *out = counter ? received : sent;
    return code;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    return big_number(answer, code, out);
}

#ifndef DRIVER_470
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *out) {
    int code;
    const char *answer = ask_gpu(__func__, gpu, &code);
    return big_number(answer, code, out);
}
#endif
