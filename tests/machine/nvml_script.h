/* Reads the text file of fake_nvml.c and finds in it what a call is to answer. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, INSUFFICIENT_SIZE = 7,
       GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25 };
enum { LINES = 512, GPUS = 16, WORD = 64, ANSWER = 256 };

typedef unsigned int Number;
typedef unsigned long long Long;
typedef struct { char call[WORD], gpu[8], answer[ANSWER]; } Line;
typedef struct { int gpu, readings; } Handle;

static Line lines[LINES];
static int line_count, users;
static Handle handles[GPUS];

static void read_machine(void) {
    char text[512];
    const char *path = getenv("NVML_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    line_count = 0;
    memset(handles, 0, sizeof handles);
    while (file && line_count < LINES && fgets(text, sizeof text, file)) {
        Line *line = &lines[line_count];
        if (sscanf(text, "%63s %7s %255[^\n]", line->call, line->gpu, line->answer) == 3)
            line_count++;
    }
    if (file) fclose(file);
}

static int same_call(const char *written, const char *call) {
    size_t length = strlen(call);
    if (!strcmp(written, call)) return 1;
    return length > 3 && !strncmp(call + length - 3, "_v", 2)
        && strlen(written) == length - 3 && !strncmp(written, call, length - 3);
}

static const char *line_for(const char *call, const char *gpu) {
    for (int i = 0; i < line_count; i++)
        if (same_call(lines[i].call, call)
            && (!strcmp(lines[i].gpu, gpu) || !strcmp(lines[i].gpu, "*")))
            return lines[i].answer;
    return NULL;
}

static const char *name_of(const Handle *handle) {
    static _Thread_local char name[32];
    snprintf(name, sizeof name, "%d", handle->gpu);
    return name;
}

/* What a call comes to that does well where no line is about it. */
static int well_unless(const char *answer, int code) {
    return answer ? code : OK;
}

/* The answer to a call about the whole machine, or an error in *code. */
static const char *ask(const char *call, int *code) {
    const char *answer = line_for(call, "machine");
    *code = !answer ? NOT_SUPPORTED : answer[0] == '!' ? atoi(answer + 1) : OK;
    return answer;
}

/* The same about one GPU, which may have fallen off the bus by now. */
static const char *ask_gpu(const char *call, Handle *handle, int *code) {
    const char *lost = line_for("lost", name_of(handle));
    const char *answer = line_for(call, name_of(handle));
    handle->readings++;
    *code = !answer ? NOT_SUPPORTED : answer[0] == '!' ? atoi(answer + 1) : OK;
    if (!users) *code = UNINITIALIZED;
    if (lost && handle->readings >= atoi(lost)) *code = GPU_IS_LOST;
    return answer;
}

/* One of the numbers of an answer, by its place. */
static int pick(const char *answer, int code, int place, Long *out) {
    char copy[ANSWER], *rest = copy, *word;
    if (code) return code;
    snprintf(copy, sizeof copy, "%s", answer);
    do word = strtok_r(rest, " ", &rest); while (word && place-- > 0);
    if (!word || !strcmp(word, "-")) return NOT_SUPPORTED;
    *out = strtoull(word, NULL, 0);
    return OK;
}

static int pick_number(const char *answer, int code, int place, Number *out) {
    Long value = 0;
    code = pick(answer, code, place, &value);
    if (!code) *out = (Number)value;
    return code;
}

/* The number of a process, which a machine may name by what it is to this one. */
static Number pid_of(const char *word) {
    if (!strncmp(word, "self:", 5)) return (Number)getpid();
    if (!strncmp(word, "parent:", 7)) return (Number)getppid();
    return (Number)strtoul(word, NULL, 0);
}
