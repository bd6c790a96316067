# find_package(cubinder): compiles plugin libraries as part of a CMake build.
#
#   cubinder::cubinder    the program
#   cubinder::runtime     libcubinder.so, which runs engines; TensorRT loads it by its path, $<TARGET_FILE:cubinder::runtime>, nothing links to it
#   cubinder_add_plugins  see below
#
# All are found from the place of this file: cubinder_DIR, CMAKE_PREFIX_PATH, or a Python environment that is active.

cmake_minimum_required(VERSION 3.21)

get_filename_component(_cubinder_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_cubinder_program "${_cubinder_prefix}/bin/cubinder")
set(_cubinder_runtime "${_cubinder_prefix}/lib/libcubinder.so")
foreach(_cubinder_file IN ITEMS "${_cubinder_program}" "${_cubinder_runtime}")
  if(NOT EXISTS "${_cubinder_file}")
    set(cubinder_FOUND FALSE)
    set(cubinder_NOT_FOUND_MESSAGE "its file `${_cubinder_file}` is not there; install it again")
    return()
  endif()
endforeach()

# Functions are known in the whole build, so the targets have to be: who calls one need not be below who called find_package.
if(NOT TARGET cubinder::cubinder)
  add_executable(cubinder::cubinder IMPORTED GLOBAL)
  set_target_properties(cubinder::cubinder PROPERTIES IMPORTED_LOCATION "${_cubinder_program}")
  add_library(cubinder::runtime MODULE IMPORTED GLOBAL)
  set_target_properties(cubinder::runtime PROPERTIES IMPORTED_LOCATION "${_cubinder_runtime}")
endif()

# cubinder_add_plugins(<target>
#   [MANIFESTS <file>...]      the plugins, .toml files; without any, those that CONFIG names
#   [CONFIG <file>]            a cubinder.toml; the default is the nearest one above MANIFESTS
#   [NAME <name>]              lib<name>.so; the target's name by default
#   [OUTPUT <folder>]          the current binary folder by default
#   [TARGETS <target>...]      what to compile for: sm_89 compute_80; before what CONFIG says, one of the two has to
#   [INCLUDE <folder>...]      folders for #include; generator expressions may stand for folders
#   [OPTIONS <option>...]      options of NVRTC
#   [DEPENDS <file or target>...]  what has to be made first: headers, manifests or kernels that other rules write
#   [EMBED])                   write lib<name>-code.so as well, to be serialized into engines
#
# Makes a target that is built with all others. Paths are relative to the current source folder, OUTPUT to the current binary folder. The
# libraries' paths are in the target's properties: $<TARGET_PROPERTY:<target>,CUBINDER_LIBRARY> and, with EMBED, CUBINDER_CODE_LIBRARY. They
# are made anew when a manifest, a kernel, a header, a table, cubinder.toml, NVRTC or Cubinder itself changes.
function(cubinder_add_plugins target)
  set(expected "expected MANIFESTS, CONFIG, NAME, OUTPUT, TARGETS, INCLUDE, OPTIONS, DEPENDS or EMBED")
  cmake_parse_arguments(PARSE_ARGV 1 arg "EMBED" "CONFIG;NAME;OUTPUT" "MANIFESTS;TARGETS;INCLUDE;OPTIONS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cubinder_add_plugins(${target}): unknown argument `${arg_UNPARSED_ARGUMENTS}`; ${expected}")
  endif()
  # A variable that holds an empty list is as good as no list: `TARGETS ${CUDA_TARGETS}`.
  list(REMOVE_ITEM arg_KEYWORDS_MISSING_VALUES TARGETS INCLUDE OPTIONS DEPENDS)
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "cubinder_add_plugins(${target}): missing values after `${arg_KEYWORDS_MISSING_VALUES}`")
  endif()
  # A misspelt keyword stands among the manifests.
  foreach(manifest IN LISTS arg_MANIFESTS)
    if(NOT manifest MATCHES "\\.toml$")
      message(FATAL_ERROR "cubinder_add_plugins(${target}): `${manifest}` in MANIFESTS is not a .toml file; ${expected}")
    endif()
  endforeach()
  # And any other among what comes before it. A folder of such a name is written `./NAME`.
  foreach(word IN LISTS arg_TARGETS arg_INCLUDE arg_OPTIONS)
    if(word MATCHES "^[A-Z][A-Z_]+$")
      message(FATAL_ERROR "cubinder_add_plugins(${target}): unknown argument `${word}`; ${expected}")
    endif()
  endforeach()
  if(NOT arg_MANIFESTS AND NOT arg_CONFIG)
    message(FATAL_ERROR "cubinder_add_plugins(${target}): nothing to compile; specify MANIFESTS or CONFIG")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME "${target}")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  get_filename_component(output "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  set(library "${output}/lib${arg_NAME}.so")
  set(libraries "${library}")
  set(inputs)
  set(arguments --quiet --name "${arg_NAME}" --out-dir "${output}")
  if(arg_EMBED)
    list(APPEND arguments --embed)
    list(APPEND libraries "${output}/lib${arg_NAME}-code.so")
  endif()
  if(arg_CONFIG)
    get_filename_component(config "${arg_CONFIG}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND arguments --config "${config}")
    list(APPEND inputs "${config}")
  endif()
  foreach(wanted IN LISTS arg_TARGETS)
    list(APPEND arguments --target "${wanted}")
  endforeach()
  foreach(folder IN LISTS arg_INCLUDE)
    string(GENEX_STRIP "${folder}" plain)
    if(plain STREQUAL folder)
      get_filename_component(folder "${folder}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
      list(APPEND arguments "--include=${folder}")
    else()
      # It may stand for several folders, or for none.
      list(APPEND arguments "$<$<BOOL:${folder}>:--include=$<JOIN:${folder},$<SEMICOLON>--include=>>")
    endif()
  endforeach()
  foreach(option IN LISTS arg_OPTIONS)
    list(APPEND arguments "--option=${option}")
  endforeach()
  foreach(manifest IN LISTS arg_MANIFESTS)
    get_filename_component(manifest "${manifest}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND arguments "${manifest}")
    list(APPEND inputs "${manifest}")
  endforeach()
  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/${target}.cubinder.d")
  set(forget)
  if(CMAKE_GENERATOR MATCHES "Makefiles")
    # CMake adds what a depfile says to what an earlier one said (3.25, tried): a header that is gone would be asked for ever after. What
    # it remembers is taken away, so that it reads the depfile anew.
    set(memory "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/compiler_depend.internal")
    set(forget COMMAND "${CMAKE_COMMAND}" -E rm -f "${memory}")
  endif()
  add_custom_command(
    OUTPUT ${libraries}
    COMMAND cubinder::cubinder compile ${arguments} --depfile "${depfile}"
    ${forget}
    DEPENDS ${inputs} ${arg_DEPENDS}
    DEPFILE "${depfile}"
    COMMENT "Compiling plugins into lib${arg_NAME}.so"
    COMMAND_EXPAND_LISTS
    VERBATIM)
  add_custom_target("${target}" ALL DEPENDS ${libraries})
  set_target_properties("${target}" PROPERTIES CUBINDER_LIBRARY "${library}")
  if(arg_EMBED)
    set_target_properties("${target}" PROPERTIES CUBINDER_CODE_LIBRARY "${output}/lib${arg_NAME}-code.so")
  endif()
endfunction()
