/* Runs the plugins of a library that `cubinder compile` wrote, without TensorRT. The functions are exported by the
   library itself (libNAME.so); open it with dlopen.

   Functions that can fail return NULL, or an error's text, which `cubinder_free_message` frees. The functions may be
   called by several threads; calls of `cubinder_operator_run` with one operator wait for each other.

   SPDX-License-Identifier: Apache-2.0 */
#ifndef CUBINDER_RUNTIME_H
#define CUBINDER_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every incompatible change of this header. */
#define CUBINDER_INTERFACE_VERSION 1

#define CUBINDER_MAX_RANK 8

/* A plugin with attributes and input types, for linear (row-major) tensors. All its runs must have the same current
   context: create an operator for each device. */
typedef struct CubinderOperator CubinderOperator;

/* An attribute of a node. Layout and types are those of nvinfer1::PluginField, and an integer may have any width that
   holds it. `length` is the number of elements; for text the number of bytes. */
typedef struct
{
    char const* name;
    void const* data;
    int32_t type;
    int32_t length;
} CubinderAttribute;

enum
{
    CUBINDER_FLOAT32 = 1,
    CUBINDER_FLOAT64 = 2,
    CUBINDER_INT8 = 3,
    CUBINDER_INT32 = 5,
    CUBINDER_CHAR = 6, /* text; a NUL after each string of a list */
    CUBINDER_INT64 = 10
};

/* Returns the library's CUBINDER_INTERFACE_VERSION. */
uint32_t cubinder_interface_version(void);

void cubinder_free_message(char* message);

/* Creates an operator. `plugin` is "NAMESPACE::NAME", or "NAMESPACE::NAME@VERSION". Attributes may be omitted if they have defaults. `input_types`
   are numbers of nvinfer1::DataType, in the manifest's order, shape inputs included. */
char* cubinder_operator_create(char const* plugin, CubinderAttribute const* attributes, int32_t attribute_count,
    int32_t const* input_types, int32_t input_count, CubinderOperator** created);

/* Destroys an operator, which may be NULL. Its work may still run: the code stays loaded. */
void cubinder_operator_destroy(CubinderOperator* operator_);

/* Writes the types of `count` outputs. */
char* cubinder_operator_output_types(CubinderOperator const* operator_, int32_t* types, int32_t count);

/* In the next functions, `ranks` has the rank of each input, and `extents` the extents of all inputs, one after the
   other. A shape input has its values in `extents`, and their number in `ranks`. */

/* Checks the inputs' shapes by the manifest's rules, and writes ranks of `output_count` outputs, and
   CUBINDER_MAX_RANK extents for each. `sizes` is NULL, or has the values of size outputs after a run, by output;
   without it, data-dependent sizes are at their upper bounds. */
char* cubinder_operator_output_shapes(CubinderOperator const* operator_, int32_t const* ranks, int32_t input_count,
    int64_t const* extents, int32_t extent_count, int64_t const* sizes, int32_t* output_ranks,
    int64_t* output_extents, int32_t output_count);

/* Writes the output shapes as a program, for extents that are not known yet: the number of instructions; three words
   for each instruction; for each output its rank, and the instruction of each extent. Nothing is written if
   `capacity`, in words, is less than `length`. The words of instructions, with instructions counted from 0:

     -1 V 0   the number V
     -2 I A   extent A of input I; value A of a shape input
     -3 O 0   the data-dependent size in output O
      N A B   operation N of nvinfer1::DimensionOperation on the results of instructions A and B */
char* cubinder_operator_shape_program(CubinderOperator const* operator_, int32_t const* ranks, int32_t input_count,
    int64_t* words, int32_t capacity, int32_t* length);

/* A call of an operator. `inputs` has an address for each input that is no shape input. Data-dependent outputs have
   room for their upper bounds. An output that shares an input's memory has the input's address, or another one, to which
   the input is copied first. */
typedef struct
{
    int32_t const* ranks;
    int64_t const* extents;
    void const* const* inputs;
    void* const* outputs;
    void* workspace;
    uint64_t workspace_bytes;
    void* stream; /* a CUstream of the current context */
    int32_t rank_count;
    int32_t extent_count;
    int32_t input_count;
    int32_t output_count;
} CubinderCall;

/* Launches the kernels. The thread needs a current CUDA context. Writes the needed workspace, in bytes, to `needed`; if it is more than `workspace_bytes`, nothing
   is launched. Tensors and workspace must exist until the work has run. */
char* cubinder_operator_run(CubinderOperator const* operator_, CubinderCall const* call, uint64_t* needed);

#ifdef __cplusplus
}
#endif

#endif
