# cmake -DFOLDER=systems/shipped -DOUTPUT=shipped_files.cc -P shipped.cmake
# Every file of every folder in FOLDER as bytes in the program: the assembler reads them, which no compiler's literal does as fast.
file(GLOB files LIST_DIRECTORIES false ${FOLDER}/*/*)
list(SORT files)
set(assembly "")
set(declared "")
set(rows "")
set(count 0)
foreach(path IN LISTS files)
  get_filename_component(name ${path} NAME)
  get_filename_component(run ${path} DIRECTORY)
  get_filename_component(run ${run} NAME)
  string(APPEND assembly "__asm__(\".section .rodata\\n.balign 16\\nfovea_shipped_${count}:\\n.incbin \\\"${path}\\\"\\nfovea_shipped_${count}_end:\\n.byte 0\\n.previous\\n\");\n")
  string(APPEND declared "extern \"C\" __attribute__((visibility(\"hidden\"))) const char fovea_shipped_${count}[], fovea_shipped_${count}_end[];\n")
  string(APPEND rows "      {\"${run}\", \"${name}\", {fovea_shipped_${count}, static_cast<size_t>(fovea_shipped_${count}_end - fovea_shipped_${count})}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Written by the build: systems/pages/shipped.cmake.\n#include \"systems/pages/shipped.h\"\n\n${assembly}\n${declared}
namespace fovea::systems {
const std::vector<ShippedFile>& shipped_files();
const std::vector<ShippedFile>& shipped_files() {
  static const std::vector<ShippedFile> files = {
${rows}  };
  return files;
}
}  // namespace fovea::systems\n")
